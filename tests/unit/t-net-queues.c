// SPDX-License-Identifier: GPL-2.0-only
/*
 * A NIC of several queue pairs, and what changes while it runs, over each data path (see
 * nic-scenarios.h).
 */
#include "nic-scenarios.h"

enum { OK, ERR };

#define PAIRS             4
#define PAIRS_SET(nic, n) NIC_CTRL(nic, 9, 4, 0, (u8)(n), (u8)((n) >> 8))

static const u64 no_mq = ~(BIT(NET_B_MQ) | BIT(VIRTIO_B_EVENT_IDX) | BIT(VIRTIO_B_INDIRECT_DESC));

/* Frames both ways in each of the first @n pairs. */
static void check_pairs(struct fake_nic *nic, unsigned n, u32 seed)
{
	for (unsigned i = 0; i < n; i++) {
		fake_nic_use(nic, i);
		fake_nic_post(nic, 4, 1526);
		check_tx(nic, 100 + i, seed + i);
		check_rx(nic, 200 + i, seed + i, 1);
	}
	fake_nic_use(nic, 0);
}

static void s_all_pairs(enum nic_kind kind)
{
	struct fake_nic nic;

	fake_nic_open_pairs(&nic, kind, NULL, PAIRS);
	CHECK(nic.drv.features[0] & BIT(NET_B_MQ));
	CHECK_EQ(nic.drv.nr_vqs, 2 * PAIRS + 1);
	CHECK_EQ(fake_config_read(&nic.drv, offsetof(struct net_config, max_virtqueue_pairs), 2),
		 PAIRS);
	for (u32 round = 0; round < 50; round++)
		check_pairs(&nic, PAIRS, round);
	fake_nic_free(&nic);
}

/* As many as there can be, all at the same time. */
static void s_16_pairs(enum nic_kind kind)
{
	struct fake_nic nic;
	long n = -1;

	fake_nic_open_pairs(&nic, kind, &(struct fake_driver_opts){ .size = 64 }, 16);
	CHECK_EQ(PAIRS_SET(&nic, 16), OK);
	for (unsigned i = 0; i < 16; i++) {
		fake_nic_use(&nic, i);
		fake_nic_post(&nic, 32, 1526);
		fake_nic_frame(frame, 100, i);
		for (unsigned f = 0; f < 20; f++)
			REQUIRE(fake_nic_send(&nic, frame, 100) &&
				fake_netif_inject(nic.fn, frame, 100));
	}
	for (unsigned i = 0; i < 16; i++) {
		fake_nic_use(&nic, i);
		for (unsigned f = 0; f < 20; f++) {
			REQUIRE(NIC_WAIT(
				&nic, (n = fake_netif_take(nic.fn, NULL, got, sizeof(got))) >= 0));
			CHECK(n == 100 && fake_nic_is_frame(got, 100, i));
			REQUIRE(NIC_WAIT(&nic,
					 (n = fake_nic_recv(&nic, got, sizeof(got), NULL)) >= 0));
			CHECK(n == 100 && fake_nic_is_frame(got, 100, i));
		}
		fake_nic_reap(&nic);
	}
	fake_nic_free(&nic);
}

