/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One end of the user's side, stdin or stdout, whatever the user made of it: read and written
 * without blocking, and without changing the open file that others share with us.
 *
 * Theory of operation: a pipe or terminal is opened anew with O_NONBLOCK through /proc/self/fd.
 * Where that fails, and for sockets and devices, a poll comes first, then as little as cannot
 * block. What cannot be polled (a regular file, /dev/null) is always ready. Loop thread only. Rank
 * 2.
 */
#ifndef LKVM_STREAM_H
#define LKVM_STREAM_H

#include <sys/types.h>
#include <termios.h>
#include "loop.h"

enum stream_kind { STREAM_NONE, STREAM_NONBLOCK, STREAM_CAREFUL, STREAM_DIRECT };

struct stream {
	enum stream_kind kind; /* NONE = closed, or at its end */
	int fd;                /* ours; kept at the end of input for the terminal's modes */
	bool tty, fifo;
	bool watched; /* in the loop */
	bool raw;     /* the terminal is */
	bool have_saved;
	struct termios saved; /* how it was */
	struct loop_src src;  /* fn and name are the caller's */
};

/* @flags: O_RDONLY or O_WRONLY. @fd stays the caller's; -1 or closed makes a STREAM_NONE. */
void stream_open(struct stream *s, int fd, int flags);
void stream_close(struct stream *s, struct loop *loop);

/*
 * Into the loop for @events, or out of it. May turn the kind into DIRECT: always ready, never
 * called back.
 */
void stream_watch(struct stream *s, struct loop *loop, bool on, u32 events);

/* Waits at most @ms. */
bool stream_ready(const struct stream *s, short events, int ms);

/* Bytes, or -errno; -EAGAIN when it would block. A read of 0 bytes is the end. */
ssize_t stream_read(struct stream *s, void *buf, size_t len);
ssize_t stream_write(struct stream *s, const void *buf, size_t len);

/*
 * True when the terminal is in another job's hands: reading it or setting its modes would stop us.
 */
bool stream_in_background(const struct stream *s);

/*
 * Terminal modes for a guest, and back; nothing happens without a terminal, or in the background.
 */
void stream_raw(struct stream *s);
void stream_raw_again(struct stream *s); /* forgets that it is raw: somebody else has set it */
void stream_restore(struct stream *s);

#endif
