// SPDX-License-Identifier: GPL-2.0-only
/*
 * The user's end: whatever stdin and stdout are, nothing blocks the loop, nothing is lost, and the
 * terminal comes back as it was.
 *
 * Theory of operation: the console gets pipes, files, devices and pseudo terminals made here; a
 * device of the test takes input as fast as it wants to. Waiting is always for an event, with the
 * harness's time limit behind it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <termios.h>
#include "console.h"
#include "log.h"
#include "loop.h"
#include "machine.h"
#include "tap.h"

struct bench {
	struct machine m;
	struct loop loop;
	struct console *con;
	int why, detail, stops;
	/* The device: takes at most this much of one offer, until room is used up. */
	size_t room, got;
	u8 byte[1 << 20];
};

static void on_stop(struct machine *m, enum stop_why why, int detail)
{
	struct bench *b = container_of(m, struct bench, m);

	b->why = why;
	b->detail = detail;
	b->stops++;
}

static size_t take(void *dev, const u8 *buf, size_t len)
{
	struct bench *b = dev;
	size_t n = MIN(len, b->room);

	n = MIN(n, sizeof(b->byte) - b->got);
	memcpy(b->byte + b->got, buf, n);
	b->got += n;
	b->room -= n;
	return n;
}

static struct bench *set_up(int in_fd, int out_fd)
{
	struct bench *b = calloc(1, sizeof(*b));

	REQUIRE(b && loop_init(&b->loop) == 0);
	signal(SIGPIPE, SIG_IGN);
	b->m.loop = &b->loop;
	b->m.stop = on_stop;
	b->room = SIZE_MAX;
	b->con = console_new(&b->m, in_fd, out_fd);
	REQUIRE(b->con);
	console_set_input(b->con, take, b);
	REQUIRE(console_start(b->con) == 0);
	return b;
}

static void tear_down(struct bench *b)
{
	console_free(b->con);
	loop_destroy(&b->loop);
	free(b);
}

static void settle(struct bench *b)
{
	while (loop_once(&b->loop, 5) > 0)
		;
}

static void put(struct bench *b, const char *text)
{
	console_put(b->con, text, strlen(text));
}

static void make_pipe(int fds[2])
{
	REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
}

/* What comes out of @fd now is @text. */
static bool reads(int fd, const char *text)
{
	char buf[256] = "";
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	return n == (ssize_t)strlen(text) && !memcmp(buf, text, (size_t)n);
}

/* --- output --- */

static void t_pipe_output(void)
{
	struct bench *b;
	int p[2];

	make_pipe(p);
	b = set_up(-1, p[1]);
	put(b, "hello ");
	put(b, "world\n");
	settle(b);
	CHECK(reads(p[0], "hello world\n"));
	CHECK_EQ(fcntl(p[1], F_GETFL) & O_NONBLOCK, 0); /* the caller's open file is as it was */
	put(b, "last");
	tear_down(b); /* writes it */
	CHECK(reads(p[0], "last"));
	close(p[0]);
	close(p[1]);
}

/* Byte by byte, as a UART does it, costs few turns of the loop. */
static void t_few_wakeups(void)
{
	struct bench *b;
	u64 before;
	int p[2];

	make_pipe(p);
	b = set_up(-1, p[1]);
	settle(b);
	before = loop_wakeups(&b->loop);
	for (unsigned i = 0; i < 4000; i++)
		put(b, "x");
	settle(b);
	CHECK(loop_wakeups(&b->loop) - before <= 2);
	tear_down(b);
	close(p[0]);
	close(p[1]);
}

struct printer {
	struct bench *b;
	size_t len;
	bool done; /* atomic */
};

