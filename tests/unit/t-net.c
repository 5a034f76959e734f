// SPDX-License-Identifier: GPL-2.0-only
/*
 * net.c: configuration, features, control queue. net-user.c: what is peculiar to our own data path.
 */
#include "../tap.h"
#include "fake/fake-nic.h"
#include "log.h"

#define LARGE NET_MAX_FRAME

enum { OK, ERR };

static u8 frame[LARGE], got[LARGE];
static unsigned nr_said;

static void count_log(enum log_level level, const char *line)
{
	if (level <= LOG_WARN)
		nr_said++;
	printf("# %s\n", line);
}

static const struct net_stats *stats(const struct fake_nic *nic)
{
	return net_device_stats(nic->dev, 0);
}

static void check_rx(struct fake_nic *nic, u32 len, u32 seed)
{
	fake_nic_frame(frame, len, seed);
	REQUIRE(fake_netif_inject(nic->fn, frame, len));
	fake_machine_run(&nic->fm);
	CHECK_EQ(fake_nic_recv(nic, got, sizeof(got), NULL), len);
	CHECK(fake_nic_is_frame(got, len, seed));
}

static void check_tx(struct fake_nic *nic, u32 len, u32 seed)
{
	fake_nic_frame(frame, len, seed);
	REQUIRE(fake_nic_send(nic, frame, len));
	fake_machine_run(&nic->fm);
	CHECK_EQ(fake_netif_take(nic->fn, NULL, got, sizeof(got)), len);
	CHECK(fake_nic_is_frame(got, len, seed));
	CHECK_EQ(fake_nic_reap(nic), 1);
}

/* --- control queue --- */

static void t_ctrl_commands(void)
{
	struct fake_nic nic;

	fake_nic_open(&nic, NIC_USER, NULL);
	for (u32 cut = 1; cut < 24; cut++) {
		/* RX: promiscuous, all multicast; unknown ones */
		CHECK_EQ(NIC_CTRL(&nic, cut, 0, 0, 1), OK);
		CHECK_EQ(NIC_CTRL(&nic, cut, 0, 1, 0), OK);
		CHECK_EQ(NIC_CTRL(&nic, cut, 0, 6, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 0, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 0, 0, 1, 1), ERR);
		/* MAC tables: both empty, one and two entries; counts that do not fit */
		CHECK_EQ(NIC_CTRL(&nic, cut, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0), OK);
		CHECK_EQ(NIC_CTRL(&nic, cut, 1, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4, 5, 0, 0, 0, 0), OK);
		CHECK_EQ(NIC_CTRL(&nic, cut, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0x5e, 0, 0, 1),
			 OK);
		CHECK_EQ(NIC_CTRL(&nic, cut, 1, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 5, 0, 0, 0, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0x5e, 0, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 1, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 1, 0, 0, 0, 0, 0, 0, 0, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 1, 2, 0), ERR);
		/* VLAN: add and delete, 0 to 4095 */
		CHECK_EQ(NIC_CTRL(&nic, cut, 2, 0, 0, 0), OK);
		CHECK_EQ(NIC_CTRL(&nic, cut, 2, 1, 0xff, 0x0f), OK);
		CHECK_EQ(NIC_CTRL(&nic, cut, 2, 0, 0, 0x10), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 2, 2, 1, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 2, 0, 1), ERR);
		/* announce: done, though nobody asked */
		CHECK_EQ(NIC_CTRL(&nic, cut, 3, 0), OK);
		CHECK_EQ(NIC_CTRL(&nic, cut, 3, 1), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 3, 0, 0), ERR);
		/* offloads: none; a bit that is no offload; not 64 bits */
		CHECK_EQ(NIC_CTRL(&nic, cut, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0), OK);
		CHECK_EQ(NIC_CTRL(&nic, cut, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 5, 0, 0, 0, 0, 0, 0, 0, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), ERR);
		/* what we do not offer: multiqueue on one pair; nothing at all */
		CHECK_EQ(NIC_CTRL(&nic, cut, 4, 0, 1, 0), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 0xff, 0xff), ERR);
		CHECK_EQ(NIC_CTRL(&nic, cut, 0), ERR);
	}
	CHECK_EQ(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET, 0);
	fake_nic_free(&nic);
}

