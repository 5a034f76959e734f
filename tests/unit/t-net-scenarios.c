// SPDX-License-Identifier: GPL-2.0-only
/*
 * One table of what a guest and a wire do with a NIC, run over each data path (see fake-nic.h): a
 * differential test of the seam between the device and whoever moves its frames.
 */
#include "nic-scenarios.h"

#define LARGE NET_MAX_FRAME

static const u64 no_mrg =
	~(BIT(NET_B_MRG_RXBUF) | BIT(VIRTIO_B_EVENT_IDX) | BIT(VIRTIO_B_INDIRECT_DESC));

/* More frames than the ring has entries, in both directions, with replies to each. */
static void traffic(struct fake_nic *nic, u32 seed, unsigned frames)
{
	for (unsigned i = 0; i < frames; i++) {
		u32 len = 60 + (i * 37) % 1454;

		if (i % 128 == 0) {
			fake_nic_reap(nic);
			fake_nic_post(nic, MIN(128u, frames - i), 1526);
		}
		check_tx(nic, len, seed + i);
		check_rx(nic, len, seed + i, 1);
	}
}

static void both_ways(enum nic_kind kind, const struct fake_driver_opts *opts, unsigned frames)
{
	struct fake_nic nic;

	fake_nic_open(&nic, kind, opts);
	for (unsigned done = 0; done < frames; done += 512) {
		traffic(&nic, done, MIN(512u, frames - done));
		nic.nr_bufs = 0; /* all came back: use their memory again */
	}
	CHECK_EQ(nic.drv.vq[0].errors + nic.drv.vq[1].errors, 0);
	fake_nic_free(&nic);
}

static void s_small_frames(enum nic_kind kind)
{
	both_ways(kind, NULL, 1024);
}

static void s_no_event_idx(enum nic_kind kind)
{
	both_ways(kind, &(struct fake_driver_opts){ .no_event_idx = true }, 600);
}

static void s_no_indirect(enum nic_kind kind)
{
	both_ways(kind, &(struct fake_driver_opts){ .no_indirect = true }, 600);
}

static void s_bare(enum nic_kind kind)
{
	struct fake_driver_opts opts = { .no_event_idx = true,
					 .no_indirect = true,
					 .features = { BIT(NET_B_MAC) } };

	both_ways(kind, &opts, 600);
}

static void s_rings_high(enum nic_kind kind)
{
	struct fake_driver_opts opts = { .rings_high = true, .mem_doorbell = true };

	both_ways(kind, &opts, 600);
}

static void s_slow_doorbell(enum nic_kind kind)
{
	both_ways(kind, &(struct fake_driver_opts){ .slow_doorbell = true }, 100);
}

static void s_large_frames(enum nic_kind kind)
{
	struct fake_nic nic;

	fake_nic_open(&nic, kind, NULL);
	for (u32 i = 0; i < 20; i++) {
		u32 len = LARGE - i * 7;

		nic.nr_bufs = 0;
		fake_nic_post(&nic, (NET_HDR_LEN + len + 1535) / 1536, 1536);
		check_rx(&nic, len, i, (u16)((NET_HDR_LEN + len + 1535) / 1536));
		check_tx(&nic, len, i);
	}
	fake_nic_free(&nic);
}

/* A frame of 5 KB in four buffers; then exactly full ones, and one byte more. */
static void s_mrg_rxbuf(enum nic_kind kind)
{
	struct fake_nic nic;
	u32 full = 1526 - NET_HDR_LEN;

	fake_nic_open(&nic, kind, NULL);
	fake_nic_post(&nic, 4, 1526);
	check_rx(&nic, 5000, 1, 4);
	fake_nic_post(&nic, 1, 1526);
	check_rx(&nic, full, 2, 1);
	fake_nic_post(&nic, 2, 1526);
	check_rx(&nic, full + 1, 3, 2);
	fake_nic_post(&nic, 2, 1526);
	check_rx(&nic, full + 1526, 4, 2);
	fake_nic_post(&nic, 40, 14); /* hardly more than the header */
	check_rx(&nic, 500, 5, 37);
	CHECK_EQ(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET, 0);
	fake_nic_free(&nic);
}

