// SPDX-License-Identifier: GPL-2.0-only
/*
 * The console at a terminal: raw while the VM runs and as before afterwards, Ctrl-a, and job
 * control.
 *
 * Theory of operation: a pseudo terminal, whose user's side the test holds. For job control a child
 * makes it the terminal of its session and a grandchild is the job in front or behind.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include "console.h"
#include "loop.h"
#include "machine.h"
#include "tap.h"

struct bench {
	struct machine m;
	struct loop loop;
	struct console *con;
	int user, tty;
	struct termios before;
	int why, stops;
	size_t got;
	u8 byte[256];
};

static void on_stop(struct machine *m, enum stop_why why, int detail)
{
	struct bench *b = container_of(m, struct bench, m);

	(void)detail;
	b->why = why;
	b->stops++;
}

static size_t take(void *dev, const u8 *buf, size_t len)
{
	struct bench *b = dev;
	size_t n = MIN(len, sizeof(b->byte) - b->got);

	memcpy(b->byte + b->got, buf, n);
	b->got += n;
	return n;
}

static void terminal(struct bench *b)
{
	memset(b, 0, sizeof(*b));
	b->user = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (b->user < 0 || grantpt(b->user) < 0 || unlockpt(b->user) < 0)
		SKIP("no pseudo terminal");
	b->tty = open(ptsname(b->user), O_RDWR | O_NOCTTY | O_CLOEXEC);
	REQUIRE(b->tty >= 0 && tcgetattr(b->tty, &b->before) == 0);
}

static void start(struct bench *b)
{
	REQUIRE(loop_init(&b->loop) == 0);
	b->m.loop = &b->loop;
	b->m.stop = on_stop;
	b->con = console_new(&b->m, b->tty, b->tty);
	REQUIRE(b->con);
	console_set_input(b->con, take, b);
	REQUIRE(console_start(b->con) == 0);
}

static void end(struct bench *b)
{
	console_free(b->con);
	loop_destroy(&b->loop);
	close(b->tty);
	close(b->user);
}

static void settle(struct bench *b)
{
	while (loop_once(&b->loop, 5) > 0)
		;
}

static bool is_as_before(const struct bench *b)
{
	struct termios now;

	return tcgetattr(b->tty, &now) == 0 && !memcmp(&now, &b->before, sizeof(now));
}

static bool is_raw(const struct bench *b)
{
	struct termios now;

	return tcgetattr(b->tty, &now) == 0 && !(now.c_lflag & (ECHO | ICANON | ISIG)) &&
	       !(now.c_iflag & (ICRNL | IXON));
}

/* Keys come to the terminal a little later: the loop wakes up for them. */
static void types(struct bench *b, const char *keys, size_t len)
{
	u64 before;

	settle(b);
	before = loop_wakeups(&b->loop);
	REQUIRE(write(b->user, keys, len) == (ssize_t)len);
	for (unsigned i = 0; i < 200 && loop_wakeups(&b->loop) == before; i++)
		loop_once(&b->loop, 50);
	settle(b);
}

static void t_modes(void)
{
	struct bench b;
	char buf[64];

	terminal(&b);
	start(&b);
	CHECK(is_raw(&b));
	CHECK_EQ(fcntl(b.tty, F_GETFL) & O_NONBLOCK, 0);
	types(&b, "\r\3\32\23", 4); /* Enter, Ctrl-C, Ctrl-Z, Ctrl-S: all the guest's */
	CHECK_EQ(b.got, 4);
	CHECK(!memcmp(b.byte, "\r\3\32\23", 4));
	console_put(b.con, "out", 3);
	settle(&b);
	CHECK_EQ(read(b.user, buf, sizeof(buf)), 3); /* and no echo of the keys */
	console_free(b.con);
	CHECK(is_as_before(&b));
	b.con = NULL;
	end(&b);
}

/* Freed without having run: the terminal was never touched. */
static void t_never_started(void)
{
	struct bench b;

	terminal(&b);
	b.m.loop = &b.loop;
	REQUIRE(loop_init(&b.loop) == 0);
	b.con = console_new(&b.m, b.tty, b.tty);
	CHECK(b.con && is_as_before(&b));
	console_free(b.con);
	CHECK(is_as_before(&b));
	b.con = NULL;
	end(&b);
}

