// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests with more than one CPU: one drives the device, another one changes memory or registers
 * under it. Trap D9.
 *
 * Theory of operation: hostile.h. A second thread, the hand, makes one kind of move as fast as it
 * can. Either the test's thread runs the loop and the hand is a CPU of the guest, or the loop has a
 * thread of its own as in the product. The hand's stores into guest memory are not seen by a race
 * detector (guest_copy), the device's accesses are: they must not tear, and no value that was
 * checked may be read again.
 */
#include <linux/pci_regs.h>
#include <pthread.h>
#include <stdatomic.h>

#include "hostile.h"

struct hand {
	void (*move)(struct hand *h, u32 i);
	struct rig *r;
	struct fake_machine *fm;
	/* copies: the driver's own change when it starts again */
	u64 common, isr, config, table, bell, cap;
	bool bell_io;
	unsigned slot, vector, nr_vqs;
	struct vring_desc *desc, *entry;
	struct vring_avail *avail;
	struct vring_used *used;
	u64 data;
	u16 size;
	pthread_t thread;
	atomic_bool stop;
};

static void *hand_main(void *arg)
{
	struct hand *h = arg;

	for (u32 i = 0; !atomic_load(&h->stop); i++) {
		h->move(h, i);
		if (i % 256 == 0)
			sched_yield();
	}
	return NULL;
}

static void hand_start(struct hand *h, struct rig *r, void (*move)(struct hand *h, u32 i))
{
	struct fake_driver *drv = r->drv;

	*h = (struct hand){
		.move = move,
		.r = r,
		.fm = r->fm,
		.common = drv->common,
		.isr = drv->isr,
		.config = drv->config,
		.table = drv->msix_table,
		.bell = r->vq->bell_addr,
		.bell_io = r->vq->bell_io,
		.slot = drv->slot,
		.cap = fake_pci_cap(r->fm, drv->slot, PCI_CAP_ID_MSIX, 0),
		.vector = fake_vq_vector(r->vq),
		.nr_vqs = drv->nr_vqs,
		.desc = r->vq->desc,
		.entry = fake_ptr(drv, r->data + 0xc000, 4096),
		.avail = r->vq->avail,
		.used = r->vq->used,
		.data = r->data,
		.size = r->vq->size,
	};
	if (pthread_create(&h->thread, NULL, hand_main, h))
		exit(1);
}

static void hand_stop(struct hand *h)
{
	atomic_store(&h->stop, true);
	pthread_join(h->thread, NULL);
}

/* --- moves in guest memory --- */

static const u64 places[] = { 0, 0xdead00000000, ~0ULL, FAKE_RAM_MID + FAKE_RAM_SIZE - 8 };
static const u32 lengths[] = { 16, 0, 4096, 0xffffffff };
static const u16 flags[] = { 0, WRITE, NEXT, NEXT | WRITE, INDIRECT, INDIRECT | NEXT, 0xffff, 0 };
static const u16 nexts[] = { 0, 1, 7, 8, 0xffff };

static u64 place(const struct hand *h, u32 i)
{
	return i % 4 ? places[i % 4] : h->data;
}

static void m_addr(struct hand *h, u32 i)
{
	u64 addr = place(h, i);

	guest_copy(&h->desc[0].addr, &addr, 8);
}

static void m_len(struct hand *h, u32 i)
{
	guest_copy(&h->desc[0].len, &lengths[i % ARRAY_SIZE(lengths)], 4);
}

static void m_flags(struct hand *h, u32 i)
{
	guest_copy(&h->desc[0].flags, &flags[i % ARRAY_SIZE(flags)], 2);
}

static void m_next(struct hand *h, u32 i)
{
	guest_copy(&h->desc[0].next, &nexts[i % ARRAY_SIZE(nexts)], 2);
	guest_copy(&h->desc[1].next, &nexts[i / 3 % ARRAY_SIZE(nexts)], 2);
}

static void m_desc(struct hand *h, u32 i)
{
	m_addr(h, i);
	m_len(h, i / 3);
	m_flags(h, i / 7);
	m_next(h, i / 11);
}

static void m_heads(struct hand *h, u32 i)
{
	guest_copy(&h->avail->ring[i / 8 % h->size], &nexts[i % ARRAY_SIZE(nexts)], 2);
}

