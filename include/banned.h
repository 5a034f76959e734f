/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions that cannot be used safely: naming one is a compile error. Rank 0. */
#ifndef LKVM_BANNED_H
#define LKVM_BANNED_H

/* The headers that declare them come first, so that only uses are caught. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets atoi atol atoll
#pragma GCC poison strtok tmpnam mktemp

#endif
