// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers, doorbells, BARs and config space of the PCI transport (virtio 1.3 4.1), used as they
 * should not be. Traps C8, C9, C14, C16.
 *
 * Theory of operation: hostile.h. Almost all of these are to be ignored: the register keeps its
 * value, and the queues work as before. What a case does to config space the runner undoes before
 * its reset.
 */
#include <linux/pci_regs.h>

#include "hostile.h"

#define LOW_END (FAKE_RAM_MID + FAKE_RAM_SIZE) /* here a hole begins */
#define U64_END (~0ULL)
#define NUMQ    (r->drv->nr_vqs)

/* --- queue_select and what it leads to: 4.1.4.3 --- */

static void select_out_of_range(struct rig *r)
{
	u64 sel = r->c->a ? r->c->a : NUMQ;

	reg_set(r, VP_QSELECT, 2, sel);
	WANT_EQ(reg(r, VP_QSELECT, 2), sel);
	for (unsigned off = VP_QSIZE; off < VP_QUSED + 8; off++)
		if (off != VP_QMSIX && off != VP_QMSIX + 1)
			WANT_EQ(reg(r, off, 1), 0);
	for (unsigned off = VP_QSIZE; off < VP_QUSED + 8; off++)
		reg_set(r, off, 1, 0xff);
	reg_set(r, VP_QENABLE, 2, 1);
	reg_set(r, VP_QMSIX, 2, 0);
	WANT_EQ(reg(r, VP_QMSIX, 2), 0xffff);
	WANT_EQ(reg(r, VP_QSIZE, 2), 0);
	WANT_EQ(reg(r, VP_QENABLE, 2), 0);
}

static void select_roundtrip(struct rig *r)
{
	for (unsigned i = 0; i < 0x10000; i += 0x101) {
		reg_set(r, VP_QSELECT, 2, i);
		WANT_EQ(reg(r, VP_QSELECT, 2), i);
	}
}

/* A running queue's registers do not take c->a, in the register at c->b. */
static void live_register(struct rig *r)
{
	unsigned off = (unsigned)r->c->b, len = off >= VP_QDESC ? 8 : 2;
	u64 before = qreg(r, r->vq->index, off, len);

	reg_set(r, off, len, r->c->a);
	WANT_EQ(reg(r, off, len), before);
	good(r);
}

/* Between FEATURES_OK and enable: writes c->a, reads c->b (0 = what was there before). */
static void queue_size(struct rig *r)
{
	u64 before, want = r->c->b;

	rig_negotiate(r);
	before = qreg(r, r->vq->index, VP_QSIZE, 2);
	reg_set(r, VP_QSIZE, 2, r->c->a);
	WANT_EQ(reg(r, VP_QSIZE, 2), want ? want : before);
	r->down = true;
}

static void queue_enable(struct rig *r)
{
	rig_negotiate(r);
	qreg_set(r, r->vq->index, VP_QENABLE, 2, r->c->a);
	WANT_EQ(reg(r, VP_QENABLE, 2), r->c->b);
	r->down = true;
}

static void enable_stays(struct rig *r)
{
	rig_negotiate(r);
	rig_setup_all(r);
	for (int i = 0; i < 3; i++) {
		qreg_set(r, r->vq->index, VP_QENABLE, 2, r->c->a);
		WANT_EQ(reg(r, VP_QENABLE, 2), 1);
	}
	WANT(fake_driver_start(r->drv));
	good(r);
}

/* Enabled first, addresses after that: too late, the queue lies at 0. */
static void enable_before_addresses(struct rig *r)
{
	rig_negotiate(r);
	qreg_set(r, r->vq->index, VP_QENABLE, 2, 1);
	reg_set(r, VP_QDESC, 8, r->vq->desc_gpa);
	WANT_EQ(reg(r, VP_QDESC, 8), 0);
	fake_driver_start(r->drv);
	fake_vq_ring(r->vq);
	rig_settle(r);
	r->down = true;
}

/*
 * One of the three parts, VP_QDESC and so on in c->b, at c->a; offsets below 16 are from its own.
 */
static void part_at(struct rig *r)
{
	unsigned part = (unsigned)r->c->b;
	struct fake_vq *vq = r->vq;
	u64 at[3] = { vq->desc_gpa, vq->avail_gpa, vq->used_gpa };
	u64 *p = &at[(part - VP_QDESC) / 8];

	*p = r->c->a < 16 ? *p + r->c->a : r->c->a;
	rig_negotiate(r);
	for (unsigned i = 0; i < NUMQ; i++)
		if (i != vq->index)
			fake_driver_setup_vq(r->drv, i);
	qreg_set(r, vq->index, VP_QSIZE, 2, vq->size);
	reg_set(r, VP_QDESC, 8, at[0]);
	reg_set(r, VP_QAVAIL, 8, at[1]);
	reg_set(r, VP_QUSED, 8, at[2]);
	reg_set(r, VP_QENABLE, 2, 1);
	WANT(!fake_driver_start(r->drv));
	for (unsigned i = 0; i < NUMQ; i++)
		fake_vq_ring(&r->drv->vq[i]);
	rig_settle(r);
}

