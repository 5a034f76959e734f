// SPDX-License-Identifier: GPL-2.0-only
/*
 * tap.c against the kernel's own tun driver, in a network namespace of each test's own: nothing of
 * the host's network is touched. Skipped, with the reason, where that namespace or /dev/net/tun
 * cannot be had.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "../tap.h"
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

static struct netif *open_tap(const char *ifname, const char *host_ip, const char *script,
			      const char *downscript, int *err)
{
	struct tap_config cfg = { .ifname = ifname,
				  .host_ip = host_ip,
				  .script = script,
				  .downscript = downscript,
				  .queues = 1 };

	said[0] = 0;
	return tap_open(&cfg, err);
}

/* One line that has @text in it, and nothing else. */
static void check_said(const char *text)
{
	const char *nl = strchr(said, '\n');

	if (!strstr(said, text) || !nl || nl[1]) {
		printf("# said: %s# not one line with: %s\n", said, text);
		tap_failed++;
	}
}

/* --- asking the kernel --- */

static int if_ioctl(const char *name, unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
	r = ioctl(fd, request, ifr) < 0 ? -errno : 0;
	close(fd);
	return r;
}

static bool if_exists(const char *name)
{
	struct ifreq ifr = { 0 };

	return if_ioctl(name, SIOCGIFINDEX, &ifr) == 0;
}

static bool if_up(const char *name)
{
	struct ifreq ifr = { 0 };

	return if_ioctl(name, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_UP);
}

static void if_set_up(const char *name, bool up)
{
	struct ifreq ifr = { 0 };

	REQUIRE(if_ioctl(name, SIOCGIFFLAGS, &ifr) == 0);
	ifr.ifr_flags = (short)(up ? ifr.ifr_flags | IFF_UP : ifr.ifr_flags & ~IFF_UP);
	REQUIRE(if_ioctl(name, SIOCSIFFLAGS, &ifr) == 0);
}

/* "a.b.c.d" or "" */
static const char *if_addr(const char *name, unsigned long request, char *buf)
{
	struct ifreq ifr = { 0 };
	struct sockaddr_in sin;

	buf[0] = 0;
	if (if_ioctl(name, request, &ifr) == 0) {
		memcpy(&sin, &ifr.ifr_addr, sizeof(sin));
		inet_ntop(AF_INET, &sin.sin_addr, buf, INET_ADDRSTRLEN);
	}
	return buf;
}

static void check_addr(const char *name, const char *addr, const char *mask)
{
	char a[INET_ADDRSTRLEN], m[INET_ADDRSTRLEN];

	if (strcmp(if_addr(name, SIOCGIFADDR, a), addr) ||
	    strcmp(if_addr(name, SIOCGIFNETMASK, m), mask)) {
		printf("# %s has address %s mask %s, not %s %s\n", name, a, m, addr, mask);
		tap_failed++;
	}
}

/* An interface's offload: what the stack may send to it unfinished. */
static u32 if_offload(const char *name, u32 cmd)
{
	struct ethtool_value v = { .cmd = cmd };
	struct ifreq ifr = { .ifr_data = (void *)&v };

	REQUIRE(if_ioctl(name, SIOCETHTOOL, &ifr) == 0);
	return v.data;
}

/* A tap (or tun) that stays, as "ip tuntap add" makes it. */
static void make_persistent(const char *name, short flags)
{
	struct ifreq ifr = { .ifr_flags = flags };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	REQUIRE(fd >= 0 && ioctl(fd, TUNSETIFF, &ifr) == 0 && ioctl(fd, TUNSETPERSIST, 1UL) == 0);
	close(fd);
}