static u64 config_mac(struct fake_nic *nic)
{
	u64 mac = 0;

	for (unsigned i = 0; i < 6; i++)
		mac = mac << 8 | fake_config_read(&nic->drv, i, 1);
	return mac;
}

static void t_ctrl_mac_addr(void)
{
	struct fake_nic nic;
	u64 gen, irqs;

	fake_nic_open(&nic, NIC_USER, NULL);
	CHECK_EQ(config_mac(&nic), 0x021515010203);
	gen = fake_common_read(&nic.drv, VP_GEN, 1);
	irqs = fake_driver_config_irqs(&nic.drv);
	for (u32 cut = 1; cut < 9; cut++)
		CHECK_EQ(NIC_CTRL(&nic, cut, 1, 1, 2, 3, 4, 5, 6, (u8)cut), OK);
	CHECK_EQ(config_mac(&nic), 0x020304050608);
	CHECK(fake_common_read(&nic.drv, VP_GEN, 1) != gen);
	CHECK_EQ(fake_driver_config_irqs(&nic.drv), irqs);
	CHECK_EQ(NIC_CTRL(&nic, 9, 1, 1, 1, 3, 4, 5, 6, 7), ERR); /* multicast */
	CHECK_EQ(NIC_CTRL(&nic, 9, 1, 1, 2, 3, 4, 5, 6), ERR);
	CHECK_EQ(NIC_CTRL(&nic, 9, 1, 1, 2, 3, 4, 5, 6, 7, 8), ERR);
	CHECK_EQ(config_mac(&nic), 0x020304050608);
	CHECK(fake_driver_reset(&nic.drv));
	CHECK_EQ(config_mac(&nic), 0x021515010203);
	fake_nic_free(&nic);
}

/* A command of a feature that the driver did not take is refused. */
static void t_ctrl_not_negotiated(void)
{
	struct fake_driver_opts opts = { .features = { BIT(NET_B_CTRL_VQ) | BIT(NET_B_MAC) } };
	struct fake_nic nic;

	fake_nic_open(&nic, NIC_USER, &opts);
	CHECK_EQ(NIC_CTRL(&nic, 9, 0, 0, 1), ERR);
	CHECK_EQ(NIC_CTRL(&nic, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0), ERR);
	CHECK_EQ(NIC_CTRL(&nic, 9, 1, 1, 2, 3, 4, 5, 6, 7), ERR);
	CHECK_EQ(NIC_CTRL(&nic, 9, 2, 0, 1, 0), ERR);
	CHECK_EQ(NIC_CTRL(&nic, 9, 3, 0), ERR);
	CHECK_EQ(NIC_CTRL(&nic, 9, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0), ERR);
	fake_nic_free(&nic);
}

static void t_ctrl_without_answer(void)
{
	struct fake_nic nic;
	struct fake_seg seg;

	log_set_sink(count_log);
	fake_nic_open(&nic, NIC_USER, NULL);
	seg = (struct fake_seg){ fake_alloc(&nic.drv, 3, 1), 3, false };
	CHECK_EQ(fake_vq_request(&nic.drv.vq[2], &seg, 1, NULL), -EAGAIN);
	CHECK(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET);
	REQUIRE(fake_nic_restart(&nic));
	CHECK_EQ(NIC_CTRL(&nic, 9, 0, 0, 1), OK);
	CHECK_EQ(nr_said, 1);
	fake_nic_free(&nic);
}