static void part_in_bar(struct rig *r)
{
	struct hostile_case c = *r->c;
	const struct hostile_case *was = r->c;

	c.a = c.a ? r->drv->msix_table : r->drv->common;
	r->c = &c;
	part_at(r);
	r->c = was;
}

/* --- read-only and other registers --- */

static void read_only(struct rig *r)
{
	unsigned off = (unsigned)r->c->a, len = (unsigned)r->c->b;
	u64 before = qreg(r, r->vq->index, off, len);

	reg_set(r, off, len, ~before);
	WANT_EQ(reg(r, off, len), before);
	reg_set(r, off, len, 0);
	WANT_EQ(reg(r, off, len), before);
}

/* All registers, read in pieces of c->a bytes at any alignment, say the same. */
static void any_width(struct rig *r)
{
	unsigned len = (unsigned)r->c->a;
	u8 bytes[64];

	reg_set(r, VP_QSELECT, 2, r->vq->index);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)reg(r, i, 1);
	for (unsigned off = 0; off + len <= sizeof(bytes); off++) {
		u64 want = 0;

		memcpy(&want, bytes + off, len);
		WANT_EQ(fake_guest_read(r->fm, false, r->drv->common + off, len), want);
	}
}

/* A ring's address in bytes, words, dwords or a qword. */
static void address_in_pieces(struct rig *r)
{
	const u64 value = 0x1122334455667780;
	unsigned len = (unsigned)r->c->a;

	rig_negotiate(r);
	reg_set(r, VP_QSELECT, 2, r->vq->index);
	for (unsigned off = 0; off < 8; off += len)
		fake_guest_write(r->fm, false, r->drv->common + VP_QDESC + off, value >> 8 * off,
				 len);
	WANT_EQ(reg(r, VP_QDESC, 8), value);
	r->down = true;
}

/* Writes that cross from one register into the next, which is read-only. */
static void write_across(struct rig *r)
{
	fake_guest_write(r->fm, false, r->drv->common + VP_NUMQ, 0xffffffff, 2);
	fake_guest_write(r->fm, false, r->drv->common + VP_GEN, 0x00ff, 2);
	fake_guest_write(r->fm, false, r->drv->common + VP_QNOFF, 0xffff, 2);
	WANT_EQ(reg(r, VP_NUMQ, 2), NUMQ);
	WANT_EQ(rig_status(r), 0xf);
}

static void beyond_registers(struct rig *r)
{
	u64 base = r->drv->common & ~0xfffULL;

	for (u64 off = 56; off < 0x1000; off += 8) {
		WANT_EQ(fake_guest_read(r->fm, false, base + off, 8), 0);
		fake_guest_write(r->fm, false, base + off, U64_END, 8);
	}
}

/* Everything in BAR c->a gets c->b, at all widths. */
static void scribble_bar(struct rig *r)
{
	u64 base = cfg(r, PCI_BASE_ADDRESS_0 + 4 * (unsigned)r->c->a, 4), value;
	bool io = base & 1;

	base &= io ? ~3ULL : ~15ULL;
	for (u64 off = 0; off < (io ? 8u : 0x4000u); off += off % 0x1000 < 0x200 ? 1 : 0x3f) {
		for (unsigned len = 1; len <= 8; len *= 2) {
			bus_read(io ? &r->fm->m.pio : &r->fm->m.mmio, base + off, &value, len);
			value = r->c->b;
			bus_write(io ? &r->fm->m.pio : &r->fm->m.mmio, base + off, &value, len);
		}
	}
	rig_run(r);
	r->no_irq = true;
	r->down = true;
}

/* --- device configuration: 4.1.4.6, 5.1.4 --- */

static void config_read_only(struct rig *r)
{
	u8 before[64];
	unsigned n = MIN(r->drv->config_len, 64u);

	for (unsigned i = 0; i < n; i++)
		before[i] = (u8)fake_config_read(r->drv, i, 1);
	for (unsigned i = 0; i < n + 16; i++)
		if (rig_is_net(r) || i < 4 || i > 7) /* echo has a register there */
			fake_config_write(r->drv, i, 1, 0xff);
	for (unsigned i = 0; i < n; i++)
		WANT_EQ(fake_config_read(r->drv, i, 1), before[i]);
}

static void config_beyond(struct rig *r)
{
	u64 base = r->drv->config & ~0xfffULL;

	for (u64 off = r->drv->config_len; off < 0x1000; off += 4) {
		WANT_EQ(fake_guest_read(r->fm, false, base + off, 4), 0);
		fake_guest_write(r->fm, false, base + off, U64_END, 8);
	}
}

static void config_any_width(struct rig *r)
{
	unsigned n = r->drv->config_len;
	u8 bytes[128] = { 0 };

	for (unsigned i = 0; i < n && i < 64; i++)
		bytes[i] = (u8)fake_config_read(r->drv, i, 1);
	for (unsigned len = 1; len <= 8; len *= 2)
		for (unsigned off = 0; off < n + 4 && off < 64; off++) {
			u64 want = 0;

			memcpy(&want, bytes + off, len);
			WANT_EQ(fake_config_read(r->drv, off, len), want);
		}
}