/* Without it: one chain a frame, num_buffers is 1, and what does not fit is dropped. */
static void s_no_mrg_rxbuf(enum nic_kind kind)
{
	struct fake_driver_opts opts = { .features = { no_mrg } };
	struct fake_nic nic;
	u16 buffers;

	fake_nic_open(&nic, kind, &opts);
	CHECK(!(nic.drv.features[0] & BIT(NET_B_MRG_RXBUF)));
	fake_nic_post_cut(&nic, 2, (u32[]){ 12, 100, 65536, 0 });
	check_rx(&nic, 60, 1, 1);
	check_rx(&nic, LARGE, 2, 1);
	fake_nic_post(&nic, 2, 1526);
	fake_nic_frame(frame, 5000, 3);
	REQUIRE(fake_netif_inject(nic.fn, frame, 5000));
	check_rx(&nic, 1000, 4, 1);
	fake_nic_settle(&nic);
	CHECK(fake_nic_recv(&nic, got, sizeof(got), &buffers) < 0);
	fake_nic_free(&nic);
}

/* A frame that comes before the buffers for it, or with too few there, waits. */
static void s_buffers_come_late(enum nic_kind kind)
{
	struct fake_nic nic;
	long n = -1;

	fake_nic_open(&nic, kind, NULL);
	for (u32 i = 0; i < 3; i++) {
		fake_nic_frame(frame, 5000, i);
		REQUIRE(fake_netif_inject(nic.fn, frame, 5000));
	}
	fake_nic_settle(&nic);
	for (u32 i = 0; i < 3; i++) {
		fake_nic_post(&nic, 2, 1526);
		fake_nic_settle(&nic);
		CHECK(fake_nic_recv(&nic, got, sizeof(got), NULL) < 0);
		fake_nic_post(&nic, 2, 1526);
		CHECK(NIC_WAIT(&nic, (n = fake_nic_recv(&nic, got, sizeof(got), NULL)) >= 0));
		CHECK(n == 5000 && fake_nic_is_frame(got, 5000, i));
	}
	fake_nic_free(&nic);
}

static void s_any_layout(enum nic_kind kind)
{
	static const u32 cuts[][6] = {
		{ 1, 11, 0 },       { 5, 0 },     { 12, 0 },       { 12, 14, 0 },
		{ 13, 1, 1, 1, 0 }, { 11, 2, 0 }, { 10, 1, 3, 0 },
	};
	struct fake_nic nic;
	long n = -1;

	fake_nic_open(&nic, kind, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(cuts); i++) {
		fake_nic_frame(frame, 400, i);
		REQUIRE(fake_nic_send_cut(&nic, frame, 400, cuts[i]));
		CHECK(NIC_WAIT(&nic, (n = fake_netif_take(nic.fn, NULL, got, sizeof(got))) >= 0));
		CHECK(n == 400 && fake_nic_is_frame(got, 400, i));
	}
	fake_nic_post_cut(&nic, 1, (u32[]){ 1, 11, 1000, 0 });
	check_rx(&nic, 400, 50, 1);
	fake_nic_post_cut(&nic, 1, (u32[]){ 11, 1, 1000, 0 });
	check_rx(&nic, 400, 51, 1);
	fake_nic_post_cut(&nic, 3, (u32[]){ 11, 2, 90, 0 });
	check_rx(&nic, 250, 52, 3);
	fake_nic_free(&nic);
}

/* Frames that no network takes are dropped, and the next one passes. */
static void s_bad_frames(enum nic_kind kind)
{
	struct fake_nic nic;
	struct fake_vq *tx;
	u64 mem;

	fake_nic_open(&nic, kind, NULL);
	tx = &nic.drv.vq[1];
	mem = fake_alloc_high(&nic.drv, 80000, 16);
	CHECK(fake_vq_add(tx, (struct fake_seg[]){ { mem, 10, false } }, 1, &nic) >= 0);
	CHECK(fake_vq_add(tx, (struct fake_seg[]){ { mem, 25, false } }, 1, &nic) >= 0);
	CHECK(fake_vq_add(tx, (struct fake_seg[]){ { mem, 70000, false } }, 1, &nic) >= 0);
	CHECK(fake_vq_add(tx, (struct fake_seg[]){ { mem, 0, false }, { mem, 0, false } }, 2,
			  &nic) >= 0);
	fake_vq_kick(tx);
	check_tx(&nic, 100, 1);
	fake_nic_settle(&nic);
	fake_nic_reap(&nic);
	CHECK_EQ(nic.nr_reaped, 5);
	CHECK_EQ(fake_netif_take(nic.fn, NULL, got, sizeof(got)), -1);
	CHECK_EQ(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET, 0);
	fake_nic_free(&nic);
}

