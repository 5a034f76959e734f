// SPDX-License-Identifier: GPL-2.0-only
/*
 * vhost.c and vhost-kernel.c: the order of the protocol, what is handed over, and what happens when
 * a verb fails.
 */
#include "../tap.h"
#include "dev-vhost.h"
#include "log.h"

static char said[1024];
static u8 frame[NET_MAX_FRAME], got[NET_MAX_FRAME];

static void catch_log(enum log_level level, const char *line)
{
	size_t n = strlen(said);

	if (level <= LOG_WARN)
		snprintf(said + n, sizeof(said) - n, "%s\n", line);
}

static void check_said(struct fake_nic *nic, const char *want)
{
	char buf[2000];

	if (strcmp(fake_vhost_said(nic->fv, buf, sizeof(buf)), want)) {
		printf("# said: %s\n# want: %s\n", buf, want);
		tap_failed++;
	}
}

static bool moves_frames(struct fake_nic *nic)
{
	long n = -1;

	fake_nic_post(nic, 2, 1526);
	fake_nic_frame(frame, 100, 1);
	REQUIRE(fake_nic_send(nic, frame, 100) && fake_netif_inject(nic->fn, frame, 100));
	return NIC_WAIT(nic, (n = fake_netif_take(nic->fn, NULL, got, sizeof(got))) >= 0) &&
	       n == 100 && NIC_WAIT(nic, (n = fake_nic_recv(nic, got, sizeof(got), NULL)) >= 0) &&
	       n == 100;
}

#define START_RING(i) "NUM" #i "=256 BASE" #i "=0 ADDR" #i " CALL" #i "=1 ERR" #i "=1 KICK" #i "=1 "
#define STOP_RING(i)  "KICK" #i "=-1 CALL" #i "=-1 ERR" #i "=-1"
#define SOME_FEATURES \
	(BIT(NET_B_MRG_RXBUF) | BIT(VIRTIO_B_INDIRECT_DESC) | BIT(VIRTIO_B_EVENT_IDX) | \
	 BIT(VIRTIO_B_VERSION_1))

/* Both wires say the same, in the order that the kernel wants (and fake-vhost enforces). */
static void order(enum nic_kind kind)
{
	struct fake_nic nic;
	char want[500];

	fake_nic_init(&nic, kind, 0);
	check_said(&nic, "");
	fake_driver_open(&nic.drv, &nic.fm, 1, NULL);
	snprintf(want, sizeof(want),
		 "FEATURES=%lld MEM=3 " START_RING(0) START_RING(1) "BACKEND0=1 BACKEND1=1",
		 (long long)SOME_FEATURES);
	check_said(&nic, want);
	CHECK(fake_driver_reset(&nic.drv));
	check_said(&nic,
		   "BACKEND1=-1 BACKEND0=-1 GET_BASE1 GET_BASE0 " STOP_RING(1) " " STOP_RING(0));
	CHECK(fake_driver_reset(&nic.drv));
	check_said(&nic, "");
	REQUIRE(fake_driver_restart(&nic.drv));
	check_said(&nic, want);
	fake_nic_free(&nic);
}

static void t_order(void)
{
	order(NIC_VHOST);
}

static void t_order_kernel(void)
{
	order(NIC_VHOST_KERNEL);
}

/* A ring that the driver did not set up is not mentioned. */
static void t_one_ring(void)
{
	struct fake_nic nic;
	char want[500];

	fake_nic_init(&nic, NIC_VHOST_KERNEL, 0);
	REQUIRE(fake_driver_probe(&nic.drv, &nic.fm, 1, NULL) && fake_driver_negotiate(&nic.drv));
	fake_driver_setup_irqs(&nic.drv);
	fake_driver_setup_vq(&nic.drv, 1);
	REQUIRE(fake_driver_start(&nic.drv));
	snprintf(want, sizeof(want), "FEATURES=%lld MEM=3 " START_RING(1) "BACKEND1=1",
		 (long long)SOME_FEATURES);
	check_said(&nic, want);
	CHECK(fake_driver_reset(&nic.drv));
	check_said(&nic, "BACKEND1=-1 GET_BASE1 " STOP_RING(1));
	fake_nic_free(&nic);
}

