// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver of fake-driver.h on virtio-mmio (virtio 1.3 4.2): the registers by the names that they
 * have on PCI, at the offsets and with the rules of MMIO.
 */
#include "fake-driver.h"
#include "virtio/mmio.h"

/* virtio 1.3 4.2.2: reads, writes, and where they differ */
static unsigned offset_of(unsigned reg, bool write)
{
	switch (reg) {
	case VP_DFSELECT: return 0x14;
	case VP_DF: return 0x10;
	case VP_GFSELECT: return 0x24;
	case VP_GF: return 0x20;
	case VP_STATUS: return 0x70;
	case VP_GEN: return 0xfc;
	case VP_QSELECT: return 0x30;
	case VP_QSIZE: return write ? 0x38 : 0x34;
	case VP_QENABLE: return 0x44;
	case VP_QDESC: return 0x80;
	case VP_QAVAIL: return 0x90;
	case VP_QUSED: return 0xa0;
	case VP_QRESET: return 0xc0;
	default: return 0x04; /* Version: nothing happens when it is written */
	}
}

static u64 slot_addr(const struct fake_driver *drv)
{
	return FAKE_SLOTS + drv->slot * VIRTIO_MMIO_SIZE;
}

static u64 mmio_read(struct fake_driver *drv, unsigned reg, unsigned len)
{
	(void)len;
	return fake_guest_read(drv->fm, false, drv->common + offset_of(reg, false), 4);
}

static void mmio_write(struct fake_driver *drv, unsigned reg, unsigned len, u64 value)
{
	u64 addr = drv->common + offset_of(reg, true);

	fake_guest_write(drv->fm, false, addr, (u32)value, 4);
	if (len == 8)
		fake_guest_write(drv->fm, false, addr + 4, value >> 32, 4);
}

static u8 mmio_isr(struct fake_driver *drv)
{
	u32 isr = (u32)fake_guest_read(drv->fm, false, drv->common + 0x60, 4);

	fake_guest_write(drv->fm, false, drv->common + 0x64, isr, 4);
	return (u8)isr;
}

static void mmio_find(struct fake_driver *drv)
{
	drv->common = slot_addr(drv);
	drv->config = drv->common + 0x100;
	for (unsigned i = 0; i < drv->nr_vqs; i++) {
		drv->vq[i].bell_addr = drv->common + 0x50;
		drv->vq[i].bell_len = 4;
	}
}

static u32 peek(const struct fake_driver *drv, unsigned off)
{
	return (u32)fake_guest_read(drv->fm, false, slot_addr(drv) + off, 4);
}

static bool mmio_probe(struct fake_driver *drv, u16 virtio_id)
{
	while (drv->slot < VIRTIO_MMIO_SLOTS &&
	       (peek(drv, 0) != 0x74726976 || peek(drv, 4) != 2 || peek(drv, 8) != virtio_id))
		drv->slot++;
	if (drv->slot == VIRTIO_MMIO_SLOTS)
		return false;
	drv->opts.intx = true;
	drv->config_len = VIRTIO_MMIO_SIZE - 0x100;
	mmio_find(drv);
	do {
		mmio_write(drv, VP_QSELECT, 2, drv->nr_vqs);
	} while (mmio_read(drv, VP_QSIZE, 2) && ++drv->nr_vqs < VIRTIO_MAX_VQS);
	mmio_find(drv); /* now with the queues */
	return true;
}

const struct fake_transport_ops fake_mmio_transport = {
	.probe = mmio_probe,
	.find = mmio_find,
	.read = mmio_read,
	.write = mmio_write,
	.isr = mmio_isr,
};
