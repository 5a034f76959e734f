// SPDX-License-Identifier: GPL-2.0-only
/*
 * Drivers that break the rules of the ring (traps D4 to D7, D9), against a whole device.
 *
 * Theory of operation: attack() sets up a device, lets one function write a bad ring, rings the
 * doorbell and runs the loop. What is right: DEVICE_NEEDS_RESET within bounded time, one config
 * interrupt, nothing in the used ring; and after a reset the same device serves a good request.
 * All attacks run with and without EVENT_IDX and indirect descriptors.
 */
#include <stdatomic.h>

#include "../fake/echo.h"
#include "../fake/fake-driver.h"
#include "../tap.h"
#include "log.h"

#define SIZE 8

struct attack {
	struct fake_machine fm;
	struct fake_driver drv;
	struct echo *echo;
	struct fake_vq *vq;
	u64 data; /* 4 KiB that the attack may name */
};

static void open_device(struct attack *a, bool event_idx, bool indirect, u64 span_limit)
{
	const struct fake_machine_opts mopts = { .span_limit = span_limit };
	const struct fake_driver_opts dopts = { .no_event_idx = !event_idx,
						.no_indirect = !indirect };

	fake_machine_init(&a->fm, &mopts);
	REQUIRE(echo_new(&a->fm.m, 1, SIZE, &a->echo) == 0);
	fake_driver_open(&a->drv, &a->fm, ECHO_ID, &dopts);
	a->vq = &a->drv.vq[0];
	a->data = fake_alloc(&a->drv, 4096, 4096);
}

static void check_good_request(struct attack *a)
{
	const struct fake_seg segs[] = { { a->data, 16 }, { a->data + 16, 16, true } };
	u32 len = 0;

	CHECK_EQ(fake_vq_request(a->vq, segs, 2, &len), 0);
	CHECK_EQ(len, 16);
}

static bool needs_reset(struct attack *a)
{
	return fake_driver_status(&a->drv) & VIRTIO_S_NEEDS_RESET;
}

/* Rings and runs; then the device has to be broken, and to be mended by a reset. */
static void check_refused(struct attack *a, const char *name)
{
	u64 irqs = fake_driver_config_irqs(&a->drv);

	fake_vq_publish(a->vq);
	fake_vq_ring(a->vq);
	fake_machine_run(&a->fm);
	irqs = fake_driver_config_irqs(&a->drv) - irqs;
	if (!needs_reset(a) || fake_vq_has_used(a->vq) || irqs != 1) {
		printf("# %s: needs_reset %d used %d config interrupts %llu\n", name,
		       needs_reset(a), fake_vq_has_used(a->vq), (unsigned long long)irqs);
		tap_failed++;
	}
	fake_vq_ring(a->vq); /* nobody listens any more */
	fake_machine_run(&a->fm);
	CHECK(fake_driver_restart(&a->drv));
	check_good_request(a);
}

/* One bad chain in the ring's own table. */
static void put_desc(struct attack *a, u16 i, u64 addr, u32 len, u16 flags, u16 next)
{
	a->vq->desc[i] = (struct vring_desc){ addr, len, flags, next };
}

#define NEXT     VRING_DESC_F_NEXT
#define WRITE    VRING_DESC_F_WRITE
#define INDIRECT VRING_DESC_F_INDIRECT

/* --- D4: loops and indices --- */

static void self_loop(struct attack *a)
{
	put_desc(a, 0, a->data, 1, NEXT, 0);
	fake_vq_add_head(a->vq, 0);
}

static void two_cycle(struct attack *a)
{
	put_desc(a, 0, a->data, 1, NEXT, 1);
	put_desc(a, 1, a->data, 1, NEXT, 0);
	fake_vq_add_head(a->vq, 0);
}

static void empty_loop(struct attack *a)
{
	put_desc(a, 0, 0, 0, NEXT, 0);
	fake_vq_add_head(a->vq, 0);
}

static void next_is_size(struct attack *a)
{
	put_desc(a, 0, a->data, 1, NEXT, SIZE);
	fake_vq_add_head(a->vq, 0);
}

static void next_is_ffff(struct attack *a)
{
	put_desc(a, 0, a->data, 1, NEXT, 0xffff);
	fake_vq_add_head(a->vq, 0);
}

static void head_is_size(struct attack *a)
{
	fake_vq_add_head(a->vq, SIZE);
}