/* All memory, rings of the driver's own size where it put them, also above 4 GiB. */
static void t_what_is_handed_over(void)
{
	struct fake_driver_opts opts = { .size = 64, .rings_high = true, .no_event_idx = true };
	struct fake_nic nic;

	fake_nic_open(&nic, NIC_VHOST_KERNEL, &opts);
	pthread_mutex_lock(&nic.fv->lock);
	CHECK_EQ(nic.fv->nr_mem, nic.fm.m.mem.nr);
	for (unsigned i = 0; i < nic.fv->nr_mem; i++) {
		CHECK_EQ(nic.fv->mem[i].gpa, nic.fm.m.mem.r[i].gpa);
		CHECK_EQ(nic.fv->mem[i].size, nic.fm.m.mem.r[i].size);
		CHECK(nic.fv->mem[i].hva == nic.fm.m.mem.r[i].hva);
	}
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(nic.fv->ring[i].num, 64);
		CHECK((const void *)nic.fv->ring[i].desc == nic.drv.vq[i].desc);
		CHECK((const void *)nic.fv->ring[i].avail == nic.drv.vq[i].avail);
		CHECK((const void *)nic.fv->ring[i].used == nic.drv.vq[i].used);
	}
	CHECK_EQ(nic.fv->features, SOME_FEATURES & ~BIT(VIRTIO_B_EVENT_IDX));
	pthread_mutex_unlock(&nic.fv->lock);
	CHECK(moves_frames(&nic));
	fake_nic_free(&nic);
}

/* The ring's position comes back, and is where the next start goes on. */
static void t_position(void)
{
	struct fake_nic nic;

	fake_nic_open(&nic, NIC_VHOST, NULL);
	for (unsigned i = 0; i < 5; i++)
		CHECK(moves_frames(&nic));
	pthread_mutex_lock(&nic.dev->lock);
	virtio_stop(nic.dev);
	pthread_mutex_unlock(&nic.dev->lock);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(nic.dev->vq[i].next_avail, 5);
		CHECK_EQ(nic.dev->vq[i].next_used, 5);
	}
	fake_nic_free(&nic);
}

/*
 * No thread of ours has a part in the frames: nothing wakes the loop, no doorbell leaves the guest.
 */
static void t_loop_sleeps(void)
{
	struct fake_nic nic;
	u64 wakeups;

	fake_nic_open(&nic, NIC_VHOST_KERNEL, NULL);
	CHECK(moves_frames(&nic));
	fake_machine_run(&nic.fm);
	wakeups = loop_wakeups(&nic.fm.loop);
	for (unsigned i = 0; i < 200; i++)
		REQUIRE(moves_frames(&nic));
	CHECK_EQ(loop_wakeups(&nic.fm.loop), wakeups);
	CHECK_EQ(nic.dev->vq[0].nr_kicks + nic.dev->vq[1].nr_kicks, 0);
	CHECK_EQ(nic.dev->vq[0].nr_doorbells + nic.dev->vq[1].nr_doorbells, 0);
	fake_nic_free(&nic);
}

/*
 * Verb 1, 2, 3... fails while the driver starts: the device asks for a reset, both rings are let go
 * of, one line is logged, and the next start works.
 */
