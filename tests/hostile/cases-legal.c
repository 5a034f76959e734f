// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings that only look as if they broke a rule of split virtqueues (virtio 1.3 2.7), and rules of
 * kicks and interrupts that have to hold for whatever the guest writes around them.
 *
 * Theory of operation: hostile.h. The chains go through the driver's own code and are changed
 * before they are published, so that the answer can be compared: all of these have to be served.
 */
#include "hostile.h"

#define LOW_END  (FAKE_RAM_MID + FAKE_RAM_SIZE) /* here a hole begins */
#define HIGH_END (FAKE_RAM_HIGH + FAKE_HIGH_SIZE)
#define TABLE    (r->data + 0xc000)
#define U64_END  (~0ULL)

/* --- layouts: 2.7.4.2, 2.7.5 --- */

/* Pieces of c->a bytes: any layout is right (2.7.4.2). */
static void pieces(struct rig *r)
{
	struct fake_seg s[MAX_SEGS];

	serve(r, s, shape(r, s, (u32)r->c->a));
	serve(r, s, shape(r, s, (u32)r->c->a));
}

/* A chain of exactly the ring's size, without indirect tables. */
static void exact_size(struct rig *r)
{
	struct fake_seg s[MAX_SEGS];
	unsigned n = shape(r, s, 16);

	for (; n < r->vq->size; n++)
		s[n] = (struct fake_seg){ r->data, 0, s[n - 1].write };
	WANT_EQ(n, r->vq->size);
	serve(r, s, n);
}

/* An empty descriptor before (0), in the middle of (1), or behind (2) the good ones. */
static void zero_length(struct rig *r)
{
	struct fake_seg s[MAX_SEGS], t[MAX_SEGS];
	unsigned n = shape(r, t, 8), at = r->c->a == 0 ? 0 : r->c->a == 1 ? n / 2 : n;

	memcpy(s, t, at * sizeof(s[0]));
	memcpy(s + at + 1, t + at, (n - at) * sizeof(s[0]));
	s[at] = (struct fake_seg){ r->c->b, 0, at ? t[at - 1].write : t[0].write };
	serve(r, s, n + 1);
}

static void nothing_at_all(struct rig *r)
{
	u16 from = guest_load(&r->vq->used->idx);

	put(r, 0, r->data, 0, dir(r), 0);
	head(r, 0);
	go(r);
	if (r->c->verdict == PASS)
		WANT(used_moved(r, from, 1));
	skip_used(r);
}

/* The good request's first buffer at address c->a, with the rest behind it. */
static void buffer_at(struct rig *r)
{
	struct fake_seg s[4];
	unsigned n = shape(r, s, 0);

	s[0].gpa = r->c->a - (r->c->b ? s[0].len : 0); /* b: that is where it ends */
	serve(r, s, n);
}

static void buffer_across(struct rig *r)
{
	struct fake_seg s[4];
	unsigned n = shape(r, s, 0);

	s[0].gpa = FAKE_RAM_MID - s[0].len / 2;
	serve(r, s, n);
}

/* Moves the indirect table of a good request to @to. */
static void serve_with_table_at(struct rig *r, u64 to, unsigned flags)
{
	struct fake_seg s[MAX_SEGS];
	unsigned n = shape(r, s, 8);
	int h = lay(r, s, n);

	if (h < 0)
		return;
	WANT(r->vq->desc[h].flags & INDIRECT);
	for (unsigned i = 0; i < n; i++) {
		struct vring_desc d;

		memcpy(&d, fake_ptr(r->drv, r->vq->desc[h].addr + 16 * i, 16), 16);
		put_table(r, to, i, d.addr, d.len, d.flags, d.next);
	}
	r->vq->desc[h].addr = to;
	r->vq->desc[h].flags |= (u16)flags;
	finish(r, s, n);
}

static void table_anywhere(struct rig *r)
{
	struct fake_seg s[MAX_SEGS];
	u64 n = shape(r, s, 8);

	switch (r->c->a) {
	case 0: serve_with_table_at(r, TABLE + r->c->b, 0); break;
	case 1: serve_with_table_at(r, FAKE_RAM_MID - 8, 0); break;
	case 2: serve_with_table_at(r, LOW_END - 16 * n, 0); break;
	case 3: serve_with_table_at(r, HIGH_END - 16 * n, 0); break;
	default: serve_with_table_at(r, TABLE, WRITE); break; /* which means nothing there */
	}
}

