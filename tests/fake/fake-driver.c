// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver of fake-driver.h: virtio-pci as a guest sees it (virtio 1.3 4.1, 3.1.1).
 *
 * Theory of operation: everything goes through fake_guest_read() and _write() at the addresses that
 * config space names; nothing here looks into the device. fake-vq.c has the rings.
 */
#include <linux/pci_regs.h>

#include "fake-driver.h"
#include "hw/pci.h"

#define ARENA_LOW  (256 * KiB) /* below it the test may place things by hand */
#define ARENA_HIGH (FAKE_RAM_HIGH + 256 * KiB)
#define KEEP_END   (64 * KiB) /* the same at the end of each arena */

/* virtio 1.3 4.1.4 */
enum { CAP_COMMON = 1, CAP_NOTIFY, CAP_ISR, CAP_DEVICE };

static void fatal(const char *what)
{
	printf("# fake driver: %s\n", what);
	exit(1);
}

/* --- memory --- */

static u64 take(u64 *next, u64 end, u64 len, u64 align)
{
	u64 gpa = ALIGN_UP(*next, align);

	if (gpa + len > end)
		fatal("guest memory is used up");
	*next = gpa + len;
	return gpa;
}

/*
 * Never across the border between the two low regions: whoever wants that asks for it by address.
 */
u64 fake_alloc(struct fake_driver *drv, u64 len, u64 align)
{
	u64 end = FAKE_RAM_MID + FAKE_RAM_SIZE - KEEP_END, low_end = FAKE_RAM_MID - KEEP_END;

	if (drv->next_mem < low_end && ALIGN_UP(drv->next_mem, align) + len > low_end)
		drv->next_mem = FAKE_RAM_MID + KEEP_END;
	return take(&drv->next_mem, end, len, align);
}

u64 fake_alloc_high(struct fake_driver *drv, u64 len, u64 align)
{
	return take(&drv->next_high, FAKE_RAM_HIGH + FAKE_HIGH_SIZE - KEEP_END, len, align);
}

void *fake_ptr(struct fake_driver *drv, u64 gpa, u64 len)
{
	void *p = mem_ptr(&drv->fm->m.mem, gpa, len);

	if (!p)
		fatal("no guest memory there");
	return p;
}

/* --- registers --- */

u64 fake_common_read(struct fake_driver *drv, unsigned reg, unsigned len)
{
	return drv->tp->read(drv, reg, len);
}

void fake_common_write(struct fake_driver *drv, unsigned reg, unsigned len, u64 value)
{
	drv->tp->write(drv, reg, len, value);
}

static u64 pci_read(struct fake_driver *drv, unsigned reg, unsigned len)
{
	return fake_guest_read(drv->fm, false, drv->common + reg, len);
}

/* 64-bit registers as two of 32, as most drivers do (4.1.3.1). */
static void pci_write(struct fake_driver *drv, unsigned reg, unsigned len, u64 value)
{
	if (len == 8) {
		fake_guest_write(drv->fm, false, drv->common + reg, (u32)value, 4);
		fake_guest_write(drv->fm, false, drv->common + reg + 4, value >> 32, 4);
		return;
	}
	fake_guest_write(drv->fm, false, drv->common + reg, value, len);
}

static u64 config_addr(struct fake_driver *drv)
{
	return drv->tp->config ? drv->tp->config(drv) : drv->config;
}

u64 fake_config_read(struct fake_driver *drv, unsigned off, unsigned len)
{
	return fake_guest_read(drv->fm, drv->tp->legacy, config_addr(drv) + off, len);
}

void fake_config_write(struct fake_driver *drv, unsigned off, unsigned len, u64 value)
{
	fake_guest_write(drv->fm, drv->tp->legacy, config_addr(drv) + off, value, len);
}

static u8 pci_isr(struct fake_driver *drv)
{
	return (u8)fake_guest_read(drv->fm, false, drv->isr, 1);
}