static void verb_fails(enum nic_kind kind)
{
	unsigned n;

	log_set_sink(catch_log);
	for (n = 1; n < 100; n++) {
		struct fake_nic nic;
		bool ok;

		said[0] = 0;
		fake_nic_open(&nic, kind, NULL);
		CHECK(fake_driver_reset(&nic.drv));
		nic.fv->fail_at = nic.fv->calls + n;
		ok = fake_nic_restart(&nic);
		nic.fv->fail_at = 0;
		if (!ok) {
			CHECK(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET);
			for (unsigned i = 0; i < 2; i++) {
				CHECK(!nic.fv->ring[i].enabled);
				CHECK_EQ(nic.fv->ring[i].kick, -1);
				CHECK_EQ(nic.fv->ring[i].call, -1);
				CHECK_EQ(nic.fv->ring[i].err, -1);
			}
			CHECK(strstr(said, "Input/output error"));
			CHECK(strstr(said, "its backend did not start"));
		}
		fake_driver_reset(&nic.drv);
		REQUIRE(fake_nic_restart(&nic));
		CHECK(moves_frames(&nic));
		fake_nic_free(&nic);
		if (ok)
			break;
	}
	CHECK_EQ(
		n,
		2 + 6 + 6 + 2 +
			1); /* features, memory, six for each ring, two enables; then none failed */
}

static void t_verb_fails_at_start(void)
{
	verb_fails(NIC_VHOST);
}

static void t_verb_fails_at_start_kernel(void)
{
	verb_fails(NIC_VHOST_KERNEL);
}

/*
 * What fails on the way down stops nothing: every ring is let go of, and the driver can start
 * again.
 */
static void t_verb_fails_at_stop(void)
{
	log_set_sink(catch_log);
	for (unsigned n = 3; n <= 10;
	     n++) { /* 1 and 2 are the disables, which cannot fail in the kernel */
		struct fake_nic nic;
		unsigned calls;

		fake_nic_open(&nic, NIC_VHOST, NULL);
		CHECK(moves_frames(&nic));
		calls = nic.fv->calls;
		nic.fv->fail_at = calls + n;
		CHECK(fake_driver_reset(&nic.drv));
		CHECK_EQ(nic.fv->calls, calls + 10);
		REQUIRE(fake_nic_restart(&nic));
		CHECK(moves_frames(&nic));
		fake_nic_free(&nic);
	}
}

/* A position that cannot be had is taken from the used ring. */
static void t_position_unknown(void)
{
	struct fake_nic nic;

	log_set_sink(catch_log);
	fake_nic_open(&nic, NIC_VHOST, NULL);
	for (unsigned i = 0; i < 3; i++)
		CHECK(moves_frames(&nic));
	nic.fv->fail_at = nic.fv->calls + 3;
	pthread_mutex_lock(&nic.dev->lock);
	virtio_stop(nic.dev);
	pthread_mutex_unlock(&nic.dev->lock);
	CHECK_EQ(nic.dev->vq[1].next_avail, 3);
	CHECK_EQ(nic.dev->vq[0].next_avail, 3);
	fake_nic_free(&nic);
}

/* A guest that starts against a failing vhost again and again fills no log. */
static void t_failure_is_said_once(void)
{
	struct fake_nic nic;

	log_set_sink(catch_log);
	fake_nic_open(&nic, NIC_VHOST, NULL);
	said[0] = 0;
	for (unsigned i = 0; i < 50; i++) {
		nic.fv->fail_at = nic.fv->calls + 10 + 3;
		CHECK(!fake_nic_restart(&nic));
		nic.fv->fail_at = 0;
		REQUIRE(fake_nic_restart(&nic));
	}
	CHECK_EQ(strlen(said) < 300, true);
	CHECK(strstr(said, "vhost: set_vring of ring 0: Input/output error\n"));
	fake_nic_free(&nic);
}

/* The private bits are never passed on, whatever the kernel says it can. */
static void t_private_bits(void)
{
	struct fake_nic nic;

	fake_nic_init(&nic, NIC_VHOST_KERNEL, ~0ULL);
	fake_driver_open(&nic.drv, &nic.fm, 1, NULL);
	CHECK(!(nic.fv->features & (BIT(24) | BIT(26) | BIT(27) | BIT(33))));
	CHECK_EQ(nic.fv->features, nic.drv.features[0]);
	fake_nic_free(&nic);
}

