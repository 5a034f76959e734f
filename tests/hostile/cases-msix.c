// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts: MSI-X tables and vectors (PCI 3.0 6.8.2, virtio 1.3 4.1.5.1), INTx and the ISR, in
 * the hands of a driver that changes them at the worst moment. Traps C13, C15, C17.
 *
 * Theory of operation: hostile.h. An interrupt may come too often only where the specification lets
 * it; one that is due must not be lost.
 */
#include <linux/pci_regs.h>

#include "hostile.h"
#include "hw/msix.h"
#include "hw/pci.h"

#define U64_END (~0ULL)

static unsigned msix_cap(struct rig *r)
{
	return fake_pci_cap(r->fm, r->drv->slot, PCI_CAP_ID_MSIX, 0);
}

static unsigned vectors(struct rig *r)
{
	return (cfg(r, msix_cap(r) + 2, 2) & PCI_MSIX_FLAGS_QSIZE) + 1;
}

static u64 table_read(struct rig *r, u64 off, unsigned len)
{
	return fake_guest_read(r->fm, false, r->drv->msix_table + off, len);
}

static void table_write(struct rig *r, u64 off, u64 value, unsigned len)
{
	fake_guest_write(r->fm, false, r->drv->msix_table + off, value, len);
}

/* Puts the target queue's table entry back as the driver had it. */
static void entry_restore(struct rig *r, unsigned v)
{
	table_write(r, v * 16, fake_msix_addr(r->drv, v), 8);
	table_write(r, v * 16 + 8, fake_msix_data(r->drv, v), 4);
	table_write(r, v * 16 + 12, 0, 4);
}

/* A request that asks for an interrupt, and the number of those that came. */
static u64 irqs_of_one(struct rig *r)
{
	rig_settle(r);
	fake_vq_irqs(r->vq);
	fake_vq_irq_on(r->vq);
	good(r);
	rig_settle(r);
	return fake_vq_irqs(r->vq);
}

static unsigned pending(struct rig *r, unsigned v)
{
	return table_read(r, MSIX_TABLE_SIZE + v / 8, 1) >> v % 8 & 1;
}

/* --- vectors of virtio --- */

/* A vector that is not there reads back as none (4.1.5.1.2); c->b: of the queue, else of config. */
static void vector_out_of_range(struct rig *r)
{
	unsigned off = r->c->b ? VP_QMSIX : VP_MSIX;
	u64 v = r->c->a ? r->c->a : vectors(r);

	qreg_set(r, r->vq->index, off, 2, v);
	WANT_EQ(reg(r, off, 2), 0xffff);
	good(r);
	r->refused = v != 0xffff;
}

static void vector_roundtrip(struct rig *r)
{
	for (unsigned v = 0; v < vectors(r); v++) {
		qreg_set(r, r->vq->index, VP_QMSIX, 2, v);
		WANT_EQ(reg(r, VP_QMSIX, 2), v);
		reg_set(r, VP_MSIX, 2, v);
		WANT_EQ(reg(r, VP_MSIX, 2), v);
	}
	reg_set(r, VP_MSIX, 2, 0);
	qreg_set(r, r->vq->index, VP_QMSIX, 2, fake_vq_vector(r->vq));
	WANT_EQ(irqs_of_one(r), 1);
}

/* Without a vector a queue is served all the same; with one again its interrupt comes. */
static void no_vector(struct rig *r)
{
	qreg_set(r, r->vq->index, VP_QMSIX, 2, 0xffff);
	WANT_EQ(irqs_of_one(r), 0);
	qreg_set(r, r->vq->index, VP_QMSIX, 2, fake_vq_vector(r->vq));
	WANT_EQ(irqs_of_one(r), 1);
}

static void shared_vector(struct rig *r)
{
	u64 before;

	for (unsigned q = 0; q < r->drv->nr_vqs; q++)
		qreg_set(r, q, VP_QMSIX, 2, 0);
	before = fake_driver_config_irqs(r->drv);
	fake_vq_irq_on(r->vq);
	good(r);
	WANT(RIG_WAIT(r, fake_driver_config_irqs(r->drv) > before));
	round_trip(r);
	r->config_irqs = 0;
}

