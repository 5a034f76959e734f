// SPDX-License-Identifier: GPL-2.0-only
/*
 * The PCI transport: registers, doorbells, BARs that move, MSI-X and INTx, the configuration window
 * (traps C8, C13, C14, C16, C17).
 */
#include <linux/pci_regs.h>

#include "../fake/echo.h"
#include "../fake/fake-driver.h"
#include "../tap.h"
#include "hw/msix.h"
#include "log.h"

#define NR_VQS 2
#define SIZE   8

/* virtio 1.3 4.1.4.9, offsets in the capability */
enum { WIN_BAR = 4, WIN_OFFSET = 8, WIN_LENGTH = 12, WIN_DATA = 16 };

struct bench {
	struct fake_machine fm;
	struct fake_driver drv;
	struct echo *echo;
	u64 out, in;
};

static void bench_open_on(struct bench *b, const struct fake_machine_opts *mopts,
			  const struct fake_driver_opts *dopts)
{
	fake_machine_init(&b->fm, mopts);
	REQUIRE(echo_new(&b->fm.m, NR_VQS, SIZE, &b->echo) == 0);
	fake_driver_open(&b->drv, &b->fm, ECHO_ID, dopts);
	b->out = fake_alloc(&b->drv, 64, 64);
	b->in = fake_alloc(&b->drv, 64, 64);
}

static void bench_open(struct bench *b, const struct fake_driver_opts *dopts)
{
	bench_open_on(b, NULL, dopts);
}

static int request(struct bench *b, unsigned q)
{
	const struct fake_seg segs[] = { { b->out, 64 }, { b->in, 64, true } };

	fake_vq_irq_on(&b->drv.vq[q]);
	return fake_vq_request(&b->drv.vq[q], segs, 2, NULL);
}

/* A request, and an interrupt of the queue's own vector, and of no other. */
static void check_works(struct bench *b)
{
	for (unsigned q = 0; q < NR_VQS; q++) {
		fake_vq_irqs(&b->drv.vq[0]);
		fake_vq_irqs(&b->drv.vq[1]);
		CHECK_EQ(request(b, q), 0);
		CHECK_EQ(fake_vq_irqs(&b->drv.vq[q]), 1);
		if (!b->drv.opts.intx)
			CHECK_EQ(fake_vq_irqs(&b->drv.vq[!q]), 0);
	}
}

static u32 cfg(struct bench *b, unsigned off, unsigned len)
{
	return fake_pci_read(&b->fm, b->drv.slot, off, len);
}

static void cfg_write(struct bench *b, unsigned off, unsigned len, u32 value)
{
	fake_pci_write(&b->fm, b->drv.slot, off, len, value);
}

/* --- identity and capabilities --- */

static void t_identity(void)
{
	struct bench b;
	bool io_first;

	for (int no_io = 0; no_io < 2; no_io++) {
		const struct fake_machine_opts mopts = { .no_io = no_io };

		bench_open_on(&b, &mopts, NULL);
		CHECK_EQ(cfg(&b, PCI_VENDOR_ID, 2), 0x1af4);
		CHECK_EQ(cfg(&b, PCI_DEVICE_ID, 2), 0x1040 + ECHO_ID);
		CHECK_EQ(cfg(&b, PCI_REVISION_ID, 1), 1);
		CHECK(cfg(&b, PCI_SUBSYSTEM_ID, 2) >= 0x40); /* 4.1.2.1: not a transitional one */
		CHECK_EQ(b.drv.nr_notify, no_io ? 1 : 2);
		io_first = b.drv.notify[0].io;
		CHECK_EQ(io_first, !no_io);
		CHECK_EQ(b.drv.notify_multiplier, 4);
		CHECK_EQ(b.drv.nr_vqs, NR_VQS);
		CHECK_EQ(b.fm.hv.nr_bells, NR_VQS * b.drv.nr_notify);
		check_works(&b);
		fake_machine_free(&b.fm);
	}
}