/* Descriptors of the ring, and a table as the last one. */
static void direct_then_table(struct rig *r)
{
	struct fake_seg s[MAX_SEGS];
	unsigned n = shape(r, s, 8);
	int h = lay(r, s, n);
	u16 first = (u16)((h + 3) % 8);
	struct vring_desc d;

	if (h < 0)
		return;
	memcpy(&d, fake_ptr(r->drv, r->vq->desc[h].addr, 16), 16);
	r->vq->desc[first] =
		(struct vring_desc){ r->vq->desc[h].addr + 16, (n - 1) * 16, INDIRECT, 0 };
	/* what was entry i of the table is now i - 1 */
	for (unsigned i = 1; i < n; i++) {
		struct vring_desc *e = fake_ptr(r->drv, r->vq->desc[first].addr + 16 * (i - 1), 16);

		e->next = (u16)i;
	}
	d.flags |= NEXT;
	d.next = first;
	r->vq->desc[h] = d;
	finish(r, s, n);
}

static void same_head(struct rig *r)
{
	struct fake_seg s[4];
	u16 from = guest_load(&r->vq->used->idx);
	unsigned n = shape(r, s, 0);
	int h = lay(r, s, n);

	for (u16 i = 1; i < 8; i++)
		head(r, (u16)h);
	finish(r, s, n);
	if (!(r->target & RX))
		WANT(used_moved(r, from, 8));
	skip_used(r);
}

static void shared_buffers(struct rig *r)
{
	struct fake_seg s[4];

	for (int i = 0; i < 6; i++)
		WANT(lay(r, s, shape(r, s, 0)) >= 0 || i > 2);
	finish(r, s, shape(r, s, 0));
	rig_settle(r);
	skip_used(r);
}

static void unknown_flags(struct rig *r)
{
	struct fake_seg s[MAX_SEGS];
	unsigned n = shape(r, s, 0);
	int h = lay(r, s, n);

	r->vq->desc[h].flags |= (u16)r->c->a;
	finish(r, s, n);
}

/* The next field counts only with NEXT. */
static void next_without_flag(struct rig *r)
{
	struct fake_seg s[MAX_SEGS];
	unsigned n = shape(r, s, 0);

	lay(r, s, n);
	for (u16 i = 0; i < r->vq->size; i++)
		if (!(r->vq->desc[i].flags & NEXT))
			r->vq->desc[i].next = 0xffff;
	finish(r, s, n);
}

static void change_before_kick(struct rig *r)
{
	struct fake_seg s[MAX_SEGS];
	unsigned n = shape(r, s, 0);
	int h = lay(r, s, n);
	u64 addr = r->vq->desc[h].addr;

	r->vq->desc[h].addr = 0xdead00000000;
	rig_settle(r);
	r->vq->desc[h].addr = addr;
	finish(r, s, n);
}

/* --- kicks --- */

static void kick_for_nothing(struct rig *r)
{
	u16 from = guest_load(&r->vq->used->idx);

	for (u64 i = 0; i < r->c->a; i++)
		fake_vq_ring(r->vq);
	rig_settle(r);
	WANT_EQ(guest_load(&r->vq->used->idx), from);
	good(r);
	for (u64 i = 0; i < r->c->a; i++)
		fake_vq_ring(r->vq);
	rig_settle(r);
	WANT_EQ(guest_load(&r->vq->used->idx), (u16)(from + 1));
}

static void not_published(struct rig *r)
{
	struct fake_seg s[MAX_SEGS];
	unsigned n = shape(r, s, 0);
	u16 from = guest_load(&r->vq->used->idx);

	lay(r, s, n);
	fake_vq_ring(r->vq);
	rig_settle(r);
	WANT_EQ(guest_load(&r->vq->used->idx), from);
	finish(r, s, n);
}

