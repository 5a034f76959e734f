// SPDX-License-Identifier: GPL-2.0-only
/*
 * The UART as drivers use it: detection, interrupts, input that must not be lost.
 *
 * Theory of operation: registers go through the bus, the user's ends are two pipes, interrupts are
 * the levels that the fake hypervisor saw. The loop is stepped by hand.
 */
#include <fcntl.h>
#include "console.h"
#include "fake/fake-hv.h"
#include "hw/legacy.h"
#include "loop.h"
#include "tap.h"

#define PORT 0x3f8
#define GSI  4

enum { DATA, IER, IIR, LCR, MCR, LSR, MSR, SCR, FCR = IIR };

struct bench {
	struct machine m;
	struct fake_hv hv;
	struct loop loop;
	struct console *con;
	int in, out; /* the user's side */
};

static void on_stop(struct machine *m, enum stop_why why, int detail)
{
	(void)m;
	(void)why;
	(void)detail;
}

static void set_up(struct bench *b)
{
	int in[2], out[2];

	memset(b, 0, sizeof(*b));
	REQUIRE(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC | O_NONBLOCK) == 0);
	b->in = in[1];
	b->out = out[0];
	fake_hv_init(&b->hv);
	bus_init(&b->m.pio);
	REQUIRE(loop_init(&b->loop) == 0);
	b->m.hv = &b->hv.hv;
	b->m.loop = &b->loop;
	b->m.stop = on_stop;
	b->con = console_new(&b->m, in[0], out[1]);
	REQUIRE(b->con);
	close(in[0]);
	close(out[1]);
	REQUIRE(serial_new(&b->m, b->con, PORT, GSI) == 0);
	REQUIRE(console_start(b->con) == 0);
}

static void tear_down(struct bench *b)
{
	machine_free_devices(&b->m);
	console_free(b->con);
	loop_destroy(&b->loop);
	bus_destroy(&b->m.pio);
	CHECK_EQ(b->hv.misuse, 0);
	fake_hv_destroy(&b->hv);
	close(b->in);
	close(b->out);
}

static u8 in(struct bench *b, unsigned reg)
{
	u8 value = 0x5a;

	CHECK(bus_read(&b->m.pio, PORT + reg, &value, 1));
	return value;
}

static void out(struct bench *b, unsigned reg, u8 value)
{
	CHECK(bus_write(&b->m.pio, PORT + reg, &value, 1));
}

static bool line(struct bench *b)
{
	return fake_hv_level(&b->hv, GSI);
}

/* Lets the loop do what there is to do now. */
static void settle(struct bench *b)
{
	while (loop_once(&b->loop, 5) > 0)
		;
}

static void user_types(struct bench *b, const void *bytes, size_t len)
{
	REQUIRE(write(b->in, bytes, len) == (ssize_t)len);
	settle(b);
}

/* What Linux does when it opens the port (serial8250_do_startup, do_set_termios). */
static void driver_open(struct bench *b)
{
	out(b, FCR, 1);
	out(b, FCR, 7);
	out(b, FCR, 0);
	for (unsigned i = 0; i < 2; i++) {
		in(b, LSR);
		in(b, DATA);
		in(b, IIR);
		in(b, MSR);
		out(b, LCR, 3);
		out(b, MCR, 8);
		out(b, IER, 2);
		out(b, IER, 0);
	}
	out(b, IER, 5);
	settle(b); /* input may come in just now */
	out(b, LCR, 0x83);
	out(b, 0, 1);
	out(b, 1, 0);
	out(b, LCR, 3);
	out(b, FCR, 1);
	out(b, FCR, 0x81);
	settle(b);
	out(b, MCR, 0xb);
}

/* An interrupt handler's reading: all that is ready. */
static size_t handler(struct bench *b, u8 *buf, size_t max)
{
	size_t n = 0;

	while ((in(b, LSR) & 1) && n < max)
		buf[n++] = in(b, DATA);
	return n;
}

/* All interrupts that come. */
static size_t receive(struct bench *b, u8 *buf, size_t max)
{
	size_t n = 0, got;

	do {
		got = handler(b, buf + n, max - n);
		n += got;
		settle(b);
	} while (got && n < max);
	return n;
}