/* --- ISR: 4.1.4.5 --- */

static void isr_odd(struct rig *r)
{
	fake_isr_read(r->drv);
	for (unsigned len = 1; len <= 8; len *= 2) {
		fake_guest_write(r->fm, false, r->drv->isr, U64_END, len);
		WANT_EQ(fake_guest_read(r->fm, false, r->drv->isr, len), 0);
		for (u64 off = 1; off < 0x40; off++) {
			fake_guest_write(r->fm, false, r->drv->isr + off, U64_END, len);
			WANT_EQ(fake_guest_read(r->fm, false, r->drv->isr + off, len), 0);
		}
	}
	good(r);
}

/* --- doorbells: 4.1.5.2 --- */

/* c->a bytes of the value c->b, at each place of the device's doorbells; the address says which. */
static void bell_width(struct rig *r)
{
	for (unsigned n = 0; n < r->drv->nr_notify; n++) {
		struct fake_seg s[4];
		unsigned nr = shape(r, s, 0);
		u64 addr = r->drv->notify[n].addr + 4u * r->vq->index, value = r->c->b;

		lay(r, s, nr);
		fake_vq_publish(r->vq);
		if (r->c->how & SLOW_BELL)
			bus_write(r->drv->notify[n].io ? &r->fm->m.pio : &r->fm->m.mmio, addr,
				  &value, (unsigned)r->c->a);
		else
			WANT(fake_guest_write(r->fm, r->drv->notify[n].io, addr, value,
					      (unsigned)r->c->a));
		rig_settle(r);
		finish(r, s, nr);
	}
}

/* Between the doorbells, past the last, and in the rest of the page. */
static void bell_nowhere(struct rig *r)
{
	u16 used = guest_load(&r->vq->used->idx);
	struct fake_seg s[4];
	unsigned nr = shape(r, s, 0);

	lay(r, s, nr);
	fake_vq_publish(r->vq);
	for (unsigned n = 0; n < r->drv->nr_notify; n++)
		for (u64 off = 0; off < 0x1000; off++)
			if (off % 4 || off / 4 >= NUMQ)
				fake_guest_write(r->fm, r->drv->notify[n].io,
						 r->drv->notify[n].addr + off, r->vq->index, 2);
	rig_settle(r);
	WANT_EQ(guest_load(&r->vq->used->idx), used);
	finish(r, s, nr);
}

static void bell_of_another(struct rig *r)
{
	for (int i = 0; i < 100; i++)
		for (unsigned q = 0; q < NUMQ; q++)
			fake_vq_ring(&r->drv->vq[q]);
	rig_settle(r);
	WANT_EQ(rig_status(r), 0xf);
}

static void bell_of_disabled(struct rig *r)
{
	rig_negotiate(r);
	for (unsigned i = 0; i < NUMQ; i++)
		if (i != r->vq->index)
			fake_driver_setup_vq(r->drv, i);
	WANT(fake_driver_start(r->drv));
	for (int i = 0; i < 50; i++)
		fake_vq_ring(r->vq);
	rig_settle(r);
	WANT_EQ(rig_status(r), 0xf);
	r->down = true;
}

static void bell_reads(struct rig *r)
{
	for (unsigned n = 0; n < r->drv->nr_notify; n++)
		for (u64 off = 0; off < 4 * NUMQ; off++)
			WANT_EQ(fake_guest_read(r->fm, r->drv->notify[n].io,
						r->drv->notify[n].addr + off, 1),
				0);
	rig_settle(r);
}

/* --- config space --- */

static void cfg_read_only(struct rig *r)
{
	unsigned off = (unsigned)r->c->a, len = (unsigned)r->c->b;
	u32 before = cfg(r, off, len);

	cfg_set(r, off, len, 0xffffffff);
	WANT_EQ(cfg(r, off, len), before);
	cfg_set(r, off, len, 0);
	WANT_EQ(cfg(r, off, len), before);
	fake_driver_find_caps(r->drv);
}

static void cfg_scratch(struct rig *r)
{
	cfg_set(r, PCI_INTERRUPT_LINE, 1, (u32)r->c->a);
	WANT_EQ(cfg(r, PCI_INTERRUPT_LINE, 1), r->c->a);
	good(r);
}

static void caps_end(struct rig *r)
{
	unsigned off = cfg(r, PCI_CAPABILITY_LIST, 1), n = 0;
	bool seen[256] = { false };

	for (; off && n < 64; n++) {
		WANT(off >= 0x40 && off % 4 == 0 && off < 0x100 && !seen[off & 0xff]);
		seen[off & 0xff] = true;
		off = cfg(r, off + 1, 1);
	}
	WANT(n > 4 && n < 64);
}

