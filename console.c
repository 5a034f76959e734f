// SPDX-License-Identifier: GPL-2.0-only
/*
 * The user's end of the serial console. What callers need to know is in include/console.h.
 *
 * Output: console_put() appends to a ring under the lock. The first byte into an empty ring arms a
 * timer of a millisecond, the crossing of half full an eventfd: a guest that prints byte by byte
 * costs one wake-up for each millisecond, not one for each byte. The loop writes from the ring
 * without the lock, for it alone takes out. When nobody reads any more, output is discarded; if
 * that was for a closed pipe, the VM ends.
 *
 * Input: read when the loop says so, passed through the Ctrl-a filter if it is a terminal, and kept
 * in a buffer until the device took it. While the buffer is not empty the source is out of the
 * loop, so that neither a full device nor a hang-up spins. A terminal in another job's hands is
 * left alone and looked at again twice a second.
 *
 * Locking: lock guards the ring and the flags beside it; input belongs to the loop thread.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "console.h"
#include "log.h"
#include "machine.h"
#include "stream.h"

#define OUT_SIZE   (64 * KiB)
#define OUT_URGENT (OUT_SIZE / 2)
#define IN_SIZE    4096
#define FLUSH_NS   1000000L   /* from a byte to its write */
#define RETRY_NS   500000000L /* until a background terminal is looked at again */
#define FINAL_MS   1000       /* for a slow reader, when the VM has ended */
#define CTRL_A     0x01

static const char panic_text[] = "Kernel panic - not syncing";

struct console {
	struct machine *m;
	bool started;
	struct stream in, out;
	struct loop_src soon, now; /* timer and eventfd: there is something to do */

	pthread_mutex_t lock;
	pthread_cond_t room;
	bool stopping;
	bool armed; /* the timer is, for output */
	unsigned waiting;
	size_t head, len;
	u8 ring[OUT_SIZE];
	unsigned panic_at; /* characters of panic_text seen in a row */
	bool saw_panic;    /* atomic */

	size_t (*input)(void *dev, const u8 *buf, size_t len);
	void *input_dev;
	bool input_waits; /* atomic: bytes are left for console_input_ready() */
	bool escaped;     /* the last key was Ctrl-a */
	size_t in_off, in_len;
	u8 in_buf[IN_SIZE + 1];
};

static void arm(struct console *con, long ns)
{
	struct itimerspec when = { .it_value.tv_nsec = ns };

	timerfd_settime(con->soon.fd, 0, &when, NULL);
}

static void kick(struct console *con)
{
	u64 one = 1;
	ssize_t n = write(con->now.fd, &one, sizeof(one));

	(void)n; /* full means that it is signalled already */
}

/* Output. */

static void scan_panic(struct console *con, u8 byte)
{
	/* 'K' is in the text only once, so a mismatch can only be the start of another match. */
	if (byte == panic_text[con->panic_at])
		con->panic_at++;
	else
		con->panic_at = byte == panic_text[0];
	if (panic_text[con->panic_at] == 0) {
		__atomic_store_n(&con->saw_panic, true, __ATOMIC_RELEASE);
		con->panic_at = 0;
	}
}

bool console_saw_panic(const struct console *con)
{
	return __atomic_load_n(&con->saw_panic, __ATOMIC_ACQUIRE);
}

/* Appends what fits and sees to it that the loop comes by. Bytes taken; lock held. */
static size_t ring_append(struct console *con, const u8 *buf, size_t len)
{
	size_t before = con->len, n = MIN(len, OUT_SIZE - before);

	for (size_t i = 0; i < n; i++) {
		con->ring[(con->head + con->len++) % OUT_SIZE] = buf[i];
		scan_panic(con, buf[i]);
	}
	if (n && !con->armed) {
		con->armed = true;
		arm(con, FLUSH_NS);
	}
	if (before < OUT_URGENT && con->len >= OUT_URGENT)
		kick(con);
	return n;
}

void console_put(struct console *con, const void *buf, size_t len)
{
	const u8 *p = buf;

	pthread_mutex_lock(&con->lock);
	for (;;) {
		size_t n = ring_append(con, p, len);

		p += n;
		len -= n;
		if (!len || con->stopping)
			break;
		con->waiting++;
		pthread_cond_wait(&con->room, &con->lock);
		con->waiting--;
	}
	pthread_mutex_unlock(&con->lock);
}

void console_continued(struct console *con)
{
	stream_raw_again(&con->in);
	kick(con);
}

void console_stop(struct console *con)
{
	pthread_mutex_lock(&con->lock);
	con->stopping = true;
	pthread_cond_broadcast(&con->room);
	pthread_mutex_unlock(&con->lock);
}

