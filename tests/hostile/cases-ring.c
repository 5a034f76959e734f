// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings that break the rules of split virtqueues (virtio 1.3 2.7), and rings that only look as if
 * they did. Traps D4 to D10.
 *
 * Theory of operation: hostile.h. A malformed chain is laid out by hand in the target queue's
 * table; what is legal goes through the driver's own code, so that the answer can be compared.
 */
#include "hostile.h"

#define LOW_END  (FAKE_RAM_MID + FAKE_RAM_SIZE) /* here a hole begins */
#define HIGH_END (FAKE_RAM_HIGH + FAKE_HIGH_SIZE)
#define TABLE    (r->data + 0xc000)
#define U64_END  (~0ULL)

/* --- loops and indices: 2.7.5.1, 2.7.13 --- */

/* A chain of a.len descriptors from 0 on; the last one's next is c->b. */
static void chain_to(struct rig *r)
{
	u16 n = (u16)r->c->a;

	for (u16 i = 0; i < n; i++)
		put(r, i, r->data + i, 1, NEXT | dir(r), i + 1 == n ? (u16)r->c->b : (u16)(i + 1));
	head(r, 0);
	go(r);
}

static void empty_loop(struct rig *r)
{
	put(r, 0, 0, 0, NEXT | dir(r), 0);
	head(r, 0);
	go(r);
}

static void head_is(struct rig *r)
{
	head(r, (u16)r->c->a);
	go(r);
}

static void heads_all_bad(struct rig *r)
{
	for (u16 i = 0; i < r->vq->size; i++)
		head(r, (u16)(r->vq->size + i * 111));
	go(r);
}

/* The directions of a chain of four, a bit each: 1 = the device writes. */
static void directions(struct rig *r)
{
	for (u16 i = 0; i < 4; i++)
		put(r, i, r->data + 64u * i, 32,
		    (r->c->a >> i & 1 ? WRITE : 0) | (i < 3 ? NEXT : 0), (u16)(i + 1));
	head(r, 0);
	go(r);
}

/* --- addresses: 2.7.5, 2.7.13.1 --- */

/* One buffer at c->a with c->b bytes. */
static void buffer(struct rig *r)
{
	put(r, 0, r->c->a, (u32)r->c->b, dir(r), 0);
	head(r, 0);
	go(r);
}

/* The same as the last of three, behind good ones. */
static void buffer_last(struct rig *r)
{
	put(r, 0, r->data, 16, NEXT | dir(r), 1);
	put(r, 1, r->data + 16, 16, NEXT | dir(r), 2);
	put(r, 2, r->c->a, (u32)r->c->b, dir(r), 0);
	head(r, 0);
	go(r);
}

static void buffer_first(struct rig *r)
{
	put(r, 0, r->c->a, (u32)r->c->b, NEXT | dir(r), 1);
	put(r, 1, r->data, 16, dir(r), 0);
	head(r, 0);
	go(r);
}

static void buffer_in_register(struct rig *r)
{
	const u64 at[] = { r->drv->common, r->drv->isr, r->drv->msix_table, r->drv->config };

	put(r, 0, at[r->c->a], 4, dir(r), 0);
	head(r, 0);
	go(r);
}

static void all_ones(struct rig *r)
{
	for (u16 i = 0; i < r->vq->size; i++)
		put(r, i, UINT64_MAX, UINT32_MAX, 0xffff, 0xffff);
	head(r, 0);
	go(r);
}

static void many_huge(struct rig *r)
{
	for (u16 i = 0; i < 8; i++)
		put(r, i, r->data, 0xffffffff, dir(r) | (i < 7 ? NEXT : 0), (u16)(i + 1));
	head(r, 0);
	go(r);
}

/* More than 4 GiB in all, each piece in memory (2.7.5.2). */
static void total_over_4g(struct rig *r)
{
	for (unsigned i = 0; i < 160; i++)
		put_table(r, TABLE, i, FAKE_RAM_HIGH, (u32)FAKE_HIGH_SIZE,
			  dir(r) | (i < 159 ? NEXT : 0), (u16)(i + 1));
	put(r, 0, TABLE, 160 * 16, INDIRECT, 0);
	head(r, 0);
	go(r);
	skip_used(r);
}

/* --- the available index: 2.7.6 --- */

static void idx_moves(struct rig *r)
{
	good(r);
	good(r);
	r->vq->avail_idx = (u16)(r->vq->avail_idx + r->c->a);
	go(r);
}

/* --- indirect tables: 2.7.5.3 --- */