static void caps_read_only(struct rig *r)
{
	unsigned n, cap;
	u8 before[256];

	for (n = 0; n < 256; n++)
		before[n] = (u8)cfg(r, n, 1);
	for (n = 0; (cap = fake_pci_cap(r->fm, r->drv->slot, PCI_CAP_ID_VNDR, n)); n++) {
		if (cfg(r, cap + 3, 1) == 5)
			continue; /* the window */
		for (unsigned b = 0; b < cfg(r, cap + 2, 1); b++) {
			cfg_set(r, cap + b, 1, 0xff);
			WANT_EQ(cfg(r, cap + b, 1), before[cap + b]);
		}
	}
	good(r);
}

/* Each structure lies in its BAR, and is large enough for what it has to hold. */
static void caps_fit(struct rig *r)
{
	unsigned n, cap, types = 0;

	for (n = 0; (cap = fake_pci_cap(r->fm, r->drv->slot, PCI_CAP_ID_VNDR, n)); n++) {
		unsigned type = cfg(r, cap + 3, 1),
			 at = PCI_BASE_ADDRESS_0 + 4 * cfg(r, cap + 4, 1);
		u32 old = cfg(r, at, 4), size;

		types |= 1u << type;
		if (type == 5)
			continue;
		cfg_set(r, at, 4, 0xffffffff);
		size = cfg(r, at, 4);
		size = ~(size & (size & 1 ? ~3u : ~15u)) + 1;
		cfg_set(r, at, 4, old);
		WANT((u64)cfg(r, cap + 8, 4) + cfg(r, cap + 12, 4) <= size);
		WANT(type != 1 || cfg(r, cap + 12, 4) >= 56);
		WANT(type != 2 || cfg(r, cap + 12, 4) >= 4 * (NUMQ - 1) + 2);
	}
	WANT_EQ(types & 0x3e, 0x3e);
	good(r);
}

/* A capability, by c->a as its id and c->b as its virtio type, that is not there. */
static void no_cap(struct rig *r)
{
	unsigned n, cap;

	for (n = 0; (cap = fake_pci_cap(r->fm, r->drv->slot, (u8)r->c->a, n)); n++)
		WANT(r->c->b && cfg(r, cap + 3, 1) != r->c->b);
	r->not_offered = true;
}

static void identity(struct rig *r)
{
	WANT_EQ(cfg(r, PCI_VENDOR_ID, 2), 0x1af4);
	WANT_EQ(cfg(r, PCI_DEVICE_ID, 2), 0x1040 + r->dev->ops->id);
	WANT(cfg(r, PCI_REVISION_ID, 1) >= 1);
	WANT_EQ(cfg(r, PCI_HEADER_TYPE, 1) & 0x7f, 0);
	WANT_EQ(cfg(r, PCI_ROM_ADDRESS, 4), 0);
	cfg_set(r, PCI_ROM_ADDRESS, 4, 0xffffffff);
	WANT_EQ(cfg(r, PCI_ROM_ADDRESS, 4), 0);
}

static void beyond_256(struct rig *r)
{
	for (unsigned off = 0x100; off < 0x1000; off += 0x40) {
		fake_ecam_write(r->fm, r->drv->slot, off, 4, 0xffffffff);
		WANT_EQ(fake_ecam_read(r->fm, r->drv->slot, off, 4), 0);
	}
	for (u64 function = 1; function < 8; function++)
		WANT_EQ(fake_guest_read(r->fm, false,
					FAKE_ECAM + r->drv->slot * 0x8000 + function * 0x1000, 4),
			0xffffffff);
	WANT_EQ(fake_ecam_read(r->fm, 31, 0, 4), 0xffffffff);
}

/* Ports 0xcf8 to 0xcff in all widths, odd ones too. */
static void odd_ports(struct rig *r)
{
	for (unsigned len = 1; len <= 8; len *= 2) {
		for (u64 off = 0; off < 8; off++) {
			u64 v = 0;

			bus_read(&r->fm->m.pio, FAKE_CONF1 + off, &v, len);
			if (off != 1) /* the reset control register */
				bus_write(&r->fm->m.pio, FAKE_CONF1 + off, &v, len);
		}
		for (u64 off = 0; off < 0x120; off++) {
			u64 v = 0;

			bus_read(&r->fm->m.mmio, FAKE_ECAM + r->drv->slot * 0x8000 + off, &v, len);
		}
	}
	good(r);
}

/* --- BARs --- */

static void bar_to(struct rig *r, unsigned bar, u32 addr)
{
	cfg_set(r, PCI_BASE_ADDRESS_0 + 4 * bar, 4, addr);
}

static void bar_unimplemented(struct rig *r)
{
	for (unsigned bar = 3; bar < 6; bar++) {
		bar_to(r, bar, 0xffffffff);
		WANT_EQ(cfg(r, PCI_BASE_ADDRESS_0 + 4 * bar, 4), 0);
	}
}

static void bar_sized_while_live(struct rig *r)
{
	for (unsigned bar = 0; bar < 3; bar++) {
		bar_to(r, bar, 0xffffffff);
		WANT(cfg(r, PCI_BASE_ADDRESS_0 + 4 * bar, 4) != 0);
		bar_to(r, bar, r->bar[bar]);
	}
	fake_driver_find_caps(r->drv);
	good(r);
}