/* One at first, as many as the driver says then, one again after a reset. */
static void s_pairs_set(enum nic_kind kind)
{
	struct fake_nic nic;

	log_set_sink(quiet);
	fake_nic_open_pairs(&nic, kind, NULL, PAIRS);
	CHECK_EQ(nic.fn->nr_active, 1);
	for (unsigned n = 1; n <= PAIRS; n++) {
		CHECK_EQ(PAIRS_SET(&nic, n), OK);
		CHECK_EQ(nic.fn->nr_active, n);
		check_pairs(&nic, n, n);
	}
	CHECK_EQ(PAIRS_SET(&nic, 2), OK);
	CHECK_EQ(PAIRS_SET(&nic, 0), ERR);
	CHECK_EQ(PAIRS_SET(&nic, PAIRS + 1), ERR);
	CHECK_EQ(PAIRS_SET(&nic, 0x8000), ERR);
	CHECK_EQ(PAIRS_SET(&nic, 0x0100), ERR);
	CHECK_EQ(NIC_CTRL(&nic, 9, 4, 1, 1, 0), ERR);
	CHECK_EQ(NIC_CTRL(&nic, 9, 4, 0, 1), ERR);
	CHECK_EQ(NIC_CTRL(&nic, 9, 4, 0, 1, 0, 0), ERR);
	nic.fn->fail_queues = -EINVAL;
	CHECK_EQ(PAIRS_SET(&nic, 3), ERR);
	nic.fn->fail_queues = 0;
	CHECK_EQ(nic.fn->nr_active, 2);
	check_pairs(&nic, 2, 10);
	CHECK(fake_driver_reset(&nic.drv));
	CHECK_EQ(nic.fn->nr_active, 1);
	REQUIRE(fake_nic_restart(&nic));
	CHECK_EQ(nic.fn->nr_active, 1);
	CHECK_EQ(PAIRS_SET(&nic, PAIRS), OK);
	check_pairs(&nic, PAIRS, 20);
	fake_nic_free(&nic);
}

/* Pairs without rings cannot be used. */
static void s_pairs_not_ready(enum nic_kind kind)
{
	struct fake_nic nic;

	fake_nic_open_pairs(&nic, kind, NULL, PAIRS);
	REQUIRE(fake_driver_negotiate(&nic.drv));
	fake_driver_setup_irqs(&nic.drv);
	for (unsigned i = 0; i < 5; i++) /* two pairs, half of the third */
		fake_driver_setup_vq(&nic.drv, i);
	fake_driver_setup_vq(&nic.drv, 2 * PAIRS);
	REQUIRE(fake_driver_start(&nic.drv));
	nic.nr_bufs = 0;
	CHECK_EQ(PAIRS_SET(&nic, 2), OK);
	CHECK_EQ(PAIRS_SET(&nic, 3), ERR);
	CHECK_EQ(nic.fn->nr_active, 2);
	check_pairs(&nic, 2, 1);
	fake_nic_free(&nic);
}

/* A driver that does not take MQ has the control queue third, virtio 1.3 5.1.2; the next may. */
static void s_without_mq(enum nic_kind kind)
{
	struct fake_nic nic;

	fake_nic_open_pairs(&nic, kind, &(struct fake_driver_opts){ .features = { no_mq } }, PAIRS);
	for (u32 round = 0; round < 3; round++) {
		nic.drv.opts.features[0] = no_mq;
		REQUIRE(fake_nic_restart(&nic));
		CHECK(!(nic.drv.features[0] & BIT(NET_B_MQ)));
		CHECK_EQ(NIC_CTRL(&nic, 9, 0, 0, 1), OK);
		CHECK_EQ(PAIRS_SET(&nic, 1), ERR);
		check_pairs(&nic, 1, round);
		for (unsigned i = 1; i < PAIRS; i++)
			CHECK(!nic.fvs[i] || !nic.fvs[i]->ring[0].enabled);

		nic.drv.opts.features[0] = 0;
		REQUIRE(fake_nic_restart(&nic));
		CHECK_EQ(PAIRS_SET(&nic, PAIRS), OK);
		check_pairs(&nic, PAIRS, round);
	}
	fake_nic_free(&nic);
}

/* Whatever it does with the queues that it should know nothing of. */
static void s_without_mq_hostile(enum nic_kind kind)
{
	struct fake_nic nic;

	fake_nic_open_pairs(&nic, kind, &(struct fake_driver_opts){ .features = { no_mq } }, PAIRS);
	for (unsigned i = 3; i < 2 * PAIRS + 1; i++) {
		fake_vq_add_head(&nic.drv.vq[i], 0xffff);
		fake_vq_publish(&nic.drv.vq[i]);
		fake_vq_ring(&nic.drv.vq[i]);
	}
	fake_nic_settle(&nic);
	CHECK_EQ(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET, 0);
	check_pairs(&nic, 1, 1);
	CHECK_EQ(NIC_CTRL(&nic, 9, 0, 0, 1), OK);
	fake_nic_free(&nic);
}

