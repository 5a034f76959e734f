// SPDX-License-Identifier: GPL-2.0-only
/*
 * The control queue of virtio-net (virtio 1.3 5.1.6.5).
 *
 * Theory of operation: a command is two bytes, class and command, then its data, then one writable
 * byte for the answer; how the driver cut that into buffers means nothing. What was not negotiated,
 * or has a length or value that it cannot have, is answered with an error and changes nothing. A
 * command that has no room for an answer breaks the device.
 *
 * The receive filter that a driver sets up is acknowledged and not applied: filtering is best
 * effort (5.1.6.5.1), and the host's side delivers what it wants to.
 */
#include "log.h"
#include "virtio/iov.h"
#include "virtio/net-device.h"

#define CTRL_BURST 64 /* commands at a time; the queue then kicks itself */

enum { CTRL_OK = 0, CTRL_ERR = 1 };
enum {
	CTRL_RX = 0,
	CTRL_MAC = 1,
	CTRL_VLAN = 2,
	CTRL_ANNOUNCE = 3,
	CTRL_MQ = 4,
	CTRL_OFFLOADS = 5
};
enum { CTRL_RX_NOBCAST = 5 }; /* the last of six on/off switches */
enum { CTRL_MAC_TABLE_SET = 0, CTRL_MAC_ADDR_SET = 1 };
enum { CTRL_VLAN_ADD = 0, CTRL_VLAN_DEL = 1 };
enum { CTRL_ANNOUNCE_ACK = 0 };
enum { CTRL_MQ_VQ_PAIRS_SET = 0 };
enum { CTRL_OFFLOADS_SET = 0 };
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

/* 5.1.6.5.4: it announced itself as asked. */
static u8 ctrl_announce(struct net *net, u8 command, const struct ctrl_cmd *cmd)
{
	if (!virtio_has(&net->dev, NET_B_GUEST_ANNOUNCE) || command != CTRL_ANNOUNCE_ACK ||
	    cmd->len)
		return CTRL_ERR;
	if (net->config.status & NET_S_ANNOUNCE)
		net->dev.config_gen++;
	net->config.status &= (u16)~NET_S_ANNOUNCE;
	return CTRL_OK;
}

static bool pairs_ready(const struct net *net, unsigned pairs)
{
	for (unsigned i = 0; i < 2 * pairs; i++) {
		if (!net->dev.vq[i].ready)
			return false;
	}
	return true;
}

/* 5.1.6.5.6: frames for the guest come in the first @pairs receive queues from now on. */
static u8 ctrl_mq(struct net *net, u8 command, const struct ctrl_cmd *cmd)
{
	struct netif *nif = net->nif;
	u16 pairs;
	int r;

	if (!virtio_has(&net->dev, NET_B_MQ) || command != CTRL_MQ_VQ_PAIRS_SET)
		return CTRL_ERR;
	if (cmd->len != sizeof(pairs) || !cmd_get(cmd, 0, &pairs, sizeof(pairs)))
		return CTRL_ERR;
	if (!pairs || pairs > net->nr_pairs || !pairs_ready(net, pairs))
		return CTRL_ERR;
	r = nif->ops->set_queues(nif, pairs);
	if (r < 0)
		log_warn_once("net %s: cannot use %u queues: %s", nif->name, pairs, strerror(-r));
	return r < 0 ? CTRL_ERR : CTRL_OK;
}

/* 5.1.6.5.7: which of the offloads that it acknowledged it wants to get from now on. */
static u8 ctrl_offloads(struct net *net, u8 command, const struct ctrl_cmd *cmd)
{
	const u64 may = net->dev.acked[0] & NET_GUEST_OFFLOADS;
	struct netif *nif = net->nif;
	u64 wanted;
	int r;

	if (!virtio_has(&net->dev, NET_B_CTRL_GUEST_OFFLOADS) || command != CTRL_OFFLOADS_SET)
		return CTRL_ERR;
	if (cmd->len != sizeof(wanted) || !cmd_get(cmd, 0, &wanted, sizeof(wanted)) ||
	    (wanted & ~may))
		return CTRL_ERR;
	r = nif->ops->set_offload(nif, (net->dev.acked[0] & NET_NETIF_FEATURES & ~may) | wanted);
	if (r < 0)
		log_warn_once("net %s: cannot change offloads: %s", nif->name, strerror(-r));
	return r < 0 ? CTRL_ERR : CTRL_OK;
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
	case CTRL_ANNOUNCE: return ctrl_announce(net, hdr[1], &cmd);
	case CTRL_OFFLOADS: return ctrl_offloads(net, hdr[1], &cmd);
	case CTRL_MQ: return ctrl_mq(net, hdr[1], &cmd);
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

int net_ctrl_handle(struct net *net, struct virtq *vq)
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
