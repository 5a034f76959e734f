// SPDX-License-Identifier: GPL-2.0-only
/*
 * Long and parallel runs of ring and device: over the wrap of the indices, and with the driver and
 * the loop in threads of their own (traps D7, D9, D10). TSan makes the most of these.
 */
#include <poll.h>

#include "../fake/echo.h"
#include "../fake/fake-driver.h"
#include "../tap.h"

struct bench {
	struct fake_machine fm;
	struct fake_driver drv;
	struct echo *echo;
	u64 out, in;
};

static void bench_open(struct bench *b, u16 size, const struct fake_driver_opts *opts)
{
	fake_machine_init(&b->fm, NULL);
	REQUIRE(echo_new(&b->fm.m, 2, size, &b->echo) == 0);
	fake_driver_open(&b->drv, &b->fm, ECHO_ID, opts);
	b->out = fake_alloc(&b->drv, 4096, 4096);
	b->in = fake_alloc(&b->drv, 4096, 4096);
}

static int request(struct bench *b, unsigned q)
{
	const struct fake_seg segs[] = { { b->out, 64 }, { b->in, 64, true } };

	return fake_vq_request(&b->drv.vq[q], segs, 2, NULL);
}

/* --- long runs (traps D7, D10) --- */

/* Fills the queue, runs, empties it, checks order and contents. */
static unsigned burst(struct bench *b, struct fake_vq *vq, unsigned n, u32 *serial)
{
	u32 *out = fake_ptr(&b->drv, b->out, 4096), *in = fake_ptr(&b->drv, b->in, 4096);
	u32 first = *serial;
	unsigned done = 0;
	u32 len;

	for (unsigned i = 0; i < n; i++) {
		u64 at = 4 * i;
		const struct fake_seg segs[] = { { b->out + at, 4 }, { b->in + at, 4, true } };

		out[i] = ++*serial;
		in[i] = 0;
		REQUIRE(fake_vq_add(vq, segs, 2, &out[i]) >= 0);
	}
	fake_vq_kick(vq);
	fake_machine_run(&b->fm);
	while (fake_vq_get(vq, &len) == &out[done]) {
		CHECK_EQ(len, 4);
		CHECK_EQ(in[done], first + done + 1);
		done++;
	}
	return done;
}

static void long_run(u16 size, bool event_idx, bool indirect)
{
	const struct fake_driver_opts opts = { .no_event_idx = !event_idx,
					       .no_indirect = !indirect };
	struct bench b;
	struct fake_vq *vq;
	unsigned max = indirect ? size : size / 2;
	u32 serial = 0;

	bench_open(&b, size, &opts);
	vq = &b.drv.vq[0];
	b.echo->batch = 3;
	while (serial < 200000) {
		unsigned n = 1 + serial % max;

		fake_vq_irq_on(vq);
		fake_vq_irqs(vq);
		CHECK_EQ(burst(&b, vq, n, &serial), n);
		CHECK(fake_vq_irqs(vq) > 0);
		if (tap_failed)
			break;
	}
	CHECK_EQ(vq->errors, 0);
	CHECK_EQ(b.echo->nr_handled, serial);
	fake_machine_free(&b.fm);
}

static void t_long_run_8(void)
{
	for (int i = 0; i < 4; i++)
		long_run(8, i & 1, i & 2);
}

static void t_long_run_256(void)
{
	for (int i = 0; i < 4; i++)
		long_run(256, i & 1, i & 2);
}

/* With NO_INTERRUPT, or an event far away, there is none. */
static void t_no_interrupts_wanted(void)
{
	for (int event_idx = 0; event_idx < 2; event_idx++) {
		const struct fake_driver_opts opts = { .no_event_idx = !event_idx };
		struct bench b;

		bench_open(&b, 8, &opts);
		CHECK_EQ(request(&b, 0), 0);
		fake_vq_irqs(&b.drv.vq[0]);
		fake_vq_irq_off(&b.drv.vq[0]);
		for (int i = 0; i < 1000; i++) {
			CHECK_EQ(request(&b, 0), 0);
			if (event_idx && i % 1000 == 0)
				fake_vq_irq_off(&b.drv.vq[0]);
		}
		CHECK_EQ(fake_vq_irqs(&b.drv.vq[0]), 0);
		fake_machine_free(&b.fm);
	}
}

/*
 * --- two threads (traps D9, D10): the loop in one, the driver in the other, both asleep at times
 * ---
 */