static void head_is_ffff(struct attack *a)
{
	fake_vq_add_head(a->vq, 0xffff);
}

/* Through all descriptors and back into the chain: one more than the ring has. */
static void size_plus_one(struct attack *a)
{
	for (u16 i = 0; i < SIZE; i++)
		put_desc(a, i, a->data, 1, NEXT, i + 1 == SIZE ? 3 : (u16)(i + 1));
	fake_vq_add_head(a->vq, 0);
}

static void readable_after_writable(struct attack *a)
{
	put_desc(a, 0, a->data, 1, NEXT | WRITE, 1);
	put_desc(a, 1, a->data, 1, 0, 0);
	fake_vq_add_head(a->vq, 0);
}

/* --- D6: addresses --- */

static void wraps(struct attack *a)
{
	put_desc(a, 0, 0xfffffffffffff000, 0x2000, 0, 0);
	fake_vq_add_head(a->vq, 0);
}

static void wraps_to_zero(struct attack *a)
{
	put_desc(a, 0, 0xffffffffffffffff, 2, WRITE, 0);
	fake_vq_add_head(a->vq, 0);
}

static void in_a_bar(struct attack *a)
{
	put_desc(a, 0, a->drv.common, 4, WRITE, 0);
	fake_vq_add_head(a->vq, 0);
}

static void in_the_hole(struct attack *a)
{
	put_desc(a, 0, FAKE_RAM_MID + FAKE_RAM_SIZE, 4, 0, 0);
	fake_vq_add_head(a->vq, 0);
}

static void over_the_end(struct attack *a)
{
	put_desc(a, 0, FAKE_RAM_HIGH + FAKE_HIGH_SIZE - 4096, 4097, WRITE, 0);
	fake_vq_add_head(a->vq, 0);
}

static void into_the_hole(struct attack *a)
{
	put_desc(a, 0, FAKE_RAM_MID + FAKE_RAM_SIZE - 1, 2, 0, 0);
	fake_vq_add_head(a->vq, 0);
}

static void last_at_bad_address(struct attack *a)
{
	put_desc(a, 0, a->data, 16, NEXT, 1);
	put_desc(a, 1, a->data, 16, NEXT | WRITE, 2);
	put_desc(a, 2, 0xdead00000000, 1, WRITE, 0);
	fake_vq_add_head(a->vq, 0);
}

/* --- D7: the available index --- */

static void idx_jumps(struct attack *a)
{
	a->vq->avail_idx = (u16)(a->vq->avail_idx + SIZE + 1);
}

static void idx_back(struct attack *a)
{
	check_good_request(a);
	a->vq->avail_idx -= 1;
}

static void idx_half_way(struct attack *a)
{
	a->vq->avail_idx = (u16)(a->vq->avail_idx + 0x8000);
}

/* --- D5: indirect tables --- */

static void indirect(struct attack *a, u64 addr, u32 len, u16 flags)
{
	put_desc(a, 0, addr, len, INDIRECT | flags, 1);
	put_desc(a, 1, a->data, 1, 0, 0);
	fake_vq_add_head(a->vq, 0);
}

static void put_table(struct attack *a, u64 gpa, unsigned i, struct vring_desc d)
{
	memcpy(fake_ptr(&a->drv, gpa + i * 16, 16), &d, 16);
}

static void nested(struct attack *a)
{
	put_table(a, a->data, 0, (struct vring_desc){ a->data + 64, 16, INDIRECT, 0 });
	put_table(a, a->data + 64, 0, (struct vring_desc){ a->data, 1, 0, 0 });
	indirect(a, a->data, 16, 0);
}

static void nested_in_itself(struct attack *a)
{
	put_table(a, a->data, 0, (struct vring_desc){ a->data, 16, INDIRECT, 0 });
	indirect(a, a->data, 16, 0);
}

static void table_not_whole(struct attack *a)
{
	put_table(a, a->data, 0, (struct vring_desc){ a->data, 1, 0, 0 });
	indirect(a, a->data, 24, 0);
}

static void table_empty(struct attack *a)
{
	put_table(a, a->data, 0, (struct vring_desc){ a->data, 1, 0, 0 });
	indirect(a, a->data, 0, 0);
}

/* 65536 entries are the most that next can reach; memory has them, so only the length is wrong. */
static void table_too_long(struct attack *a)
{
	indirect(a, FAKE_RAM_HIGH, 16 * 65537, 0);
}

