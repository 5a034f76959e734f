// SPDX-License-Identifier: GPL-2.0-only
/*
 * virtio-net (virtio 1.3 5.1): what the guest sees of a NIC.
 *
 * Theory of operation: this file knows configuration, features and who serves which queue; it moves
 * no frames. Queue pair n is queues 2n (receive) and 2n + 1 (transmit), queue n of the netif, and
 * one backend: net-user.c, or a vhost of its own. The control queue (net-ctrl.c) is the last, and
 * always our loop's. A driver that does not take MQ knows of one pair only, and for it the control
 * queue is the third (5.1.2): the backends move there while such a driver runs.
 *
 * The guest cannot tell who serves a pair, since every feature bit has one owner who is asked the
 * same way in all cases:
 *
 *	what the device is (MAC, STATUS, MTU, MQ, CTRL_*) this file
 *	offloads (CSUM, TSO, USO, ECN, either direction)  the netif
 *	ring format (EVENT_IDX, INDIRECT, MRG_RXBUF)      offered here, the backend may veto
 *
 * From reset on frames come in the first pair, until the driver asks for more (5.1.6.5.6). Offloads
 * of the netif follow what the driver acknowledged and chose, from DRIVER_OK until reset. Both also
 * when vhost moves the frames. The link's state is the host's affair: a reset does not change it.
 *
 * Locking: everything here runs with the device lock held; what the control socket calls takes it.
 */
#include <unistd.h>

#include "log.h"
#include "virtio/net-device.h"
#include "virtio/vhost.h"

#define CTRL_VQ_SIZE 64
#define MIN_MTU      68 /* virtio 1.3 5.1.4.1 */

static struct net *to_net(struct virtio_device *dev)
{
	return container_of(dev, struct net, dev);
}

/* --- the device --- */

static int net_handle_vq(struct virtio_device *dev, struct virtq *vq)
{
	struct net *net = to_net(dev);

	if (vq->be == net->ctrl)
		return net_ctrl_handle(net, vq);
	return net_user_handle(net->pair[vq->index / 2].user, vq);
}

static struct virtio_backend *pair_backend(const struct net_pair *pair, enum net_server server)
{
	return server == NET_VHOST ? &pair->vhost->be : net_user_backend(pair->user);
}

/* Gives the queues to their backends, by how many pairs the driver knows of. */
static void place_backends(struct net *net)
{
	unsigned known = virtio_has(&net->dev, NET_B_MQ) ? net->nr_pairs : 1;

	virtio_move_backend(&net->dev, net->ctrl, 0, 0);
	for (unsigned i = 0; i < net->nr_pairs; i++)
		virtio_move_backend(&net->dev, pair_backend(&net->pair[i], net->pair[i].server),
				    (u16)(2 * i), i < known ? 2 : 0);
	virtio_move_backend(&net->dev, net->ctrl, (u16)(2 * known), 1);
}

/* The same for vhost, which takes the header as the netif has it. */
static int set_hdr_len(struct netif *nif, unsigned len)
{
	if (nif->ops->set_hdr_len)
		return nif->ops->set_hdr_len(nif, len);
	return len == NET_HDR_LEN ? 0 : -EOPNOTSUPP;
}

static int net_starting(struct virtio_device *dev)
{
	struct net *net = to_net(dev);
	struct netif *nif = net->nif;
	int r = set_hdr_len(nif, net_hdr_len(dev));

	if (r < 0) {
		log_warn_once("net %s: cannot set the header's length: %s", nif->name,
			      strerror(-r));
		return r;
	}
	r = nif->ops->set_offload(nif, dev->acked[0] & NET_NETIF_FEATURES);
	if (r < 0)
		log_warn_once("net %s: cannot set offloads: %s", nif->name, strerror(-r));
	place_backends(net);
	return r;
}

static void net_reset(struct virtio_device *dev)
{
	struct net *net = to_net(dev);

	/* These fail only when the netif is gone. */
	net->nif->ops->set_offload(net->nif, 0);
	if (net->nr_pairs > 1)
		net->nif->ops->set_queues(net->nif, 1);
	memcpy(net->config.mac, net->params.mac, sizeof(net->config.mac));
	net->config.status &= (u16)~NET_S_ANNOUNCE;
}

static void pair_free(struct net_pair *pair)
{
	if (pair->user && pair->server != NET_USER) {
		struct virtio_backend *be = net_user_backend(pair->user);

		be->ops->free(be);
	}
	if (pair->vhost && pair->server != NET_VHOST)
		pair->vhost->be.ops->free(&pair->vhost->be);
	net_user_free(pair->user);
}