/* Each capability lies inside its BAR, whose length the sizing protocol tells. */
static void t_caps_fit(void)
{
	struct bench b;
	unsigned cap, n, types = 0;

	bench_open(&b, NULL);
	for (n = 0; (cap = fake_pci_cap(&b.fm, b.drv.slot, PCI_CAP_ID_VNDR, n)); n++) {
		unsigned bar = cfg(&b, cap + 4, 1), reg = PCI_BASE_ADDRESS_0 + 4 * bar;
		u32 old = cfg(&b, reg, 4), size;

		types |= 1u << cfg(&b, cap + 3, 1);
		if (cfg(&b, cap + 3, 1) == 5)
			continue;
		cfg_write(&b, reg, 4, 0xffffffff);
		size = cfg(&b, reg, 4);
		size = ~(size & (size & 1 ? ~3u : ~15u)) + 1;
		cfg_write(&b, reg, 4, old);
		CHECK(cfg(&b, cap + 8, 4) + cfg(&b, cap + 12, 4) <= size);
		CHECK(cfg(&b, cap + 12, 4) > 0);
		CHECK(cfg(&b, cap + 2, 1) >= 16);
	}
	CHECK_EQ(types, 0x3e); /* all five */
	CHECK_EQ(n, 6);        /* notify twice */
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* --- out of range (traps C8) --- */

static void t_queue_select_out_of_range(void)
{
	static const unsigned sel[] = { NR_VQS, NR_VQS + 1, 0x100, 0x8000, 0xffff };
	struct bench b;

	bench_open(&b, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(sel); i++) {
		fake_common_write(&b.drv, VP_QSELECT, 2, sel[i]);
		CHECK_EQ(fake_common_read(&b.drv, VP_QSELECT, 2), sel[i]);
		CHECK_EQ(fake_common_read(&b.drv, VP_QSIZE, 2), 0);
		CHECK_EQ(fake_common_read(&b.drv, VP_QENABLE, 2), 0);
		CHECK_EQ(fake_common_read(&b.drv, VP_QDESC, 8), 0);
		fake_common_write(&b.drv, VP_QSIZE, 2, 4);
		fake_common_write(&b.drv, VP_QENABLE, 2, 1);
		fake_common_write(&b.drv, VP_QMSIX, 2, 0);
		CHECK_EQ(fake_common_read(&b.drv, VP_QMSIX, 2), 0xffff);
		for (unsigned reg = VP_QSIZE; reg < 0x80; reg++)
			fake_common_write(&b.drv, reg, 1, 0xff);
		CHECK_EQ(fake_common_read(&b.drv, VP_QSIZE, 2), 0);
	}
	check_works(&b);
	fake_machine_free(&b.fm);
}

static void t_vectors_out_of_range(void)
{
	static const unsigned bad[] = { NR_VQS + 1, NR_VQS + 2, 63, 64, 0x7fff, 0xfffe, 0xffff };
	struct bench b;

	bench_open(&b, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		fake_common_write(&b.drv, VP_MSIX, 2, bad[i]);
		CHECK_EQ(fake_common_read(&b.drv, VP_MSIX, 2), 0xffff);
		fake_common_write(&b.drv, VP_QSELECT, 2, 1);
		fake_common_write(&b.drv, VP_QMSIX, 2, bad[i]);
		CHECK_EQ(fake_common_read(&b.drv, VP_QMSIX, 2), 0xffff);
		CHECK_EQ(request(&b, 1), 0); /* served, without an interrupt */
		CHECK_EQ(fake_vq_irqs(&b.drv.vq[1]), 0);
	}
	/* A vector comes back while the queue runs, and what waited for one is told. */
	fake_common_write(&b.drv, VP_QMSIX, 2, 2);
	CHECK_EQ(fake_common_read(&b.drv, VP_QMSIX, 2), 2);
	CHECK_EQ(fake_vq_irqs(&b.drv.vq[1]), 1);
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Doorbells of queues that are not there or not enabled, before DRIVER_OK, at odd addresses. */
static void t_stray_doorbells(void)
{
	struct bench b;
	u64 count;

	fake_machine_init(&b.fm, NULL);
	REQUIRE(echo_new(&b.fm.m, NR_VQS, SIZE, &b.echo) == 0);
	REQUIRE(fake_driver_probe(&b.drv, &b.fm, ECHO_ID, NULL));
	REQUIRE(fake_driver_negotiate(&b.drv));
	for (int round = 0; round < 2; round++) {
		for (unsigned n = 0; n < b.drv.nr_notify; n++)
			for (u64 off = 0; off < 0x1000; off++)
				for (unsigned len = 1; len <= 8; len *= 2)
					fake_guest_write(&b.fm, b.drv.notify[n].io,
							 b.drv.notify[n].addr + off, 0xffff, len);
		CHECK_EQ(b.echo->dev.vq[0].nr_doorbells, (round + 1) * 8);
		CHECK(read(b.echo->dev.vq[0].kick, &count, sizeof(count)) < 0);
		fake_machine_run(&b.fm);
		CHECK_EQ(b.echo->nr_handled, 0);
		CHECK_EQ(fake_driver_status(&b.drv), round ? 0xf : 0xb);
		CHECK(fake_driver_start(&b.drv)); /* no queue is enabled */
	}
	CHECK(fake_driver_restart(&b.drv));
	b.out = fake_alloc(&b.drv, 64, 64);
	b.in = fake_alloc(&b.drv, 64, 64);
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* --- registers --- */

/* The same values by bytes, words, dwords, qwords, also unaligned. */
static void t_any_width(void)
{
	struct bench b;
	u8 bytes[64];

	bench_open(&b, NULL);
	fake_common_write(&b.drv, VP_QSELECT, 2, 1);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)fake_common_read(&b.drv, i, 1);
	for (unsigned len = 1; len <= 8; len *= 2) {
		for (unsigned off = 0; off + len <= sizeof(bytes); off++) {
			u64 want = 0, got = fake_common_read(&b.drv, off, len);

			memcpy(&want, bytes + off, len);
			CHECK_EQ(got, want);
		}
	}
	/* 64-bit registers as two of 32, one of 64, or eight of 8. */
	REQUIRE(fake_driver_negotiate(&b.drv));
	fake_guest_write(&b.fm, false, b.drv.common + VP_QDESC, 0x1122334455667780, 8);
	CHECK_EQ(fake_common_read(&b.drv, VP_QDESC, 8), 0x1122334455667780);
	fake_common_write(&b.drv, VP_QDESC, 8, 0x8877665544332210);
	CHECK_EQ(fake_common_read(&b.drv, VP_QDESC, 8), 0x8877665544332210);
	for (unsigned i = 0; i < 8; i++)
		fake_common_write(&b.drv, VP_QUSED + i, 1, 0x10 + i);
	CHECK_EQ(fake_common_read(&b.drv, VP_QUSED, 8), 0x1716151413121110);
	fake_machine_free(&b.fm);
}

/* Every offset of BAR 0, every width, values of all kinds: nothing breaks, a reset mends. */
static void t_scribble(void)
{
	static const u64 values[] = { 0, 1, UINT64_MAX, 0x8000800080008000 };
	struct bench b;
	u64 buf;

	bench_open(&b, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(values); i++) {
		for (unsigned len = 1; len <= 8; len *= 2) {
			for (u64 off = 0; off < 0x4000; off += off % 0x1000 == 0x100 ? 0xef8 : 1) {
				bus_read(&b.fm.m.mmio, b.drv.common + off, &buf, len);
				bus_write(&b.fm.m.mmio, b.drv.common + off, &values[i], len);
			}
		}
	}
	fake_machine_run(&b.fm);
	REQUIRE(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

static void t_queue_size(void)
{
	static const struct {
		unsigned write, read;
	} c[] = { { 4, 4 },      { 3, 4 },      { 0, 4 }, { 16, 4 }, { 1, 1 },
		  { 0xffff, 1 }, { 0x8000, 1 }, { 8, 8 }, { 2, 2 } };
	struct bench b;

	bench_open(&b, NULL);
	REQUIRE(fake_driver_negotiate(&b.drv));
	fake_common_write(&b.drv, VP_QSELECT, 2, 0);
	CHECK_EQ(fake_common_read(&b.drv, VP_QSIZE, 2), SIZE);
	for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
		fake_common_write(&b.drv, VP_QSIZE, 2, c[i].write);
		CHECK_EQ(fake_common_read(&b.drv, VP_QSIZE, 2), c[i].read);
	}
	fake_machine_free(&b.fm);
}

/* A queue that runs is not disturbed by anything that is written to its registers. */
static void t_running_queue_is_safe(void)
{
	struct bench b;

	bench_open(&b, NULL);
	check_works(&b);
	for (unsigned q = 0; q < NR_VQS; q++) {
		fake_common_write(&b.drv, VP_QSELECT, 2, q);
		fake_common_write(&b.drv, VP_QSIZE, 2, 2);
		fake_common_write(&b.drv, VP_QENABLE, 2, 0);
		fake_common_write(&b.drv, VP_QENABLE, 2, 1);
		fake_common_write(&b.drv, VP_QDESC, 8, 0xdead0000);
		fake_common_write(&b.drv, VP_QAVAIL, 8, 0xdead0000);
		fake_common_write(&b.drv, VP_QUSED, 8, 0xdead0000);
		CHECK_EQ(fake_common_read(&b.drv, VP_QENABLE, 2), 1);
		CHECK_EQ(fake_common_read(&b.drv, VP_QSIZE, 2), SIZE);
		CHECK_EQ(fake_common_read(&b.drv, VP_QDESC, 8), b.drv.vq[q].desc_gpa);
	}
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Only 1 enables, and 0 does not disable what was enabled before DRIVER_OK. */
static void t_queue_enable(void)
{
	struct bench b;

	bench_open(&b, NULL);
	REQUIRE(fake_driver_negotiate(&b.drv));
	fake_common_write(&b.drv, VP_QSELECT, 2, 0);
	fake_common_write(&b.drv, VP_QENABLE, 2, 0);
	CHECK_EQ(fake_common_read(&b.drv, VP_QENABLE, 2), 0);
	fake_common_write(&b.drv, VP_QENABLE, 2, 2);
	CHECK_EQ(fake_common_read(&b.drv, VP_QENABLE, 2), 0);
	fake_common_write(&b.drv, VP_QENABLE, 2, 1);
	CHECK_EQ(fake_common_read(&b.drv, VP_QENABLE, 2), 1);
	fake_common_write(&b.drv, VP_QENABLE, 2, 0);
	CHECK_EQ(fake_common_read(&b.drv, VP_QENABLE, 2), 1);
	fake_machine_free(&b.fm);
}

/* --- doorbells (traps C14) --- */

/* Both doorbells, all widths, with an ioeventfd and without: the request is served. */
static void t_doorbells(void)
{
	struct bench b;
	const struct fake_seg *segs;

	bench_open(&b, NULL);
	segs = (struct fake_seg[]){ { b.out, 64 }, { b.in, 64, true } };
	for (unsigned i = 0; i < 2 * 2 * 4; i++) {
		unsigned n = i & 1, len = 1u << (i >> 2);
		bool slow = i & 2;
		u64 addr = b.drv.notify[n].addr + 4, value = 1;
		u64 exits = b.echo->dev.vq[1].nr_doorbells;

		REQUIRE(fake_vq_add(&b.drv.vq[1], segs, 2, &b) >= 0);
		fake_vq_publish(&b.drv.vq[1]);
		if (slow)
			bus_write(n ? &b.fm.m.mmio : &b.fm.m.pio, addr, &value, len);
		else
			CHECK(fake_guest_write(&b.fm, b.drv.notify[n].io, addr, value, len));
		fake_machine_run(&b.fm);
		CHECK(fake_vq_get(&b.drv.vq[1], NULL) == &b);
		CHECK_EQ(b.echo->dev.vq[1].nr_doorbells - exits, slow);
	}
	fake_machine_free(&b.fm);
}

/* One behind the last queue of the largest device. */
static void t_doorbell_past_the_end(void)
{
	struct bench b;
	u16 value = 0;

	fake_machine_init(&b.fm, NULL);
	REQUIRE(echo_new(&b.fm.m, VIRTIO_MAX_VQS, SIZE, &b.echo) == 0);
	fake_driver_open(&b.drv, &b.fm, ECHO_ID, NULL);
	for (unsigned n = 0; n < b.drv.nr_notify; n++)
		for (u64 i = VIRTIO_MAX_VQS; i < VIRTIO_MAX_VQS + 4; i++)
			bus_write(n ? &b.fm.m.mmio : &b.fm.m.pio, b.drv.notify[n].addr + 4 * i,
				  &value, 2);
	CHECK_EQ(fake_driver_status(&b.drv), 0xf);
	fake_machine_free(&b.fm);
}

static void t_slow_doorbell(void)
{
	const struct fake_driver_opts opts = { .slow_doorbell = true };
	struct bench b;

	bench_open(&b, &opts);
	check_works(&b);
	CHECK_EQ(b.echo->dev.vq[0].nr_doorbells, b.drv.vq[0].nr_rings);
	fake_machine_free(&b.fm);
}

/* Moves a BAR as a guest does: decoding off, address, decoding on. */
static void move_bar(struct bench *b, unsigned bar, u32 addr, bool decode_off)
{
	u32 cmd = cfg(b, PCI_COMMAND, 2);

	if (decode_off)
		cfg_write(b, PCI_COMMAND, 2, cmd & ~(u32)(PCI_COMMAND_IO | PCI_COMMAND_MEMORY));
	cfg_write(b, PCI_BASE_ADDRESS_0 + 4 * bar, 4, addr);
	cfg_write(b, PCI_COMMAND, 2, cmd);
	fake_driver_find_caps(&b->drv);
}

static void t_bar_moves_while_running(void)
{
	struct bench b;
	u64 old_mem, old_io;

	for (int decode_off = 0; decode_off < 2; decode_off++) {
		bench_open(&b, NULL);
		old_io = b.drv.notify[0].addr;
		old_mem = b.drv.notify[1].addr;
		move_bar(&b, 0, FAKE_MMIO + 0x8000000, decode_off);
		CHECK(b.drv.notify[1].addr != old_mem);
		check_works(&b);
		CHECK(!fake_hv_doorbell(&b.fm.hv, old_mem, false, 0, 2));
		CHECK(fake_hv_doorbell(&b.fm.hv, b.drv.notify[1].addr, false, 0, 2));
		move_bar(&b, 2, FAKE_IO + 0x800, decode_off);
		CHECK_EQ(b.drv.notify[0].addr, FAKE_IO + 0x800);
		check_works(&b);
		CHECK(!fake_hv_doorbell(&b.fm.hv, old_io, true, 0, 2));
		move_bar(&b, 1, FAKE_MMIO + 0x9000000, decode_off); /* the MSI-X table */
		check_works(&b);
		CHECK_EQ(b.fm.hv.nr_bells, NR_VQS * 2);
		fake_machine_free(&b.fm);
	}
}

/* Without I/O space the doorbell in memory serves, and the other way round. */
static void t_spaces_off(void)
{
	const struct fake_driver_opts mem = { .mem_doorbell = true };
	struct bench b;

	bench_open(&b, &mem);
	cfg_write(&b, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	CHECK_EQ(b.fm.hv.nr_bells, NR_VQS);
	check_works(&b);
	REQUIRE(fake_driver_restart(&b.drv)); /* wired anew: only the one that is there */
	CHECK_EQ(b.fm.hv.nr_bells, NR_VQS);
	check_works(&b);
	cfg_write(&b, PCI_COMMAND, 2, 0);
	CHECK_EQ(b.fm.hv.nr_bells, 0);
	cfg_write(&b, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_IO);
	CHECK_EQ(b.fm.hv.nr_bells, NR_VQS * 2);
	check_works(&b);
	fake_machine_free(&b.fm);
}

static void ignore_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* A doorbell that cannot come back breaks the device, and only that. */
static void t_move_fails(void)
{
	struct bench b;

	log_set_sink(ignore_log);
	for (unsigned n = 1; n <= NR_VQS; n++) {
		bench_open(&b, NULL);
		fake_hv_fail(&b.fm.hv, n);
		move_bar(&b, 0, FAKE_MMIO + 0x8000000, true);
		fake_hv_fail(&b.fm.hv, 0);
		CHECK_EQ(fake_driver_status(&b.drv), 0x4f);
		CHECK_EQ(b.fm.hv.nr_bells, 0);
		CHECK(fake_driver_restart(&b.drv));
		check_works(&b);
		fake_machine_free(&b.fm);
	}
}

/* --- the window in config space --- */

static unsigned window_set(struct bench *b, u32 bar, u32 offset, u32 length)
{
	unsigned cap = fake_pci_cap(&b->fm, b->drv.slot, PCI_CAP_ID_VNDR, 5);

	CHECK_EQ(cfg(b, cap + 3, 1), 5);
	cfg_write(b, cap + WIN_BAR, 1, bar);
	cfg_write(b, cap + WIN_OFFSET, 4, offset);
	cfg_write(b, cap + WIN_LENGTH, 4, length);
	return cap + WIN_DATA;
}

static void t_window(void)
{
	struct bench b;
	unsigned data;

	bench_open(&b, NULL);
	data = window_set(&b, 0, VP_STATUS, 1);
	CHECK_EQ(cfg(&b, data, 1), 0xf);
	CHECK_EQ(cfg(&b, data, 4) & 0xff, 0xf);
	data = window_set(&b, 0, VP_NUMQ, 2);
	CHECK_EQ(cfg(&b, data, 2), NR_VQS);
	data = window_set(&b, 0, VP_DFSELECT, 4);
	cfg_write(&b, data, 4, 1);
	data = window_set(&b, 0, VP_DF, 4);
	CHECK_EQ(cfg(&b, data, 4), b.echo->dev.offered[0] >> 32);
	data = window_set(&b, 0, 0x2000, 4);
	CHECK_EQ(cfg(&b, data, 4), 0x6f686365);
	/* Not aligned to its width: no access. */
	data = window_set(&b, 0, 0x2001, 4);
	cfg_write(&b, data, 4, 0x12345678);
	CHECK_EQ(cfg(&b, data, 4), 0x12345678);
	data = window_set(&b, 0, 0x2000, 4);
	/* It needs no decoding of memory. */
	cfg_write(&b, PCI_COMMAND, 2, 0);
	CHECK_EQ(cfg(&b, data, 4), 0x6f686365);
	/* A doorbell, and a reset. */
	data = window_set(&b, 2, 0, 2);
	cfg_write(&b, data, 2, 0);
	CHECK_EQ(b.echo->dev.vq[0].nr_doorbells, 1);
	data = window_set(&b, 0, VP_STATUS, 1);
	cfg_write(&b, data, 1, 0);
	CHECK_EQ(cfg(&b, data, 1), 0);
	cfg_write(&b, PCI_COMMAND, 2, 7);
	CHECK(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

static void t_window_abuse(void)
{
	static const u32 bars[] = { 0, 1, 2, 3, 5, 6, 255 };
	static const u32 offsets[] = { 0,      1,          0x3ffc,     0x3fff,
				       0x4000, 0x7ffffffe, 0xfffffffc, 0xffffffff };
	static const u32 lengths[] = { 0, 1, 2, 3, 4, 8, 0xffffffff };
	struct bench b;

	bench_open(&b, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(bars); i++) {
		for (unsigned j = 0; j < ARRAY_SIZE(offsets); j++) {
			for (unsigned k = 0; k < ARRAY_SIZE(lengths); k++) {
				unsigned data = window_set(&b, bars[i], offsets[j], lengths[k]);

				cfg(&b, data, 4);
				fake_ecam_read(&b.fm, b.drv.slot, data, 8);
				if (bars[i] || offsets[j]) /* not DFSELECT */
					cfg_write(&b, data, 4, 0xffffffff);
			}
		}
	}
	CHECK(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Odd accesses to the configuration ports and ECAM (traps C16). */
static void t_config_ports(void)
{
	struct bench b;
	u64 v = 0;

	bench_open(&b, NULL);
	for (unsigned len = 1; len <= 8; len *= 2) {
		for (u64 off = 0; off < 8; off++) {
			bus_read(&b.fm.m.pio, FAKE_CONF1 + off, &v, len);
			if (off != 1) /* the reset control register */
				bus_write(&b.fm.m.pio, FAKE_CONF1 + off, &v, len);
		}
		for (u64 off = 0x3c; off < 0x110; off++)
			bus_read(&b.fm.m.mmio, FAKE_ECAM + b.drv.slot * 0x8000 + off, &v, len);
	}
	CHECK(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Building fails at each step in turn: no bus range, no slot; nothing is left behind. */
static void t_attach_fails(void)
{
	struct fake_machine fm;
	struct echo *e;

	log_set_sink(ignore_log);
	fake_machine_init(&fm, NULL);
	for (int i = 0; i < 31; i++)
		REQUIRE(echo_new(&fm.m, 1, SIZE, &e) == 0);
	CHECK_EQ(echo_new(&fm.m, 1, SIZE, &e), -ENOSPC);
	fake_machine_free(&fm);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_identity), T(t_caps_fit), T(t_queue_select_out_of_range),
		       T(t_vectors_out_of_range), T(t_stray_doorbells), T(t_any_width),
		       T(t_scribble), T(t_queue_size), T(t_running_queue_is_safe),
		       T(t_queue_enable), T(t_doorbells), T(t_doorbell_past_the_end),
		       T(t_slow_doorbell), T(t_bar_moves_while_running), T(t_spaces_off),
		       T(t_move_fails), T(t_window), T(t_window_abuse), T(t_config_ports),
		       T(t_attach_fails));
}