static void table_and_next(struct attack *a)
{
	put_table(a, a->data, 0, (struct vring_desc){ a->data, 1, 0, 0 });
	indirect(a, a->data, 16, NEXT);
}

static void table_loop(struct attack *a)
{
	put_table(a, a->data, 0, (struct vring_desc){ a->data, 0, NEXT, 1 });
	put_table(a, a->data, 1, (struct vring_desc){ a->data, 0, NEXT, 0 });
	indirect(a, a->data, 32, 0);
}

static void table_next_outside(struct attack *a)
{
	put_table(a, a->data, 0, (struct vring_desc){ a->data, 1, NEXT, 2 });
	indirect(a, a->data, 32, 0);
}

static void table_in_the_hole(struct attack *a)
{
	indirect(a, FAKE_RAM_MID + FAKE_RAM_SIZE, 16, 0);
}

static void table_half_in_the_hole(struct attack *a)
{
	u64 gpa = FAKE_RAM_MID + FAKE_RAM_SIZE - 24;

	put_table(a, gpa, 0, (struct vring_desc){ a->data, 1, NEXT, 1 });
	indirect(a, gpa, 32, 0);
}

static void table_wraps(struct attack *a)
{
	indirect(a, 0xfffffffffffffff0, 32, 0);
}

/* Good in itself, and refused only where it was not negotiated. */
static void table_not_negotiated(struct attack *a)
{
	put_table(a, a->data, 0, (struct vring_desc){ a->data, 1, 0, 0 });
	indirect(a, a->data, 16, 0);
}

static const struct {
	const char *name;
	void (*fn)(struct attack *a);
	enum { ANY, WITH_INDIRECT, WITHOUT_INDIRECT } when;
} attacks[] = {
#define A(f, when) \
	{ \
#f, f, when \
	}
	A(self_loop, ANY),
	A(two_cycle, ANY),
	A(empty_loop, ANY),
	A(next_is_size, ANY),
	A(next_is_ffff, ANY),
	A(head_is_size, ANY),
	A(head_is_ffff, ANY),
	A(size_plus_one, ANY),
	A(readable_after_writable, ANY),
	A(wraps, ANY),
	A(wraps_to_zero, ANY),
	A(in_a_bar, ANY),
	A(in_the_hole, ANY),
	A(over_the_end, ANY),
	A(into_the_hole, ANY),
	A(last_at_bad_address, ANY),
	A(idx_jumps, ANY),
	A(idx_back, ANY),
	A(idx_half_way, ANY),
	A(nested, WITH_INDIRECT),
	A(nested_in_itself, WITH_INDIRECT),
	A(table_not_whole, WITH_INDIRECT),
	A(table_empty, WITH_INDIRECT),
	A(table_too_long, WITH_INDIRECT),
	A(table_and_next, WITH_INDIRECT),
	A(table_loop, WITH_INDIRECT),
	A(table_next_outside, WITH_INDIRECT),
	A(table_in_the_hole, WITH_INDIRECT),
	A(table_half_in_the_hole, WITH_INDIRECT),
	A(table_wraps, WITH_INDIRECT),
	A(table_not_negotiated, WITHOUT_INDIRECT),
#undef A
};

static void ignore_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void run_attacks(bool event_idx, bool with_indirect, u64 span_limit)
{
	struct attack a;

	open_device(&a, event_idx, with_indirect, span_limit);
	for (unsigned i = 0; i < ARRAY_SIZE(attacks); i++) {
		if (attacks[i].when == (with_indirect ? WITHOUT_INDIRECT : WITH_INDIRECT))
			continue;
		attacks[i].fn(&a);
		check_refused(&a, attacks[i].name);
	}
	CHECK(a.echo->dev.nr_broken > 10);
	fake_machine_free(&a.fm);
}

static void t_attacks(void)
{
	log_set_sink(ignore_log);
	run_attacks(false, false, 0);
	run_attacks(true, false, 0);
}

static void t_attacks_indirect(void)
{
	log_set_sink(ignore_log);
	run_attacks(false, true, 0);
	run_attacks(true, true, 0);
}

static void t_attacks_spans(void)
{
	log_set_sink(ignore_log);
	run_attacks(true, true, 1);
	run_attacks(true, true, 3);
}

/* --- what looks odd and is legal --- */