static void table_of(struct rig *r, u64 gpa, u32 len, unsigned flags)
{
	put(r, 0, gpa, len, INDIRECT | flags, 1);
	put(r, 1, r->data, 1, dir(r), 0);
	head(r, 0);
	go(r);
}

/* A good table with one buffer, whose length c->a and flags c->b are not. */
static void table(struct rig *r)
{
	put_table(r, TABLE, 0, r->data, 16, dir(r), 0);
	put_table(r, TABLE, 1, r->data + 16, 16, dir(r), 0);
	table_of(r, TABLE, (u32)r->c->a, (unsigned)r->c->b);
}

static void table_at(struct rig *r)
{
	table_of(r, r->c->a, (u32)r->c->b, 0);
}

static void table_in_bar(struct rig *r)
{
	table_of(r, r->drv->common, 16, 0);
}

/* The table's only entry has the flags c->a and names itself, or a table, or memory. */
static void table_nested(struct rig *r)
{
	u64 inner = r->c->b ? TABLE : TABLE + 64;

	put_table(r, TABLE, 0, inner, 16, (unsigned)r->c->a, 1);
	put_table(r, TABLE + 64, 0, r->data, 16, dir(r), 0);
	table_of(r, TABLE, 16, 0);
}

/* Entry 0 goes on at c->a, entry 1 at c->b; the table has two. */
static void table_next(struct rig *r)
{
	put_table(r, TABLE, 0, r->data, 1, NEXT | dir(r), (u16)r->c->a);
	put_table(r, TABLE, 1, r->data, 1, NEXT | dir(r), (u16)r->c->b);
	table_of(r, TABLE, 32, 0);
}

static void table_half_in_hole(struct rig *r)
{
	put_table(r, LOW_END - 16, 0, r->data, 16, NEXT | dir(r), 1);
	table_of(r, LOW_END - 16, 32, 0);
}

static void table_entry_torn(struct rig *r)
{
	put_table(r, LOW_END - 24, 0, r->data, 16, NEXT | dir(r), 1);
	table_of(r, LOW_END - 24, 32, 0);
}

static void table_bad_buffer(struct rig *r)
{
	put_table(r, TABLE, 0, r->data, 16, NEXT | dir(r), 1);
	put_table(r, TABLE, 1, r->c->a, (u32)r->c->b, dir(r), 0);
	table_of(r, TABLE, 32, 0);
}

static void table_directions(struct rig *r)
{
	put_table(r, TABLE, 0, r->data, 16, NEXT | WRITE, 1);
	put_table(r, TABLE, 1, r->data + 16, 16, 0, 0);
	table_of(r, TABLE, 32, 0);
}

static void two_tables(struct rig *r)
{
	put_table(r, TABLE, 0, r->data, 16, dir(r), 0);
	put(r, 0, TABLE, 16, INDIRECT | NEXT, 1);
	put(r, 1, TABLE, 16, INDIRECT, 0);
	head(r, 0);
	go(r);
}

static void table_after_writable(struct rig *r)
{
	put_table(r, TABLE, 0, r->data, 16, 0, 0);
	put(r, 0, r->data, 16, WRITE | NEXT, 1);
	put(r, 1, TABLE, 16, INDIRECT, 0);
	head(r, 0);
	go(r);
}

/* 65536 entries are the most that next can reach; here they say nothing. */
static void table_of_nothing(struct rig *r)
{
	u64 gpa = fake_alloc_high(r->drv, MiB, 16);

	for (unsigned i = 0; i < 65536; i++) {
		struct vring_desc *d = fake_ptr(r->drv, gpa + 16ULL * i, 16);

		*d = (struct vring_desc){ 0, 0, (u16)(dir(r) | (i < 65535 ? NEXT : 0)),
					  (u16)(i + 1) };
	}
	put(r, 0, gpa, MiB, INDIRECT, 0);
	head(r, 0);
	go(r);
	skip_used(r);
}

/* More buffers than a system call takes at once. */
static void table_of_2000(struct rig *r)
{
	for (unsigned i = 0; i < 2000; i++)
		put_table(r, r->data, i, r->data + 0x8000 + i, 1, dir(r) | (i < 1999 ? NEXT : 0),
			  (u16)(i + 1));
	table_of(r, r->data, 2000 * 16, 0);
}

/* --- rings on top of other things --- */

static void aliases(struct rig *r)
{
	const u64 at[] = { r->vq->desc_gpa, r->vq->avail_gpa, r->vq->used_gpa };

	r->no_irq = true;
	put(r, 0, at[r->c->a], (u32)r->c->b, dir(r), 0);
	head(r, 0);
	go(r);
	skip_used(r);
	r->down = true;
}

