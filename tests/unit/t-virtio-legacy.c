// SPDX-License-Identifier: GPL-2.0-only
/*
 * The legacy PCI device's own: identity, registers, the configuration that shifts, rings by page
 * number, drivers that do not wait for DRIVER_OK (traps B3, C8, C9, C13, C14, K6). What it shares
 * with others is in t-virtio.c, t-virtio-queue.c and t-virtio-runs.c.
 */
#include <linux/pci_regs.h>

#include "../fake/echo.h"
#include "../fake/fake-driver.h"
#include "../tap.h"
#include "hw/msix.h"
#include "log.h"

#define NR_VQS 2
#define SIZE   8

enum { DF = 0, GF = 4, PFN = 8, QSIZE = 12, QSEL = 14, NOTIFY = 16, STATUS = 18, ISR = 19 };
enum { MSIX = 20, QMSIX = 22, CONFIG = 20, CONFIG_MSIX = 24 };

struct bench {
	struct fake_machine fm;
	struct fake_driver drv;
	struct echo *echo;
	u64 out, in;
};

static void ignore_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void bench_make(struct bench *b)
{
	fake_transport = VIRTIO_ON_PCI_LEGACY;
	fake_machine_init(&b->fm, NULL);
	REQUIRE(echo_new(&b->fm.m, NR_VQS, SIZE, &b->echo) == 0);
}

static void bench_open(struct bench *b, const struct fake_driver_opts *opts)
{
	bench_make(b);
	fake_driver_open(&b->drv, &b->fm, ECHO_ID, opts);
	b->out = fake_alloc(&b->drv, 64, 64);
	b->in = fake_alloc(&b->drv, 64, 64);
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
		fake_vq_irqs(&b->drv.vq[q]);
		CHECK_EQ(request(b, q), 0);
		CHECK_EQ(fake_vq_irqs(&b->drv.vq[q]), 1);
	}
}

static u64 get(struct bench *b, unsigned off, unsigned len)
{
	return fake_guest_read(&b->fm, true, b->drv.common + off, len);
}

static void put(struct bench *b, unsigned off, unsigned len, u64 value)
{
	fake_guest_write(&b->fm, true, b->drv.common + off, value, len);
}

static u32 cfg(struct bench *b, unsigned off, unsigned len)
{
	return fake_pci_read(&b->fm, b->drv.slot, off, len);
}

