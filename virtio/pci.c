// SPDX-License-Identifier: GPL-2.0-only
/*
 * The modern PCI transport (virtio 1.3 4.1).
 *
 * Theory of operation: BAR 0 holds the four register pages, BAR 1 the MSI-X table, BAR 2, where
 * there are I/O ports, a second set of doorbells. A port write leaves the guest without its
 * instruction being decoded, which is cheaper on x86; so the I/O doorbells come first in the order
 * of preference (4.1.4).
 *
 *	BAR 0	0x0000	common configuration
 *		0x1000	ISR status
 *		0x2000	device configuration
 *		0x3000	doorbells: 4 bytes for each queue (notify_off_multiplier 4), up to 0x4000
 *	BAR 1		MSI-X table and pending bits
 *	BAR 2		doorbells, again 4 bytes for each queue
 *
 * A doorbell write that reaches us all the same, as in the moment in which a BAR moves, signals the
 * eventfd that the ioeventfd would have. Any width and alignment of register access is taken: a
 * read is a copy out of a snapshot of all registers, a write lays its bytes over what the registers
 * said.
 *
 * Wires and locks: virtio/pci-wire.c, virtio/pci.h.
 */
#include <linux/pci_regs.h>
#include <linux/virtio_ids.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"
#include "virtio/pci.h"

#define VIRTIO_VENDOR   0x1af4
#define VIRTIO_ID_BASE  0x1040
#define VIRTIO_REVISION 1
#define PAGE            VIRTIO_PCI_PAGE
_Static_assert(256 >= VIRTIO_MAX_VQS * VIRTIO_PCI_NOTIFY_STRIDE, "PCI allows no more for ports");

/* virtio 1.3 4.1.4: cfg_type */
enum { CAP_COMMON = 1, CAP_NOTIFY, CAP_ISR, CAP_DEVICE, CAP_PCI_CFG };

struct virtio_cap {
	u8 id, next, len, type, bar, cap_id, pad[2];
	u32 offset, length;
	union {
		u32 multiplier; /* CAP_NOTIFY */
		u8 data[4];     /* CAP_PCI_CFG */
	};
};

/* virtio 1.3 4.1.4.3 */
struct common_cfg {
	u32 device_feature_select, device_feature, driver_feature_select, driver_feature;
	u16 config_msix_vector, num_queues;
	u8 device_status, config_generation;
	u16 queue_select, queue_size, queue_msix_vector, queue_enable, queue_notify_off;
	u64 queue_desc, queue_driver, queue_device;
	u16 queue_notify_data, queue_reset, admin_queue_index, admin_queue_num;
};
_Static_assert(sizeof(struct common_cfg) == 64, "as in the specification");

/* --- common configuration, virtio 1.3 4.1.4.3; device lock held --- */

/* The queue that queue_select names, or NULL. */
static struct pci_queue *selected(struct virtio_pci *p)
{
	return p->queue_select < p->tp.dev->nr_vqs ? &p->q[p->queue_select] : NULL;
}

/* What all registers read now: so any width and alignment of an access is a copy out of it. */
static void common_snapshot(struct virtio_pci *p, struct common_cfg *c)
{
	struct virtio_device *dev = p->tp.dev;
	const struct pci_queue *q = selected(p);

	*c = (struct common_cfg){
		.device_feature_select = p->device_feature_select,
		.device_feature = virtio_get_features(dev, p->device_feature_select),
		.driver_feature_select = p->driver_feature_select,
		.driver_feature = virtio_get_acked(dev, p->driver_feature_select),
		.config_msix_vector = p->config_vector,
		.num_queues = (u16)dev->nr_vqs,
		.device_status = dev->status,
		.config_generation = (u8)atomic_load(&dev->config_gen),
		.queue_select = p->queue_select,
		.queue_msix_vector = MSIX_NO_VECTOR,
	};
	if (!q)
		return;
	c->queue_size = q->vq->num;
	c->queue_msix_vector = q->vector;
	c->queue_enable = q->vq->ready;
	c->queue_notify_off = q->vq->index;
	c->queue_desc = q->vq->desc_gpa;
	c->queue_driver = q->vq->avail_gpa;
	c->queue_device = q->vq->used_gpa;
}

/*
 * virtio 1.3 4.1.4.3.1: done when the write is, so both queue_reset and queue_enable then read 0.
 */
static void reset_queue(struct pci_queue *q)
{
	virtio_queue_reset(q->p->tp.dev, q->vq);
	virtio_pci_set_queue_vector(q, MSIX_NO_VECTOR);
}