/* The wire is full for a while: nothing is lost, nothing comes twice or out of order. */
static void s_slow_wire(enum nic_kind kind)
{
	struct fake_nic nic;
	u32 sent = 0, taken = 0;
	long n;

	fake_nic_open(&nic, kind, NULL);
	for (; sent < 200; sent++) {
		fake_nic_frame(frame, 20000, sent);
		REQUIRE(fake_nic_send(&nic, frame, 20000));
		fake_machine_run(&nic.fm);
	}
	fake_nic_settle(&nic);
	CHECK(fake_nic_reap(&nic) < 200);
	while (taken < sent) {
		n = -1;
		if (!NIC_WAIT(&nic, (n = fake_netif_take(nic.fn, NULL, got, sizeof(got))) >= 0))
			break;
		CHECK(n == 20000 && fake_nic_is_frame(got, 20000, taken));
		taken++;
	}
	CHECK_EQ(taken, sent);
	fake_nic_free(&nic);
}

/* Counts one frame or used buffer that came. False = none did. */
static bool one_frame(struct fake_nic *nic, unsigned *in, unsigned *out, unsigned *reaped)
{
	if (fake_nic_recv(nic, got, sizeof(got), NULL) == 100)
		++*in;
	else if (fake_netif_take(nic->fn, NULL, got, sizeof(got)) == 100)
		++*out;
	else if (fake_vq_get(&nic->drv.vq[1], NULL))
		++*reaped;
	else
		return false;
	return true;
}

/* A burst larger than any budget, in both directions at once. */
static void s_bursts(enum nic_kind kind)
{
	struct fake_nic nic;
	unsigned in = 0, out = 0, injected = 0, reaped = 0;

	fake_nic_open(&nic, kind, NULL);
	fake_nic_post(&nic, 250, 1526);
	for (u32 i = 0; i < 250; i++) {
		fake_nic_frame(frame, 100, i);
		REQUIRE(fake_nic_send(&nic, frame, 100));
	}
	while (in < 250 || out < 250 || reaped < 250) {
		fake_nic_frame(frame, 100, injected);
		if (injected < 250 && fake_netif_inject(nic.fn, frame, 100))
			injected++;
		if (!NIC_WAIT(&nic, one_frame(&nic, &in, &out, &reaped) || injected < 250))
			break;
	}
	CHECK_EQ(in, 250);
	CHECK_EQ(out, 250);
	CHECK_EQ(reaped, 250);
	fake_nic_free(&nic);
}

/*
 * Interrupts: one for a frame that comes while the vector is masked, delivered when it is unmasked.
 */
static void s_mask_unmask(enum nic_kind kind)
{
	struct fake_nic nic;
	struct fake_vq *rx;

	fake_nic_open(&nic, kind, NULL);
	rx = &nic.drv.vq[0];
	fake_nic_post(&nic, 20, 1526);
	check_rx(&nic, 100, 0, 1);
	fake_nic_settle(&nic);
	fake_vq_irqs(rx);
	for (u32 i = 1; i <= 5; i++) {
		fake_vq_irq_on(rx);
		fake_msix_mask(&nic.drv, fake_vq_vector(rx), true);
		check_rx(&nic, 100, i, 1);
		fake_nic_settle(&nic);
		CHECK_EQ(fake_vq_irqs(rx), 0);
		fake_msix_mask(&nic.drv, fake_vq_vector(rx), false);
		CHECK(NIC_WAIT(&nic, fake_vq_irqs(rx) == 1));
	}
	fake_nic_free(&nic);
}

static void interrupts(enum nic_kind kind, bool event_idx)
{
	struct fake_driver_opts opts = { .no_event_idx = !event_idx };
	struct fake_nic nic;
	struct fake_vq *rx;

	fake_nic_open(&nic, kind, &opts);
	rx = &nic.drv.vq[0];
	fake_nic_post(&nic, 100, 1526);
	check_rx(&nic, 100, 0, 1);
	fake_nic_settle(&nic);
	fake_vq_irqs(rx);
	fake_vq_irq_off(rx);
	for (u32 i = 1; i <= 10; i++)
		check_rx(&nic, 100, i, 1);
	fake_nic_settle(&nic);
	CHECK_EQ(fake_vq_irqs(rx), 0);
	CHECK(!fake_vq_irq_on(rx));
	check_rx(&nic, 100, 11, 1);
	CHECK(NIC_WAIT(&nic, fake_vq_irqs(rx) == 1));
	fake_nic_free(&nic);
}

