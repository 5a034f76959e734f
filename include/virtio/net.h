/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * virtio-net (virtio 1.3 5.1): what net.c and net-user.c share, and how a NIC is made. Rank 4.
 */
#ifndef LKVM_VIRTIO_NET_H
#define LKVM_VIRTIO_NET_H

#include "virtio/device.h"
#include "virtio/netif.h"

struct vhost;

/* virtio 1.3 5.1.3: feature bits */
enum {
	NET_B_CSUM = 0,
	NET_B_GUEST_CSUM = 1,
	NET_B_CTRL_GUEST_OFFLOADS = 2,
	NET_B_MTU = 3,
	NET_B_MAC = 5,
	NET_B_GUEST_TSO4 = 7,
	NET_B_GUEST_TSO6 = 8,
	NET_B_GUEST_ECN = 9,
	NET_B_HOST_TSO4 = 11,
	NET_B_HOST_TSO6 = 12,
	NET_B_HOST_ECN = 13,
	NET_B_MRG_RXBUF = 15,
	NET_B_STATUS = 16,
	NET_B_CTRL_VQ = 17,
	NET_B_CTRL_RX = 18,
	NET_B_CTRL_VLAN = 19,
	NET_B_GUEST_ANNOUNCE = 21,
	NET_B_MQ = 22,
	NET_B_CTRL_MAC_ADDR = 23,
	NET_B_GUEST_USO4 = 54,
	NET_B_GUEST_USO6 = 55,
	NET_B_HOST_USO = 56,
};

/* virtio 1.3 5.1.4: bits of the status in device config space */
enum { NET_S_LINK_UP = 1, NET_S_ANNOUNCE = 2 };

/* virtio 1.3 5.1.4: device config space, the fields that we have */
struct net_config {
	u8 mac[6];
	u16 status;
	u16 max_virtqueue_pairs;
	u16 mtu;
} __attribute__((packed));

struct net_params {
	u8 mac[6];
	u16 queue_size;
	u16 mtu;    /* that the guest is told; 0 = the netif's */
	bool vhost; /* serves the queue pairs; else our loop does */
	/* For pairs 0, 1 and so on, taken over by net_new(); pairs without one open the device. */
	int vhost_fd[NETIF_MAX_QUEUES];
	unsigned nr_vhost_fds;
	unsigned poll_us; /* see vhost_net_config */
	/* Makes the vhost of pair @pair; NULL = vhost_net_open() with the above does. */
	struct vhost *(*open_vhost)(void *ctx, unsigned pair, int *err);
	void *ctx;
};

/*
 * Makes a NIC on @m whose frames go through @nif, with as many queue pairs as that has queues. Owns
 * @nif from the call on, also when it fails. NULL and *@err = -errno after a message.
 */
struct virtio_device *net_new(struct machine *m, const struct net_params *params, struct netif *nif,
			      int *err) __must_check;

/*
 * Plugs the NIC's cable in or out: what the guest reads in its status, and the carrier of the
 * host's side. When it comes up, the driver is asked to announce itself to the network, until it
 * says that it did. Takes the device lock. 0, -EINVAL = @dev is no NIC, or the netif's error, after
 * a message.
 */
int net_set_link(struct virtio_device *dev, bool up) __must_check;

/*
 * Has vhost (or our loop) move the frames from now on, also of a running NIC: each ring goes on
 * from where it is. A frame that was read from the netif and waits for buffers of the driver is
 * lost, at most one for each pair; none else is. Takes the device lock. 0; -EINVAL = @dev is no
 * NIC;
 * -EOPNOTSUPP = the driver uses a feature that the other one lacks; or what opening or starting
 * vhost failed with: then it is as before, and a message says so.
 */
int net_set_vhost(struct virtio_device *dev, bool vhost) __must_check;

/* Bytes of the header that goes with each frame, as negotiated. */
static inline unsigned net_hdr_len(const struct virtio_device *dev)
{
	bool num_buffers = virtio_has(dev, VIRTIO_B_VERSION_1) || virtio_has(dev, NET_B_MRG_RXBUF);

	return num_buffers ? NET_HDR_LEN : NET_HDR_LEN_LEGACY;
}

/* Frames and their bytes (headers of ours not counted), seen from the guest: tx is what it sent. */
struct net_stats {
	u64 rx_frames, rx_bytes, rx_dropped;
	u64 tx_frames, tx_bytes, tx_dropped;
};

/*
 * The counters of queue pair @pair of a NIC, or NULL when vhost moves its frames. Device lock held.
 */
const struct net_stats *net_device_stats(struct virtio_device *dev, unsigned pair);

/*
 * net-user.c: the userspace data path of queue pair @pair, with queue @pair of the netif: a uservq
 * backend with the netif as one more loop source. Freed by net_user_free(), after the device's
 * backends.
 */
struct net_user;
struct net_user *net_user_new(struct virtio_device *dev, struct netif *nif,
			      unsigned pair) __must_check;
void net_user_free(struct net_user *nu);                      /* NULL is fine */
struct virtio_backend *net_user_backend(struct net_user *nu); /* for virtio_add_backend() */
const struct net_stats *net_user_stats(const struct net_user *nu);

/* Makes the loop come back to @vq after the other sources had a turn. */
void net_kick_self(const struct virtq *vq);

/* The device's handle_vq for the pair's queues. 0 or -errno, which breaks the device. */
int net_user_handle(struct net_user *nu, struct virtq *vq);

#endif
