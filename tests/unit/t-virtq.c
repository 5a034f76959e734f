// SPDX-License-Identifier: GPL-2.0-only
/*
 * virtio/virtq.c by itself: a ring in memory, the driver's side written by the tests.
 *
 * Theory of operation: struct ring is a queue of RING entries whose parts lie where a test wants
 * them; call is a real eventfd, so that signals can be counted. t-hostile-ring.c has the rule
 * breakers.
 */
#include <sys/eventfd.h>

#include "../tap.h"
#include "mem.h"
#include "virtio/virtq.h"

#define RING  8
#define DESC  0x1000
#define AVAIL 0x2002 /* only 2-aligned */
#define USED  0x3004 /* only 4-aligned */
#define DATA  0x8000

struct ring {
	struct guest_mem mem;
	struct virtq vq;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	struct virtq_chain chain;
	struct iovec iov[64];
};

static void ring_init(struct ring *r, bool event_idx, bool indirect)
{
	memset(r, 0, sizeof(*r));
	REQUIRE(mem_add(&r->mem, 0, 64 * KiB) == 0);
	REQUIRE(mem_add(&r->mem, 64 * KiB, 64 * KiB) == 0);
	r->vq.num = r->vq.num_max = RING;
	r->vq.desc_gpa = DESC;
	r->vq.avail_gpa = AVAIL;
	r->vq.used_gpa = USED;
	r->vq.kick = -1;
	r->vq.call = eventfd(0, EFD_NONBLOCK);
	REQUIRE(r->vq.call >= 0);
	REQUIRE(virtq_map(&r->vq, &r->mem, event_idx, indirect) == 0);
	r->desc = mem_ptr(&r->mem, DESC, RING * 16);
	r->avail = mem_ptr(&r->mem, AVAIL, 6 + RING * 2);
	r->used = mem_ptr(&r->mem, USED, 6 + RING * 8);
}

static void ring_free(struct ring *r)
{
	close(r->vq.call);
	mem_free(&r->mem);
}

static void make_available(struct ring *r, u16 head)
{
	r->avail->ring[r->avail->idx % RING] = head;
	r->avail->idx++;
}

static int pop(struct ring *r)
{
	return virtq_pop(&r->vq, &r->chain, r->iov, ARRAY_SIZE(r->iov));
}

/* True when the driver was signalled since the last call. */
static bool signalled(struct ring *r)
{
	u64 count;

	return read(r->vq.call, &count, sizeof(count)) == sizeof(count);
}

/* --- mapping --- */

static void t_map_checks(void)
{
	static const struct {
		u16 num;
		u64 desc, avail, used;
		int want;
	} c[] = {
		{ 8, DESC, AVAIL, USED, 0 },
		{ 1, DESC, AVAIL, USED, 0 },
		{ 0, DESC, AVAIL, USED, -EINVAL },
		{ 6, DESC, AVAIL, USED, -EINVAL },
		{ 16, DESC, AVAIL, USED, -EINVAL }, /* more than num_max */
		{ 8, DESC + 8, AVAIL, USED, -EINVAL },
		{ 8, DESC, AVAIL + 1, USED, -EINVAL },
		{ 8, DESC, AVAIL, USED + 2, -EINVAL },
		{ 8, 128 * KiB, AVAIL, USED, -EFAULT },
		{ 8, 64 * KiB - 16 * 7, AVAIL, USED, -EFAULT }, /* crosses into the next region */
		{ 8, 128 * KiB - 16 * 8, AVAIL, USED, 0 },      /* ends with memory */
		{ 8, DESC, 128 * KiB - 20, USED, 0 },
		{ 8, DESC, 128 * KiB - 18, USED, -EFAULT },
		{ 8, DESC, AVAIL, 128 * KiB - 68, 0 },
		{ 8, DESC, AVAIL, 128 * KiB - 64, -EFAULT },
		{ 8, 0xfffffffffffffff0, AVAIL, USED, -EFAULT },
		{ 8, DESC, 0xfffffffffffffffe, USED, -EFAULT },
		{ 8, DESC, AVAIL, 0xfffffffffffffffc, -EFAULT },
	};
	struct ring r;

	ring_init(&r, false, false);
	for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
		r.vq.num = c[i].num;
		r.vq.desc_gpa = c[i].desc;
		r.vq.avail_gpa = c[i].avail;
		r.vq.used_gpa = c[i].used;
		CHECK_EQ(virtq_map(&r.vq, &r.mem, false, false), c[i].want);
		CHECK_EQ(virtq_mapped(&r.vq), c[i].want == 0);
	}
	ring_free(&r);
}

