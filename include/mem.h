/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guest memory: a few regions of one memfd each, shared, so that a vhost-user peer can map them.
 *
 * Theory of operation: regions are added while the VM is built and frozen before the first vCPU
 * runs, so readers take no lock. mem_ptr() and mem_span() are the only doors from a guest physical
 * address to a pointer, and both check bounds without overflow. What they return is shared with the
 * guest and its devices: read a value once (READ_ONCE, or copy), then check the copy. Bulk loading
 * at boot goes through the file (mem_write, mem_load): it costs no page fault for each page and
 * leaves the pages out of our page tables. Rank 1: knows neither KVM nor devices.
 */
#ifndef LKVM_MEM_H
#define LKVM_MEM_H

#include "types.h"

#define MEM_MAX_REGIONS 4

struct mem_region {
	u64 gpa, size; /* bytes, page aligned */
	void *hva;
	int fd;     /* memfd; owned */
	u64 fd_off; /* where the region begins in it */
};

struct guest_mem {
	struct mem_region r[MEM_MAX_REGIONS]; /* by rising gpa, not overlapping */
	unsigned nr;
	u64 span_limit; /* tests: mem_span() returns at most this many bytes; 0 = no limit */
};

/*
 * Adds @size bytes of zeroed memory at @gpa, both multiples of the page size, above all regions so
 * far. -EINVAL when not so, -ENOSPC with MEM_MAX_REGIONS there, or the error of memfd_create,
 * ftruncate or mmap. Freed by mem_free().
 */
int mem_add(struct guest_mem *mem, u64 gpa, u64 size) __must_check;

/*
 * Unmaps and closes all regions; also fine on a zeroed struct. Nobody may use the memory any more.
 */
void mem_free(struct guest_mem *mem);

/*
 * Gives all pages back to the host: everything reads 0 again. Nobody may use the memory meanwhile.
 */
int mem_clear(struct guest_mem *mem) __must_check;

/*
 * Pointer to @len bytes at @gpa, or NULL unless they lie wholly inside one region. @len 0 is NULL.
 */
void *mem_ptr(const struct guest_mem *mem, u64 gpa, u64 len);

/*
 * Pointer to the bytes at @gpa, *@len shortened to what is contiguous there (to the end of the
 * region, or span_limit). NULL when @gpa is in no region or *@len is 0. Callers loop.
 */
void *mem_span(const struct guest_mem *mem, u64 gpa, u64 *len);

/* Bytes of RAM in all. */
u64 mem_size(const struct guest_mem *mem);

/*
 * Copies @len bytes to @gpa through the memfd. -EFAULT when out of range, else the error of pwrite.
 */
int mem_write(const struct guest_mem *mem, u64 gpa, const void *buf, u64 len) __must_check;

/*
 * Copies @len bytes from @fd (a file at offset @off, or a pipe with @off < 0) to @gpa, inside the
 * kernel where it can.
 * -EFAULT when out of range, -ENODATA when @fd ends before @len bytes, else the error of the read.
 */
int mem_load(const struct guest_mem *mem, u64 gpa, int fd, s64 off, u64 len) __must_check;

#endif