/* The low bits of an address do not count. */
static void bar_unaligned(struct rig *r)
{
	bar_to(r, 0, r->bar[0] | 0xffe);
	WANT_EQ(cfg(r, PCI_BASE_ADDRESS_0, 4), r->bar[0]);
	good(r);
}

/* BAR 0 to c->a; 1 = onto BAR 1; then everywhere a doorbell may have been, and back. */
static void bar_onto(struct rig *r)
{
	u32 to = r->c->a == 1 ? r->bar[1] : (u32)r->c->a;
	u64 old = r->drv->notify[r->drv->nr_notify - 1].addr;

	bar_to(r, 0, to);
	fake_guest_write(r->fm, false, old, 0, 2);
	fake_guest_write(r->fm, false, (to & ~0xfu) + 0x3000, 0, 2);
	WANT(!fake_hv_doorbell(&r->fm->hv, old, false, 0, 2) || to == r->bar[0]);
	rig_settle(r);
	bar_to(r, 0, r->bar[0]);
	fake_driver_find_caps(r->drv);
	good(r);
}

static void bar_moves(struct rig *r)
{
	for (u32 i = 1; i <= 20; i++) {
		bar_to(r, 0, (u32)FAKE_MMIO + 0x8000000 + i * 0x100000);
		bar_to(r, 1, (u32)FAKE_MMIO + 0x9000000 + i * 0x100000);
		bar_to(r, 2, (u32)FAKE_IO + 0x400 + i * 0x20);
		fake_driver_find_caps(r->drv);
		rig_aim(r, r->target);
		good(r);
	}
}

/* Memory and I/O decoding off, one or both, with doorbells rung into the void. */
static void decoding_off(struct rig *r)
{
	u64 common = r->drv->common;

	cfg_set(r, PCI_COMMAND, 2, (u32)r->c->a);
	for (unsigned i = 0; i < NUMQ; i++)
		fake_vq_ring(&r->drv->vq[i]);
	if (!(r->c->a & PCI_COMMAND_MEMORY)) {
		WANT_EQ(fake_guest_read(r->fm, false, common + VP_STATUS, 1), 0xff);
		fake_guest_write(r->fm, false, common + VP_STATUS, 0, 1);
	}
	rig_settle(r);
	cfg_set(r, PCI_COMMAND, 2, r->command);
	WANT_EQ(rig_status(r), 0xf);
	good(r);
}

static void decoding_toggles(struct rig *r)
{
	for (int i = 0; i < 100; i++) {
		cfg_set(r, PCI_COMMAND, 2, (u32)i & 7);
		fake_vq_ring(r->vq);
		rig_run(r);
	}
	cfg_set(r, PCI_COMMAND, 2, r->command);
	good(r);
}

