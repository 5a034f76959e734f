// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the text of -n to a NIC: taps of the kernel's own driver, in a network namespace of each
 * test's own, on a machine without CPUs. Skipped where that cannot be had.
 */
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "../tap.h"
#include "devices.h"
#include "fake/fake-driver.h"
#include "log.h"
#include "virtio/net.h"

static char said[1024]; /* what was logged, one line after the other */

static void catch_log(enum log_level level, const char *line)
{
	size_t n = strlen(said);

	(void)level;
	snprintf(said + n, sizeof(said) - n, "%s\n", line);
}

static void own_network(void)
{
	int fd;

	if (unshare(CLONE_NEWNET) < 0)
		SKIP("no network namespace of one's own: %s", strerror(errno));
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		SKIP("/dev/net/tun: %s", strerror(errno));
	close(fd);
	log_set_sink(catch_log);
}

/* A NIC of @option on a machine with @cpus; 0, or what went wrong. */
static int make(struct fake_machine *fm, const char *option, unsigned cpus)
{
	struct device_list list = { .nr = 0 };
	int err;

	said[0] = 0;
	fake_machine_init(fm, NULL);
	fm->m.nr_cpus = cpus;
	err = device_list_add(&list, &device_types[0], option);
	if (!err)
		err = device_list_create(&fm->m, &list, "test");
	device_list_free(&list);
	return err;
}

static void refused(const char *option, const char *text)
{
	struct fake_machine fm;
	const char *nl;

	CHECK(make(&fm, option, 4) < 0);
	fake_machine_free(&fm);
	nl = strchr(said, '\n');
	if (!strstr(said, text) || !nl || nl[1]) {
		printf("# %s: said: %s# not one line with: %s\n", option, said, text);
		tap_failed++;
	}
}

static struct virtio_device *nic_of(struct fake_machine *fm)
{
	return container_of(fm->m.devices, struct virtio_device, device);
}

static const struct net_config *config_of(struct fake_machine *fm)
{
	return nic_of(fm)->config;
}

static void make_persistent(const char *name, short flags)
{
	struct ifreq ifr = { .ifr_flags = (short)(flags | IFF_TAP | IFF_NO_PI) };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	REQUIRE(fd >= 0 && ioctl(fd, TUNSETIFF, &ifr) == 0 && ioctl(fd, TUNSETPERSIST, 1UL) == 0);
	close(fd);
}

static void check_pairs(const char *option, unsigned cpus, unsigned pairs)
{
	struct fake_machine fm;

	REQUIRE(make(&fm, option, cpus) == 0);
	CHECK_EQ(config_of(&fm)->max_virtqueue_pairs, pairs);
	CHECK_EQ(nic_of(&fm)->nr_vqs, 2 * pairs + 1);
	CHECK_EQ(!!(nic_of(&fm)->offered[0] & BIT(NET_B_MQ)), pairs > 1);
	CHECK_EQ(said[0], 0);
	fake_machine_free(&fm);
}

static void t_queues(void)
{
	own_network();
	make_persistent("one", 0);
	make_persistent("many", IFF_MULTI_QUEUE);
	check_pairs("mode=tap", 0, 1);
	check_pairs("mode=tap", 1, 1);
	check_pairs("mode=tap", 5, 5);
	check_pairs("mode=tap", 64, 8);
	check_pairs("mode=tap,tapif=t0", 2, 2);
	check_pairs("mode=tap,tapif=one", 4, 1);
	check_pairs("mode=tap,tapif=many", 4, 4);
	check_pairs("mode=tap,tapif=many,queues=1", 4, 1);
	check_pairs("mode=tap,queues=16", 1, 16);
	check_pairs("mode=tap,mq=3", 1, 3);
	check_pairs("mode=tap,tapif=one,queues=1", 4, 1);
	refused("mode=tap,tapif=one,queues=2", "-n: queues=2: tap one has one queue");
	refused("mode=tap,queues=17", "-n: queues=17");
	refused("mode=tap,queues=2,mq=2", "-n: mq=2: queues= and mq= mean the same");
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_queues));
}
