// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel and initrd files.
 *
 * Theory of operation: a regular file is used in place, so that its bytes go from the page cache to
 * guest memory inside the kernel. A pipe or a device has neither a size nor offsets: it is copied
 * to a memfd first, up to a limit, for /dev/zero never ends. All errors are logged here with the
 * file's name; boot_file_read() is for probing and leaves that to its caller.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "load.h"
#include "log.h"

static int write_all(int fd, const u8 *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf += n;
		len -= n;
	}
	return 0;
}

/* Copies all of @in to @out. Bytes, or -errno; -EFBIG beyond @max. */
static s64 copy_stream(int in, int out, u64 max)
{
	static const size_t chunk = 256 * KiB;
	u8 *buf = malloc(chunk);
	s64 total = 0;

	if (!buf)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(in, buf, chunk);
		int err;

		if (n < 0 && errno == EINTR)
			continue;
		err = n < 0 ? -errno : write_all(out, buf, n);
		if (!err && (u64)(total + n) > max)
			err = -EFBIG;
		if (err || n == 0) {
			free(buf);
			return err ? err : total;
		}
		total += n;
	}
}

static int copy_to_memory(struct boot_file *f, int fd, u64 max)
{
	s64 n;

	f->fd = memfd_create("lkvm-boot", MFD_CLOEXEC);
	if (f->fd < 0) {
		n = -errno;
		log_err("%s: %s: no memory file for it: %s", f->what, f->path, strerror(errno));
		return n;
	}
	f->owned = true;
	n = copy_stream(fd, f->fd, max);
	if (n == -EFBIG)
		log_err("%s: %s: has more than the %llu MiB of the guest's memory; give the guest more (-m)",
			f->what, f->path, (unsigned long long)(max / MiB));
	else if (n < 0)
		log_err("%s: %s: cannot be read: %s", f->what, f->path, strerror((int)-n));
	if (n < 0)
		return (int)n;
	f->size = n;
	return 0;
}

int boot_file_open(struct boot_file *f, const char *what, const char *path, int fd, u64 max)
{
	struct stat st;
	int err = 0;

	*f = (struct boot_file){ .what = what, .path = path ? path : "?", .fd = fd };
	if (fstat(fd, &st) < 0) {
		err = -errno;
		log_err("%s: %s: cannot be read: %s", what, f->path, strerror(errno));
		return err;
	}
	if (S_ISDIR(st.st_mode)) {
		log_err("%s: %s: is a directory; name a file", what, f->path);
		return -EINVAL;
	}
	if (S_ISREG(st.st_mode))
		f->size = st.st_size;
	else
		err = copy_to_memory(f, fd, max);
	if (!err && f->size == 0) {
		log_err("%s: %s: is empty", what, f->path);
		err = -EINVAL;
	}
	if (err)
		boot_file_close(f);
	return err;
}

void boot_file_close(struct boot_file *f)
{
	if (f->owned)
		close(f->fd);
	f->owned = false;
	f->fd = -1;
}

int boot_file_read(const struct boot_file *f, void *buf, u64 len, u64 off)
{
	u8 *p = buf;

	while (len) {
		ssize_t n = pread(f->fd, p, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		p += n;
		off += n;
		len -= n;
	}
	return 0;
}

int boot_file_load(const struct load *ld, const struct boot_file *f, u64 off, u64 len, u64 gpa)
{
	int err = mem_load(ld->mem, gpa, f->fd, (s64)off, len);

	if (err == -ENODATA)
		log_err("%s: %s: got shorter while it was read", f->what, f->path);
	else if (err)
		log_err("%s: %s: cannot be loaded to %#llx: %s", f->what, f->path,
			(unsigned long long)gpa, strerror(-err));
	return err;
}