#define STRESS_SECONDS 60 /* of standstill: a lost wake-up */

static void *run_loop(void *arg)
{
	struct fake_machine *fm = arg;

	if (loop_run(&fm->loop))
		return fm;
	return NULL;
}

/* Sleeps until the device signals the queue. False after STRESS_SECONDS. */
static bool wait_irq(struct bench *b, struct fake_vq *vq)
{
	/* Without MSI-X the loop takes the signal. */
	bool intx = b->drv.opts.intx;

	for (int ms = 0; ms < STRESS_SECONDS * 1000; ms += intx ? 1 : 10) {
		struct pollfd p = { .fd = b->echo->dev.vq[vq->index].call, .events = POLLIN };

		if (fake_vq_irqs(vq))
			return true;
		poll(&p, !intx, intx ? 1 : 10);
	}
	return false;
}

static void stress(bool event_idx, bool indirect, u16 size, unsigned count)
{
	const struct fake_driver_opts opts = { .no_event_idx = !event_idx,
					       .no_indirect = !indirect };
	unsigned sent = 0, got = 0;
	struct bench b;
	struct fake_vq *vq;
	pthread_t thread;
	void *failed;

	bench_open(&b, size, &opts);
	vq = &b.drv.vq[0];
	REQUIRE(pthread_create(&thread, NULL, run_loop, &b.fm) == 0);
	while (got < count && !tap_failed) {
		const struct fake_seg segs[] = { { b.out, 16 }, { b.in, 16, true } };

		while (sent < count && fake_vq_add(vq, segs, 2, vq) >= 0)
			sent++;
		fake_vq_kick(vq);
		fake_vq_irq_off(vq);
		do {
			while (fake_vq_get(vq, NULL))
				got++;
		} while (fake_vq_irq_on(vq));
		/* Only a full queue, or the end, is worth sleeping for. */
		if (sent > got && (vq->nr_free < 2 || sent == count))
			CHECK(fake_vq_has_used(vq) || wait_irq(&b, vq));
	}
	CHECK_EQ(got, count);
	CHECK_EQ(vq->errors, 0);
	loop_stop(&b.fm.loop);
	pthread_join(thread, &failed);
	CHECK(!failed);
	fake_machine_free(&b.fm);
}

static void t_stress(void)
{
	for (int i = 0; i < 4; i++)
		stress(i & 1, i & 2, 8, 100000);
}

static void t_stress_one_at_a_time(void)
{
	stress(true, true, 2, 50000);
	stress(false, false, 2, 50000);
}

/* Resets from the driver's thread while the loop serves: no crash, no used element afterwards. */
static void t_stress_reset(void)
{
	struct bench b;
	pthread_t thread;

	bench_open(&b, 8, NULL);
	REQUIRE(pthread_create(&thread, NULL, run_loop, &b.fm) == 0);
	for (int i = 0; i < 2000 && !tap_failed; i++) {
		const struct fake_seg segs[] = { { b.out, 16 }, { b.in, 16, true } };
		u16 used;

		for (int q = 0; q < 2; q++) {
			for (int n = 0; n < 4; n++)
				REQUIRE(fake_vq_add(&b.drv.vq[q], segs, 2, &b) >= 0);
			fake_vq_kick(&b.drv.vq[q]);
		}
		if (i % 3)
			sched_yield();
		REQUIRE(fake_driver_reset(&b.drv));
		used = __atomic_load_n(&b.drv.vq[0].used->idx, __ATOMIC_ACQUIRE);
		sched_yield();
		CHECK_EQ(__atomic_load_n(&b.drv.vq[0].used->idx, __ATOMIC_ACQUIRE), used);
		REQUIRE(fake_driver_restart(&b.drv));
	}
	loop_stop(&b.fm.loop);
	pthread_join(thread, NULL);
	fake_machine_free(&b.fm);
}

/* clang-format off */
#define EVERYWHERE(X) \
	X(t_long_run_8) X(t_long_run_256) X(t_no_interrupts_wanted) X(t_stress) \
	X(t_stress_one_at_a_time) X(t_stress_reset)
EVERYWHERE(FAKE_ON_MMIO)
EVERYWHERE(FAKE_ON_LEGACY)

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, EVERYWHERE(FAKE_LIST) EVERYWHERE(FAKE_LIST_MMIO)
		       EVERYWHERE(FAKE_LIST_LEGACY));
}