static void vector_changes_in_flight(struct rig *r)
{
	u64 all = 0;

	for (unsigned i = 0; i < 40; i++) {
		fake_vq_irq_on(r->vq);
		qreg_set(r, r->vq->index, VP_QMSIX, 2, i % vectors(r));
		good(r);
		qreg_set(r, r->vq->index, VP_QMSIX, 2, (i + 1) % vectors(r));
		rig_settle(r);
	}
	fake_hv_deliver(&r->fm->hv);
	for (unsigned v = 0; v < vectors(r); v++)
		all += fake_hv_msi_count(&r->fm->hv, fake_msix_addr(r->drv, v),
					 fake_msix_data(r->drv, v));
	WANT(all >= 40);
	qreg_set(r, r->vq->index, VP_QMSIX, 2, fake_vq_vector(r->vq));
	WANT_EQ(irqs_of_one(r), 1);
}

/* NEEDS_RESET has its interrupt, with a vector, and none without. */
static void needs_reset_irq(struct rig *r)
{
	u64 before = fake_driver_config_irqs(r->drv);

	if (r->c->a)
		reg_set(r, VP_MSIX, 2, 0xffff);
	head(r, 0xffff);
	go(r);
	rig_settle(r);
	WANT_EQ(fake_driver_config_irqs(r->drv) - before, r->c->a ? 0 : 1);
	r->no_irq = r->c->a;
}

static void needs_reset_intx(struct rig *r)
{
	head(r, 0xffff);
	go(r);
	WANT(RIG_WAIT(r, fake_isr_read(r->drv) & VIRTIO_ISR_CONFIG));
	WANT_EQ(fake_isr_read(r->drv), 0);
	WANT(!fake_hv_level(&r->fm->hv, FAKE_INTX + r->drv->slot % 4));
}

/* --- the table --- */

static void starts_masked(struct rig *r)
{
	r->dev->device.reset(&r->dev->device);
	pci_root_reset(r->fm->m.pci);
	for (unsigned v = 0; v < vectors(r); v++) {
		WANT_EQ(table_read(r, v * 16, 8), 0);
		WANT_EQ(table_read(r, v * 16 + 12, 4), 1);
	}
	r->down = true;
}