void console_restart(struct console *con)
{
	pthread_mutex_lock(&con->lock);
	con->stopping = false;
	con->panic_at = 0;
	pthread_mutex_unlock(&con->lock);
	__atomic_store_n(&con->saw_panic, false, __ATOMIC_RELEASE);
}

/* The longest piece of the ring in one line. */
static size_t ring_peek(struct console *con, const u8 **p)
{
	size_t n;

	pthread_mutex_lock(&con->lock);
	*p = con->ring + con->head;
	n = MIN(con->len, OUT_SIZE - con->head);
	pthread_mutex_unlock(&con->lock);
	return n;
}

static void ring_drop(struct console *con, size_t n)
{
	pthread_mutex_lock(&con->lock);
	con->head = (con->head + n) % OUT_SIZE;
	con->len -= n;
	if (con->waiting)
		pthread_cond_broadcast(&con->room);
	pthread_mutex_unlock(&con->lock);
}

/* Nobody will see output any more. A reader that went away (| head -1) wants the VM to end. */
static void out_failed(struct console *con, int err)
{
	if (err == -ENOSPC || err == -EDQUOT || err == -EFBIG)
		log_warn("console: output is lost from here on: %s", strerror(-err));
	stream_close(&con->out, con->m->loop);
	if (err == -EPIPE && con->started)
		con->m->stop(con->m, STOP_SIGNAL, SIGPIPE);
}

/*
 * Writes what the ring holds, at most one ring full: a guest that prints for ever must not hold the
 * loop.
 */
static void flush(struct console *con)
{
	size_t done = 0, len;
	const u8 *p;

	while ((len = ring_peek(con, &p)) && done < OUT_SIZE) {
		ssize_t n = con->out.kind == STREAM_NONE ? (ssize_t)len
							 : stream_write(&con->out, p, len);

		if (n == -EINTR)
			continue;
		if (n == -EAGAIN)
			break;
		if (n < 0) {
			out_failed(con, (int)n);
			continue;
		}
		ring_drop(con, (size_t)n);
		done += (size_t)n;
	}
	if (!con->started)
		return;
	stream_watch(&con->out, con->m->loop, len > 0, EPOLLOUT);
	if (len && !con->out.watched)
		kick(con);
}

/* Input. */

/* Ctrl-a commands: filters @src into @dst, which has room for one byte more. */
static size_t unescape(struct console *con, u8 *dst, const u8 *src, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		bool escaped = con->escaped;

		con->escaped = !escaped && src[i] == CTRL_A;
		if (con->escaped)
			continue;
		if (escaped && src[i] == 'x') {
			con->m->stop(con->m, STOP_USER, 0);
			break;
		}
		if (escaped)
			dst[n++] = CTRL_A;
		if (!escaped || (src[i] != 'a' && src[i] != CTRL_A))
			dst[n++] = src[i];
	}
	return n;
}

/*
 * Reads behind what is left in the buffer. A terminal is read also while the guest takes nothing,
 * for Ctrl-a x must be seen then of all times; keys that no longer fit are lost. False when there
 * is nothing, now or any more.
 */
static bool fill(struct console *con)
{
	u8 raw[IN_SIZE], keys[IN_SIZE + 1];
	size_t left = con->in_len - con->in_off, len;
	ssize_t n;

	if (con->in.kind == STREAM_NONE || stream_in_background(&con->in))
		return false;
	n = stream_read(&con->in, raw, sizeof(raw));
	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n <= 0) {
		stream_watch(&con->in, con->m->loop, false, 0);
		con->in.kind = STREAM_NONE;
		return false;
	}
	len = (size_t)n;
	if (con->in.tty)
		len = unescape(con, keys, raw, len);
	memmove(con->in_buf, con->in_buf + con->in_off, left);
	len = MIN(len, sizeof(con->in_buf) - left);
	memcpy(con->in_buf + left, con->in.tty ? keys : raw, len);
	con->in_off = 0;
	con->in_len = left + len;
	return true;
}

/* Offers the buffer. True when the device took all of it. */
static bool offer(struct console *con)
{
	if (con->in_off == con->in_len)
		return true;
	/* Set before the offer, so that a device which gets room right after it finds it. */
	__atomic_store_n(&con->input_waits, true, __ATOMIC_SEQ_CST);
	con->in_off +=
		con->input(con->input_dev, con->in_buf + con->in_off, con->in_len - con->in_off);
	if (con->in_off < con->in_len)
		return false;
	__atomic_store_n(&con->input_waits, false, __ATOMIC_SEQ_CST);
	return true;
}

