/* SPDX-License-Identifier: GPL-2.0-only */
/* What is booted: opened and checked before anything is made. Rank 2. */
#ifndef LKVM_BOOT_H
#define LKVM_BOOT_H

#include "types.h"

struct boot_source {
	const char *kernel_path, *initrd_path; /* for messages; initrd NULL = none */
	int kernel_fd, initrd_fd; /* regular files or pipes; -1 = none; not closed here */
	const char *cmdline;      /* whole */
};

#endif