u8 fake_isr_read(struct fake_driver *drv)
{
	u8 isr = drv->tp->isr(drv);

	drv->isr_config += !!(isr & VIRTIO_ISR_CONFIG);
	return isr;
}

bool fake_isr_queue(struct fake_driver *drv)
{
	bool queue;

	drv->isr_seen |= fake_isr_read(drv);
	queue = drv->isr_seen & VIRTIO_ISR_QUEUE;
	drv->isr_seen = 0;
	return queue;
}

u8 fake_driver_status(struct fake_driver *drv)
{
	return (u8)fake_common_read(drv, VP_STATUS, 1);
}

/* --- finding the device --- */

static u64 bar_addr(struct fake_driver *drv, unsigned bar, bool *io)
{
	u32 v = fake_pci_read(drv->fm, drv->slot, PCI_BASE_ADDRESS_0 + 4 * bar, 4);

	*io = v & PCI_BASE_ADDRESS_SPACE_IO;
	return v & (*io ? PCI_BASE_ADDRESS_IO_MASK : PCI_BASE_ADDRESS_MEM_MASK);
}

static void take_notify(struct fake_driver *drv, unsigned cap, u64 addr, bool io)
{
	if (drv->nr_notify == ARRAY_SIZE(drv->notify))
		return;
	drv->notify[drv->nr_notify].addr = addr;
	drv->notify[drv->nr_notify++].io = io;
	drv->notify_multiplier = fake_pci_read(drv->fm, drv->slot, cap + 16, 4);
}

static void take_cap(struct fake_driver *drv, unsigned cap)
{
	struct fake_machine *fm = drv->fm;
	u32 offset = fake_pci_read(fm, drv->slot, cap + 8, 4);
	bool io;
	u64 addr = bar_addr(drv, fake_pci_read(fm, drv->slot, cap + 4, 1), &io) + offset;

	switch (fake_pci_read(fm, drv->slot, cap + 3, 1)) {
	case CAP_COMMON: drv->common = addr; break;
	case CAP_NOTIFY: take_notify(drv, cap, addr, io); break;
	case CAP_ISR: drv->isr = addr; break;
	case CAP_DEVICE:
		drv->config = addr;
		drv->config_len = fake_pci_read(fm, drv->slot, cap + 12, 4);
		break;
	default: break;
	}
}

static void pci_find(struct fake_driver *drv)
{
	unsigned cap = fake_pci_cap(drv->fm, drv->slot, PCI_CAP_ID_MSIX, 0);
	bool io;

	drv->nr_notify = 0;
	if (cap) {
		u32 table = fake_pci_read(drv->fm, drv->slot, cap + 4, 4);

		drv->msix_table = bar_addr(drv, table & 7, &io) + (table & ~7u);
	}
	for (unsigned n = 0; (cap = fake_pci_cap(drv->fm, drv->slot, PCI_CAP_ID_VNDR, n)); n++)
		take_cap(drv, cap);
	for (unsigned i = 0; i < drv->nr_vqs; i++) {
		unsigned n = drv->opts.mem_doorbell ? drv->nr_notify - 1 : 0;

		fake_common_write(drv, VP_QSELECT, 2, i);
		drv->vq[i].bell_len = 2;
		drv->vq[i].bell_io = drv->notify[n].io;
		drv->vq[i].bell_addr = drv->notify[n].addr +
				       fake_common_read(drv, VP_QNOFF, 2) * drv->notify_multiplier;
	}
}

bool fake_pci_find(struct fake_driver *drv, u32 want)
{
	struct fake_machine *fm = drv->fm;

	while (drv->slot < PCI_MAX_SLOTS && fake_pci_read(fm, drv->slot, PCI_VENDOR_ID, 4) != want)
		drv->slot++;
	if (drv->slot == PCI_MAX_SLOTS)
		return false;
	if (fake_ecam_read(fm, drv->slot, PCI_VENDOR_ID, 4) != want)
		fatal("ECAM and ports show different devices");
	return true;
}