/* Masked, by vector or by function: the interrupt waits, PBA shows it, unmasking delivers it. */
static void masked(struct rig *r)
{
	unsigned v = fake_vq_vector(r->vq);

	for (int i = 0; i < 5; i++) {
		if (r->c->a)
			cfg_set(r, msix_cap(r) + 2, 2,
				PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
		else
			fake_msix_mask(r->drv, v, true);
		WANT_EQ(irqs_of_one(r), 0);
		WANT(RIG_WAIT(r, pending(r, v)));
		if (r->c->a)
			cfg_set(r, msix_cap(r) + 2, 2, PCI_MSIX_FLAGS_ENABLE);
		else
			fake_msix_mask(r->drv, v, false);
		WANT(RIG_WAIT(r, fake_vq_irqs(r->vq) == 1));
		WANT_EQ(pending(r, v), 0);
	}
}

static void mask_storm(struct rig *r)
{
	unsigned v = fake_vq_vector(r->vq);

	for (int i = 0; i < 200; i++) {
		fake_msix_mask(r->drv, v, i & 1);
		if (i % 20 == 0)
			good(r);
	}
	fake_msix_mask(r->drv, v, false);
	WANT_EQ(irqs_of_one(r), 1);
}

static void pba_read_only(struct rig *r)
{
	for (unsigned off = 0; off < 64; off++)
		table_write(r, MSIX_TABLE_SIZE + off, 0xff, 1);
	WANT_EQ(table_read(r, MSIX_TABLE_SIZE, 8), 0);
	WANT_EQ(irqs_of_one(r), 1);
}

/* Beyond the last vector, in table and PBA: nothing there. */
static void table_beyond(struct rig *r)
{
	for (u64 off = vectors(r) * 16ULL; off < MSIX_BAR_SIZE; off += 8) {
		table_write(r, off, U64_END, 8);
		WANT_EQ(table_read(r, off, 8), 0);
	}
	WANT_EQ(irqs_of_one(r), 1);
}

/* An access across the end of the table's last entry, or of the BAR. */
static void table_across_end(struct rig *r)
{
	u64 end = r->c->a ? r->c->a : vectors(r) * 16ULL;

	for (u64 off = end - 8; off < end + 8; off++)
		for (unsigned len = 1; len <= 8; len *= 2) {
			u64 v = table_read(r, off, len);

			if (off + len <= vectors(r) * 16ULL || r->c->a)
				table_write(r, off, v, len);
		}
	WANT_EQ(irqs_of_one(r), 1);
}

/* An entry written in pieces of c->a bytes says what was written. */
static void table_in_pieces(struct rig *r)
{
	unsigned len = (unsigned)r->c->a, v = fake_vq_vector(r->vq);
	u64 value = 0x00000000fee00000ULL;

	fake_msix_mask(r->drv, v, true);
	for (unsigned off = 0; off < 8; off += len)
		table_write(r, v * 16 + off, value >> 8 * off, len);
	WANT_EQ(table_read(r, v * 16, 8), value);
	value = fake_msix_data(r->drv, v);
	for (unsigned off = 0; off < 8; off += len) /* with the mask bit: off */
		table_write(r, v * 16 + 8 + off, value >> 8 * off, len);
	WANT_EQ(table_read(r, v * 16 + 8, 8), value);
	WANT_EQ(irqs_of_one(r), 1);
}

static void control_reserved(struct rig *r)
{
	unsigned v = fake_vq_vector(r->vq);

	table_write(r, v * 16 + 12, 0xfffffffe, 4);
	WANT_EQ(table_read(r, v * 16 + 12, 4), 0);
	WANT_EQ(irqs_of_one(r), 1);
	table_write(r, v * 16 + 12, 0xffffffff, 4);
	WANT_EQ(table_read(r, v * 16 + 12, 4), 1);
	WANT_EQ(irqs_of_one(r), 0);
	table_write(r, v * 16 + 12, 0, 4);
}

/* A message to nowhere: the device goes on, and the right message works again. */
static void bad_message(struct rig *r)
{
	unsigned v = fake_vq_vector(r->vq);

	table_write(r, v * 16, r->c->a, 8);
	table_write(r, v * 16 + 8, r->c->b, 4);
	fake_vq_irq_on(r->vq);
	good(r);
	rig_settle(r);
	entry_restore(r, v);
	WANT_EQ(irqs_of_one(r), 1);
}

static void message_changes_live(struct rig *r)
{
	unsigned v = fake_vq_vector(r->vq);

	for (u32 i = 0; i < 50; i++) {
		table_write(r, v * 16 + 8, 0x4000 + i, 4);
		fake_vq_irq_on(r->vq);
		good(r);
		rig_settle(r);
		WANT(fake_hv_msi_count(&r->fm->hv, fake_msix_addr(r->drv, v), 0x4000 + i) >= 1);
	}
	entry_restore(r, v);
}

static void table_all_ones(struct rig *r)
{
	for (unsigned v = 0; v < vectors(r); v++) {
		table_write(r, v * 16, U64_END, 8);
		table_write(r, v * 16 + 8, U64_END, 8);
	}
	good(r);
	for (unsigned v = 0; v < vectors(r); v++)
		entry_restore(r, v);
	WANT_EQ(irqs_of_one(r), 1);
}

/* --- the capability --- */

static void capability_read_only(struct rig *r)
{
	unsigned cap = msix_cap(r);
	u32 table = cfg(r, cap + 4, 4), pba = cfg(r, cap + 8, 4), n = vectors(r);

	cfg_set(r, cap + 4, 4, 0xffffffff);
	cfg_set(r, cap + 8, 4, 0xffffffff);
	cfg_set(r, cap + 2, 2, 0x7ff | PCI_MSIX_FLAGS_ENABLE);
	WANT_EQ(cfg(r, cap + 4, 4), table);
	WANT_EQ(cfg(r, cap + 8, 4), pba);
	WANT_EQ(vectors(r), n);
	WANT_EQ(irqs_of_one(r), 1);
}

static void capability_fits(struct rig *r)
{
	unsigned cap = msix_cap(r);
	u32 table = cfg(r, cap + 4, 4), pba = cfg(r, cap + 8, 4);

	WANT((table & ~7u) + vectors(r) * 16 <= MSIX_BAR_SIZE);
	WANT((pba & ~7u) + (vectors(r) + 63) / 64 * 8 <= MSIX_BAR_SIZE);
	WANT((pba & 7) != (table & 7) || (pba & ~7u) >= (table & ~7u) + vectors(r) * 16);
	WANT(vectors(r) >= r->drv->nr_vqs + 1);
}

/* Off while it runs: INTx takes over; on again: MSI-X does. No interrupt is lost on the way. */
static void switched(struct rig *r)
{
	unsigned cap = msix_cap(r);

	for (int i = 0; i < 5; i++) {
		cfg_set(r, cap + 2, 2, 0);
		fake_vq_irq_on(r->vq);
		good(r);
		WANT(RIG_WAIT(r, fake_isr_read(r->drv) & VIRTIO_ISR_QUEUE));
		cfg_set(r, cap + 2, 2, PCI_MSIX_FLAGS_ENABLE);
		WANT(!fake_hv_level(&r->fm->hv, FAKE_INTX + r->drv->slot % 4));
		WANT_EQ(irqs_of_one(r), 1);
	}
}

static void switch_storm(struct rig *r)
{
	unsigned cap = msix_cap(r);

	for (int i = 0; i < 200; i++) {
		cfg_set(r, cap + 2, 2, (u32)(i & 3) << 14);
		fake_vq_irq_on(r->vq);
		if (i % 20 == 0)
			good(r);
	}
	cfg_set(r, cap + 2, 2, PCI_MSIX_FLAGS_ENABLE);
	rig_settle(r);
	WANT_EQ(irqs_of_one(r), 1);
}

/* --- INTx --- */

static void intx_level(struct rig *r)
{
	u32 gsi = FAKE_INTX + r->drv->slot % 4;

	rig_settle(r);
	fake_isr_read(r->drv);
	WANT(!fake_hv_level(&r->fm->hv, gsi));
	fake_vq_irq_on(r->vq);
	good(r);
	WANT(RIG_WAIT(r, fake_hv_level(&r->fm->hv, gsi)));
	WANT(cfg(r, PCI_STATUS, 2) & PCI_STATUS_INTERRUPT);
	WANT_EQ(fake_isr_read(r->drv), VIRTIO_ISR_QUEUE);
	WANT(!fake_hv_level(&r->fm->hv, gsi));
	WANT_EQ(fake_isr_read(r->drv), 0);
	WANT(!(cfg(r, PCI_STATUS, 2) & PCI_STATUS_INTERRUPT));
}

static void intx_unread_then_reset(struct rig *r)
{
	u32 gsi = FAKE_INTX + r->drv->slot % 4;

	fake_vq_irq_on(r->vq);
	good(r);
	WANT(RIG_WAIT(r, fake_hv_level(&r->fm->hv, gsi)));
	reg_set(r, VP_STATUS, 1, 0);
	WANT(!fake_hv_level(&r->fm->hv, gsi));
	WANT_EQ(fake_isr_read(r->drv), 0);
	r->down = true;
}

static void intx_disabled(struct rig *r)
{
	u32 gsi = FAKE_INTX + r->drv->slot % 4;

	cfg_set(r, PCI_COMMAND, 2, r->command | PCI_COMMAND_INTX_DISABLE);
	fake_vq_irq_on(r->vq);
	good(r);
	rig_settle(r);
	WANT(!fake_hv_level(&r->fm->hv, gsi));
	cfg_set(r, PCI_COMMAND, 2, r->command);
	WANT(RIG_WAIT(r, fake_hv_level(&r->fm->hv, gsi)));
	fake_isr_read(r->drv);
	WANT(!fake_hv_level(&r->fm->hv, gsi));
}

static void isr_hammer(struct rig *r)
{
	for (int i = 0; i < 100; i++) {
		fake_vq_irq_on(r->vq);
		for (int k = 0; k < 20; k++)
			fake_isr_read(r->drv);
		good(r);
	}
}

static void no_irq_after_reset(struct rig *r)
{
	struct fake_seg s[4];

	rig_settle(r);
	fake_vq_irqs(r->vq);
	lay(r, s, shape(r, s, 0));
	fake_vq_irq_on(r->vq);
	reg_set(r, VP_STATUS, 1, 0);
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	rig_settle(r);
	WANT_EQ(fake_vq_irqs(r->vq), 0);
	r->down = true;
}

/* The host has no route or no irqfd for a vector: that vector reads back as none. */
static void host_refuses(struct rig *r)
{
	unsigned v = fake_vq_vector(r->vq);

	qreg_set(r, r->vq->index, VP_QMSIX, 2, 0xffff);
	table_write(r, v * 16 + 8, 0x7777, 4); /* so that a new route is needed */
	fake_hv_fail(&r->fm->hv, (unsigned)r->c->a);
	qreg_set(r, r->vq->index, VP_QMSIX, 2, v);
	fake_hv_fail(&r->fm->hv, 0);
	WANT_EQ(reg(r, VP_QMSIX, 2), 0xffff);
	good(r);
	entry_restore(r, v);
	qreg_set(r, r->vq->index, VP_QMSIX, 2, v);
	WANT_EQ(reg(r, VP_QMSIX, 2), v);
	WANT_EQ(irqs_of_one(r), 1);
	r->refused = true;
}

#define D DEVICES

static const struct hostile_case cases[] = {
	{ "config_vector_past_end", vector_out_of_range, REFUSED, D },
	{ "config_vector_7ff", vector_out_of_range, REFUSED, D, 0, 0x7ff },
	{ "config_vector_7fff", vector_out_of_range, REFUSED, D, 0, 0x7fff },
	{ "config_vector_fffe", vector_out_of_range, REFUSED, D, 0, 0xfffe },
	{ "queue_vector_past_end", vector_out_of_range, REFUSED, D, 0, 0, 1 },
	{ "queue_vector_64", vector_out_of_range, REFUSED, D, 0, 64, 1 },
	{ "queue_vector_7ff", vector_out_of_range, REFUSED, D, 0, 0x7ff, 1 },
	{ "queue_vector_fffe", vector_out_of_range, REFUSED, ALL, 0, 0xfffe, 1 },
	{ "queue_vector_past_end_intx", vector_out_of_range, REFUSED, D, INTX, 0, 1 },
	{ "config_vector_none", vector_out_of_range, PASS, D, 0, 0xffff },
	{ "vector_roundtrip", vector_roundtrip, PASS, D },
	{ "no_vector", no_vector, PASS, ALL },
	{ "shared_vector", shared_vector, PASS, D },
	{ "vector_changes_in_flight", vector_changes_in_flight, PASS, ALL },
	{ "needs_reset_irq", needs_reset_irq, REFUSED, ALL },
	{ "needs_reset_no_vector", needs_reset_irq, REFUSED, D, 0, 1 },
	{ "needs_reset_intx", needs_reset_intx, REFUSED, ALL, INTX },

	{ "table_starts_masked", starts_masked, PASS, D },
	{ "masked_vector", masked, PASS, ALL, 0, 0 },
	{ "masked_function", masked, PASS, ALL, 0, 1 },
	{ "masked_vector_no_event", masked, PASS, D, NO_EVENT, 0 },
	{ "mask_storm", mask_storm, PASS, D },
	{ "pba_read_only", pba_read_only, PASS, D },
	{ "table_beyond", table_beyond, PASS, D },
	{ "table_across_end", table_across_end, PASS, D },
	{ "table_across_pba", table_across_end, PASS, D, 0, MSIX_TABLE_SIZE },
	{ "table_across_bar_end", table_across_end, PASS, D, 0, MSIX_BAR_SIZE },
	{ "table_by_bytes", table_in_pieces, PASS, D, 0, 1 },
	{ "table_by_words", table_in_pieces, PASS, D, 0, 2 },
	{ "table_by_dwords", table_in_pieces, PASS, D, 0, 4 },
	{ "table_by_qwords", table_in_pieces, PASS, D, 0, 8 },
	{ "control_reserved_bits", control_reserved, PASS, D },
	{ "message_all_zero", bad_message, PASS, D, 0, 0, 0 },
	{ "message_all_ones", bad_message, PASS, D, 0, U64_END, 0xffffffff },
	{ "message_into_ram", bad_message, PASS, D, 0, 64 * KiB, 0x41414141 },
	{ "message_into_bar", bad_message, PASS, D, 0, FAKE_MMIO, 1 },
	{ "message_high_address", bad_message, PASS, D, 0, 0xdeadbeeffee00000, 1 },
	{ "message_unaligned", bad_message, PASS, D, 0, 0xfee00003, 1 },
	{ "message_changes_live", message_changes_live, PASS, D },
	{ "table_all_ones", table_all_ones, PASS, D },

	{ "capability_read_only", capability_read_only, PASS, D },
	{ "capability_fits", capability_fits, PASS, D },
	{ "switched_off_and_on", switched, PASS, ALL },
	{ "switch_storm", switch_storm, PASS, D },

	{ "intx_level", intx_level, PASS, ALL, INTX },
	{ "intx_level_no_event", intx_level, PASS, D, INTX | NO_EVENT },
	{ "intx_unread_then_reset", intx_unread_then_reset, PASS, D, INTX },
	{ "intx_disabled", intx_disabled, PASS, D, INTX },
	{ "isr_hammer", isr_hammer, PASS, D, INTX },
	{ "isr_hammer_msix", isr_hammer, PASS, D },
	{ "no_irq_after_reset", no_irq_after_reset, PASS, D },
	{ "no_irq_after_reset_intx", no_irq_after_reset, PASS, D, INTX },
	{ "host_has_no_route", host_refuses, REFUSED, D, 0, 1 },
	{ "host_has_no_irqfd", host_refuses, REFUSED, D, 0, 2 },
};

const struct hostile_group msix_group = { "msix", cases, ARRAY_SIZE(cases) };
