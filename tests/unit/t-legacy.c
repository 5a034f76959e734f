// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clock, keyboard controller and power ports. Theory of operation: a bus, and who stopped the
 * machine.
 */
#include <time.h>
#include "hw/legacy.h"
#include "tap.h"

struct bench {
	struct machine m;
	int why, stops;
};

static void on_stop(struct machine *m, enum stop_why why, int detail)
{
	struct bench *b = container_of(m, struct bench, m);

	(void)detail;
	b->why = why;
	b->stops++;
}

static void set_up(struct bench *b)
{
	memset(b, 0, sizeof(*b));
	bus_init(&b->m.pio);
	b->m.stop = on_stop;
}

static void tear_down(struct bench *b)
{
	machine_free_devices(&b->m);
	CHECK_EQ(b->m.pio.nr, 0);
	bus_destroy(&b->m.pio);
}

static u8 in(struct bench *b, u64 port)
{
	u8 value = 0x5a;

	CHECK(bus_read(&b->m.pio, port, &value, 1));
	return value;
}

static void out(struct bench *b, u64 port, u8 value)
{
	CHECK(bus_write(&b->m.pio, port, &value, 1));
}

static void t_power(void)
{
	struct bench b;

	set_up(&b);
	REQUIRE(power_new(&b.m, 0x600) == 0);
	for (unsigned value = 0; value < 256; value++) {
		bool off = (value & 0x20) && ((value >> 2) & 7) == POWER_S5;

		b.stops = 0;
		out(&b, 0x600, (u8)value);
		CHECK_EQ(b.stops, off);
		CHECK(!off || b.why == STOP_POWEROFF);
		b.stops = 0;
		out(&b, 0x601, (u8)value);
		CHECK_EQ(b.stops, 0);
		out(&b, 0x602, (u8)value);
		CHECK_EQ(b.stops, value == POWER_RESET);
		CHECK(value != POWER_RESET || b.why == STOP_RESET);
	}
	CHECK_EQ(in(&b, 0x600), 0);
	CHECK_EQ(in(&b, 0x601), 0);
	CHECK_EQ(power_new(&b.m, 0x602), -EBUSY);
	tear_down(&b);
}

static void t_i8042(void)
{
	struct bench b;

	set_up(&b);
	REQUIRE(i8042_new(&b.m) == 0);
	CHECK_EQ(in(&b, 0x64), 0); /* room for a command, no data */
	CHECK_EQ(in(&b, 0x60), 0);
	for (unsigned value = 0; value < 256; value++) {
		b.stops = 0;
		out(&b, 0x60, (u8)value);
		CHECK_EQ(b.stops, 0);
		out(&b, 0x64, (u8)value);
		CHECK_EQ(b.stops, value == 0xfe);
	}
	CHECK_EQ(b.why, STOP_RESET);
	CHECK_EQ(i8042_new(&b.m), -EBUSY);
	tear_down(&b);
}

static u8 cmos(struct bench *b, u8 index)
{
	out(b, 0x70, index);
	return in(b, 0x71);
}

static void cmos_write(struct bench *b, u8 index, u8 value)
{
	out(b, 0x70, index);
	out(b, 0x71, value);
}

static int bcd(u8 value)
{
	CHECK((value & 0xf) < 10 && value >> 4 < 10);
	return value / 16 * 10 + value % 16;
}

static void t_rtc_time(void)
{
	struct bench b;
	struct tm tm = { 0 };
	time_t before = time(NULL), got;

	set_up(&b);
	REQUIRE(rtc_new(&b.m, 0x70) == 0);
	CHECK_EQ(cmos(&b, 0x0a) & 0x80, 0); /* no update in progress */
	CHECK_EQ(cmos(&b, 0x0b), 0x02);
	CHECK_EQ(cmos(&b, 0x0d), 0x80);
	tm.tm_sec = bcd(cmos(&b, 0));
	tm.tm_min = bcd(cmos(&b, 2));
	tm.tm_hour = bcd(cmos(&b, 4));
	tm.tm_mday = bcd(cmos(&b, 7));
	tm.tm_mon = bcd(cmos(&b, 8)) - 1;
	tm.tm_year = bcd(cmos(&b, 0x32)) * 100 + bcd(cmos(&b, 9)) - 1900;
	got = timegm(&tm);
	CHECK(got >= before && got <= time(NULL));
	CHECK_EQ(cmos(&b, 6), tm.tm_wday + 1);
	CHECK_EQ(cmos(&b, 0x80), cmos(&b, 0)); /* bit 7 of the index is another thing */
	tear_down(&b);
}

/* All fields are of the moment in which the seconds were read. */
static void t_rtc_formats(void)
{
	struct bench b;
	int hour;

	set_up(&b);
	REQUIRE(rtc_new(&b.m, 0x70) == 0);
	cmos_write(&b, 0x0b, 0x06); /* binary, 24 hours */
	cmos(&b, 0);
	hour = cmos(&b, 4);
	CHECK(hour < 24);
	CHECK_EQ(cmos(&b, 9), (int)(time(NULL) / 31556952) + 1970 - 2000);
	cmos_write(&b, 0x0b, 0x04); /* binary, 12 hours */
	CHECK_EQ(cmos(&b, 4), (hour % 12 ? hour % 12 : 12) | (hour >= 12 ? 0x80 : 0));
	cmos_write(&b, 0x0b, 0xfb); /* interrupts cannot be enabled */
	CHECK_EQ(cmos(&b, 0x0b), 0x02);
	tear_down(&b);
}

static void t_rtc_memory(void)
{
	struct bench b;
	u8 hour;
	u32 wide = 0;

	set_up(&b);
	REQUIRE(rtc_new(&b.m, 0x70) == 0);
	for (unsigned i = 0x0e; i < 0x80; i++)
		cmos_write(&b, (u8)i, (u8)(i ^ 0x5a));
	for (unsigned i = 0x0e; i < 0x80; i++)
		CHECK(i == 0x32 || cmos(&b, (u8)i) == (i ^ 0x5a));
	hour = cmos(&b, 4);
	cmos_write(&b, 4, 0x77);
	CHECK_EQ(cmos(&b, 4), hour); /* the time is the host's */
	CHECK(bus_read(&b.m.pio, 0x71, &wide, 4));
	CHECK_EQ(wide >> 8, 0xffffff);
	CHECK_EQ(in(&b, 0x70), 0xff);
	machine_reset_devices(&b.m);
	CHECK_EQ(cmos(&b, 0x40), 0);
	CHECK_EQ(cmos(&b, 0x0b), 0x02);
	CHECK_EQ(rtc_new(&b.m, 0x71), -EBUSY);
	tear_down(&b);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_power), T(t_i8042), T(t_rtc_time), T(t_rtc_formats),
		       T(t_rtc_memory));
}