static void t_identity(void)
{
	struct bench b;

	bench_open(&b, NULL);
	CHECK_EQ(cfg(&b, PCI_DEVICE_ID, 2), 0x1000 + ECHO_ID);
	CHECK_EQ(cfg(&b, PCI_REVISION_ID, 1), 0);
	CHECK_EQ(cfg(&b, PCI_SUBSYSTEM_ID, 2), ECHO_ID);
	CHECK_EQ(cfg(&b, PCI_BASE_ADDRESS_0, 4) & 1, 1);
	CHECK_EQ(fake_pci_cap(&b.fm, b.drv.slot, PCI_CAP_ID_VNDR, 0), 0); /* nothing modern */
	CHECK_EQ(b.drv.nr_vqs, NR_VQS);
	CHECK_EQ(b.fm.hv.nr_bells, NR_VQS);
	/* Nothing of the upper feature words; any layout of buffers. */
	CHECK_EQ(get(&b, DF, 4), BIT(3) | BIT(27) | BIT(28) | BIT(29));
	CHECK_EQ(b.echo->dev.acked[0], BIT(3) | BIT(27) | BIT(28) | BIT(29));
	CHECK_EQ(fake_driver_status(&b.drv), 7);
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* What was not offered is dropped, what is written after DRIVER_OK too; no FEATURES_OK. */
static void t_features(void)
{
	struct bench b;

	bench_make(&b);
	REQUIRE(fake_driver_probe(&b.drv, &b.fm, ECHO_ID, NULL));
	put(&b, STATUS, 1, 1);
	put(&b, STATUS, 1, 0xb);
	CHECK_EQ(get(&b, STATUS, 1), 3);
	put(&b, GF, 4, UINT32_MAX);
	CHECK_EQ(get(&b, GF, 4), get(&b, DF, 4));
	put(&b, GF, 4, BIT(3));
	put(&b, STATUS, 1, 7);
	put(&b, GF, 4, UINT32_MAX);
	CHECK_EQ(get(&b, GF, 4), BIT(3));
	CHECK_EQ(get(&b, STATUS, 1), 7);
	CHECK(b.echo->dev.started);
	fake_machine_free(&b.fm);
}

/* The two vector registers come and go with MSI-X, and the configuration moves for them. */
static void t_config_shift(void)
{
	struct bench b;
	unsigned cap;

	for (int intx = 0; intx < 2; intx++) {
		const struct fake_driver_opts opts = { .intx = intx };

		bench_open(&b, &opts);
		cap = fake_pci_cap(&b.fm, b.drv.slot, PCI_CAP_ID_MSIX, 0);
		for (int flip = 0; flip < 5; flip++) {
			bool on = intx == (flip & 1);
			unsigned at = on ? CONFIG_MSIX : CONFIG;

			fake_pci_write(&b.fm, b.drv.slot, cap + 2, 2,
				       on ? PCI_MSIX_FLAGS_ENABLE : 0);
			CHECK_EQ(get(&b, at, 4), 0x6f686365);
			put(&b, at + 4, 4, 0x1234 + flip);
			CHECK_EQ(b.echo->config.scratch, 0x1234 + flip);
			/* Any width, also across the end of the registers. */
			for (unsigned len = 1; len <= 8; len *= 2) {
				for (unsigned off = 0; off + len <= 64; off++) {
					u64 want = 0;

					if (off <= ISR && ISR < off + len)
						continue;
					for (unsigned i = 0; i < len; i++)
						want |= get(&b, off + i, 1) << (8 * i);
					CHECK_EQ(get(&b, off, len), want);
				}
			}
			put(&b, at + 2, 4, UINT64_MAX); /* half of it is read-only */
			CHECK_EQ(b.echo->config.magic, 0x6f686365);
			CHECK_EQ(b.echo->config.scratch, 0xffff | ((0x1234u + flip) & ~0xffffu));
		}
		check_works(&b);
		fake_machine_free(&b.fm);
	}
}

static void t_out_of_range(void)
{
	static const unsigned sel[] = { NR_VQS, VIRTIO_MAX_VQS, 0x8000, 0xffff };
	struct bench b;

	bench_open(&b, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(sel); i++) {
		put(&b, QSEL, 2, sel[i]);
		CHECK_EQ(get(&b, QSIZE, 2), 0);
		CHECK_EQ(get(&b, PFN, 4), 0);
		put(&b, PFN, 4, 0x100);
		CHECK_EQ(get(&b, PFN, 4), 0);
		put(&b, QMSIX, 2, 0);
		CHECK_EQ(get(&b, QMSIX, 2), 0xffff);
		put(&b, NOTIFY, 2, sel[i]);
		put(&b, MSIX, 2, NR_VQS + 1 + i);
		CHECK_EQ(get(&b, MSIX, 2), 0xffff);
	}
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Every offset, every width, values of all kinds: nothing breaks, a reset mends. */
static void t_scribble(void)
{
	static const u64 values[] = { 0, 1, UINT64_MAX, 0x8000800080008000, 0x0100000000000100 };
	struct bench b;

	log_set_sink(ignore_log);
	bench_open(&b, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(values); i++) {
		for (unsigned len = 1; len <= 8; len *= 2) {
			for (unsigned off = 0; off < 64; off++) {
				get(&b, off, len);
				put(&b, off, len, values[i]);
			}
		}
		fake_machine_run(&b.fm);
	}
	REQUIRE(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Read-only registers, and those of a queue that runs. */
static void t_running_queue_is_safe(void)
{
	struct bench b;

	bench_open(&b, NULL);
	for (unsigned q = 0; q < NR_VQS; q++) {
		u64 pfn;

		put(&b, QSEL, 2, q);
		pfn = get(&b, PFN, 4);
		CHECK_EQ(pfn, b.drv.vq[q].desc_gpa >> 12);
		put(&b, QSIZE, 2, 2);
		put(&b, DF, 4, 0);
		put(&b, PFN, 4, 0xdead);
		CHECK_EQ(get(&b, PFN, 4), pfn);
		CHECK_EQ(get(&b, QSIZE, 2), SIZE);
	}
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Rings above 4 GiB, and page numbers that reach beyond all memory. */
static void t_page_numbers(void)
{
	static const u32 bad[] = { 1u << 31, UINT32_MAX, 0x000fffff, 0x00100000 + (28 << 8) };
	const struct fake_driver_opts opts = { .rings_high = true };
	struct bench b;

	log_set_sink(ignore_log);
	bench_open(&b, &opts);
	put(&b, QSEL, 2, 0);
	CHECK(get(&b, PFN, 4) >= 0x100000);
	check_works(&b);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		REQUIRE(fake_driver_negotiate(&b.drv));
		put(&b, QSEL, 2, 1);
		put(&b, PFN, 4, bad[i]);
		CHECK_EQ(get(&b, PFN, 4), bad[i]);
		CHECK_EQ(b.echo->dev.vq[1].desc_gpa, (u64)bad[i] << 12);
		CHECK_EQ(b.echo->dev.vq[1].used_gpa, ((u64)bad[i] << 12) + 4096);
		CHECK(!fake_driver_start(&b.drv));
		CHECK_EQ(fake_driver_status(&b.drv), 0x47);
	}
	REQUIRE(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* 2.7.2: for all sizes the parts are where a driver's arithmetic has them. */
static void t_layout(void)
{
	for (unsigned size = 1; size <= VIRTQ_MAX_SIZE; size *= 2) {
		struct bench b;
		const struct virtq *vq;

		fake_transport = VIRTIO_ON_PCI_LEGACY;
		fake_machine_init(&b.fm, NULL);
		REQUIRE(echo_new(&b.fm.m, NR_VQS, size, &b.echo) == 0);
		fake_driver_open(&b.drv, &b.fm, ECHO_ID, NULL);
		b.out = fake_alloc(&b.drv, 64, 64);
		b.in = fake_alloc(&b.drv, 64, 64);
		vq = &b.echo->dev.vq[1];
		CHECK_EQ(vq->num, size);
		CHECK_EQ(vq->avail_gpa, b.drv.vq[1].avail_gpa);
		CHECK_EQ(vq->used_gpa, b.drv.vq[1].used_gpa);
		CHECK_EQ(vq->used_gpa % 4096, 0);
		check_works(&b);
		fake_machine_free(&b.fm);
	}
}

/* --- doorbells --- */

static void t_doorbells(void)
{
	struct bench b;
	struct fake_seg segs[2];
	u32 cmd;

	bench_open(&b, NULL);
	segs[0] = (struct fake_seg){ b.out, 64 };
	segs[1] = (struct fake_seg){ b.in, 64, true };
	for (u32 q = 0; q < NR_VQS; q++) {
		for (int slow = 0; slow < 3; slow++) {
			u64 exits = b.echo->dev.vq[q].nr_doorbells;

			REQUIRE(fake_vq_add(&b.drv.vq[q], segs, 2, &b) >= 0);
			fake_vq_publish(&b.drv.vq[q]);
			if (slow == 1)
				bus_write(&b.fm.m.pio, b.drv.common + NOTIFY, &q, 2);
			else /* of 4 bytes: lies over the status, too, which then does not change */
				CHECK_EQ(fake_guest_write(&b.fm, true, b.drv.common + NOTIFY,
							  slow ? q | 7 << 16 : q, slow ? 4 : 2),
					 !slow);
			fake_machine_run(&b.fm);
			CHECK(fake_vq_get(&b.drv.vq[q], NULL) == &b);
			CHECK_EQ(b.echo->dev.vq[q].nr_doorbells - exits, !!slow);
		}
	}
	/* The BAR moves, and is off for a while. */
	cmd = cfg(&b, PCI_COMMAND, 2);
	fake_pci_write(&b.fm, b.drv.slot, PCI_COMMAND, 2, cmd & ~(u32)PCI_COMMAND_IO);
	CHECK_EQ(b.fm.hv.nr_bells, 0);
	fake_pci_write(&b.fm, b.drv.slot, PCI_BASE_ADDRESS_0, 4, FAKE_IO + 0x800);
	fake_pci_write(&b.fm, b.drv.slot, PCI_COMMAND, 2, cmd);
	CHECK(!fake_hv_doorbell(&b.fm.hv, b.drv.common + NOTIFY, true, 0, 2));
	fake_driver_find_caps(&b.drv);
	CHECK_EQ(b.drv.common, FAKE_IO + 0x800);
	CHECK_EQ(b.fm.hv.nr_bells, NR_VQS);
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* --- drivers that do not wait (3.1.2) --- */

/* A request before DRIVER_OK, and before the other queue is there; then as usual. */
static void t_used_before_driver_ok(void)
{
	struct bench b;

	bench_make(&b);
	REQUIRE(fake_driver_probe(&b.drv, &b.fm, ECHO_ID, NULL));
	REQUIRE(fake_driver_negotiate(&b.drv));
	b.out = fake_alloc(&b.drv, 64, 64);
	b.in = fake_alloc(&b.drv, 64, 64);
	fake_driver_setup_irqs(&b.drv);
	put(&b, NOTIFY, 2, 0); /* no queue there: nothing starts */
	CHECK(!b.echo->dev.started);
	fake_driver_setup_vq(&b.drv, 0);
	CHECK_EQ(request(&b, 0), 0);
	CHECK_EQ(fake_driver_status(&b.drv), 3);
	fake_driver_setup_vq(&b.drv, 1);
	CHECK_EQ(request(&b, 1), 0);
	REQUIRE(fake_driver_start(&b.drv));
	CHECK_EQ(b.echo->nr_starts,
		 2); /* the second queue restarted the backend; DRIVER_OK did not */
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Features that come after that count; the rings go on where they were. */
static void t_features_after_use(void)
{
	const struct fake_driver_opts opts = { .no_event_idx = true, .no_indirect = true };
	struct bench b;

	bench_make(&b);
	REQUIRE(fake_driver_probe(&b.drv, &b.fm, ECHO_ID, &opts));
	REQUIRE(fake_driver_negotiate(&b.drv));
	b.out = fake_alloc(&b.drv, 64, 64);
	b.in = fake_alloc(&b.drv, 64, 64);
	fake_driver_setup_irqs(&b.drv);
	for (unsigned q = 0; q < NR_VQS; q++)
		fake_driver_setup_vq(&b.drv, q);
	CHECK_EQ(request(&b, 0), 0);
	put(&b, GF, 4, BIT(28));
	CHECK(!b.echo->dev.started);
	CHECK_EQ(b.echo->dev.acked[0], BIT(28));
	b.drv.vq[0].indirect = b.drv.vq[1].indirect = true;
	CHECK_EQ(request(&b, 0), 0);
	CHECK(b.echo->dev.started);
	REQUIRE(fake_driver_start(&b.drv));
	check_works(&b);
	CHECK_EQ(b.drv.vq[0].errors, 0);
	fake_machine_free(&b.fm);
}

/* --- interrupts --- */

static void t_isr(void)
{
	const struct fake_driver_opts opts = { .intx = true };
	struct bench b;
	u32 gsi;

	bench_open(&b, &opts);
	gsi = cfg(&b, PCI_INTERRUPT_LINE, 1);
	CHECK_EQ(request(&b, 0), 0);
	CHECK(fake_hv_level(&b.fm.hv, gsi));
	CHECK_EQ(get(&b, STATUS, 1), 7); /* its neighbour clears nothing */
	CHECK(fake_hv_level(&b.fm.hv, gsi));
	pthread_mutex_lock(&b.echo->dev.lock);
	virtio_config_changed(&b.echo->dev);
	pthread_mutex_unlock(&b.echo->dev.lock);
	CHECK_EQ(get(&b, ISR, 1), VIRTIO_ISR_QUEUE | VIRTIO_ISR_CONFIG);
	CHECK(!fake_hv_level(&b.fm.hv, gsi));
	CHECK_EQ(get(&b, ISR, 1), 0);
	/* Read together with its neighbours. */
	CHECK_EQ(request(&b, 1), 0);
	CHECK_EQ(get(&b, STATUS, 2), 7 | VIRTIO_ISR_QUEUE << 8);
	CHECK(!fake_hv_level(&b.fm.hv, gsi));
	put(&b, ISR, 1, 0xff);
	CHECK(!fake_hv_level(&b.fm.hv, gsi));
	CHECK_EQ(request(&b, 0), 0);
	REQUIRE(fake_driver_reset(&b.drv)); /* with the bit unread */
	CHECK(!fake_hv_level(&b.fm.hv, gsi));
	REQUIRE(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* No I/O space, no legacy device; the same for a type whose ID is out of reach. */
static void t_attach_fails(void)
{
	const struct fake_machine_opts no_io = { .no_io = true };
	struct fake_machine fm;
	struct echo *e;

	log_set_sink(ignore_log);
	fake_transport = VIRTIO_ON_PCI_LEGACY;
	fake_machine_init(&fm, &no_io);
	CHECK_EQ(echo_new(&fm.m, 1, SIZE, &e), -ENODEV);
	fake_machine_free(&fm);
	fake_machine_init(&fm, NULL);
	for (int i = 0; i < 31; i++)
		REQUIRE(echo_new(&fm.m, 1, SIZE, &e) == 0);
	CHECK_EQ(echo_new(&fm.m, 1, SIZE, &e), -ENOSPC);
	fake_machine_free(&fm);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_identity), T(t_features), T(t_config_shift),
		       T(t_out_of_range), T(t_scribble), T(t_running_queue_is_safe),
		       T(t_page_numbers), T(t_layout), T(t_doorbells), T(t_used_before_driver_ok),
		       T(t_features_after_use), T(t_isr), T(t_attach_fails));
}