static void fill_the_ring(struct rig *r)
{
	struct fake_seg s[MAX_SEGS];
	u16 from = guest_load(&r->vq->used->idx), n = 0;

	fake_vq_irq_on(r->vq);
	while (fake_vq_add(r->vq, s, shape(r, s, 0), r) >= 0)
		n++;
	WANT(n > 2);
	for (u16 i = 0; i < n && r->target & RX; i++)
		go(r);
	go(r);
	WANT(used_moved(r, from, n));
	for (u16 i = 0; i < n; i++)
		WANT(fake_vq_get(r->vq, NULL) == r);
}

static void two_batches(struct rig *r)
{
	for (int i = 0; i < 2; i++)
		fill_the_ring(r);
}

static void many_requests(struct rig *r)
{
	for (u64 i = 0; i < r->c->a; i++)
		good(r);
}

/* The 16-bit indices wrap: runts are dropped and come back, commands are answered. */
static void idx_wraps(struct rig *r)
{
	struct fake_seg s[4];

	for (u32 done = 0; done < 70000 && !hostile_failed;) {
		u16 from = guest_load(&r->vq->used->idx), n = 0;
		unsigned nr = shape(r, s, 0);

		if (r->target & TX)
			s[0].len = 12;
		while (fake_vq_add(r->vq, s, nr, r) >= 0)
			n++;
		fake_vq_publish(r->vq);
		fake_vq_ring(r->vq);
		WANT(used_moved(r, from, n));
		for (u16 i = 0; i < n; i++)
			WANT(fake_vq_get(r->vq, NULL) == r);
		done += n;
	}
	WANT_EQ(r->vq->errors, 0);
}

static void ring_of(struct rig *r)
{
	r->vq->size = (u16)r->c->a;
	rig_restart(r);
	for (int i = 0; i < 20; i++)
		good(r);
	WANT_EQ(qreg(r, r->vq->index, VP_QSIZE, 2), r->c->a);
	round_trip(r);
}

/* --- what the guest writes where it should not, or may --- */

static void avail_flags(struct rig *r)
{
	guest_store(&r->vq->avail->flags, (u16)r->c->a);
	good(r);
	good(r);
}

/* An event index that makes no sense: the device goes on, whatever it signals (2.7.10). */
static void used_event(struct rig *r)
{
	for (int i = 0; i < 20; i++) {
		guest_store(&r->vq->avail->ring[r->vq->size], (u16)(r->vq->last_used + r->c->a));
		good(r);
	}
}

/* The device does not read back what it wrote into the used ring. */
static void used_ring_written(struct rig *r)
{
	struct vring_used *u = r->vq->used;
	struct fake_seg s[4];
	unsigned n = shape(r, s, 0);
	u16 idx = guest_load(&u->idx);

	if (r->c->a == 0)
		guest_store(&u->flags, 0xffff);
	else if (r->c->a == 1)
		guest_store(&u->idx, (u16)(idx + r->c->b));
	else if (r->c->a == 2)
		guest_scribble(u->ring, 0xff, 8 * 8);
	else
		guest_store((u16 *)(void *)&u->ring[r->vq->size], (u16)r->c->b);
	rig_settle(r);
	lay(r, s, n);
	go(r);
	WANT(used_moved(r, idx, 1));
	finish(r, s, n);
	good(r);
}

/* Without EVENT_IDX the two bytes behind each ring are not the device's. */
static void canaries(struct rig *r)
{
	u16 *avail = &r->vq->avail->ring[r->vq->size];
	u16 *used = (u16 *)(void *)&r->vq->used->ring[r->vq->size];

	*avail = 0x1234;
	*used = 0x5678;
	for (int i = 0; i < 20; i++)
		good(r);
	WANT_EQ(*avail, 0x1234);
	WANT_EQ(*used, 0x5678);
}

/* Of used->flags only NO_NOTIFY is the device's to set. */
static void used_flags(struct rig *r)
{
	for (int i = 0; i < 10; i++) {
		good(r);
		WANT_EQ(guest_load(&r->vq->used->flags) & ~VRING_USED_F_NO_NOTIFY, 0);
	}
}

/* --- interrupts: 2.7.7 --- */

