/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a userspace NIC's frames go to and come from: a tap, later a stream socket; tests: a fake.
 * A frame is preceded by a virtio_net header in both directions, 12 bytes unless set otherwise.
 *
 * An interface has one queue for each queue pair of its NIC, each with an fd of its own. Frames for
 * the guest are spread over the first of them, as many as set_queues() said, by the other side.
 * Rank 4.
 */
#ifndef LKVM_VIRTIO_NETIF_H
#define LKVM_VIRTIO_NETIF_H

#include <sys/uio.h>
#include "types.h"

/*
 * virtio 1.3 5.1.6: with VERSION_1 num_buffers is always there; a legacy driver has it with
 * MRG_RXBUF only
 */
#define NET_HDR_LEN        12
#define NET_HDR_LEN_LEGACY 10
/* Bytes of a GSO frame with its Ethernet header and a VLAN tag */
#define NET_MAX_FRAME (65535 + 14 + 4)

#define NETIF_MAX_QUEUES 16

struct netif;

struct netif_ops {
	/*
	 * Bytes moved, -EAGAIN, or another -errno: that frame is then dropped and counted, nothing
	 * else.
	 */
	long (*send)(struct netif *nif, unsigned queue, const struct iovec *iov, unsigned nr);
	long (*recv)(struct netif *nif, unsigned queue, const struct iovec *iov, unsigned nr);
	/*
	 * @features: what the driver acknowledged; 0 switches all offloads off. -errno of
	 * TUNSETOFFLOAD.
	 */
	int (*set_offload)(struct netif *nif, u64 features);
	/*
	 * Frames come from the first @nr queues only, from 1 to nr_queues. 1 after opening. What
	 * waits in others is lost. On error it is as before. NULL = it has one queue.
	 */
	int (*set_queues)(struct netif *nif, unsigned nr);
	/* What the other side sees as carrier; true after opening. NULL = it cannot tell it. */
	int (*set_link)(struct netif *nif, bool up);
	/* Length of the header, one of the two above. -errno. NULL = it is always NET_HDR_LEN. */
	int (*set_hdr_len)(struct netif *nif, unsigned len);
	void (*close)(struct netif *nif); /* frees it; undoes what opening it did to the host */
};

struct netif {
	const struct netif_ops *ops;
	unsigned nr_queues;
	/* readable when a frame waits, writable when one may be sent; owned by ops */
	int fd[NETIF_MAX_QUEUES];
	bool gone;    /* somebody found out that it is gone for good, and said so */
	u64 features; /* CSUM, TSO and so on of virtio-net, bits 0 to 63, that it can do */
	u16 mtu;      /* of the host's side, bytes; 0 = unknown */
	char name[16];
};

struct tap_config {
	const char *ifname;  /* NULL or "" = one is made and named by the kernel */
	const char *host_ip; /* a.b.c.d[/prefix]; NULL = the default for a tap that we make */
	const char *bridge;  /* that a tap which we make joins, then without address; NULL = none */
	const char *script;  /* run with the interface name when it is up; NULL = none */
	const char *downscript; /* run before it is closed; NULL = none */
	unsigned queues;        /* 1 to NETIF_MAX_QUEUES */
	bool or_one;            /* one queue will do where the interface cannot have several */
	/*
	 * Queues of a tap that somebody opened and set up, taken over also on error; then none of
	 * the above says anything. It may be an interface of another network namespace.
	 */
	int fds[NETIF_MAX_QUEUES];
	unsigned nr_fds; /* 0 = we open it */
};

/* tap.c: on error NULL, *@err = -errno, and a message was logged. Strings are copied. */
struct netif *tap_open(const struct tap_config *cfg, int *err) __must_check;

#endif
