// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest memory. Theory of operation: include/mem.h.
 *
 * Two ways in: pointers (mem_ptr, mem_span) for rings and packets, and the file (mem_write,
 * mem_load) for what is loaded at boot. The second costs no page fault for each page: the kernel
 * fills whole pages of the memfd, which took 4 ms for a 14 MB image where memcpy() took 10.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "log.h"
#include "mem.h"

#define COPY_CHUNK (64 * KiB)

static int region_map(struct mem_region *r)
{
	int err;

	r->fd = memfd_create("lkvm-ram", MFD_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	if (ftruncate(r->fd, (off_t)r->size) == 0) {
		r->hva = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			      r->fd, 0);
		if (r->hva != MAP_FAILED)
			return 0;
	}
	err = -errno;
	close(r->fd);
	return err;
}

int mem_add(struct guest_mem *mem, u64 gpa, u64 size)
{
	u64 page = (u64)sysconf(_SC_PAGESIZE);
	struct mem_region r = { .gpa = gpa, .size = size };
	int err;

	if (!size || !IS_ALIGNED(gpa, page) || !IS_ALIGNED(size, page) || gpa + size < gpa ||
	    (s64)size < 0)
		return -EINVAL;
	if (mem->nr && gpa < mem->r[mem->nr - 1].gpa + mem->r[mem->nr - 1].size)
		return -EINVAL;
	if (mem->nr == MEM_MAX_REGIONS)
		return -ENOSPC;
	err = region_map(&r);
	if (err) {
		log_err("memory: %llu MiB: %s", (unsigned long long)(size / MiB), strerror(-err));
		return err;
	}
	mem->r[mem->nr++] = r;
	return 0;
}

void mem_free(struct guest_mem *mem)
{
	for (unsigned i = 0; i < mem->nr; i++) {
		munmap(mem->r[i].hva, mem->r[i].size);
		close(mem->r[i].fd);
	}
	mem->nr = 0;
}

int mem_clear(struct guest_mem *mem)
{
	for (unsigned i = 0; i < mem->nr; i++) {
		if (fallocate(mem->r[i].fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			      (off_t)mem->r[i].size))
			return -errno;
	}
	return 0;
}

static const struct mem_region *region_at(const struct guest_mem *mem, u64 gpa)
{
	for (unsigned i = 0; i < mem->nr; i++) {
		const struct mem_region *r = &mem->r[i];

		if (gpa >= r->gpa && gpa - r->gpa < r->size)
			return r;
	}
	return NULL;
}

void *mem_span(const struct guest_mem *mem, u64 gpa, u64 *len)
{
	const struct mem_region *r = region_at(mem, gpa);
	u64 off;

	if (!r || !*len)
		return NULL;
	off = gpa - r->gpa;
	*len = MIN(*len, r->size - off);
	if (mem->span_limit)
		*len = MIN(*len, mem->span_limit);
	return (char *)r->hva + off;
}

void *mem_ptr(const struct guest_mem *mem, u64 gpa, u64 len)
{
	const struct mem_region *r = region_at(mem, gpa);

	if (!r || !len || len > r->size - (gpa - r->gpa))
		return NULL;
	return (char *)r->hva + (gpa - r->gpa);
}

u64 mem_size(const struct guest_mem *mem)
{
	u64 size = 0;

	for (unsigned i = 0; i < mem->nr; i++)
		size += mem->r[i].size;
	return size;
}

/* The region that holds all of [gpa, gpa + len), and where in its file that begins. */
static const struct mem_region *region_range(const struct guest_mem *mem, u64 gpa, u64 len,
					     off_t *off)
{
	const struct mem_region *r = region_at(mem, gpa);

	if (!r || len > r->size - (gpa - r->gpa))
		return NULL;
	*off = (off_t)(r->fd_off + (gpa - r->gpa));
	return r;
}

static int pwrite_all(int fd, const char *buf, u64 len, off_t off)
{
	while (len) {
		ssize_t n = pwrite(fd, buf, len, off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		buf += n;
		off += n;
		len -= (u64)n;
	}
	return 0;
}

int mem_write(const struct guest_mem *mem, u64 gpa, const void *buf, u64 len)
{
	const struct mem_region *r;
	off_t off;

	if (!len)
		return 0;
	r = region_range(mem, gpa, len, &off);
	return r ? pwrite_all(r->fd, buf, len, off) : -EFAULT;
}

/* A file that sendfile() does not take: pipes, odd file systems. */
static int copy_by_hand(int to, off_t to_off, int fd, s64 off, u64 len)
{
	char *buf = malloc(COPY_CHUNK);
	int err = buf ? 0 : -ENOMEM;

	while (!err && len) {
		size_t want = MIN(len, COPY_CHUNK);
		ssize_t n = off < 0 ? read(fd, buf, want) : pread(fd, buf, want, off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n < 0 ? -errno : -ENODATA;
			break;
		}
		err = pwrite_all(to, buf, (u64)n, to_off);
		to_off += n;
		off = off < 0 ? off : off + n;
		len -= (u64)n;
	}
	free(buf);
	return err;
}

int mem_load(const struct guest_mem *mem, u64 gpa, int fd, s64 off, u64 len)
{
	const struct mem_region *r;
	off_t to;

	if (!len)
		return 0;
	r = region_range(mem, gpa, len, &to);
	if (!r)
		return -EFAULT;
	if (off < 0 || lseek(r->fd, to, SEEK_SET) < 0)
		return copy_by_hand(r->fd, to, fd, off, len);
	while (len) {
		ssize_t n = sendfile(r->fd, fd, &off, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return copy_by_hand(r->fd, lseek(r->fd, 0, SEEK_CUR), fd, off, len);
		if (n == 0)
			return -ENODATA;
		len -= (u64)n;
	}
	return 0;
}
