// SPDX-License-Identifier: GPL-2.0-only
/*
 * MC146818 clock and CMOS memory: the host's time in UTC.
 *
 * Theory of operation: an index port selects one of 128 bytes, a data port reads or writes it. The
 * time is sampled from the host whenever a guest begins to read it, which it does with register A
 * (is an update in progress? never) or with the seconds; the other fields then belong to that
 * sample, so that no guest sees the minute of one and the second of another. Writes to the time
 * are ignored, the format bits of register B are kept and honoured, other bytes are memory. No
 * interrupts. One lock, for vCPUs may race.
 */
#include <time.h>
#include "hw/legacy.h"

enum {
	RTC_SECONDS,
	RTC_SECONDS_ALARM,
	RTC_MINUTES,
	RTC_MINUTES_ALARM,
	RTC_HOURS,
	RTC_HOURS_ALARM,
	RTC_WEEKDAY,
	RTC_DAY,
	RTC_MONTH,
	RTC_YEAR,
	RTC_A,
	RTC_B,
	RTC_C,
	RTC_D,
	RTC_CENTURY = 0x32,
	RTC_SIZE = 0x80,
};

#define A_DIVIDER   0x26 /* 32768 Hz, 1024 Hz periodic: what PCs have */
#define B_24H       0x02
#define B_BINARY    0x04
#define B_FORMAT    (B_24H | B_BINARY)
#define D_VALID_RAM 0x80
#define HOUR_PM     0x80

struct rtc {
	struct device dev;
	struct machine *m;
	u64 port;
	pthread_mutex_t lock;
	u8 index;
	u8 cmos[RTC_SIZE];
	struct tm now;
	time_t sampled; /* when now was */
};

static void sample(struct rtc *rtc)
{
	rtc->sampled = time(NULL);
	gmtime_r(&rtc->sampled, &rtc->now);
}

static u8 encode(const struct rtc *rtc, int value)
{
	return (u8)((rtc->cmos[RTC_B] & B_BINARY) ? value : value / 10 * 16 + value % 10);
}

static u8 encode_hour(const struct rtc *rtc, int hour)
{
	if (rtc->cmos[RTC_B] & B_24H)
		return encode(rtc, hour);
	return encode(rtc, hour % 12 ? hour % 12 : 12) | (hour >= 12 ? HOUR_PM : 0);
}

static u8 reg_read(struct rtc *rtc)
{
	if (rtc->index == RTC_A || rtc->index == RTC_SECONDS || time(NULL) > rtc->sampled + 1)
		sample(rtc);
	switch (rtc->index) {
	case RTC_SECONDS: return encode(rtc, rtc->now.tm_sec);
	case RTC_MINUTES: return encode(rtc, rtc->now.tm_min);
	case RTC_HOURS: return encode_hour(rtc, rtc->now.tm_hour);
	case RTC_WEEKDAY: return encode(rtc, rtc->now.tm_wday + 1);
	case RTC_DAY: return encode(rtc, rtc->now.tm_mday);
	case RTC_MONTH: return encode(rtc, rtc->now.tm_mon + 1);
	case RTC_YEAR: return encode(rtc, rtc->now.tm_year % 100);
	case RTC_CENTURY: return encode(rtc, (rtc->now.tm_year + 1900) / 100);
	case RTC_A: return A_DIVIDER;
	case RTC_C: return 0;
	case RTC_D: return D_VALID_RAM;
	default: return rtc->cmos[rtc->index];
	}
}

static void rtc_read(void *dev, u64 off, void *data, unsigned len)
{
	struct rtc *rtc = dev;

	memset(data, 0xff, len);
	if (off != 1)
		return; /* the index cannot be read on a PC */
	pthread_mutex_lock(&rtc->lock);
	*(u8 *)data = reg_read(rtc);
	pthread_mutex_unlock(&rtc->lock);
}

static void rtc_write(void *dev, u64 off, const void *data, unsigned len)
{
	struct rtc *rtc = dev;
	u8 value = *(const u8 *)data;

	(void)len;
	pthread_mutex_lock(&rtc->lock);
	if (off == 0)
		rtc->index = value & (RTC_SIZE - 1); /* bit 7 masks NMIs */
	else if (rtc->index == RTC_B)
		rtc->cmos[RTC_B] = value & B_FORMAT;
	else
		rtc->cmos[rtc->index] = value;
	pthread_mutex_unlock(&rtc->lock);
}

static const struct bus_ops rtc_ops = { .read = rtc_read, .write = rtc_write };

static void rtc_reset(struct device *dev)
{
	struct rtc *rtc = container_of(dev, struct rtc, dev);

	memset(rtc->cmos, 0, sizeof(rtc->cmos));
	rtc->cmos[RTC_B] = B_24H;
	rtc->index = 0;
}

static void rtc_free(struct device *dev)
{
	struct rtc *rtc = container_of(dev, struct rtc, dev);

	bus_del(&rtc->m->pio, rtc->port);
	pthread_mutex_destroy(&rtc->lock);
	free(rtc);
}

int rtc_new(struct machine *m, u64 port)
{
	struct rtc *rtc = calloc(1, sizeof(*rtc));
	int err;

	if (!rtc)
		return -ENOMEM;
	rtc->dev.type = "rtc";
	rtc->dev.reset = rtc_reset;
	rtc->dev.free = rtc_free;
	rtc->m = m;
	rtc->port = port;
	pthread_mutex_init(&rtc->lock, NULL);
	rtc_reset(&rtc->dev);
	err = bus_add(&m->pio, port, 2, &rtc_ops, rtc);
	if (err) {
		pthread_mutex_destroy(&rtc->lock);
		free(rtc);
		return err;
	}
	machine_add(m, &rtc->dev);
	return 0;
}
