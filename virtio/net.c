// SPDX-License-Identifier: GPL-2.0-only
/*
 * virtio-net (virtio 1.3 5.1): what the guest sees of a NIC.
 *
 * Theory of operation: this file knows configuration, features and the control queue; it moves no
 * frames. Queue pair n is queues 2n (receive) and 2n + 1 (transmit), the control queue is the last.
 * The pair belongs to one backend, net-user.c or vhost; the control queue always to our loop. The
 * guest cannot tell which one serves it, since every feature bit has one owner who is asked the
 * same way in both cases:
 *
 *	what the device is (MAC, STATUS, MTU, CTRL_*)     this file
 *	offloads (CSUM, TSO, USO, ECN, either direction)  the netif
 *	ring format (EVENT_IDX, INDIRECT, MRG_RXBUF)      offered here, the backend may veto
 *
 * The receive filter that a driver sets up is acknowledged and not applied: filtering is best
 * effort (5.1.6.5.1), and the host's side delivers what it wants to. Offloads of the netif follow
 * what the driver acknowledged, from DRIVER_OK until reset, also when vhost moves the frames.
 *
 * Locking: everything here runs with the device lock held.
 */
#include <unistd.h>

#include "log.h"
#include "virtio/iov.h"
#include "virtio/net.h"
#include "virtio/vhost.h"

#define NR_PAIRS      1
#define CTRL_VQ_SIZE  64
#define CTRL_BURST    64 /* commands at a time; the queue then kicks itself */
#define MIN_MTU       68 /* virtio 1.3 5.1.4.1 */
#define NET_S_LINK_UP 1

#define NETIF_FEATURES \
	(BIT(NET_B_CSUM) | BIT(NET_B_GUEST_CSUM) | BIT(NET_B_GUEST_TSO4) | BIT(NET_B_GUEST_TSO6) | \
	 BIT(NET_B_GUEST_ECN) | BIT(NET_B_HOST_TSO4) | BIT(NET_B_HOST_TSO6) | \
	 BIT(NET_B_HOST_ECN) | BIT(NET_B_GUEST_USO4) | BIT(NET_B_GUEST_USO6) | \
	 BIT(NET_B_HOST_USO))

struct net {
	struct virtio_device dev;
	struct net_config config;
	u8 mac[6]; /* at power-on */
	struct netif *nif;
	struct net_user *user[NR_PAIRS]; /* NULL when vhost serves the pair */
	struct iovec ctrl_iov[VIRTQ_MAX_IOV];
};

static struct net *to_net(struct virtio_device *dev)
{
	return container_of(dev, struct net, dev);
}

/* --- control queue, virtio 1.3 5.1.6.5 --- */

enum { CTRL_OK = 0, CTRL_ERR = 1 };
enum { CTRL_RX = 0, CTRL_MAC = 1, CTRL_VLAN = 2 };
enum { CTRL_RX_NOBCAST = 5 }; /* the last of six on/off switches */
enum { CTRL_MAC_TABLE_SET = 0, CTRL_MAC_ADDR_SET = 1 };
enum { CTRL_VLAN_ADD = 0, CTRL_VLAN_DEL = 1 };
#define CTRL_HDR_LEN 2
#define VLAN_MAX_ID  4095

/* A command without its class and command bytes. */
struct ctrl_cmd {
	const struct iovec *iov;
	unsigned nr;
	u64 len; /* bytes of command-specific data */
};

static bool cmd_get(const struct ctrl_cmd *cmd, u64 off, void *buf, u64 len)
{
	return iov_read(cmd->iov, cmd->nr, CTRL_HDR_LEN + off, buf, len) == len;
}

/* 5.1.6.5.1: promiscuous mode and its kin. */
static u8 ctrl_rx(struct net *net, u8 command, const struct ctrl_cmd *cmd)
{
	if (!virtio_has(&net->dev, NET_B_CTRL_RX))
		return CTRL_ERR;
	return command <= CTRL_RX_NOBCAST && cmd->len == 1 ? CTRL_OK : CTRL_ERR;
}