static void t_detection(void)
{
	struct bench b;

	set_up(&b);
	out(&b, IER, 0xff);
	CHECK_EQ(in(&b, IER), 0x0f);
	out(&b, IER, 0);
	CHECK_EQ(in(&b, IER), 0);
	out(&b, SCR, 0xa5);
	CHECK_EQ(in(&b, SCR), 0xa5);
	out(&b, MCR, 0x1a); /* loopback, OUT2, RTS */
	CHECK_EQ(in(&b, MSR) & 0xf0, 0x90);
	out(&b, MCR, 0x15); /* loopback, OUT1, DTR */
	CHECK_EQ(in(&b, MSR) & 0xf0, 0x60);
	out(&b, MCR, 0);
	CHECK_EQ(in(&b, MSR), 0xb0);
	CHECK_EQ(in(&b, IIR), 0x01); /* no FIFO yet */
	out(&b, FCR, 1);
	CHECK_EQ(in(&b, IIR), 0xc1);
	CHECK_EQ(in(&b, LSR), 0x60);
	out(&b, LCR, 0x80);
	out(&b, 0, 0x34);
	out(&b, 1, 0x12);
	CHECK_EQ(in(&b, 0), 0x34);
	CHECK_EQ(in(&b, 1), 0x12);
	CHECK_EQ(in(&b, LCR), 0x80);
	out(&b, LCR, 3);
	CHECK_EQ(in(&b, IER), 0);
	CHECK(!line(&b));
	tear_down(&b);
}

static void t_output(void)
{
	struct bench b;
	char buf[64] = "";

	set_up(&b);
	for (const char *s = "hello\r\n"; *s; s++) {
		CHECK(in(&b, LSR) & 0x20);
		out(&b, DATA, (u8)*s);
	}
	settle(&b);
	CHECK_EQ(read(b.out, buf, sizeof(buf)), 7);
	CHECK(!strcmp(buf, "hello\r\n"));
	/* With the divisor latch open, or in loopback, a write is no output. */
	out(&b, LCR, 0x80);
	out(&b, DATA, 'x');
	out(&b, LCR, 3);
	out(&b, MCR, 0x10);
	out(&b, DATA, 'y');
	CHECK_EQ(in(&b, LSR) & 1, 1);
	CHECK_EQ(in(&b, DATA), 'y');
	settle(&b);
	CHECK_EQ(read(b.out, buf, sizeof(buf)), -1);
	tear_down(&b);
}

/* Wide accesses are those of each register in turn; what lies beyond the last reads as ones. */
static void t_widths(void)
{
	struct bench b;
	u32 value;

	set_up(&b);
	out(&b, SCR, 0x77);
	CHECK(bus_read(&b.m.pio, PORT + LSR, &value, 4));
	CHECK_EQ(value, 0xff77b060);
	value = 0x03;
	CHECK(bus_write(&b.m.pio, PORT + LCR, &value, 2));
	CHECK_EQ(in(&b, LCR), 3);
	value = 0xffffff12;
	CHECK(bus_write(&b.m.pio, PORT + SCR, &value, 4));
	CHECK_EQ(in(&b, SCR), 0x12);
	tear_down(&b);
}

static void t_transmit_interrupt(void)
{
	struct bench b;

	set_up(&b);
	out(&b, FCR, 1);
	out(&b, IER, 2); /* enabling tells that the transmitter is empty */
	CHECK(line(&b));
	CHECK_EQ(in(&b, IIR), 0xc2);
	CHECK(!line(&b)); /* told */
	CHECK_EQ(in(&b, IIR), 0xc1);
	out(&b, IER, 0);
	out(&b, IER, 2); /* and tells it again */
	CHECK(line(&b));
	CHECK_EQ(in(&b, IIR), 0xc2);
	out(&b, DATA, 'x');
	CHECK(line(&b));
	out(&b, IER, 0);
	CHECK(!line(&b));
	CHECK_EQ(in(&b, IIR), 0xc1);
	CHECK_EQ(b.hv.rises[GSI], 3);
	tear_down(&b);
}

/*
 * A handler that goes on as long as it is given reasons comes to an end, and the interrupt stays.
 */
static void t_handler_ends(void)
{
	struct bench b;
	u64 rises;
	unsigned passes = 0;

	set_up(&b);
	out(&b, FCR, 1);
	out(&b, IER, 2);
	rises = b.hv.rises[GSI];
	while (in(&b, IIR) != 0xc1 && passes < 1000) {
		passes++;
		for (unsigned i = 0; i < 16; i++) /* another CPU has filled the buffer again */
			out(&b, DATA, 'x');
	}
	CHECK(passes > 64 && passes < 512); /* Linux complains from 512 on */
	CHECK(line(&b));
	CHECK(b.hv.rises[GSI] > rises); /* with an edge, if the pin is an edge-triggered one */
	CHECK_EQ(in(&b, IIR), 0xc2);
	settle(&b);
	tear_down(&b);
}