static void t_ctrl_burst(void)
{
	struct fake_nic nic;
	struct fake_vq *vq;
	u64 cmd, ack;
	unsigned n = 0;

	fake_nic_open(&nic, NIC_USER, NULL);
	vq = &nic.drv.vq[2];
	cmd = fake_alloc(&nic.drv, 3, 1);
	ack = fake_alloc(&nic.drv, 1000, 1);
	for (unsigned i = 0; i < 1000; i++) {
		struct fake_seg seg[2] = { { cmd, 3, false }, { ack + i, 1, true } };

		*(u8 *)fake_ptr(&nic.drv, ack + i, 1) = 0xcc;
		if (fake_vq_add(vq, seg, 2, &nic) >= 0)
			continue;
		fake_vq_kick(vq);
		fake_machine_run(&nic.fm);
		for (; fake_vq_get(vq, NULL); n++)
			;
		i--;
	}
	fake_vq_kick(vq);
	fake_machine_run(&nic.fm);
	for (; fake_vq_get(vq, NULL); n++)
		;
	CHECK_EQ(n, 1000);
	for (unsigned i = 0; i < 1000; i++)
		CHECK_EQ(*(u8 *)fake_ptr(&nic.drv, ack + i, 1), OK);
	fake_nic_free(&nic);
}

/* --- configuration --- */

static void t_config_space(void)
{
	struct fake_nic nic;
	u8 before[64];

	fake_nic_open(&nic, NIC_USER, NULL);
	CHECK_EQ(nic.drv.config_len, sizeof(struct net_config));
	CHECK_EQ(fake_config_read(&nic.drv, offsetof(struct net_config, status), 2), 1);
	CHECK_EQ(fake_config_read(&nic.drv, offsetof(struct net_config, max_virtqueue_pairs), 2),
		 1);
	CHECK_EQ(fake_config_read(&nic.drv, offsetof(struct net_config, mtu), 2), 1500);
	for (unsigned i = 0; i < sizeof(before); i++)
		before[i] = (u8)fake_config_read(&nic.drv, i, 1);
	for (unsigned i = 0; i < sizeof(before); i++) {
		fake_config_write(&nic.drv, i, 1, 0xff);
		fake_config_write(&nic.drv, i, 4, 0xffffffff);
	}
	for (unsigned i = 0; i < sizeof(before); i++) {
		CHECK_EQ(fake_config_read(&nic.drv, i, 1), before[i]);
		if (i >= sizeof(struct net_config))
			CHECK_EQ(before[i], 0);
	}
	fake_nic_free(&nic);
}

/* A NIC on a netif that can do @features and has @mtu. */
static u64 offered_with(u64 features, u16 mtu)
{
	struct net_params params = { .queue_size = 256, .mac = { 2 } };
	struct fake_netif *fn = fake_netif_new(1);
	struct virtio_device *dev;
	struct fake_machine fm;
	u64 offered;
	int err;

	fake_machine_init(&fm, NULL);
	fn->nif.features = features;
	fn->nif.mtu = mtu;
	dev = net_new(&fm.m, &params, &fn->nif, &err);
	REQUIRE(dev);
	offered = dev->offered[0];
	CHECK_EQ(dev->offered[1], 0);
	virtio_free(dev);
	fake_machine_free(&fm);
	return offered;
}

static void t_features(void)
{
	const u64 own = BIT(NET_B_MAC) | BIT(NET_B_STATUS) | BIT(NET_B_CTRL_VQ) |
			BIT(NET_B_CTRL_RX) | BIT(NET_B_CTRL_VLAN) | BIT(NET_B_CTRL_MAC_ADDR) |
			BIT(NET_B_GUEST_ANNOUNCE) | BIT(NET_B_MRG_RXBUF) |
			BIT(VIRTIO_B_INDIRECT_DESC) | BIT(VIRTIO_B_EVENT_IDX) |
			BIT(VIRTIO_B_VERSION_1) | BIT(VIRTIO_B_RING_RESET);
	const u64 some = BIT(NET_B_CSUM) | BIT(NET_B_HOST_TSO4);
	const u64 guest = BIT(NET_B_GUEST_CSUM);

	CHECK_EQ(offered_with(0, 0), own);
	CHECK_EQ(offered_with(some, 0), own | some);
	CHECK_EQ(offered_with(guest, 0), own | guest | BIT(NET_B_CTRL_GUEST_OFFLOADS));
	CHECK_EQ(offered_with(some, 67), own | some);
	CHECK_EQ(offered_with(some, 9000), own | some | BIT(NET_B_MTU));
	CHECK_EQ(offered_with(BIT(4) | BIT(41), 0), own); /* not a netif's to say */
}

