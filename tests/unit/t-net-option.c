// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the text of -n to a NIC: taps of the kernel's own driver, in a network namespace of each
 * test's own, on a machine without CPUs. Skipped where that cannot be had.
 */
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "../tap.h"
#include "dev-vhost.h"
#include "devices.h"
#include "log.h"

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

/* --- what the user brings --- */

/* As a program would that starts lkvm: fds that stay open over exec. */
static int open_queue(const char *name, short flags)
{
	struct ifreq ifr = { .ifr_flags = flags };
	int fd = open("/dev/net/tun", O_RDWR);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	REQUIRE(fd >= 0 && ioctl(fd, TUNSETIFF, &ifr) == 0);
	return fd;
}

static const char *option_of(const char *format, int a, int b)
{
	static char buf[128];

	snprintf(buf, sizeof(buf), format, a, b);
	return buf;
}

static void t_fd(void)
{
	const short good = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	struct fake_machine fm;
	int a, b;

	own_network();
	a = open_queue("t0", good);
	REQUIRE(make(&fm, option_of("mode=tap,fd=%d", a, 0), 4) == 0);
	CHECK_EQ(config_of(&fm)->max_virtqueue_pairs, 1);
	CHECK(fcntl(a, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(a, F_GETFD) & FD_CLOEXEC);
	CHECK(nic_of(&fm)->offered[0] & BIT(NET_B_CSUM));
	CHECK(!(nic_of(&fm)->offered[0] & BIT(NET_B_MTU))); /* nobody knows it */
	fake_machine_free(&fm);
	CHECK(fcntl(a, F_GETFD) < 0);

	a = open_queue("t1", good | IFF_MULTI_QUEUE);
	b = open_queue("t1", good | IFF_MULTI_QUEUE);
	REQUIRE(ioctl(b, TUNSETQUEUE, &(struct ifreq){ .ifr_flags = IFF_DETACH_QUEUE }) == 0);
	REQUIRE(make(&fm, option_of("mode=tap,mtu=9000,fd=%d:%d", a, b), 4) == 0);
	CHECK_EQ(config_of(&fm)->max_virtqueue_pairs, 2);
	CHECK_EQ(config_of(&fm)->mtu, 9000);
	CHECK_EQ(said[0], 0);
	fake_machine_free(&fm);
	CHECK(fcntl(b, F_GETFD) < 0);
}

static void t_fd_refused(void)
{
	const short good = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;

	own_network();
	refused(option_of("mode=tap,fd=%d", open("/dev/null", O_RDWR), 0),
		"it is not the fd of a tap; open it with IFF_TAP | IFF_NO_PI | IFF_VNET_HDR");
	refused(option_of("mode=tap,fd=%d", open("/dev/net/tun", O_RDWR), 0),
		"it is not the fd of a tap");
	refused(option_of("mode=tap,fd=%d", open_queue("n0", IFF_TUN | IFF_NO_PI), 0),
		"it is a tun, not a tap");
	refused(option_of("mode=tap,fd=%d", open_queue("t0", IFF_TAP | IFF_NO_PI), 0),
		"the tap's frames have no virtio header");
	refused(option_of("mode=tap,fd=%d:%d", open_queue("t0", good), open_queue("t1", good)),
		"the tap has one queue; open it with IFF_MULTI_QUEUE");
	refused(option_of("mode=tap,fd=%d:%d", open_queue("t2", good | IFF_MULTI_QUEUE),
			  open_queue("t3", good | IFF_MULTI_QUEUE)),
		"it is of another tap than the first");
}

static void t_vhostfd(void)
{
	struct fake_vhost *fv[2];
	struct fake_machine fm;
	int fd[2];

	own_network();
	for (unsigned i = 0; i < 2; i++) {
		fake_nic_dev_vhost = fv[i] = fake_vhost_bare(-1, FAKE_VHOST_FEATURES);
		fd[i] = open("/dev/vhost-net", O_RDWR);
		fcntl(fd[i], F_SETFD, 0);
	}
	REQUIRE(make(&fm, option_of("mode=tap,poll_us=20,vhostfd=%d:%d", fd[0], fd[1]), 4) == 0);
	CHECK_EQ(config_of(&fm)->max_virtqueue_pairs, 2);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(fv[i]->owned);
		CHECK(fv[i]->poll_us[0] == 20 && fv[i]->poll_us[1] == 20);
		CHECK(strcmp(nic_of(&fm)->vq[2 * i].be->ops->name, "vhost") == 0);
	}
	fake_machine_free(&fm);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(fcntl(fd[i], F_GETFD) < 0);
		fake_vhost_free(fv[i]);
	}

	/* a tap that cannot be had: they are closed all the same */
	make_persistent("one", 0);
	for (unsigned i = 0; i < 2; i++) {
		fd[i] = open("/dev/vhost-net", O_RDWR);
		fcntl(fd[i], F_SETFD, 0);
	}
	refused(option_of("mode=tap,tapif=one,vhostfd=%d:%d", fd[0], fd[1]),
		"tap one has one queue");
	CHECK(fcntl(fd[0], F_GETFD) < 0 && fcntl(fd[1], F_GETFD) < 0);
}