/* 5.1.6.5.2: two tables, unicast and multicast, each a 32-bit count and as many addresses. */
static u8 ctrl_mac_table(const struct ctrl_cmd *cmd)
{
	u64 off = 0;

	for (int table = 0; table < 2; table++) {
		u32 entries;

		if (!cmd_get(cmd, off, &entries, sizeof(entries)))
			return CTRL_ERR;
		off += sizeof(entries) + 6ULL * entries;
		if (off > cmd->len)
			return CTRL_ERR;
	}
	return off == cmd->len ? CTRL_OK : CTRL_ERR;
}

static u8 ctrl_mac(struct net *net, u8 command, const struct ctrl_cmd *cmd)
{
	u8 mac[6];

	if (command == CTRL_MAC_TABLE_SET && virtio_has(&net->dev, NET_B_CTRL_RX))
		return ctrl_mac_table(cmd);
	if (command != CTRL_MAC_ADDR_SET || !virtio_has(&net->dev, NET_B_CTRL_MAC_ADDR))
		return CTRL_ERR;
	if (cmd->len != sizeof(mac) || !cmd_get(cmd, 0, mac, sizeof(mac)) || (mac[0] & 1))
		return CTRL_ERR;
	memcpy(net->config.mac, mac, sizeof(mac));
	net->dev.config_gen++; /* no interrupt: the driver knows what it just did */
	return CTRL_OK;
}

/* 5.1.6.5.3 */
static u8 ctrl_vlan(struct net *net, u8 command, const struct ctrl_cmd *cmd)
{
	u16 id;

	if (!virtio_has(&net->dev, NET_B_CTRL_VLAN) || command > CTRL_VLAN_DEL)
		return CTRL_ERR;
	if (cmd->len != sizeof(id) || !cmd_get(cmd, 0, &id, sizeof(id)))
		return CTRL_ERR;
	return id <= VLAN_MAX_ID ? CTRL_OK : CTRL_ERR;
}

static u8 ctrl_run(struct net *net, const struct iovec *iov, const struct virtq_chain *c)
{
	struct ctrl_cmd cmd = { iov, c->nr_out, c->out_len - CTRL_HDR_LEN };
	u8 hdr[CTRL_HDR_LEN]; /* class, command */

	if (iov_read(iov, c->nr_out, 0, hdr, sizeof(hdr)) != sizeof(hdr))
		return CTRL_ERR;
	switch (hdr[0]) {
	case CTRL_RX: return ctrl_rx(net, hdr[1], &cmd);
	case CTRL_MAC: return ctrl_mac(net, hdr[1], &cmd);
	case CTRL_VLAN: return ctrl_vlan(net, hdr[1], &cmd);
	default: return CTRL_ERR;
	}
}

/*
 * Answers one command, in its first writable byte. One that has none cannot be answered: -EPROTO.
 */
static int ctrl_answer(struct net *net, struct virtq *vq, const struct virtq_chain *c)
{
	u8 ack = ctrl_run(net, net->ctrl_iov, c);

	if (!iov_write(net->ctrl_iov + c->nr_out, c->nr_in, 0, &ack, sizeof(ack)))
		return -EPROTO;
	virtq_push(vq, c->head, sizeof(ack));
	return 0;
}

static int ctrl_handle(struct net *net, struct virtq *vq)
{
	int r, budget = CTRL_BURST;

	do {
		struct virtq_chain c;

		virtq_kicks_off(vq);
		while ((r = virtq_pop(vq, &c, net->ctrl_iov, VIRTQ_MAX_IOV)) == 1) {
			if (ctrl_answer(net, vq, &c))
				return -EPROTO;
			if (--budget == 0) {
				net_kick_self(vq);
				break;
			}
		}
		virtq_publish(vq);
	} while (r == 0 && virtq_kicks_on(vq));
	return r < 0 ? -EPROTO : 0;
}

/* --- the device --- */