static void s_interrupts_event_idx(enum nic_kind kind)
{
	interrupts(kind, true);
}

static void s_interrupts_flags(enum nic_kind kind)
{
	interrupts(kind, false);
}

static void s_intx(enum nic_kind kind)
{
	struct fake_nic nic;
	struct fake_vq *rx;

	fake_nic_open(&nic, kind, &(struct fake_driver_opts){ .intx = true });
	rx = &nic.drv.vq[0];
	fake_nic_post(&nic, 20, 1526);
	for (u32 i = 0; i < 5; i++) {
		check_rx(&nic, 100, i, 1);
		CHECK(NIC_WAIT(&nic, fake_vq_irqs(rx) != 0));
		fake_vq_irq_on(rx);
	}
	fake_nic_free(&nic);
}

/* Reset with frames under way in both directions: afterwards nobody touches the guest's memory. */
static void s_reset_under_traffic(enum nic_kind kind)
{
	struct fake_nic nic;

	fake_nic_open(&nic, kind, NULL);
	for (u32 round = 0; round < 20; round++) {
		u8 *mem;

		fake_nic_post(&nic, 200, 1526);
		for (u32 i = 0; i < 100; i++) {
			fake_nic_frame(frame, 100, i);
			fake_netif_inject(nic.fn, frame, 100);
			REQUIRE(fake_nic_send(&nic, frame, 100));
			if (i == round)
				fake_machine_run(&nic.fm);
		}
		CHECK(fake_driver_reset(&nic.drv));
		mem = fake_ptr(&nic.drv, nic.buf[0].seg[0].gpa, 200 * 1526);
		memset(mem, 0xaa, 200 * 1526);
		fake_netif_inject(nic.fn, frame, 100);
		fake_nic_settle(&nic);
		for (u32 i = 0; i < 200 * 1526; i++)
			if (mem[i] != 0xaa) {
				CHECK_EQ(mem[i], 0xaa);
				break;
			}
		start_over(&nic);
		fake_nic_post(&nic, 4, 1526);
		check_tx(&nic, 200, round);
		check_rx(&nic, 200, round, 1);
		REQUIRE(fake_nic_restart(&nic));
	}
	fake_nic_free(&nic);
}

static void s_200_rebinds(enum nic_kind kind)
{
	struct fake_nic nic;
	int fds;

	fake_nic_open(&nic, kind, NULL);
	fds = tap_open_fds();
	for (u32 i = 0; i < 200; i++) {
		fake_nic_post(&nic, 4, 1526);
		check_tx(&nic, 100, i);
		check_rx(&nic, 100, i, 1);
		REQUIRE(fake_nic_restart(&nic));
	}
	fake_nic_post(&nic, 4, 1526);
	check_rx(&nic, 100, 1000, 1);
	CHECK(fake_driver_reset(&nic.drv));
	CHECK(tap_open_fds() <= fds);
	fake_nic_free(&nic);
}

static void want_broken_then_mended(struct fake_nic *nic)
{
	u64 irqs = fake_driver_config_irqs(&nic->drv);

	fake_vq_publish(&nic->drv.vq[0]);
	fake_vq_ring(&nic->drv.vq[0]);
	fake_vq_publish(&nic->drv.vq[1]);
	fake_vq_ring(&nic->drv.vq[1]);
	fake_nic_frame(frame, 100, 0);
	/* frames come in, so that receive buffers get used up to the bad one */
	REQUIRE(NIC_WAIT(nic, (fake_netif_inject(nic->fn, frame, 100),
			       fake_driver_status(&nic->drv) & VIRTIO_S_NEEDS_RESET)));
	CHECK(NIC_WAIT(nic, fake_driver_config_irqs(&nic->drv) > irqs));
	start_over(nic);
	fake_nic_post(nic, 4, 1526);
	check_tx(nic, 100, 1);
	check_rx(nic, 100, 2, 1);
}