static void run_legal(bool event_idx, bool with_indirect)
{
	const u64 high_end = FAKE_RAM_HIGH + FAKE_HIGH_SIZE;
	struct attack a;
	struct fake_seg segs[SIZE];
	u32 len = 0;

	open_device(&a, event_idx, with_indirect, 0);
	/* A chain of exactly the ring's size. */
	for (u16 i = 0; i < SIZE; i++)
		put_desc(&a, i, a.data + i, 1, (u16)((i >= 4 ? WRITE : 0) | (i < 7 ? NEXT : 0)),
			 (u16)(i + 1));
	fake_vq_add_head(a.vq, 0);
	fake_vq_kick(a.vq);
	fake_machine_run(&a.fm);
	CHECK(fake_vq_has_used(a.vq));
	CHECK(fake_driver_restart(&a.drv));
	/*
	 * The last 4096 bytes of low and of high memory, and a buffer over two regions that touch.
	 */
	segs[0] = (struct fake_seg){ FAKE_RAM_MID + FAKE_RAM_SIZE - 4096, 4096 };
	segs[1] = (struct fake_seg){ high_end - 4096, 4096, true };
	memset(fake_ptr(&a.drv, segs[0].gpa, 4096), 0x3c, 4096);
	CHECK_EQ(fake_vq_request(a.vq, segs, 2, &len), 0);
	CHECK_EQ(len, 4096);
	CHECK_EQ(*(u8 *)fake_ptr(&a.drv, high_end - 1, 1), 0x3c);
	segs[1] = (struct fake_seg){ FAKE_RAM_MID - 100, 200, true };
	CHECK_EQ(fake_vq_request(a.vq, segs, 2, &len), 0);
	CHECK_EQ(len, 200);
	CHECK_EQ(*(u8 *)fake_ptr(&a.drv, FAKE_RAM_MID - 1, 1), 0x3c);
	CHECK_EQ(*(u8 *)fake_ptr(&a.drv, FAKE_RAM_MID, 1), 0x3c);
	fake_machine_free(&a.fm);
}

static void t_legal(void)
{
	for (int i = 0; i < 4; i++)
		run_legal(i & 1, i & 2);
}

/* Empty descriptors first, in the middle, last, and nothing else; their address says nothing. */
static void t_zero_length(void)
{
	struct attack a;
	u32 len = 0;

	for (int i = 0; i < 4; i++) {
		open_device(&a, i & 1, i & 2, 0);
		CHECK_EQ(fake_vq_request(a.vq,
					 (struct fake_seg[]){ { 0xdead00000000, 0 },
							      { a.data, 8 },
							      { a.data, 0 },
							      { a.data + 8, 8, true },
							      { UINT64_MAX, 0, true } },
					 5, &len),
			 0);
		CHECK_EQ(len, 8);
		CHECK_EQ(fake_vq_request(a.vq, (struct fake_seg[]){ { 0, 0 } }, 1, &len), 0);
		CHECK_EQ(len, 0);
		CHECK_EQ(fake_vq_request(a.vq, (struct fake_seg[]){ { 0, 0, true } }, 1, &len), 0);
		CHECK_EQ(len, 0);
		CHECK(!needs_reset(&a));
		fake_machine_free(&a.fm);
	}
}

/*
 * The same head twice: each is a chain of its own to us; no crash, and no more used than available.
 */
static void t_same_head_twice(void)
{
	struct attack a;

	open_device(&a, false, false, 0);
	put_desc(&a, 0, a.data, 16, 0, 0);
	for (int i = 0; i < SIZE; i++)
		fake_vq_add_head(a.vq, 0);
	fake_vq_kick(a.vq);
	fake_machine_run(&a.fm);
	CHECK_EQ(a.vq->used->idx, SIZE);
	CHECK(!needs_reset(&a));
	fake_machine_free(&a.fm);
}

/* Rings on top of each other and of the buffers: the device may break, nothing else may. */
static void t_overlapping_rings(void)
{
	struct attack a;

	log_set_sink(ignore_log);
	open_device(&a, true, true, 0);
	for (int i = 0; i < 4; i++) {
		REQUIRE(fake_driver_negotiate(&a.drv));
		fake_driver_setup_irqs(&a.drv);
		fake_common_write(&a.drv, VP_QSELECT, 2, 0);
		fake_common_write(&a.drv, VP_QDESC, 8, a.data);
		fake_common_write(&a.drv, VP_QAVAIL, 8, a.data + (i & 1 ? 4 : 0));
		fake_common_write(&a.drv, VP_QUSED, 8, a.data + (i & 2 ? 4 : 0));
		fake_common_write(&a.drv, VP_QENABLE, 2, 1);
		for (u16 n = 0; n < 64; n++)
			((u16 *)fake_ptr(&a.drv, a.data, 128))[n] = (u16)(n * 0x101 + i);
		fake_driver_start(&a.drv);
		fake_vq_ring(a.vq);
		fake_machine_run(&a.fm);
	}
	CHECK(fake_driver_restart(&a.drv));
	check_good_request(&a);
	fake_machine_free(&a.fm);
}

