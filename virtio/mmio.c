// SPDX-License-Identifier: GPL-2.0-only
/*
 * The MMIO transport, version 2 (virtio 1.3 4.2).
 *
 * Theory of operation: the device lives in one of the machine's slots: a page with the control
 * registers in its first 0x100 bytes and the device configuration behind them. Control registers
 * are 32 bits wide and accessed as such (4.2.2.2): other accesses read 0 and write nothing. What is
 * only to be written reads 0.
 *
 * Kick. All queues share the register QueueNotify, the value names the queue. So each ready queue
 * has a doorbell that matches its index, and a kick does not reach us.
 *
 * Call. The driver looks into InterruptStatus before it looks into a queue, so a signal must set a
 * bit there first: the loop hears vq->call, sets the bit and raises the line, which stays up while
 * a bit is set, until the driver acknowledges them. That is the one hop that PCI with MSI-X saves.
 *
 * A driver stops one queue by writing 0 to QueueReady, or, with RING_RESET, 1 to QueueReset. Both
 * are a reset of the queue: they are complete when the write is, so QueueReset always reads 0.
 *
 * Locks: the device lock guards registers and wires; irq_lock, below it, InterruptStatus together
 * with the line, so that the driver's interrupt handler waits for no burst of packets.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "log.h"
#include "loop.h"
#include "virtio/device.h"
#include "virtio/mmio.h"

#define MAGIC   0x74726976 /* "virt" */
#define VERSION 2
#define VENDOR  0x4d564b4c /* "LKVM" */
#define NO_SHM  UINT32_MAX /* either half of the length of a region that is not there, 4.2.2.1 */

/* virtio 1.3 4.2.2: control registers */
enum {
	R_MAGIC = 0x000,
	R_VERSION = 0x004,
	R_DEVICE_ID = 0x008,
	R_VENDOR_ID = 0x00c,
	R_DEVICE_FEATURES = 0x010,
	R_DEVICE_FEATURES_SEL = 0x014,
	R_DRIVER_FEATURES = 0x020,
	R_DRIVER_FEATURES_SEL = 0x024,
	R_QUEUE_SEL = 0x030,
	R_QUEUE_SIZE_MAX = 0x034,
	R_QUEUE_SIZE = 0x038,
	R_QUEUE_READY = 0x044,
	R_QUEUE_NOTIFY = 0x050,
	R_INTERRUPT_STATUS = 0x060,
	R_INTERRUPT_ACK = 0x064,
	R_STATUS = 0x070,
	R_QUEUE_DESC = 0x080, /* low half; the high one follows */
	R_QUEUE_DRIVER = 0x090,
	R_QUEUE_DEVICE = 0x0a0,
	R_SHM_SEL = 0x0ac,
	R_SHM_LEN = 0x0b0, /* two halves, as the base at 0x0b8 */
	R_SHM_END = 0x0c0,
	R_QUEUE_RESET = 0x0c0,
	R_CONFIG_GENERATION = 0x0fc,
	R_CONFIG = 0x100,
};

struct mmio_slots {
	struct device device;
	struct machine *m;
	struct virtio_mmio_layout layout;
	_Atomic u8 present; /* by slot */
};

struct mmio_queue {
	struct virtio_mmio *t;
	struct virtq *vq;
	struct doorbell bell;
	bool bell_live;
	struct loop_src call;
	bool listening; /* irq_lock: call is in the loop and ours to raise the line for */
};

struct virtio_mmio {
	struct virtio_transport tp;
	struct mmio_slots *slots; /* NULL until it has a slot */
	u64 base;
	u32 gsi;
	u8 slot_bit;
	struct mmio_queue q[VIRTIO_MAX_VQS];
	u32 device_features_sel, driver_features_sel, queue_sel;
	pthread_mutex_t irq_lock;
};

static struct virtio_mmio *to_mmio(struct virtio_transport *tp)
{
	return container_of(tp, struct virtio_mmio, tp);
}

/* --- call -> interrupt --- */

/* irq_lock held. */
static void line_update(struct virtio_mmio *t)
{
	struct hv *hv = t->tp.dev->m->hv;

	hv->ops->irq_line(hv, t->gsi, atomic_load(&t->tp.dev->isr) != 0);
}