static void t_error_eventfd(void)
{
	struct fake_nic nic;
	u64 one = 1;

	log_set_sink(catch_log);
	fake_nic_open(&nic, NIC_VHOST_KERNEL, NULL);
	for (unsigned i = 0; i < 3; i++) {
		u64 irqs = fake_driver_config_irqs(&nic.drv);

		CHECK(moves_frames(&nic));
		pthread_mutex_lock(&nic.fv->lock);
		CHECK_EQ(write(nic.fv->ring[i & 1].err, &one, sizeof(one)), sizeof(one));
		pthread_mutex_unlock(&nic.fv->lock);
		fake_machine_run(&nic.fm);
		CHECK(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET);
		CHECK(fake_driver_config_irqs(&nic.drv) > irqs);
		CHECK(!nic.fv->ring[0].enabled && !nic.fv->ring[1].enabled);
		REQUIRE(fake_nic_restart(&nic));
	}
	/* one that came in the last moment is not about the next life */
	CHECK_EQ(write(nic.fv->ring[0].err, &one, sizeof(one)), sizeof(one));
	CHECK(fake_driver_reset(&nic.drv));
	REQUIRE(fake_nic_restart(&nic));
	fake_machine_run(&nic.fm);
	CHECK_EQ(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET, 0);
	fake_nic_free(&nic);
}

/* --- opening --- */

static void open_fails(int error, const char *want)
{
	int err = 0;

	said[0] = 0;
	dev_vhost.error = error;
	CHECK(!vhost_net_open(NULL, 5, 0, &err));
	CHECK_EQ(err, -error);
	if (strcmp(said, want)) {
		printf("# said: %s# want: %s", said, want);
		tap_failed++;
	}
	dev_vhost.error = 0;
}

static void t_open_errors(void)
{
	log_set_sink(catch_log);
	open_fails(ENOENT, "lkvm: -n: vhost=1: /dev/vhost-net: No such file or directory; "
			   "modprobe vhost_net, or use vhost=0\n");
	open_fails(ENXIO, "lkvm: -n: vhost=1: /dev/vhost-net: No such device or address; "
			  "modprobe vhost_net, or use vhost=0\n");
	open_fails(EACCES, "lkvm: -n: vhost=1: /dev/vhost-net: Permission denied; "
			   "give this user access to it, or use vhost=0\n");
}

static void t_open_steps_fail(void)
{
	log_set_sink(catch_log);
	for (unsigned n = 1; n <= 2; n++) {
		struct fake_netif *fn = fake_netif_new(1);
		struct fake_vhost *fv = fake_vhost_bare(fn->nif.fd[0], FAKE_VHOST_FEATURES);
		int err = 0;

		said[0] = 0;
		fv->fail_at = n;
		fake_nic_dev_vhost = fv;
		CHECK(!vhost_net_open(NULL, fn->nif.fd[0], 0, &err));
		CHECK_EQ(err, -EIO);
		CHECK(strstr(said, n == 1 ? "VHOST_SET_OWNER" : "VHOST_GET_FEATURES"));
		fake_vhost_free(fv);
		fn->nif.ops->close(&fn->nif);
	}
}