/* Listens to the empty buffer's source, in the way that this one can be listened to. */
static void await_input(struct console *con)
{
	if (stream_in_background(&con->in)) {
		stream_watch(&con->in, con->m->loop, false, 0);
		pthread_mutex_lock(&con->lock);
		if (!con->armed)
			arm(con, RETRY_NS);
		pthread_mutex_unlock(&con->lock);
		return;
	}
	stream_raw(&con->in);
	stream_watch(&con->in, con->m->loop, true, EPOLLIN);
	if (con->in.kind == STREAM_DIRECT)
		kick(con);
}

/* Moves input on: what is left first, then one read at most if there may be something. */
static void pump(struct console *con, bool readable)
{
	if (!con->input || con->in.fd < 0)
		return;
	if (!offer(con) && !con->in.tty)
		return;
	if ((readable || con->in.kind == STREAM_DIRECT) && fill(con) && !offer(con) &&
	    !con->in.tty) {
		stream_watch(&con->in, con->m->loop, false, 0);
		return;
	}
	if (con->in.kind != STREAM_NONE)
		await_input(con);
}

void console_set_input(struct console *con, size_t (*fn)(void *dev, const u8 *buf, size_t len),
		       void *dev)
{
	con->input = fn;
	con->input_dev = dev;
}

void console_input_ready(struct console *con)
{
	if (__atomic_exchange_n(&con->input_waits, false, __ATOMIC_SEQ_CST))
		kick(con);
}

/* Life. */

static void on_input(struct loop_src *src, u32 events)
{
	(void)events;
	pump(container_of(src, struct console, in.src), true);
}

static void on_output(struct loop_src *src, u32 events)
{
	(void)events;
	flush(container_of(src, struct console, out.src));
}

static void work(struct console *con, int fd)
{
	u64 count;
	ssize_t n = read(fd, &count, sizeof(count));

	(void)n;
	pthread_mutex_lock(&con->lock);
	con->armed = false;
	pthread_mutex_unlock(&con->lock);
	flush(con);
	pump(con, false);
}

static void on_soon(struct loop_src *src, u32 events)
{
	(void)events;
	work(container_of(src, struct console, soon), src->fd);
}

static void on_now(struct loop_src *src, u32 events)
{
	(void)events;
	work(container_of(src, struct console, now), src->fd);
}

struct console *console_new(struct machine *m, int in_fd, int out_fd)
{
	struct console *con = calloc(1, sizeof(*con));

	if (!con) {
		log_err("console: %s", strerror(ENOMEM));
		return NULL;
	}
	con->m = m;
	pthread_mutex_init(&con->lock, NULL);
	pthread_cond_init(&con->room, NULL);
	stream_open(&con->in, in_fd, O_RDONLY);
	stream_open(&con->out, out_fd, O_WRONLY);
	con->soon = (struct loop_src){ -1, on_soon, "console timer" };
	con->now = (struct loop_src){ -1, on_now, "console" };
	con->in.src.fn = on_input;
	con->in.src.name = "console input";
	con->out.src.fn = on_output;
	con->out.src.name = "console output";
	con->soon.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	con->now.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (con->soon.fd < 0 || con->now.fd < 0) {
		log_err("console: cannot wait for events: %s", strerror(errno));
		console_free(con);
		return NULL;
	}
	return con;
}

int console_start(struct console *con)
{
	int err;

	if (con->started)
		return 0;
	err = loop_add(con->m->loop, &con->soon, EPOLLIN);
	if (!err) {
		err = loop_add(con->m->loop, &con->now, EPOLLIN);
		if (err)
			loop_del(con->m->loop, &con->soon);
	}
	if (err) {
		log_err("console: cannot wait for events: %s", strerror(-err));
		return err;
	}
	con->started = true;
	stream_raw(&con->in);
	kick(con); /* begins to read, and writes what is there already */
	return 0;
}

static s64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (s64)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The loop no longer runs: writes the rest, waiting for a slow reader but not for ever. */
static void final_flush(struct console *con)
{
	s64 end = now_ms() + FINAL_MS, left = FINAL_MS;

	flush(con);
	while (con->len && left > 0) {
		stream_ready(&con->out, POLLOUT, (int)left);
		flush(con);
		left = end - now_ms();
	}
}

void console_free(struct console *con)
{
	if (!con)
		return;
	if (con->started) {
		loop_del(con->m->loop, &con->soon);
		loop_del(con->m->loop, &con->now);
	}
	con->started = false;
	final_flush(con);
	stream_restore(&con->in);
	stream_close(&con->in, con->m->loop);
	stream_close(&con->out, con->m->loop);
	if (con->soon.fd >= 0)
		close(con->soon.fd);
	if (con->now.fd >= 0)
		close(con->now.fd);
	pthread_cond_destroy(&con->room);
	pthread_mutex_destroy(&con->lock);
	free(con);
}