static void raise_bit(struct virtio_mmio *t, u8 bit)
{
	atomic_fetch_or(&t->tp.dev->isr, bit);
	line_update(t);
}

static void clear_bits(struct virtio_mmio *t, u8 bits)
{
	pthread_mutex_lock(&t->irq_lock);
	atomic_fetch_and(&t->tp.dev->isr, (u8)~bits);
	line_update(t);
	pthread_mutex_unlock(&t->irq_lock);
}

static void on_call(struct loop_src *src, u32 events)
{
	struct mmio_queue *q = container_of(src, struct mmio_queue, call);
	u64 count;

	(void)events;
	pthread_mutex_lock(&q->t->irq_lock);
	if (q->listening && read(src->fd, &count, sizeof(count)) == sizeof(count))
		raise_bit(q->t, VIRTIO_ISR_QUEUE);
	pthread_mutex_unlock(&q->t->irq_lock);
}

static void set_listening(struct mmio_queue *q, bool on)
{
	pthread_mutex_lock(&q->t->irq_lock);
	q->listening = on;
	pthread_mutex_unlock(&q->t->irq_lock);
}

/* --- the core's hooks --- */

static int mmio_wire(struct virtio_transport *tp, struct virtq *vq)
{
	struct mmio_queue *q = &to_mmio(tp)->q[vq->index];
	struct hv *hv = tp->dev->m->hv;
	int r;

	set_listening(q, true);
	r = loop_add(tp->dev->m->loop, &q->call, EPOLLIN);
	if (r) {
		set_listening(q, false);
		return r;
	}
	q->bell = (struct doorbell){
		.addr = q->t->base + R_QUEUE_NOTIFY, .match = true, .len = 4, .value = vq->index
	};
	r = hv->ops->ioeventfd(hv, &q->bell, vq->kick, true);
	q->bell_live = !r;
	return r;
}

static void mmio_unwire(struct virtio_transport *tp, struct virtq *vq)
{
	struct mmio_queue *q = &to_mmio(tp)->q[vq->index];
	struct hv *hv = tp->dev->m->hv;

	if (q->bell_live)
		hv->ops->ioeventfd(hv, &q->bell, vq->kick, false);
	q->bell_live = false;
	if (!q->listening)
		return;
	loop_del(tp->dev->m->loop, &q->call);
	set_listening(q, false);
}

static void mmio_config_irq(struct virtio_transport *tp)
{
	struct virtio_mmio *t = to_mmio(tp);

	pthread_mutex_lock(&t->irq_lock);
	raise_bit(t, VIRTIO_ISR_CONFIG);
	pthread_mutex_unlock(&t->irq_lock);
}

static void mmio_reset(struct virtio_transport *tp)
{
	struct virtio_mmio *t = to_mmio(tp);

	t->device_features_sel = t->driver_features_sel = t->queue_sel = 0;
	clear_bits(t, UINT8_MAX);
}

static void mmio_free(struct virtio_transport *tp)
{
	struct virtio_mmio *t = to_mmio(tp);

	if (t->slots) {
		bus_del(&tp->dev->m->mmio, t->base);
		atomic_fetch_and(&t->slots->present, (u8)~t->slot_bit);
		clear_bits(t, UINT8_MAX);
	}
	pthread_mutex_destroy(&t->irq_lock);
	tp->dev->tp = NULL;
	free(t);
}

static const struct virtio_transport_ops mmio_ops = {
	.name = "mmio",
	.wire = mmio_wire,
	.unwire = mmio_unwire,
	.config_irq = mmio_config_irq,
	.reset = mmio_reset,
	.free = mmio_free,
};

/* --- control registers; device lock held --- */

/* The queue that QueueSel names, or NULL. */
static struct virtq *selected(struct virtio_mmio *t)
{
	return t->queue_sel < t->tp.dev->nr_vqs ? &t->tp.dev->vq[t->queue_sel] : NULL;
}