/* --- the data path --- */

/* Without receive buffers the netif is left alone, however much waits there. */
static void t_no_buffers_no_work(void)
{
	struct fake_nic nic;
	u64 wakeups;

	fake_nic_open(&nic, NIC_USER, NULL);
	fake_machine_run(&nic.fm);
	fake_nic_frame(frame, 100, 1);
	while (fake_netif_inject(nic.fn, frame, 100))
		;
	fake_machine_run(&nic.fm);
	wakeups = loop_wakeups(&nic.fm.loop);
	fake_nic_settle(&nic);
	CHECK_EQ(loop_wakeups(&nic.fm.loop), wakeups);
	CHECK_EQ(nic.fn->nr_recvs, 0);
	for (unsigned i = 0; i < 50; i++) {
		fake_nic_post(&nic, 1, 1526);
		fake_machine_run(&nic.fm);
		CHECK_EQ(fake_nic_recv(&nic, got, sizeof(got), NULL), 100);
	}
	CHECK_EQ(nic.fn->nr_recvs, 50);
	fake_nic_free(&nic);
}

/* One read for each frame and one that finds none; one write for each; one signal for a burst. */
static void t_calls(void)
{
	struct fake_nic nic;
	unsigned before;
	u64 signals;

	fake_nic_open(&nic, NIC_USER, NULL);
	fake_nic_post(&nic, 200, 1526);
	check_rx(&nic, 100, 0);
	before = nic.fn->nr_recvs;
	signals = nic.dev->vq[0].nr_signals;
	fake_nic_frame(frame, 100, 1);
	for (unsigned i = 0; i < 30; i++)
		REQUIRE(fake_netif_inject(nic.fn, frame, 100));
	fake_machine_run(&nic.fm);
	CHECK_EQ(nic.fn->nr_recvs - before, 31);
	CHECK(nic.dev->vq[0].nr_signals - signals <= 1);

	for (unsigned i = 0; i < 50; i++)
		REQUIRE(fake_nic_send(&nic, frame, 100));
	CHECK_EQ(nic.drv.vq[1].nr_rings, 1);
	fake_machine_run(&nic.fm);
	CHECK_EQ(nic.fn->nr_sends, 50);
	CHECK(nic.dev->vq[1].nr_signals <= 1);
	CHECK_EQ(stats(&nic)->tx_frames, 50);
	CHECK_EQ(stats(&nic)->tx_bytes, 5000);
	CHECK_EQ(stats(&nic)->rx_frames, 31);
	CHECK_EQ(stats(&nic)->rx_bytes, 3100);
	fake_nic_free(&nic);
}

static void t_send_errors(void)
{
	static const int errors[] = { EIO, EINVAL, ENOBUFS, ENOMEM, ENETDOWN, EMSGSIZE, EFAULT };
	struct fake_nic nic;

	log_set_sink(count_log);
	fake_nic_open(&nic, NIC_USER, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
		nic.fn->fail_send = -errors[i];
		fake_nic_frame(frame, 100, 0);
		REQUIRE(fake_nic_send(&nic, frame, 100));
		fake_machine_run(&nic.fm);
		CHECK_EQ(fake_nic_reap(&nic), 1);
		CHECK_EQ(stats(&nic)->tx_dropped, i + 1);
		check_tx(&nic, 100, i);
	}
	CHECK_EQ(nr_said, 0);
	fake_nic_free(&nic);
}