static void table_is_the_ring(struct rig *r)
{
	put(r, 0, r->vq->desc_gpa, 16 * 8, INDIRECT, 0);
	head(r, 0);
	go(r);
}

/* All three parts at the same address, with a pattern of c->a in it. */
static void one_place(struct rig *r)
{
	u16 *p = fake_ptr(r->drv, r->data, 4096);

	r->no_irq = true;
	rig_negotiate(r);
	qreg_set(r, r->vq->index, VP_QDESC, 8, r->data);
	qreg_set(r, r->vq->index, VP_QAVAIL, 8, r->data + r->c->b);
	qreg_set(r, r->vq->index, VP_QUSED, 8, r->data + 2 * r->c->b);
	qreg_set(r, r->vq->index, VP_QENABLE, 2, 1);
	for (unsigned i = 0; i < 2048; i++)
		p[i] = (u16)(i * r->c->a);
	fake_driver_start(r->drv);
	fake_vq_ring(r->vq);
	rig_settle(r);
	r->down = true;
}

static u32 noise(u32 *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

/* Random bytes in the table, the available or the used ring, for a while; seed c->a. */
static void ring_noise(struct rig *r)
{
	u8 *part[] = { (u8 *)r->vq->desc, (u8 *)r->vq->avail, (u8 *)r->vq->used };
	const unsigned len[] = { 128, 22, 70 };
	u32 x = (u32)r->c->a;

	r->no_irq = true;
	for (int round = 0; round < 200; round++) {
		for (int n = 0; n < 20; n++) {
			u32 v = noise(&x);

			guest_scribble(&part[r->c->b][(v >> 8) % len[r->c->b]], (u8)(v & noise(&x)),
				       1);
		}
		guest_copy(&r->vq->desc[round % 8].addr, &r->data, 8);
		head(r, (u16)(round % 8));
		fake_vq_publish(r->vq);
		fake_vq_ring(r->vq);
		rig_run(r);
		if (rig_broken(r))
			rig_restart(r);
	}
	r->down = true;
}

static const struct hostile_case cases[] = {
	/* loops and indices */
	{ "desc_self_loop", chain_to, REFUSED, ALL, NO_INDIRECT, 1, 0 },
	{ "desc_self_loop_indirect_on", chain_to, REFUSED, ALL, 0, 1, 0 },
	{ "desc_two_cycle", chain_to, REFUSED, ALL, 0, 2, 0 },
	{ "desc_loop_of_all", chain_to, REFUSED, ALL, 0, 8, 0 },
	{ "desc_loop_into_middle", chain_to, REFUSED, ALL, 0, 8, 3 },
	{ "desc_chain_size_plus_one", chain_to, REFUSED, ALL, PLAIN, 8, 7 },
	{ "desc_empty_loop", empty_loop, REFUSED, ALL },
	{ "desc_next_is_size", chain_to, REFUSED, ALL, 0, 1, 8 },
	{ "desc_next_is_size_late", chain_to, REFUSED, ALL, 0, 7, 8 },
	{ "desc_next_is_8000", chain_to, REFUSED, ALL, 0, 1, 0x8000 },
	{ "desc_next_is_ffff", chain_to, REFUSED, ALL, 0, 1, 0xffff },
	{ "head_is_size", head_is, REFUSED, ALL, 0, 8 },
	{ "head_is_size_plus_one", head_is, REFUSED, ALL, 0, 9 },
	{ "head_is_8000", head_is, REFUSED, ALL, 0, 0x8000 },
	{ "head_is_ffff", head_is, REFUSED, ALL, 0, 0xffff },
	{ "heads_all_bad", heads_all_bad, REFUSED, ALL },
	{ "read_after_write", directions, REFUSED, ALL, 0, 1 },
	{ "directions_alternate", directions, REFUSED, ALL, 0, 5 },
	{ "directions_wrong_way_round", directions, REFUSED, ALL, 0, 3 },
	{ "tx_writable_last", directions, REFUSED, TX, 0, 8 },
	{ "tx_writable_only", directions, REFUSED, TX, 0, 15 },
	{ "rx_readable_first", directions, REFUSED, RX, 0, 14 },
	{ "rx_readable_only", directions, REFUSED, RX, 0, 0 },
	{ "ctrl_no_writable", directions, REFUSED, NET_CTRL, 0, 0 },

	/* addresses */
	{ "addr_beyond_ram", buffer, REFUSED, ALL, 0, 0xdead00000000, 16 },
	{ "addr_just_beyond_ram", buffer, REFUSED, ALL, 0, HIGH_END, 1 },
	{ "addr_in_hole", buffer, REFUSED, ALL, 0, 3 * GiB, 16 },
	{ "addr_at_hole", buffer, REFUSED, ALL, 0, LOW_END, 1 },
	{ "addr_in_ecam", buffer, REFUSED, ALL, 0, FAKE_ECAM, 64 },
	{ "addr_in_mmio_window", buffer, REFUSED, ALL, 0, FAKE_MMIO + FAKE_MMIO_SIZE - 16, 16 },
	{ "addr_lapic", buffer, REFUSED, ALL, 0, 0xfee00000, 4 },
	{ "addr_ioapic", buffer, REFUSED, ALL, 0, 0xfec00000, 4 },
	{ "addr_common_cfg", buffer_in_register, REFUSED, ALL, 0, 0 },
	{ "addr_isr", buffer_in_register, REFUSED, ALL, 0, 1 },
	{ "addr_msix_table", buffer_in_register, REFUSED, ALL, 0, 2 },
	{ "addr_device_cfg", buffer_in_register, REFUSED, ALL, 0, 3 },
	{ "addr_max", buffer, REFUSED, ALL, 0, U64_END, 1 },
	{ "addr_noncanonical", buffer, REFUSED, ALL, 0, 1ULL << 63, 4096 },
	{ "addr_wraps", buffer, REFUSED, ALL, 0, U64_END - 0xfff, 0x2000 },
	{ "addr_wraps_to_zero", buffer, REFUSED, ALL, 0, U64_END - 0xfff, 0x1000 },
	{ "addr_wraps_into_ram", buffer, REFUSED, ALL, 0, U64_END, 4096 },
	{ "len_over_low_end", buffer, REFUSED, ALL, 0, LOW_END - 1, 2 },
	{ "len_over_high_end", buffer, REFUSED, ALL, 0, HIGH_END - 4096, 4097 },
	{ "len_spans_hole", buffer, REFUSED, ALL, 0, LOW_END - 4096, 0xfffff000 },
	{ "len_huge", buffer, REFUSED, ALL, 0, 64 * KiB, 0xffffffff },
	{ "len_sign_bit", buffer, REFUSED, ALL, 0, 64 * KiB, 0x80000000 },
	{ "len_huge_high", buffer, REFUSED, ALL, 0, FAKE_RAM_HIGH, 0xffffffff },
	{ "last_beyond_ram", buffer_last, REFUSED, ALL, 0, 0xdead00000000, 16 },
	{ "last_wraps", buffer_last, REFUSED, ALL, 0, U64_END, 16 },
	{ "last_huge", buffer_last, REFUSED, ALL, 0, FAKE_RAM_HIGH, 0xffffffff },
	{ "first_beyond_ram", buffer_first, REFUSED, ALL, 0, 0xdead00000000, 16 },
	{ "first_over_end", buffer_first, REFUSED, ALL, 0, HIGH_END - 8, 16 },
	{ "in_pieces_over_low_end", buffer, REFUSED, ALL, SPANS, LOW_END - 100, 101 },
	{ "all_ones", all_ones, REFUSED, ALL },
	{ "many_huge", many_huge, REFUSED, ALL },
	{ "total_over_4g", total_over_4g, REFUSED, USER },
	{ "total_over_4g", total_over_4g, PASS, VHOST_TX },

	/* the available index */
	{ "idx_jumps_past_size", idx_moves, REFUSED, ALL, 0, 9 },
	{ "idx_jumps_far", idx_moves, REFUSED, ALL, 0, 256 },
	{ "idx_half_way", idx_moves, REFUSED, ALL, 0, 0x8000 },
	{ "idx_back_one", idx_moves, REFUSED, ALL, 0, 0xffff },
	{ "idx_back_two", idx_moves, REFUSED, ALL, 0, 0xfffe },
	{ "idx_back_far", idx_moves, REFUSED, ALL, NO_EVENT, 0xff00 },

	/* indirect tables */
	{ "table_not_negotiated", table, REFUSED, ALL, NO_INDIRECT, 16, 0 },
	{ "table_not_negotiated_plain", table, REFUSED, ALL, PLAIN, 32, 0 },
	{ "table_len_zero", table, REFUSED, ALL, 0, 0, 0 },
	{ "table_len_one", table, REFUSED, ALL, 0, 1, 0 },
	{ "table_len_15", table, REFUSED, ALL, 0, 15, 0 },
	{ "table_len_17", table, REFUSED, ALL, 0, 17, 0 },
	{ "table_len_24", table, REFUSED, ALL, 0, 24, 0 },
	{ "table_len_max", table, REFUSED, ALL, 0, 0xffffffff, 0 },
	{ "table_len_max_whole", table, REFUSED, ALL, 0, 0xfffffff0, 0 },
	{ "table_and_next", table, REFUSED, ALL, 0, 16, NEXT },
	{ "table_and_next_and_write", table, REFUSED, ALL, 0, 16, NEXT | WRITE },
	{ "table_65537", table_at, REFUSED, ALL, 0, FAKE_RAM_HIGH, 16 * 65537 },
	{ "table_beyond_ram", table_at, REFUSED, ALL, 0, 0xdead00000000, 16 },
	{ "table_in_hole", table_at, REFUSED, ALL, 0, LOW_END, 16 },
	{ "table_wraps", table_at, REFUSED, ALL, 0, U64_END - 15, 32 },
	{ "table_wraps_to_zero", table_at, REFUSED, ALL, 0, U64_END - 15, 16 },
	{ "table_at_max", table_at, REFUSED, ALL, 0, U64_END, 16 },
	{ "table_in_bar", table_in_bar, REFUSED, ALL },
	{ "table_nested", table_nested, REFUSED, ALL, 0, INDIRECT, 0 },
	{ "table_nested_in_itself", table_nested, REFUSED, ALL, 0, INDIRECT, 1 },
	{ "table_nested_write", table_nested, REFUSED, ALL, 0, INDIRECT | WRITE, 0 },
	{ "table_nested_next", table_nested, REFUSED, ALL, 0, INDIRECT | NEXT, 0 },
	{ "table_next_is_len", table_next, REFUSED, ALL, 0, 2, 0 },
	{ "table_next_is_ffff", table_next, REFUSED, ALL, 0, 0xffff, 0 },
	{ "table_self_loop", table_next, REFUSED, ALL, 0, 0, 0 },
	{ "table_two_cycle", table_next, REFUSED, ALL, 0, 1, 0 },
	{ "table_late_loop", table_next, REFUSED, ALL, 0, 1, 1 },
	{ "table_half_in_hole", table_half_in_hole, REFUSED, ALL },
	{ "table_entry_torn", table_entry_torn, REFUSED, ALL },
	{ "table_entry_torn_pieces", table_entry_torn, REFUSED, ALL, SPANS },
	{ "table_buffer_beyond_ram", table_bad_buffer, REFUSED, ALL, 0, 0xdead00000000, 16 },
	{ "table_buffer_wraps", table_bad_buffer, REFUSED, ALL, 0, U64_END, 16 },
	{ "table_buffer_huge", table_bad_buffer, REFUSED, ALL, 0, 4096, 0xffffffff },
	{ "table_buffer_over_end", table_bad_buffer, REFUSED, ALL, 0, LOW_END - 1, 2 },
	{ "table_read_after_write", table_directions, REFUSED, ALL },
	{ "table_two", two_tables, REFUSED, ALL },
	{ "table_readable_after_writable", table_after_writable, REFUSED, ALL },
	{ "table_is_the_ring", table_is_the_ring, REFUSED, ALL },
	{ "table_of_2000_buffers", table_of_2000, REFUSED, ALL },
	{ "table_65536_empty", table_of_nothing, PASS, ECHO | TX },
	{ "table_65536_empty", table_of_nothing, REFUSED, RX | NET_CTRL },

	/* on top of other things */
	{ "buffer_is_desc_table", aliases, EITHER, ALL, 0, 0, 128 },
	{ "buffer_is_avail_ring", aliases, EITHER, ALL, 0, 1, 22 },
	{ "buffer_is_used_ring", aliases, EITHER, ALL, 0, 2, 70 },
	{ "rings_at_one_address", one_place, EITHER, ALL, 0, 0x101, 0 },
	{ "rings_overlap", one_place, EITHER, ALL, 0, 0x101, 4 },
	{ "rings_overlap_zero", one_place, EITHER, ALL, 0, 0, 8 },
	{ "rings_overlap_ones", one_place, EITHER, ALL, 0, 0xffff, 16 },
	{ "noise_desc_1", ring_noise, EITHER, ALL, 0, 1, 0 },
	{ "noise_desc_2", ring_noise, EITHER, ALL, PLAIN, 2, 0 },
	{ "noise_avail_1", ring_noise, EITHER, ALL, 0, 3, 1 },
	{ "noise_avail_2", ring_noise, EITHER, ALL, PLAIN, 4, 1 },
	{ "noise_used_1", ring_noise, EITHER, ALL, 0, 5, 2 },
	{ "noise_used_2", ring_noise, EITHER, ALL, PLAIN, 6, 2 },
};

const struct hostile_group ring_group = { "ring", cases, ARRAY_SIZE(cases) };
