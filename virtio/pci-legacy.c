// SPDX-License-Identifier: GPL-2.0-only
/*
 * The legacy PCI device (virtio 1.3 4.1.4.10, 4.1.5.1.3.1, 2.7.2), for drivers of the time before
 * virtio 1.0.
 *
 * Theory of operation: BAR 0 is in I/O space and holds all registers, with the device configuration
 * behind them; BAR 1 holds the MSI-X table. While MSI-X is enabled there are two more registers, so
 * the configuration begins 4 bytes further on. As in virtio/pci.c any width is taken, also across
 * the end of the registers.
 *
 * A queue has a fixed size, and one register says where it is: a page number, from which the
 * addresses of all three parts follow. A number other than 0 enables it, 0 resets it. All queues
 * share one doorbell, the value names the queue.
 *
 * A transitional device would show both interfaces. This one has the legacy interface alone, so
 * that a driver that knows both takes that, which is what it was asked for.
 *
 * Wires and locks: virtio/pci-wire.c, virtio/pci.h.
 */
#include <linux/virtio_ids.h>

#include "virtio/pci.h"

#define LEGACY_ID_BASE 0x1000
#define LEGACY_ID_END  0x1040
#define BAR_LEGACY     0
#define PAGE_SHIFT     12
#define RING_ALIGN     4096ULL /* of the used ring, 2.7.2 */

struct legacy_regs {
	u32 device_features, driver_features, queue_pfn;
	u16 queue_size, queue_select, queue_notify;
	u8 device_status, isr;
	u16 config_msix_vector, queue_msix_vector; /* only while MSI-X is enabled */
};
_Static_assert(sizeof(struct legacy_regs) == 24, "as in the specification");

#define ISR offsetof(struct legacy_regs, isr)

/* Where the device configuration begins. Device lock held. */
static u64 regs_len(const struct virtio_pci *p)
{
	return p->msix_on ? sizeof(struct legacy_regs)
			  : offsetof(struct legacy_regs, config_msix_vector);
}

/* --- registers; device lock held --- */

static struct pci_queue *selected(struct virtio_pci *p)
{
	return p->queue_select < p->tp.dev->nr_vqs ? &p->q[p->queue_select] : NULL;
}

static u32 offered(const struct virtio_device *dev)
{
	/* Drivers may cut buffers as they like, as on modern devices. */
	return virtio_get_features(dev, 0) | (u32)BIT(VIRTIO_B_ANY_LAYOUT);
}

static void snapshot(struct virtio_pci *p, u8 isr, struct legacy_regs *r)
{
	struct virtio_device *dev = p->tp.dev;
	const struct pci_queue *q = selected(p);

	*r = (struct legacy_regs){
		.device_features = offered(dev),
		.driver_features = virtio_get_acked(dev, 0),
		.queue_pfn = q ? (u32)(q->vq->desc_gpa >> PAGE_SHIFT) : 0,
		.queue_size = q ? q->vq->num_max : 0,
		.queue_select = p->queue_select,
		.device_status = dev->status,
		.isr = isr,
		.config_msix_vector = p->config_vector,
		.queue_msix_vector = q ? q->vector : MSIX_NO_VECTOR,
	};
}

/* 64-bit arithmetic: a page number of 32 bits reaches to 16 TiB. */
static void place_queue(struct virtio_pci *p, struct virtq *vq, u32 pfn)
{
	if (!pfn && vq->ready)
		virtio_queue_reset(p->tp.dev, vq);
	if (!pfn || vq->ready)
		return;
	vq->desc_gpa = (u64)pfn << PAGE_SHIFT;
	vq->avail_gpa = vq->desc_gpa + vq->num * sizeof(struct vring_desc);
	vq->used_gpa = ALIGN_UP(vq->avail_gpa + (3ULL + vq->num) * sizeof(u16), RING_ALIGN);
	virtio_queue_enable(p->tp.dev, vq);
}

static void notify(struct virtio_pci *p, u16 i)
{
	struct virtio_device *dev = p->tp.dev;

	if (i < dev->nr_vqs && dev->vq[i].ready)
		virtio_start_early(dev);
	virtio_pci_doorbell(p, i);
}

static void write_reg(struct virtio_pci *p, unsigned reg, u32 v)
{
	struct virtio_device *dev = p->tp.dev;
	struct pci_queue *q = selected(p);

	switch (reg) {
	case offsetof(struct legacy_regs, driver_features):
		virtio_set_acked(dev, 0, v & offered(dev));
		break;
	case offsetof(struct legacy_regs, queue_pfn):
		if (q)
			place_queue(p, q->vq, v);
		break;
	case offsetof(struct legacy_regs, queue_select): p->queue_select = (u16)v; break;
	case offsetof(struct legacy_regs, queue_notify): notify(p, (u16)v); break;
	case offsetof(struct legacy_regs, device_status): virtio_set_status(dev, (u8)v); break;
	case offsetof(struct legacy_regs, config_msix_vector):
		virtio_pci_set_config_vector(p, v);
		break;
	case offsetof(struct legacy_regs, queue_msix_vector):
		if (q)
			virtio_pci_set_queue_vector(q, v);
		break;
	default: break;
	}
}