static void t_receive(void)
{
	struct bench b;
	u8 buf[16];

	set_up(&b);
	driver_open(&b);
	CHECK(!line(&b));
	user_types(&b, "abc", 3);
	CHECK(line(&b));
	CHECK_EQ(in(&b, IIR), 0xc4);
	CHECK_EQ(receive(&b, buf, sizeof(buf)), 3);
	CHECK(!memcmp(buf, "abc", 3));
	CHECK(!line(&b));
	CHECK_EQ(in(&b, IIR), 0xc1);
	CHECK_EQ(in(&b, DATA), 0); /* nothing there */
	out(&b, IER, 0);
	user_types(&b, "d", 1);
	CHECK(!line(&b));
	out(&b, IER, 1);
	settle(&b);
	CHECK(line(&b));
	CHECK_EQ(receive(&b, buf, sizeof(buf)), 1);
	tear_down(&b);
}

/*
 * What was piped in before there was a driver comes out whole, whatever the driver does to the
 * UART.
 */
static void t_early_input(void)
{
	struct bench b;
	u8 buf[32];

	set_up(&b);
	user_types(&b, "echo hi\nexit\n", 13);
	out(&b, IER, 0x0f); /* what Linux does to find out whether there is a UART */
	settle(&b);
	CHECK_EQ(in(&b, IER), 0x0f);
	out(&b, IER, 0);
	out(&b, MCR, 0x1a);
	in(&b, MSR);
	out(&b, MCR, 0);
	out(&b, FCR, 7);
	CHECK_EQ(in(&b, LSR) & 1, 0); /* nobody is there to receive */
	in(&b, DATA);
	out(&b, FCR, 0);
	driver_open(&b);
	CHECK_EQ(receive(&b, buf, sizeof(buf)), 13);
	CHECK(!memcmp(buf, "echo hi\nexit\n", 13));
	/* Closed and opened again. */
	user_types(&b, "more", 4);
	out(&b, IER, 0);
	out(&b, FCR, 7);
	in(&b, DATA);
	driver_open(&b);
	CHECK_EQ(receive(&b, buf, sizeof(buf)), 4);
	CHECK(!memcmp(buf, "more", 4));
	tear_down(&b);
}

/* A driver may throw away what it could have received. */
static void t_flush(void)
{
	struct bench b;
	u8 buf[4];

	set_up(&b);
	driver_open(&b);
	user_types(&b, "old", 3);
	out(&b, FCR, 3);
	CHECK(!line(&b));
	CHECK_EQ(receive(&b, buf, sizeof(buf)), 0);
	user_types(&b, "new", 3);
	CHECK_EQ(receive(&b, buf, sizeof(buf)), 3);
	CHECK(!memcmp(buf, "new", 3));
	tear_down(&b);
}

/* 64 KiB of anything, printk included, come in their order; the FIFO never overruns. */
static void t_paste(void)
{
	enum { TOTAL = 65536 };
	static u8 sent[TOTAL], got[TOTAL];
	size_t n = 0, written = 0, idle = 0;
	struct bench b;

	for (unsigned i = 0; i < TOTAL; i++)
		sent[i] = (u8)(i * 31 + (i >> 8));
	set_up(&b);
	driver_open(&b);
	REQUIRE(fcntl(b.in, F_SETFL, O_NONBLOCK) == 0);
	while (n < TOTAL && idle < 1000) {
		ssize_t w = write(b.in, sent + written, TOTAL - written);
		size_t before = n;

		written += w > 0 ? (size_t)w : 0;
		loop_once(&b.loop, 1);
		CHECK_EQ(in(&b, LSR) & 2, 0);
		if (n % 5 == 0) { /* the kernel prints */
			out(&b, IER, 0);
			out(&b, DATA, '.');
			out(&b, IER, 5);
		}
		if (line(&b) && in(&b, IIR) == 0xc4)
			n += handler(&b, got + n, TOTAL - n);
		idle = n == before ? idle + 1 : 0;
	}
	CHECK_EQ(n, TOTAL);
	CHECK(!memcmp(sent, got, TOTAL));
	tear_down(&b);
}