static bool pci_probe(struct fake_driver *drv, u16 virtio_id)
{
	if (!fake_pci_find(drv, 0x1af4 | (0x1040u + virtio_id) << 16))
		return false;
	pci_find(drv);
	if (!drv->common || !drv->isr || !drv->nr_notify)
		fatal("a virtio capability is missing");
	drv->nr_vqs = (unsigned)fake_common_read(drv, VP_NUMQ, 2);
	pci_find(drv); /* now with the queues */
	return true;
}

const struct fake_transport_ops fake_pci_transport = {
	.probe = pci_probe,
	.find = pci_find,
	.read = pci_read,
	.write = pci_write,
	.isr = pci_isr,
};

void fake_driver_find_caps(struct fake_driver *drv)
{
	drv->tp->find(drv);
}

bool fake_driver_probe(struct fake_driver *drv, struct fake_machine *fm, u16 virtio_id,
		       const struct fake_driver_opts *opts)
{
	static const struct fake_transport_ops *const transports[] = {
		[VIRTIO_ON_PCI] = &fake_pci_transport,
		[VIRTIO_ON_PCI_LEGACY] = &fake_legacy_transport,
		[VIRTIO_ON_MMIO] = &fake_mmio_transport,
	};

	memset(drv, 0, sizeof(*drv));
	drv->fm = fm;
	drv->tp = transports[fm->m.transport];
	if (opts)
		drv->opts = *opts;
	drv->next_mem = ARENA_LOW;
	drv->next_high = ARENA_HIGH;
	return drv->tp->probe(drv, virtio_id);
}

/* --- bringing it up, virtio 1.3 3.1.1 --- */

bool fake_driver_reset(struct fake_driver *drv)
{
	fake_common_write(drv, VP_STATUS, 1, 0);
	drv->features[0] = drv->features[1] = 0;
	return fake_driver_status(drv) == 0;
}

static void set_status(struct fake_driver *drv, u8 bit)
{
	fake_common_write(drv, VP_STATUS, 1, fake_driver_status(drv) | bit);
}

static void read_offered(struct fake_driver *drv, u64 offered[2])
{
	offered[0] = offered[1] = 0;
	for (u32 sel = 0; sel < 4; sel++) {
		fake_common_write(drv, VP_DFSELECT, 4, sel);
		offered[sel / 2] |= fake_common_read(drv, VP_DF, 4) << (sel % 2 * 32);
	}
}

bool fake_driver_negotiate(struct fake_driver *drv)
{
	const u64 ring = BIT(VIRTIO_B_VERSION_1) | BIT(VIRTIO_B_EVENT_IDX) |
			 BIT(VIRTIO_B_INDIRECT_DESC);
	bool some = drv->opts.features[0] || drv->opts.features[1];

	if (!fake_driver_reset(drv))
		return false;
	set_status(drv, VIRTIO_S_ACKNOWLEDGE);
	set_status(drv, VIRTIO_S_DRIVER);
	read_offered(drv, drv->features);
	if (some) {
		drv->features[0] &= drv->opts.features[0] | ring;
		drv->features[1] &= drv->opts.features[1];
	}
	if (drv->opts.no_event_idx)
		drv->features[0] &= ~BIT(VIRTIO_B_EVENT_IDX);
	if (drv->opts.no_indirect)
		drv->features[0] &= ~BIT(VIRTIO_B_INDIRECT_DESC);
	for (u32 sel = 0; sel < 4; sel++) {
		fake_common_write(drv, VP_GFSELECT, 4, sel);
		fake_common_write(drv, VP_GF, 4, (u32)(drv->features[sel / 2] >> (sel % 2 * 32)));
	}
	if (drv->tp->legacy)
		return true;
	set_status(drv, VIRTIO_S_FEATURES_OK);
	return fake_driver_status(drv) & VIRTIO_S_FEATURES_OK;
}