/* With EVENT_IDX each ring is two bytes longer. */
static void t_map_event_idx_room(void)
{
	struct ring r;

	ring_init(&r, false, false);
	r.vq.avail_gpa = 128 * KiB - 20;
	CHECK_EQ(virtq_map(&r.vq, &r.mem, false, false), 0);
	CHECK_EQ(virtq_map(&r.vq, &r.mem, true, false), -EFAULT);
	r.vq.avail_gpa = 128 * KiB - 22;
	CHECK_EQ(virtq_map(&r.vq, &r.mem, true, false), 0);
	ring_free(&r);
}

static void t_reset(void)
{
	struct ring r;
	int call;

	ring_init(&r, true, true);
	call = r.vq.call;
	r.vq.ready = true;
	r.vq.num = 4;
	r.vq.next_avail = r.vq.next_used = r.vq.signalled = 5;
	virtq_reset(&r.vq);
	CHECK(!virtq_mapped(&r.vq));
	CHECK(!r.vq.ready);
	CHECK_EQ(r.vq.num, RING);
	CHECK_EQ(r.vq.desc_gpa | r.vq.avail_gpa | r.vq.used_gpa, 0);
	CHECK_EQ(r.vq.next_avail | r.vq.next_used | r.vq.signalled, 0);
	CHECK_EQ(r.vq.call, call);
	ring_free(&r);
}

/* --- chains --- */

static void t_pop_order(void)
{
	struct ring r;

	ring_init(&r, false, false);
	CHECK_EQ(pop(&r), 0);
	r.desc[3] = (struct vring_desc){ DATA, 10, VRING_DESC_F_NEXT, 1 };
	r.desc[1] = (struct vring_desc){ DATA + 0x100, 20, VRING_DESC_F_NEXT, 7 };
	r.desc[7] = (struct vring_desc){ DATA + 0x200, 30, VRING_DESC_F_WRITE, 0 };
	make_available(&r, 3);
	REQUIRE(pop(&r) == 1);
	CHECK_EQ(r.chain.head, 3);
	CHECK_EQ(r.chain.nr_out, 2);
	CHECK_EQ(r.chain.nr_in, 1);
	CHECK_EQ(r.chain.out_len, 30);
	CHECK_EQ(r.chain.in_len, 30);
	CHECK(r.iov[0].iov_base == mem_ptr(&r.mem, DATA, 1) && r.iov[0].iov_len == 10);
	CHECK(r.iov[1].iov_base == mem_ptr(&r.mem, DATA + 0x100, 1) && r.iov[1].iov_len == 20);
	CHECK(r.iov[2].iov_base == mem_ptr(&r.mem, DATA + 0x200, 1) && r.iov[2].iov_len == 30);
	CHECK_EQ(pop(&r), 0);
	CHECK_EQ(r.vq.nr_chains, 1);
	ring_free(&r);
}

/* Popped chains that are given back come again, in the same order. */
static void t_unpop(void)
{
	struct ring r;

	ring_init(&r, false, false);
	for (u16 i = 0; i < 4; i++) {
		r.desc[i] = (struct vring_desc){ DATA, 1, 0, 0 };
		make_available(&r, (u16)(3 - i));
	}
	for (int i = 3; i >= 0; i--) {
		REQUIRE(pop(&r) == 1);
		CHECK_EQ(r.chain.head, i);
	}
	virtq_unpop(&r.vq, 3);
	for (int i = 2; i >= 0; i--) {
		REQUIRE(pop(&r) == 1);
		CHECK_EQ(r.chain.head, i);
	}
	CHECK_EQ(pop(&r), 0);
	CHECK_EQ(r.vq.nr_chains, 4);
	ring_free(&r);
}