/* Each of these breaks a rule of virtqueues (virtio 1.3 2.7), in one queue or the other. */
static void s_malformed(enum nic_kind kind)
{
	struct fake_nic nic;

	log_set_sink(quiet);
	fake_nic_open(&nic, kind, NULL);
	for (unsigned q = 0; q < 2; q++) {
		u16 write = q == 0 ? VRING_DESC_F_WRITE : 0;

		for (unsigned what = 0; what < 7; what++) {
			struct fake_vq *vq = &nic.drv.vq[q];
			struct vring_desc *d = vq->desc;
			u16 head = 7;

			d[7] = (struct vring_desc){ 0x10000, 100, write, 0 };
			switch (what) {
			case 0: /* out of range */ head = vq->size; break;
			case 1: /* a loop */
				d[7].flags |= VRING_DESC_F_NEXT;
				d[7].next = 7;
				break;
			case 2: /* next out of range */
				d[7].flags |= VRING_DESC_F_NEXT;
				d[7].next = 0xffff;
				break;
			case 3: /* no memory there */ d[7].addr = 3 * GiB; break;
			case 4: /* wraps */ d[7].addr = ~0ULL - 4; break;
			case 5: /* the wrong direction */ d[7].flags ^= VRING_DESC_F_WRITE; break;
			case 6: /* an indirect table that is no multiple of 16 */
				d[7] = (struct vring_desc){ 0x10000, 20, VRING_DESC_F_INDIRECT, 0 };
				break;
			}
			fake_vq_add_head(vq, head);
			printf("# queue %u, %u\n", q, what);
			want_broken_then_mended(&nic);
		}
		nic.drv.vq[q].avail_idx += nic.drv.vq[q].size + 1; /* a jump */
		want_broken_then_mended(&nic);
	}
	fake_nic_free(&nic);
}

/* A driver that only ever sets one of the two queues up. */
static void s_one_queue(enum nic_kind kind)
{
	for (unsigned q = 0; q < 2; q++) {
		struct fake_nic nic;

		fake_nic_open(&nic, kind, NULL);
		REQUIRE(fake_driver_negotiate(&nic.drv));
		fake_driver_setup_irqs(&nic.drv);
		fake_driver_setup_vq(&nic.drv, q);
		REQUIRE(fake_driver_start(&nic.drv));
		nic.nr_bufs = 0;
		if (q == 0) {
			fake_nic_post(&nic, 4, 1526);
			check_rx(&nic, 100, 1, 1);
		} else {
			fake_nic_frame(frame, 100, 1);
			fake_netif_inject(nic.fn, frame, 100);
			check_tx(&nic, 100, 1);
		}
		fake_nic_free(&nic);
	}
}

/* RING_RESET of either queue: it begins anew, its sibling goes on where it was. */
static void s_ring_reset(enum nic_kind kind)
{
	struct fake_nic nic;

	fake_nic_open(&nic, kind, NULL);
	for (u32 round = 0; round < 20; round++) {
		fake_nic_post(&nic, 6, 1526);
		check_rx(&nic, 100, round, 1);
		check_tx(&nic, 100, round);
		NIC_WAIT(&nic, fake_nic_reap(&nic));
		REQUIRE(fake_driver_reset_vq(&nic.drv, 1));
		check_rx(&nic, 200, round, 1);
		fake_driver_setup_vq(&nic.drv, 1);
		check_tx(&nic, 200, round);
		REQUIRE(fake_driver_reset_vq(&nic.drv, 0));
		nic.nr_bufs = 0;
		check_tx(&nic, 300, round);
		fake_driver_setup_vq(&nic.drv, 0);
		fake_nic_post(&nic, 2, 1526);
		check_rx(&nic, 300, round, 1);
		REQUIRE(fake_driver_reset_vq(&nic.drv, 0));
		fake_driver_setup_vq(&nic.drv, 0);
		nic.nr_bufs = 0;
	}
	CHECK_EQ(nic.drv.vq[0].errors + nic.drv.vq[1].errors, 0);
	CHECK_EQ(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET, 0);
	fake_nic_free(&nic);
}