#define REG(f) \
	{ \
		offsetof(struct legacy_regs, f), sizeof(((struct legacy_regs *)NULL)->f) \
	}

/* The registers that a driver may write, in the order in which one wide write sets them. */
static const struct {
	u8 off, size;
} regs[] = {
	REG(driver_features), REG(queue_pfn),          REG(queue_select),      REG(queue_notify),
	REG(device_status),   REG(config_msix_vector), REG(queue_msix_vector),
};

/* Each register that the write touches gets its present value with the bytes laid over it. */
static void regs_write(struct virtio_pci *p, u64 off, const u8 *data, unsigned len)
{
	u64 end = regs_len(p);

	for (unsigned i = 0; i < ARRAY_SIZE(regs) && regs[i].off < end; i++) {
		unsigned reg = regs[i].off, size = regs[i].size;
		struct legacy_regs now;
		bool touched = false;
		u32 value = 0;

		snapshot(p, 0, &now);
		memcpy(&value, (const u8 *)&now + reg, size);
		for (unsigned b = 0; b < size; b++) {
			if (reg + b < off || reg + b >= off + len)
				continue;
			((u8 *)&value)[b] = data[reg + b - off];
			touched = true;
		}
		if (touched)
			write_reg(p, reg, value);
	}
}

/* --- the BAR --- */

static void bar_read(void *opaque, u64 off, void *data, unsigned len)
{
	struct virtio_pci *p = opaque;
	struct virtio_device *dev = p->tp.dev;
	struct legacy_regs r;
	u8 *to = data, isr = 0;
	u64 end;

	if (off <= ISR && ISR < off + len)
		isr = virtio_pci_isr_read(p);
	if (off == ISR && len == 1) { /* the interrupt handler waits for no burst of packets */
		*to = isr;
		return;
	}
	pthread_mutex_lock(&dev->lock);
	end = regs_len(p);
	snapshot(p, isr, &r);
	for (unsigned i = 0; i < len; i++) {
		if (off + i < end)
			to[i] = ((const u8 *)&r)[off + i];
		else
			virtio_config_read(dev, (unsigned)(off + i - end), &to[i], 1);
	}
	pthread_mutex_unlock(&dev->lock);
}

static void bar_write(void *opaque, u64 off, const void *data, unsigned len)
{
	struct virtio_pci *p = opaque;
	struct virtio_device *dev = p->tp.dev;
	const u8 *from = data;
	u64 end;

	pthread_mutex_lock(&dev->lock);
	end = regs_len(p);
	if (off < end)
		regs_write(p, off, from, len);
	if (off + len > end) {
		u64 skip = off < end ? end - off : 0;

		virtio_config_write(dev, (unsigned)(off + skip - end), from + skip,
				    len - (unsigned)skip);
	}
	pthread_mutex_unlock(&dev->lock);
}

static const struct bus_ops bar_ops = { .read = bar_read, .write = bar_write };

/* --- building --- */

static int build(struct virtio_pci *p)
{
	u64 size = 32;

	while (size < sizeof(struct legacy_regs) + p->tp.dev->config_len)
		size *= 2;
	pci_dev_bar(&p->pci, BAR_LEGACY, size, true, &bar_ops, p);
	p->bells[BELL_IO] =
		(struct pci_bells){ .there = true,
				    .io = true,
				    .bar = BAR_LEGACY,
				    .off = offsetof(struct legacy_regs, queue_notify),
				    .match = sizeof(((struct legacy_regs *)NULL)->queue_notify) };
	return virtio_pci_add_msix(p);
}

/* virtio 1.3 4.1.2.1: IDs of transitional devices. What never had one goes by its type. */
static u16 device_id(u16 type)
{
	switch (type) {
	case VIRTIO_ID_NET: return 0x1000;
	case VIRTIO_ID_BLOCK: return 0x1001;
	case VIRTIO_ID_BALLOON: return 0x1002;
	case VIRTIO_ID_CONSOLE: return 0x1003;
	case VIRTIO_ID_SCSI: return 0x1004;
	case VIRTIO_ID_RNG: return 0x1005;
	default: return (u16)(LEGACY_ID_BASE + type);
	}
}

int virtio_pci_legacy_attach(struct virtio_device *dev)
{
	const struct virtio_pci_ids ids = { device_id(dev->ops->id), dev->ops->id, 0 };

	if (!pci_has_io(dev->m->pci) || ids.device >= LEGACY_ID_END)
		return -ENODEV;
	return virtio_pci_attach_as(dev, &virtio_pci_legacy_ops, &ids, build);
}
