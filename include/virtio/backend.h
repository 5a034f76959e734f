/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A backend serves a range of a device's virtqueues: our loop, vhost in the kernel, vhost-user.
 * It knows rings and fds; never a GSI, a BAR or KVM. Rank 3.
 */
#ifndef LKVM_VIRTIO_BACKEND_H
#define LKVM_VIRTIO_BACKEND_H

#include "types.h"

struct virtio_device;
struct virtio_backend;

struct virtio_backend_ops {
	const char *name; /* "userspace", "vhost-kernel" */

	/*
	 * Clears in @features (128 bits) those bits of which this backend is the arbiter and that
	 * it cannot do. Leaves all others alone: they are not its business. NULL = arbiter of none.
	 * RING_RESET asks for no more than stop and start in place; who cannot do that clears it.
	 */
	void (*features)(struct virtio_backend *be, u64 features[2]);

	/*
	 * Takes over its ready queues, from vq->next_avail. The wires are live and the rings are
	 * mapped. On error it has undone what it did; the device becomes broken. Device lock held.
	 * After it, the core kicks each ready queue once, for what was made available before.
	 */
	int (*start)(struct virtio_backend *be, struct virtio_device *dev);

	/*
	 * On return nobody touches guest memory for these queues, and each vq->next_avail is where
	 * to resume. Only called when start succeeded; cannot fail. Device lock held.
	 */
	void (*stop)(struct virtio_backend *be, struct virtio_device *dev);

	void (*free)(struct virtio_backend *be);
};

struct virtio_backend {
	const struct virtio_backend_ops *ops;
	u16 first_vq, nr_vqs;
	bool started;
};

/* What a device may want to do when its userspace backend starts and stops; members may be NULL. */
struct uservq_hooks {
	int (*start)(void *ctx); /* kicks are armed already; -errno = the backend does not start */
	void (*stop)(void *ctx); /* kicks are off; give back popped chains, forget the ring */
};

/*
 * uservq.c: serves queues [first, first + nr) of @dev in the machine's loop: a kick calls the
 * device's handle_vq with the device lock held. @hooks may be NULL. NULL when out of memory.
 */
struct virtio_backend *uservq_new(struct virtio_device *dev, u16 first, u16 nr,
				  const struct uservq_hooks *hooks, void *ctx) __must_check;

#endif