/* What is malformed in one pair stops the device with all its pairs; a reset mends them all. */
static void s_pair_malformed(enum nic_kind kind)
{
	struct fake_nic nic;

	log_set_sink(quiet);
	fake_nic_open_pairs(&nic, kind, NULL, PAIRS);
	for (unsigned i = 0; i < PAIRS; i++) {
		struct fake_vq *tx = &nic.drv.vq[2 * i + 1];

		check_pairs(&nic, PAIRS, i);
		fake_vq_add_head(tx, tx->size);
		fake_vq_publish(tx);
		fake_vq_ring(tx);
		REQUIRE(NIC_WAIT(&nic, fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET));
		for (unsigned f = 0; f < PAIRS; f++)
			CHECK(!nic.fvs[f] || !nic.fvs[f]->ring[0].enabled);
		REQUIRE(fake_nic_restart(&nic));
	}
	check_pairs(&nic, PAIRS, 9);
	fake_nic_free(&nic);
}

static void s_pairs_rebind(enum nic_kind kind)
{
	struct fake_nic nic;
	int fds;

	fake_nic_open_pairs(&nic, kind, NULL, PAIRS);
	fds = tap_open_fds();
	for (u32 round = 0; round < 50; round++) {
		CHECK_EQ(PAIRS_SET(&nic, 1 + round % PAIRS), OK);
		check_pairs(&nic, PAIRS, round);
		REQUIRE(fake_nic_restart(&nic));
	}
	CHECK(tap_open_fds() <= fds);
	fake_nic_free(&nic);
}

/* --- what changes while it runs --- */

static u64 status_of(struct fake_nic *nic)
{
	return fake_config_read(&nic->drv, offsetof(struct net_config, status), 2);
}

/* Each change: another generation, one interrupt. */
static void change_link(struct fake_nic *nic, bool up, u64 want)
{
	u64 gen = fake_common_read(&nic->drv, VP_GEN, 1);
	u64 irqs = fake_driver_config_irqs(&nic->drv);

	CHECK_EQ(net_set_link(nic->dev, up), 0);
	CHECK_EQ(net_set_link(nic->dev, up), 0); /* nothing new */
	fake_machine_run(&nic->fm);
	CHECK_EQ(status_of(nic), want);
	CHECK_EQ(nic->fn->link_down, !up);
	CHECK_EQ((u8)(fake_common_read(&nic->drv, VP_GEN, 1) - gen), 1);
	CHECK_EQ(fake_driver_config_irqs(&nic->drv), irqs + 1);
}

static void s_link(enum nic_kind kind)
{
	struct fake_nic nic;

	log_set_sink(quiet);
	fake_nic_open(&nic, kind, NULL);
	CHECK_EQ(status_of(&nic), NET_S_LINK_UP);
	for (unsigned round = 0; round < 3; round++) {
		change_link(&nic, false, 0);
		CHECK_EQ(NIC_CTRL(&nic, 9, 3, 0), OK);
		CHECK_EQ(status_of(&nic), 0);
		change_link(&nic, true, NET_S_LINK_UP | NET_S_ANNOUNCE);
		CHECK_EQ(NIC_CTRL(&nic, 9, 3, 0), OK);
		CHECK_EQ(status_of(&nic), NET_S_LINK_UP);
	}
	check_pairs(&nic, 1, 1);
	/* down again before it was announced; and over a reset */
	change_link(&nic, false, 0);
	change_link(&nic, true, NET_S_LINK_UP | NET_S_ANNOUNCE);
	change_link(&nic, false, 0);
	REQUIRE(fake_nic_restart(&nic));
	CHECK_EQ(status_of(&nic), 0);
	change_link(&nic, true, NET_S_LINK_UP | NET_S_ANNOUNCE);
	REQUIRE(fake_nic_restart(&nic));
	CHECK_EQ(status_of(&nic), NET_S_LINK_UP);
	nic.fn->fail_link = -EPERM;
	CHECK_EQ(net_set_link(nic.dev, false), -EPERM);
	CHECK_EQ(status_of(&nic), NET_S_LINK_UP);
	fake_nic_free(&nic);
}