/* Kicks and buffers that come between FEATURES_OK and DRIVER_OK are not lost. */
static void s_early_buffers(enum nic_kind kind)
{
	struct fake_nic nic;
	long n = -1;

	fake_nic_open(&nic, kind, NULL);
	REQUIRE(fake_driver_negotiate(&nic.drv));
	fake_driver_setup_irqs(&nic.drv);
	for (unsigned i = 0; i < nic.drv.nr_vqs; i++)
		fake_driver_setup_vq(&nic.drv, i);
	nic.nr_bufs = 0;
	fake_nic_post(&nic, 4, 1526);
	fake_nic_frame(frame, 100, 1);
	REQUIRE(fake_nic_send(&nic, frame, 100));
	REQUIRE(fake_driver_start(&nic.drv));
	CHECK(NIC_WAIT(&nic, (n = fake_netif_take(nic.fn, NULL, got, sizeof(got))) >= 0));
	CHECK(n == 100 && fake_nic_is_frame(got, 100, 1));
	check_rx(&nic, 100, 2, 1);
	fake_nic_free(&nic);
}

/* Offloads of the netif follow what the driver took, from DRIVER_OK until reset. */
static void s_offloads(enum nic_kind kind)
{
	const u64 some = BIT(NET_B_GUEST_CSUM) | BIT(NET_B_GUEST_TSO4);
	struct fake_nic nic;

	fake_nic_open(&nic, kind, &(struct fake_driver_opts){ .features = { some } });
	CHECK_EQ(nic.fn->offload, some);
	CHECK(fake_driver_reset(&nic.drv));
	CHECK_EQ(nic.fn->offload, 0);
	REQUIRE(fake_driver_negotiate(&nic.drv));
	CHECK_EQ(nic.fn->offload, 0);
	REQUIRE(fake_nic_restart(&nic));
	CHECK_EQ(nic.fn->offload, some);
	fake_nic_free(&nic);
}

static void s_bad_offloads(enum nic_kind kind)
{
	struct fake_nic nic;

	log_set_sink(quiet);
	fake_nic_open(&nic, kind, NULL);
	nic.fn->fail_offload = -EINVAL;
	CHECK(!fake_nic_restart(&nic));
	CHECK(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET);
	nic.fn->fail_offload = 0;
	REQUIRE(fake_nic_restart(&nic));
	check_tx(&nic, 100, 1);
	fake_nic_free(&nic);
}

/* --- the table --- */

/* clang-format off */
#define SCENARIOS(X) \
	X(small_frames) X(no_event_idx) X(no_indirect) X(bare) X(rings_high) X(slow_doorbell) \
	X(large_frames) X(mrg_rxbuf) X(no_mrg_rxbuf) X(buffers_come_late) X(any_layout) \
	X(bad_frames) X(slow_wire) X(bursts) X(interrupts_event_idx) \
	X(interrupts_flags) X(intx) X(reset_under_traffic) X(200_rebinds) X(malformed) \
	X(one_queue) X(ring_reset) X(early_buffers) X(offloads) X(bad_offloads)
/* clang-format on */

SCENARIOS(DEFINE_SCENARIO)
DEFINE_SCENARIO(mask_unmask) /* of MSI-X */

#define DEFINE_ON(where, kind, s) \
	static void where##_user_##s(void) \
	{ \
		fake_transport = kind; \
		s_##s(NIC_USER); \
	} \
	static void where##_vhost_##s(void) \
	{ \
		fake_transport = kind; \
		s_##s(NIC_VHOST); \
	}
#define DEFINE_MMIO(s)   DEFINE_ON(mmio, VIRTIO_ON_MMIO, s)
#define DEFINE_LEGACY(s) DEFINE_ON(legacy, VIRTIO_ON_PCI_LEGACY, s)
SCENARIOS(DEFINE_MMIO)
SCENARIOS(DEFINE_LEGACY)
DEFINE_LEGACY(mask_unmask)

#define LIST_MMIO(s)   T(mmio_user_##s), T(mmio_vhost_##s),
#define LIST_LEGACY(s) T(legacy_user_##s), T(legacy_vhost_##s),

/* --- and what is compared between them --- */

