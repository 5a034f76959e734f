// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames, headers, receive buffers and commands of a network device (virtio 1.3 5.1.6) that no sane
 * driver makes. Traps E5 to E8, D8.
 *
 * Theory of operation: hostile.h. A frame that the host does not take is dropped, its buffer comes
 * back; only what breaks a rule of virtqueues breaks the device. A command that is not understood
 * is answered with VIRTIO_NET_ERR. The far end of the wire is the case's.
 */
#include "hostile.h"

#define OK  0
#define ERR 1

static u8 frame[NET_MAX_FRAME], got[NET_MAX_FRAME];

/* --- transmit --- */

/* One buffer of c->a bytes, header included; c->b of it arrive, 0 = nothing. */
static void tx_length(struct rig *r)
{
	u64 at = fake_alloc_high(r->drv, 128 * KiB, 4096);
	struct fake_seg s = { at, (u32)r->c->a };
	long n = -1;

	WANT(fake_vq_add(r->vq, &s, 1, r) >= 0);
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	WANT(RIG_WAIT(r, fake_vq_get(r->vq, NULL) == r));
	if (r->c->b)
		WANT(RIG_WAIT(r, (n = fake_netif_take(r->nic.fn, NULL, got, sizeof(got))) >= 0));
	else
		n = fake_netif_take(r->nic.fn, NULL, got, sizeof(got));
	WANT_EQ(n, r->c->b ? (long)r->c->b : -1);
}

/*
 * A header that makes no sense: c->a is its first eight bytes, c->b the other four. What it says is
 * for the host's network to judge, so the frame goes out as it is (a tap would drop some of them).
 */
static void tx_header(struct rig *r)
{
	u8 hdr[NET_HDR_LEN] = { 0 };
	u8 *p = fake_ptr(r->drv, r->data, NET_HDR_LEN + 100);
	struct fake_seg s = { r->data, NET_HDR_LEN + 100 };

	memcpy(p, &r->c->a, 8);
	memcpy(p + 8, &r->c->b, 4);
	fake_nic_frame(p + NET_HDR_LEN, 100, 1);
	WANT(fake_vq_add(r->vq, &s, 1, r) >= 0);
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	WANT(RIG_WAIT(r, fake_vq_get(r->vq, NULL) == r));
	WANT(RIG_WAIT(r, fake_netif_take(r->nic.fn, hdr, got, sizeof(got)) == 100));
	WANT(!memcmp(hdr, p, 10));
	WANT(fake_nic_is_frame(got, 100, 1));
}

/* Cut after c->a bytes, and after c->b more: header and frame where they like (5.1.6.2). */
static void tx_cut(struct rig *r)
{
	struct fake_seg s[4];
	u32 a = (u32)r->c->a, b = (u32)r->c->b, all = NET_HDR_LEN + 100;
	unsigned n = 0;

	s[n++] = (struct fake_seg){ r->data, a };
	if (b)
		s[n++] = (struct fake_seg){ r->data + a, b };
	s[n++] = (struct fake_seg){ r->data + a + b, all - a - b };
	serve(r, s, n);
}

/* The host refuses one frame, with c->a as its errno: dropped, and the next one passes. */
static void tx_refused(struct rig *r)
{
	struct fake_seg s[4];

	r->nic.fn->fail_send = -(int)r->c->a;
	lay(r, s, shape(r, s, 0));
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	WANT(RIG_WAIT(r, fake_vq_get(r->vq, NULL) == r));
	WANT_EQ(fake_netif_take(r->nic.fn, NULL, got, sizeof(got)), -1);
	good(r);
}

/* The interface is gone for good: the guest's frames come back, nothing spins. */
static void tx_gone(struct rig *r)
{
	struct fake_seg s[4];

	if (r->c->a)
		r->nic.fn->fail_send = -(int)r->c->a;
	else
		fake_netif_unplug(r->nic.fn);
	r->unplugged = true;
	for (int i = 0; i < 6; i++) {
		lay(r, s, shape(r, s, 0));
		fake_vq_publish(r->vq);
		fake_vq_ring(r->vq);
		if (r->target & NET_TX)
			WANT(RIG_WAIT(r, fake_vq_get(r->vq, NULL) == r));
		rig_settle(r);
		while (fake_vq_get(r->vq, NULL))
			; /* a vhost may also keep them, as for a wire that is full */
	}
}

/* The wire is full: frames wait, and pass in order when it is not. */
static void tx_wire_full(struct rig *r)
{
	struct fake_seg s = { fake_alloc_high(r->drv, 64 * KiB, 64), 60000 };
	u16 from = guest_load(&r->vq->used->idx);
	u16 n = 0;

	while (fake_vq_add(r->vq, &s, 1, r) >= 0)
		n++;
	fake_vq_publish(r->vq);
	for (int i = 0; i < 20; i++)
		fake_vq_ring(r->vq);
	rig_settle(r);
	for (u16 i = 0; i < n; i++)
		WANT(RIG_WAIT(r, fake_netif_take(r->nic.fn, NULL, got, sizeof(got)) == 59988));
	WANT(used_moved(r, from, n));
	while (n--)
		WANT(fake_vq_get(r->vq, NULL) == r);
}