static void command_all_ones(struct rig *r)
{
	cfg_set(r, PCI_COMMAND, 4, 0xffffffff);
	WANT(cfg(r, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST);
	good(r);
}

/* --- the window in config space: 4.1.4.9 --- */

static unsigned window(struct rig *r, u32 bar, u32 offset, u32 length)
{
	unsigned cap = 0;

	for (unsigned n = 0; (cap = fake_pci_cap(r->fm, r->drv->slot, PCI_CAP_ID_VNDR, n)); n++)
		if (cfg(r, cap + 3, 1) == 5)
			break;
	WANT(cap);
	cfg_set(r, cap + 4, 1, bar);
	cfg_set(r, cap + 8, 4, offset);
	cfg_set(r, cap + 12, 4, length);
	return cap + 16;
}

/* An access that leads nowhere: offset and length in c->a, the BAR in c->b. */
static void window_nowhere(struct rig *r)
{
	unsigned data = window(r, (u32)r->c->b, (u32)(r->c->a >> 32), (u32)r->c->a);

	cfg_set(r, data, 4, 0x12345678);
	WANT_EQ(cfg(r, data, 4), 0x12345678);
	WANT_EQ(rig_status(r), 0xf);
	good(r);
}

static void window_reads(struct rig *r)
{
	unsigned data = window(r, 0, VP_STATUS, 1);

	WANT_EQ(cfg(r, data, 1), 0xf);
	data = window(r, 0, VP_NUMQ, 2);
	WANT_EQ(cfg(r, data, 2), NUMQ);
	data = window(r, 1, 12, 4);
	WANT_EQ(cfg(r, data, 4), 0);
	data = window(r, 0, 0x2000, 4);
	WANT_EQ(cfg(r, data, 4), fake_config_read(r->drv, 0, 4));
	cfg_set(r, PCI_COMMAND, 2, 0); /* it needs no decoding */
	WANT_EQ(cfg(r, data, 4) != 0xffffffff, 1);
	cfg_set(r, PCI_COMMAND, 2, r->command);
}

static void window_doorbell(struct rig *r)
{
	struct fake_seg s[4];
	unsigned n = shape(r, s, 0), data;

	lay(r, s, n);
	fake_vq_publish(r->vq);
	data = window(r, 0,
		      (u32)(r->drv->notify[r->drv->nr_notify - 1].addr - r->drv->common) +
			      4u * r->vq->index,
		      2);
	cfg_set(r, data, 2, r->vq->index);
	rig_settle(r);
	finish(r, s, n);
}

static void window_resets(struct rig *r)
{
	unsigned data = window(r, 0, VP_STATUS, 1);

	cfg_set(r, data, 1, 0);
	WANT_EQ(cfg(r, data, 1), 0);
	WANT_EQ(rig_status(r), 0);
	r->down = true;
}

static void window_noise(struct rig *r)
{
	u32 x = 99;

	for (int i = 0; i < 2000; i++) {
		unsigned data;

		x = x * 1664525 + 1013904223;
		data = window(r, x >> 28, x >> 8 & 0x7fff, x >> 24 & 7);
		if (x & 16)
			cfg(r, data, 4);
		else if ((x >> 8 & 0x7fff) >= 56)
			cfg_set(r, data, 4, x);
	}
	rig_settle(r);
	r->down = true;
}

#define D                  DEVICES
#define AT(offset, length) ((u64)(offset) << 32 | (length))
#define PART(name, what, to) \
	{ \
		name, part_at, REFUSED, D, 0, to, what \
	}

static const struct hostile_case cases[] = {
	{ "select_numq", select_out_of_range, PASS, D },
	{ "select_100", select_out_of_range, PASS, D, 0, 0x100 },
	{ "select_8000", select_out_of_range, PASS, D, 0, 0x8000 },
	{ "select_ffff", select_out_of_range, PASS, D, 0, 0xffff },
	{ "select_ffff_intx", select_out_of_range, PASS, D, INTX, 0xffff },
	{ "select_roundtrip", select_roundtrip, PASS, D },
	{ "live_size", live_register, PASS, ALL, 0, 2, VP_QSIZE },
	{ "live_size_zero", live_register, PASS, D, 0, 0, VP_QSIZE },
	{ "live_enable_zero", live_register, PASS, ALL, 0, 0, VP_QENABLE },
	{ "live_enable_ffff", live_register, PASS, D, 0, 0xffff, VP_QENABLE },
	{ "live_desc", live_register, PASS, ALL, 0, 0xdead0000, VP_QDESC },
	{ "live_avail", live_register, PASS, ALL, 0, 0xdead0000, VP_QAVAIL },
	{ "live_used", live_register, PASS, ALL, 0, 0xdead0000, VP_QUSED },
	{ "live_used_zero", live_register, PASS, D, 0, 0, VP_QUSED },
	{ "size_zero", queue_size, PASS, D, 0, 0, 0 },
	{ "size_3", queue_size, PASS, D, 0, 3, 0 },
	{ "size_7", queue_size, PASS, D, 0, 7, 0 },
	{ "size_twice_max", queue_size, PASS, D, 0, 2048, 0 },
	{ "size_8000", queue_size, PASS, D, 0, 0x8000, 0 },
	{ "size_ffff", queue_size, PASS, D, 0, 0xffff, 0 },
	{ "size_1", queue_size, PASS, D, 0, 1, 1 },
	{ "size_4", queue_size, PASS, D, 0, 4, 4 },
	{ "enable_0", queue_enable, PASS, D, 0, 0, 0 },
	{ "enable_1", queue_enable, PASS, D, 0, 1, 1 },
	{ "enable_2", queue_enable, PASS, D, 0, 2, 0 },
	{ "enable_ffff", queue_enable, PASS, D, 0, 0xffff, 0 },
	{ "enable_twice", enable_stays, PASS, D, 0, 1 },
	{ "enable_then_0", enable_stays, PASS, D, 0, 0 },
	{ "enable_then_2", enable_stays, PASS, D, 0, 2 },
	{ "enable_before_addresses", enable_before_addresses, EITHER, D },

	/* where the rings are */
	PART("desc_unaligned_1", VP_QDESC, 1),
	PART("desc_unaligned_4", VP_QDESC, 4),
	PART("desc_unaligned_8", VP_QDESC, 8),
	PART("avail_unaligned_1", VP_QAVAIL, 1),
	PART("used_unaligned_1", VP_QUSED, 1),
	PART("used_unaligned_2", VP_QUSED, 2),
	PART("desc_in_hole", VP_QDESC, LOW_END),
	PART("avail_in_hole", VP_QAVAIL, LOW_END),
	PART("used_in_hole", VP_QUSED, LOW_END),
	PART("desc_over_end", VP_QDESC, LOW_END - 112),
	PART("avail_over_end", VP_QAVAIL, LOW_END - 20),
	PART("used_over_end", VP_QUSED, LOW_END - 68),
	PART("desc_beyond_ram", VP_QDESC, 0xdead00000000),
	PART("avail_beyond_ram", VP_QAVAIL, 0xdead00000000),
	PART("used_beyond_ram", VP_QUSED, 0xdead00000000),
	PART("desc_wraps", VP_QDESC, U64_END - 15),
	PART("avail_wraps", VP_QAVAIL, U64_END - 1),
	PART("used_wraps", VP_QUSED, U64_END - 3),
	PART("desc_in_ecam", VP_QDESC, FAKE_ECAM),
	PART("used_in_lapic", VP_QUSED, 0xfee00000),
	{ "desc_in_bar", part_in_bar, REFUSED, D, 0, 0, VP_QDESC },
	{ "avail_in_bar", part_in_bar, REFUSED, D, 0, 0, VP_QAVAIL },
	{ "used_in_bar", part_in_bar, REFUSED, D, 0, 0, VP_QUSED },
	{ "used_in_msix_table", part_in_bar, REFUSED, D, 0, 1, VP_QUSED },
	{ "desc_in_hole_rx", part_at, REFUSED, RX | NET_CTRL, 0, LOW_END, VP_QDESC },

	/* registers */
	{ "num_queues_read_only", read_only, PASS, D, 0, VP_NUMQ, 2 },
	{ "generation_read_only", read_only, PASS, D, 0, VP_GEN, 1 },
	{ "notify_off_read_only", read_only, PASS, D, 0, VP_QNOFF, 2 },
	{ "device_feature_read_only", read_only, PASS, D, 0, VP_DF, 4 },
	{ "any_width_1", any_width, PASS, D, 0, 1 },
	{ "any_width_2", any_width, PASS, D, 0, 2 },
	{ "any_width_4", any_width, PASS, D, 0, 4 },
	{ "any_width_8", any_width, PASS, D, 0, 8 },
	{ "address_by_bytes", address_in_pieces, PASS, D, 0, 1 },
	{ "address_by_words", address_in_pieces, PASS, D, 0, 2 },
	{ "address_by_dwords", address_in_pieces, PASS, D, 0, 4 },
	{ "address_by_qword", address_in_pieces, PASS, D, 0, 8 },
	{ "write_across_read_only", write_across, PASS, D },
	{ "beyond_registers", beyond_registers, PASS, D },
	{ "scribble_bar0_ones", scribble_bar, EITHER, D, 0, 0, U64_END },
	{ "scribble_bar0_zeroes", scribble_bar, EITHER, D, 0, 0, 0 },
	{ "scribble_bar0_8000", scribble_bar, EITHER, D, 0, 0, 0x8000800080008000 },
	{ "scribble_bar0_0101", scribble_bar, EITHER, D, 0, 0, 0x0101010101010101 },
	{ "scribble_bar0_intx", scribble_bar, EITHER, D, INTX, 0, 0x0f0f0f0f0f0f0f0f },
	{ "scribble_bar1_ones", scribble_bar, EITHER, D, 0, 1, U64_END },
	{ "scribble_bar1_zeroes", scribble_bar, EITHER, D, 0, 1, 0 },
	{ "scribble_bar2_ones", scribble_bar, EITHER, D, 0, 2, U64_END },
	{ "config_read_only", config_read_only, PASS, D },
	{ "config_beyond", config_beyond, PASS, D },
	{ "config_any_width", config_any_width, PASS, D },
	{ "isr_odd_accesses", isr_odd, PASS, D },
	{ "isr_odd_accesses_intx", isr_odd, PASS, D, INTX },

	/* doorbells */
	{ "bell_1_byte", bell_width, PASS, D, 0, 1, 1 },
	{ "bell_2_bytes", bell_width, PASS, D, 0, 2, 1 },
	{ "bell_4_bytes", bell_width, PASS, D, 0, 4, 1 },
	{ "bell_8_bytes", bell_width, PASS, D, 0, 8, 1 },
	{ "bell_exits_1_byte", bell_width, PASS, D, SLOW_BELL, 1, 1 },
	{ "bell_exits_4_bytes", bell_width, PASS, D, SLOW_BELL, 4, 1 },
	{ "bell_exits_8_bytes", bell_width, PASS, D, SLOW_BELL, 8, 1 },
	{ "bell_value_ffff", bell_width, PASS, D, 0, 2, 0xffff },
	{ "bell_value_of_another_queue", bell_width, PASS, D, 0, 2, 0 },
	{ "bell_value_ffffffff", bell_width, PASS, D, 0, 4, 0xffffffff },
	{ "bell_nowhere", bell_nowhere, PASS, D },
	{ "bell_of_another_queue", bell_of_another, PASS, D },
	{ "bell_of_another_queue_exits", bell_of_another, PASS, D, SLOW_BELL },
	{ "bell_of_disabled_queue", bell_of_disabled, PASS, ALL },
	{ "bell_of_disabled_queue_exits", bell_of_disabled, PASS, D, SLOW_BELL },
	{ "bell_reads", bell_reads, PASS, D },

	/* config space */
	{ "cfg_id_read_only", cfg_read_only, PASS, D, 0, PCI_VENDOR_ID, 4 },
	{ "cfg_status_read_only", cfg_read_only, PASS, D, 0, PCI_STATUS, 2 },
	{ "cfg_class_read_only", cfg_read_only, PASS, D, 0, PCI_CLASS_REVISION, 4 },
	{ "cfg_header_read_only", cfg_read_only, PASS, D, 0, PCI_HEADER_TYPE, 1 },
	{ "cfg_subsystem_read_only", cfg_read_only, PASS, D, 0, PCI_SUBSYSTEM_VENDOR_ID, 4 },
	{ "cfg_cap_pointer_read_only", cfg_read_only, PASS, D, 0, PCI_CAPABILITY_LIST, 4 },
	{ "cfg_pin_read_only", cfg_read_only, PASS, D, 0, PCI_INTERRUPT_PIN, 1 },
	{ "cfg_line_ff", cfg_scratch, PASS, D, INTX, 0xff },
	{ "cfg_line_0", cfg_scratch, PASS, D, INTX, 0 },
	{ "cfg_command_all_ones", command_all_ones, PASS, D },
	{ "cfg_identity", identity, PASS, D },
	{ "cfg_beyond_256", beyond_256, PASS, D },
	{ "cfg_odd_ports", odd_ports, PASS, D },
	{ "caps_end", caps_end, PASS, D },
	{ "caps_read_only", caps_read_only, PASS, D },
	{ "caps_fit", caps_fit, PASS, D },
	{ "bar_unimplemented", bar_unimplemented, PASS, D },
	{ "bar_sized_while_live", bar_sized_while_live, PASS, D },
	{ "bar_unaligned", bar_unaligned, PASS, D },
	{ "bar_onto_another", bar_onto, PASS, D, 0, 1 },
	{ "bar_onto_ram", bar_onto, PASS, D, 0, 64 * KiB },
	{ "bar_onto_zero", bar_onto, PASS, D, 0, 0 },
	{ "bar_onto_ecam", bar_onto, PASS, D, 0, FAKE_ECAM },
	{ "bar_onto_end", bar_onto, PASS, D, 0, 0xffffc000 },
	{ "bar_moves", bar_moves, PASS, D },
	{ "decoding_memory_off", decoding_off, PASS, D, 0, PCI_COMMAND_IO },
	{ "decoding_io_off", decoding_off, PASS, D, 0, PCI_COMMAND_MEMORY },
	{ "decoding_off", decoding_off, PASS, D, 0, 0 },
	{ "decoding_off_intx", decoding_off, PASS, D, INTX, 0 },
	{ "decoding_toggles", decoding_toggles, PASS, D },

	/* the window */
	{ "window_reads", window_reads, PASS, D },
	{ "window_bar_3", window_nowhere, PASS, D, 0, AT(0, 4), 3 },
	{ "window_bar_6", window_nowhere, PASS, D, 0, AT(0, 4), 6 },
	{ "window_bar_ff", window_nowhere, PASS, D, 0, AT(0, 4), 0xff },
	{ "window_length_0", window_nowhere, PASS, D, 0, AT(0x2000, 0), 0 },
	{ "window_length_3", window_nowhere, PASS, D, 0, AT(0x2000, 3), 0 },
	{ "window_length_8", window_nowhere, PASS, D, 0, AT(0x2000, 8), 0 },
	{ "window_length_max", window_nowhere, PASS, D, 0, AT(0x2000, 0xffffffff), 0 },
	{ "window_unaligned", window_nowhere, PASS, D, 0, AT(0x2001, 4), 0 },
	{ "window_past_bar", window_nowhere, PASS, D, 0, AT(0x4000, 4), 0 },
	{ "window_over_bar_end", window_nowhere, PASS, D, 0, AT(0x3ffe, 4), 0 },
	{ "window_offset_max", window_nowhere, PASS, D, 0, AT(0xfffffffc, 4), 0 },
	{ "window_past_msix_bar", window_nowhere, PASS, D, 0, AT(0x1000, 4), 1 },
	{ "window_past_io_bar", window_nowhere, PASS, D, 0, AT(0x100, 4), 2 },
	{ "window_doorbell", window_doorbell, PASS, D },
	{ "window_resets", window_resets, PASS, D },
	{ "window_noise", window_noise, EITHER, D },

	/* not there */
	{ "msi", no_cap, NOT_OFFERED, D, 0, PCI_CAP_ID_MSI, 0, "no MSI capability, MSI-X only" },
	{ "function_level_reset", no_cap, NOT_OFFERED, D, 0, PCI_CAP_ID_EXP, 0,
	  "no PCI Express capability, so no FLR" },
	{ "advanced_features", no_cap, NOT_OFFERED, D, 0, PCI_CAP_ID_AF, 0, "no AF capability" },
	{ "power_management", no_cap, NOT_OFFERED, D, 0, PCI_CAP_ID_PM, 0, "no PM capability" },
	{ "shared_memory", no_cap, NOT_OFFERED, D, 0, PCI_CAP_ID_VNDR, 8,
	  "no shared memory regions" },
	{ "vendor_data", no_cap, NOT_OFFERED, D, 0, PCI_CAP_ID_VNDR, 9, "no vendor data" },
};

const struct hostile_group pci_group = { "pci", cases, ARRAY_SIZE(cases) };