/* Who did not take GUEST_ANNOUNCE is not asked; who has no driver yet is sent no interrupt. */
static void s_link_no_announce(enum nic_kind kind)
{
	struct fake_driver_opts opts = { .features = { BIT(NET_B_STATUS) | BIT(NET_B_CTRL_VQ) } };
	struct fake_nic nic;
	u64 irqs;

	fake_nic_open(&nic, kind, &opts);
	change_link(&nic, false, 0);
	change_link(&nic, true, NET_S_LINK_UP);
	CHECK(fake_driver_reset(&nic.drv));
	irqs = fake_driver_config_irqs(&nic.drv);
	CHECK_EQ(net_set_link(nic.dev, false), 0);
	CHECK_EQ(net_set_link(nic.dev, true), 0);
	CHECK_EQ(fake_driver_config_irqs(&nic.drv), irqs);
	CHECK_EQ(status_of(&nic), NET_S_LINK_UP);
	fake_nic_free(&nic);
}

static int set_offloads(struct fake_nic *nic, u64 offloads)
{
	u8 cmd[10] = { 5, 0 };

	memcpy(cmd + 2, &offloads, sizeof(offloads));
	return fake_nic_ctrl(nic, cmd, sizeof(cmd), 3);
}

/* Some of what it acknowledged, and never more; all again at the next start. */
static void s_guest_offloads(enum nic_kind kind)
{
	const u64 csum = BIT(NET_B_GUEST_CSUM), tso4 = BIT(NET_B_GUEST_TSO4);
	const u64 tso6 = BIT(NET_B_GUEST_TSO6), host = BIT(NET_B_CSUM) | BIT(NET_B_HOST_TSO4);
	struct fake_driver_opts opts = { .features = { csum | tso4 | host | BIT(NET_B_CTRL_VQ) |
						       BIT(NET_B_CTRL_GUEST_OFFLOADS) } };
	struct fake_nic nic;

	log_set_sink(quiet);
	fake_nic_open(&nic, kind, &opts);
	CHECK_EQ(nic.fn->offload, csum | tso4 | host);
	CHECK_EQ(set_offloads(&nic, csum), OK);
	CHECK_EQ(nic.fn->offload, csum | host);
	CHECK_EQ(set_offloads(&nic, 0), OK);
	CHECK_EQ(nic.fn->offload, host);
	CHECK_EQ(set_offloads(&nic, csum | tso4), OK);
	CHECK_EQ(set_offloads(&nic, csum | tso6), ERR);
	CHECK_EQ(set_offloads(&nic, csum | BIT(NET_B_HOST_TSO4)), ERR);
	CHECK_EQ(set_offloads(&nic, ~0ULL), ERR);
	CHECK_EQ(nic.fn->offload, csum | tso4 | host);
	nic.fn->fail_offload = -EINVAL;
	CHECK_EQ(set_offloads(&nic, 0), ERR);
	nic.fn->fail_offload = 0;
	CHECK_EQ(set_offloads(&nic, 0), OK);
	check_pairs(&nic, 1, 1);
	REQUIRE(fake_nic_restart(&nic));
	CHECK_EQ(nic.fn->offload, csum | tso4 | host);
	fake_nic_free(&nic);
}

/* --- from one data path to the other --- */

static bool vhost_now(const struct fake_nic *nic)
{
	return strcmp(nic->dev->vq[0].be->ops->name, "vhost") == 0;
}

static void toggle(struct fake_nic *nic)
{
	bool to = !vhost_now(nic);

	CHECK_EQ(net_set_vhost(nic->dev, to), 0);
	CHECK_EQ(net_set_vhost(nic->dev, to), 0); /* nothing to do */
	CHECK_EQ(vhost_now(nic), to);
	CHECK_EQ(!net_device_stats(nic->dev, 0), to);
	for (unsigned i = 0; i < nic->nr_pairs; i++)
		CHECK_EQ(nic->fvs[i] && nic->fvs[i]->ring[0].enabled,
			 to && fake_driver_status(&nic->drv) & VIRTIO_S_DRIVER_OK);
}

