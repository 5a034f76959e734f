// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver of fake-driver.h on legacy virtio-pci (virtio 1.3 4.1.4.10): the registers by the
 * names that they have on a modern device, in BAR 0, which is in I/O space.
 *
 * What does not exist there is made up so that the steps of fake-driver.c fit: a ring is placed and
 * enabled by writing its descriptor table's address, feature words above the first are 0, and a
 * queue is reset by page number 0.
 */
#include <linux/pci_regs.h>

#include "fake-driver.h"

enum {
	L_DF = 0,
	L_GF = 4,
	L_PFN = 8,
	L_QSIZE = 12,
	L_QSELECT = 14,
	L_NOTIFY = 16,
	L_STATUS = 18,
	L_ISR = 19,
	L_MSIX = 20,
	L_QMSIX = 22,
};

static u64 in(struct fake_driver *drv, unsigned off, unsigned len)
{
	return fake_guest_read(drv->fm, true, drv->common + off, len);
}

static void out(struct fake_driver *drv, unsigned off, unsigned len, u64 value)
{
	fake_guest_write(drv->fm, true, drv->common + off, value, len);
}

static u64 legacy_read(struct fake_driver *drv, unsigned reg, unsigned len)
{
	(void)len;
	switch (reg) {
	case VP_DF: return drv->feature_sel[0] ? 0 : in(drv, L_DF, 4);
	case VP_GF: return drv->feature_sel[1] ? 0 : in(drv, L_GF, 4);
	case VP_STATUS: return in(drv, L_STATUS, 1);
	case VP_QSELECT: return in(drv, L_QSELECT, 2);
	case VP_QSIZE: return in(drv, L_QSIZE, 2);
	case VP_QENABLE: return in(drv, L_PFN, 4) != 0;
	case VP_QDESC: return in(drv, L_PFN, 4) << 12;
	case VP_MSIX: return in(drv, L_MSIX, 2);
	case VP_QMSIX: return in(drv, L_QMSIX, 2);
	default: return 0;
	}
}

static void legacy_write(struct fake_driver *drv, unsigned reg, unsigned len, u64 value)
{
	(void)len;
	switch (reg) {
	case VP_DFSELECT: drv->feature_sel[0] = (u32)value; break;
	case VP_GFSELECT: drv->feature_sel[1] = (u32)value; break;
	case VP_GF:
		if (!drv->feature_sel[1])
			out(drv, L_GF, 4, value);
		break;
	case VP_STATUS: out(drv, L_STATUS, 1, value); break;
	case VP_QSELECT: out(drv, L_QSELECT, 2, value); break;
	case VP_QDESC: out(drv, L_PFN, 4, value >> 12); break;
	case VP_QRESET: out(drv, L_PFN, 4, 0); break;
	case VP_MSIX: out(drv, L_MSIX, 2, value); break;
	case VP_QMSIX: out(drv, L_QMSIX, 2, value); break;
	default: break;
	}
}

static u8 legacy_isr(struct fake_driver *drv)
{
	return (u8)in(drv, L_ISR, 1);
}

/* The configuration makes room for two registers more while MSI-X is enabled. */
static u64 legacy_config(struct fake_driver *drv)
{
	unsigned cap = fake_pci_cap(drv->fm, drv->slot, PCI_CAP_ID_MSIX, 0);
	u32 control = fake_pci_read(drv->fm, drv->slot, cap + 2, 2);

	return drv->common + (control & PCI_MSIX_FLAGS_ENABLE ? 24 : 20);
}

static void legacy_find(struct fake_driver *drv)
{
	drv->common = fake_pci_read(drv->fm, drv->slot, PCI_BASE_ADDRESS_0, 4) & ~3u;
	drv->msix_table = fake_pci_read(drv->fm, drv->slot, PCI_BASE_ADDRESS_1, 4) & ~15u;
	for (unsigned i = 0; i < drv->nr_vqs; i++) {
		drv->vq[i].bell_addr = drv->common + L_NOTIFY;
		drv->vq[i].bell_io = true;
		drv->vq[i].bell_len = 2;
	}
}

static bool legacy_probe(struct fake_driver *drv, u16 virtio_id)
{
	u16 id = virtio_id == 1 ? 0x1000 : (u16)(0x1000 + virtio_id);

	if (!fake_pci_find(drv, 0x1af4 | (u32)id << 16))
		return false;
	if (fake_pci_read(drv->fm, drv->slot, PCI_REVISION_ID, 1) != 0 ||
	    fake_pci_read(drv->fm, drv->slot, PCI_SUBSYSTEM_ID, 2) != virtio_id)
		return false;
	drv->config_len = 64;
	legacy_find(drv);
	do {
		legacy_write(drv, VP_QSELECT, 2, drv->nr_vqs);
	} while (legacy_read(drv, VP_QSIZE, 2) && ++drv->nr_vqs < VIRTIO_MAX_VQS);
	legacy_find(drv); /* now with the queues */
	return true;
}

const struct fake_transport_ops fake_legacy_transport = {
	.legacy = true,
	.probe = legacy_probe,
	.find = legacy_find,
	.read = legacy_read,
	.write = legacy_write,
	.isr = legacy_isr,
	.config = legacy_config,
};
