/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages to the user, on stderr, one line each: "lkvm: what: which value or path: why; what to
 * do". The function that knows the context logs once and returns -errno; its callers only pass that
 * on. Rank 0.
 */
#ifndef LKVM_LOG_H
#define LKVM_LOG_H

#include "types.h"

enum log_level { LOG_ERR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/*
 * Messages above @level are dropped (default LOG_WARN). Not thread-safe: call before threads start.
 */
void log_set_level(enum log_level level);

/* Replaces stderr as the receiver, for tests and for a raw terminal; NULL restores it. */
void log_set_sink(void (*sink)(enum log_level level, const char *line));

/* One call, one line: no trailing newline in @fmt; lines of two threads never mix. Keeps errno. */
void log_msg(enum log_level level, const char *fmt, ...) __printf(2, 3);

/* For who has no more to say about it: logs @what, returns -ENOMEM. */
int log_no_memory(const char *what);

#define log_err(...)   log_msg(LOG_ERR, __VA_ARGS__)
#define log_warn(...)  log_msg(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_msg(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_msg(LOG_DEBUG, __VA_ARGS__)

/* For what a guest or a peer can cause at will: the first one is printed, the rest are not. */
#define log_warn_once(...) \
	do { \
		static _Atomic bool said; \
		if (!__atomic_exchange_n((bool *)&said, true, __ATOMIC_RELAXED)) \
			log_warn(__VA_ARGS__); \
	} while (0)

#endif