static void s_switch(enum nic_kind kind)
{
	struct fake_nic nic;
	int fds = 0;

	fake_nic_open_pairs(&nic, kind, NULL, PAIRS);
	CHECK_EQ(PAIRS_SET(&nic, 3), OK);
	for (u32 round = 0; round < 20; round++) {
		if (round == 2)
			fds = tap_open_fds(); /* both are there now */
		check_pairs(&nic, PAIRS, round);
		toggle(&nic);
		CHECK_EQ(nic.fn->nr_active, 3);
	}
	CHECK(tap_open_fds() <= fds);
	CHECK(fake_driver_reset(&nic.drv));
	toggle(&nic);
	REQUIRE(fake_nic_restart(&nic));
	check_pairs(&nic, PAIRS, 100);
	fake_nic_free(&nic);
}

/* With what little a driver can take, and the position far around the ring. */
static void s_switch_bare(enum nic_kind kind)
{
	struct fake_driver_opts opts = {
		.no_event_idx = true, .no_indirect = true, .size = 8, .features = { BIT(NET_B_MAC) }
	};
	struct fake_nic nic;

	fake_nic_open(&nic, kind, &opts);
	for (u32 round = 0; round < 100; round++) {
		fake_nic_post(&nic, 1, 1526);
		check_tx(&nic, 100, round);
		check_rx(&nic, 200, round, 1);
		toggle(&nic);
	}
	fake_nic_free(&nic);
}

/* Takes what came, at either end; it must be the next one each time. */
static void take_next(struct fake_nic *nic, u32 *in, u32 *out)
{
	long n = fake_netif_take(nic->fn, NULL, got, sizeof(got));

	fake_nic_reap(nic);
	if (n >= 0) {
		CHECK(n == 300 && fake_nic_is_frame(got, 300, *out));
		++*out;
	}
	n = fake_nic_recv(nic, got, sizeof(got), NULL);
	if (n >= 0) {
		CHECK(n == 300 && fake_nic_is_frame(got, 300, *in));
		++*in;
	}
}

/* Frames under way in both directions: none is lost, comes twice, or overtakes another. */
static void s_switch_under_traffic(enum nic_kind kind)
{
	u32 injected = 0, sent = 0, in = 0, out = 0, posted = 0;
	struct fake_nic nic;

	fake_nic_open(&nic, kind, NULL);
	while (in < 2000 || out < 2000) {
		u32 before = in + out;

		for (unsigned i = 0; i < 40 && posted < 2000 && posted - in < 200; i++, posted++) {
			if (posted % 500 == 0)
				nic.nr_bufs = 0; /* at most 200 are out: use their memory again */
			fake_nic_post(&nic, 1, 400);
		}
		for (unsigned i = 0; i < 30; i++) {
			fake_nic_frame(frame, 300, injected);
			injected += injected < 2000 && fake_netif_inject(nic.fn, frame, 300);
			fake_nic_frame(frame, 300, sent);
			sent += sent < 2000 && fake_nic_send(&nic, frame, 300);
			if (i % 7 == 0)
				fake_machine_run(&nic.fm);
		}
		toggle(&nic);
		REQUIRE(NIC_WAIT(&nic, (take_next(&nic, &in, &out), in + out > before)));
		for (unsigned i = 0; i < 50; i++)
			take_next(&nic, &in, &out);
	}
	CHECK_EQ(in, 2000);
	CHECK_EQ(out, 2000);
	CHECK_EQ(nic.drv.vq[0].errors + nic.drv.vq[1].errors, 0);
	fake_nic_free(&nic);
}