static void tx_wire_full_reset(struct rig *r)
{
	struct fake_seg s = { fake_alloc_high(r->drv, 64 * KiB, 64), 60000 };

	while (fake_vq_add(r->vq, &s, 1, r) >= 0)
		;
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	rig_settle(r);
	WANT(fake_driver_reset(r->drv));
	r->down = true;
}

static void tx_many_runts(struct rig *r)
{
	u16 from = guest_load(&r->vq->used->idx);
	u16 n = 0;

	for (u32 i = 0; i < r->vq->size; i++, n++) {
		struct fake_seg s = { r->data, i % 26 };

		WANT(fake_vq_add(r->vq, &s, 1, r) >= 0);
	}
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	WANT(used_moved(r, from, n));
	WANT_EQ(fake_netif_take(r->nic.fn, NULL, got, sizeof(got)), -1);
	while (n--)
		WANT(fake_vq_get(r->vq, NULL) == r);
}

/* --- receive --- */

/* Buffers of c->a bytes, c->b of them; then a frame. */
static void rx_buffers(struct rig *r)
{
	for (u64 i = 0; i < r->c->b; i++) {
		struct fake_seg s = { r->data + IN + i * r->c->a, (u32)r->c->a, true };

		WANT(fake_vq_add(r->vq, &s, 1, r) >= 0);
	}
	go(r);
	skip_used(r);
	r->down = true;
}

/* A frame of c->a bytes; buffers of c->b come after it, one at a time. */
static void rx_late_buffers(struct rig *r)
{
	u32 len = (u32)r->c->a, size = (u32)r->c->b, need = (NET_HDR_LEN + len + size - 1) / size;
	u16 from = guest_load(&r->vq->used->idx), num_buffers;
	u64 at = fake_alloc_high(r->drv, need * size, 64);

	fake_nic_frame(frame, len, 3);
	WANT(fake_netif_inject(r->nic.fn, frame, len));
	rig_settle(r);
	for (u32 i = 0; i < need; i++) {
		struct fake_seg s = { at + i * size, size, true };

		WANT_EQ(guest_load(&r->vq->used->idx), from);
		WANT(fake_vq_add(r->vq, &s, 1, r) >= 0);
		fake_vq_publish(r->vq);
		fake_vq_ring(r->vq);
		rig_settle(r);
	}
	WANT(used_moved(r, from, (u16)need));
	memcpy(&num_buffers, fake_ptr(r->drv, at + 10, 2), 2);
	WANT_EQ(num_buffers, need);
	WANT(fake_nic_is_frame(fake_ptr(r->drv, at + NET_HDR_LEN, len), len, 3));
	skip_used(r);
}

/* A flood with no buffer posted: frames wait or are dropped, nobody spins. */
static void rx_flood(struct rig *r)
{
	for (int i = 0; i < 1000; i++) {
		fake_nic_frame(frame, 200, (u32)i);
		fake_netif_inject(r->nic.fn, frame, 200);
		if (i % 100 == 0)
			rig_run(r);
	}
	if (r->c->a) {
		fake_vq_ring(r->vq);
		rig_settle(r);
	}
	r->down = true;
}

/* Without MRG_RXBUF a frame has one chain: too small a one drops it, num_buffers is 1. */
static void rx_too_small(struct rig *r)
{
	struct fake_seg s = { r->data + IN, (u32)r->c->a, true };
	u16 from = guest_load(&r->vq->used->idx);

	WANT(fake_vq_add(r->vq, &s, 1, r) >= 0);
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	fake_nic_frame(frame, 1000, 1);
	WANT(fake_netif_inject(r->nic.fn, frame, 1000));
	rig_settle(r);
	WANT_EQ(guest_load(&r->vq->used->idx), from);
	r->down = true;
}

/* Frames of odd sizes from the wire; the guest gets the sound ones. */
static void rx_odd_frames(struct rig *r)
{
	static const u32 len[] = { 0, 1, 13, 14, 100 };
	u16 from = guest_load(&r->vq->used->idx);

	for (unsigned i = 0; i < 8; i++) {
		struct fake_seg s = { r->data + IN + i * 2048, 2048, true };

		WANT(fake_vq_add(r->vq, &s, 1, r) >= 0);
	}
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	for (unsigned i = 0; i < ARRAY_SIZE(len); i++) {
		fake_nic_frame(frame, len[i], i);
		WANT(fake_netif_inject(r->nic.fn, frame, len[i]));
	}
	WANT(RIG_WAIT(r, (u16)(guest_load(&r->vq->used->idx) - from) >= 2));
	rig_settle(r);
	skip_used(r);
	r->down = true;
}