/*
 * The interface goes away: said once, no spinning, frames are dropped, the device runs on and
 * restarts.
 */
static void unplug(bool by_send)
{
	struct fake_nic nic;
	u64 wakeups;

	log_set_sink(count_log);
	fake_nic_open(&nic, NIC_USER, NULL);
	fake_nic_post(&nic, 4, 1526);
	fake_nic_frame(frame, 100, 0);
	if (by_send) {
		nic.fn->fail_send = -EBADFD;
		REQUIRE(fake_nic_send(&nic, frame, 100));
	} else {
		fake_netif_unplug(nic.fn);
	}
	fake_machine_run(&nic.fm);
	wakeups = loop_wakeups(&nic.fm.loop);
	fake_nic_settle(&nic);
	CHECK_EQ(loop_wakeups(&nic.fm.loop), wakeups);
	for (unsigned i = 0; i < 3; i++) {
		unsigned sends = nic.fn->nr_sends;

		for (unsigned n = 0; n < 10; n++)
			REQUIRE(fake_nic_send(&nic, frame, 100));
		fake_nic_post(&nic, 4, 1526);
		fake_vq_ring(&nic.drv.vq[0]);
		fake_machine_run(&nic.fm);
		CHECK(fake_nic_reap(&nic) >= 10);
		CHECK_EQ(nic.fn->nr_sends, sends);
		CHECK_EQ(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET, 0);
		REQUIRE(fake_nic_restart(&nic));
	}
	CHECK_EQ(nr_said, 1);
	fake_nic_free(&nic);
}

static void t_unplug(void)
{
	unplug(false);
}

static void t_unplug_seen_by_send(void)
{
	unplug(true);
}

/* The interface goes away while the wire is full. */
static void t_unplug_while_blocked(void)
{
	struct fake_nic nic;

	log_set_sink(count_log);
	fake_nic_open(&nic, NIC_USER, NULL);
	fake_nic_frame(frame, 20000, 0);
	for (unsigned i = 0; i < 100; i++)
		REQUIRE(fake_nic_send(&nic, frame, 20000));
	fake_machine_run(&nic.fm);
	CHECK(fake_nic_reap(&nic) < 100);
	fake_netif_unplug(nic.fn);
	fake_machine_run(&nic.fm);
	fake_nic_reap(&nic);
	CHECK_EQ(nic.nr_reaped, 100);
	CHECK_EQ(nr_said, 1);
	fake_nic_free(&nic);
}

/* A frame for which the whole ring is too small is dropped, and does not stop those behind it. */
static void t_frame_larger_than_ring(void)
{
	struct fake_nic nic;

	fake_nic_open(&nic, NIC_USER, &(struct fake_driver_opts){ .size = 4 });
	fake_nic_post(&nic, 4, 1526);
	fake_nic_frame(frame, 7000, 1);
	REQUIRE(fake_netif_inject(nic.fn, frame, 7000));
	check_rx(&nic, 4000, 2);
	CHECK_EQ(stats(&nic)->rx_dropped, 1);
	fake_nic_free(&nic);
}

/* A frame that needs more buffers than one read can have is dropped, though the ring has more. */
static void t_pool_full(void)
{
	struct fake_nic nic;

	fake_nic_open(&nic, NIC_USER, NULL);
	nic.fm.m.mem.span_limit =
		8; /* 191 pieces in each buffer: five of them are all that one read takes */
	fake_nic_post(&nic, 100, 1526);
	check_rx(&nic, 7000, 1);
	fake_nic_frame(frame, 9000, 2);
	REQUIRE(fake_netif_inject(nic.fn, frame, 9000));
	check_rx(&nic, 1000, 3);
	CHECK_EQ(stats(&nic)->rx_dropped, 1);
	for (u32 i = 0; i < 30; i++)
		check_rx(&nic, 1600, i);
	fake_nic_free(&nic);
}

/*
 * After many small frames in a row the buffers for a large one are not ready; it comes all the
 * same.
 */
