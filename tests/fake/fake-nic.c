// SPDX-License-Identifier: GPL-2.0-only
/* The NIC with both ends in the test. Theory of operation: fake-nic.h. */
#include <unistd.h>

#include "fake-nic.h"

#define QUEUE_SIZE 256
#define RX_MEM     (8 * MiB)
#define TX_MEM     (6 * MiB)

const u8 fake_nic_mac[6] = { 0x02, 0x15, 0x15, 0x01, 0x02, 0x03 };
struct fake_vhost *fake_nic_dev_vhost;

static void fatal(const char *what)
{
	printf("# fake nic: %s\n", what);
	exit(1);
}

/* --- life cycle --- */

void fake_nic_make_vhost(struct fake_nic *nic, unsigned pair)
{
	int fd = nic->fn->nif.fd[pair];

	if (nic->kind == NIC_VHOST_KERNEL)
		nic->fvs[pair] = fake_vhost_bare(fd, nic->vhost_features);
	else
		nic->fvs[pair] = fake_vhost_new(fd, nic->vhost_features, (u16)(2 * pair));
	nic->fv = nic->fvs[0];
}

/* The device opens a vhost. */
static struct vhost *open_vhost(void *ctx, unsigned pair, int *err)
{
	struct fake_nic *nic = ctx;
	struct vhost *vh;

	if (!nic->fvs[pair])
		fake_nic_make_vhost(nic, pair);
	fake_nic_dev_vhost = nic->fvs[pair];
	if (nic->kind == NIC_VHOST_KERNEL)
		vh = vhost_net_open(NULL, nic->fn->nif.fd[pair], (u16)(2 * pair), err);
	else
		vh = &nic->fvs[pair]->vh;
	nic->fvs[pair]->nr_log = nic->fvs[pair]->calls = 0; /* what comes from now on counts */
	return vh;
}

void fake_nic_init_pairs(struct fake_nic *nic, enum nic_kind kind, u64 vhost_features,
			 unsigned pairs)
{
	struct net_params params = { .queue_size = QUEUE_SIZE,
				     .vhost = kind != NIC_USER,
				     .open_vhost = open_vhost,
				     .ctx = nic };
	int err;

	memset(nic, 0, sizeof(*nic));
	nic->kind = kind;
	nic->nr_pairs = pairs;
	nic->vhost_features = vhost_features ? vhost_features : FAKE_VHOST_FEATURES;
	fake_machine_init(&nic->fm, NULL);
	nic->fn = fake_netif_new(pairs);
	nic->fn->closed = &nic->nif_closed;
	memcpy(params.mac, fake_nic_mac, sizeof(params.mac));
	nic->dev = net_new(&nic->fm.m, &params, &nic->fn->nif, &err);
	if (!nic->dev)
		fatal("no device");
	if (virtio_attach(nic->dev, nic->fm.m.transport))
		fatal("no transport");
	virtio_register(nic->dev);
}

void fake_nic_init(struct fake_nic *nic, enum nic_kind kind, u64 vhost_features)
{
	fake_nic_init_pairs(nic, kind, vhost_features, 1);
}

static void take_memory(struct fake_nic *nic)
{
	nic->buf[0].seg[0].gpa = fake_alloc_high(&nic->drv, RX_MEM, 64);
	nic->tx_mem = nic->tx_next = fake_alloc_high(&nic->drv, TX_MEM, 64);
}

void fake_nic_open_pairs(struct fake_nic *nic, enum nic_kind kind,
			 const struct fake_driver_opts *opts, unsigned pairs)
{
	fake_nic_init_pairs(nic, kind, 0, pairs);
	fake_driver_open(&nic->drv, &nic->fm, 1, opts);
	take_memory(nic);
}

void fake_nic_open(struct fake_nic *nic, enum nic_kind kind, const struct fake_driver_opts *opts)
{
	fake_nic_open_pairs(nic, kind, opts, 1);
}

bool fake_nic_restart(struct fake_nic *nic)
{
	nic->nr_bufs = 0;
	return fake_driver_restart(&nic->drv);
}