static void t_ctrl_a(void)
{
	static const struct {
		const char *keys, *got;
		int stops;
	} cases[] = {
		{ "plain", "plain", 0 },       { "\1a", "\1", 0 },
		{ "\1\1", "\1", 0 },           { "\1z", "\1z", 0 },
		{ "\1\1x", "\1x", 0 },         { "a\1ab\1zc", "a\1b\1zc", 0 },
		{ "\1a\1a\1\1", "\1\1\1", 0 }, { "go\1xmore", "go", 1 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		for (int at_once = 0; at_once < 2; at_once++) {
			struct bench b;
			size_t len = strlen(cases[i].keys);

			terminal(&b);
			start(&b);
			if (at_once)
				types(&b, cases[i].keys, len);
			for (size_t k = 0; k < len && !at_once && !b.stops; k++)
				types(&b, cases[i].keys + k, 1);
			CHECK_EQ(b.got, strlen(cases[i].got));
			CHECK(!memcmp(b.byte, cases[i].got, b.got));
			CHECK_EQ(b.stops, cases[i].stops);
			CHECK(!b.stops || b.why == STOP_USER);
			end(&b);
			CHECK_EQ(b.got, strlen(cases[i].got));
		}
	}
}

/* Stopped, and in front again: a shell has used the terminal meanwhile. */
static void t_modes_changed(void)
{
	struct bench b;

	terminal(&b);
	start(&b);
	settle(&b);
	REQUIRE(tcsetattr(b.tty, TCSANOW, &b.before) == 0);
	console_continued(b.con);
	settle(&b);
	CHECK(is_raw(&b));
	types(&b, "\r", 1);
	CHECK_EQ(b.got, 1);
	console_free(b.con);
	CHECK(is_as_before(&b));
	b.con = NULL;
	end(&b);
}

/* The user's window is closed. */
static void t_hang_up(void)
{
	struct bench b;
	u64 before;

	terminal(&b);
	start(&b);
	settle(&b);
	close(b.user);
	console_put(b.con, "anybody?", 8);
	settle(&b);
	before = loop_wakeups(&b.loop);
	for (unsigned i = 0; i < 20; i++)
		loop_once(&b.loop, 5);
	CHECK_EQ(loop_wakeups(&b.loop), before);
	CHECK_EQ(b.stops, 0); /* SIGHUP says it */
	b.user = dup(b.tty);
	end(&b);
}

/* The job: says by its exit status what it found. It is in front if its group is the terminal's. */
static int job(struct bench *b, int go, int ready)
{
	char byte;

	start(b);
	settle(b);
	if (!is_as_before(b))
		return 1; /* touched from the background */
	if (write(ready, "r", 1) != 1 || read(go, &byte, 1) != 1)
		return 2;
	while (!is_raw(b)) /* it notices that it is in front now */
		loop_once(&b->loop, 50);
	console_free(b->con);
	return is_as_before(b) ? 0 : 3;
}

/*
 * A shell, of which the terminal is: starts the job in the background, then brings it to the front.
 */
static int shell(struct bench *b)
{
	int go[2], ready[2], status;
	char byte;
	pid_t pid;

	if (setsid() < 0 || ioctl(b->tty, TIOCSCTTY, 0) < 0 || pipe(go) < 0 || pipe(ready) < 0)
		return 10;
	signal(SIGTTOU, SIG_IGN);
	pid = fork();
	if (pid == 0) {
		signal(SIGTTOU, SIG_DFL);
		setpgid(0, 0);
		_exit(job(b, go[0], ready[1]));
	}
	setpgid(pid, pid);
	if (read(ready[0], &byte, 1) != 1)
		return 11; /* it was stopped or died */
	if (write(b->user, "for the shell\n", 14) != 14 || tcsetpgrp(b->tty, pid) < 0 ||
	    tcflush(b->tty, TCIFLUSH) < 0 || write(go[1], "g", 1) != 1)
		return 12;
	if (waitpid(pid, &status, WUNTRACED) < 0 || !WIFEXITED(status))
		return 13;
	return WEXITSTATUS(status);
}

static void t_background(void)
{
	struct bench b;
	int status;
	pid_t pid;

	terminal(&b);
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0)
		_exit(shell(&b));
	REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	close(b.tty);
	close(b.user);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_modes), T(t_never_started), T(t_ctrl_a), T(t_modes_changed),
		       T(t_hang_up), T(t_background));
}
