/* SPDX-License-Identifier: GPL-2.0-only */
/* Fixed-width names, and the few macros that everything uses. Rank 0. */
#ifndef LKVM_TYPES_H
#define LKVM_TYPES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "lkvm runs on little-endian hosts only: virtio 1.x is little-endian and nothing here swaps"
#endif

/* clang-format off */
#define ARRAY_SIZE(a)         (sizeof(a) / sizeof((a)[0]))
#define container_of(p, T, m) ((T *)(void *)((char *)(p) - offsetof(T, m)))
#define BIT(n)                (1ULL << (n))
#define KiB                   (1ULL << 10)
#define MiB                   (1ULL << 20)
#define GiB                   (1ULL << 30)
#define ALIGN_UP(x, a)        (((x) + (a) - 1) & ~((__typeof__(x))(a) - 1))
#define IS_ALIGNED(x, a)      (((x) & ((__typeof__(x))(a) - 1)) == 0)
/* clang-format on */

#define MIN(a, b) \
	({ \
		__typeof__(a) min_a = (a); \
		__typeof__(b) min_b = (b); \
		min_a < min_b ? min_a : min_b; \
	})

/*
 * One access that the compiler neither repeats nor splits: for memory that a guest changes under
 * us.
 */
#define READ_ONCE(x)     (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#define __printf(f, a) __attribute__((format(printf, f, a)))
#define __cleanup(f)   __attribute__((cleanup(f)))
#define __must_check   __attribute__((warn_unused_result))
#define __maybe_unused __attribute__((unused))

#include "banned.h"

#endif