static void *print(void *arg)
{
	struct printer *p = arg;

	for (size_t i = 0; i < p->len; i++)
		console_put(p->b->con, &"0123456789"[i % 10], 1);
	__atomic_store_n(&p->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void printer_start(struct printer *p, struct bench *b, size_t len, pthread_t *t)
{
	*p = (struct printer){ .b = b, .len = len };
	REQUIRE(pthread_create(t, NULL, print, p) == 0);
}

/* A reader that is slow: the guest waits, the loop does not, and all comes in order. */
static void t_back_pressure(void)
{
	enum { TOTAL = 1 << 20 };
	struct bench *b;
	struct printer pr;
	pthread_t t;
	size_t n = 0;
	int p[2];

	make_pipe(p);
	REQUIRE(fcntl(p[0], F_SETFL, O_NONBLOCK) == 0);
	b = set_up(-1, p[1]);
	printer_start(&pr, b, TOTAL, &t);
	while (n < TOTAL) {
		char buf[5000];
		ssize_t got;

		CHECK(loop_once(&b->loop, 1) >= 0);
		got = read(p[0], buf, sizeof(buf));
		for (ssize_t i = 0; i < got; i++)
			CHECK_EQ(buf[i], '0' + (char)(n++ % 10));
	}
	pthread_join(t, NULL);
	tear_down(b);
	close(p[0]);
	close(p[1]);
}

/*
 * A reader that does not read: a printing vCPU waits until the machine stops; ending takes a
 * second.
 */
static void t_stuck_reader(void)
{
	struct bench *b;
	struct printer pr;
	pthread_t t;
	time_t start;
	int p[2];

	make_pipe(p);
	b = set_up(-1, p[1]);
	printer_start(&pr, b, 1 << 20, &t);
	for (int quiet = 0; quiet < 20;) /* until nothing moves any more */
		quiet = loop_once(&b->loop, 10) > 0 ? 0 : quiet + 1;
	CHECK(!__atomic_load_n(&pr.done, __ATOMIC_ACQUIRE));
	console_stop(b->con);
	pthread_join(t, NULL);
	start = time(NULL);
	tear_down(b);
	CHECK(time(NULL) - start <= 3);
	close(p[0]);
	close(p[1]);
}

/* lkvm run | head -1 */
static void t_reader_gone(void)
{
	struct bench *b;
	int p[2];

	make_pipe(p);
	b = set_up(-1, p[1]);
	put(b, "one\n");
	settle(b);
	CHECK(reads(p[0], "one\n"));
	close(p[0]);
	put(b, "two\n");
	settle(b);
	CHECK_EQ(b->why, STOP_SIGNAL);
	CHECK_EQ(b->detail, SIGPIPE);
	for (unsigned i = 0; i < 100; i++) { /* nobody waits */
		char page[4096] = { 0 };

		console_put(b->con, page, sizeof(page));
		loop_once(&b->loop, 0);
	}
	settle(b);
	CHECK_EQ(b->stops, 1);
	tear_down(b);
	close(p[1]);
}

/* Files: appended to where the caller was. */
static void t_file_output(void)
{
	static char page[4096];
	struct bench *b;
	int fd = memfd_create("out", MFD_CLOEXEC);

	REQUIRE(fd >= 0 && write(fd, "before\n", 7) == 7);
	memset(page, 'x', sizeof(page));
	b = set_up(-1, fd);
	put(b, "line\n");
	settle(b);
	for (unsigned i = 0; i < 64; i++) {
		console_put(b->con, page, sizeof(page));
		loop_once(&b->loop, 0);
	}
	tear_down(b);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 7 + 5 + 64 * 4096);
	REQUIRE(lseek(fd, 0, SEEK_SET) == 0 && ftruncate(fd, 12) == 0);
	CHECK(reads(fd, "before\nline\n"));
	close(fd);
}

static int warnings;

static void count_warnings(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
	warnings++;
}

/*
 * Devices and what is closed: the guest prints on, with one word to the user where he loses
 * something.
 */
static void t_odd_outputs(void)
{
	static const struct {
		const char *path;
		int warns;
	} cases[] = { { "/dev/null", 0 }, { "/dev/zero", 0 }, { "/dev/full", 1 }, { NULL, 0 } };
	char page[4096];

	memset(page, 'x', sizeof(page));
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd = cases[i].path ? open(cases[i].path, O_WRONLY | O_CLOEXEC) : -1;
		struct bench *b = set_up(-1, fd);

		warnings = 0;
		log_set_sink(count_warnings);
		for (unsigned k = 0; k < 64; k++) {
			console_put(b->con, page, sizeof(page));
			loop_once(&b->loop, 0);
		}
		settle(b);
		tear_down(b);
		log_set_sink(NULL);
		CHECK_EQ(warnings, cases[i].warns);
		if (fd >= 0)
			close(fd);
	}
}

/* A socket cannot be opened anew; it is not blocked on either. */
static void t_socket(void)
{
	struct bench *b;
	struct printer pr;
	pthread_t t;
	size_t n = 0;
	int s[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0);
	b = set_up(s[1], s[1]); /* both ends on one fd, as from inetd */
	REQUIRE(write(s[0], "typed", 5) == 5);
	settle(b);
	CHECK_EQ(b->got, 5);
	REQUIRE(fcntl(s[0], F_SETFL, O_NONBLOCK) == 0);
	printer_start(&pr, b, 1 << 20, &t);
	while (n < 1 << 20) {
		char buf[65536];
		ssize_t got;

		loop_once(&b->loop, 1);
		got = read(s[0], buf, sizeof(buf));
		n += got > 0 ? (size_t)got : 0;
	}
	pthread_join(t, NULL);
	CHECK_EQ(n, 1 << 20);
	tear_down(b);
	close(s[0]);
	close(s[1]);
}