/* A driver that uses what the other cannot do keeps what it has; an unbound one gets less. */
static void s_switch_lacks(enum nic_kind kind)
{
	const u64 mrg = BIT(NET_B_MRG_RXBUF);
	struct fake_nic nic;

	log_set_sink(quiet);
	fake_nic_open_pairs(&nic, NIC_USER, NULL, 2);
	nic.kind = kind == NIC_USER ? NIC_VHOST : kind;
	nic.vhost_features = FAKE_VHOST_FEATURES & ~mrg;
	CHECK_EQ(net_set_vhost(nic.dev, true), -EOPNOTSUPP);
	CHECK(!vhost_now(&nic));
	check_pairs(&nic, 2, 1);
	CHECK(fake_driver_reset(&nic.drv));
	CHECK_EQ(net_set_vhost(nic.dev, true), 0);
	REQUIRE(fake_nic_restart(&nic));
	CHECK(!(nic.drv.features[0] & mrg));
	check_pairs(&nic, 2, 2);
	toggle(&nic);
	check_pairs(&nic, 2, 3);
	REQUIRE(fake_nic_restart(&nic));
	CHECK(nic.drv.features[0] & mrg);
	CHECK_EQ(net_set_vhost(nic.dev, true), -EOPNOTSUPP);
	fake_nic_free(&nic);
}

/* Each verb of the second pair's vhost fails in turn: all goes on as it was. */
static void s_switch_fails(enum nic_kind kind)
{
	struct fake_nic nic;
	unsigned n;
	int r = -1;

	log_set_sink(quiet);
	fake_nic_open_pairs(&nic, kind, NULL, 2);
	if (!vhost_now(&nic))
		toggle(&nic);
	toggle(&nic);
	for (n = 1; n < 50 && r; n++) {
		nic.fvs[1]->fail_at = nic.fvs[1]->calls + n;
		r = net_set_vhost(nic.dev, true);
		nic.fvs[1]->fail_at = 0;
		CHECK(r == 0 || r == -EIO);
		CHECK_EQ(vhost_now(&nic), !r);
		CHECK_EQ(nic.fvs[0]->ring[0].enabled, !r);
		check_pairs(&nic, 2, n);
	}
	CHECK_EQ(n, 2 + 6 + 6 + 2 + 2);
	fake_nic_free(&nic);
}

/* The control socket asks for it while the driver is just being bound, or has given up. */
static void s_switch_any_time(enum nic_kind kind)
{
	struct fake_nic nic;

	log_set_sink(quiet);
	fake_nic_open_pairs(&nic, kind, NULL, PAIRS);
	REQUIRE(fake_driver_negotiate(&nic.drv));
	toggle(&nic);
	fake_driver_setup_irqs(&nic.drv);
	for (unsigned i = 0; i < nic.drv.nr_vqs; i++)
		fake_driver_setup_vq(&nic.drv, i);
	toggle(&nic);
	toggle(&nic);
	REQUIRE(fake_driver_start(&nic.drv));
	nic.nr_bufs = 0;
	check_pairs(&nic, PAIRS, 1);
	fake_vq_add_head(&nic.drv.vq[1], 0xffff);
	fake_vq_publish(&nic.drv.vq[1]);
	fake_vq_ring(&nic.drv.vq[1]);
	REQUIRE(NIC_WAIT(&nic, fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET));
	CHECK_EQ(net_set_vhost(nic.dev, !vhost_now(&nic)), 0);
	REQUIRE(fake_nic_restart(&nic));
	check_pairs(&nic, PAIRS, 2);
	nic.drv.opts.features[0] = no_mq;
	REQUIRE(fake_nic_restart(&nic));
	CHECK_EQ(net_set_vhost(nic.dev, !vhost_now(&nic)), 0);
	check_pairs(&nic, 1, 3);
	CHECK_EQ(NIC_CTRL(&nic, 9, 0, 0, 1), OK);
	fake_nic_free(&nic);
}

/* clang-format off */
#define SCENARIOS(X) \
	X(all_pairs) X(16_pairs) X(pairs_set) X(pairs_not_ready) X(without_mq) \
	X(without_mq_hostile) X(pair_malformed) X(pairs_rebind) X(link) \
	X(link_no_announce) X(guest_offloads) \
	X(switch) X(switch_bare) X(switch_under_traffic) X(switch_lacks) X(switch_fails) \
	X(switch_any_time)
