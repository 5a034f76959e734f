/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A netif whose other end is in the test: for each queue a pair of packet sockets, each packet a
 * frame with its virtio header in front, as on a tap. So reads cut what does not fit,
 * writes fail with EAGAIN when the other end is full, and a peer that closes is a hang-up event.
 */
#ifndef LKVM_TESTS_FAKE_NETIF_H
#define LKVM_TESTS_FAKE_NETIF_H

#include "virtio/net.h"

struct fake_netif {
	struct netif nif;
	int peer[NETIF_MAX_QUEUES]; /* the test's ends; -1 = closed */
	unsigned queue;             /* the one that the functions below use */
	bool link_down;             /* what set_link said last */
	int fail_link;              /* -errno that it returns; 0 = it works */
	unsigned nr_active;         /* what set_queues said last */
	int fail_queues;            /* -errno that set_queues returns; 0 = it works */
	u64 offload;                /* what set_offload said last */
	unsigned hdr_len;           /* what set_hdr_len said last, 12 at first */
	unsigned nr_offload, nr_sends, nr_recvs;
	int fail_offload; /* -errno that set_offload returns; 0 = it works */
	int fail_send;    /* -errno that the next send returns, once */
	bool *closed;     /* set by close(), if not NULL */
};

/* All offload features, MTU 1500. Ends the test when sockets cannot be had. */
struct fake_netif *fake_netif_new(unsigned queues);

/*
 * Puts a frame of @len bytes (header not counted) on the wire towards the guest. False = the wire
 * is full.
 */
bool fake_netif_inject(struct fake_netif *fn, const void *frame, u32 len);

/*
 * Takes a frame that the guest sent; header in @hdr (hdr_len bytes) unless NULL. Its length without
 * header, -1 = none.
 */
long fake_netif_take(struct fake_netif *fn, void *hdr, void *frame, u32 room);

/* Throws away all that is on the wire, in both directions. */
void fake_netif_drain(struct fake_netif *fn);

/* The interface goes away. */
void fake_netif_unplug(struct fake_netif *fn);

#endif
