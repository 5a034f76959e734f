// SPDX-License-Identifier: GPL-2.0-only
/*
 * The vhost front: hands a range of virtqueues to somebody else, who reads and writes the rings in
 * guest memory, hears the kick eventfd and signals the call eventfd itself.
 *
 * Theory of operation: this file knows the order of the protocol, the wire (struct vhost_ops) how
 * each verb is said. A start runs through three levels: the device's features and memory, then each
 * ring's wiring, then each ring is enabled. A failed start and a stop are the same walk back, from
 * wherever it got to. Rings that the driver did not make ready are left out. A verb that fails on
 * the way back is reported and passed over: there is nothing better to do, and the device must get
 * free of its rings.
 *
 * The worker on the other side can meet a malformed ring at any time. It then signals the ERR
 * eventfd and stays silent, so that we break the device as our own rings' code would.
 *
 * Locking: start and stop run with the device lock held; vhost_err() takes it.
 */
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"
#include "virtio/device.h"
#include "virtio/vhost.h"

/*
 * Bits that mean something else between us and vhost than between us and the driver; never passed
 * on.
 */
#define VHOST_B_LOG_ALL 26
#define VHOST_B_NET_HDR 27 /* of the network device: vhost would then make the header itself */

#define VHOST_PRIVATE (BIT(VHOST_B_LOG_ALL) | BIT(VHOST_B_NET_HDR) | BIT(VIRTIO_B_ACCESS_PLATFORM))

static struct vhost *to_vhost(struct virtio_backend *be)
{
	return container_of(be, struct vhost, be);
}

/* Passes @r on. If it is an error, says so the first time; @ring -1 = it is not about one. */
static int said(struct vhost *vh, const char *verb, int ring, int r)
{
	char where[24] = "";

	if (r == 0 || vh->complained)
		return r;
	vh->complained = true;
	if (ring >= 0)
		snprintf(where, sizeof(where), " of ring %d", ring);
	log_warn("%s: %s%s: %s", vh->be.ops->name, verb, where, strerror(-r));
	return r;
}

static void vhost_features(struct virtio_backend *be, u64 features[2])
{
	struct vhost *vh = to_vhost(be);

	for (int w = 0; w < 2; w++)
		features[w] &= vh->features[w] | ~vh->arbiter[w];
}

/* --- one ring --- */

static int ring_wire(struct vhost *vh, unsigned i, const struct virtq *vq)
{
	int r = said(vh, "set_vring", (int)i, vh->ops->set_vring(vh, i, vq));

	if (r == 0)
		r = said(vh, "set_call", (int)i, vh->ops->set_call(vh, i, vq->call));
	if (r == 0 && vh->ops->set_err)
		r = said(vh, "set_err", (int)i, vh->ops->set_err(vh, i, vh->err.fd));
	if (r == 0)
		r = said(vh, "set_kick", (int)i, vh->ops->set_kick(vh, i, vq->kick));
	return r;
}

static void ring_unwire(struct vhost *vh, unsigned i)
{
	said(vh, "set_kick", (int)i, vh->ops->set_kick(vh, i, -1));
	said(vh, "set_call", (int)i, vh->ops->set_call(vh, i, -1));
	if (vh->ops->set_err)
		said(vh, "set_err", (int)i, vh->ops->set_err(vh, i, -1));
}

/* After the worker let go of the ring: takes over its position. */
static void ring_take_back(struct vhost *vh, unsigned i, struct virtq *vq)
{
	int r = said(vh, "get_base", (int)i, vh->ops->get_base(vh, i, &vq->next_avail));

	virtq_resume(vq);
	if (r < 0)
		vq->next_avail = vq->next_used; /* as if nothing had been in flight */
}

/* --- all rings of the range --- */

/* The queue of ring @i, or NULL when the driver did not set it up. */
static struct virtq *ring_vq(const struct vhost *vh, struct virtio_device *dev, unsigned i)
{
	struct virtq *vq = &dev->vq[vh->be.first_vq + i];

	return virtq_mapped(vq) ? vq : NULL;
}