static void settle_irqs(struct rig *r)
{
	good(r);
	rig_settle(r);
	fake_vq_irqs(r->vq);
}

static void no_interrupt(struct rig *r)
{
	settle_irqs(r);
	fake_vq_irq_off(r->vq);
	for (int i = 0; i < 5; i++)
		good(r);
	rig_settle(r);
	WANT_EQ(fake_vq_irqs(r->vq), 0);
	fake_vq_irq_on(r->vq);
	good(r);
	WANT(RIG_WAIT(r, fake_vq_irqs(r->vq) == 1));
}

/* One interrupt when the used index passes used_event, c->a requests from now, none before. */
static void exact_event(struct rig *r)
{
	settle_irqs(r);
	for (int round = 0; round < 3; round++) {
		guest_store(&r->vq->avail->ring[r->vq->size], (u16)(r->vq->last_used + r->c->a));
		for (u64 i = 0; i < r->c->a; i++)
			good(r);
		rig_settle(r);
		WANT_EQ(fake_vq_irqs(r->vq), 0);
		good(r);
		WANT(RIG_WAIT(r, fake_vq_irqs(r->vq) == 1));
	}
}

/* The ISR's queue bit comes with a used buffer, and reading clears it (4.1.4.5). */
static void isr_bit(struct rig *r)
{
	settle_irqs(r);
	fake_isr_read(r->drv);
	fake_vq_irq_on(r->vq);
	good(r);
	WANT(RIG_WAIT(r, fake_isr_read(r->drv) & VIRTIO_ISR_QUEUE));
	WANT_EQ(fake_isr_read(r->drv), 0);
	fake_vq_irq_off(r->vq);
	good(r);
	rig_settle(r);
	WANT_EQ(fake_isr_read(r->drv), 0);
}

static void two_queues_at_once(struct rig *r)
{
	for (int i = 0; i < 20; i++)
		round_trip(r);
}

