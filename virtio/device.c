// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtio core (virtio 1.3 sections 2 and 3).
 *
 * Theory of operation: see virtio/device.h for the three parties. The status machine has these
 * states:
 *
 *	status              driver may                         device
 *	0, 1, 3             read features, write its own       stopped
 *	0xb FEATURES_OK     set queues up                      stopped; features are final
 *	0xf DRIVER_OK       use the queues                     started
 *	| 0x40 NEEDS_RESET  only reset                         stopped, until status 0 is written
 *	| 0x80 FAILED       only reset                         stopped, until status 0 is written
 *
 * The driver only ever adds bits, or writes 0 for a reset; a bit that it leaves out stays (2.1.1).
 * DRIVER_OK without FEATURES_OK, and FEATURES_OK on features that we did not offer or without
 * VERSION_1, are refused: the bit reads back 0.
 *
 * Start goes map, wire, backends; whatever of it fails, virtio_broken() undoes with virtio_stop(),
 * which accepts a half-started device: a backend knows whether it started, unwire and unmap are
 * idempotent. After a backend started, each of its queues is kicked once: buffers that the driver
 * made available before there was somebody to listen get served. For the same reason a backend can
 * take over from another while the device runs: wires, mapping and position stay.
 *
 * A legacy driver knows neither FEATURES_OK nor feature bits above 31, and has no way to hear of a
 * refusal: bits that it may not have are dropped as it writes them, and its features are final at
 * DRIVER_OK, or at the first kick if that comes earlier.
 *
 * One queue is reset, or enabled late, by stopping its whole backend, changing the queue and
 * starting the backend again. So a backend needs to know nothing of it: a stop leaves every queue
 * where the next start goes on, which is what backends promise anyway. It costs the queue's sibling
 * a short break, on an occasion (a new ring size, an AF_XDP socket) that has one in any case.
 */
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"
#include "virtio/device.h"

#define DRIVER_BITS \
	(VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER | VIRTIO_S_DRIVER_OK | VIRTIO_S_FEATURES_OK | \
	 VIRTIO_S_FAILED)

int virtio_init(struct virtio_device *dev, struct machine *m, const struct virtio_device_ops *ops,
		unsigned nr_vqs, unsigned vq_size)
{
	dev->ops = ops;
	dev->m = m;
	pthread_mutex_init(&dev->lock, NULL);
	for (unsigned i = 0; i < VIRTIO_MAX_VQS; i++)
		dev->vq[i].kick = dev->vq[i].call = -1;
	if (nr_vqs > VIRTIO_MAX_VQS || !vq_size || (vq_size & (vq_size - 1)) ||
	    vq_size > VIRTQ_MAX_SIZE)
		return -EINVAL;
	dev->nr_vqs = nr_vqs;
	for (unsigned i = 0; i < nr_vqs; i++) {
		struct virtq *vq = &dev->vq[i];

		vq->index = i;
		vq->num = vq->num_max = vq_size;
		vq->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (vq->kick < 0)
			return -errno;
		vq->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (vq->call < 0)
			return -errno;
	}
	return 0;
}

int virtio_add_backend(struct virtio_device *dev, struct virtio_backend *be)
{
	if (dev->nr_backends == VIRTIO_MAX_BACKENDS || be->first_vq + be->nr_vqs > dev->nr_vqs)
		return -ENOSPC;
	for (unsigned i = 0; i < be->nr_vqs; i++)
		if (dev->vq[be->first_vq + i].be)
			return -EBUSY;
	dev->backend[dev->nr_backends++] = be;
	for (unsigned i = 0; i < be->nr_vqs; i++)
		dev->vq[be->first_vq + i].be = be;
	return 0;
}

void virtio_offer(struct virtio_device *dev, const u64 features[2])
{
	dev->offered[0] = features[0] | BIT(VIRTIO_B_RING_RESET);
	dev->offered[1] = features[1];
	for (unsigned i = 0; i < dev->nr_backends; i++)
		if (dev->backend[i]->ops->features)
			dev->backend[i]->ops->features(dev->backend[i], dev->offered);
	dev->offered[0] |= BIT(VIRTIO_B_VERSION_1);
}

void virtio_free(struct virtio_device *dev)
{
	pthread_mutex_lock(&dev->lock);
	virtio_stop(dev);
	pthread_mutex_unlock(&dev->lock);
	if (dev->tp)
		dev->tp->ops->free(dev->tp);
	for (unsigned i = dev->nr_backends; i-- > 0;)
		if (dev->backend[i]->ops->free)
			dev->backend[i]->ops->free(dev->backend[i]);
	for (unsigned i = 0; i < VIRTIO_MAX_VQS; i++) {
		if (dev->vq[i].kick >= 0)
			close(dev->vq[i].kick);
		if (dev->vq[i].call >= 0)
			close(dev->vq[i].call);
	}
	pthread_mutex_destroy(&dev->lock);
	dev->ops->free(dev);
}