/* A kernel that can say 128 bits is asked for them; IN_ORDER is not taken, see vhost-kernel.c. */
static void t_feature_words(void)
{
	for (unsigned array = 0; array < 2; array++) {
		struct fake_netif *fn = fake_netif_new(1);
		struct fake_vhost *fv = fake_vhost_bare(fn->nif.fd[0], FAKE_VHOST_FEATURES);
		u64 both[2] = { BIT(VIRTIO_B_VERSION_1), BIT(1) };
		struct vhost *vh;
		int err;

		fv->has_array = array;
		fv->supported_high = 6;
		fake_nic_dev_vhost = fv;
		vh = vhost_net_open(NULL, fn->nif.fd[0], 0, &err);
		REQUIRE(vh);
		CHECK_EQ(vh->features[0], FAKE_VHOST_FEATURES);
		CHECK_EQ(vh->features[1], array ? 6 : 0);
		CHECK_EQ(vh->ops->set_features(vh, both), array ? 0 : -ENOBUFS);
		CHECK_EQ(fv->features_high, array ? 2 : 0);
		both[1] = 0;
		CHECK_EQ(vh->ops->set_features(vh, both), 0);
		CHECK_EQ(fv->features, BIT(VIRTIO_B_VERSION_1));
		fv->misuse = 0;
		vh->be.ops->free(&vh->be);
		fake_vhost_free(fv);
		fn->nif.ops->close(&fn->nif);
	}
}

/* With an fd of the user's, which is ours from then on, and with polling. */
static void t_given(void)
{
	for (unsigned what = 0; what < 3; what++) {
		int fds = tap_open_fds(), err = 0;
		struct fake_netif *fn = fake_netif_new(1);
		struct fake_vhost *fv = fake_vhost_bare(fn->nif.fd[0], FAKE_VHOST_FEATURES);
		struct vhost_net_config cfg = { .poll_us = 50 };
		struct vhost *vh;

		said[0] = 0;
		log_set_sink(catch_log);
		fake_nic_dev_vhost = fv;
		cfg.fd = open("/dev/vhost-net", O_RDWR);
		fv->owned = what == 1;
		fv->no_poll = what == 2;
		vh = vhost_net_open(&cfg, fn->nif.fd[0], 0, &err);
		CHECK_EQ(!vh, what > 0);
		if (what == 0)
			CHECK(fv->poll_us[0] == 50 && fv->poll_us[1] == 50);
		if (what == 1)
			CHECK(err == -EBUSY && strstr(said, "-n: vhostfd=") &&
			      strstr(said, "VHOST_SET_OWNER: Device or resource busy"));
		if (what == 2)
			CHECK(err == -ENOTTY && strstr(said, "poll_us="));
		if (vh)
			vh->be.ops->free(&vh->be);
		fake_vhost_free(fv);
		fn->nif.ops->close(&fn->nif);
		CHECK_EQ(tap_open_fds(), fds);
	}
}

static void t_in_order_is_not_offered(void)
{
	for (enum nic_kind kind = NIC_USER; kind <= NIC_VHOST_KERNEL; kind++) {
		struct fake_nic nic;

		fake_nic_init(&nic, kind, 0);
		CHECK(!(nic.dev->offered[0] & BIT(35)));
		fake_nic_free(&nic);
	}
}

/* Without VERSION_1 it would take frames to have another header. */
static void t_kernel_too_old(void)
{
	struct fake_netif *fn = fake_netif_new(1);
	struct fake_vhost *fv = fake_vhost_bare(fn->nif.fd[0], FAKE_VHOST_FEATURES & ~BIT(32));
	int err = 0;

	log_set_sink(catch_log);
	fake_nic_dev_vhost = fv;
	CHECK(!vhost_net_open(NULL, fn->nif.fd[0], 0, &err));
	CHECK_EQ(err, -EOPNOTSUPP);
	CHECK(strstr(said, "VIRTIO_F_VERSION_1"));
	fake_vhost_free(fv);
	fn->nif.ops->close(&fn->nif);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_order), T(t_order_kernel), T(t_one_ring),
		       T(t_what_is_handed_over), T(t_position), T(t_loop_sleeps),
		       T(t_verb_fails_at_start), T(t_verb_fails_at_start_kernel),
		       T(t_verb_fails_at_stop), T(t_position_unknown), T(t_failure_is_said_once),
		       T(t_private_bits), T(t_error_eventfd), T(t_open_errors),
		       T(t_open_steps_fail), T(t_kernel_too_old), T(t_feature_words), T(t_given),
		       T(t_in_order_is_not_offered));
}
