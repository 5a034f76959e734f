// SPDX-License-Identifier: GPL-2.0-only
/*
 * The MMIO transport's own: registers, doorbells, the interrupt line, slots (traps C8, C9, C13,
 * C14). What it shares with others is in t-virtio.c, t-virtio-queue.c and t-virtio-runs.c.
 */
#include "../fake/echo.h"
#include "../fake/fake-driver.h"
#include "../tap.h"
#include "log.h"
#include "virtio/mmio.h"

#define NR_VQS 2
#define SIZE   8

struct bench {
	struct fake_machine fm;
	struct fake_driver drv;
	struct echo *echo;
	u64 out, in;
	u32 gsi;
};

static void ignore_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void bench_open(struct bench *b, const struct fake_driver_opts *opts)
{
	fake_transport = VIRTIO_ON_MMIO;
	fake_machine_init(&b->fm, NULL);
	REQUIRE(echo_new(&b->fm.m, NR_VQS, SIZE, &b->echo) == 0);
	fake_driver_open(&b->drv, &b->fm, ECHO_ID, opts);
	b->out = fake_alloc(&b->drv, 64, 64);
	b->in = fake_alloc(&b->drv, 64, 64);
	b->gsi = FAKE_SLOT_GSI + b->drv.slot;
}

static int request(struct bench *b, unsigned q)
{
	const struct fake_seg segs[] = { { b->out, 64 }, { b->in, 64, true } };

	fake_vq_irq_on(&b->drv.vq[q]);
	return fake_vq_request(&b->drv.vq[q], segs, 2, NULL);
}

static void check_works(struct bench *b)
{
	for (unsigned q = 0; q < NR_VQS; q++) {
		fake_isr_queue(&b->drv);
		CHECK_EQ(request(b, q), 0);
		CHECK(fake_hv_level(&b->fm.hv, b->gsi));
		CHECK(fake_isr_queue(&b->drv));
		CHECK(!fake_hv_level(&b->fm.hv, b->gsi));
	}
}

static u32 get(struct bench *b, unsigned off)
{
	return (u32)fake_guest_read(&b->fm, false, b->drv.common + off, 4);
}

static void put(struct bench *b, unsigned off, u32 value)
{
	fake_guest_write(&b->fm, false, b->drv.common + off, value, 4);
}

static void t_identity(void)
{
	struct bench b;

	bench_open(&b, NULL);
	CHECK_EQ(get(&b, 0x00), 0x74726976);
	CHECK_EQ(get(&b, 0x04), 2);
	CHECK_EQ(get(&b, 0x08), ECHO_ID);
	CHECK_EQ(b.drv.nr_vqs, NR_VQS);
	CHECK_EQ(b.fm.hv.nr_bells, NR_VQS);
	CHECK_EQ(b.fm.hv.nr_irqfds, 0);
	/* No shared memory region, whichever is asked for. */
	for (u32 sel = 0; sel < 3; sel++) {
		put(&b, 0xac, sel);
		for (unsigned off = 0xb0; off < 0xc0; off += 4)
			CHECK_EQ(get(&b, off), UINT32_MAX);
	}
	/* What is only to be written says nothing. */
	CHECK_EQ(get(&b, 0x14) | get(&b, 0x20) | get(&b, 0x24) | get(&b, 0x30), 0);
	CHECK_EQ(get(&b, 0x38) | get(&b, 0x50) | get(&b, 0x64) | get(&b, 0x80), 0);
	check_works(&b);
	fake_machine_free(&b.fm);
}