static void t_large_after_small(void)
{
	struct fake_nic nic;

	fake_nic_open(&nic, NIC_USER, NULL);
	for (u32 round = 0; round < 3; round++) {
		nic.nr_bufs = 0;
		fake_nic_post(&nic, 250, 1526);
		for (u32 i = 0; i < 100; i++)
			check_rx(&nic, 60 + i, i);
		check_rx(&nic, LARGE, round);
		check_rx(&nic, LARGE, round + 1);
		check_rx(&nic, LARGE, round + 2);
		REQUIRE(fake_nic_restart(&nic));
	}
	CHECK_EQ(stats(&nic)->rx_dropped, 0);
	fake_nic_free(&nic);
}

static void t_tiny_buffers(void)
{
	struct fake_nic nic;

	fake_nic_open(&nic, NIC_USER, NULL);
	fake_nic_post(&nic, 256, 16);
	check_rx(&nic, 1000, 1);
	fake_nic_frame(frame, 4000, 2); /* waits for more than the 192 buffers that are left */
	REQUIRE(fake_netif_inject(nic.fn, frame, 4000));
	fake_machine_run(&nic.fm);
	CHECK_EQ(fake_nic_recv(&nic, got, sizeof(got), NULL), -1);
	fake_nic_post(&nic, 63, 16);
	fake_machine_run(&nic.fm);
	CHECK_EQ(fake_nic_recv(&nic, got, sizeof(got), NULL), 4000);
	CHECK(fake_nic_is_frame(got, 4000, 2));
	CHECK_EQ(stats(&nic)->rx_dropped, 0);
	fake_nic_free(&nic);
}

/* Each descriptor in pieces of 64 bytes: 1526-byte buffers have 24 each. */
static void t_memory_in_pieces(void)
{
	struct fake_nic nic;

	fake_nic_open(&nic, NIC_USER, NULL);
	nic.fm.m.mem.span_limit = 64;
	for (u32 i = 0; i < 10; i++) {
		nic.nr_bufs = 0;
		fake_nic_post(&nic, 50, 1526);
		for (u32 n = 0; n < 10; n++)
			check_rx(&nic, 5000 + n * 100, n);
		check_tx(&nic, 65000 - 1000 * i, i);
	}
	fake_nic_free(&nic);
}

static void t_chain_as_long_as_the_ring(void)
{
	struct fake_nic nic;
	struct fake_seg seg[256];
	u64 gpa;

	fake_nic_open(&nic, NIC_USER, &(struct fake_driver_opts){ .no_indirect = true });
	gpa = fake_alloc_high(&nic.drv, 256 * 100, 1);
	for (unsigned i = 0; i < 256; i++)
		seg[i] = (struct fake_seg){ gpa + 100 * i, 100, false };
	REQUIRE(fake_vq_add(&nic.drv.vq[1], seg, 256, &nic) >= 0);
	fake_vq_kick(&nic.drv.vq[1]);
	fake_machine_run(&nic.fm);
	CHECK_EQ(fake_netif_take(nic.fn, NULL, got, sizeof(got)), 25600 - NET_HDR_LEN);
	for (unsigned i = 0; i < 256; i++)
		seg[i].write = true;
	REQUIRE(fake_vq_add(&nic.drv.vq[0], seg, 256, &nic) >= 0);
	fake_vq_kick(&nic.drv.vq[0]);
	fake_nic_frame(frame, 25000, 1);
	REQUIRE(fake_netif_inject(nic.fn, frame, 25000));
	fake_machine_run(&nic.fm);
	CHECK(fake_vq_get(&nic.drv.vq[0], NULL) == &nic);
	CHECK(fake_nic_is_frame(fake_ptr(&nic.drv, gpa + NET_HDR_LEN, 25000), 25000, 1));
	fake_nic_free(&nic);
}