void fake_nic_free(struct fake_nic *nic)
{
	fake_machine_free(&nic->fm);
	if (!nic->nif_closed)
		fatal("the netif was not closed");
	for (unsigned i = 0; i < nic->nr_pairs; i++) {
		struct fake_vhost *fv = nic->fvs[i];

		if (fv && nic->kind != NIC_VHOST_KERNEL && !fv->closed)
			fatal("the vhost was not closed");
		if (fv && (fv->ring[0].enabled || fv->ring[1].enabled))
			fatal("a ring was left enabled");
		if (fv && fv->misuse)
			fatal("the vhost's verbs were misused");
		fake_vhost_free(fv);
	}
}

/* --- the guest --- */

void fake_nic_use(struct fake_nic *nic, unsigned pair)
{
	nic->pair = nic->fn->queue = pair;
}

int fake_nic_ctrl(struct fake_nic *nic, const void *cmd, u32 len, u32 cut)
{
	unsigned pairs = nic->drv.features[0] & BIT(NET_B_MQ) ? nic->nr_pairs : 1, n = 0;
	u64 gpa = fake_alloc(&nic->drv, len + 1, 1);
	struct fake_seg seg[FAKE_INDIRECT_MAX];
	u8 *p = fake_ptr(&nic->drv, gpa, len + 1);
	u32 used;

	memcpy(p, cmd, len);
	p[len] = 0xcc;
	for (u32 at = 0; at < len; at += cut)
		seg[n++] = (struct fake_seg){ gpa + at, at + cut < len ? cut : len - at, false };
	seg[n++] = (struct fake_seg){ gpa + len, 1, true };
	if (fake_vq_request(&nic->drv.vq[2 * pairs], seg, n, &used))
		return -1;
	return used == 1 ? p[len] : -2;
}

static struct fake_vq *rx_vq(struct fake_nic *nic)
{
	return &nic->drv.vq[2 * nic->pair];
}

static struct fake_vq *tx_vq(struct fake_nic *nic)
{
	return &nic->drv.vq[2 * nic->pair + 1];
}

/* virtio 1.3 5.1.6.1: a legacy driver's header ends before num_buffers, unless it needs that. */
static u32 hdr_len(const struct fake_nic *nic)
{
	return nic->drv.features[0] & (BIT(VIRTIO_B_VERSION_1) | BIT(NET_B_MRG_RXBUF)) ? 12 : 10;
}

/* Buffers lie one behind the other; gpa of buffer 0 is where they begin. */
static struct nic_buf *new_buf(struct fake_nic *nic, const u32 *lens)
{
	u64 base = nic->buf[0].seg[0].gpa, at = base;
	struct nic_buf *b;

	if (nic->nr_bufs) {
		const struct nic_buf *last = &nic->buf[nic->nr_bufs - 1];

		at = last->seg[last->nr - 1].gpa + last->seg[last->nr - 1].len;
	}
	if (nic->nr_bufs == NIC_BUFS)
		fatal("too many receive buffers");
	b = &nic->buf[nic->nr_bufs++];
	for (b->nr = 0; lens[b->nr] && b->nr < NIC_BUF_SEGS; b->nr++) {
		b->seg[b->nr] = (struct fake_seg){ at, lens[b->nr], true };
		at += lens[b->nr];
	}
	if (at > base + RX_MEM)
		fatal("receive buffers are too large");
	return b;
}

/* The wire may see what was in a buffer; the guest must not. */
static void post(struct fake_nic *nic, struct nic_buf *b)
{
	for (unsigned i = 0; i < b->nr; i++)
		memset(fake_ptr(&nic->drv, b->seg[i].gpa, b->seg[i].len), 0xee, b->seg[i].len);
	if (fake_vq_add(rx_vq(nic), b->seg, b->nr, b) < 0)
		fatal("the receive ring is full");
}

void fake_nic_post_cut(struct fake_nic *nic, unsigned n, const u32 *lens)
{
	while (n--)
		post(nic, new_buf(nic, lens));
	fake_vq_kick(rx_vq(nic));
}