/*
 * Where the rings are is the driver's to say until it enables the queue; 0 does not disable it
 * (4.1.4.3.2).
 */
static void write_queue(struct pci_queue *q, unsigned reg, u64 v)
{
	struct virtq *vq = q->vq;

	if (reg == offsetof(struct common_cfg, queue_msix_vector)) {
		virtio_pci_set_queue_vector(q, v);
		return;
	}
	if (reg == offsetof(struct common_cfg, queue_reset)) {
		if (v == 1 && virtio_has(q->p->tp.dev, VIRTIO_B_RING_RESET))
			reset_queue(q);
		return;
	}
	if (vq->ready)
		return;
	switch (reg) {
	case offsetof(struct common_cfg, queue_size): virtio_queue_size(vq, v); break;
	case offsetof(struct common_cfg, queue_enable):
		if (v == 1)
			virtio_queue_enable(q->p->tp.dev, vq);
		break;
	case offsetof(struct common_cfg, queue_desc): vq->desc_gpa = v; break;
	case offsetof(struct common_cfg, queue_driver): vq->avail_gpa = v; break;
	case offsetof(struct common_cfg, queue_device): vq->used_gpa = v; break;
	default: break;
	}
}

static void write_reg(struct virtio_pci *p, unsigned reg, u64 v)
{
	struct virtio_device *dev = p->tp.dev;
	struct pci_queue *q = selected(p);

	switch (reg) {
	case offsetof(struct common_cfg, device_feature_select):
		p->device_feature_select = (u32)v;
		break;
	case offsetof(struct common_cfg, driver_feature_select):
		p->driver_feature_select = (u32)v;
		break;
	case offsetof(struct common_cfg, driver_feature):
		virtio_set_acked(dev, p->driver_feature_select, (u32)v);
		break;
	case offsetof(struct common_cfg, config_msix_vector):
		virtio_pci_set_config_vector(p, v);
		break;
	case offsetof(struct common_cfg, device_status): virtio_set_status(dev, (u8)v); break;
	case offsetof(struct common_cfg, queue_select): p->queue_select = (u16)v; break;
	default:
		if (q)
			write_queue(q, reg, v);
		break;
	}
}

#define REG(f) \
	{ \
		offsetof(struct common_cfg, f), sizeof(((struct common_cfg *)NULL)->f) \
	}

/* The registers that a driver may write, in the order in which one wide write sets them. */
static const struct {
	u8 off, size;
} common_regs[] = {
	REG(device_feature_select),
	REG(driver_feature_select),
	REG(driver_feature),
	REG(config_msix_vector),
	REG(device_status),
	REG(queue_select),
	REG(queue_size),
	REG(queue_msix_vector),
	REG(queue_enable),
	REG(queue_desc),
	REG(queue_driver),
	REG(queue_device),
	REG(queue_reset),
};

static void common_read(struct virtio_pci *p, u64 off, u8 *data, unsigned len)
{
	struct common_cfg c;

	common_snapshot(p, &c);
	if (off < sizeof(c))
		memcpy(data, (const u8 *)&c + off, MIN((u64)len, sizeof(c) - off));
}

/*
 * Each register that the write touches gets its present value with the written bytes laid over it.
 */