/* The way back for the rings below @wired, of which those below @enabled were enabled. */
static void rings_stop(struct vhost *vh, struct virtio_device *dev, unsigned wired,
		       unsigned enabled)
{
	for (unsigned i = enabled; i-- > 0;) {
		if (ring_vq(vh, dev, i))
			said(vh, "disable", (int)i, vh->ops->enable(vh, i, false));
	}
	for (unsigned i = enabled; i-- > 0;) {
		struct virtq *vq = ring_vq(vh, dev, i);

		if (vq)
			ring_take_back(vh, i, vq);
	}
	for (unsigned i = wired; i-- > 0;) {
		if (ring_vq(vh, dev, i))
			ring_unwire(vh, i);
	}
}

static int rings_start(struct vhost *vh, struct virtio_device *dev)
{
	unsigned wired = 0, enabled = 0;
	int r = 0;

	while (r == 0 && wired < vh->be.nr_vqs) {
		struct virtq *vq = ring_vq(vh, dev, wired);

		if (vq)
			r = ring_wire(vh, wired, vq);
		/* Also when it failed half-way: a wire that is not there can be taken away. */
		wired++;
	}
	while (r == 0 && enabled < vh->be.nr_vqs) {
		if (ring_vq(vh, dev, enabled))
			r = said(vh, "enable", (int)enabled, vh->ops->enable(vh, enabled, true));
		if (r == 0)
			enabled++;
	}
	if (r < 0)
		rings_stop(vh, dev, wired, enabled);
	return r;
}

/* --- the backend --- */

/* The other side gave up on a ring. */
static void vhost_err(struct loop_src *src, u32 events)
{
	struct vhost *vh = container_of(src, struct vhost, err);
	struct virtio_device *dev = vh->dev;
	u64 n;

	(void)events;
	pthread_mutex_lock(&dev->lock);
	if (vh->be.started && read(src->fd, &n, sizeof(n)) == sizeof(n))
		virtio_broken(dev, "vhost met a malformed ring or chain");
	pthread_mutex_unlock(&dev->lock);
}

static int err_watch(struct vhost *vh, struct virtio_device *dev)
{
	u64 n;

	if (!vh->ops->set_err)
		return 0;
	while (read(vh->err.fd, &n, sizeof(n)) > 0)
		; /* about an earlier life */
	return loop_add(dev->m->loop, &vh->err, EPOLLIN);
}

static void err_unwatch(struct vhost *vh, struct virtio_device *dev)
{
	if (vh->ops->set_err)
		loop_del(dev->m->loop, &vh->err);
}

static int vhost_start(struct virtio_backend *be, struct virtio_device *dev)
{
	struct vhost *vh = to_vhost(be);
	u64 features[2];
	int r;

	if (!vh->dev)
		vh->dev = dev;
	for (int w = 0; w < 2; w++)
		features[w] = dev->acked[w] & vh->features[w];
	features[0] &= ~VHOST_PRIVATE;

	r = said(vh, "set_features", -1, vh->ops->set_features(vh, features));
	if (r == 0)
		r = said(vh, "set_mem", -1, vh->ops->set_mem(vh, &dev->m->mem));
	if (r == 0)
		r = said(vh, "poll", -1, err_watch(vh, dev));
	if (r < 0)
		return r;
	r = rings_start(vh, dev);
	if (r < 0)
		err_unwatch(vh, dev);
	return r;
}

static void vhost_stop(struct virtio_backend *be, struct virtio_device *dev)
{
	struct vhost *vh = to_vhost(be);

	rings_stop(vh, dev, be->nr_vqs, be->nr_vqs);
	err_unwatch(vh, dev);
}

static void vhost_free(struct virtio_backend *be)
{
	struct vhost *vh = to_vhost(be);

	if (vh->err.fd >= 0)
		close(vh->err.fd);
	vh->ops->close(vh);
}

const struct virtio_backend_ops vhost_backend_ops = {
	.name = "vhost",
	.features = vhost_features,
	.start = vhost_start,
	.stop = vhost_stop,
	.free = vhost_free,
};

int vhost_init(struct vhost *vh, const struct vhost_ops *ops, u16 first, u16 nr)
{
	int r;

	vh->be = (struct virtio_backend){ .ops = &vhost_backend_ops,
					  .first_vq = first,
					  .nr_vqs = nr };
	vh->ops = ops;
	vh->err = (struct loop_src){ .fd = -1, .fn = vhost_err, .name = "vhost error" };
	r = ops->get_features(vh, vh->features);
	if (r == 0 && ops->set_err) {
		vh->err.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (vh->err.fd < 0)
			r = -errno;
	}
	return r;
}
