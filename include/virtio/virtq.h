/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The device side of a split virtqueue (virtio 1.3 2.7): the only code that reads or writes rings.
 *
 * Theory of operation: the guest owns the ring memory and may change it at any time. So every index
 * and descriptor is read once and the copy is checked; a chain has at most as many descriptors as
 * the ring (or the indirect table) is long; every buffer is bounds-checked through guest memory's
 * doors. What breaks a rule makes virtq_pop() return an error and the caller break the device.
 * Two positions are private: next_avail (what to take next) and next_used (what to fill next).
 * When a backend stops it leaves next_avail where the next backend resumes.
 *
 * A backend that serves a queue in userspace does
 *
 *	do {
 *		virtq_kicks_off(vq);
 *		while ((r = virtq_pop(vq, &chain, iov, n)) == 1)
 *			work, virtq_push(vq, chain.head, written);
 *		virtq_publish(vq);
 *	} while (r == 0 && virtq_kicks_on(vq));
 *
 * Rank 3.
 */
#ifndef LKVM_VIRTIO_VIRTQ_H
#define LKVM_VIRTIO_VIRTQ_H

#include <sys/uio.h>
#include "types.h"

#define VIRTQ_MAX_SIZE 1024 /* descriptors in a ring that we offer at most */
#define VIRTQ_MAX_IOV  1024 /* iovecs of one chain at most (UIO_MAXIOV) */

struct guest_mem;
struct virtio_backend;

/* virtio 1.3 2.7.5, 2.7.6, 2.7.8 */
struct vring_desc {
	u64 addr;
	u32 len;
	u16 flags, next;
};
#define VRING_DESC_F_NEXT     1
#define VRING_DESC_F_WRITE    2
#define VRING_DESC_F_INDIRECT 4

struct vring_avail {
	u16 flags, idx, ring[];
};
#define VRING_AVAIL_F_NO_INTERRUPT 1

struct vring_used_elem {
	u32 id, len;
};
struct vring_used {
	u16 flags, idx;
	struct vring_used_elem ring[];
};
#define VRING_USED_F_NO_NOTIFY 1

struct virtq {
	/* set by the transport on behalf of the driver, and checked by virtq_map() */
	u16 index, num, num_max; /* num: a power of two up to num_max */
	bool ready;              /* the driver enabled it */
	u64 desc_gpa, avail_gpa, used_gpa;

	/* the ring, while mapped */
	const struct guest_mem *mem;
	const struct vring_desc *desc;
	const struct vring_avail *avail;
	struct vring_used *used;
	bool event_idx, indirect; /* negotiated */

	/* position */
	u16 next_avail, next_used, signalled;
	bool signalled_valid; /* false until the first signal after a start, which is always sent */

	/* wires: eventfds, made once with the device and closed with it; -1 = none, never 0 */
	int kick, call;
	struct virtio_backend *be; /* who serves this queue */

	/*
	 * Counters, device lock held: kicks, signals and chains that we served in userspace; and
	 * doorbell writes that left the guest for us instead of going straight to the kick eventfd.
	 */
	u64 nr_kicks, nr_signals, nr_chains, nr_doorbells;
};

/* A popped chain: the readable buffers first, then the writable ones, as the caller's iovecs. */
struct virtq_chain {
	u16 head;
	unsigned nr_out, nr_in; /* iovecs */
	u64 out_len, in_len;    /* bytes */
};

/*
 * Checks num, alignment (virtio 1.3 2.7: 16, 2, 4) and that each part lies in one region of @mem,
 * and maps it. -EINVAL / -EFAULT when not so. @event_idx and @indirect: as negotiated.
 */
int virtq_map(struct virtq *vq, const struct guest_mem *mem, bool event_idx,
	      bool indirect) __must_check;
bool virtq_mapped(const struct virtq *vq);

/* Forgets the mapping; position and wires stay. */
void virtq_unmap(struct virtq *vq);

/* As after power-on: not ready, position 0, addresses 0, num = num_max. Wires stay. */
void virtq_reset(struct virtq *vq);

/*
 * After another backend moved the ring: takes next_used from the used ring, where that one left it.
 * next_avail must be set already (VHOST_GET_VRING_BASE).
 */
void virtq_resume(struct virtq *vq);

/*
 * Takes the next chain. 1 = done, 0 = none there, -EPROTO = the ring or the chain breaks a rule,
 * -E2BIG = it needs more than @max_iov iovecs (nothing was taken). The iovecs are valid until
 * virtq_push().
 */
int virtq_pop(struct virtq *vq, struct virtq_chain *chain, struct iovec *iov, unsigned max_iov);

/* Gives back the last @n popped chains, in reverse order; they will be popped again. */
void virtq_unpop(struct virtq *vq, unsigned n);

/*
 * Fills the next used element: @written bytes were written to the chain. Not visible to the driver
 * yet.
 */
void virtq_push(struct virtq *vq, u16 head, u32 written);

/* Makes all pushed elements visible at once, and signals the driver if it wants that. */
void virtq_publish(struct virtq *vq);

/*
 * Asks the driver not to kick / to kick. kicks_on is true when chains came meanwhile: look again.
 */
void virtq_kicks_off(struct virtq *vq);
bool virtq_kicks_on(struct virtq *vq);

/* Signals the driver without looking at what it wants. */
void virtq_signal(struct virtq *vq);

#endif