/* clang-format on */
SCENARIOS(DEFINE_SCENARIO)

/* --- what is compared, or concerns one data path only --- */

static void t_same_offer(void)
{
	u64 features[3];

	for (enum nic_kind kind = NIC_USER; kind <= NIC_VHOST_KERNEL; kind++) {
		struct fake_nic nic;

		fake_nic_open_pairs(&nic, kind, NULL, PAIRS);
		features[kind] = nic.drv.features[0];
		CHECK_EQ(features[kind], features[NIC_USER]);
		fake_nic_free(&nic);
	}
}

/* Each pair's vhost is told all: features, memory, and its rings as 0 and 1. */
static void t_each_vhost_is_told(void)
{
	static const char want[] = "MEM=3 NUM0=256 BASE0=0 ADDR0 CALL0=1 ERR0=1 KICK0=1 "
				   "NUM1=256 BASE1=0 ADDR1 CALL1=1 ERR1=1 KICK1=1 "
				   "BACKEND0=1 BACKEND1=1";
	struct fake_nic nic;
	char buf[2000];

	fake_nic_open_pairs(&nic, NIC_VHOST_KERNEL, NULL, PAIRS);
	for (unsigned i = 0; i < PAIRS; i++) {
		const char *said = fake_vhost_said(nic.fvs[i], buf, sizeof(buf));

		CHECK(strncmp(said, "FEATURES=", 9) == 0);
		CHECK(strcmp(strchr(said, ' ') + 1, want) == 0);
		for (unsigned ring = 0; ring < 2; ring++)
			CHECK((const void *)nic.fvs[i]->ring[ring].desc ==
			      nic.drv.vq[2 * i + ring].desc);
	}
	fake_nic_free(&nic);
}

/* The interface of all pairs goes away: said once. */
static unsigned nr_said;

static void count_log(enum log_level level, const char *line)
{
	nr_said += level <= LOG_WARN;
	printf("# %s\n", line);
}

static void t_unplug(void)
{
	struct fake_nic nic;

	log_set_sink(count_log);
	fake_nic_open_pairs(&nic, NIC_USER, NULL, PAIRS);
	CHECK_EQ(PAIRS_SET(&nic, PAIRS), OK);
	fake_netif_unplug(nic.fn);
	fake_nic_settle(&nic);
	CHECK_EQ(nr_said, 1);
	fake_nic_free(&nic);
}

struct opener {
	struct fake_netif *fn;
	struct fake_vhost *fv[PAIRS];
	unsigned fail_at;
};

static struct vhost *open_some(void *ctx, unsigned pair, int *err)
{
	struct opener *o = ctx;

	if (pair == o->fail_at) {
		*err = -EMFILE;
		return NULL;
	}
	o->fv[pair] = fake_vhost_new(o->fn->nif.fd[pair], FAKE_VHOST_FEATURES, (u16)(2 * pair));
	return &o->fv[pair]->vh;
}

/* One that cannot be had ends it, and those before it are closed. */
static void t_vhost_of_a_pair_fails(void)
{
	struct fake_machine fm;

	fake_machine_init(&fm, NULL);
	for (unsigned n = 0; n < PAIRS; n++) {
		struct opener o = { .fn = fake_netif_new(PAIRS), .fail_at = n };
		struct net_params params = { .mac = { 2 },
					     .queue_size = 256,
					     .vhost = true,
					     .open_vhost = open_some,
					     .ctx = &o };
		bool closed = false;
		int err = 0;

		o.fn->closed = &closed;
		CHECK(!net_new(&fm.m, &params, &o.fn->nif, &err));
		CHECK_EQ(err, -EMFILE);
		CHECK(closed);
		for (unsigned i = 0; i < n; i++) {
			CHECK(o.fv[i]->closed);
			fake_vhost_free(o.fv[i]);
		}
	}
	fake_machine_free(&fm);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, SCENARIOS(LIST_SCENARIO) T(t_same_offer),
		       T(t_each_vhost_is_told), T(t_unplug), T(t_vhost_of_a_pair_fails));
}