void fake_nic_post(struct fake_nic *nic, unsigned n, u32 len)
{
	fake_nic_post_cut(nic, n, (u32[]){ len, 0 });
}

bool fake_nic_send_cut(struct fake_nic *nic, const void *frame, u32 len, const u32 *lens)
{
	struct fake_seg seg[FAKE_INDIRECT_MAX];
	u32 hdr = hdr_len(nic), total = hdr + len, left = total;
	unsigned n = 0;
	u8 *p;

	if (nic->tx_next + total > nic->tx_mem + TX_MEM)
		nic->tx_next = nic->tx_mem;
	p = fake_ptr(&nic->drv, nic->tx_next, total);
	memset(p, 0, hdr);
	memcpy(p + hdr, frame, len);
	for (u64 at = nic->tx_next; left; left -= seg[n++].len) {
		seg[n] = (struct fake_seg){ at, lens[n] && lens[n] < left ? lens[n] : left, false };
		at += seg[n].len;
	}
	nic->tx_next += total;
	if (fake_vq_add(tx_vq(nic), seg, n, nic) < 0)
		return false;
	fake_vq_kick(tx_vq(nic));
	return true;
}

bool fake_nic_send(struct fake_nic *nic, const void *frame, u32 len)
{
	return fake_nic_send_cut(nic, frame, len, (u32[]){ 0 });
}

unsigned fake_nic_reap(struct fake_nic *nic)
{
	unsigned n = 0;

	while (fake_vq_get(tx_vq(nic), NULL))
		n++;
	nic->nr_reaped += n;
	return n;
}

/* Appends what the device wrote to buffer @b. */
static u32 collect(struct fake_nic *nic, const struct nic_buf *b, u32 len, u8 *to, u32 room)
{
	u32 done = 0;

	for (unsigned i = 0; i < b->nr && done < len; i++) {
		u32 n = MIN(b->seg[i].len, len - done);

		n = MIN(n, room - done);
		memcpy(to + done, fake_ptr(&nic->drv, b->seg[i].gpa, n), n);
		done += n;
	}
	return done;
}

long fake_nic_recv(struct fake_nic *nic, void *frame, u32 room, u16 *num_buffers)
{
	static u8 packet[2 * (NET_HDR_LEN + NET_MAX_FRAME)];
	u16 left = 1, n = 1;
	u32 got = 0, hdr = hdr_len(nic);

	for (bool first = true; left; left--, first = false) {
		u32 len;
		const struct nic_buf *b = fake_vq_get(rx_vq(nic), &len);

		if (!b && first)
			return -1;
		if (!b)
			fatal("a packet became visible in parts");
		got += collect(nic, b, len, packet + got, sizeof(packet) - got);
		if (!first)
			continue;
		if (got < hdr)
			fatal("a first buffer shorter than the header was used");
		if (hdr == 12)
			memcpy(&n, packet + 10, sizeof(n));
		if (!n || n > NIC_BUFS)
			fatal("num_buffers is wrong");
		left = n;
	}
	if (num_buffers)
		*num_buffers = n;
	memcpy(frame, packet + hdr, MIN(room, got - hdr));
	return (long)got - hdr;
}

/* --- both --- */

void fake_nic_frame(u8 *frame, u32 len, u32 seed)
{
	u32 x = seed * 2654435761u + 1;

	for (u32 i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		frame[i] = (u8)(x >> 24);
	}
	memset(frame, 0xff, MIN(6u, len));
	if (len >= 14) {
		frame[12] = 0x88;
		frame[13] = 0xb5;
	}
}

bool fake_nic_is_frame(const u8 *frame, u32 len, u32 seed)
{
	static u8 want[NET_MAX_FRAME];

	fake_nic_frame(want, len, seed);
	return memcmp(frame, want, len) == 0;
}

void fake_nic_pause(void)
{
	usleep(1000);
}

void fake_nic_settle(struct fake_nic *nic)
{
	for (int i = 0; i < 20; i++) {
		fake_machine_run(&nic->fm);
		fake_nic_pause();
	}
}