static void close_vhost_fds(const struct net_params *params)
{
	for (unsigned i = 0; i < params->nr_vhost_fds; i++) {
		if (params->vhost_fd[i] >= 0)
			close(params->vhost_fd[i]);
	}
}

static void net_free(struct virtio_device *dev)
{
	struct net *net = to_net(dev);

	for (unsigned i = 0; i < net->nr_pairs; i++)
		pair_free(&net->pair[i]);
	close_vhost_fds(&net->params);
	net->nif->ops->close(net->nif);
	free(net);
}

static const struct virtio_device_ops net_ops = {
	.name = "net",
	.id = 1,
	.handle_vq = net_handle_vq,
	.starting = net_starting,
	.reset = net_reset,
	.free = net_free,
};

const struct net_stats *net_device_stats(struct virtio_device *dev, unsigned pair)
{
	struct net *net = to_net(dev);

	if (pair >= net->nr_pairs || net->pair[pair].server != NET_USER)
		return NULL;
	return net_user_stats(net->pair[pair].user);
}

/* --- making one --- */

static void net_offer(struct net *net)
{
	u64 features[2] = { BIT(NET_B_MAC) | BIT(NET_B_STATUS) | BIT(NET_B_CTRL_VQ) |
			    BIT(NET_B_CTRL_RX) | BIT(NET_B_CTRL_VLAN) | BIT(NET_B_CTRL_MAC_ADDR) |
			    BIT(NET_B_GUEST_ANNOUNCE) | BIT(NET_B_MRG_RXBUF) |
			    BIT(VIRTIO_B_INDIRECT_DESC) | BIT(VIRTIO_B_EVENT_IDX) |
			    (net->nif->features & NET_NETIF_FEATURES) };

	if (net->config.mtu >= MIN_MTU)
		features[0] |= BIT(NET_B_MTU);
	if (net->nr_pairs > 1)
		features[0] |= BIT(NET_B_MQ);
	if (features[0] & NET_GUEST_OFFLOADS)
		features[0] |= BIT(NET_B_CTRL_GUEST_OFFLOADS);
	virtio_offer(&net->dev, features);
}

static struct vhost *vhost_new(struct net *net, unsigned i, int *err)
{
	struct net_params *params = &net->params;
	struct vhost_net_config cfg = { .fd = -1, .poll_us = params->poll_us };

	if (params->open_vhost)
		return params->open_vhost(params->ctx, i, err);
	if (i < params->nr_vhost_fds) {
		cfg.fd = params->vhost_fd[i];
		params->vhost_fd[i] = -1;
	}
	return vhost_net_open(&cfg, net->nif->fd[i], (u16)(2 * i), err);
}

/* Makes what serves pair @i, unless it is there. 0, or -errno after a message. */
static int pair_make(struct net *net, unsigned i, enum net_server server)
{
	struct net_pair *pair = &net->pair[i];
	int err = 0;

	if (server == NET_VHOST && !pair->vhost)
		pair->vhost = vhost_new(net, i, &err);
	if (server == NET_USER && !pair->user) {
		pair->user = net_user_new(&net->dev, net->nif, i);
		err = pair->user ? 0 : log_no_memory("-n");
	}
	return err;
}

/* The pairs', then the control queue's. 0, or -errno after a message. */
static int add_backends(struct net *net)
{
	enum net_server server = net->params.vhost ? NET_VHOST : NET_USER;
	int r;

	for (unsigned i = 0; i < net->nr_pairs; i++) {
		r = pair_make(net, i, server);
		if (!r)
			r = virtio_add_backend(&net->dev, pair_backend(&net->pair[i], server));
		if (r)
			return r;
		net->pair[i].server = server;
	}
	net->ctrl = uservq_new(&net->dev, (u16)(2 * net->nr_pairs), 1, NULL, NULL);
	if (!net->ctrl)
		return log_no_memory("-n");
	r = virtio_add_backend(&net->dev, net->ctrl);
	if (r)
		net->ctrl->ops->free(net->ctrl);
	return r;
}

static int net_init(struct net *net, struct machine *m)
{
	const struct net_params *params = &net->params;
	struct virtq *ctrl;
	int r;

	memcpy(net->config.mac, params->mac, sizeof(params->mac));
	net->config.status = NET_S_LINK_UP;
	net->config.max_virtqueue_pairs = (u16)net->nr_pairs;
	net->config.mtu = params->mtu ? params->mtu : net->nif->mtu;
	if (!net->nif->mtu)
		net->nif->mtu = params->mtu; /* whoever set it up knows */
	r = virtio_init(&net->dev, m, &net_ops, 2 * net->nr_pairs + 1, params->queue_size);
	net->dev.config = &net->config;
	net->dev.config_len = sizeof(net->config);
	if (r) {
		log_err("net %s: cannot make the device: %s; raise the limit of open files (ulimit -n)",
			net->nif->name, strerror(-r));
		return r;
	}
	ctrl = &net->dev.vq[2 * net->nr_pairs];
	ctrl->num = ctrl->num_max = MIN(CTRL_VQ_SIZE, params->queue_size);
	return add_backends(net);
}