static u32 reg_read(struct virtio_mmio *t, u64 reg)
{
	struct virtio_device *dev = t->tp.dev;
	const struct virtq *vq = selected(t);

	if (reg >= R_SHM_LEN && reg < R_SHM_END)
		return NO_SHM;
	switch (reg) {
	case R_MAGIC: return MAGIC;
	case R_VERSION: return VERSION;
	case R_DEVICE_ID: return dev->ops->id;
	case R_VENDOR_ID: return VENDOR;
	case R_DEVICE_FEATURES: return virtio_get_features(dev, t->device_features_sel);
	case R_QUEUE_SIZE_MAX: return vq ? vq->num_max : 0;
	case R_QUEUE_READY: return vq && vq->ready;
	case R_STATUS: return dev->status;
	case R_CONFIG_GENERATION: return atomic_load(&dev->config_gen);
	default: return 0;
	}
}

static void set_half(u64 *gpa, u64 reg, u32 v)
{
	unsigned shift = reg & 4 ? 32 : 0;

	*gpa = (*gpa & ~((u64)UINT32_MAX << shift)) | (u64)v << shift;
}

static void queue_write(struct virtio_mmio *t, struct virtq *vq, u64 reg, u32 v)
{
	struct virtio_device *dev = t->tp.dev;

	if (vq->ready) {
		if ((reg == R_QUEUE_READY && v == 0) ||
		    (reg == R_QUEUE_RESET && v == 1 && virtio_has(dev, VIRTIO_B_RING_RESET)))
			virtio_queue_reset(dev, vq);
		return;
	}
	switch (reg) {
	case R_QUEUE_SIZE: virtio_queue_size(vq, v); break;
	case R_QUEUE_READY:
		if (v == 1)
			virtio_queue_enable(dev, vq);
		break;
	case R_QUEUE_DESC:
	case R_QUEUE_DESC + 4: set_half(&vq->desc_gpa, reg, v); break;
	case R_QUEUE_DRIVER:
	case R_QUEUE_DRIVER + 4: set_half(&vq->avail_gpa, reg, v); break;
	case R_QUEUE_DEVICE:
	case R_QUEUE_DEVICE + 4: set_half(&vq->used_gpa, reg, v); break;
	default: break;
	}
}

/* A kick that no doorbell caught: the queue is not ready, or the write was not the usual one. */
static void notify(struct virtio_device *dev, u32 i)
{
	u64 one = 1;

	if (i >= dev->nr_vqs)
		return;
	dev->vq[i].nr_doorbells++;
	if (dev->started && dev->vq[i].ready && write(dev->vq[i].kick, &one, sizeof(one)) < 0)
		log_debug("virtio-mmio: doorbell: %s", strerror(errno));
}

static void reg_write(struct virtio_mmio *t, u64 reg, u32 v)
{
	struct virtio_device *dev = t->tp.dev;

	switch (reg) {
	case R_DEVICE_FEATURES_SEL: t->device_features_sel = v; break;
	case R_DRIVER_FEATURES_SEL: t->driver_features_sel = v; break;
	case R_DRIVER_FEATURES: virtio_set_acked(dev, t->driver_features_sel, v); break;
	case R_QUEUE_SEL: t->queue_sel = v; break;
	case R_QUEUE_NOTIFY: notify(dev, v); break;
	case R_STATUS: virtio_set_status(dev, (u8)v); break;
	default:
		if (selected(t))
			queue_write(t, selected(t), reg, v);
		break;
	}
}

/* --- the slot on the bus --- */

static void slot_read(void *opaque, u64 off, void *data, unsigned len)
{
	struct virtio_mmio *t = opaque;
	u32 v = 0;

	memset(data, 0, len);
	if (off < R_CONFIG && (len != 4 || off % 4))
		return;
	if (off == R_INTERRUPT_STATUS) {
		v = atomic_load(&t->tp.dev->isr);
		memcpy(data, &v, sizeof(v));
		return;
	}
	pthread_mutex_lock(&t->tp.dev->lock);
	if (off < R_CONFIG) {
		v = reg_read(t, off);
		memcpy(data, &v, sizeof(v));
	} else {
		virtio_config_read(t->tp.dev, (unsigned)(off - R_CONFIG), data, len);
	}
	pthread_mutex_unlock(&t->tp.dev->lock);
}