/* Too many iovecs: nothing is taken, so that a caller with more room gets it. */
static void t_e2big(void)
{
	struct ring r;

	ring_init(&r, false, false);
	r.desc[0] = (struct vring_desc){ DATA, 1, VRING_DESC_F_NEXT, 1 };
	r.desc[1] = (struct vring_desc){ DATA, 1, VRING_DESC_F_NEXT, 2 };
	r.desc[2] = (struct vring_desc){ DATA, 1, VRING_DESC_F_WRITE, 0 };
	make_available(&r, 0);
	CHECK_EQ(virtq_pop(&r.vq, &r.chain, r.iov, 2), -E2BIG);
	CHECK_EQ(virtq_pop(&r.vq, &r.chain, r.iov, 0), -E2BIG);
	CHECK_EQ(r.vq.next_avail, 0);
	CHECK_EQ(virtq_pop(&r.vq, &r.chain, r.iov, 3), 1);
	ring_free(&r);
}

/* A buffer over two regions that touch is two iovecs; with span_limit each byte is one. */
static void t_spans(void)
{
	struct ring r;

	ring_init(&r, false, false);
	r.desc[0] = (struct vring_desc){ 64 * KiB - 10, 30, 0, 0 };
	make_available(&r, 0);
	REQUIRE(pop(&r) == 1);
	CHECK_EQ(r.chain.nr_out, 2);
	CHECK_EQ(r.iov[0].iov_len, 10);
	CHECK_EQ(r.iov[1].iov_len, 20);
	CHECK(r.iov[1].iov_base == mem_ptr(&r.mem, 64 * KiB, 1));
	virtq_unpop(&r.vq, 1);
	r.mem.span_limit = 1;
	REQUIRE(pop(&r) == 1);
	CHECK_EQ(r.chain.nr_out, 30);
	CHECK_EQ(r.chain.out_len, 30);
	ring_free(&r);
}

/* The last bytes of memory are as good as any (traps D6). */
static void t_last_bytes(void)
{
	struct ring r;

	ring_init(&r, false, false);
	r.desc[0] = (struct vring_desc){ 128 * KiB - 4096, 4096, 0, 0 };
	r.desc[1] = (struct vring_desc){ 128 * KiB - 4096, 4097, 0, 0 };
	make_available(&r, 0);
	make_available(&r, 1);
	CHECK_EQ(pop(&r), 1);
	CHECK_EQ(r.chain.out_len, 4096);
	CHECK_EQ(pop(&r), -EPROTO);
	ring_free(&r);
}

/* --- indirect tables --- */

static void put_table(struct ring *r, u64 gpa, const struct vring_desc *table, unsigned n)
{
	for (u64 i = 0; i < n * 16; i++) {
		u8 *p = mem_ptr(&r->mem, gpa + i, 1);

		REQUIRE(p);
		*p = ((const u8 *)table)[i];
	}
}

/* Anywhere: odd addresses, over a region's end, in single bytes. */
static void t_indirect_anywhere(void)
{
	static const u64 at[] = { DATA,          DATA + 1,     DATA + 7,     DATA + 8,
				  64 * KiB - 16, 64 * KiB - 8, 64 * KiB - 5, 128 * KiB - 32 };
	const struct vring_desc table[] = {
		{ DATA + 0x100, 5, VRING_DESC_F_NEXT, 1 },
		{ DATA + 0x200, 6, VRING_DESC_F_WRITE, 0 },
	};
	struct ring r;

	ring_init(&r, false, true);
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(at); i++) {
		u64 gpa = at[i / 2];

		r.mem.span_limit = i & 1 ? 1 : 0;
		put_table(&r, gpa, table, 2);
		r.desc[2] = (struct vring_desc){ gpa, 32, VRING_DESC_F_INDIRECT, 0 };
		make_available(&r, 2);
		REQUIRE(pop(&r) == 1);
		CHECK_EQ(r.chain.head, 2);
		CHECK_EQ(r.chain.out_len, 5);
		CHECK_EQ(r.chain.in_len, 6);
		CHECK(r.iov[0].iov_base == mem_ptr(&r.mem, DATA + 0x100, 1));
	}
	ring_free(&r);
}