struct virtio_device *net_new(struct machine *m, const struct net_params *params, struct netif *nif,
			      int *err)
{
	struct net *net = calloc(1, sizeof(*net));

	if (!net) {
		nif->ops->close(nif);
		close_vhost_fds(params);
		*err = log_no_memory("-n");
		return NULL;
	}
	net->params = *params;
	net->nif = nif;
	net->nr_pairs = nif->nr_queues;
	*err = net_init(net, m);
	if (*err) {
		virtio_free(&net->dev);
		return NULL;
	}
	net_offer(net);
	return &net->dev;
}

/* --- what the host changes while it runs --- */

static int set_link(struct net *net, bool up)
{
	const struct netif *nif = net->nif;
	int r = nif->ops->set_link ? nif->ops->set_link(net->nif, up) : 0;

	if (r < 0) {
		log_warn("net %s: cannot set its link %s: %s", nif->name, up ? "up" : "down",
			 strerror(-r));
		return r;
	}
	net->config.status = up ? NET_S_LINK_UP : 0;
	if (up && virtio_has(&net->dev, NET_B_GUEST_ANNOUNCE) &&
	    (net->dev.status & VIRTIO_S_DRIVER_OK))
		net->config.status |= NET_S_ANNOUNCE;
	virtio_config_changed(&net->dev);
	return 0;
}

/*
 * Bits that the driver counts on: what it acknowledged, or before that may have seen offered.
 */
static u64 counted_on(const struct virtio_device *dev, unsigned word)
{
	if (dev->status & VIRTIO_S_FEATURES_OK)
		return dev->acked[word];
	return dev->status & VIRTIO_S_DRIVER ? dev->offered[word] : 0;
}

/* Word 0 of the bits that the driver counts on, and @server cannot do. */
static u64 would_miss(const struct net *net, enum net_server server)
{
	u64 can[2] = { ~0ULL, ~0ULL };

	for (unsigned i = 0; i < net->nr_pairs; i++) {
		struct virtio_backend *be = pair_backend(&net->pair[i], server);

		if (be->ops->features)
			be->ops->features(be, can);
	}
	return counted_on(&net->dev, 0) & ~can[0];
}

static int set_server(struct net *net, enum net_server server)
{
	struct virtio_backend *from[NETIF_MAX_QUEUES], *to[NETIF_MAX_QUEUES];
	const char *who = server == NET_VHOST ? "vhost" : "userspace";
	u64 miss;
	int r = 0;

	for (unsigned i = 0; i < net->nr_pairs && !r; i++) {
		r = pair_make(net, i, server);
		if (!r)
			to[i] = pair_backend(&net->pair[i], server);
		from[i] = pair_backend(&net->pair[i], net->pair[i].server);
	}
	if (r)
		return r;
	miss = would_miss(net, server);
	if (miss) {
		log_err("net %s: %s cannot take over: it lacks features that the guest uses: %#llx; unbind the guest's driver first",
			net->nif->name, who, (unsigned long long)miss);
		return -EOPNOTSUPP;
	}
	r = virtio_swap_backends(&net->dev, from, to, net->nr_pairs);
	if (r) {
		log_err("net %s: %s cannot take over: %s; it stays as it was", net->nif->name, who,
			strerror(-r));
		return r;
	}
	for (unsigned i = 0; i < net->nr_pairs; i++)
		net->pair[i].server = server;
	net_offer(net);
	return 0;
}

int net_set_vhost(struct virtio_device *dev, bool vhost)
{
	enum net_server server = vhost ? NET_VHOST : NET_USER;
	struct net *net = to_net(dev);
	int r = 0;

	if (dev->ops != &net_ops)
		return -EINVAL;
	pthread_mutex_lock(&dev->lock);
	if (net->pair[0].server != server)
		r = set_server(net, server);
	pthread_mutex_unlock(&dev->lock);
	return r;
}

int net_set_link(struct virtio_device *dev, bool up)
{
	struct net *net = to_net(dev);
	int r = 0;

	if (dev->ops != &net_ops)
		return -EINVAL;
	pthread_mutex_lock(&dev->lock);
	if (up != !!(net->config.status & NET_S_LINK_UP))
		r = set_link(net, up);
	pthread_mutex_unlock(&dev->lock);
	return r;
}