static void slot_write(void *opaque, u64 off, const void *data, unsigned len)
{
	struct virtio_mmio *t = opaque;
	u32 v = 0;

	if (off < R_CONFIG) {
		if (len != 4 || off % 4)
			return;
		memcpy(&v, data, sizeof(v));
	}
	if (off == R_INTERRUPT_ACK) {
		clear_bits(t, (u8)v);
		return;
	}
	pthread_mutex_lock(&t->tp.dev->lock);
	if (off < R_CONFIG)
		reg_write(t, off, v);
	else
		virtio_config_write(t->tp.dev, (unsigned)(off - R_CONFIG), data, len);
	pthread_mutex_unlock(&t->tp.dev->lock);
}

static const struct bus_ops slot_ops = { .read = slot_read, .write = slot_write };

/* --- building --- */

/* Takes the first free slot. -ENOSPC, or bus_add's error. */
static int take_slot(struct virtio_mmio *t, struct mmio_slots *slots)
{
	unsigned slot = 0;
	int r;

	while (slot < VIRTIO_MMIO_SLOTS && (atomic_load(&slots->present) & BIT(slot)))
		slot++;
	if (slot == VIRTIO_MMIO_SLOTS)
		return -ENOSPC;
	t->base = slots->layout.base + slot * VIRTIO_MMIO_SIZE;
	t->gsi = slots->layout.gsi[slot];
	t->slot_bit = (u8)BIT(slot);
	r = bus_add(&slots->m->mmio, t->base, VIRTIO_MMIO_SIZE, &slot_ops, t);
	if (r)
		return r;
	t->slots = slots;
	atomic_fetch_or(&slots->present, t->slot_bit);
	return 0;
}

int virtio_mmio_attach(struct virtio_device *dev)
{
	struct mmio_slots *slots = dev->m->mmio_slots;
	struct virtio_mmio *t;
	int r;

	if (!slots)
		return -ENODEV;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->tp = (struct virtio_transport){ .ops = &mmio_ops, .dev = dev };
	pthread_mutex_init(&t->irq_lock, NULL);
	for (unsigned i = 0; i < dev->nr_vqs; i++) {
		struct mmio_queue *q = &t->q[i];

		*q = (struct mmio_queue){ .t = t, .vq = &dev->vq[i] };
		q->call.fd = q->vq->call;
		q->call.fn = on_call;
		q->call.name = dev->ops->name;
	}
	dev->tp = &t->tp;
	r = take_slot(t, slots);
	if (r)
		mmio_ops.free(&t->tp);
	return r;
}

/* --- the slots --- */

static void present_read(void *opaque, u64 off, void *data, unsigned len)
{
	struct mmio_slots *slots = opaque;

	(void)off;
	memset(data, 0, len);
	*(u8 *)data = atomic_load(&slots->present);
}

static void present_write(void *opaque, u64 off, const void *data, unsigned len)
{
	(void)opaque;
	(void)off;
	(void)data;
	(void)len;
}

static const struct bus_ops present_ops = { .read = present_read, .write = present_write };

static void slots_free(struct device *device)
{
	struct mmio_slots *slots = container_of(device, struct mmio_slots, device);

	if (slots->layout.present_port)
		bus_del(&slots->m->pio, slots->layout.present_port);
	slots->m->mmio_slots = NULL;
	free(slots);
}

int virtio_mmio_slots_new(struct machine *m, const struct virtio_mmio_layout *layout)
{
	struct mmio_slots *slots = calloc(1, sizeof(*slots));
	int r = slots ? 0 : -ENOMEM;

	if (!r && layout->present_port)
		r = bus_add(&m->pio, layout->present_port, 1, &present_ops, slots);
	if (r) {
		free(slots);
		return r;
	}
	slots->m = m;
	slots->layout = *layout;
	slots->device = (struct device){ .type = "virtio-mmio slots", .free = slots_free };
	m->mmio_slots = slots;
	machine_add(m, &slots->device);
	return 0;
}