/* A buffer that begins in one memory region and ends in the next. */
static void t_across_regions(void)
{
	struct fake_nic nic;
	u64 gpa = FAKE_RAM_MID - 700;
	u8 *low, *mid;

	fake_nic_open(&nic, NIC_USER, NULL);
	low = fake_ptr(&nic.drv, gpa, 700);
	mid = fake_ptr(&nic.drv, FAKE_RAM_MID, 800);
	CHECK(fake_vq_add(&nic.drv.vq[0], (struct fake_seg[]){ { gpa, 1500, true } }, 1, &nic) >=
	      0);
	fake_vq_kick(&nic.drv.vq[0]);
	fake_nic_frame(frame, 1400, 5);
	REQUIRE(fake_netif_inject(nic.fn, frame, 1400));
	fake_machine_run(&nic.fm);
	CHECK(memcmp(low + NET_HDR_LEN, frame, 700 - NET_HDR_LEN) == 0);
	CHECK(memcmp(mid, frame + 700 - NET_HDR_LEN, 1400 - 700 + NET_HDR_LEN) == 0);
	CHECK(fake_vq_add(&nic.drv.vq[1], (struct fake_seg[]){ { gpa, 1412, false } }, 1, &nic) >=
	      0);
	fake_vq_kick(&nic.drv.vq[1]);
	fake_machine_run(&nic.fm);
	CHECK_EQ(fake_netif_take(nic.fn, NULL, got, sizeof(got)), 1400);
	CHECK(fake_nic_is_frame(got, 1400, 5));
	fake_nic_free(&nic);
}

/*
 * Chains that were read ahead go back to the ring when the device stops: a next backend finds them.
 */
static void t_stop_gives_back(void)
{
	struct fake_nic nic;

	fake_nic_open(&nic, NIC_USER, NULL);
	fake_nic_post(&nic, 100, 1526);
	for (u32 i = 0; i < 7; i++)
		check_rx(&nic, 100, i);
	fake_nic_frame(frame, 20000, 0);
	for (u32 i = 0; i < 60; i++)
		REQUIRE(fake_nic_send(&nic, frame, 20000));
	fake_machine_run(&nic.fm);
	CHECK(nic.dev->vq[0].next_avail > 7);
	pthread_mutex_lock(&nic.dev->lock);
	virtio_stop(nic.dev);
	pthread_mutex_unlock(&nic.dev->lock);
	CHECK_EQ(nic.dev->vq[0].next_avail, 7);
	CHECK_EQ(nic.dev->vq[0].next_used, 7);
	CHECK_EQ(nic.dev->vq[1].next_avail, nic.dev->vq[1].next_used);
	CHECK(nic.dev->vq[1].next_used < 60);
	fake_nic_free(&nic);
}

/* Short packets from the netif cannot be frames. */
static void t_short_from_netif(void)
{
	struct fake_nic nic;

	fake_nic_open(&nic, NIC_USER, NULL);
	fake_nic_post(&nic, 4, 1526);
	for (u32 len = 0; len < 14; len++)
		REQUIRE(fake_netif_inject(nic.fn, frame, len));
	CHECK_EQ(write(nic.fn->peer[0], frame, 5), 5);
	fake_machine_run(&nic.fm);
	CHECK_EQ(stats(&nic)->rx_dropped, 15);
	check_rx(&nic, 14, 1);
	fake_nic_free(&nic);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_ctrl_commands), T(t_ctrl_mac_addr), T(t_ctrl_not_negotiated),
		       T(t_ctrl_without_answer), T(t_ctrl_burst), T(t_config_space), T(t_features),
		       T(t_no_buffers_no_work), T(t_calls), T(t_send_errors), T(t_unplug),
		       T(t_unplug_seen_by_send), T(t_unplug_while_blocked),
		       T(t_frame_larger_than_ring), T(t_pool_full), T(t_large_after_small),
		       T(t_tiny_buffers), T(t_memory_in_pieces), T(t_chain_as_long_as_the_ring),
		       T(t_across_regions), T(t_stop_gives_back), T(t_short_from_netif));
}
