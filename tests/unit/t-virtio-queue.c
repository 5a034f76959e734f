// SPDX-License-Identifier: GPL-2.0-only
/*
 * One queue at a time: reset alone (virtio 1.3 2.6.1, 4.1.4.3.1) and enabled late, while the
 * device's other queues run.
 */
#include "../fake/echo.h"
#include "../fake/fake-driver.h"
#include "../tap.h"
#include "log.h"

#define NR_VQS 3
#define SIZE   8

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

static void bench_open(struct bench *b, const struct fake_driver_opts *opts)
{
	fake_machine_init(&b->fm, NULL);
	REQUIRE(echo_new(&b->fm.m, NR_VQS, SIZE, &b->echo) == 0);
	fake_driver_open(&b->drv, &b->fm, ECHO_ID, opts);
	b->out = fake_alloc(&b->drv, 64, 64);
	b->in = fake_alloc(&b->drv, 64, 64);
}

static int add(struct bench *b, unsigned q)
{
	const struct fake_seg segs[] = { { b->out, 64 }, { b->in, 64, true } };

	return fake_vq_add(&b->drv.vq[q], segs, 2, b);
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
		CHECK(fake_vq_irqs(&b->drv.vq[q]) > 0);
	}
}

/* The registers are as after power-on, wires are gone, the others never notice. */
static void reset_and_back(bool intx)
{
	const struct fake_driver_opts opts = { .intx = intx };
	struct bench b;

	bench_open(&b, &opts);
	for (int round = 0; round < 20; round++) {
		unsigned q = round % NR_VQS, bells = b.fm.hv.nr_bells;

		check_works(&b);
		REQUIRE(fake_driver_reset_vq(&b.drv, q));
		CHECK_EQ(b.echo->dev.vq[q].num, SIZE);
		CHECK_EQ(b.echo->dev.vq[q].desc_gpa, 0);
		if (fake_transport == VIRTIO_ON_PCI && !intx)
			CHECK_EQ(fake_common_read(&b.drv, VP_QMSIX, 2), 0xffff);
		CHECK_EQ(b.fm.hv.nr_bells, bells / NR_VQS * (NR_VQS - 1));
		CHECK_EQ(fake_driver_status(&b.drv), fake_status_ok(&b.drv));
		CHECK_EQ(request(&b, (q + 1) % NR_VQS), 0);
		CHECK_EQ(request(&b, (q + 2) % NR_VQS), 0);
		b.drv.vq[q].size = round & 1 ? SIZE : SIZE / 2; /* what ethtool -G does */
		fake_driver_setup_vq(&b.drv, q);
		CHECK_EQ(b.fm.hv.nr_bells, bells);
	}
	check_works(&b);
	CHECK_EQ(b.echo->dev.nr_broken + b.drv.vq[0].errors + b.drv.vq[1].errors, 0);
	fake_machine_free(&b.fm);
}

static void t_reset_and_back(void)
{
	reset_and_back(false);
	reset_and_back(true);
}

/* What was available and kicked in the queue is forgotten, what was so in another is not. */
static void t_requests_waiting(void)
{
	struct bench b;
	u8 *in;

	bench_open(&b, NULL);
	in = fake_ptr(&b.drv, b.in, 64);
	for (int round = 0; round < 50; round++) {
		REQUIRE(add(&b, 0) >= 0);
		fake_vq_kick(&b.drv.vq[0]);
		memset(in, 0xee, 64);
		REQUIRE(fake_driver_reset_vq(&b.drv, 0));
		fake_machine_run(&b.fm);
		CHECK_EQ(in[0], 0xee);
		CHECK_EQ(fake_vq_irqs(&b.drv.vq[0]), 0);
		REQUIRE(add(&b, 1) >= 0);
		fake_vq_kick(&b.drv.vq[1]);
		fake_driver_setup_vq(&b.drv, 0);
		fake_machine_run(&b.fm);
		CHECK(fake_vq_get(&b.drv.vq[1], NULL) == &b);
		CHECK(!fake_vq_has_used(&b.drv.vq[0]));
		if (!b.drv.opts.intx) /* which all queues share */
			CHECK_EQ(fake_vq_irqs(&b.drv.vq[0]), 0);
		CHECK_EQ(request(&b, 0), 0);
		fake_vq_irqs(&b.drv.vq[0]);
	}
	fake_machine_free(&b.fm);
}

