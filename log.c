// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: a message is formatted into one buffer and leaves by one write(2), so that
 * lines of two threads never mix and nothing is lost when the process dies. Control characters come
 * from paths and option values that we only quote; they print as '?', which keeps one message one
 * line. The two variables here are the only mutable ones at file scope in the tree: the level is
 * set before threads start, the sink is swapped atomically.
 */
#include <stdarg.h>
#include <stdio.h>
#include <poll.h>
#include <unistd.h>

#include "log.h"

#define STDERR_PATIENCE_MS 100
#define LOG_LINE           1024 /* bytes of a line, newline included; what is longer is cut */

static enum log_level log_level = LOG_WARN;
static void (*log_sink)(enum log_level level, const char *line);

void log_set_level(enum log_level level)
{
	log_level = level;
}

void log_set_sink(void (*sink)(enum log_level level, const char *line))
{
	__atomic_store_n(&log_sink, sink, __ATOMIC_RELEASE);
}

static const char *level_prefix(enum log_level level)
{
	switch (level) {
	case LOG_WARN: return "lkvm: warning: ";
	case LOG_DEBUG: return "lkvm: debug: ";
	default: return "lkvm: ";
	}
}

/* Room for the newline and its NUL stays free behind the line. */
static size_t format_line(char *line, size_t size, enum log_level level, const char *fmt,
			  va_list ap)
{
	int n = snprintf(line, size, "%s", level_prefix(level));
	size_t len;

	vsnprintf(line + n, size - (size_t)n - 1, fmt, ap);
	len = strlen(line);
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	}
	return len;
}

/*
 * A pipe that has room takes a line, which is shorter than PIPE_BUF, without waiting. One that
 * stays full has no reader: the line is lost, for a message must not stop the machine. Nobody is
 * left to tell when stderr is gone.
 */
static void write_line(const char *line, size_t len)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (poll(&p, 1, STDERR_PATIENCE_MS) <= 0)
		return;
	while (write(STDERR_FILENO, line, len) < 0 && errno == EINTR)
		;
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	void (*sink)(enum log_level, const char *) = __atomic_load_n(&log_sink, __ATOMIC_ACQUIRE);
	int saved = errno;
	char line[LOG_LINE];
	size_t len;
	va_list ap;

	if (level > log_level)
		return;
	va_start(ap, fmt);
	len = format_line(line, sizeof(line), level, fmt, ap);
	va_end(ap);

	if (sink) {
		sink(level, line);
	} else {
		line[len++] = '\n';
		write_line(line, len);
	}
	errno = saved;
}

int log_no_memory(const char *what)
{
	log_err("%s: %s", what, strerror(ENOMEM));
	return -ENOMEM;
}