static void m_avail_idx(struct hand *h, u32 i)
{
	u16 idx;

	guest_copy(&idx, &h->used->idx, 2);
	idx = (u16)(idx + i % 11);
	guest_copy(&h->avail->idx, &idx, 2);
}

static void m_used_idx(struct hand *h, u32 i)
{
	guest_copy(&h->used->idx, &i, 2);
}

static void m_events(struct hand *h, u32 i)
{
	u32 event = i * 7;

	guest_copy(&h->avail->flags, &i, 2);
	guest_copy(&h->avail->ring[h->size], &event, 2);
}

static void m_table_entry(struct hand *h, u32 i)
{
	u64 addr = place(h, i);

	guest_copy(&h->entry[0].addr, &addr, 8);
	guest_copy(&h->entry[0].len, &lengths[i / 3 % ARRAY_SIZE(lengths)], 4);
	guest_copy(&h->entry[0].flags, &flags[i / 7 % ARRAY_SIZE(flags)], 2);
	guest_copy(&h->entry[0].next, &nexts[i / 11 % ARRAY_SIZE(nexts)], 2);
}

static void m_table(struct hand *h, u32 i)
{
	static const u32 len[] = { 16, 24, 0, 0xfffffff0 };
	u64 addr = i & 4 ? h->data + 0xc000 : place(h, i);

	guest_copy(&h->desc[0].len, &len[i % ARRAY_SIZE(len)], 4);
	guest_copy(&h->desc[0].addr, &addr, 8);
}

/* --- moves of a CPU --- */

static void reg8(struct hand *h, unsigned off, u8 value)
{
	fake_guest_write(h->fm, false, h->common + off, value, 1);
}

static void m_status_read(struct hand *h, u32 i)
{
	fake_guest_read(h->fm, false, h->common + VP_STATUS, 1 + i % 2);
}

static void m_status_live(struct hand *h, u32 i)
{
	static const u8 values[] = { 0xf, 1, 3, 0xb, 0x4f, 0x30 };

	reg8(h, VP_STATUS, values[i % ARRAY_SIZE(values)]);
}

static void m_registers_read(struct hand *h, u32 i)
{
	fake_guest_read(h->fm, false, h->common + i % 64, 1u << i / 64 % 4);
}

static void m_queue_registers(struct hand *h, u32 i)
{
	fake_guest_write(h->fm, false, h->common + VP_QSELECT, i % (h->nr_vqs + 2), 2);
	fake_guest_write(h->fm, false, h->common + VP_QSIZE, i, 2);
	fake_guest_write(h->fm, false, h->common + VP_QENABLE, i & 1, 2);
	fake_guest_write(h->fm, false, h->common + VP_QDESC, (u64)i << 12, 8);
}

static void m_vectors(struct hand *h, u32 i)
{
	fake_guest_write(h->fm, false, h->common + VP_QSELECT, i % h->nr_vqs, 2);
	fake_guest_write(h->fm, false, h->common + VP_QMSIX, i / 2 % (h->nr_vqs + 2), 2);
	fake_guest_write(h->fm, false, h->common + VP_MSIX, i / 3 % (h->nr_vqs + 2), 2);
}

static void m_config(struct hand *h, u32 i)
{
	fake_guest_read(h->fm, false, h->config + i % 16, 1u << i / 16 % 4);
	fake_guest_write(h->fm, false, h->config + i % 16, i, 1);
}

static void m_isr(struct hand *h, u32 i)
{
	(void)i;
	fake_guest_read(h->fm, false, h->isr, 1);
}

static void m_bell(struct hand *h, u32 i)
{
	u64 value = i;

	bus_write(h->bell_io ? &h->fm->m.pio : &h->fm->m.mmio, h->bell, &value, 2);
	fake_guest_write(h->fm, h->bell_io, h->bell, i, 2);
}

static void m_mask(struct hand *h, u32 i)
{
	fake_guest_write(h->fm, false, h->table + h->vector * 16 + 12, i & 1, 4);
	fake_guest_read(h->fm, false, h->table + 1024, 8);
}