static void reset(struct virtio_device *dev);

/* --- the machine's view --- */

static void device_stop(struct device *device)
{
	struct virtio_device *dev = container_of(device, struct virtio_device, device);

	pthread_mutex_lock(&dev->lock);
	virtio_stop(dev);
	pthread_mutex_unlock(&dev->lock);
}

static void device_reset(struct device *device)
{
	struct virtio_device *dev = container_of(device, struct virtio_device, device);

	pthread_mutex_lock(&dev->lock);
	reset(dev);
	pthread_mutex_unlock(&dev->lock);
}

static void device_free(struct device *device)
{
	virtio_free(container_of(device, struct virtio_device, device));
}

static void stat_queue(const struct virtq *vq, FILE *out)
{
	fprintf(out, "%s{\"index\":%u,\"size\":%u,\"ready\":%s,", vq->index ? "," : "", vq->index,
		vq->num, vq->ready ? "true" : "false");
	fprintf(out, "\"backend\":\"%s\",\"running\":%s,", vq->be ? vq->be->ops->name : "none",
		vq->be && vq->be->started ? "true" : "false");
	fprintf(out, "\"doorbell_exits\":%llu,\"kicks\":%llu,\"signals\":%llu,\"chains\":%llu}",
		(unsigned long long)vq->nr_doorbells, (unsigned long long)vq->nr_kicks,
		(unsigned long long)vq->nr_signals, (unsigned long long)vq->nr_chains);
}

static void device_stat(struct device *device, FILE *out)
{
	struct virtio_device *dev = container_of(device, struct virtio_device, device);

	pthread_mutex_lock(&dev->lock);
	fprintf(out, "{\"type\":\"%s\",\"transport\":\"%s\",\"status\":%u,", dev->ops->name,
		dev->tp ? dev->tp->ops->name : "none", dev->status);
	fprintf(out, "\"features\":\"0x%016llx%016llx\",", (unsigned long long)dev->acked[1],
		(unsigned long long)dev->acked[0]);
	fprintf(out, "\"resets\":%llu,\"broken\":%llu,\"queues\":[",
		(unsigned long long)dev->nr_resets, (unsigned long long)dev->nr_broken);
	for (unsigned i = 0; i < dev->nr_vqs; i++)
		stat_queue(&dev->vq[i], out);
	fprintf(out, "]}");
	pthread_mutex_unlock(&dev->lock);
}

void virtio_register(struct virtio_device *dev)
{
	dev->device.type = dev->ops->name;
	dev->device.stop = device_stop;
	dev->device.free = device_free;
	dev->device.stat = device_stat;
	dev->device.reset = device_reset;
	machine_add(dev->m, &dev->device);
}

/* --- start and stop --- */

static void drain(int fd)
{
	u64 count;

	/* An eventfd gives up its whole counter in one read; EAGAIN: it was 0. */
	if (fd >= 0 && read(fd, &count, sizeof(count)) < 0)
		return;
}

static void kick(const struct virtq *vq)
{
	u64 one = 1;

	/* EAGAIN: so many kicks are pending that one more says nothing new. */
	if (vq->kick >= 0 && write(vq->kick, &one, sizeof(one)) < 0)
		return;
}

/* A queue may have no backend (virtio_move_backend): @be NULL is fine here and below. */
static void stop_backend(struct virtio_device *dev, struct virtio_backend *be)
{
	if (!be)
		return;
	if (be->started)
		be->ops->stop(be, dev);
	be->started = false;
}

/* After its backend stopped. */
static void detach_queue(struct virtio_device *dev, struct virtq *vq)
{
	dev->tp->ops->unwire(dev->tp, vq);
	drain(vq->kick);
	drain(vq->call);
	virtq_unmap(vq);
}

void virtio_stop(struct virtio_device *dev)
{
	if (!dev->started)
		return;
	for (unsigned i = dev->nr_backends; i-- > 0;)
		stop_backend(dev, dev->backend[i]);
	for (unsigned i = 0; i < dev->nr_vqs; i++)
		detach_queue(dev, &dev->vq[i]);
	dev->started = false;
}

static int map_queue(struct virtio_device *dev, struct virtq *vq)
{
	return virtq_map(vq, &dev->m->mem, virtio_has(dev, VIRTIO_B_EVENT_IDX),
			 virtio_has(dev, VIRTIO_B_INDIRECT_DESC));
}

