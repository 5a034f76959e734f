// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts of the PCI transport: INTx with its ISR, MSI-X with its table and pending bits, and
 * the way from one to the other (traps C13, C17).
 */
#include <linux/pci_regs.h>

#include "../fake/echo.h"
#include "../fake/fake-driver.h"
#include "../tap.h"
#include "hw/msix.h"
#include "log.h"

#define NR_VQS 2
#define SIZE   8

static void ignore_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

struct bench {
	struct fake_machine fm;
	struct fake_driver drv;
	struct echo *echo;
	u64 out, in;
};

static void bench_open(struct bench *b, const struct fake_driver_opts *dopts)
{
	fake_machine_init(&b->fm, NULL);
	REQUIRE(echo_new(&b->fm.m, NR_VQS, SIZE, &b->echo) == 0);
	fake_driver_open(&b->drv, &b->fm, ECHO_ID, dopts);
	b->out = fake_alloc(&b->drv, 64, 64);
	b->in = fake_alloc(&b->drv, 64, 64);
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

/* --- INTx (traps C13) --- */

static u32 line_of(struct bench *b)
{
	return cfg(b, PCI_INTERRUPT_LINE, 1);
}

static void t_intx(void)
{
	const struct fake_driver_opts opts = { .intx = true };
	struct bench b;
	u32 gsi;

	bench_open(&b, &opts);
	gsi = line_of(&b);
	CHECK(!fake_hv_level(&b.fm.hv, gsi));
	CHECK_EQ(b.fm.hv.nr_irqfds, 0);
	CHECK_EQ(request(&b, 0), 0);
	CHECK(fake_hv_level(&b.fm.hv, gsi));
	CHECK(cfg(&b, PCI_STATUS, 2) & PCI_STATUS_INTERRUPT);
	/* A config change while a queue interrupt is pending: both bits in one read. */
	pthread_mutex_lock(&b.echo->dev.lock);
	virtio_config_changed(&b.echo->dev);
	pthread_mutex_unlock(&b.echo->dev.lock);
	CHECK_EQ(fake_isr_read(&b.drv), VIRTIO_ISR_QUEUE | VIRTIO_ISR_CONFIG);
	CHECK(!fake_hv_level(&b.fm.hv, gsi));
	CHECK(!(cfg(&b, PCI_STATUS, 2) & PCI_STATUS_INTERRUPT));
	CHECK_EQ(fake_isr_read(&b.drv), 0);
	/* Other bytes of the page say nothing and clear nothing. */
	CHECK_EQ(request(&b, 1), 0);
	CHECK_EQ(fake_guest_read(&b.fm, false, b.drv.isr + 1, 1), 0);
	CHECK(fake_hv_level(&b.fm.hv, gsi));
	CHECK_EQ(fake_guest_read(&b.fm, false, b.drv.isr, 4), VIRTIO_ISR_QUEUE);
	CHECK(!fake_hv_level(&b.fm.hv, gsi));
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* A reset with the ISR unread drops the line, and no callback raises it again. */
static void t_intx_reset(void)
{
	const struct fake_driver_opts opts = { .intx = true };
	struct bench b;

	bench_open(&b, &opts);
	CHECK_EQ(request(&b, 0), 0);
	CHECK(fake_hv_level(&b.fm.hv, line_of(&b)));
	REQUIRE(fake_driver_reset(&b.drv));
	CHECK(!fake_hv_level(&b.fm.hv, line_of(&b)));
	CHECK_EQ(fake_isr_read(&b.drv), 0);
	/* Signalled, but not yet seen by the loop. */
	REQUIRE(fake_driver_restart(&b.drv));
	pthread_mutex_lock(&b.echo->dev.lock);
	virtq_signal(&b.echo->dev.vq[0]);
	pthread_mutex_unlock(&b.echo->dev.lock);
	REQUIRE(fake_driver_reset(&b.drv));
	fake_machine_run(&b.fm);
	CHECK(!fake_hv_level(&b.fm.hv, line_of(&b)));
	REQUIRE(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Interrupt Line is the guest's scratch register; INTx disable masks and does not forget. */
static void t_intx_registers(void)
{
	const struct fake_driver_opts opts = { .intx = true };
	struct bench b;
	u32 gsi, cmd;

	bench_open(&b, &opts);
	gsi = line_of(&b);
	cfg_write(&b, PCI_INTERRUPT_LINE, 1, 0xff);
	cfg_write(&b, PCI_STATUS, 2, 0xffff);
	cfg_write(&b, PCI_COMMAND, 4, cfg(&b, PCI_COMMAND, 2) | 0xffff0000);
	CHECK(cfg(&b, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST);
	check_works(&b);
	cmd = cfg(&b, PCI_COMMAND, 2);
	cfg_write(&b, PCI_COMMAND, 2, cmd | PCI_COMMAND_INTX_DISABLE);
	CHECK_EQ(request(&b, 0), 0);
	CHECK(!fake_hv_level(&b.fm.hv, gsi));
	cfg_write(&b, PCI_COMMAND, 2, cmd);
	CHECK(fake_hv_level(&b.fm.hv, gsi));
	CHECK_EQ(fake_isr_read(&b.drv), VIRTIO_ISR_QUEUE);
	fake_machine_free(&b.fm);
}

/* Two devices on one line: it is up while either wants it. */
static void t_intx_shared(void)
{
	const struct fake_driver_opts opts = { .intx = true };
	struct bench b;
	struct echo *other[4];
	struct fake_driver drv;
	u32 gsi;

	bench_open(&b, &opts);
	for (unsigned i = 0; i < 4; i++)
		REQUIRE(echo_new(&b.fm.m, 1, SIZE, &other[i]) == 0);
	drv = b.drv;
	drv.slot += 4; /* the same line again */
	fake_driver_find_caps(&drv);
	drv.nr_vqs = 1;
	memset(drv.vq, 0, sizeof(drv.vq));
	REQUIRE(fake_driver_restart(&drv));
	fake_driver_find_caps(&drv);
	gsi = line_of(&b);
	CHECK_EQ(fake_pci_read(&b.fm, drv.slot, PCI_INTERRUPT_LINE, 1), gsi);
	CHECK_EQ(request(&b, 0), 0);
	CHECK_EQ(fake_vq_request(&drv.vq[0], (struct fake_seg[]){ { b.out, 1 } }, 1, NULL), 0);
	CHECK(fake_hv_level(&b.fm.hv, gsi));
	CHECK_EQ(fake_isr_read(&b.drv), VIRTIO_ISR_QUEUE);
	CHECK(fake_hv_level(&b.fm.hv, gsi));
	CHECK_EQ(fake_isr_read(&drv), VIRTIO_ISR_QUEUE);
	CHECK(!fake_hv_level(&b.fm.hv, gsi));
	fake_machine_free(&b.fm);
}

/*
 * A bus full of devices on four lines: each line is up until the last of its devices was read, and
 * says nothing of the other lines (traps C13).
 */
static void intx_full_bus(enum virtio_transport_kind kind)
{
	enum { NR = 31 };
	static struct fake_driver drv[NR];
	const struct fake_driver_opts opts = { .intx = true };
	struct fake_machine fm;
	struct echo *e;

	fake_transport = kind;
	fake_machine_init(&fm, NULL);
	for (unsigned i = 0; i < NR; i++)
		REQUIRE(echo_new(&fm.m, 1, SIZE, &e) == 0);
	REQUIRE(fake_driver_probe(&drv[0], &fm, ECHO_ID, &opts));
	for (unsigned i = 0; i < NR; i++) {
		u64 buf;

		drv[i] = drv[0];
		drv[i].slot = i + 1;
		drv[i].next_mem = drv[i ? i - 1 : 0].next_mem;
		drv[i].next_high = drv[i ? i - 1 : 0].next_high;
		memset(drv[i].vq, 0, sizeof(drv[i].vq));
		fake_driver_find_caps(&drv[i]);
		REQUIRE(fake_driver_restart(&drv[i]));
		buf = fake_alloc(&drv[i], 16, 16);
		CHECK_EQ(fake_vq_request(&drv[i].vq[0], (struct fake_seg[]){ { buf, 1 } }, 1, NULL),
			 0);
	}
	for (unsigned i = 0; i < NR; i++) {
		u32 gsi = fake_pci_read(&fm, drv[i].slot, PCI_INTERRUPT_LINE, 1);
		bool last = i + 4 >= NR;

		CHECK_EQ(gsi, FAKE_INTX + (i + 1) % 4);
		CHECK(fake_hv_level(&fm.hv, gsi));
		CHECK_EQ(fake_isr_read(&drv[i]), VIRTIO_ISR_QUEUE);
		CHECK_EQ(fake_isr_read(&drv[i]), 0);
		CHECK_EQ(fake_hv_level(&fm.hv, gsi), !last);
	}
	/* A reset with the bit unread lets go of a line that others still hold, and of it alone. */
	for (unsigned i = 0; i < 5; i++) {
		fake_vq_irq_on(&drv[i].vq[0]);
		fake_vq_add_head(&drv[i].vq[0], 0);
		fake_vq_kick(&drv[i].vq[0]);
		fake_machine_run(&fm);
	}
	REQUIRE(fake_driver_reset(&drv[0]));
	for (unsigned line = 0; line < 4; line++)
		CHECK(fake_hv_level(&fm.hv, FAKE_INTX + line));
	REQUIRE(fake_driver_reset(&drv[4])); /* the same line */
	CHECK(!fake_hv_level(&fm.hv, FAKE_INTX + 1));
	CHECK(fake_hv_level(&fm.hv, FAKE_INTX + 2));
	fake_machine_free(&fm);
}

static void t_intx_full_bus(void)
{
	intx_full_bus(VIRTIO_ON_PCI);
	intx_full_bus(VIRTIO_ON_PCI_LEGACY);
}

/* --- MSI-X --- */

static void set_msix(struct bench *b, u32 control)
{
	cfg_write(b, fake_pci_cap(&b->fm, b->drv.slot, PCI_CAP_ID_MSIX, 0) + 2, 2, control);
}

static bool pending(struct bench *b, unsigned v)
{
	return fake_guest_read(&b->fm, false, b->drv.msix_table + MSIX_TABLE_SIZE, 8) >> v & 1;
}

/* Masked: the signal waits, shows as pending, and comes once when unmasked. */
static void t_mask(void)
{
	struct bench b;
	struct fake_vq *vq;

	bench_open(&b, NULL);
	vq = &b.drv.vq[1];
	for (int i = 0; i < 3; i++) {
		fake_msix_mask(&b.drv, 2, true);
		CHECK(!pending(&b, 2));
		CHECK_EQ(request(&b, 1), 0);
		CHECK_EQ(request(&b, 1), 0);
		CHECK_EQ(fake_vq_irqs(vq), 0);
		CHECK(pending(&b, 2));
		CHECK(!pending(&b, 1));
		fake_msix_mask(&b.drv, 2, false);
		CHECK_EQ(fake_vq_irqs(vq), 1);
		CHECK(!pending(&b, 2));
		CHECK_EQ(fake_vq_irqs(vq), 0);
		check_works(&b);
	}
	/* The same by the function mask. */
	set_msix(&b, PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	CHECK_EQ(request(&b, 1), 0);
	CHECK_EQ(fake_vq_irqs(vq), 0);
	CHECK(pending(&b, 2));
	set_msix(&b, PCI_MSIX_FLAGS_ENABLE);
	CHECK_EQ(fake_vq_irqs(vq), 1);
	/* Pending while masked, and then a reset: it is not an interrupt of the next life. */
	fake_msix_mask(&b.drv, 2, true);
	CHECK_EQ(request(&b, 1), 0);
	REQUIRE(fake_driver_reset(&b.drv));
	CHECK(!pending(&b, 2));
	REQUIRE(fake_driver_restart(&b.drv));
	CHECK_EQ(fake_vq_irqs(vq), 0);
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* A queue's vector moves to another message while it runs, as irq affinity does. */
static void t_retarget(void)
{
	struct bench b;
	u64 entry;

	bench_open(&b, NULL);
	entry = b.drv.msix_table + 2 * 16;
	CHECK_EQ(request(&b, 1), 0);
	CHECK_EQ(fake_vq_irqs(&b.drv.vq[1]), 1);
	fake_msix_mask(&b.drv, 2, true);
	fake_guest_write(&b.fm, false, entry, 0xfee01000, 4);
	fake_guest_write(&b.fm, false, entry + 8, 0x77, 4);
	CHECK_EQ(request(&b, 1), 0);
	fake_msix_mask(&b.drv, 2, false);
	CHECK_EQ(fake_vq_irqs(&b.drv.vq[1]), 0);
	CHECK_EQ(fake_hv_msi_count(&b.fm.hv, 0xfee01000, 0x77), 1);
	CHECK_EQ(b.fm.hv.lost, 0);
	fake_machine_free(&b.fm);
}

/* All on one vector, as a guest with few vectors has it. */
static void t_shared_vector(void)
{
	struct bench b;

	bench_open(&b, NULL);
	for (unsigned q = 0; q < NR_VQS; q++) {
		fake_common_write(&b.drv, VP_QSELECT, 2, q);
		fake_common_write(&b.drv, VP_QMSIX, 2, 0);
		CHECK_EQ(fake_common_read(&b.drv, VP_QMSIX, 2), 0);
	}
	CHECK_EQ(request(&b, 0), 0);
	CHECK_EQ(fake_driver_config_irqs(&b.drv), 1);
	CHECK_EQ(request(&b, 1), 0);
	CHECK_EQ(fake_driver_config_irqs(&b.drv), 2);
	CHECK_EQ(fake_vq_irqs(&b.drv.vq[0]) + fake_vq_irqs(&b.drv.vq[1]), 0);
	fake_machine_free(&b.fm);
}

/* MSI-X switched on and off while the queues run, with a signal under way each time. */
static void t_switch_while_running(void)
{
	const struct fake_driver_opts opts = { .intx = true };
	struct bench b;
	struct virtq *vq;
	u32 gsi;

	bench_open(&b, &opts);
	vq = &b.echo->dev.vq[0];
	gsi = line_of(&b);
	b.drv.opts.intx = false;
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(request(&b, 1), 0);
		CHECK(fake_hv_level(&b.fm.hv, gsi));
		pthread_mutex_lock(&b.echo->dev.lock);
		virtq_signal(vq); /* not seen by the loop before MSI-X takes over */
		pthread_mutex_unlock(&b.echo->dev.lock);
		fake_driver_setup_irqs(&b.drv);
		CHECK(!fake_hv_level(&b.fm.hv, gsi)); /* MSI-X on: the pin is quiet */
		fake_vq_irqs(&b.drv.vq[0]);
		for (unsigned q = 0; q < NR_VQS; q++) {
			fake_common_write(&b.drv, VP_QSELECT, 2, q);
			fake_common_write(&b.drv, VP_QMSIX, 2, q + 1);
		}
		if (i == 0)
			CHECK_EQ(fake_vq_irqs(&b.drv.vq[0]), 1); /* the signal moved along */
		check_works(&b);
		fake_msix_mask(&b.drv, 1, true);
		pthread_mutex_lock(&b.echo->dev.lock);
		virtq_signal(vq);
		pthread_mutex_unlock(&b.echo->dev.lock);
		fake_isr_read(&b.drv);
		set_msix(&b, 0);
		fake_machine_run(&b.fm);
		CHECK(fake_hv_level(&b.fm.hv, gsi)); /* and back */
		CHECK_EQ(b.fm.hv.nr_irqfds, 0);
		CHECK_EQ(fake_isr_read(&b.drv), VIRTIO_ISR_QUEUE);
		CHECK(!fake_hv_level(&b.fm.hv, gsi));
	}
	fake_machine_free(&b.fm);
}

static void t_switch_fails(void)
{
	const struct fake_driver_opts opts = { .intx = true };
	struct bench b;

	log_set_sink(ignore_log);
	bench_open(&b, &opts);
	b.drv.opts.intx = false;
	fake_driver_setup_irqs(&b.drv);
	for (unsigned q = 0; q < NR_VQS; q++) {
		fake_common_write(&b.drv, VP_QSELECT, 2, q);
		fake_common_write(&b.drv, VP_QMSIX, 2, q + 1);
	}
	set_msix(&b, 0);
	/* The config vector's irqfd comes back first, then the queues'. */
	fake_hv_fail(&b.fm.hv, 2);
	set_msix(&b, PCI_MSIX_FLAGS_ENABLE);
	fake_hv_fail(&b.fm.hv, 0);
	CHECK_EQ(fake_driver_status(&b.drv), 0x4f);
	CHECK(fake_driver_restart(&b.drv));
	check_works(&b);
	fake_machine_free(&b.fm);
}

/* Entries start masked; any access is survived; the PBA cannot be written (traps C17). */
static void t_msix_table(void)
{
	struct bench b;
	u64 v;

	fake_machine_init(&b.fm, NULL);
	REQUIRE(echo_new(&b.fm.m, NR_VQS, SIZE, &b.echo) == 0);
	REQUIRE(fake_driver_probe(&b.drv, &b.fm, ECHO_ID, NULL));
	for (unsigned i = 0; i < NR_VQS + 1; i++)
		CHECK_EQ(fake_guest_read(&b.fm, false, b.drv.msix_table + i * 16 + 12, 4), 1);
	fake_guest_write(&b.fm, false, b.drv.msix_table + 16, 0x1122334455667788, 8);
	CHECK_EQ(fake_guest_read(&b.fm, false, b.drv.msix_table + 16, 4), 0x55667788);
	CHECK_EQ(fake_guest_read(&b.fm, false, b.drv.msix_table + 20, 4), 0x11223344);
	for (unsigned len = 1; len <= 8; len *= 2) {
		for (u64 off = 0; off < MSIX_BAR_SIZE; off++) {
			v = UINT64_MAX;
			bus_write(&b.fm.m.mmio, b.drv.msix_table + off, &v, len);
			bus_read(&b.fm.m.mmio, b.drv.msix_table + off, &v, len);
		}
	}
	CHECK_EQ(fake_guest_read(&b.fm, false, b.drv.msix_table + MSIX_TABLE_SIZE, 8), 0);
	REQUIRE(fake_driver_restart(&b.drv));
	b.out = fake_alloc(&b.drv, 64, 64);
	b.in = fake_alloc(&b.drv, 64, 64);
	check_works(&b);
	fake_machine_free(&b.fm);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_intx), T(t_intx_reset), T(t_intx_registers),
		       T(t_intx_shared), T(t_intx_full_bus), T(t_mask), T(t_retarget),
		       T(t_shared_vector), T(t_switch_while_running), T(t_switch_fails),
		       T(t_msix_table));
}