static void m_message(struct hand *h, u32 i)
{
	fake_guest_write(h->fm, false, h->table + h->vector * 16 + 8, i % 64, 4);
}

static void m_function_mask(struct hand *h, u32 i)
{
	fake_ecam_write(h->fm, h->slot, (unsigned)h->cap + 2, 2,
			PCI_MSIX_FLAGS_ENABLE | (i & 1 ? PCI_MSIX_FLAGS_MASKALL : 0));
}

static void m_enable(struct hand *h, u32 i)
{
	fake_ecam_write(h->fm, h->slot, (unsigned)h->cap + 2, 2, i & 1 ? PCI_MSIX_FLAGS_ENABLE : 0);
}

static void m_command(struct hand *h, u32 i)
{
	fake_ecam_write(h->fm, h->slot, PCI_COMMAND, 2, i & 7);
}

static void m_bar(struct hand *h, u32 i)
{
	fake_ecam_write(h->fm, h->slot, PCI_BASE_ADDRESS_0, 4,
			(u32)FAKE_MMIO + 0x8000000 + i % 16 * 0x10000);
	fake_ecam_write(h->fm, h->slot, PCI_BASE_ADDRESS_2, 4, (u32)FAKE_IO + 0x800 + i % 8 * 64);
}

static void m_config_space(struct hand *h, u32 i)
{
	u32 off = 0x40 + i % 0xc0;

	fake_ecam_read(h->fm, h->slot, i % 256, 1u << i % 3);
	if (off < h->cap || off >= h->cap + 12)
		fake_ecam_write(h->fm, h->slot, off, 1, i);
}

static void m_reset(struct hand *h, u32 i)
{
	if (i % 16 == 0)
		reg8(h, VP_STATUS, 0);
}

/* The whole way up again and again, without queues. */
static void m_negotiate(struct hand *h, u32 i)
{
	static const u8 steps[] = { 0, 1, 3, 0xb, 0xf };

	if (i % 5 == 3) {
		fake_guest_write(h->fm, false, h->common + VP_GFSELECT, 1, 4);
		fake_guest_write(h->fm, false, h->common + VP_GF, 1, 4);
	}
	reg8(h, VP_STATUS, steps[i % 5]);
}

static void m_scribble(struct hand *h, u32 i)
{
	u32 x = i * 2654435761u;

	fake_guest_write(h->fm, false, (h->common & ~0xfffULL) + (x >> 8 & 0x3fff), x,
			 1u << (x >> 30));
}

static void m_flood(struct hand *h, u32 i)
{
	u8 bytes[100];

	fake_nic_frame(bytes, sizeof(bytes), i);
	fake_netif_inject(h->r->nic.fn, bytes, sizeof(bytes));
}

/* --- what the other CPU does meanwhile --- */

typedef void (*move_fn)(struct hand *h, u32 i);
static const move_fn moves[] = {
	m_addr,         m_len,           m_flags,       m_next,           m_desc,
	m_heads,        m_avail_idx,     m_used_idx,    m_events,         m_table_entry,
	m_table,        m_status_read,   m_status_live, m_registers_read, m_queue_registers,
	m_vectors,      m_config,        m_isr,         m_bell,           m_mask,
	m_message,      m_function_mask, m_enable,      m_command,        m_bar,
	m_config_space, m_reset,         m_negotiate,   m_scribble,       m_flood,
};
enum {
	ADDR,
	LEN,
	FLAGS,
	NEXTS,
	DESC,
	HEADS,
	AVAIL_IDX,
	USED_IDX,
	EVENTS,
	TABLE_ENTRY,
	TABLE,
	STATUS_READ,
	STATUS_LIVE,
	REGISTERS_READ,
	QUEUE_REGISTERS,
	VECTORS,
	CONFIG,
	ISR,
	BELL,
	MASK,
	MESSAGE,
	FUNCTION_MASK,
	ENABLE,
	COMMAND,
	BAR,
	CONFIG_SPACE,
	RESET,
	NEGOTIATE,
	SCRIBBLE,
	FLOOD,
	NR_MOVES,
};
_Static_assert(ARRAY_SIZE(moves) == NR_MOVES, "a name for each move");

#define ROUNDS 150