static void delete_if(const char *name)
{
	struct {
		struct nlmsghdr nh;
		struct ifinfomsg ifi;
	} req = {
		.nh = { .nlmsg_len = sizeof(req),
			.nlmsg_type = RTM_DELLINK,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.ifi = { .ifi_index = (int)if_nametoindex(name) },
	};
	struct {
		struct nlmsghdr nh;
		struct nlmsgerr err;
		char more[256];
	} ack;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	REQUIRE(fd >= 0 && send(fd, &req, sizeof(req), 0) == sizeof(req));
	REQUIRE(recv(fd, &ack, sizeof(ack), 0) > 0 && ack.err.error == 0);
	close(fd);
}

static char *write_script(char *path, const char *text)
{
	int fd;

	snprintf(path, 64, "/tmp/t-tap-XXXXXX");
	fd = mkstemp(path);
	REQUIRE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	REQUIRE(fchmod(fd, 0700) == 0);
	close(fd);
	return path;
}

/* --- tests --- */

static void t_made(void)
{
	char name[16];
	struct netif *nif;
	int err;

	own_network();
	nif = open_tap(NULL, NULL, NULL, NULL, &err);
	REQUIRE(nif);
	memcpy(name, nif->name, sizeof(name));
	CHECK(if_up(name));
	check_addr(name, "192.168.33.1", "255.255.255.0");
	CHECK_EQ(nif->mtu, 1500);
	CHECK(fcntl(nif->fd[0], F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(nif->fd[0], F_GETFD) & FD_CLOEXEC);
	nif->ops->close(nif);
	CHECK(!if_exists(name));
	CHECK_EQ(said[0], 0);
}

static void t_made_with_name_and_address(void)
{
	struct netif *nif;
	int err;

	own_network();
	nif = open_tap("abcdefghijklmno", "10.1.2.3/20", NULL, NULL, &err);
	REQUIRE(nif);
	CHECK(strcmp(nif->name, "abcdefghijklmno") == 0);
	check_addr(nif->name, "10.1.2.3", "255.255.240.0");
	nif->ops->close(nif);
	nif = open_tap("t0", "10.1.2.3", NULL, NULL, &err);
	REQUIRE(nif);
	check_addr("t0", "10.1.2.3", "255.255.255.0");
	nif->ops->close(nif);
}

static void t_bad_values(void)
{
	static const char *const bad_ip[] = { "",
					      "10.0.0",
					      "10.0.0.1/0",
					      "10.0.0.1/33",
					      "10.0.0.1/",
					      "10.0.0.1/8x",
					      "10.0.0.1/+8",
					      "10.0.0.256",
					      "host",
					      "1000000000000000000000.0.0.1" };
	int err;

	own_network();
	CHECK(!open_tap("abcdefghijklmnop", NULL, NULL, NULL, &err));
	CHECK_EQ(err, -EINVAL);
	check_said("abcdefghijklmnop");
	for (unsigned i = 0; i < ARRAY_SIZE(bad_ip); i++) {
		CHECK(!open_tap(NULL, bad_ip[i], NULL, NULL, &err));
		CHECK_EQ(err, -EINVAL);
		check_said("host_ip");
	}
	CHECK(!open_tap("a/b", NULL, NULL, NULL, &err)); /* the kernel's rule */
	CHECK_EQ(err, -EINVAL);
	check_said("a/b");
}

static void t_existing_is_left_as_it_was(void)
{
	struct netif *nif;
	int err;

	own_network();
	make_persistent("t0", IFF_TAP | IFF_NO_PI);
	nif = open_tap("t0", NULL, NULL, NULL, &err);
	REQUIRE(nif);
	CHECK(if_up("t0"));
	check_addr("t0", "", "");
	CHECK_EQ(nif->ops->set_offload(nif, nif->features), 0);
	nif->ops->close(nif);
	CHECK(if_exists("t0") && !if_up("t0"));
	CHECK_EQ(if_offload("t0", ETHTOOL_GTSO), 0);

	if_set_up("t0", true);
	nif = open_tap("t0", "10.0.0.1/8", NULL, NULL, &err);
	REQUIRE(nif);
	check_addr("t0", "10.0.0.1", "255.0.0.0");
	nif->ops->close(nif);
	CHECK(if_up("t0"));
	check_addr("t0", "", "");
}

static void t_multi_queue(void)
{
	struct netif *nif, *second;
	int err;

	own_network();
	make_persistent("t0", IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE);
	nif = open_tap("t0", NULL, NULL, NULL, &err);
	REQUIRE(nif);
	CHECK_EQ(said[0], 0);
	second = open_tap("t0", NULL, NULL, NULL, &err); /* the kernel would let it in beside us */
	CHECK(!second);
	CHECK_EQ(err, -EBUSY);
	check_said("-n: tapif=t0: Device or resource busy: another program has it open");
	nif->ops->close(nif);
	nif = open_tap("t0", NULL, NULL, NULL, &err);
	REQUIRE(nif);
	nif->ops->close(nif);
}

static void t_busy(void)
{
	struct netif *nif;
	int err;

	own_network();
	make_persistent("t0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
	nif = open_tap("t0", NULL, NULL, NULL, &err);
	REQUIRE(nif);
	CHECK(!open_tap("t0", NULL, NULL, NULL, &err));
	CHECK_EQ(err, -EBUSY);
	check_said("-n: tapif=t0: Device or resource busy: another program has it open");
	nif->ops->close(nif);
}

static void t_not_a_tap(void)
{
	struct ifreq ifr = { 0 };
	int err;

	own_network();
	make_persistent("n0", IFF_TUN | IFF_NO_PI);
	CHECK(!open_tap("n0", NULL, NULL, NULL, &err));
	CHECK_EQ(err, -EINVAL);
	check_said("-n: tapif=n0: this is of kind tun, not a tap");
	CHECK(!open_tap("lo", NULL, NULL, NULL, &err));
	check_said("-n: tapif=lo: this is of kind");
	if (if_ioctl("br0", SIOCBRADDBR, &ifr) == 0) {
		CHECK(!open_tap("br0", NULL, NULL, NULL, &err));
		check_said("-n: tapif=br0: this is of kind bridge, not a tap");
	}
}

static void t_script(void)
{
	char path[64], out[80], text[512], result[256] = { 0 };
	struct netif *nif;
	sigset_t all;
	FILE *f;
	int err;

	own_network();
	write_script(path, "");
	snprintf(out, sizeof(out), "%s.out", path);
	snprintf(text, sizeof(text),
		 "#!/bin/sh\n{ echo $1 $#; ls -l /proc/self/fd | grep -c net/tun; "
		 "grep -c 'SigBlk:.0000000000000000' /proc/self/status; } > %s\n",
		 out);
	unlink(path);
	write_script(path, text);
	snprintf(out, sizeof(out), "%s", strstr(text, "/tmp/"));
	out[strlen(out) - 1] = 0; /* the newline */

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	nif = open_tap("t0", NULL, path, NULL, &err);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	REQUIRE(nif);
	CHECK(if_up("t0"));
	check_addr("t0", "", "");
	nif->ops->close(nif);
	f = fopen(out, "re");
	REQUIRE(f);
	CHECK(fread(result, 1, sizeof(result) - 1, f) > 0);
	fclose(f);
	if (strcmp(result, "t0 1\n0\n1\n") != 0) {
		printf("# the script saw: %s\n", result);
		tap_failed++;
	}
	unlink(out);
	unlink(path);
}

static void t_script_fails(void)
{
	char path[64];
	int err;

	own_network();
	write_script(path, "#!/bin/sh\nexit 3\n");
	CHECK(!open_tap("t0", NULL, path, NULL, &err));
	CHECK_EQ(err, -ECANCELED);
	check_said("it ended with status 3");
	CHECK(!if_exists("t0"));
	unlink(path);
	CHECK(!open_tap("t0", NULL, path, NULL, &err));
	CHECK_EQ(err, -ENOENT);
	check_said(path);
	CHECK(!if_exists("t0"));
}

static void t_downscript(void)
{
	char path[64], text[128];
	struct netif *nif;
	int err;

	own_network();
	write_script(path, "");
	snprintf(text, sizeof(text), "#!/bin/sh\necho $1 > %s.out\n", path);
	unlink(path);
	write_script(path, text);
	nif = open_tap("t0", NULL, NULL, path, &err);
	REQUIRE(nif);
	nif->ops->close(nif);
	*strrchr(text, '\n') = 0;
	CHECK(unlink(strstr(text, "/tmp/")) == 0);
	unlink(path);
}

static void t_mtu(void)
{
	struct ifreq ifr = { .ifr_mtu = 9000 };
	struct netif *nif;
	int err;

	own_network();
	make_persistent("t0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
	REQUIRE(if_ioctl("t0", SIOCSIFMTU, &ifr) == 0);
	nif = open_tap("t0", NULL, NULL, NULL, &err);
	REQUIRE(nif);
	CHECK_EQ(nif->mtu, 9000);
	nif->ops->close(nif);
	REQUIRE(if_ioctl("t0", SIOCGIFMTU, &ifr) == 0);
	CHECK_EQ(ifr.ifr_mtu, 9000);
}

/* The header's length is the device's to say, at each start. */
static void t_hdr_len(void)
{
	static const unsigned want[] = { NET_HDR_LEN_LEGACY, NET_HDR_LEN };
	struct netif *nif;
	int err, len = 0;

	own_network();
	nif = open_tap(NULL, NULL, NULL, NULL, &err);
	REQUIRE(nif);
	CHECK(ioctl(nif->fd[0], TUNGETVNETHDRSZ, &len) == 0);
	CHECK_EQ(len, NET_HDR_LEN);
	for (unsigned i = 0; i < ARRAY_SIZE(want); i++) {
		CHECK_EQ(nif->ops->set_hdr_len(nif, want[i]), 0);
		CHECK(ioctl(nif->fd[0], TUNGETVNETHDRSZ, &len) == 0);
		CHECK_EQ(len, want[i]);
	}
	CHECK_EQ(nif->ops->set_hdr_len(nif, 9), -EINVAL);
	nif->ops->close(nif);
}

/*
 * What the driver acknowledged, and what the kernel then may hand us: receive checksums and TSO
 * over IPv4.
 */
static void t_offload(void)
{
	const u64 csum = BIT(NET_B_GUEST_CSUM), tso4 = BIT(NET_B_GUEST_TSO4);
	const u64 all = csum | tso4 | BIT(NET_B_GUEST_TSO6) | BIT(NET_B_GUEST_ECN);
	const struct {
		u64 features;
		bool csum, tso;
	} want[] = {
		{ 0, false, false },
		{ csum, true, false },
		{ csum | tso4, true, true },
		{ csum | BIT(NET_B_GUEST_ECN), true, false },
		{ csum | BIT(NET_B_GUEST_USO4), true, false }, /* half of USO is none */
		{ tso4, false, false },
		{ BIT(NET_B_CSUM) | BIT(NET_B_HOST_TSO4), false, false },
		{ all, true, true },
		{ 0, false, false },
	};
	struct netif *nif;
	int err;

	own_network();
	nif = open_tap("t0", NULL, NULL, NULL, &err);
	REQUIRE(nif);
	CHECK_EQ(if_offload("t0", ETHTOOL_GTXCSUM), 0);
	CHECK((nif->features & all) == all);
	CHECK(nif->features & BIT(NET_B_HOST_TSO4) && nif->features & BIT(NET_B_HOST_ECN));
	CHECK_EQ(!(nif->features & BIT(NET_B_HOST_USO)), !(nif->features & BIT(NET_B_GUEST_USO4)));
	for (unsigned i = 0; i < ARRAY_SIZE(want); i++) {
		CHECK_EQ(nif->ops->set_offload(nif, want[i].features), 0);
		CHECK_EQ(!!if_offload("t0", ETHTOOL_GTXCSUM), want[i].csum);
		CHECK_EQ(!!if_offload("t0", ETHTOOL_GTSO), want[i].tso);
	}
	nif->ops->close(nif);
}

static int packet_socket(const char *ifname)
{
	struct sockaddr_ll sll = { .sll_family = AF_PACKET,
				   .sll_protocol = htons(ETH_P_ALL),
				   .sll_ifindex = (int)if_nametoindex(ifname) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&sll, sizeof(sll)) == 0);
	return fd;
}

/* A broadcast frame of a protocol that nobody knows, so that nothing else looks like it. */
static void make_frame(u8 *frame, unsigned len)
{
	memset(frame, 0xff, 6);
	memset(frame + 6, 0x02, 6);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	for (unsigned i = 14; i < len; i++)
		frame[i] = (u8)i;
}

/* Receives until it is our frame; its length, header included. */
static long recv_ours(struct netif *nif, const struct iovec *iov, unsigned nr, const u8 *proto)
{
	for (int i = 0; i < 100; i++) {
		struct pollfd p = { .fd = nif->fd[0], .events = POLLIN };
		long n;

		poll(&p, 1, 1000);
		n = nif->ops->recv(nif, 0, iov, nr);
		if (n > 0 && proto[0] == 0x88 && proto[1] == 0xb5)
			return n;
	}
	return -1;
}

static void t_frames(void)
{
	u8 out[12 + 1000] = { 0 }, in[2000], hdr[12];
	struct iovec iov[3] = { { out, 5 }, { out + 5, 20 }, { out + 25, sizeof(out) - 25 } };
	struct netif *nif;
	bool found = false;
	int err, fd;

	own_network();
	nif = open_tap("t0", NULL, NULL, NULL, &err);
	REQUIRE(nif);
	fd = packet_socket("t0");
	make_frame(out + 12, 1000);
	CHECK_EQ(nif->ops->send(nif, 0, iov, 3), sizeof(out));
	while (!found && recv(fd, in, sizeof(in), 0) > 0)
		found = memcmp(in, out + 12, 1000) == 0;

	memset(in, 0, sizeof(in));
	CHECK_EQ(send(fd, out + 12, 600, 0), 600);
	iov[0] = (struct iovec){ hdr, 12 };
	iov[1] = (struct iovec){ in, 100 };
	iov[2] = (struct iovec){ in + 100, sizeof(in) - 100 };
	CHECK_EQ(recv_ours(nif, iov, 3, in + 12), 612);
	CHECK(memcmp(in, out + 12, 600) == 0);
	close(fd);
	nif->ops->close(nif);
}

static void t_down_and_deleted(void)
{
	u8 out[12 + 100] = { 0 };
	struct iovec iov = { out, sizeof(out) };
	struct pollfd p = { .events = POLLIN };
	struct netif *nif;
	int err;

	own_network();
	make_persistent("t0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
	nif = open_tap("t0", NULL, NULL, NULL, &err);
	REQUIRE(nif);
	make_frame(out + 12, 100);
	if_set_up("t0", false);
	CHECK_EQ(nif->ops->send(nif, 0, &iov, 1), -EIO);
	iov.iov_len = 10;
	CHECK_EQ(nif->ops->send(nif, 0, &iov, 1), -EINVAL);
	iov.iov_len = sizeof(out);
	if_set_up("t0", true);
	CHECK_EQ(nif->ops->send(nif, 0, &iov, 1), sizeof(out));

	delete_if("t0");
	p.fd = nif->fd[0];
	CHECK_EQ(poll(&p, 1, 1000), 1);
	CHECK(p.revents & POLLERR);
	CHECK_EQ(nif->ops->send(nif, 0, &iov, 1), -EBADFD);
	CHECK_EQ(nif->ops->recv(nif, 0, &iov, 1), -EBADFD);
	CHECK_EQ(nif->ops->set_offload(nif, nif->features), 0);
	nif->ops->close(nif);
}

static bool if_running(const char *name)
{
	struct ifreq ifr = { 0 };

	return if_ioctl(name, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_RUNNING);
}

static void t_link(void)
{
	struct netif *nif;
	int err;

	own_network();
	make_persistent("t0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
	for (unsigned i = 0; i < 3; i++) {
		nif = open_tap("t0", NULL, NULL, NULL, &err);
		REQUIRE(nif);
		for (int n = 0; n < 1000 && !if_running("t0"); n++)
			usleep(10000); /* the kernel tells it a moment later */
		CHECK(if_running("t0"));
		CHECK_EQ(nif->ops->set_link(nif, true), 0);
		CHECK(if_running("t0"));
		CHECK_EQ(nif->ops->set_link(nif, false), 0);
		for (int n = 0; n < 1000 && if_running("t0"); n++)
			usleep(10000);
		CHECK(!if_running("t0"));
		if (i == 0)
			CHECK_EQ(nif->ops->set_link(nif, true), 0);
		nif->ops->close(nif);
	}
	nif = open_tap("t0", NULL, NULL, NULL, &err);
	REQUIRE(nif);
	delete_if("t0");
	CHECK_EQ(nif->ops->set_link(nif, false), 0);
	nif->ops->close(nif);
}

/* --- several queues --- */

static struct netif *open_queues(const char *ifname, unsigned queues, bool or_one, int *err)
{
	struct tap_config cfg = { .ifname = ifname, .queues = queues, .or_one = or_one };

	said[0] = 0;
	return tap_open(&cfg, err);
}

/* An UDP packet of flow @n, for the kernel to choose a queue by. */
static void make_flow(u8 *frame, unsigned n)
{
	static const u8 ip[28] = { 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10,
				   0,    0, 1, 10, 0, 0, 2, 0, 0,  0,  9, 0, 26 };

	make_frame(frame, 60);
	frame[12] = 0x08;
	frame[13] = 0;
	memcpy(frame + 14, ip, sizeof(ip));
	frame[14 + 20] = (u8)(n >> 8);
	frame[14 + 21] = (u8)n;
}

/* Sends 256 flows out of the interface; how many arrived on each queue. */
static void count_flows(struct netif *nif, unsigned *count)
{
	int fd = packet_socket(nif->name);
	u8 frame[60], in[2000];
	struct iovec iov = { in, sizeof(in) };

	memset(count, 0, nif->nr_queues * sizeof(*count));
	for (unsigned q = 0; q < nif->nr_queues; q++)
		while (nif->ops->recv(nif, q, &iov, 1) > 0)
			;
	for (unsigned n = 0; n < 256; n++) {
		make_flow(frame, n);
		REQUIRE(send(fd, frame, sizeof(frame), 0) == sizeof(frame));
	}
	for (unsigned q = 0; q < nif->nr_queues; q++)
		while (nif->ops->recv(nif, q, &iov, 1) > 0)
			count[q] += in[12 + 12] == 0x08 && in[12 + 23] == 17;
	close(fd);
}

static unsigned sum_of(const unsigned *count, unsigned nr)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < nr; i++)
		sum += count[i];
	return sum;
}

/* Frames come on the queues in use and no others; none is lost. */
static void check_queues(struct netif *nif, unsigned in_use)
{
	unsigned count[NETIF_MAX_QUEUES];

	count_flows(nif, count);
	CHECK_EQ(sum_of(count, in_use), 256);
	CHECK_EQ(sum_of(count, nif->nr_queues), 256);
	if (in_use > 1)
		CHECK(count[0] && count[0] < 256);
}

static void t_queues(void)
{
	static const unsigned in_use[] = { 4, 1, 3, 2, 4, 1 };
	u8 out[12 + 100] = { 0 };
	struct iovec iov = { out, sizeof(out) };
	struct netif *nif;
	int err;

	own_network();
	nif = open_queues("t0", 4, false, &err);
	REQUIRE(nif);
	CHECK_EQ(nif->nr_queues, 4);
	CHECK_EQ(said[0], 0);
	for (unsigned q = 0; q < 4; q++) {
		CHECK(fcntl(nif->fd[q], F_GETFL) & O_NONBLOCK);
		CHECK(fcntl(nif->fd[q], F_GETFD) & FD_CLOEXEC);
	}
	check_queues(nif, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(in_use); i++) {
		CHECK_EQ(nif->ops->set_queues(nif, in_use[i]), 0);
		check_queues(nif, in_use[i]);
		CHECK_EQ(nif->ops->set_offload(nif, nif->features), 0);
	}
	make_frame(out + 12, 100);
	CHECK_EQ(nif->ops->send(nif, 3, &iov, 1), sizeof(out)); /* also when detached */
	delete_if("t0");
	CHECK_EQ(nif->ops->set_queues(nif, 4), 0);
	CHECK_EQ(nif->ops->set_queues(nif, 1), 0);
	nif->ops->close(nif);
}

static void t_queues_of_existing(void)
{
	struct netif *nif;
	int err;

	own_network();
	make_persistent("t1", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
	CHECK(!open_queues("t1", 2, false, &err));
	CHECK_EQ(err, -EINVAL);
	check_said("-n: queues=2: tap t1 has one queue; make it with: "
		   "ip tuntap add dev t1 mode tap multi_queue");
	nif = open_queues("t1", 2, true, &err);
	REQUIRE(nif);
	CHECK_EQ(nif->nr_queues, 1);
	CHECK_EQ(said[0], 0);
	nif->ops->close(nif);

	make_persistent("t0", IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE);
	for (unsigned i = 0; i < 2; i++) { /* no queue is left behind, attached or not */
		nif = open_queues("t0", NETIF_MAX_QUEUES, true, &err);
		REQUIRE(nif);
		CHECK_EQ(nif->nr_queues, NETIF_MAX_QUEUES);
		CHECK_EQ(nif->ops->set_queues(nif, 2), 0);
		check_queues(nif, 2);
		CHECK(!open_queues("t0", 1, true, &err));
		CHECK_EQ(err, -EBUSY);
		check_said("another program has it open");
		nif->ops->close(nif);
	}
	nif = open_queues("t0", 1, false, &err);
	REQUIRE(nif);
	check_queues(nif, 1);
	nif->ops->close(nif);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	REQUIRE(syscall(SYS_capset, &hdr, none) == 0);
}

static void t_no_capability(void)
{
	int err;

	own_network();
	make_persistent("t0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
	drop_capabilities();
	CHECK(!open_tap(NULL, NULL, NULL, NULL, &err));
	CHECK_EQ(err, -EPERM);
	check_said("CAP_NET_ADMIN");
	/* A tap without an owner is anybody's; what it needs and we may not do, is said. */
	{
		struct netif *nif = open_tap("t0", NULL, NULL, NULL, &err);

		if (nif) {
			check_said("ip link set t0 up");
			nif->ops->close(nif);
		} else {
			CHECK_EQ(err, -EPERM);
			check_said("CAP_NET_ADMIN");
		}
	}
	CHECK(!open_tap("t0", "10.0.0.1", NULL, NULL, &err));
	CHECK_EQ(err, -EPERM);
	check_said("CAP_NET_ADMIN");
}

static void t_no_driver(void)
{
	int err;

	own_network();
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/dev/net", "tmpfs", 0, NULL) < 0)
		SKIP("no mount namespace: %s", strerror(errno));
	CHECK(!open_tap(NULL, NULL, NULL, NULL, &err));
	CHECK_EQ(err, -ENOENT);
	check_said("-n: mode=tap: /dev/net/tun: No such file or directory; modprobe tun");
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_made), T(t_made_with_name_and_address), T(t_bad_values),
		       T(t_existing_is_left_as_it_was), T(t_multi_queue), T(t_busy), T(t_not_a_tap),
		       T(t_script), T(t_script_fails), T(t_downscript), T(t_mtu), T(t_hdr_len),
		       T(t_offload), T(t_frames), T(t_down_and_deleted), T(t_queues),
		       T(t_queues_of_existing), T(t_link), T(t_no_capability), T(t_no_driver));
}
