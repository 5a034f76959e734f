/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One vhost front, several wires. The front (vhost.c) is a backend: it knows the order of the
 * protocol; a wire (vhost-kernel.c: ioctl; vhost-user: a socket; tests: a fake) knows how each verb
 * is said.
 *
 *	start	set_features, set_mem; for each ring NUM, BASE = vq->next_avail, ADDR, CALL, ERR,
 *		KICK; then enable each
 *	stop	disable each ring, which flushes the worker; get_base into vq->next_avail;
 *		then KICK, CALL and ERR off
 *
 * The kernel refuses NUM and BASE while a ring is enabled. Never RESET_OWNER. One eventfd hears of
 * rings that the other side gave up (ERR): the device is then broken. Rank 4.
 */
#ifndef LKVM_VIRTIO_VHOST_H
#define LKVM_VIRTIO_VHOST_H

#include "loop.h"
#include "virtio/backend.h"
#include "virtio/virtq.h"

struct guest_mem;
struct virtio_device;
struct vhost;

/* All return 0 or -errno. @i counts the rings of this vhost from 0. fd -1 takes a wire away. */
struct vhost_ops {
	int (*get_features)(struct vhost *vh, u64 features[2]);
	int (*set_features)(struct vhost *vh, const u64 features[2]);
	int (*set_mem)(struct vhost *vh, const struct guest_mem *mem);
	/* NUM, BASE and ADDR */
	int (*set_vring)(struct vhost *vh, unsigned i, const struct virtq *vq);
	int (*get_base)(struct vhost *vh, unsigned i, u16 *next_avail);
	int (*set_kick)(struct vhost *vh, unsigned i, int fd);
	int (*set_call)(struct vhost *vh, unsigned i, int fd);
	int (*set_err)(struct vhost *vh, unsigned i, int fd); /* NULL = this wire cannot */
	int (*enable)(struct vhost *vh, unsigned i, bool on);
	void (*close)(struct vhost *vh); /* frees @vh and its fds */
};

struct vhost {
	struct virtio_backend be;
	const struct vhost_ops *ops;
	u64 features[2];           /* what the other side can do */
	u64 arbiter[2];            /* the bits that it may veto; set by who opens the wire */
	struct loop_src err;       /* what ERR signals; fd -1 = none */
	struct virtio_device *dev; /* from the first start on */
	bool complained;           /* a verb failed and was reported; a guest can repeat that */
};

/*
 * vhost.c: makes an opened wire a backend for queues [first, first + nr): asks for its features and
 * makes the ERR eventfd. On error @vh is still the caller's to close. Freed by vh->be.ops->free().
 */
int vhost_init(struct vhost *vh, const struct vhost_ops *ops, u16 first, u16 nr) __must_check;
extern const struct virtio_backend_ops vhost_backend_ops;

struct vhost_net_config {
	int fd;           /* of /dev/vhost-net, taken over also on error; -1 = it is opened */
	unsigned poll_us; /* microseconds that the worker looks for more before it sleeps */
};

/*
 * vhost-kernel.c: opens /dev/vhost-net for one queue pair on @tap_fd (not owned) and becomes its
 * owner. @cfg NULL = defaults. On error NULL, *@err = -errno, and a message was logged.
 */
struct vhost *vhost_net_open(const struct vhost_net_config *cfg, int tap_fd, u16 first,
			     int *err) __must_check;

#endif