/* Makes descriptor 0 available over and over, while its table or its ring changes. */
static void flipped(struct rig *r)
{
	struct hand h;
	u64 mark = 0x5a5a5a5a5a5a5a5a;
	u64 *canary = fake_ptr(r->drv, r->data + 0x8000, 8);

	guest_copy(canary, &mark, 8);
	hand_start(&h, r, moves[r->c->a]);
	for (int i = 0; i < ROUNDS; i++) {
		const struct vring_desc d = { r->c->b ? r->data + 0xc000 : r->data, 16,
					      (u16)(r->c->b ? INDIRECT : dir(r)), 0 };

		guest_copy(&r->vq->desc[0], &d, sizeof(d));
		head(r, 0);
		go(r);
		if (rig_broken(r))
			rig_restart(r);
	}
	hand_stop(&h);
	WANT_EQ(*canary, mark); /* no place that the hand named */
	r->no_irq = true;
	r->down = true;
}

/* Good requests, all of which are served. */
static void served(struct rig *r)
{
	struct hand h;

	hand_start(&h, r, moves[r->c->a]);
	for (int i = 0; i < ROUNDS; i++) {
		fake_vq_irq_on(r->vq);
		good(r);
	}
	hand_stop(&h);
	r->down = r->c->b;
}

/* The same, and afterwards interrupts come again. */
static void served_then_irq(struct rig *r)
{
	unsigned v, cap = fake_pci_cap(r->fm, r->drv->slot, PCI_CAP_ID_MSIX, 0);

	served(r);
	v = fake_vq_vector(r->vq);
	cfg_set(r, cap + 2, 2, PCI_MSIX_FLAGS_ENABLE);
	fake_guest_write(r->fm, false, r->drv->msix_table + v * 16 + 8, fake_msix_data(r->drv, v),
			 4);
	fake_msix_mask(r->drv, v, false);
	rig_settle(r);
	fake_vq_irqs(r->vq);
	fake_vq_irq_on(r->vq);
	good(r);
	WANT(RIG_WAIT(r, fake_vq_irqs(r->vq) == 1));
}

/* Doorbells and buffers, of which nobody knows whether they will be served. */
static void rung(struct rig *r)
{
	struct fake_seg s[4];
	struct hand h;

	hand_start(&h, r, moves[r->c->a]);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned n = shape(r, s, 0);

		if (fake_vq_add(r->vq, s, n, r) >= 0)
			fake_vq_publish(r->vq);
		for (int k = 0; k < 5; k++)
			fake_vq_ring(r->vq);
		rig_settle(r);
		while (fake_vq_get(r->vq, NULL))
			;
	}
	hand_stop(&h);
	rig_restore(r);
	r->no_irq = true;
	r->down = true;
}

static void restarted(struct rig *r)
{
	struct hand h;

	hand_start(&h, r, moves[r->c->a]);
	for (int i = 0; i < 30; i++)
		rig_restart(r);
	hand_stop(&h);
	r->down = true;
}

/* --- the loop in a thread of its own --- */

struct looper {
	struct loop *loop;
	pthread_t thread;
	atomic_bool stop;
};

static void *loop_main(void *arg)
{
	struct looper *l = arg;

	while (!atomic_load(&l->stop))
		loop_once(l->loop, 1);
	return NULL;
}

static void threaded(struct rig *r, void (*fn)(struct rig *r))
{
	struct looper l = { .loop = &r->fm->loop };

	r->threaded = true;
	if (pthread_create(&l.thread, NULL, loop_main, &l))
		exit(1);
	fn(r);
	atomic_store(&l.stop, true);
	pthread_join(l.thread, NULL);
	r->threaded = false;
}

static void do_traffic(struct rig *r)
{
	for (int i = 0; i < 60; i++)
		round_trip(r);
}

static void do_restarts(struct rig *r)
{
	struct fake_seg s[4];

	for (int i = 0; i < 40; i++) {
		unsigned n = shape(r, s, 0);

		while (fake_vq_add(r->vq, s, n, r) >= 0)
			;
		fake_vq_publish(r->vq);
		fake_vq_ring(r->vq);
		if (i & 1)
			sched_yield();
		rig_restart(r);
		round_trip(r);
	}
}