static void rx_reset_while_held(struct rig *r)
{
	struct fake_seg s = { r->data + IN, 64, true };

	WANT(fake_vq_add(r->vq, &s, 1, r) >= 0);
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	fake_nic_frame(frame, 1000, 1);
	WANT(fake_netif_inject(r->nic.fn, frame, 1000));
	rig_settle(r);
	WANT(fake_driver_reset(r->drv));
	r->down = true;
}

static void rx_wrap(struct rig *r)
{
	for (int i = 0; i < 600; i++)
		good(r);
	WANT_EQ(r->vq->errors, 0);
}

/* --- the control queue: 5.1.6.5 --- */

#define CMD(class, command) ((u64)(class) << 8 | (command))

/* Class and command in c->a; data in c->b: its length in the top byte, bytes below. */
static void command(struct rig *r)
{
	u8 data[8];

	memcpy(data, &r->c->b, 8);
	WANT_EQ(ctrl(r, (u8)(r->c->a >> 8), (u8)r->c->a, data, data[7]),
		r->c->verdict == PASS ? OK : ERR);
	r->refused = r->c->verdict != PASS;
	r->not_offered = r->c->verdict == NOT_OFFERED;
	if (r->refused)
		WANT_EQ(ctrl(r, 0, 0, (u8[]){ 1 }, 1), OK);
}
#define DATA(len, bytes) ((u64)(len) << 56 | (bytes))

/* A MAC table that says it has c->a and c->b entries, in 64 bytes. */
static void mac_table(struct rig *r)
{
	u8 data[64] = { 0 };
	u32 n = (u32)r->c->a;

	memcpy(data, &n, 4);
	n = (u32)r->c->b;
	memcpy(data + 4 + (r->c->a < 8 ? 6 * r->c->a : 0), &n, 4);
	WANT_EQ(ctrl(r, 1, 0, data, sizeof(data)), ERR);
	r->refused = true;
}

static void mac_table_good(struct rig *r)
{
	u8 data[8 + 6 * 9] = { 0 };
	u32 unicast = (u32)r->c->a, multicast = (u32)r->c->b;

	memcpy(data, &unicast, 4);
	memcpy(data + 4 + 6 * unicast, &multicast, 4);
	WANT_EQ(ctrl(r, 1, 0, data, 8 + 6 * (unicast + multicast)), OK);
}

/* Set, read back, and gone with a reset. */
static void mac_set(struct rig *r)
{
	static const u8 mac[6] = { 2, 1, 2, 3, 4, 5 };
	u64 gen = reg(r, VP_GEN, 1);

	WANT_EQ(ctrl(r, 1, 1, mac, 6), OK);
	for (unsigned i = 0; i < 6; i++)
		WANT_EQ(fake_config_read(r->drv, i, 1), mac[i]);
	WANT(reg(r, VP_GEN, 1) != gen);
	rig_restart(r);
	for (unsigned i = 0; i < 6; i++)
		WANT_EQ(fake_config_read(r->drv, i, 1), fake_nic_mac[i]);
}

/* A command in segments of the lengths of c->a, a byte each; c->b bytes for the answer. */
static void ctrl_layout(struct rig *r)
{
	struct fake_seg s[9];
	u32 done = 0, room = (u32)r->c->b, len = 0;
	unsigned n = 0;
	u8 *p = fake_ptr(r->drv, r->data, 64), *ack = fake_ptr(r->drv, r->data + IN, 64);

	memcpy(p, (u8[]){ 0, 1, 1 }, 3);
	memset(ack, 0x5a, 64);
	for (unsigned i = 0; i < 8 && (r->c->a >> 8 * i & 0xff); i++) {
		s[n] = (struct fake_seg){ r->data + done, (u32)(r->c->a >> 8 * i & 0xff) };
		done += s[n++].len;
	}
	s[n++] = (struct fake_seg){ r->data + IN, room, true };
	WANT(fake_vq_add(r->vq, s, n, r) >= 0);
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	WANT(RIG_WAIT(r, fake_vq_get(r->vq, &len) == r));
	WANT_EQ(len, 1);
	WANT_EQ(ack[0], r->c->verdict == PASS ? OK : ERR);
	WANT_EQ(ack[1], 0x5a);
	r->refused = r->c->verdict == REFUSED;
}

/* An answer that cannot be given breaks the device: no writable byte, or an empty one. */
static void ctrl_no_room(struct rig *r)
{
	put(r, 0, r->data, 3, NEXT, 1);
	put(r, 1, r->data + IN, 0, r->c->a ? WRITE : 0, 0);
	head(r, 0);
	go(r);
}

static void ctrl_large(struct rig *r)
{
	static const u8 zeroes[32000];

	WANT_EQ(ctrl(r, (u8)r->c->a, 0, zeroes, sizeof(zeroes)), ERR);
	r->refused = true;
}

