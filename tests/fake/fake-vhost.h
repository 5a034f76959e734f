/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vhost-net in a thread of the test: it keeps the rules of the kernel's, and moves frames between
 * two rings and a socket or tap with ring code of its own, so that it can disagree with ours.
 *
 * Theory of operation: each verb is one ioctl of the kernel's, with the kernel's checks and errors,
 * and is recorded. Two wires lead here: struct vhost_ops (fake_vhost_new) for tests of the front,
 * and a decoder of the ioctls themselves (fake_vhost_ioctl) for tests of vhost-kernel.c. The worker
 * polls the kicks and the backend, and does all its work under the lock; so a verb that takes the
 * lock has flushed it.
 *
 * What the kernel would refuse is refused and counted in misuse: a front that works never gets
 * there, unless the test makes the n-th verb fail.
 */
#ifndef LKVM_TESTS_FAKE_VHOST_H
#define LKVM_TESTS_FAKE_VHOST_H

#include <pthread.h>
#include "mem.h"
#include "virtio/device.h"
#include "virtio/vhost.h"

enum fake_verb {
	FV_OWNER,
	FV_GET_FEATURES,
	FV_FEATURES,
	FV_MEM,
	FV_NUM,
	FV_BASE,
	FV_ADDR,
	FV_CALL,
	FV_ERR,
	FV_KICK,
	FV_BACKEND,
	FV_GET_BASE,
	FV_NR
};

struct fake_call {
	enum fake_verb verb;
	u8 ring;
	s64 value; /* features, regions, number, base, fd (-1 or 1) */
	int result;
};

struct fake_vring {
	u32 num;
	const struct vring_desc *desc;
	const struct vring_avail *avail;
	struct vring_used *used;
	u16 last_avail, last_used;
	u16 avail_idx; /* as it was seen last */
	bool signalled_valid;
	int kick, call, err; /* our own duplicates; -1 = none */
	bool enabled;        /* a backend is attached */
	bool dead;           /* met something malformed */
	bool waiting;        /* RX: for buffers; TX: for the backend */
	u64 nr_kicks, nr_signals;
};

struct fake_vhost {
	struct vhost vh;
	pthread_t thread;
	pthread_mutex_t lock;
	int wake;
	bool quit;
	int backend; /* the netif's fd; the test's */
	bool owned;
	u64 supported, features;
	u64 supported_high, features_high; /* bits 64 to 127, by ioctl only */
	bool has_array;                    /* as a kernel of 6.17 */
	bool no_poll;                      /* as one before 4.7 */
	u32 poll_us[2];                    /* by ioctl only */
	struct mem_region mem[MEM_MAX_REGIONS];
	unsigned nr_mem;
	struct fake_vring ring[2];

	struct fake_call log[512]; /* the first ones */
	unsigned nr_log;
	unsigned calls;   /* verbs so far */
	unsigned fail_at; /* this one fails with -EIO, counted from 1; 0 = none */
	unsigned misuse;
	bool closed; /* what close() sets instead of freeing */
};

/* What a kernel of today answers to VHOST_GET_FEATURES, private bits included. */
#define FAKE_VHOST_FEATURES \
	(BIT(24) | BIT(26) | BIT(27) | BIT(NET_B_MRG_RXBUF) | BIT(VIRTIO_B_INDIRECT_DESC) | \
	 BIT(VIRTIO_B_EVENT_IDX) | BIT(VIRTIO_B_VERSION_1) | BIT(VIRTIO_B_ACCESS_PLATFORM) | \
	 BIT(35))

/*
 * Starts the worker for rings whose frames go through @backend. As a vhost for queues [first, first
 * + 2). Lives until fake_vhost_free(), also after the device closed it: so that the test can read
 * the record.
 */
struct fake_vhost *fake_vhost_new(int backend, u64 supported, u16 first);
void fake_vhost_free(struct fake_vhost *fv);

/* As the kernel's ioctl on a fresh /dev/vhost-net. 0 or -errno. */
int fake_vhost_ioctl(struct fake_vhost *fv, unsigned long request, void *arg);
struct fake_vhost *fake_vhost_bare(int backend, u64 supported);
void fake_vhost_release(struct fake_vhost *fv); /* the fd is closed */

/* The record, as "NUM0=256 BASE0=0 ... BACKEND1=1", without results. Forgets it. */
const char *fake_vhost_said(struct fake_vhost *fv, char *buf, size_t len);

#endif