/* All of them, so that nobody serves any; then back one after the other. */
static void t_all_queues(void)
{
	struct bench b;

	bench_open(&b, NULL);
	for (unsigned q = 0; q < NR_VQS; q++)
		REQUIRE(fake_driver_reset_vq(&b.drv, q));
	CHECK(!b.echo->be->started && b.echo->dev.started);
	CHECK_EQ(b.fm.hv.nr_bells, 0);
	for (unsigned q = 0; q < NR_VQS; q++) {
		fake_driver_setup_vq(&b.drv, q);
		CHECK_EQ(request(&b, q), 0);
	}
	REQUIRE(fake_driver_reset_vq(&b.drv, 1));
	REQUIRE(fake_driver_restart(&b.drv)); /* the whole device, with one queue off */
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Values other than 1, queues that are not there, not negotiated, twice, before DRIVER_OK. */
static void t_not_asked_for(void)
{
	const struct fake_driver_opts without = { .features = { BIT(3) } };
	struct bench b;

	bench_open(&b, NULL);
	for (unsigned v = 0; v < 0x10000; v += v == 0 ? 2 : 1021) {
		fake_common_write(&b.drv, VP_QSELECT, 2, 0);
		fake_common_write(&b.drv, VP_QRESET, 2, v);
		CHECK_EQ(fake_common_read(&b.drv, VP_QENABLE, 2), 1);
	}
	fake_common_write(&b.drv, VP_QSELECT, 2, NR_VQS);
	fake_common_write(&b.drv, VP_QRESET, 2, 1);
	check_works(&b);
	CHECK(fake_driver_reset_vq(&b.drv, 0));
	CHECK(fake_driver_reset_vq(&b.drv, 0));
	fake_driver_setup_vq(&b.drv, 0);
	check_works(&b);
	REQUIRE(fake_driver_negotiate(&b.drv));
	fake_driver_setup_irqs(&b.drv);
	for (unsigned q = 0; q < NR_VQS; q++)
		fake_driver_setup_vq(&b.drv, q);
	CHECK(fake_driver_reset_vq(&b.drv, 1));
	fake_driver_setup_vq(&b.drv, 1);
	REQUIRE(fake_driver_start(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);

	bench_open(&b, &without);
	CHECK(!fake_driver_reset_vq(&b.drv, 0));
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* A queue that was left out at DRIVER_OK may come later, with buffers in it already. */
static void t_enabled_late(void)
{
	struct bench b;

	bench_open(&b, NULL);
	REQUIRE(fake_driver_negotiate(&b.drv));
	fake_driver_setup_irqs(&b.drv);
	fake_driver_setup_vq(&b.drv, 0);
	REQUIRE(fake_driver_start(&b.drv));
	CHECK_EQ(request(&b, 0), 0);
	fake_driver_setup_vq(&b.drv, 2);
	CHECK_EQ(request(&b, 2), 0);
	fake_driver_setup_vq(&b.drv, 1);
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* What wiring one queue asks of the hypervisor: an irqfd unless the loop hears it, doorbells. */
static unsigned failing_calls(void)
{
	switch (fake_transport) {
	case VIRTIO_ON_PCI: return 3;
	case VIRTIO_ON_PCI_LEGACY: return 2;
	default: return 1;
	}
}

/* Each thing that can go wrong on the way back breaks the device; a reset mends it. */
static void t_back_fails(void)
{
	struct bench b;

	log_set_sink(ignore_log);
	bench_open(&b, NULL);
	for (unsigned n = 1, calls = failing_calls(); n <= calls + 1; n++) {
		REQUIRE(fake_driver_reset_vq(&b.drv, 1));
		fake_hv_fail(&b.fm.hv, n);
		fake_driver_setup_vq(&b.drv, 1);
		fake_hv_fail(&b.fm.hv, 0);
		CHECK_EQ(fake_driver_status(&b.drv),
			 (n <= calls ? 0x40 : 0) | fake_status_ok(&b.drv));
		REQUIRE(fake_driver_restart(&b.drv));
		check_works(&b);
	}
	b.echo->start_error = -EIO;
	fake_driver_reset_vq(&b.drv, 1);
	CHECK_EQ(fake_driver_status(&b.drv), 0x40 | fake_status_ok(&b.drv));
	b.echo->start_error = 0;
	REQUIRE(fake_driver_restart(&b.drv));
	REQUIRE(fake_driver_reset_vq(&b.drv, 1));
	fake_common_write(&b.drv, VP_QDESC, 8, 0xdead0000000);
	fake_common_write(&b.drv, VP_QENABLE, 2, 1);
	CHECK_EQ(fake_driver_status(&b.drv), 0x40 | fake_status_ok(&b.drv));
	CHECK_EQ(b.fm.hv.nr_bells, 0);
	REQUIRE(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

static void veto(struct virtio_backend *be, u64 features[2])
{
	(void)be;
	features[0] &= ~BIT(VIRTIO_B_RING_RESET);
}

/* Offered only when every backend of the device can. */
static void t_backend_vetoes(void)
{
	struct bench b;
	struct virtio_backend_ops ops;

	bench_open(&b, NULL);
	CHECK(b.drv.features[0] & BIT(VIRTIO_B_RING_RESET));
	ops = *b.echo->be->ops;
	ops.features = veto;
	b.echo->be->ops = &ops;
	virtio_offer(&b.echo->dev, b.echo->dev.offered);
	REQUIRE(fake_driver_restart(&b.drv));
	CHECK(!(b.drv.features[0] & BIT(VIRTIO_B_RING_RESET)));
	CHECK(!fake_driver_reset_vq(&b.drv, 0));
	check_works(&b);
	fake_machine_free(&b.fm);
}

static void *run_loop(void *arg)
{
	struct fake_machine *fm = arg;

	return loop_run(&fm->loop) ? fm : NULL;
}

/* From the driver's thread, while the loop serves all queues in its own. */
static void t_stress(void)
{
	struct bench b;
	pthread_t thread;

	bench_open(&b, NULL);
	REQUIRE(pthread_create(&thread, NULL, run_loop, &b.fm) == 0);
	for (int i = 0; i < 2000 && !tap_failed; i++) {
		unsigned q = i % NR_VQS;
		u16 used;

		for (unsigned k = 0; k < NR_VQS; k++) {
			while (fake_vq_get(&b.drv.vq[k], NULL))
				;
			add(&b, k);
			fake_vq_kick(&b.drv.vq[k]);
		}
		if (i & 1)
			sched_yield();
		REQUIRE(fake_driver_reset_vq(&b.drv, q));
		used = __atomic_load_n(&b.drv.vq[q].used->idx, __ATOMIC_ACQUIRE);
		sched_yield();
		CHECK_EQ(__atomic_load_n(&b.drv.vq[q].used->idx, __ATOMIC_ACQUIRE), used);
		fake_driver_setup_vq(&b.drv, q);
		CHECK_EQ(fake_driver_status(&b.drv), fake_status_ok(&b.drv));
	}
	loop_stop(&b.fm.loop);
	pthread_join(thread, NULL);
	CHECK_EQ(b.drv.vq[0].errors + b.drv.vq[1].errors + b.drv.vq[2].errors, 0);
	fake_machine_free(&b.fm);
}

/* clang-format off */
#define EVERYWHERE(X) \
	X(t_reset_and_back) X(t_requests_waiting) X(t_all_queues) X(t_enabled_late) \
	X(t_back_fails) X(t_stress)
#define MODERN(X) X(t_not_asked_for) X(t_backend_vetoes)
EVERYWHERE(FAKE_ON_MMIO)
MODERN(FAKE_ON_MMIO)
EVERYWHERE(FAKE_ON_LEGACY)

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, EVERYWHERE(FAKE_LIST) MODERN(FAKE_LIST)
		       EVERYWHERE(FAKE_LIST_MMIO) MODERN(FAKE_LIST_MMIO)
		       EVERYWHERE(FAKE_LIST_LEGACY));
}