static void t_vhost_for_each_pair(void)
{
	struct fake_vhost *fv;
	struct fake_machine fm;

	own_network();
	fake_nic_dev_vhost = fv = fake_vhost_bare(-1, FAKE_VHOST_FEATURES);
	CHECK_EQ(make(&fm, "mode=tap,vhost=1", 1), 0);
	CHECK_EQ(fv->poll_us[0], 0);
	fake_machine_free(&fm);
	fake_vhost_free(fv);
	fake_nic_dev_vhost = fv = fake_vhost_bare(-1, FAKE_VHOST_FEATURES);
	refused("mode=tap,vhost=1,queues=2", "VHOST_SET_OWNER"); /* here both are the same one */
	fake_vhost_free(fv);
}

static void t_ring_size_and_mtu(void)
{
	struct fake_machine fm;

	own_network();
	REQUIRE(make(&fm, "mode=tap,queue_size=1024,mtu=68", 1) == 0);
	CHECK_EQ(nic_of(&fm)->vq[0].num_max, 1024);
	CHECK_EQ(nic_of(&fm)->vq[2].num_max, 64);
	CHECK_EQ(config_of(&fm)->mtu, 68);
	CHECK(nic_of(&fm)->offered[0] & BIT(NET_B_MTU));
	fake_machine_free(&fm);
	REQUIRE(make(&fm, "mode=tap,queue_size=64", 1) == 0);
	CHECK_EQ(nic_of(&fm)->vq[1].num_max, 64);
	CHECK_EQ(config_of(&fm)->mtu, 1500);
	fake_machine_free(&fm);
}

static int if_ioctl(const char *name, unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
	r = ioctl(fd, request, ifr) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* The tap is a port, up and without address; the bridge's MTU stays. */
static void t_bridge(void)
{
	struct ifreq ifr = { 0 };
	struct fake_machine fm;
	int fd;

	own_network();
	refused("mode=tap,bridge=br0", "-n: bridge=br0: there is no such bridge");
	refused("mode=tap,bridge=lo", "-n: bridge=lo: tap tap0 cannot join it");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (ioctl(fd, SIOCBRADDBR, "br0") < 0)
		SKIP("no bridges in this kernel: %s", strerror(errno));
	close(fd);
	ifr.ifr_mtu = 4000;
	REQUIRE(if_ioctl("br0", SIOCSIFMTU, &ifr) == 0);
	REQUIRE(make(&fm, "mode=tap,tapif=t0,bridge=br0", 1) == 0);
	CHECK_EQ(config_of(&fm)->mtu, 4000);
	CHECK(if_ioctl("t0", SIOCGIFADDR, &ifr) < 0);
	CHECK(if_ioctl("t0", SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_UP));
	fd = (int)if_nametoindex("t0");
	ifr = (struct ifreq){ .ifr_ifindex = fd };
	CHECK_EQ(if_ioctl("br0", SIOCBRADDIF, &ifr), -EBUSY); /* it is a port already */
	CHECK(if_ioctl("br0", SIOCGIFMTU, &ifr) == 0 && ifr.ifr_mtu == 4000);
	fake_machine_free(&fm);
	make_persistent("t1", 0);
	refused("mode=tap,tapif=t1,bridge=br0", "ip link set t1 master br0");
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_queues), T(t_fd), T(t_fd_refused), T(t_vhostfd),
		       T(t_vhost_for_each_pair), T(t_ring_size_and_mtu), T(t_bridge));
}