/* Announcements that nobody asked for, offload sets that were not negotiated, and none at all. */
static void offloads_and_announce(struct rig *r)
{
	static const u64 sets[] = { ~0ULL, BIT(0), BIT(7), 0 };

	if (r->c->a == 3) {
		WANT_EQ(ctrl(r, 3, 1, sets, 0), ERR);
		ctrl(r, 3, 0, sets, 0); /* an acknowledgement of nothing: either answer is fine */
	} else {
		WANT_EQ(ctrl(r, 5, 1, &sets[3], 8), ERR);
		WANT_EQ(ctrl(r, 5, 0, &sets[3], 7), ERR);
		for (unsigned i = 0; i < 2; i++)
			WANT_EQ(ctrl(r, 5, 0, &sets[i], 8), ERR);
		WANT_EQ(ctrl(r, 5, 0, &sets[3], 8), OK);
	}
}

/* Commands while frames flow. */
static void ctrl_and_traffic(struct rig *r)
{
	for (u8 i = 0; i < 30; i++) {
		round_trip(r);
		WANT_EQ(ctrl(r, 0, i % 6, (u8[]){ i & 1 }, 1), OK);
		WANT_EQ(ctrl(r, 2, 0, (u8[]){ i, 0 }, 2), OK);
	}
}

/* As many as fit, at once. */
static void ctrl_burst(struct rig *r)
{
	struct fake_vq *ctrl_vq = &r->drv->vq[r->drv->nr_vqs - 1];
	struct fake_seg s[2] = { { r->data, 3 }, { r->data + IN, 1, true } };
	u16 n = 0;

	memcpy(fake_ptr(r->drv, r->data, 3), (u8[]){ 0, 0, 1 }, 3);
	while (fake_vq_add(ctrl_vq, s, 2, r) >= 0)
		n++;
	WANT(n >= 4);
	fake_vq_publish(ctrl_vq);
	fake_vq_ring(ctrl_vq);
	while (n && RIG_WAIT(r, fake_vq_get(ctrl_vq, NULL) == r))
		n--;
	WANT_EQ(n, 0);
}

/* Without the feature c->a a command of class c->b is an error, whatever it says. */
static void command_without(struct rig *r)
{
	static const u8 data[6] = { 2 };
	static const u32 len[] = { 1, 6, 2 };

	r->drv->opts.features[0] = ~BIT(r->c->a);
	r->drv->opts.features[1] = ~0ULL;
	rig_restart(r);
	WANT_EQ(ctrl(r, (u8)r->c->b, r->c->b == 1, data, len[r->c->b]), ERR);
	r->drv->opts.features[0] = r->drv->opts.features[1] = 0;
	r->refused = true;
}

/* --- configuration and features --- */

static void link_status(struct rig *r)
{
	for (int i = 0; i < 50; i++) {
		WANT_EQ(fake_config_read(r->drv, 6, 2) & 1, 1);
		good(r);
	}
}

/* A bit that is not offered, refused; and a command of class c->b, if not 0, is an error. */
static void not_offered(struct rig *r)
{
	unsigned bit = (unsigned)r->c->a;

	if (rig_offers(r, bit))
		return;
	if (r->c->b)
		WANT_EQ(ctrl(r, (u8)r->c->b, 0, (u8[8]){ 1 }, 8), ERR);
	reg_set(r, VP_STATUS, 1, 0);
	reg_set(r, VP_STATUS, 1, 3);
	reg_set(r, VP_GFSELECT, 4, 1);
	reg_set(r, VP_GF, 4, 1);
	reg_set(r, VP_GFSELECT, 4, bit / 32);
	reg_set(r, VP_GF, 4, (u32)BIT(bit % 32) | (bit / 32 == 1));
	reg_set(r, VP_STATUS, 1, 0xb);
	WANT_EQ(rig_status(r), 3);
	r->not_offered = true;
}

/* The netif does not take these offloads: broken at DRIVER_OK, not before and no worse. */
static void offloads_refused(struct rig *r)
{
	r->nic.fn->fail_offload = -(int)r->c->a;
	rig_negotiate(r);
	rig_setup_all(r);
	WANT(!fake_driver_start(r->drv));
	r->nic.fn->fail_offload = 0;
}

/* Offloads in senseless company: GUEST_TSO4 without GUEST_CSUM and the like, c->a in word 0. */
static void offloads_odd(struct rig *r)
{
	r->drv->opts.features[0] = r->c->a;
	rig_restart(r);
	round_trip(r);
	WANT(!(r->nic.fn->offload & ~r->c->a));
	WANT(fake_driver_reset(r->drv));
	WANT_EQ(r->nic.fn->offload, 0);
	r->down = true;
}

#define HDR(flags, gso, hdr_len, gso_size, csum_start) \
	((u64)(flags) | (u64)(gso) << 8 | (u64)(hdr_len) << 16 | (u64)(gso_size) << 32 | \
	 (u64)(csum_start) << 48)
#define CSUM_OFFSET(x) (x)
#define NUM_BUFFERS(x) ((u64)(x) << 16)