static void do_breaks(struct rig *r)
{
	for (int i = 0; i < 20; i++) {
		head(r, 0xffff);
		go(r);
		WANT(RIG_WAIT(r, rig_broken(r)));
		rig_restart(r);
		round_trip(r);
	}
	r->no_irq = true;
}

static void do_bar_moves(struct rig *r)
{
	for (u32 i = 0; i < 30; i++) {
		cfg_set(r, PCI_BASE_ADDRESS_0, 4, (u32)FAKE_MMIO + 0x8000000 + i * 0x10000);
		cfg_set(r, PCI_BASE_ADDRESS_2, 4, (u32)FAKE_IO + 0x800 + i % 8 * 64);
		fake_driver_find_caps(r->drv);
		good(r);
	}
}

static void do_irqs(struct rig *r)
{
	unsigned cap = fake_pci_cap(r->fm, r->drv->slot, PCI_CAP_ID_MSIX, 0);

	for (u32 i = 0; i < 40; i++) {
		fake_vq_irq_on(r->vq);
		if (r->c->how & INTX)
			fake_isr_read(r->drv);
		else
			cfg_set(r, cap + 2, 2, (i & 3) << 14);
		good(r);
	}
	if (!(r->c->how & INTX))
		cfg_set(r, cap + 2, 2, PCI_MSIX_FLAGS_ENABLE);
}

static void in_threads(struct rig *r)
{
	static void (*const what[])(struct rig * r) = { do_traffic, do_restarts, do_breaks,
							do_bar_moves, do_irqs };

	threaded(r, what[r->c->a]);
}

static void three_threads_fn(struct rig *r)
{
	struct hand h;

	hand_start(&h, r, moves[r->c->a]);
	do_traffic(r);
	hand_stop(&h);
	r->down = true;
}

static void three_threads(struct rig *r)
{
	threaded(r, three_threads_fn);
}

/* --- a configuration that changes while it is read: 2.5.3 --- */

static void m_generation(struct hand *h, u32 i)
{
	u64 before = fake_guest_read(h->fm, false, h->common + VP_GEN, 1);
	u64 low = fake_guest_read(h->fm, false, h->config, 4);
	u64 high = fake_guest_read(h->fm, false, h->config + 4, 2);
	u64 after = fake_guest_read(h->fm, false, h->common + VP_GEN, 1);

	(void)i;
	if (before == after)
		WANT_EQ(low >> 24, high >> 8);
}

/* All six bytes of each address are alike. */
static void mac_changes(struct rig *r)
{
	struct hand h;

	WANT_EQ(ctrl(r, 1, 1, (u8[6]){ 0 }, 6), 0);
	hand_start(&h, r, m_generation);
	for (unsigned i = 0; i < 200; i++) {
		u8 b = (u8)((i & 0x3f) << 2);

		WANT_EQ(ctrl(r, 1, 1, (u8[6]){ b, b, b, b, b, b }, 6), 0);
	}
	hand_stop(&h);
}

#define D DEVICES

