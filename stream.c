// SPDX-License-Identifier: GPL-2.0-only
/* The user's end, whatever it is. Theory of operation: include/stream.h. */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "stream.h"

#define TTY_CHUNK \
	32 /* bytes that a terminal takes without blocking once poll says that it is ready */

static int reopen(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void stream_open(struct stream *s, int fd, int flags)
{
	struct stat st;
	bool ptmx;

	*s = (struct stream){ .fd = -1 };
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	s->tty = isatty(fd);
	s->fifo = S_ISFIFO(st.st_mode);
	/* Opening the multiplexer anew would make another terminal. */
	ptmx = S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 2);
	if ((s->tty && !ptmx) || s->fifo)
		s->fd = reopen(fd, flags);
	s->kind = STREAM_NONBLOCK;
	if (s->fd < 0) {
		s->kind = S_ISREG(st.st_mode) ? STREAM_DIRECT : STREAM_CAREFUL;
		s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	}
	if (s->fd < 0)
		s->kind = STREAM_NONE;
	s->src.fd = s->fd;
}

void stream_watch(struct stream *s, struct loop *loop, bool on, u32 events)
{
	int err;

	if (on == s->watched || (on && s->kind != STREAM_NONBLOCK && s->kind != STREAM_CAREFUL))
		return;
	if (!on) {
		loop_del(loop, &s->src);
		s->watched = false;
		return;
	}
	err = loop_add(loop, &s->src, events);
	s->watched = !err;
	if (err)
		s->kind = err == -EPERM ? STREAM_DIRECT : STREAM_NONE;
}

void stream_close(struct stream *s, struct loop *loop)
{
	stream_watch(s, loop, false, 0);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->kind = STREAM_NONE;
}

bool stream_ready(const struct stream *s, short events, int ms)
{
	struct pollfd p = { .fd = s->fd, .events = events };

	return poll(&p, 1, ms) > 0;
}

ssize_t stream_read(struct stream *s, void *buf, size_t len)
{
	ssize_t n;

	if (s->kind == STREAM_NONE)
		return 0;
	if (s->kind == STREAM_CAREFUL && !stream_ready(s, POLLIN, 0))
		return -EAGAIN;
	n = read(s->fd, buf, len);
	return n < 0 ? -errno : n;
}

ssize_t stream_write(struct stream *s, const void *buf, size_t len)
{
	ssize_t n;

	if (s->kind == STREAM_NONE)
		return -EBADF;
	if (s->kind == STREAM_CAREFUL) {
		n = send(s->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0 || errno != ENOTSOCK)
			return n < 0 ? -errno : n;
		if (!stream_ready(s, POLLOUT, 0))
			return -EAGAIN;
		if (s->tty || s->fifo)
			len = MIN(len, (size_t)(s->tty ? TTY_CHUNK : PIPE_BUF));
	}
	n = write(s->fd, buf, len);
	return n < 0 ? -errno : n;
}

bool stream_in_background(const struct stream *s)
{
	pid_t foreground = s->tty ? tcgetpgrp(s->fd) : -1;

	return foreground >= 0 && foreground != getpgrp(); /* -1: not our session, no job control */
}

void stream_raw(struct stream *s)
{
	struct termios raw;

	if (s->raw || !s->tty || stream_in_background(s))
		return;
	if (!s->have_saved && tcgetattr(s->fd, &s->saved) < 0)
		return;
	s->have_saved = true;
	raw = s->saved;
	/* Output stays processed, so that our own messages look right. */
	raw.c_iflag &=
		~(tcflag_t)(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
	raw.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
	raw.c_cflag = (raw.c_cflag & ~(tcflag_t)(CSIZE | PARENB)) | CS8;
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	s->raw = tcsetattr(s->fd, TCSANOW, &raw) == 0;
}

void stream_raw_again(struct stream *s)
{
	s->raw = false;
}

void stream_restore(struct stream *s)
{
	/* In the background the shell has set the modes itself. */
	if (s->have_saved && !stream_in_background(s))
		tcsetattr(s->fd, TCSANOW, &s->saved);
	s->raw = s->have_saved = false;
}