static void common_write(struct virtio_pci *p, u64 off, const u8 *data, unsigned len)
{
	for (unsigned i = 0; i < ARRAY_SIZE(common_regs); i++) {
		unsigned reg = common_regs[i].off, size = common_regs[i].size;
		bool touched = false;
		u64 value = 0;

		common_read(p, reg, (u8 *)&value, size);
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

/* --- the BARs --- */

/*
 * A doorbell write that no ioeventfd caught. The queue is named by the address, the value says
 * nothing.
 */
static void doorbell_write(struct virtio_pci *p, u64 off)
{
	if (off % VIRTIO_PCI_NOTIFY_STRIDE == 0)
		virtio_pci_doorbell(p, off / VIRTIO_PCI_NOTIFY_STRIDE);
}

static void regs_read(void *opaque, u64 off, void *data, unsigned len)
{
	struct virtio_pci *p = opaque;

	memset(data, 0, len);
	if (off / PAGE == PAGE_ISR) {
		if (off % PAGE == 0)
			*(u8 *)data = virtio_pci_isr_read(p);
		return;
	}
	pthread_mutex_lock(&p->tp.dev->lock);
	if (off / PAGE == PAGE_COMMON)
		common_read(p, off, data, len);
	else if (off / PAGE == PAGE_DEVICE)
		virtio_config_read(p->tp.dev, off % PAGE, data, len);
	pthread_mutex_unlock(&p->tp.dev->lock);
}

static void regs_write(void *opaque, u64 off, const void *data, unsigned len)
{
	struct virtio_pci *p = opaque;

	pthread_mutex_lock(&p->tp.dev->lock);
	if (off / PAGE == PAGE_COMMON)
		common_write(p, off, data, len);
	else if (off / PAGE == PAGE_DEVICE)
		virtio_config_write(p->tp.dev, off % PAGE, data, len);
	else if (off / PAGE == PAGE_NOTIFY)
		doorbell_write(p, off % PAGE);
	pthread_mutex_unlock(&p->tp.dev->lock);
}

static const struct bus_ops regs_ops = { .read = regs_read, .write = regs_write };

static void notify_io_read(void *opaque, u64 off, void *data, unsigned len)
{
	(void)opaque;
	(void)off;
	memset(data, 0, len);
}

static void notify_io_write(void *opaque, u64 off, const void *data, unsigned len)
{
	struct virtio_pci *p = opaque;

	(void)data;
	(void)len;
	pthread_mutex_lock(&p->tp.dev->lock);
	doorbell_write(p, off);
	pthread_mutex_unlock(&p->tp.dev->lock);
}

static const struct bus_ops notify_io_ops = { .read = notify_io_read, .write = notify_io_write };

/* --- config space hooks; the PCI root's lock is held --- */

/*
 * virtio 1.3 4.1.4.9: the capability is a window on the BARs for who cannot map them. An access to
 * its data field is one to offset @offset of BAR @bar, @length bytes (1, 2 or 4) wide.
 */
static void window_access(struct virtio_pci *p, bool is_write)
{
	struct virtio_cap cap;
	const struct pci_bar *bar;
	u8 *data = &p->pci.cfg[p->window + offsetof(struct virtio_cap, data)];

	memcpy(&cap, &p->pci.cfg[p->window], sizeof(cap));
	if (cap.bar >= PCI_NR_BARS || (cap.length != 1 && cap.length != 2 && cap.length != 4))
		return;
	bar = &p->pci.bar[cap.bar];
	if (cap.offset % cap.length || (u64)cap.offset + cap.length > bar->size)
		return;
	if (is_write)
		bar->ops->write(bar->ops_dev, cap.offset, data, cap.length);
	else
		bar->ops->read(bar->ops_dev, cap.offset, data, cap.length);
}

static bool touches(unsigned off, unsigned len, unsigned field, unsigned size)
{
	return off < field + size && field < off + len;
}

static void cfg_read(struct pci_dev *pci, unsigned off, unsigned len)
{
	struct virtio_pci *p = container_of(pci, struct virtio_pci, pci);

	if (p->window && touches(off, len, p->window + offsetof(struct virtio_cap, data), 4))
		window_access(p, false);
	/* virtio 1.3 4.1.4.5.1: the Status register's interrupt bit follows the ISR. */
	if (touches(off, len, PCI_STATUS, 1)) {
		pci->cfg[PCI_STATUS] &= (u8)~PCI_STATUS_INTERRUPT;
		if (atomic_load(&p->tp.dev->isr))
			pci->cfg[PCI_STATUS] |= PCI_STATUS_INTERRUPT;
	}
}

static void msix_control_changed(struct virtio_pci *p, unsigned off, unsigned len)
{
	if (!msix_cfg_write(&p->msix, off, len))
		return;
	pthread_mutex_lock(&p->tp.dev->lock);
	virtio_pci_msix_switched(p);
	pthread_mutex_unlock(&p->tp.dev->lock);
}

static void cfg_write(struct pci_dev *pci, unsigned off, unsigned len)
{
	struct virtio_pci *p = container_of(pci, struct virtio_pci, pci);

	if (p->window && touches(off, len, p->window + offsetof(struct virtio_cap, data), 4))
		window_access(p, true);
	msix_control_changed(p, off, len);
}

static void cfg_reset(struct pci_dev *pci)
{
	struct virtio_pci *p = container_of(pci, struct virtio_pci, pci);

	msix_control_changed(p, 0, sizeof(pci->cfg));
	msix_reset(&p->msix);
}

/* --- building --- */

static u32 class_of(u16 id)
{
	switch (id) {
	case VIRTIO_ID_NET: return 0x020000; /* Ethernet controller */
	case VIRTIO_ID_BLOCK:
	case VIRTIO_ID_FS: return 0x018000; /* mass storage, other */
	case VIRTIO_ID_CONSOLE:
	case VIRTIO_ID_VSOCK: return 0x078000; /* communication, other */
	default: return 0x00ff00;              /* of no class */
	}
}

static unsigned add_cap(struct virtio_pci *p, u8 type, u8 bar, u32 offset, u32 length)
{
	bool more = type == CAP_NOTIFY || type == CAP_PCI_CFG;
	struct virtio_cap cap = {
		.len = more ? sizeof(cap) : offsetof(struct virtio_cap, multiplier),
		.type = type,
		.bar = bar,
		.offset = offset,
		.length = length,
		.multiplier = type == CAP_NOTIFY ? VIRTIO_PCI_NOTIFY_STRIDE : 0,
	};

	return pci_dev_cap(&p->pci, PCI_CAP_ID_VNDR, &cap, cap.len);
}

static void add_window(struct virtio_pci *p)
{
	unsigned off = add_cap(p, CAP_PCI_CFG, 0, 0, 0);

	p->window = off;
	p->pci.wmask[off + offsetof(struct virtio_cap, bar)] = 0xff;
	memset(&p->pci.wmask[off + offsetof(struct virtio_cap, offset)], 0xff, 12);
}

static int build(struct virtio_pci *p)
{
	struct virtio_device *dev = p->tp.dev;
	u32 doorbells = dev->nr_vqs * VIRTIO_PCI_NOTIFY_STRIDE, io_size = 4;

	pci_dev_bar(&p->pci, BAR_REGS, NR_PAGES * PAGE, false, &regs_ops, p);
	add_cap(p, CAP_COMMON, BAR_REGS, PAGE_COMMON * PAGE, sizeof(struct common_cfg));
	if (pci_has_io(dev->m->pci)) {
		while (io_size < doorbells)
			io_size *= 2; /* as few as will do: there are only 64 Ki ports */
		pci_dev_bar(&p->pci, BAR_NOTIFY_IO, io_size, true, &notify_io_ops, p);
		add_cap(p, CAP_NOTIFY, BAR_NOTIFY_IO, 0, doorbells);
		p->bells[BELL_IO] = (struct pci_bells){ .there = true,
							.io = true,
							.bar = BAR_NOTIFY_IO,
							.stride = VIRTIO_PCI_NOTIFY_STRIDE };
	}
	add_cap(p, CAP_NOTIFY, BAR_REGS, PAGE_NOTIFY * PAGE, doorbells);
	p->bells[BELL_MEM] = (struct pci_bells){ .there = true,
						 .bar = BAR_REGS,
						 .off = PAGE_NOTIFY * PAGE,
						 .stride = VIRTIO_PCI_NOTIFY_STRIDE };
	add_cap(p, CAP_ISR, BAR_REGS, PAGE_ISR * PAGE, 1);
	if (dev->config_len)
		add_cap(p, CAP_DEVICE, BAR_REGS, PAGE_DEVICE * PAGE, dev->config_len);
	add_window(p);
	return virtio_pci_add_msix(p);
}

int virtio_pci_attach(struct virtio_device *dev)
{
	u16 id = VIRTIO_ID_BASE + dev->ops->id;
	const struct virtio_pci_ids ids = { id, id, VIRTIO_REVISION };

	return virtio_pci_attach_as(dev, &virtio_pci_ops, &ids, build);
}

/* --- of both kinds of device --- */

int virtio_pci_add_msix(struct virtio_pci *p)
{
	struct virtio_device *dev = p->tp.dev;

	return msix_init(&p->msix, &p->pci, dev->m->hv, BAR_MSIX,
			 MIN(dev->nr_vqs + 1, (unsigned)MSIX_MAX_VECTORS), dev->nr_vqs + 1);
}

int virtio_pci_attach_as(struct virtio_device *dev, const struct virtio_transport_ops *ops,
			 const struct virtio_pci_ids *ids, int (*build_it)(struct virtio_pci *p))
{
	struct virtio_pci *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->tp = (struct virtio_transport){ .ops = ops, .dev = dev };
	virtio_pci_wires_init(p);
	pci_dev_init(&p->pci, VIRTIO_VENDOR, ids->device, ids->subsystem, class_of(dev->ops->id),
		     ids->revision);
	p->pci.bar_moved = virtio_pci_bar_moved;
	p->pci.cfg_read = cfg_read;
	p->pci.cfg_write = cfg_write;
	p->pci.reset = cfg_reset;
	p->config_call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = p->config_call < 0 ? -errno : build_it(p);
	if (!r)
		r = pci_dev_add(dev->m->pci, &p->pci);
	if (r)
		ops->free(&p->tp);
	else
		dev->tp = &p->tp;
	return r;
}