static void t_queue_sel_out_of_range(void)
{
	static const u32 sel[] = { NR_VQS, VIRTIO_MAX_VQS, 0x10000, 0x80000000, UINT32_MAX };
	struct bench b;

	bench_open(&b, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(sel); i++) {
		put(&b, 0x30, sel[i]);
		CHECK_EQ(get(&b, 0x34), 0);
		CHECK_EQ(get(&b, 0x44), 0);
		for (unsigned off = 0x38; off < 0xc4; off += 4)
			if (off != 0x50 && off != 0x64 && off != 0x70)
				put(&b, off, 1);
		CHECK_EQ(get(&b, 0x44), 0);
		put(&b, 0x50, sel[i]);
	}
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Control registers take aligned accesses of 32 bits only; others read 0 and change nothing. */
static void t_odd_widths(void)
{
	struct bench b;

	bench_open(&b, NULL);
	for (unsigned len = 1; len <= 8; len *= 2) {
		for (unsigned off = 0; off < 0x100; off++) {
			if (len == 4 && off % 4 == 0)
				continue;
			CHECK_EQ(fake_guest_read(&b.fm, false, b.drv.common + off, len), 0);
			fake_guest_write(&b.fm, false, b.drv.common + off, 0, len);
		}
	}
	CHECK_EQ(get(&b, 0x70), 0xf);
	check_works(&b);
	/* Across the end of the control registers, and of the slot. */
	fake_guest_read(&b.fm, false, b.drv.common + 0xfe, 4);
	fake_guest_write(&b.fm, false, b.drv.common + VIRTIO_MMIO_SIZE - 1, UINT64_MAX, 8);
	CHECK_EQ(fake_guest_read(&b.fm, false, b.drv.common + VIRTIO_MMIO_SIZE - 1, 8), 0);
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Every register, values of all kinds: nothing breaks, a reset mends. */
static void t_scribble(void)
{
	static const u32 values[] = { 0, 1, UINT32_MAX, 0x80008000, 0x00010001 };
	struct bench b;

	log_set_sink(ignore_log);
	bench_open(&b, NULL);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned off = 0; off < 0x200; off += 4) {
			put(&b, off, values[(off / 4 + round) % ARRAY_SIZE(values)]);
			get(&b, off);
		}
		fake_machine_run(&b.fm);
	}
	REQUIRE(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

static void t_running_queue_is_safe(void)
{
	struct bench b;

	bench_open(&b, NULL);
	for (unsigned q = 0; q < NR_VQS; q++) {
		put(&b, 0x30, q);
		put(&b, 0x38, 2);
		for (unsigned off = 0x80; off < 0xa8; off += 4)
			put(&b, off, 0xdead0000);
		put(&b, 0x44, 1);
		put(&b, 0x44, 2);
		CHECK_EQ(get(&b, 0x44), 1);
	}
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* 0 to QueueReady stops the queue, with RING_RESET or without. */
static void t_queue_ready_0(void)
{
	const struct fake_driver_opts without = { .features = { BIT(3) } };
	struct bench b;

	for (int i = 0; i < 2; i++) {
		bench_open(&b, i ? &without : NULL);
		put(&b, 0x30, 1);
		put(&b, 0x44, 0);
		CHECK_EQ(get(&b, 0x44), 0);
		CHECK_EQ(b.fm.hv.nr_bells, NR_VQS - 1);
		CHECK_EQ(request(&b, 1), -EAGAIN);
		CHECK_EQ(request(&b, 0), 0);
		fake_driver_setup_vq(&b.drv, 1);
		check_works(&b);
		fake_machine_free(&b.fm);
	}
}

/* The value names the queue: each has its doorbell, other writes reach the device itself. */
static void t_doorbells(void)
{
	struct bench b;
	struct fake_seg segs[2];
	const struct virtq *vq;

	bench_open(&b, NULL);
	segs[0] = (struct fake_seg){ b.out, 64 };
	segs[1] = (struct fake_seg){ b.in, 64, true };
	fake_machine_run(&b.fm); /* the kicks of the start */
	for (u32 q = 0; q < NR_VQS; q++) {
		vq = &b.echo->dev.vq[q];
		for (int slow = 0; slow < 2; slow++) {
			u64 exits = vq->nr_doorbells, kicks = b.echo->dev.vq[!q].nr_kicks;

			REQUIRE(fake_vq_add(&b.drv.vq[q], segs, 2, &b) >= 0);
			fake_vq_publish(&b.drv.vq[q]);
			if (slow)
				bus_write(&b.fm.m.mmio, b.drv.common + 0x50, &q, 4);
			else
				CHECK(fake_guest_write(&b.fm, false, b.drv.common + 0x50, q, 4));
			fake_machine_run(&b.fm);
			CHECK(fake_vq_get(&b.drv.vq[q], NULL) == &b);
			CHECK_EQ(vq->nr_doorbells - exits, slow);
			CHECK_EQ(b.echo->dev.vq[!q].nr_kicks, kicks);
		}
	}
	CHECK(!fake_guest_write(&b.fm, false, b.drv.common + 0x50, NR_VQS, 4));
	CHECK(!fake_guest_write(&b.fm, false, b.drv.common + 0x50, 0x10000, 4));
	CHECK(!fake_guest_write(&b.fm, false, b.drv.common + 0x50, 0, 2));
	REQUIRE(fake_driver_reset(&b.drv));
	CHECK(!fake_guest_write(&b.fm, false, b.drv.common + 0x50, 0, 4)); /* no queue is ready */
	fake_machine_run(&b.fm);
	REQUIRE(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* --- interrupts --- */

static void t_line(void)
{
	struct bench b;
	u64 rises;

	bench_open(&b, NULL);
	CHECK(!fake_hv_level(&b.fm.hv, b.gsi));
	CHECK_EQ(request(&b, 0), 0);
	CHECK(fake_hv_level(&b.fm.hv, b.gsi));
	pthread_mutex_lock(&b.echo->dev.lock);
	virtio_config_changed(&b.echo->dev);
	pthread_mutex_unlock(&b.echo->dev.lock);
	CHECK_EQ(get(&b, 0x60), VIRTIO_ISR_QUEUE | VIRTIO_ISR_CONFIG);
	CHECK_EQ(get(&b, 0x60), VIRTIO_ISR_QUEUE | VIRTIO_ISR_CONFIG); /* reading clears nothing */
	put(&b, 0x64, VIRTIO_ISR_QUEUE);
	CHECK(fake_hv_level(&b.fm.hv, b.gsi));
	CHECK_EQ(get(&b, 0x60), VIRTIO_ISR_CONFIG);
	put(&b, 0x60, 0xff); /* read-only */
	CHECK_EQ(get(&b, 0x60), VIRTIO_ISR_CONFIG);
	put(&b, 0x64, 0xfffffffc); /* bits of no meaning */
	CHECK(fake_hv_level(&b.fm.hv, b.gsi));
	put(&b, 0x64, VIRTIO_ISR_CONFIG);
	CHECK(!fake_hv_level(&b.fm.hv, b.gsi));
	CHECK_EQ(get(&b, 0x60), 0);
	rises = b.fm.hv.rises[b.gsi];
	check_works(&b);
	CHECK_EQ(b.fm.hv.rises[b.gsi] - rises, NR_VQS);
	fake_machine_free(&b.fm);
}

/* A reset with bits set drops the line, and no callback raises it again. */
static void t_line_reset(void)
{
	struct bench b;

	bench_open(&b, NULL);
	CHECK_EQ(request(&b, 0), 0);
	REQUIRE(fake_driver_reset(&b.drv));
	CHECK(!fake_hv_level(&b.fm.hv, b.gsi));
	CHECK_EQ(get(&b, 0x60), 0);
	REQUIRE(fake_driver_restart(&b.drv));
	pthread_mutex_lock(&b.echo->dev.lock);
	virtq_signal(&b.echo->dev.vq[0]); /* not yet seen by the loop */
	pthread_mutex_unlock(&b.echo->dev.lock);
	REQUIRE(fake_driver_reset(&b.drv));
	fake_machine_run(&b.fm);
	CHECK(!fake_hv_level(&b.fm.hv, b.gsi));
	REQUIRE(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* --- slots --- */

/* Each device has a pin of its own; one too many is refused; the register shows who is there. */
static void t_slots(void)
{
	struct bench b;
	struct fake_driver drv;
	struct echo *e;

	log_set_sink(ignore_log);
	bench_open(&b, NULL);
	CHECK_EQ(fake_guest_read(&b.fm, true, FAKE_PRESENT, 1), 1);
	for (unsigned i = 1; i < VIRTIO_MMIO_SLOTS; i++) {
		REQUIRE(echo_new(&b.fm.m, 1, SIZE, &e) == 0);
		CHECK_EQ(fake_guest_read(&b.fm, true, FAKE_PRESENT, 1), (2u << i) - 1);
	}
	CHECK_EQ(echo_new(&b.fm.m, 1, SIZE, &e), -ENOSPC);
	fake_guest_write(&b.fm, true, FAKE_PRESENT, 0, 1);
	CHECK_EQ(fake_guest_read(&b.fm, true, FAKE_PRESENT, 1), 0xff);
	CHECK_EQ(fake_guest_read(&b.fm, true, FAKE_PRESENT, 4), 0xff);
	drv = b.drv;
	drv.slot = 5;
	drv.nr_vqs = 1;
	memset(drv.vq, 0, sizeof(drv.vq));
	fake_driver_find_caps(&drv);
	REQUIRE(fake_driver_restart(&drv));
	CHECK_EQ(fake_vq_request(&drv.vq[0], (struct fake_seg[]){ { b.out, 1 } }, 1, NULL), 0);
	for (u32 gsi = 0; gsi < FAKE_HV_PINS; gsi++)
		CHECK_EQ(fake_hv_level(&b.fm.hv, gsi), gsi == FAKE_SLOT_GSI + 5);
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* A machine without slots, and one whose slots are something else's. */
static void t_attach_fails(void)
{
	struct fake_machine fm;
	struct mmio_slots *slots;
	struct echo *e;

	log_set_sink(ignore_log);
	fake_transport = VIRTIO_ON_MMIO;
	fake_machine_init(&fm, NULL);
	slots = fm.m.mmio_slots;
	fm.m.mmio_slots = NULL;
	CHECK_EQ(echo_new(&fm.m, 1, SIZE, &e), -ENODEV);
	fm.m.mmio_slots = slots;
	REQUIRE(echo_new(&fm.m, 1, SIZE, &e) == 0);
	fake_machine_free(&fm);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_identity), T(t_queue_sel_out_of_range), T(t_odd_widths),
		       T(t_scribble), T(t_running_queue_is_safe), T(t_queue_ready_0),
		       T(t_doorbells), T(t_line), T(t_line_reset), T(t_slots), T(t_attach_fails));
}