static const struct hostile_case cases[] = {
	/* layouts */
	{ "pieces_of_1", pieces, PASS, ALL & ~VHOST_RX, 0, 4 },
	{ "pieces_of_3_memory_of_3", pieces, PASS, ALL, SPANS, 16 },
	{ "pieces_of_7", pieces, PASS, ALL, 0, 7 },
	{ "pieces_of_11", pieces, PASS, ALL, 0, 11 },
	{ "pieces_of_16_direct", pieces, PASS, ALL, NO_INDIRECT, 16 },
	{ "pieces_plain", pieces, PASS, ALL, PLAIN, 30 },
	{ "chain_of_exact_size", exact_size, PASS, ALL, PLAIN },
	{ "chain_longer_than_ring_in_table", pieces, PASS, ALL, 0, 2 },
	{ "zero_len_first", zero_length, PASS, ALL, 0, 0, 4096 },
	{ "zero_len_middle", zero_length, PASS, ALL, 0, 1, 4096 },
	{ "zero_len_last", zero_length, PASS, ALL, 0, 2, 4096 },
	{ "zero_len_nowhere", zero_length, PASS, ALL, 0, 1, 0xdead00000000 },
	{ "zero_len_at_max", zero_length, PASS, ALL, 0, 2, U64_END },
	{ "zero_len_only", nothing_at_all, PASS, ECHO | TX },
	{ "zero_len_only", nothing_at_all, REFUSED, RX | NET_CTRL },
	{ "buffer_at_zero", buffer_at, PASS, ALL, 0, 0, 0 },
	{ "buffer_ends_low_ram", buffer_at, PASS, ALL, 0, LOW_END, 1 },
	{ "buffer_ends_high_ram", buffer_at, PASS, ALL, 0, HIGH_END, 1 },
	{ "buffer_begins_high_ram", buffer_at, PASS, ALL, 0, FAKE_RAM_HIGH, 0 },
	{ "buffer_across_regions", buffer_across, PASS, ALL },
	{ "buffer_across_regions_pieces", buffer_across, PASS, ALL, SPANS },
	{ "table_at_odd_address", table_anywhere, PASS, ALL, 0, 0, 1 },
	{ "table_at_8", table_anywhere, PASS, ALL, 0, 0, 8 },
	{ "table_across_regions", table_anywhere, PASS, ALL, 0, 1 },
	{ "table_ends_low_ram", table_anywhere, PASS, ALL, 0, 2 },
	{ "table_ends_high_ram", table_anywhere, PASS, ALL, 0, 3 },
	{ "table_in_pieces", table_anywhere, PASS, ALL, SPANS, 0, 2 },
	{ "table_and_write", table_anywhere, PASS, ALL, 0, 4 },
	{ "direct_then_table", direct_then_table, PASS, ALL },
	{ "same_head_eight_times", same_head, PASS, ALL, NO_INDIRECT },
	{ "shared_buffers", shared_buffers, PASS, ALL },
	{ "unknown_desc_flags", unknown_flags, PASS, ALL, PLAIN, 0xfff8 },
	{ "next_without_flag", next_without_flag, PASS, ALL, PLAIN },
	{ "change_before_kick", change_before_kick, PASS, ALL },

	/* kicks */
	{ "kick_empty_ring", kick_for_nothing, PASS, ALL, 0, 1 },
	{ "kick_storm", kick_for_nothing, PASS, ALL, 0, 2000 },
	{ "kick_storm_exits", kick_for_nothing, PASS, ALL, SLOW_BELL, 500 },
	{ "kick_mem_doorbell", kick_for_nothing, PASS, ALL, MEM_BELL, 10 },
	{ "kick_not_published", not_published, PASS, ALL },
	{ "fill_the_ring", fill_the_ring, PASS, ALL },
	{ "fill_the_ring_large", fill_the_ring, PASS, ALL & ~RX, LARGE },
	{ "two_batches", two_batches, PASS, ALL, NO_EVENT },
	{ "many_requests", many_requests, PASS, ALL, 0, 100 },
	{ "idx_wraps_64k", idx_wraps, PASS, ECHO | TX | NET_CTRL, LARGE | NO_INDIRECT },
	{ "idx_wraps_64k_no_event", idx_wraps, PASS, ECHO | NET_TX, LARGE | PLAIN },
	{ "ring_of_1", ring_of, PASS, TX | RX, 0, 1 },
	{ "ring_of_2", ring_of, PASS, ALL, PLAIN, 2 },
	{ "ring_of_4_high", ring_of, PASS, ALL, RINGS_UP, 4 },
	{ "two_queues_at_once", two_queues_at_once, PASS, ALL },

	/* written where the guest should not, or may */
	{ "avail_flags_unknown", avail_flags, PASS, ALL, 0, 0xfffe },
	{ "avail_flags_all", avail_flags, PASS, ALL, NO_EVENT, 0xffff },
	{ "used_event_far", used_event, PASS, ALL, 0, 0x8000 },
	{ "used_event_ffff", used_event, PASS, ALL, 0, 0xffff },
	{ "used_event_past_ring", used_event, PASS, ALL, 0, 9 },
	{ "used_flags_written", used_ring_written, PASS, ALL, NO_EVENT, 0 },
	{ "used_idx_written", used_ring_written, PASS, ALL, 0, 1, 1000 },
	{ "used_idx_written_back", used_ring_written, PASS, ALL, 0, 1, 0xffff },
	{ "used_ring_written", used_ring_written, PASS, ALL, 0, 2 },
	{ "avail_event_written", used_ring_written, PASS, ALL, 0, 3, 0x8000 },
	{ "canaries_without_event_idx", canaries, PASS, ALL, NO_EVENT },
	{ "used_flags_known", used_flags, PASS, ALL, NO_EVENT },

	/* interrupts */
	{ "no_interrupt_flag", no_interrupt, PASS, ALL, NO_EVENT },
	{ "no_interrupt_event", no_interrupt, PASS, ALL },
	{ "used_event_exact_1", exact_event, PASS, ALL, 0, 1 },
	{ "used_event_exact_5", exact_event, PASS, ALL, 0, 5 },
	{ "isr_bit_intx", isr_bit, PASS, ALL, INTX },
	{ "isr_bit_intx_no_event", isr_bit, PASS, ALL, INTX | NO_EVENT },
};

const struct hostile_group legal_group = { "legal", cases, ARRAY_SIZE(cases) };
