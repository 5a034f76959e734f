// SPDX-License-Identifier: GPL-2.0-only
/*
 * The backend "userspace": the device type itself serves its queues, in the machine's loop.
 *
 * Theory of operation: each queue's kick eventfd is a loop source from start to stop. A kick takes
 * the counter, then the device lock, then looks whether the backend still runs: a callback that
 * waited for the lock while another thread stopped the device finds it stopped and leaves. If the
 * device was stopped and started again meanwhile, the callback serves the new start's ring, which
 * is harmless. An error of handle_vq breaks the device, which stops this backend from inside its
 * own callback. Sources live as long as the backend, which lives as long as the device.
 */
#include <unistd.h>

#include "loop.h"
#include "virtio/device.h"

struct kick_src {
	struct loop_src src;
	struct uservq *u;
	struct virtq *vq;
	bool armed;
};

struct uservq {
	struct virtio_backend be;
	struct virtio_device *dev;
	const struct uservq_hooks *hooks;
	void *ctx;
	struct kick_src kick[];
};

static void serve(struct uservq *u, struct virtq *vq)
{
	char why[64];
	int r;

	vq->nr_kicks++;
	r = u->dev->ops->handle_vq(u->dev, vq);
	if (!r)
		return;
	snprintf(why, sizeof(why), "queue %u: %s", vq->index,
		 r == -EPROTO ? "the driver broke a rule of the ring" : strerror(-r));
	virtio_broken(u->dev, why);
}

static void on_kick(struct loop_src *src, u32 events)
{
	struct kick_src *k = container_of(src, struct kick_src, src);
	struct virtio_device *dev = k->u->dev;
	u64 count;

	(void)events;
	pthread_mutex_lock(
		&dev->lock); /* also over src->fd: a start may move us to another queue */
	/* Armed, or it is somebody else's counter now; EAGAIN: a stop drained it. */
	if (k->u->be.started && k->armed && virtq_mapped(k->vq) &&
	    read(src->fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
		serve(k->u, k->vq);
	pthread_mutex_unlock(&dev->lock);
}

static void disarm(struct uservq *u)
{
	for (unsigned i = 0; i < u->be.nr_vqs; i++) {
		if (u->kick[i].armed)
			loop_del(u->dev->m->loop, &u->kick[i].src);
		u->kick[i].armed = false;
	}
}

static int uservq_start(struct virtio_backend *be, struct virtio_device *dev)
{
	struct uservq *u = container_of(be, struct uservq, be);
	int r = 0;

	for (unsigned i = 0; i < be->nr_vqs && !r; i++) {
		struct kick_src *k = &u->kick[i];

		k->vq = &dev->vq[be->first_vq + i];
		k->src.fd = k->vq->kick;
		if (!k->vq->ready)
			continue;
		r = loop_add(dev->m->loop, &k->src, EPOLLIN);
		k->armed = !r;
	}
	if (!r && u->hooks && u->hooks->start)
		r = u->hooks->start(u->ctx);
	if (r)
		disarm(u);
	return r;
}

static void uservq_stop(struct virtio_backend *be, struct virtio_device *dev)
{
	struct uservq *u = container_of(be, struct uservq, be);

	(void)dev;
	disarm(u);
	if (u->hooks && u->hooks->stop)
		u->hooks->stop(u->ctx);
}

static void uservq_free(struct virtio_backend *be)
{
	free(container_of(be, struct uservq, be));
}

static const struct virtio_backend_ops uservq_ops = {
	.name = "userspace",
	.start = uservq_start,
	.stop = uservq_stop,
	.free = uservq_free,
};

struct virtio_backend *uservq_new(struct virtio_device *dev, u16 first, u16 nr,
				  const struct uservq_hooks *hooks, void *ctx)
{
	struct uservq *u;

	if (first + nr > dev->nr_vqs)
		return NULL;
	u = calloc(1, sizeof(*u) + nr * sizeof(u->kick[0]));
	if (!u)
		return NULL;
	u->be = (struct virtio_backend){ .ops = &uservq_ops, .first_vq = first, .nr_vqs = nr };
	u->dev = dev;
	u->hooks = hooks;
	u->ctx = ctx;
	for (unsigned i = 0; i < nr; i++) {
		struct kick_src *k = &u->kick[i];

		k->u = u;
		k->src.fd = -1;
		k->src.fn = on_kick;
		k->src.name = dev->ops->name;
	}
	return &u->be;
}