static const struct hostile_case cases[] = {
	/* memory changes while the device reads it */
	{ "flip_addr", flipped, EITHER, ALL, NO_INDIRECT, ADDR },
	{ "flip_len", flipped, EITHER, ALL, NO_INDIRECT, LEN },
	{ "flip_flags", flipped, EITHER, ALL, 0, FLAGS },
	{ "flip_next", flipped, EITHER, ALL, 0, NEXTS },
	{ "flip_desc", flipped, EITHER, ALL, 0, DESC },
	{ "flip_desc_pieces", flipped, EITHER, ECHO, SPANS, DESC },
	{ "flip_desc_plain", flipped, EITHER, ALL, PLAIN, DESC },
	{ "flip_heads", flipped, EITHER, ALL, 0, HEADS },
	{ "flip_avail_idx", flipped, EITHER, ALL, 0, AVAIL_IDX },
	{ "flip_used_idx", flipped, EITHER, ALL, 0, USED_IDX },
	{ "flip_events", flipped, EITHER, ALL, 0, EVENTS },
	{ "flip_events_plain", flipped, EITHER, ALL, PLAIN, EVENTS },
	{ "flip_table_entry", flipped, EITHER, ALL, 0, TABLE_ENTRY, 1 },
	{ "flip_table", flipped, EITHER, ALL, 0, TABLE, 1 },

	/* registers, and requests that are served all the same */
	{ "status_reads", served, PASS, D, 0, STATUS_READ },
	{ "status_writes", served, PASS, D, 0, STATUS_LIVE },
	{ "register_reads", served, PASS, D, 0, REGISTERS_READ },
	{ "queue_registers", served, PASS, D, 0, QUEUE_REGISTERS },
	{ "vectors", served, PASS, D, 0, VECTORS, 1 },
	{ "vectors_intx", served, PASS, D, INTX, VECTORS, 1 },
	{ "config", served, PASS, D, 0, CONFIG },
	{ "isr_reads", served, PASS, D, 0, ISR },
	{ "isr_reads_intx", served, PASS, D, INTX, ISR },
	{ "doorbells", served, PASS, ALL, 0, BELL },
	{ "doorbells_no_event", served, PASS, D, PLAIN, BELL },
	{ "masks", served_then_irq, PASS, ALL, 0, MASK },
	{ "messages", served_then_irq, PASS, D, 0, MESSAGE },
	{ "function_masks", served_then_irq, PASS, D, 0, FUNCTION_MASK },
	{ "msix_switches", served_then_irq, PASS, D, 0, ENABLE },
	{ "msix_switches_no_event", served_then_irq, PASS, D, NO_EVENT, ENABLE },
	{ "config_space", served, PASS, D, 0, CONFIG_SPACE, 1 },

	/* and doorbells that may ring in vain */
	{ "decoding", rung, PASS, D, 0, COMMAND },
	{ "bar_moves", rung, PASS, D, 0, BAR },
	{ "bar_moves_exits", rung, PASS, D, SLOW_BELL, BAR },
	{ "resets", rung, PASS, ALL, 0, RESET },
	{ "resets_intx", rung, PASS, D, INTX, RESET },
	{ "negotiations", rung, EITHER, D, 0, NEGOTIATE },
	{ "scribbles", rung, EITHER, D, 0, SCRIBBLE },
	{ "scribbles_intx", rung, EITHER, D, INTX, SCRIBBLE },
	{ "restarts_and_doorbells", restarted, PASS, D, 0, BELL },
	{ "restarts_and_isr_reads", restarted, PASS, D, INTX, ISR },
	{ "restarts_and_masks", restarted, PASS, D, 0, MASK },
	{ "restarts_and_config_space", restarted, PASS, D, 0, STATUS_READ },
	{ "restarts_and_flood", restarted, PASS, NICS, 0, FLOOD },
	{ "resets_and_flood", rung, PASS, RX, 0, FLOOD },

	/* the loop has its own thread */
	{ "loop_traffic", in_threads, PASS, ALL, 0, 0 },
	{ "loop_traffic_intx", in_threads, PASS, D, INTX, 0 },
	{ "loop_traffic_exits", in_threads, PASS, D, SLOW_BELL | PLAIN, 0 },
	{ "loop_restarts", in_threads, PASS, ALL, 0, 1 },
	{ "loop_restarts_intx", in_threads, PASS, D, INTX, 1 },
	{ "loop_breaks", in_threads, PASS, ALL, 0, 2 },
	{ "loop_breaks_intx", in_threads, PASS, D, INTX, 2 },
	{ "loop_bar_moves", in_threads, PASS, D, 0, 3 },
	{ "loop_msix_switches", in_threads, PASS, D, 0, 4 },
	{ "loop_isr_reads", in_threads, PASS, D, INTX, 4 },
	{ "loop_and_doorbells", three_threads, PASS, D, 0, BELL },
	{ "loop_and_masks", three_threads, PASS, D, 0, MASK },
	{ "loop_and_msix_switches", three_threads, PASS, D, 0, ENABLE },
	{ "loop_and_config", three_threads, PASS, D, 0, CONFIG },
	{ "loop_and_vectors", three_threads, PASS, D, 0, VECTORS },

	{ "mac_changes", mac_changes, PASS, NICS },
};

const struct hostile_group race_group = { "race", cases, ARRAY_SIZE(cases) };
