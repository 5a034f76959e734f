/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the two halves of the NIC's front share: virtio/net.c has its life, virtio/net-ctrl.c its
 * control queue. All with the device lock held. Rank 4.
 */
#ifndef LKVM_VIRTIO_NET_DEVICE_H
#define LKVM_VIRTIO_NET_DEVICE_H

#include "virtio/net.h"

/* Features of which the netif is the arbiter: both directions, and those towards the guest */
#define NET_GUEST_OFFLOADS \
	(BIT(NET_B_GUEST_CSUM) | BIT(NET_B_GUEST_TSO4) | BIT(NET_B_GUEST_TSO6) | \
	 BIT(NET_B_GUEST_ECN) | BIT(NET_B_GUEST_USO4) | BIT(NET_B_GUEST_USO6))
#define NET_NETIF_FEATURES \
	(NET_GUEST_OFFLOADS | BIT(NET_B_CSUM) | BIT(NET_B_HOST_TSO4) | BIT(NET_B_HOST_TSO6) | \
	 BIT(NET_B_HOST_ECN) | BIT(NET_B_HOST_USO))

enum net_server { NET_NOBODY, NET_USER, NET_VHOST };

/* Who can serve a queue pair, made when it is first needed, and who does. */
struct net_pair {
	struct net_user *user;
	struct vhost *vhost;
	enum net_server server; /* its backend is the device's, the other one ours */
};

struct net {
	struct virtio_device dev;
	struct net_config config;
	struct net_params params; /* config at power-on */
	struct netif *nif;
	unsigned nr_pairs; /* that are offered */
	struct net_pair pair[NETIF_MAX_QUEUES];
	struct virtio_backend *ctrl;
	struct iovec ctrl_iov[VIRTQ_MAX_IOV];
};

/* Serves a kick of the control queue. -EPROTO when the driver broke a rule of the ring. */
int net_ctrl_handle(struct net *net, struct virtq *vq);

#endif