/* Plain descriptors first, the table last (2.7.5.3.2); its WRITE flag says nothing (2.7.5.3.2). */
static void t_indirect_after_direct(void)
{
	const struct vring_desc table[] = { { DATA, 7, VRING_DESC_F_NEXT, 1 },
					    { DATA, 9, VRING_DESC_F_WRITE, 0 } };
	struct ring r;

	ring_init(&r, false, true);
	put_table(&r, DATA + 0x400, table, 2);
	r.desc[0] = (struct vring_desc){ DATA, 1, VRING_DESC_F_NEXT, 1 };
	r.desc[1] = (struct vring_desc){ DATA + 0x400, 32,
					 VRING_DESC_F_INDIRECT | VRING_DESC_F_WRITE, 0 };
	make_available(&r, 0);
	REQUIRE(pop(&r) == 1);
	CHECK_EQ(r.chain.out_len, 8);
	CHECK_EQ(r.chain.in_len, 9);
	ring_free(&r);
}

/* A table may be longer than the ring; only its own length limits the chain. */
static void t_indirect_longer_than_ring(void)
{
	struct vring_desc table[64];
	struct ring r;

	ring_init(&r, false, true);
	for (u16 i = 0; i < 64; i++)
		table[i] = (struct vring_desc){ DATA, 1, i < 63 ? VRING_DESC_F_NEXT : 0,
						(u16)(i + 1) };
	put_table(&r, DATA + 0x400, table, 64);
	r.desc[0] = (struct vring_desc){ DATA + 0x400, sizeof(table), VRING_DESC_F_INDIRECT, 0 };
	make_available(&r, 0);
	REQUIRE(pop(&r) == 1);
	CHECK_EQ(r.chain.nr_out, 64);
	ring_free(&r);
}

/* --- used ring and notifications --- */

static void t_publish_at_once(void)
{
	struct ring r;

	ring_init(&r, false, false);
	for (u16 i = 0; i < 3; i++) {
		r.desc[i] = (struct vring_desc){ DATA, 1, 0, 0 };
		make_available(&r, i);
		REQUIRE(pop(&r) == 1);
		virtq_push(&r.vq, i, 100u + i);
	}
	CHECK_EQ(r.used->idx, 0);
	CHECK(!signalled(&r));
	virtq_publish(&r.vq);
	CHECK_EQ(r.used->idx, 3);
	for (u16 i = 0; i < 3; i++) {
		CHECK_EQ(r.used->ring[i].id, i);
		CHECK_EQ(r.used->ring[i].len, 100 + i);
	}
	CHECK(signalled(&r));
	CHECK_EQ(r.vq.nr_signals, 1);
	virtq_publish(&r.vq);
	CHECK(!signalled(&r)); /* nothing new */
	ring_free(&r);
}

static void t_no_interrupt(void)
{
	struct ring r;

	ring_init(&r, false, false);
	r.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	virtq_push(&r.vq, 0, 0);
	virtq_publish(&r.vq);
	CHECK(!signalled(&r));
	r.avail->flags = 0;
	virtq_push(&r.vq, 0, 0);
	virtq_publish(&r.vq);
	CHECK(signalled(&r));
	ring_free(&r);
}

/* What 2.7.7.2 says, in words: signal when used_event is among the elements just published. */
static bool event_hit(u16 old, u16 next, u16 event)
{
	for (u16 i = old; i != next; i++)
		if (i == event)
			return true;
	return false;
}

/* All distances of the event, batches of 1 to RING, around the wrap of 16 bits. */
static void t_event_idx(void)
{
	struct ring r;
	u16 *event;

	ring_init(&r, true, false);
	event = &r.avail->ring[RING];
	virtq_push(&r.vq, 0, 0);
	virtq_publish(&r.vq);
	CHECK(signalled(&r)); /* the first one in any case */
	r.vq.next_used = r.vq.signalled = (u16)-20;
	for (int i = 0; i < 4000; i++) {
		u16 old = r.vq.next_used, batch = (u16)(1 + i % RING);

		*event = (u16)(old + i % 37 - 18);
		for (u16 n = 0; n < batch; n++)
			virtq_push(&r.vq, 0, 0);
		virtq_publish(&r.vq);
		CHECK_EQ(signalled(&r), event_hit(old, (u16)(old + batch), *event));
		if (i % 64 == 63)
			r.vq.next_used = r.vq.signalled = (u16)-20;
	}
	ring_free(&r);
}