static void t_panic(void)
{
	static const char text[] = "[ 1.0] Kernel Kernel panic - not syncing: VFS\n";
	struct bench *b = set_up(-1, -1);

	put(b, "Kernel panic - not synching, kernel panic - not syncing, Kernel panic");
	put(b, " - not syncinG\n");
	CHECK(!console_saw_panic(b->con));
	for (const char *s = text; *s; s++)
		console_put(b->con, s, 1);
	CHECK(console_saw_panic(b->con));
	console_restart(b->con);
	CHECK(!console_saw_panic(b->con));
	settle(b);
	tear_down(b);
}

/* --- input --- */

static void t_pipe_input(void)
{
	struct bench *b;
	u64 before;
	int p[2];

	make_pipe(p);
	b = set_up(p[0], -1);
	REQUIRE(write(p[1], "a\1x\1a\n", 6) == 6); /* no terminal: nothing is special */
	settle(b);
	CHECK_EQ(b->got, 6);
	CHECK(!memcmp(b->byte, "a\1x\1a\n", 6));
	CHECK_EQ(b->stops, 0);
	CHECK_EQ(fcntl(p[0], F_GETFL) & O_NONBLOCK, 0);
	REQUIRE(write(p[1], "end", 3) == 3);
	close(p[1]);
	settle(b);
	CHECK_EQ(b->got, 9);
	before = loop_wakeups(&b->loop);
	for (unsigned i = 0; i < 20; i++) /* the end of input is no reason to spin */
		loop_once(&b->loop, 5);
	CHECK_EQ(loop_wakeups(&b->loop), before);
	tear_down(b);
	close(p[0]);
}

/* A device with little room: nothing is lost, nothing spins, also when the writer has gone. */
static void t_slow_device(void)
{
	struct bench *b;
	u64 before;
	char page[4096];
	int p[2];

	memset(page, 'p', sizeof(page));
	make_pipe(p);
	b = set_up(p[0], -1);
	b->room = 10;
	for (unsigned i = 0; i < 10; i++)
		REQUIRE(write(p[1], page, sizeof(page)) == sizeof(page));
	close(p[1]);
	settle(b);
	CHECK_EQ(b->got, 10);
	before = loop_wakeups(&b->loop);
	for (unsigned i = 0; i < 20; i++)
		loop_once(&b->loop, 5);
	CHECK_EQ(loop_wakeups(&b->loop), before);
	for (unsigned i = 0; i < 10000 && b->got < 40960; i++) {
		b->room = 64;
		console_input_ready(b->con);
		settle(b);
	}
	CHECK_EQ(b->got, 40960);
	before = loop_wakeups(&b->loop);
	console_input_ready(b->con); /* nothing waits: free of charge */
	CHECK_EQ(loop_once(&b->loop, 5), 0);
	tear_down(b);
	close(p[0]);
}

static void t_file_input(void)
{
	struct bench *b;
	char page[4096];
	int fd = memfd_create("in", MFD_CLOEXEC);

	memset(page, 'f', sizeof(page));
	REQUIRE(fd >= 0);
	for (unsigned i = 0; i < 40; i++)
		REQUIRE(write(fd, page, sizeof(page)) == sizeof(page));
	REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
	b = set_up(fd, -1);
	settle(b);
	CHECK_EQ(b->got, 40 * 4096);
	CHECK_EQ(loop_once(&b->loop, 5), 0);
	tear_down(b);

	REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
	b = set_up(fd, -1);
	b->room = 5;
	settle(b);
	CHECK_EQ(b->got, 5);
	b->room = SIZE_MAX;
	console_input_ready(b->con);
	settle(b);
	CHECK_EQ(b->got, 40 * 4096);
	tear_down(b);
	close(fd);
}

static void t_no_input(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), fds[] = { null, -1, 999 };

	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++) {
		struct bench *b = set_up(fds[i], -1);
		u64 before;

		settle(b);
		before = loop_wakeups(&b->loop);
		for (unsigned k = 0; k < 20; k++)
			loop_once(&b->loop, 5);
		CHECK_EQ(loop_wakeups(&b->loop), before);
		CHECK_EQ(b->got, 0);
		tear_down(b);
	}
	close(null);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_pipe_output), T(t_few_wakeups), T(t_back_pressure),
		       T(t_stuck_reader), T(t_reader_gone), T(t_file_output), T(t_odd_outputs),
		       T(t_socket), T(t_panic), T(t_pipe_input), T(t_slow_device), T(t_file_input),
		       T(t_no_input));
}