static int map_queues(struct virtio_device *dev)
{
	for (unsigned i = 0; i < dev->nr_vqs; i++) {
		int r = dev->vq[i].ready ? map_queue(dev, &dev->vq[i]) : 0;

		if (r)
			return r;
	}
	return 0;
}

static int wire_queues(struct virtio_device *dev)
{
	for (unsigned i = 0; i < dev->nr_vqs; i++) {
		int r = dev->vq[i].ready ? dev->tp->ops->wire(dev->tp, &dev->vq[i]) : 0;

		if (r)
			return r;
	}
	return 0;
}

static bool has_ready_queue(const struct virtio_device *dev, const struct virtio_backend *be)
{
	for (unsigned i = 0; i < be->nr_vqs; i++)
		if (dev->vq[be->first_vq + i].ready)
			return true;
	return false;
}

static int start_backend(struct virtio_device *dev, struct virtio_backend *be)
{
	int r;

	if (!be || !has_ready_queue(dev, be))
		return 0;
	r = be->ops->start(be, dev);
	if (r)
		return r;
	be->started = true;
	for (unsigned i = 0; i < be->nr_vqs; i++)
		if (dev->vq[be->first_vq + i].ready)
			kick(&dev->vq[be->first_vq + i]);
	return 0;
}

static int start_backends(struct virtio_device *dev, struct virtio_backend *const be[], unsigned nr)
{
	int r = 0;

	for (unsigned i = 0; i < nr && !r; i++)
		r = start_backend(dev, be[i]);
	return r;
}

#define BAD_QUEUE  "a virtqueue is not in guest memory or not aligned"
#define NO_WIRE    "cannot connect a virtqueue's doorbell or interrupt"
#define NO_BACKEND "its backend did not start"

static void start(struct virtio_device *dev)
{
	if (dev->ops->starting && dev->ops->starting(dev)) {
		virtio_broken(dev, "cannot start with these features");
		return;
	}
	dev->started = true; /* from here on virtio_stop() has something to undo */
	if (map_queues(dev))
		virtio_broken(dev, BAD_QUEUE);
	else if (wire_queues(dev))
		virtio_broken(dev, NO_WIRE);
	else if (start_backends(dev, dev->backend, dev->nr_backends))
		virtio_broken(dev, NO_BACKEND);
}

/* --- one queue --- */

void virtio_queue_size(struct virtq *vq, u64 size)
{
	if (size && !(size & (size - 1)) && size <= vq->num_max)
		vq->num = (u16)size;
}

void virtio_queue_enable(struct virtio_device *dev, struct virtq *vq)
{
	vq->ready = true;
	if (!dev->started || virtq_mapped(vq))
		return;
	stop_backend(dev, vq->be);
	if (map_queue(dev, vq))
		virtio_broken(dev, BAD_QUEUE);
	else if (dev->tp->ops->wire(dev->tp, vq))
		virtio_broken(dev, NO_WIRE);
	else if (start_backend(dev, vq->be))
		virtio_broken(dev, NO_BACKEND);
}

void virtio_queue_reset(struct virtio_device *dev, struct virtq *vq)
{
	bool running = dev->started && virtq_mapped(vq);

	if (running) {
		stop_backend(dev, vq->be);
		detach_queue(dev, vq);
	}
	virtq_reset(vq);
	if (running && start_backend(dev, vq->be))
		virtio_broken(dev, NO_BACKEND);
}

void virtio_move_backend(struct virtio_device *dev, struct virtio_backend *be, u16 first, u16 nr)
{
	for (unsigned i = 0; i < dev->nr_vqs; i++) {
		if (dev->vq[i].be == be)
			dev->vq[i].be = NULL;
	}
	be->first_vq = first;
	be->nr_vqs = nr;
	for (unsigned i = 0; i < nr; i++)
		dev->vq[first + i].be = be;
}

static void replace(struct virtio_device *dev, struct virtio_backend *from,
		    struct virtio_backend *to)
{
	for (unsigned i = 0; i < dev->nr_backends; i++) {
		if (dev->backend[i] == from)
			dev->backend[i] = to;
	}
	virtio_move_backend(dev, to, from->first_vq, from->nr_vqs);
}

int virtio_swap_backends(struct virtio_device *dev, struct virtio_backend *const from[],
			 struct virtio_backend *const to[], unsigned nr)
{
	int r = 0;