/* A guest that never enables interrupts and polls gets its input too. */
static void t_polling_guest(void)
{
	struct bench b;
	char got[16] = "";
	unsigned n = 0;

	set_up(&b);
	user_types(&b, "polled", 6);
	for (unsigned i = 0; i < 2000 && n < 6; i++) {
		if (in(&b, LSR) & 1) {
			got[n++] = (char)in(&b, DATA);
			out(&b, DATA, (u8)got[n - 1]); /* echo */
		} else {
			loop_once(&b.loop, 0);
		}
	}
	CHECK(!strcmp(got, "polled"));
	CHECK(!line(&b));
	tear_down(&b);
}

/* RTS down is "wait", but only from a guest that has used it. */
static void t_rts(void)
{
	struct bench b;
	u8 buf[8];

	set_up(&b);
	driver_open(&b);
	out(&b, MCR, 0x9); /* RTS down */
	user_types(&b, "x", 1);
	CHECK(!line(&b));
	out(&b, MCR, 0xb);
	settle(&b);
	CHECK(line(&b));
	CHECK_EQ(receive(&b, buf, sizeof(buf)), 1);
	tear_down(&b);

	set_up(&b);
	out(&b, FCR, 1);
	out(&b, IER, 1);
	user_types(&b, "y", 1);
	CHECK(line(&b));
	tear_down(&b);
}

static void t_overrun_in_loopback(void)
{
	struct bench b;

	set_up(&b);
	out(&b, MCR, 0x10);
	out(&b, IER, 4);
	out(&b, DATA, 'a');
	out(&b, DATA, 'b'); /* without FIFO there is room for one */
	CHECK(line(&b));
	CHECK_EQ(in(&b, IIR), 0x06);
	CHECK_EQ(in(&b, LSR) & 3, 3);
	CHECK_EQ(in(&b, LSR) & 3, 1);
	CHECK(!line(&b));
	CHECK_EQ(in(&b, DATA), 'a');
	tear_down(&b);
}

static void t_reset(void)
{
	struct bench b;
	u8 buf[8];

	set_up(&b);
	driver_open(&b);
	user_types(&b, "kept", 4);
	CHECK(line(&b));
	machine_reset_devices(&b.m);
	CHECK(!line(&b));
	CHECK_EQ(in(&b, IER), 0);
	CHECK_EQ(in(&b, LCR), 0);
	CHECK_EQ(in(&b, MCR), 0);
	driver_open(&b);
	CHECK_EQ(receive(&b, buf, sizeof(buf)), 4);
	tear_down(&b);
}

/* Whatever a guest does to the registers, and after a reset the port works as ever. */
static void t_any_access(void)
{
	static const unsigned widths[] = { 1, 1, 1, 2, 4, 8 };
	struct bench b;
	u64 seed = 7;
	char sink[4096];
	u8 buf[4];

	set_up(&b);
	REQUIRE(fcntl(b.in, F_SETFL, O_NONBLOCK) == 0);
	for (unsigned i = 0; i < 50000; i++) {
		u64 value, port;
		unsigned width;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		value = seed >> 20;
		port = PORT + ((seed >> 60) & 7);
		width = widths[(seed >> 50) % ARRAY_SIZE(widths)];
		if (seed >> 63)
			CHECK(bus_write(&b.m.pio, port, &value, width));
		else
			CHECK(bus_read(&b.m.pio, port, &value, width));
		if (i % 64)
			continue;
		(void)!write(b.in, &seed, 8);
		loop_once(&b.loop, 0);
		(void)!read(b.out, sink, sizeof(sink));
	}
	machine_reset_devices(&b.m);
	driver_open(&b);
	while (receive(&b, (u8 *)sink, sizeof(sink)))
		;
	user_types(&b, "ok", 2);
	CHECK_EQ(receive(&b, buf, sizeof(buf)), 2);
	CHECK(!memcmp(buf, "ok", 2));
	tear_down(&b);
}

static void t_port_taken(void)
{
	struct bench b;

	set_up(&b);
	CHECK_EQ(serial_new(&b.m, b.con, PORT + 1, GSI), -EBUSY);
	tear_down(&b);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_detection), T(t_output), T(t_widths),
		       T(t_transmit_interrupt), T(t_handler_ends), T(t_receive), T(t_early_input),
		       T(t_flush), T(t_paste), T(t_polling_guest), T(t_rts),
		       T(t_overrun_in_loopback), T(t_reset), T(t_any_access), T(t_port_taken));
}