static int net_handle_vq(struct virtio_device *dev, struct virtq *vq)
{
	struct net *net = to_net(dev);
	unsigned pair = vq->index / 2;

	if (pair < NR_PAIRS)
		return net_user_handle(net->user[pair], vq);
	return ctrl_handle(net, vq);
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
	struct netif *nif = to_net(dev)->nif;
	int r = set_hdr_len(nif, net_hdr_len(dev));

	if (r < 0) {
		log_warn_once("net %s: cannot set the header's length: %s", nif->name,
			      strerror(-r));
		return r;
	}
	r = nif->ops->set_offload(nif, dev->acked[0] & NETIF_FEATURES);
	if (r < 0)
		log_warn_once("net %s: cannot set offloads: %s", nif->name, strerror(-r));
	return r;
}

static void net_reset(struct virtio_device *dev)
{
	struct net *net = to_net(dev);

	net->nif->ops->set_offload(net->nif, 0); /* fails only when the netif is gone */
	memcpy(net->config.mac, net->mac, sizeof(net->mac));
}

static void net_free(struct virtio_device *dev)
{
	struct net *net = to_net(dev);

	for (unsigned i = 0; i < NR_PAIRS; i++)
		net_user_free(net->user[i]);
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

	return pair < NR_PAIRS && net->user[pair] ? net_user_stats(net->user[pair]) : NULL;
}

static void net_offer(struct net *net)
{
	u64 features[2] = { BIT(NET_B_MAC) | BIT(NET_B_STATUS) | BIT(NET_B_CTRL_VQ) |
			    BIT(NET_B_CTRL_RX) | BIT(NET_B_CTRL_VLAN) | BIT(NET_B_CTRL_MAC_ADDR) |
			    BIT(NET_B_MRG_RXBUF) | BIT(VIRTIO_B_INDIRECT_DESC) |
			    BIT(VIRTIO_B_EVENT_IDX) | (net->nif->features & NETIF_FEATURES) };

	if (net->nif->mtu >= MIN_MTU)
		features[0] |= BIT(NET_B_MTU);
	virtio_offer(&net->dev, features);
}

/* The backends: the pair's, then the control queue's. Takes @vh over when it succeeds or not. */
static int net_add_backends(struct net *net, struct vhost *vh)
{
	struct virtio_device *dev = &net->dev;
	struct virtio_backend *pair, *ctrl;
	int r;

	if (vh) {
		pair = &vh->be;
	} else {
		net->user[0] = net_user_new(dev, net->nif, 0);
		if (!net->user[0])
			return -ENOMEM;
		pair = net_user_backend(net->user[0]);
	}
	r = virtio_add_backend(dev, pair);
	if (r < 0) {
		pair->ops->free(pair);
		return r;
	}
	ctrl = uservq_new(dev, 2 * NR_PAIRS, 1, NULL, NULL);
	if (!ctrl)
		return -ENOMEM;
	r = virtio_add_backend(dev, ctrl);
	if (r < 0)
		ctrl->ops->free(ctrl);
	return r;
}

struct virtio_device *net_new(struct machine *m, const struct net_params *params, struct netif *nif,
			      struct vhost *vh, int *err)
{
	struct net *net = calloc(1, sizeof(*net));
	struct virtq *ctrl;
	bool vh_owned = false;

	*err = -ENOMEM;
	if (net) {
		net->nif = nif;
		memcpy(net->mac, params->mac, sizeof(net->mac));
		memcpy(net->config.mac, params->mac, sizeof(net->mac));
		net->config.status = NET_S_LINK_UP;
		net->config.max_virtqueue_pairs = NR_PAIRS;
		net->config.mtu = nif->mtu;
		*err = virtio_init(&net->dev, m, &net_ops, 2 * NR_PAIRS + 1, params->queue_size);
		net->dev.config = &net->config;
		net->dev.config_len = sizeof(net->config);
		if (*err == 0) {
			ctrl = &net->dev.vq[2 * NR_PAIRS];
			ctrl->num = ctrl->num_max = MIN(CTRL_VQ_SIZE, params->queue_size);
			*err = net_add_backends(net, vh);
			vh_owned = true;
		}
	}
	if (*err == 0) {
		net_offer(net);
		return &net->dev;
	}
	log_err("net %s: cannot make the device: %s", nif->name, strerror(-*err));
	if (vh && !vh_owned)
		vh->be.ops->free(&vh->be);
	if (net)
		virtio_free(&net->dev);
	else
		nif->ops->close(nif);
	return NULL;
}