/* Without EVENT_IDX the two bytes behind each ring are not ours (traps D10). */
static void t_canary(void)
{
	struct ring r;

	ring_init(&r, false, false);
	r.avail->ring[RING] = 0xbeef;
	memset(&r.used->ring[RING], 0xa5, 2);
	for (int i = 0; i < 20; i++) {
		r.desc[0] = (struct vring_desc){ DATA, 1, 0, 0 };
		make_available(&r, 0);
		virtq_kicks_off(&r.vq);
		REQUIRE(pop(&r) == 1);
		virtq_push(&r.vq, 0, 0);
		virtq_publish(&r.vq);
		CHECK(!virtq_kicks_on(&r.vq));
	}
	CHECK_EQ(r.avail->ring[RING], 0xbeef);
	CHECK_EQ(*(u16 *)(void *)&r.used->ring[RING], 0xa5a5);
	ring_free(&r);
}

static void t_kicks(void)
{
	for (int event_idx = 0; event_idx < 2; event_idx++) {
		struct ring r;
		u16 *avail_event;

		ring_init(&r, event_idx, false);
		avail_event = (u16 *)(void *)&r.used->ring[RING];
		virtq_kicks_off(&r.vq);
		CHECK_EQ(r.used->flags, event_idx ? 0 : VRING_USED_F_NO_NOTIFY);
		CHECK(!virtq_kicks_on(&r.vq));
		CHECK_EQ(r.used->flags, 0);
		r.desc[0] = (struct vring_desc){ DATA, 1, 0, 0 };
		make_available(&r, 0);
		CHECK(virtq_kicks_on(&r.vq)); /* it came meanwhile */
		REQUIRE(pop(&r) == 1);
		CHECK(!virtq_kicks_on(&r.vq));
		if (event_idx)
			CHECK_EQ(*avail_event, 1);
		ring_free(&r);
	}
}

/* Another backend moved on: the used position comes from the ring, and the next publish signals. */
static void t_resume(void)
{
	struct ring r;

	ring_init(&r, true, false);
	r.used->idx = 0xfffe;
	r.avail->idx = r.vq.next_avail = 0xfffe;
	virtq_resume(&r.vq);
	CHECK_EQ(r.vq.next_used, 0xfffe);
	r.desc[0] = (struct vring_desc){ DATA, 1, 0, 0 };
	r.avail->ring[RING] = 0x8000; /* an event that is far away */
	for (int i = 0; i < 4; i++) {
		make_available(&r, 0);
		REQUIRE(pop(&r) == 1);
		virtq_push(&r.vq, 0, 0);
		virtq_publish(&r.vq);
		CHECK_EQ(signalled(&r), i == 0);
	}
	CHECK_EQ(r.used->idx, 2);
	ring_free(&r);
}

/* A counter of 2^64 - 2 signals does not block us. */
static void t_signal_full(void)
{
	struct ring r;
	u64 most = UINT64_MAX - 1;

	ring_init(&r, false, false);
	REQUIRE(write(r.vq.call, &most, sizeof(most)) == sizeof(most));
	virtq_signal(&r.vq);
	CHECK(signalled(&r));
	ring_free(&r);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_map_checks), T(t_map_event_idx_room), T(t_reset),
		       T(t_pop_order), T(t_unpop), T(t_e2big), T(t_spans), T(t_last_bytes),
		       T(t_indirect_anywhere), T(t_indirect_after_direct),
		       T(t_indirect_longer_than_ring), T(t_publish_at_once), T(t_no_interrupt),
		       T(t_event_idx), T(t_canary), T(t_kicks), T(t_resume), T(t_signal_full));
}