/* The header's length, by what the driver accepted: the netif, and vhost, follow each start. */
static void t_header_length(void)
{
	static const struct {
		enum virtio_transport_kind transport;
		u64 features;
		unsigned len;
	} c[] = {
		{ VIRTIO_ON_PCI, BIT(NET_B_MAC), 12 },
		{ VIRTIO_ON_MMIO, BIT(NET_B_MAC), 12 },
		{ VIRTIO_ON_PCI_LEGACY, BIT(NET_B_MAC), 10 },
		{ VIRTIO_ON_PCI_LEGACY, BIT(NET_B_MRG_RXBUF), 12 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
		for (enum nic_kind kind = NIC_USER; kind <= NIC_VHOST_KERNEL; kind++) {
			struct fake_driver_opts opts = { .features = { c[i].features } };
			struct fake_nic nic;

			fake_transport = c[i].transport;
			fake_nic_open(&nic, kind, &opts);
			CHECK_EQ(nic.fn->hdr_len, c[i].len);
			fake_nic_post(&nic, 2, 1514 + c[i].len); /* no byte to spare */
			check_rx(&nic, 1514, i, 1);
			check_tx(&nic, 1514, i);
			check_tx(&nic, 14, i);
			/* What a driver with all features does after one with few. */
			nic.drv.opts.features[0] = 0;
			nic.nr_bufs = 0;
			REQUIRE(fake_nic_restart(&nic));
			CHECK_EQ(nic.fn->hdr_len, 12);
			fake_nic_post(&nic, 2, 1526);
			check_rx(&nic, 2000, i, 2);
			fake_nic_free(&nic);
		}
	}
	fake_transport = VIRTIO_ON_PCI;
}

/* A netif that can only do one length: fine, but for a driver that needs the other. */
static void t_header_length_refused(void)
{
	struct fake_driver_opts opts = { .features = { BIT(NET_B_MAC) } };
	struct netif_ops ops;
	struct fake_nic nic;

	log_set_sink(quiet);
	fake_transport = VIRTIO_ON_PCI_LEGACY;
	fake_nic_open(&nic, NIC_USER, NULL);
	ops = *nic.fn->nif.ops;
	ops.set_hdr_len = NULL;
	nic.fn->nif.ops = &ops;
	nic.drv.opts = opts;
	CHECK(!fake_nic_restart(&nic));
	CHECK(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET);
	nic.drv.opts = (struct fake_driver_opts){ 0 };
	REQUIRE(fake_nic_restart(&nic));
	check_tx(&nic, 100, 1);
	fake_nic_free(&nic);
}

/* The guest cannot tell them apart: features, config space, queues. */
static void t_same_offer(void)
{
	static const enum nic_kind kinds[] = { NIC_USER, NIC_VHOST, NIC_VHOST_KERNEL };
	u64 features[2] = { 0 };
	u8 config[64] = { 0 };

	for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct fake_nic nic;
		u8 c[64] = { 0 };

		fake_nic_open(&nic, kinds[k], NULL);
		for (unsigned i = 0; i < nic.drv.config_len && i < sizeof(c); i++)
			c[i] = (u8)fake_config_read(&nic.drv, i, 1);
		if (k == 0) {
			memcpy(features, nic.drv.features, sizeof(features));
			memcpy(config, c, sizeof(config));
			CHECK(features[0] & BIT(NET_B_CSUM) && features[0] & BIT(NET_B_GUEST_TSO4));
		}
		CHECK_EQ(nic.drv.features[0], features[0]);
		CHECK_EQ(nic.drv.features[1], features[1]);
		CHECK_EQ(nic.drv.nr_vqs, 3);
		CHECK(memcmp(c, config, sizeof(c)) == 0);
		CHECK(memcmp(c, fake_nic_mac, 6) == 0);
		fake_nic_free(&nic);
	}
}

/* Without vhost's ring features they are not offered; nothing else goes with them. */
static void t_vhost_vetoes_ring_bits_only(void)
{
	const u64 ring = BIT(NET_B_MRG_RXBUF) | BIT(VIRTIO_B_INDIRECT_DESC) |
			 BIT(VIRTIO_B_EVENT_IDX);
	struct fake_nic user, vhost;

	fake_nic_init(&user, NIC_USER, 0);
	fake_nic_init(&vhost, NIC_VHOST_KERNEL, BIT(VIRTIO_B_VERSION_1));
	CHECK_EQ(user.dev->offered[0] & ring, ring);
	CHECK_EQ(vhost.dev->offered[0], user.dev->offered[0] & ~ring);
	fake_nic_free(&user);
	fake_nic_free(&vhost);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv,
		       SCENARIOS(LIST_SCENARIO) LIST_SCENARIO(mask_unmask) SCENARIOS(LIST_MMIO)
			       SCENARIOS(LIST_LEGACY) LIST_LEGACY(mask_unmask) T(t_header_length),
		       T(t_header_length_refused), T(t_same_offer),
		       T(t_vhost_vetoes_ring_bits_only));
}
