// SPDX-License-Identifier: GPL-2.0-only
/*
 * Long and parallel runs of ring and device: over the wrap of the indices, and with the driver and
 * the loop in threads of their own (traps D7, D9, D10). TSan makes the most of these.
 */
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>

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

/*
 * --- the two full fences, as litmus tests ---
 *
 * Each round, device and driver do one step at the same moment: one stores and then looks at what
 * the other stored. That neither sees the other is a lost interrupt or a lost kick, and only a
 * fence rules it out, on x86 too.
 */

struct litmus {
	struct virtq *vq;
	struct fake_vq *drv;
	unsigned rounds;
	_Atomic unsigned at[2]; /* the round that each side has come to */
	bool device_saw;
};

static void meet(struct litmus *l, int me, unsigned round)
{
	atomic_store(&l->at[me], round);
	for (unsigned spins = 1; atomic_load(&l->at[!me]) < round; spins++)
		if (spins % 4096 == 0)
			sched_yield(); /* not each its own CPU */
	/* Who came last goes on first: level that out, a bit differently each time. */
	for (unsigned n = (round * (me ? 7 : 5)) % 41; n; n--)
		__asm__ volatile("" : "+r"(n));
}

static void *publish_rounds(void *arg)
{
	struct litmus *l = arg;

	for (unsigned i = 0; i < l->rounds; i++) {
		u64 before = l->vq->nr_signals;

		virtq_push(l->vq, 0, 0);
		meet(l, 0, 2 * i + 1);
		virtq_publish(l->vq);
		l->device_saw = l->vq->nr_signals != before;
		meet(l, 0, 2 * i + 2);
	}
	return NULL;
}

/* used->idx against used_event: signalled, or the driver sees the element before it sleeps. */
static void litmus_signal(bool event_idx, unsigned rounds)
{
	const struct fake_driver_opts opts = { .no_event_idx = !event_idx };
	struct bench b;
	struct litmus l = { .rounds = rounds };
	pthread_t thread;

	bench_open(&b, 8, &opts);
	l.vq = &b.echo->dev.vq[0];
	l.drv = &b.drv.vq[0];
	fake_vq_irq_off(l.drv);
	virtq_push(l.vq, 0, 0);
	virtq_publish(l.vq); /* the first signal is sent in any case */
	REQUIRE(pthread_create(&thread, NULL, publish_rounds, &l) == 0);
	for (unsigned i = 0; i < rounds; i++) {
		bool driver_saw;

		l.drv->last_used = (u16)(i + 1);
		fake_vq_irq_off(l.drv);
		meet(&l, 1, 2 * i + 1);
		driver_saw = fake_vq_irq_on(l.drv);
		meet(&l, 1, 2 * i + 2);
		CHECK(driver_saw || l.device_saw);
		if (tap_failed > 10)
			rounds = i; /* the other side ends in its own time */
	}
	atomic_store(&l.at[1], UINT_MAX);
	pthread_join(thread, NULL);
	fake_machine_free(&b.fm);
}

static void *kicks_on_rounds(void *arg)
{
	struct litmus *l = arg;

	for (unsigned i = 0; i < l->rounds; i++) {
		l->vq->next_avail = (u16)i;
		virtq_kicks_off(l->vq);
		meet(l, 0, 2 * i + 1);
		l->device_saw = virtq_kicks_on(l->vq);
		meet(l, 0, 2 * i + 2);
	}
	return NULL;
}

/* avail_event against avail->idx: kicked, or the device sees the chain before it sleeps. */
static void litmus_kick(bool event_idx, unsigned rounds)
{
	const struct fake_driver_opts opts = { .no_event_idx = !event_idx };
	struct bench b;
	struct litmus l = { .rounds = rounds };
	pthread_t thread;

	bench_open(&b, 8, &opts);
	l.vq = &b.echo->dev.vq[0];
	l.drv = &b.drv.vq[0];
	virtq_kicks_on(l.vq);
	REQUIRE(pthread_create(&thread, NULL, kicks_on_rounds, &l) == 0);
	for (unsigned i = 0; i < rounds; i++) {
		bool rung;

		fake_vq_add_head(l.drv, 0);
		meet(&l, 1, 2 * i + 1);
		rung = fake_vq_kick(l.drv);
		meet(&l, 1, 2 * i + 2);
		CHECK(rung || l.device_saw);
		if (tap_failed > 10)
			rounds = i;
	}
	atomic_store(&l.at[1], UINT_MAX);
	pthread_join(thread, NULL);
	fake_machine_free(&b.fm);
}

static void t_litmus_signal(void)
{
	litmus_signal(true, 200000);
	litmus_signal(false, 200000);
}

static void t_litmus_kick(void)
{
	litmus_kick(true, 100000);
	litmus_kick(false, 100000);
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
		       EVERYWHERE(FAKE_LIST_LEGACY) T(t_litmus_signal), T(t_litmus_kick));
}
