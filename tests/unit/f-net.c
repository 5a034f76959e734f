// SPDX-License-Identifier: GPL-2.0-only
/*
 * The n-th call of making or starting a NIC fails: nothing is left behind, and what can be tried
 * again works then.
 */
#include <sched.h>

#include "tap.h"
#include "dev-vhost.h"
#include "fake/fault.h"
#include "log.h"

#define MAX_ROUNDS 500

static u8 frame[100], got[NET_MAX_FRAME];

static void quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* Everything from the netif up, on a machine that is there. True = it was made. */
static bool make(struct fake_machine *fm, struct fake_netif *fn, struct fake_vhost *fv)
{
	struct net_params params = { .queue_size = 256, .mac = { 2 }, .vhost = fv };
	struct virtio_device *dev;
	int err = 0;

	dev = net_new(&fm->m, &params, &fn->nif, &err);
	if (!dev) {
		CHECK(err < 0);
		return false;
	}
	if (virtio_pci_attach(dev)) {
		virtio_free(dev);
		return false;
	}
	virtio_register(dev);
	return true;
}

static void making_fails(bool with_vhost)
{
	const char *hit = "";
	unsigned n;

	log_set_sink(quiet);
	for (n = 1; hit && n < MAX_ROUNDS; n++) {
		int fds = tap_open_fds();
		bool closed = false, made;
		struct fake_machine fm;
		struct fake_netif *fn;
		struct fake_vhost *fv = NULL;

		fake_machine_init(&fm, NULL);
		fn = fake_netif_new(with_vhost ? 1 : 3);
		fn->closed = &closed;
		if (with_vhost)
			fv = fake_nic_dev_vhost =
				fake_vhost_bare(fn->nif.fd[0], FAKE_VHOST_FEATURES);
		fault_arm(n, 0);
		made = make(&fm, fn, fv);
		hit = fault_disarm();
		CHECK_EQ(made, !hit);
		CHECK_EQ(closed, !made);
		fake_machine_free(&fm);
		CHECK(closed);
		fake_vhost_free(fv);
		CHECK_EQ(tap_open_fds(), fds);
	}
	CHECK(n > 10 && n < MAX_ROUNDS);
}

static void t_making(void)
{
	making_fails(false);
}

static void t_making_with_vhost(void)
{
	making_fails(true);
}

static bool moves_frames(struct fake_nic *nic)
{
	long n;

	fake_nic_post(nic, 2, 1526);
	fake_nic_frame(frame, 100, 1);
	return fake_nic_send(nic, frame, 100) && fake_netif_inject(nic->fn, frame, 100) &&
	       NIC_WAIT(nic, (n = fake_netif_take(nic->fn, NULL, got, sizeof(got))) == 100) &&
	       NIC_WAIT(nic, (n = fake_nic_recv(nic, got, sizeof(got), NULL)) == 100);
}

/* From reset to DRIVER_OK. A start that failed asks for a reset, and the next one works. */
static void starting_fails(enum nic_kind kind)
{
	const char *hit = "";
	struct fake_nic nic;
	unsigned n;

	log_set_sink(quiet);
	fake_nic_open(&nic, kind, NULL);
	for (n = 1; hit && n < MAX_ROUNDS; n++) {
		int fds;
		bool ok;

		fake_driver_reset(&nic.drv);
		fds = tap_open_fds();
		fault_arm(n, 0);
		ok = fake_nic_restart(&nic);
		hit = fault_disarm();
		CHECK_EQ(ok, !hit);
		if (!ok)
			CHECK(fake_driver_status(&nic.drv) & VIRTIO_S_NEEDS_RESET);
		fake_driver_reset(&nic.drv);
		CHECK_EQ(tap_open_fds(), fds);
		REQUIRE(fake_nic_restart(&nic));
		CHECK(moves_frames(&nic));
	}
	CHECK(n > 3 && n < MAX_ROUNDS);
	fake_nic_free(&nic);
}

static void t_starting(void)
{
	starting_fails(NIC_USER);
}

static void t_starting_with_vhost(void)
{
	starting_fails(NIC_VHOST_KERNEL);
}

/* To vhost, opened for the first time: when a call fails our loop still serves it. */
static void t_switching(void)
{
	const char *hit = "";
	unsigned n;

	log_set_sink(quiet);
	for (n = 1; hit && n < MAX_ROUNDS; n++) {
		struct fake_nic nic;
		int r;

		fake_nic_open(&nic, NIC_USER, NULL);
		nic.kind = NIC_VHOST_KERNEL;
		fake_nic_make_vhost(&nic, 0);
		fault_arm(n, 0);
		r = net_set_vhost(nic.dev, true);
		hit = fault_disarm();
		CHECK_EQ(r == 0, !hit);
		CHECK_EQ(!net_device_stats(nic.dev, 0), !hit);
		CHECK(moves_frames(&nic));
		fake_nic_free(&nic);
	}
	CHECK(n > 10 && n < MAX_ROUNDS);
}

static int open_and_close(void)
{
	struct tap_config cfg = { .host_ip = "10.0.0.1", .downscript = "/bin/true", .queues = 3 };
	int err;
	struct netif *nif = tap_open(&cfg, &err);

	if (!nif)
		return err;
	fault_disarm(); /* closing is not what is looked at: it cannot fail */
	nif->ops->close(nif);
	return 0;
}

/* Some calls are only questions, as which offloads there are: they may fail. */
static void t_tap(void)
{
	int fd;

	if (unshare(CLONE_NEWNET) < 0)
		SKIP("no network namespace of one's own: %s", strerror(errno));
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		SKIP("/dev/net/tun: %s", strerror(errno));
	close(fd);
	CHECK(fault_loop_lenient(open_and_close) > 10);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_making), T(t_making_with_vhost), T(t_starting),
		       T(t_starting_with_vhost), T(t_switching), T(t_tap));
}