/* Noise in all three parts, many times; the seed is fixed. */
static void t_noise(void)
{
	struct attack a;
	u32 x = 12345;

	log_set_sink(ignore_log);
	open_device(&a, true, true, 0);
	for (int round = 0; round < 3000; round++) {
		u8 *part[] = { (u8 *)a.vq->desc, (u8 *)a.vq->avail, (u8 *)a.vq->used };
		const unsigned len[] = { 16 * SIZE, 6 + 2 * SIZE, 6 + 8 * SIZE };

		for (int n = 0; n < 40; n++) {
			unsigned p = n % 8 ? 0 : (unsigned)n / 8 % 3; /* mostly descriptors */

			x = x * 1664525 + 1013904223;
			part[p][(x >> 8) % len[p]] = (u8)(x >> 16) & (u8)(x >> 24);
		}
		a.vq->desc[round % SIZE].addr = a.data;
		fake_vq_add_head(a.vq, (u16)(round % SIZE));
		fake_vq_kick(a.vq);
		fake_vq_ring(a.vq);
		fake_machine_run(&a.fm);
		if (needs_reset(&a))
			REQUIRE(fake_driver_restart(&a.drv));
	}
	REQUIRE(fake_driver_restart(&a.drv));
	check_good_request(&a);
	fake_machine_free(&a.fm);
}

/* --- D9: a second thread that changes descriptors under us --- */

struct flipper {
	struct vring_desc *desc;
	u64 data;
	atomic_bool stop;
};

/*
 * Length between 16 and all of 32 bits, address between memory and nowhere, flags between end and
 * next.
 */
static void *flip(void *arg)
{
	struct flipper *f = arg;
	const u64 rest[] = { 16, 0xffffffff, 16 | (u64)NEXT << 32 | 1ULL << 48, 4096 };

	for (u32 i = 0; !atomic_load(&f->stop); i++) {
		u64 *half = (u64 *)(void *)f->desc;

		__atomic_store_n(&half[0], i & 8 ? f->data : 0xdead00000000, __ATOMIC_RELAXED);
		__atomic_store_n(&half[1], rest[i % 4], __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Each time one consistent value is used: lengths 16 or 4096, else the chain is refused. */
static void t_double_fetch(void)
{
	struct attack a;
	struct flipper f;
	pthread_t thread;
	unsigned refused = 0, served = 0;

	log_set_sink(ignore_log);
	open_device(&a, false, false, 0);
	f = (struct flipper){ .desc = &a.vq->desc[0], .data = a.data };
	put_desc(&a, 0, a.data, 16, 0, 0);
	REQUIRE(pthread_create(&thread, NULL, flip, &f) == 0);
	for (int i = 0; i < 20000; i++) {
		struct virtq *vq = &a.echo->dev.vq[0];
		struct virtq_chain c;
		struct iovec iov[4];
		int r;

		__atomic_store_n(&a.vq->avail->idx, (u16)(vq->next_avail + 1), __ATOMIC_RELEASE);
		r = virtq_pop(vq, &c, iov, 4);
		refused += r == -EPROTO;
		served += r == 1;
		if (r != 1)
			continue;
		CHECK(iov[0].iov_base == fake_ptr(&a.drv, a.data, 1));
		CHECK(iov[0].iov_len == 16 || iov[0].iov_len == 4096);
		CHECK_EQ(c.out_len, iov[0].iov_len + (c.nr_out > 1 ? iov[1].iov_len : 0));
	}
	atomic_store(&f.stop, true);
	pthread_join(thread, NULL);
	CHECK_EQ(refused + served, 20000);
	fake_machine_free(&a.fm);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_attacks), T(t_attacks_indirect), T(t_attacks_spans),
		       T(t_legal), T(t_zero_length), T(t_same_head_twice), T(t_overlapping_rings),
		       T(t_noise), T(t_double_fetch));
}