	for (unsigned i = 0; i < nr; i++) {
		stop_backend(dev, from[i]);
		replace(dev, from[i], to[i]);
	}
	if (dev->started)
		r = start_backends(dev, to, nr);
	if (!r)
		return 0;
	for (unsigned i = 0; i < nr; i++) {
		stop_backend(dev, to[i]);
		replace(dev, to[i], from[i]);
	}
	if (start_backends(dev, from, nr))
		virtio_broken(dev, "its backend did not start again");
	return r;
}

static void reset(struct virtio_device *dev)
{
	virtio_stop(dev);
	for (unsigned i = 0; i < dev->nr_vqs; i++)
		virtq_reset(&dev->vq[i]);
	dev->acked[0] = dev->acked[1] = 0;
	dev->status = 0;
	if (dev->tp->ops->reset)
		dev->tp->ops->reset(dev->tp);
	atomic_store(&dev->isr, 0);
	if (dev->ops->reset)
		dev->ops->reset(dev);
	dev->nr_resets++;
}

void virtio_broken(struct virtio_device *dev, const char *why)
{
	bool told = dev->status & VIRTIO_S_NEEDS_RESET;

	virtio_stop(dev);
	dev->status |= VIRTIO_S_NEEDS_RESET;
	if (told)
		return;
	/* A guest can bring this about as often as it likes: one line for each device. */
	if (!dev->nr_broken++)
		log_warn("virtio-%s: %s: stopped until its driver resets it", dev->ops->name, why);
	if (dev->status & VIRTIO_S_DRIVER_OK)
		dev->tp->ops->config_irq(dev->tp); /* virtio 1.3 2.1.2 */
}

/* --- status and features --- */

u32 virtio_get_features(const struct virtio_device *dev, u32 sel)
{
	return sel < 4 ? (u32)(dev->offered[sel / 2] >> (sel % 2 * 32)) : 0;
}

u32 virtio_get_acked(const struct virtio_device *dev, u32 sel)
{
	return sel < 4 ? (u32)(dev->acked[sel / 2] >> (sel % 2 * 32)) : 0;
}

void virtio_set_acked(struct virtio_device *dev, u32 sel, u32 value)
{
	unsigned shift = sel % 2 * 32;
	u64 *word = &dev->acked[sel / 2 % 2];

	if (sel > 3 || (dev->status & VIRTIO_S_FEATURES_OK))
		return;
	if (dev->tp->ops->legacy) {
		if (dev->status & VIRTIO_S_DRIVER_OK)
			return;
		virtio_stop(dev); /* it was started early */
	}
	*word = (*word & ~((u64)UINT32_MAX << shift)) | (u64)value << shift;
}

/*
 * virtio 1.3 2.2.2 and 6.2: what was accepted must have been offered, and the modern interface be
 * among it.
 */
static bool features_ok(const struct virtio_device *dev)
{
	return virtio_has(dev, VIRTIO_B_VERSION_1) && !(dev->acked[0] & ~dev->offered[0]) &&
	       !(dev->acked[1] & ~dev->offered[1]);
}

void virtio_set_status(struct virtio_device *dev, u8 status)
{
	u8 added = status & DRIVER_BITS & ~dev->status;

	if (!status) {
		reset(dev);
		return;
	}
	if (dev->tp->ops->legacy || ((added & VIRTIO_S_FEATURES_OK) && !features_ok(dev)))
		added &= ~VIRTIO_S_FEATURES_OK;
	if (!dev->tp->ops->legacy && !((dev->status | added) & VIRTIO_S_FEATURES_OK))
		added &= ~VIRTIO_S_DRIVER_OK;
	dev->status |= added;
	if (dev->status & (VIRTIO_S_NEEDS_RESET | VIRTIO_S_FAILED))
		virtio_stop(dev);
	else if ((added & VIRTIO_S_DRIVER_OK) && !dev->started)
		start(dev);
}

void virtio_start_early(struct virtio_device *dev)
{
	if (!dev->started && !(dev->status & (VIRTIO_S_NEEDS_RESET | VIRTIO_S_FAILED)))
		start(dev);
}

/* --- config space --- */

void virtio_config_read(struct virtio_device *dev, unsigned off, void *data, unsigned len)
{
	memset(data, 0, len);
	if (off < dev->config_len)
		memcpy(data, (const u8 *)dev->config + off, MIN(len, dev->config_len - off));
}

void virtio_config_write(struct virtio_device *dev, unsigned off, const void *data, unsigned len)
{
	if (off < dev->config_len && dev->ops->config_write)
		dev->ops->config_write(dev, off, data, MIN(len, dev->config_len - off));
}

void virtio_config_changed(struct virtio_device *dev)
{
	atomic_fetch_add(&dev->config_gen, 1);
	if (dev->status & VIRTIO_S_DRIVER_OK)
		dev->tp->ops->config_irq(dev->tp);
}