static unsigned nr_vectors(struct fake_driver *drv)
{
	unsigned cap = fake_pci_cap(drv->fm, drv->slot, PCI_CAP_ID_MSIX, 0);

	return (fake_pci_read(drv->fm, drv->slot, cap + 2, 2) & PCI_MSIX_FLAGS_QSIZE) + 1;
}

u64 fake_msix_addr(const struct fake_driver *drv, unsigned v)
{
	(void)drv;
	(void)v;
	return 0xfee00000;
}

u32 fake_msix_data(const struct fake_driver *drv, unsigned v)
{
	return drv->slot << 8 | v;
}

unsigned fake_vq_vector(const struct fake_vq *vq)
{
	return vq->index + 1;
}

void fake_msix_mask(struct fake_driver *drv, unsigned v, bool masked)
{
	fake_guest_write(drv->fm, false, drv->msix_table + v * 16 + 12, masked, 4);
}

/* As Linux does: enable with all masked by function, fill the table, clear the function mask. */
void fake_driver_setup_irqs(struct fake_driver *drv)
{
	const u16 on = PCI_MSIX_FLAGS_ENABLE, off = PCI_MSIX_FLAGS_MASKALL;
	unsigned cap = fake_pci_cap(drv->fm, drv->slot, PCI_CAP_ID_MSIX, 0), n = nr_vectors(drv);

	if (drv->opts.intx)
		return;
	fake_pci_write(drv->fm, drv->slot, cap + 2, 2, on | off);
	for (unsigned v = 0; v < n; v++) {
		u64 entry = drv->msix_table + v * 16, addr = fake_msix_addr(drv, v);

		fake_guest_write(drv->fm, false, entry, (u32)addr, 4);
		fake_guest_write(drv->fm, false, entry + 4, addr >> 32, 4);
		fake_guest_write(drv->fm, false, entry + 8, fake_msix_data(drv, v), 4);
		fake_msix_mask(drv, v, false);
	}
	fake_pci_write(drv->fm, drv->slot, cap + 2, 2, on);
	fake_common_write(drv, VP_MSIX, 2, 0);
	if (fake_common_read(drv, VP_MSIX, 2) != 0)
		fatal("no config vector");
}

bool fake_driver_reset_vq(struct fake_driver *drv, unsigned i)
{
	fake_common_write(drv, VP_QSELECT, 2, i);
	fake_common_write(drv, VP_QRESET, 2, 1);
	return !fake_common_read(drv, VP_QRESET, 2) && !fake_common_read(drv, VP_QENABLE, 2);
}

u64 fake_driver_config_irqs(struct fake_driver *drv)
{
	if (drv->opts.intx) {
		drv->isr_seen |= fake_isr_read(drv);
		return drv->isr_config;
	}
	return fake_hv_msi_count(&drv->fm->hv, fake_msix_addr(drv, 0), fake_msix_data(drv, 0));
}

u8 fake_status_ok(const struct fake_driver *drv)
{
	return VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER | VIRTIO_S_DRIVER_OK |
	       (drv->tp->legacy ? 0 : VIRTIO_S_FEATURES_OK);
}

bool fake_driver_start(struct fake_driver *drv)
{
	set_status(drv, VIRTIO_S_DRIVER_OK);
	return fake_driver_status(drv) == fake_status_ok(drv);
}

bool fake_driver_restart(struct fake_driver *drv)
{
	if (!fake_driver_negotiate(drv))
		return false;
	fake_driver_setup_irqs(drv);
	for (unsigned i = 0; i < drv->nr_vqs; i++)
		fake_driver_setup_vq(drv, i);
	return fake_driver_start(drv);
}

void fake_driver_open(struct fake_driver *drv, struct fake_machine *fm, u16 virtio_id,
		      const struct fake_driver_opts *opts)
{
	if (!fake_driver_probe(drv, fm, virtio_id, opts))
		fatal("no such device");
	if (!fake_driver_restart(drv))
		fatal("the device did not start");
}