static const struct hostile_case cases[] = {
	/* how long a frame is */
	{ "tx_empty", tx_length, PASS, NICS, 0, 0, 0 },
	{ "tx_1_byte", tx_length, PASS, NICS, 0, 1, 0 },
	{ "tx_half_header", tx_length, PASS, NICS, 0, 6, 0 },
	{ "tx_header_less_1", tx_length, PASS, NICS, 0, 11, 0 },
	{ "tx_legacy_header_only", tx_length, PASS, NICS, 0, 10, 0 },
	{ "tx_header_only", tx_length, PASS, NICS, 0, 12, 0 },
	{ "tx_frame_of_1", tx_length, PASS, NICS, 0, 13, 0 },
	{ "tx_frame_of_13", tx_length, PASS, NICS, 0, 25, 0 },
	{ "tx_frame_of_14", tx_length, PASS, NICS, 0, 26, 14 },
	{ "tx_frame_of_mtu", tx_length, PASS, NICS, 0, 12 + 1514, 1514 },
	{ "tx_frame_over_mtu", tx_length, PASS, NICS, 0, 12 + 9000, 9000 },
	{ "tx_frame_of_64k", tx_length, PASS, NICS, 0, 12 + 65535 + 14, 65535 + 14 },
	{ "tx_frame_largest", tx_length, PASS, NICS, 0, 12 + NET_MAX_FRAME, NET_MAX_FRAME },
	{ "tx_frame_too_large", tx_length, PASS, NICS, 0, 12 + NET_MAX_FRAME + 1, 0 },
	{ "tx_frame_of_100k", tx_length, PASS, NICS, 0, 100000, 0 },
	{ "tx_many_runts", tx_many_runts, PASS, NICS },
	{ "tx_many_runts_plain", tx_many_runts, PASS, NICS, PLAIN | LARGE },

	/* what its header says: 5.1.6.2 */
	{ "hdr_all_ones", tx_header, PASS, NICS, 0, ~0ULL, 0xffffffff },
	{ "hdr_gso_type_unknown", tx_header, PASS, NICS, 0, HDR(0, 0x7f, 0, 0, 0), 0 },
	{ "hdr_gso_type_2", tx_header, PASS, NICS, 0, HDR(1, 2, 54, 1448, 34), CSUM_OFFSET(16) },
	{ "hdr_gso_udp", tx_header, PASS, NICS, 0, HDR(1, 3, 42, 1448, 34), CSUM_OFFSET(6) },
	{ "hdr_gso_ecn_alone", tx_header, PASS, NICS, 0, HDR(0, 0x80, 0, 0, 0), 0 },
	{ "hdr_gso_without_csum", tx_header, PASS, NICS, 0, HDR(0, 1, 54, 1448, 0), 0 },
	{ "hdr_gso_size_0", tx_header, PASS, NICS, 0, HDR(1, 1, 54, 0, 34), CSUM_OFFSET(16) },
	{ "hdr_gso_size_1", tx_header, PASS, NICS, 0, HDR(1, 1, 54, 1, 34), CSUM_OFFSET(16) },
	{ "hdr_gso_size_max", tx_header, PASS, NICS, 0, HDR(1, 1, 54, 0xffff, 34), 16 },
	{ "hdr_len_0", tx_header, PASS, NICS, 0, HDR(1, 1, 0, 1448, 34), CSUM_OFFSET(16) },
	{ "hdr_len_max", tx_header, PASS, NICS, 0, HDR(1, 1, 0xffff, 1448, 34), CSUM_OFFSET(16) },
	{ "hdr_csum_start_max", tx_header, PASS, NICS, 0, HDR(1, 0, 0, 0, 0xffff), 0 },
	{ "hdr_csum_offset_max", tx_header, PASS, NICS, 0, HDR(1, 0, 0, 0, 34), 0xffff },
	{ "hdr_csum_sum_wraps", tx_header, PASS, NICS, 0, HDR(1, 0, 0, 0, 0xffff), 0xffff },
	{ "hdr_csum_last_byte", tx_header, PASS, NICS, 0, HDR(1, 0, 0, 0, 99), 0 },
	{ "hdr_data_valid", tx_header, PASS, NICS, 0, HDR(2, 0, 0, 0, 0), 0 },
	{ "hdr_rsc_info", tx_header, PASS, NICS, 0, HDR(4, 0, 0, 0, 0), 0 },
	{ "hdr_flags_reserved", tx_header, PASS, NICS, 0, HDR(0xf8, 0, 0, 0, 0), 0 },
	{ "hdr_num_buffers", tx_header, PASS, NICS, 0, 0, NUM_BUFFERS(0xffff) },
	{ "hdr_num_buffers_no_mrg", tx_header, PASS, NICS, NO_MRG, 0, NUM_BUFFERS(7) },
	{ "hdr_uso", tx_header, PASS, NICS, 0, HDR(1, 5, 42, 1448, 34), CSUM_OFFSET(6) },
	{ "hdr_uso_size_0", tx_header, PASS, NICS, 0, HDR(1, 5, 42, 0, 34), CSUM_OFFSET(6) },
	{ "hdr_uso_csum_start_max", tx_header, PASS, NICS, 0, HDR(1, 5, 42, 1448, 0xffff), 6 },
	{ "hdr_tunnel_type", tx_header, PASS, NICS, 0, HDR(1, 0x61, 42, 1448, 34), 6 },
	{ "hdr_tso6_in_ipv4", tx_header, PASS, NICS, 0, HDR(1, 4, 54, 1448, 34), CSUM_OFFSET(16) },

	/* where it lies */
	{ "cut_header_1", tx_cut, PASS, NICS, 0, 1, 0 },
	{ "cut_header_1_and_11", tx_cut, PASS, NICS, 0, 1, 11 },
	{ "cut_header_6", tx_cut, PASS, NICS, 0, 6, 0 },
	{ "cut_header_10_and_2", tx_cut, PASS, NICS, 0, 10, 2 },
	{ "cut_header_11", tx_cut, PASS, NICS, 0, 11, 0 },
	{ "cut_header_12", tx_cut, PASS, NICS, 0, 12, 0 },
	{ "cut_header_13", tx_cut, PASS, NICS, 0, 13, 0 },
	{ "cut_ethernet_header", tx_cut, PASS, NICS, 0, 12, 14 },
	{ "cut_last_byte", tx_cut, PASS, NICS, 0, 12, 99 },
	{ "cut_header_11_plain", tx_cut, PASS, NICS, PLAIN, 11, 2 },

	/* the host's side of it */
	{ "tx_host_einval", tx_refused, PASS, NET_TX, 0, EINVAL },
	{ "tx_host_eio", tx_refused, PASS, NET_TX, 0, EIO },
	{ "tx_host_enobufs", tx_refused, PASS, NET_TX, 0, ENOBUFS },
	{ "tx_host_emsgsize", tx_refused, PASS, NET_TX, 0, EMSGSIZE },
	{ "tx_host_efault", tx_refused, PASS, NET_TX, 0, EFAULT },
	{ "tx_host_enomem", tx_refused, PASS, NET_TX, 0, ENOMEM },
	{ "tx_interface_enodev", tx_gone, PASS, NET_TX, 0, ENODEV },
	{ "tx_interface_ebadfd", tx_gone, PASS, NET_TX, 0, EBADFD },
	{ "tx_interface_unplugged", tx_gone, PASS, NICS, 0, 0 },
	{ "tx_wire_full", tx_wire_full, PASS, NICS, LARGE },
	{ "tx_wire_full_no_event", tx_wire_full, PASS, NICS, LARGE | NO_EVENT },
	{ "tx_wire_full_reset", tx_wire_full_reset, PASS, NICS, LARGE },

	/* receive buffers */
	{ "rx_buffers_of_1", rx_buffers, EITHER, RX, LARGE, 1, 200 },
	{ "rx_buffers_of_8", rx_buffers, EITHER, RX, LARGE, 8, 100 },
	{ "rx_buffers_of_11", rx_buffers, EITHER, RX, LARGE, 11, 100 },
	{ "rx_buffers_of_12", rx_buffers, EITHER, RX, LARGE, 12, 100 },
	{ "rx_one_buffer_of_1", rx_buffers, EITHER, RX, 0, 1, 1 },
	{ "rx_one_buffer_of_1_no_mrg", rx_buffers, EITHER, RX, NO_MRG, 1, 1 },
	{ "rx_buffer_empty", rx_buffers, REFUSED, RX, 0, 0, 1 },
	{ "rx_buffer_empty_no_mrg", rx_buffers, REFUSED, RX, NO_MRG, 0, 1 },
	{ "rx_late_buffers", rx_late_buffers, PASS, RX, 0, 5000, 1526 },
	{ "rx_late_buffers_exact", rx_late_buffers, PASS, RX, 0, 1514, 1526 },
	{ "rx_late_buffers_one_more", rx_late_buffers, PASS, RX, 0, 1515, 1526 },
	{ "rx_late_buffers_largest", rx_late_buffers, PASS, RX, LARGE, NET_MAX_FRAME, 1526 },
	{ "rx_late_buffers_small", rx_late_buffers, PASS, RX, LARGE, 1000, 14 },
	{ "rx_flood", rx_flood, PASS, RX, 0, 0 },
	{ "rx_flood_and_kick", rx_flood, PASS, RX, 0, 1 },
	{ "rx_flood_no_mrg", rx_flood, PASS, RX, NO_MRG, 1 },
	{ "rx_too_small_no_mrg", rx_too_small, PASS, RX, NO_MRG, 1011 },
	{ "rx_header_only_no_mrg", rx_too_small, PASS, RX, NO_MRG, 12 },
	{ "rx_odd_frames", rx_odd_frames, PASS, RX },
	{ "rx_odd_frames_no_mrg", rx_odd_frames, PASS, RX, NO_MRG },
	{ "rx_reset_while_held", rx_reset_while_held, PASS, RX },
	{ "rx_reset_while_held_no_mrg", rx_reset_while_held, PASS, RX, NO_MRG },
	{ "rx_600_frames", rx_wrap, PASS, RX },
	{ "rx_600_frames_no_mrg", rx_wrap, PASS, RX, NO_MRG | NO_EVENT },

	/* commands */
	{ "rx_promisc_on", command, PASS, NICS, 0, CMD(0, 0), DATA(1, 1) },
	{ "rx_promisc_off", command, PASS, NICS, 0, CMD(0, 0), DATA(1, 0) },
	{ "rx_allmulti", command, PASS, NICS, 0, CMD(0, 1), DATA(1, 1) },
	{ "rx_nobcast", command, PASS, NICS, 0, CMD(0, 5), DATA(1, 1) },
	{ "rx_unknown_6", command, REFUSED, NICS, 0, CMD(0, 6), DATA(1, 1) },
	{ "rx_unknown_ff", command, REFUSED, NICS, 0, CMD(0, 0xff), DATA(1, 1) },
	{ "rx_no_data", command, REFUSED, NICS, 0, CMD(0, 0), DATA(0, 0) },
	{ "rx_two_bytes", command, REFUSED, NICS, 0, CMD(0, 0), DATA(2, 1) },
	{ "mac_set", mac_set, PASS, NICS },
	{ "mac_set_multicast", command, REFUSED, NICS, 0, CMD(1, 1), DATA(6, 0x0101) },
	{ "mac_set_broadcast", command, REFUSED, NICS, 0, CMD(1, 1), DATA(6, 0xffffffffffff) },
	{ "mac_set_short", command, REFUSED, NICS, 0, CMD(1, 1), DATA(5, 2) },
	{ "mac_set_long", command, REFUSED, NICS, 0, CMD(1, 1), DATA(7, 2) },
	{ "mac_set_empty", command, REFUSED, NICS, 0, CMD(1, 1), DATA(0, 0) },
	{ "mac_unknown", command, REFUSED, NICS, 0, CMD(1, 2), DATA(6, 2) },
	{ "mac_table_empty", mac_table_good, PASS, NICS, 0, 0, 0 },
	{ "mac_table_one_each", mac_table_good, PASS, NICS, 0, 1, 1 },
	{ "mac_table_4_and_5", mac_table_good, PASS, NICS, 0, 4, 5 },
	{ "mac_table_max", mac_table, REFUSED, NICS, 0, 0xffffffff, 0 },
	{ "mac_table_max_multicast", mac_table, REFUSED, NICS, 0, 0, 0xffffffff },
	{ "mac_table_wraps", mac_table, REFUSED, NICS, 0, 0x2aaaaaab, 0 },
	{ "mac_table_trailing", mac_table, REFUSED, NICS, 0, 1, 1 },
	{ "mac_table_short", command, REFUSED, NICS, 0, CMD(1, 0), DATA(4, 0) },
	{ "mac_table_no_data", command, REFUSED, NICS, 0, CMD(1, 0), DATA(0, 0) },
	{ "vlan_add_0", command, PASS, NICS, 0, CMD(2, 0), DATA(2, 0) },
	{ "vlan_add_4095", command, PASS, NICS, 0, CMD(2, 0), DATA(2, 4095) },
	{ "vlan_add_4096", command, REFUSED, NICS, 0, CMD(2, 0), DATA(2, 4096) },
	{ "vlan_del_never_added", command, PASS, NICS, 0, CMD(2, 1), DATA(2, 77) },
	{ "vlan_del_ffff", command, REFUSED, NICS, 0, CMD(2, 1), DATA(2, 0xffff) },
	{ "vlan_unknown", command, REFUSED, NICS, 0, CMD(2, 2), DATA(2, 1) },
	{ "vlan_short", command, REFUSED, NICS, 0, CMD(2, 0), DATA(1, 1) },
	{ "vlan_long", command, REFUSED, NICS, 0, CMD(2, 0), DATA(4, 1) },
	{ "class_7", command, REFUSED, NICS, 0, CMD(7, 0), DATA(1, 1) },
	{ "class_80", command, REFUSED, NICS, 0, CMD(0x80, 0), DATA(1, 1) },
	{ "class_ff", command, REFUSED, NICS, 0, CMD(0xff, 0xff), DATA(1, 1) },
	{ "ctrl_32000_bytes", ctrl_large, REFUSED, NICS, 0, 0 },
	{ "ctrl_mac_32000_bytes", ctrl_large, REFUSED, NICS, 0, 1 },
	{ "announce", offloads_and_announce, PASS, NET_CTRL, 0, 3 },
	{ "guest_offloads", offloads_and_announce, PASS, NET_CTRL, 0, 5 },
	{ "ctrl_in_one_piece", ctrl_layout, PASS, NET_CTRL, 0, 0x03, 1 },
	{ "ctrl_by_bytes", ctrl_layout, PASS, NET_CTRL, 0, 0x010101, 1 },
	{ "ctrl_1_and_2", ctrl_layout, PASS, NET_CTRL, PLAIN, 0x0201, 1 },
	{ "ctrl_room_for_64", ctrl_layout, PASS, NET_CTRL, 0, 0x0102, 60 },
	{ "ctrl_class_only", ctrl_layout, REFUSED, NET_CTRL, 0, 0x01, 1 },
	{ "ctrl_header_only", ctrl_layout, REFUSED, NET_CTRL, 0, 0x02, 1 },
	{ "ctrl_answer_only", ctrl_layout, REFUSED, NET_CTRL, 0, 0, 1 },
	{ "ctrl_no_answer", ctrl_no_room, REFUSED, NET_CTRL, 0, 0 },
	{ "ctrl_answer_of_0_bytes", ctrl_no_room, REFUSED, NET_CTRL, 0, 1 },
	{ "ctrl_and_traffic", ctrl_and_traffic, PASS, NICS },
	{ "ctrl_burst", ctrl_burst, PASS, NICS, LARGE },
	{ "ctrl_burst_plain", ctrl_burst, PASS, NICS, LARGE | PLAIN },
	{ "rx_without_ctrl_rx", command_without, REFUSED, NICS, 0, NET_B_CTRL_RX, 0 },
	{ "mac_without_ctrl_mac_addr", command_without, REFUSED, NICS, 0, NET_B_CTRL_MAC_ADDR, 1 },
	{ "vlan_without_ctrl_vlan", command_without, REFUSED, NICS, 0, NET_B_CTRL_VLAN, 2 },

	/* configuration and offloads */
	{ "link_status_stable", link_status, PASS, NICS },
	{ "offloads_einval", offloads_refused, REFUSED, NICS, 0, EINVAL },
	{ "offloads_ebadfd", offloads_refused, REFUSED, NICS, 0, EBADFD },
	{ "offloads_tso_without_csum", offloads_odd, EITHER, NICS, 0,
	  BIT(NET_B_GUEST_TSO4) | BIT(NET_B_CTRL_VQ) | BIT(NET_B_CTRL_RX) },
	{ "offloads_ecn_without_tso", offloads_odd, EITHER, NICS, 0,
	  BIT(NET_B_GUEST_ECN) | BIT(NET_B_CTRL_VQ) | BIT(NET_B_CTRL_RX) },
	{ "offloads_host_tso_without_csum", offloads_odd, EITHER, NICS, 0,
	  BIT(NET_B_HOST_TSO4) | BIT(NET_B_CTRL_VQ) | BIT(NET_B_CTRL_RX) },

	/* not there */
	{ "guest_ufo", not_offered, NOT_OFFERED, NICS, 0, 10, 0, "GUEST_UFO" },
	{ "host_ufo", not_offered, NOT_OFFERED, NICS, 0, 14, 0, "HOST_UFO" },
	{ "ctrl_rx_extra", not_offered, NOT_OFFERED, NICS, 0, 20, 0, "CTRL_RX_EXTRA" },
	{ "multiqueue", not_offered, NOT_OFFERED, NICS, 0, 22, 4, "MQ: one pair of queues" },
	{ "device_stats", not_offered, NOT_OFFERED, NICS, 0, 50, 8, "DEVICE_STATS" },
	{ "hash_tunnel", not_offered, NOT_OFFERED, NICS, 0, 51, 7, "HASH_TUNNEL" },
	{ "vq_notf_coal", not_offered, NOT_OFFERED, NICS, 0, 52, 6, "VQ_NOTF_COAL" },
	{ "notf_coal", not_offered, NOT_OFFERED, NICS, 0, 53, 6, "NOTF_COAL" },
	{ "hash_report", not_offered, NOT_OFFERED, NICS, 0, 57, 4, "HASH_REPORT" },
	{ "guest_hdrlen", not_offered, NOT_OFFERED, NICS, 0, 59, 0, "GUEST_HDRLEN" },
	{ "rss", not_offered, NOT_OFFERED, NICS, 0, 60, 4, "RSS" },
	{ "rsc_ext", not_offered, NOT_OFFERED, NICS, 0, 61, 0, "RSC_EXT" },
	{ "standby", not_offered, NOT_OFFERED, NICS, 0, 62, 0, "STANDBY" },
	{ "speed_duplex", not_offered, NOT_OFFERED, NICS, 0, 63, 0, "SPEED_DUPLEX" },
	{ "tunnel_gso", not_offered, NOT_OFFERED, NICS, 0, 65, 0, "GUEST_UDP_TUNNEL_GSO" },
	{ "host_tunnel_gso", not_offered, NOT_OFFERED, NICS, 0, 67, 0, "HOST_UDP_TUNNEL_GSO" },
};

const struct hostile_group net_group = { "net", cases, ARRAY_SIZE(cases) };
