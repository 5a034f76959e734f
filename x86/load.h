/* SPDX-License-Identifier: GPL-2.0-only */
/* One boot in the making, shared by the files of x86/ that load a kernel. */
#ifndef LKVM_X86_LOAD_H
#define LKVM_X86_LOAD_H

#include <asm/bootparam.h>
#include "arch.h"
#include "boot.h"
#include "x86.h"

/* A kernel or initrd as a file that can be read at any offset. */
struct boot_file {
	const char *what, *path; /* for messages: "kernel", "/boot/vmlinuz" */
	int fd;
	bool owned; /* a copy of a pipe, ours to close */
	u64 size;
};

struct load {
	const struct guest_mem *mem;
	const struct boot_source *src;
	u64 low_end; /* end of the RAM that begins at 0 */
	struct boot_file kernel;

	/* What the kernel's format decides. */
	bool pvh;
	u64 entry;
	u64 kernel_end;          /* end of what the kernel claims before it reads the memory map */
	u64 initrd_max;          /* last address an initrd should have */
	bool initrd_high;        /* it may lie above that and above 4 GiB as well */
	u64 cmdline_max;         /* characters, without the 0 */
	struct setup_header hdr; /* bzImage only */

	u64 initrd, initrd_size; /* where it went; size 0 = none */
};

/*
 * Opens what @fd is: a regular file as it is, anything else copied to memory, at most @max bytes.
 * -EINVAL for a directory or an empty file, -EFBIG, or the error of the read; logged.
 */
int boot_file_open(struct boot_file *f, const char *what, const char *path, int fd, u64 max);
void boot_file_close(struct boot_file *f);

/*
 * Exactly @len bytes at @off. -ENODATA when the file is shorter, else the error of the read; not
 * logged.
 */
int boot_file_read(const struct boot_file *f, void *buf, u64 len, u64 off) __must_check;

/* True when the file holds bytes [off, off + len). */
static inline bool boot_file_has(const struct boot_file *f, u64 off, u64 len)
{
	return off <= f->size && len <= f->size - off;
}

/* Copies a part of the file to @gpa; errors are logged. */
int boot_file_load(const struct load *ld, const struct boot_file *f, u64 off, u64 len,
		   u64 gpa) __must_check;

/* Check the kernel, load it, and fill in what its format decides. Errors are logged. */
int bzimage_load(struct load *ld) __must_check;
int elf_load(struct load *ld) __must_check;

/* "<path> needs N MiB at A, the guest has M MiB": -ENOMEM, logged. */
int load_no_room(const struct load *ld, u64 gpa, u64 size);

#endif
