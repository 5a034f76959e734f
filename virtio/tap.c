// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tap interface as a netif.
 *
 * Theory of operation: opening one is a walk with many reasons to fail, so each step says in one
 * line what went wrong and what to do about it. An interface that is there already is used as it
 * is: only set up, and given an address if the user named one; what was changed is changed back at
 * close. One that we make gets a default address and vanishes with our fd. The user's script takes
 * the place of the default address.
 *
 * Each frame is preceded by a 12-byte little-endian virtio-net header (TUNSETVNETHDRSZ,
 * TUNSETVNETLE), by which frames larger than the MTU and without checksum pass. What of that the
 * kernel can is probed bit by bit with TUNSETOFFLOAD: it refuses what it does not know. In the
 * direction to the guest only what the driver acknowledged is switched on, and nothing before that.
 *
 * With several queues it is opened as often, with IFF_MULTI_QUEUE. The kernel spreads frames over
 * those that are attached, whether anybody reads there or not. So all but the first are detached
 * until the guest says that it uses them (TUNSETQUEUE).
 *
 * The user may bring fds of a tap that is set up: then they are checked, and nothing is changed but
 * what concerns the fds themselves.
 *
 * Interface questions go through ioctls on a socket of our network namespace, not through sysfs,
 * which may show another one.
 */
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "virtio/host-addr.h"
#include "virtio/net.h"
#include "virtio/tap-script.h"

#ifndef TUN_F_USO4 /* Linux 6.2 */
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#define TUN_PATH   "/dev/net/tun"
#define DEFAULT_IP "192.168.33.1"

struct tap {
	struct netif nif;
	unsigned nr_attached; /* queues that the kernel spreads frames over: the first ones */
	int sock;             /* for interface ioctls */
	char *downscript;
	bool set_up;   /* it was there already and we set it up */
	bool set_addr; /* it was there already and we added ip */
	struct host_addr ip;
};

static struct tap *to_tap(struct netif *nif)
{
	return container_of(nif, struct tap, nif);
}

/* --- the data path --- */

static long tap_send(struct netif *nif, unsigned queue, const struct iovec *iov, unsigned nr)
{
	ssize_t n = writev(nif->fd[queue], iov, (int)nr);

	return n < 0 ? -errno : n;
}

static long tap_recv(struct netif *nif, unsigned queue, const struct iovec *iov, unsigned nr)
{
	ssize_t n = readv(nif->fd[queue], iov, (int)nr);

	return n < 0 ? -errno : n;
}

/*
 * What the driver takes, as the kernel wants it: nothing without CSUM, ECN only with TSO, USO only
 * both.
 */
static unsigned tun_offload(u64 features)
{
	const u64 uso = BIT(NET_B_GUEST_USO4) | BIT(NET_B_GUEST_USO6);
	unsigned flags = TUN_F_CSUM;

	if (!(features & BIT(NET_B_GUEST_CSUM)))
		return 0;
	if (features & BIT(NET_B_GUEST_TSO4))
		flags |= TUN_F_TSO4;
	if (features & BIT(NET_B_GUEST_TSO6))
		flags |= TUN_F_TSO6;
	if ((flags & (TUN_F_TSO4 | TUN_F_TSO6)) && (features & BIT(NET_B_GUEST_ECN)))
		flags |= TUN_F_TSO_ECN;
	if ((features & uso) == uso)
		flags |= TUN_F_USO4 | TUN_F_USO6;
	return flags;
}

static int tap_set_offload(struct netif *nif, u64 features)
{
	if (ioctl(nif->fd[0], TUNSETOFFLOAD, (unsigned long)tun_offload(features)) == 0)
		return 0;
	return errno == EBADFD ? 0 : -errno; /* deleted: no frame will come at all */
}

static bool is_deleted(const struct netif *nif)
{
	struct ifreq ifr = { 0 };

	return ioctl(nif->fd[0], TUNGETIFF, &ifr) < 0 && errno == EBADFD;
}

static int queue_attach(const struct netif *nif, unsigned queue, bool on)
{
	struct ifreq ifr = { .ifr_flags = on ? IFF_ATTACH_QUEUE : IFF_DETACH_QUEUE };

	return ioctl(nif->fd[queue], TUNSETQUEUE, &ifr) < 0 ? -errno : 0;
}

/*
 * In order, and in reverse: the kernel numbers queues as they come, and fills the gap that one
 * leaves with the last.
 */
static int tap_set_queues(struct netif *nif, unsigned nr)
{
	struct tap *tap = to_tap(nif);
	unsigned before = tap->nr_attached;
	int r = 0;

	while (!r && tap->nr_attached < nr) {
		r = queue_attach(nif, tap->nr_attached, true);
		tap->nr_attached += !r;
	}
	while (!r && tap->nr_attached > nr) {
		r = queue_attach(nif, tap->nr_attached - 1, false);
		tap->nr_attached -= !r;
	}
	if (r && is_deleted(nif))
		return 0;
	while (r && tap->nr_attached > before && !queue_attach(nif, tap->nr_attached - 1, false))
		tap->nr_attached--;
	return r;
}

/* Without carrier the host sends nothing. It has one again when the tap is opened anew. */
static int tap_set_link(struct netif *nif, bool up)
{
	int carrier = up;

	if (ioctl(nif->fd[0], TUNSETCARRIER, &carrier) == 0 || errno == EBADFD)
		return 0;
	return -errno;
}

static int tap_set_hdr_len(struct netif *nif, unsigned len)
{
	int hdr_len = (int)len;

	if (ioctl(nif->fd[0], TUNSETVNETHDRSZ, &hdr_len) == 0)
		return 0;
	return errno == EBADFD ? 0 : -errno; /* deleted, as above */
}

/* --- questions to the interface --- */

static int if_ioctl(const struct tap *tap, unsigned long request, struct ifreq *ifr)
{
	memcpy(ifr->ifr_name, tap->nif.name, sizeof(ifr->ifr_name));
	return ioctl(tap->sock, request, ifr) < 0 ? -errno : 0;
}

static bool if_exists(const struct tap *tap)
{
	struct ifreq ifr = { 0 };

	return tap->nif.name[0] && if_ioctl(tap, SIOCGIFFLAGS, &ifr) == 0;
}

/* What kind of interface it is: "tap", "tun", "bridge", "veth" ... */
static void if_kind(const struct tap *tap, char *kind, size_t len)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq ifr = { .ifr_data = (void *)&info };

	if (if_ioctl(tap, SIOCETHTOOL, &ifr) < 0)
		snprintf(kind, len, "other");
	else if (strcmp(info.driver, "tun") == 0)
		snprintf(kind, len, "%s", info.bus_info); /* of this driver: tun or tap */
	else
		snprintf(kind, len, "%s", info.driver);
}

/* A tap that no program has open has no carrier. */
static bool if_has_carrier(const struct tap *tap)
{
	struct ethtool_value link = { .cmd = ETHTOOL_GLINK };
	struct ifreq ifr = { .ifr_data = (void *)&link };

	return if_ioctl(tap, SIOCETHTOOL, &ifr) == 0 && link.data;
}

/* --- opening --- */

static int say_busy(const struct tap *tap)
{
	log_err("-n: tapif=%s: %s: another program has it open; use another tap", tap->nif.name,
		strerror(EBUSY));
	return -EBUSY;
}

static int say_attach(const struct tap *tap, bool exists, int err)
{
	const char *name = tap->nif.name;

	if (err == -EBUSY)
		return say_busy(tap);
	if (err == -EPERM && exists)
		log_err("-n: tapif=%s: %s; it belongs to another user: "
			"ip tuntap add dev %s mode tap user USER, or run with CAP_NET_ADMIN",
			name, strerror(-err), name);
	else if (err == -EPERM)
		log_err("-n: tapif=%s: cannot make it: %s; "
			"run with CAP_NET_ADMIN, or use tapif= with a tap of yours",
			name, strerror(-err));
	else
		log_err("-n: tapif=%s: TUNSETIFF: %s; use a name that an interface can have", name,
			strerror(-err));
	return err;
}

static int attach_flags(struct tap *tap, unsigned queue, short flags)
{
	struct ifreq ifr = { 0 };

	memcpy(ifr.ifr_name, tap->nif.name, sizeof(ifr.ifr_name));
	ifr.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | flags);
	if (ioctl(tap->nif.fd[queue], TUNSETIFF, &ifr) < 0)
		return -errno;
	snprintf(tap->nif.name, sizeof(tap->nif.name), "%s", ifr.ifr_name);
	return 0;
}

/*
 * Makes the interface ours. One that is made here can have several queues if @multi. A tap that was
 * made with multi_queue must be opened so (EINVAL else), and then a second program would be let in
 * beside the first. 1 = it can have several, 0 = one only, -errno after a message.
 */
static int attach(struct tap *tap, bool exists, bool multi)
{
	char kind[ETHTOOL_BUSINFO_LEN];
	int r;

	if (exists) {
		if_kind(tap, kind, sizeof(kind));
		if (strcmp(kind, "tap") != 0) {
			log_err("-n: tapif=%s: this is of kind %s, not a tap; use another name",
				tap->nif.name, kind);
			return -EINVAL;
		}
	}
	multi = multi && !exists;
	r = attach_flags(tap, 0, multi ? IFF_MULTI_QUEUE : 0);
	if (r == -EINVAL && exists) {
		if (if_has_carrier(tap))
			return say_busy(tap);
		multi = true;
		r = attach_flags(tap, 0, IFF_MULTI_QUEUE);
	}
	return r < 0 ? say_attach(tap, exists, r) : multi;
}

static int open_tun(struct tap *tap)
{
	int err, fd = open(TUN_PATH, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0) {
		tap->nif.fd[tap->nif.nr_queues++] = fd;
		return 0;
	}
	err = errno;
	if (err == EACCES || err == EPERM)
		log_err("-n: mode=tap: %s: %s; give this user access to it", TUN_PATH,
			strerror(err));
	else
		log_err("-n: mode=tap: %s: %s; modprobe tun", TUN_PATH, strerror(err));
	return -err;
}

/* The other queues of an interface that is ours already, none of them attached. */
static int add_queues(struct tap *tap, const struct tap_config *cfg, bool multi)
{
	const char *name = tap->nif.name;
	int r = 0;

	if (cfg->queues > 1 && !multi) {
		if (cfg->or_one)
			return 0;
		log_err("-n: queues=%u: tap %s has one queue; make it with: ip tuntap add dev %s mode tap multi_queue",
			cfg->queues, name, name);
		return -EINVAL;
	}
	while (!r && tap->nif.nr_queues < cfg->queues) {
		r = open_tun(tap);
		if (r)
			return r;
		r = attach_flags(tap, tap->nif.nr_queues - 1, IFF_MULTI_QUEUE);
		tap->nr_attached += !r;
	}
	if (!r)
		r = tap_set_queues(&tap->nif, 1);
	if (r)
		log_err("-n: queues=%u: tap %s: queue %u: %s; use fewer queues", cfg->queues, name,
			tap->nr_attached, strerror(-r));
	return r;
}

/* The header's size and byte order, then which offloads the kernel knows. */
static int set_header(struct tap *tap)
{
	static const struct {
		unsigned flags;
		u64 features;
	} probe[] = {
		{ TUN_F_CSUM, BIT(NET_B_CSUM) | BIT(NET_B_GUEST_CSUM) },
		{ TUN_F_CSUM | TUN_F_TSO4, BIT(NET_B_HOST_TSO4) | BIT(NET_B_GUEST_TSO4) },
		{ TUN_F_CSUM | TUN_F_TSO6, BIT(NET_B_HOST_TSO6) | BIT(NET_B_GUEST_TSO6) },
		{ TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO_ECN,
		  BIT(NET_B_HOST_ECN) | BIT(NET_B_GUEST_ECN) },
		{ TUN_F_CSUM | TUN_F_USO4 | TUN_F_USO6,
		  BIT(NET_B_HOST_USO) | BIT(NET_B_GUEST_USO4) | BIT(NET_B_GUEST_USO6) },
	};
	int hdr_len = NET_HDR_LEN, le = 1;

	if (ioctl(tap->nif.fd[0], TUNSETVNETHDRSZ, &hdr_len) < 0 ||
	    ioctl(tap->nif.fd[0], TUNSETVNETLE, &le) < 0) {
		int err = errno;

		log_err("-n: tapif=%s: cannot set the virtio header: %s; Linux 4.0 or later is needed",
			tap->nif.name, strerror(err));
		return -err;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(probe); i++) {
		if (ioctl(tap->nif.fd[0], TUNSETOFFLOAD, (unsigned long)probe[i].flags) == 0)
			tap->nif.features |= probe[i].features;
	}
	return tap_set_offload(&tap->nif, 0);
}

/* --- address, state, scripts --- */

/* 1 = the address was added, 0 = it was there, -errno after a message. */
static int set_address(struct tap *tap, const struct host_addr *ip)
{
	int r = host_addr_change(if_nametoindex(tap->nif.name), ip, true);

	if (r == -EEXIST)
		return 0;
	if (r == 0)
		return 1;
	log_err("-n: tapif=%s: cannot set its address: %s; run with CAP_NET_ADMIN, or set it up front",
		tap->nif.name, strerror(-r));
	return r;
}

/* @up or down. 1 = changed, 0 = it was so, -errno. */
static int set_up(struct tap *tap, bool up)
{
	struct ifreq ifr = { 0 };
	int r = if_ioctl(tap, SIOCGIFFLAGS, &ifr);

	if (r < 0 || !!(ifr.ifr_flags & IFF_UP) == up)
		return r;
	ifr.ifr_flags ^= IFF_UP;
	r = if_ioctl(tap, SIOCSIFFLAGS, &ifr);
	return r < 0 ? r : 1;
}

/*
 * Makes our new tap a port of the bridge. First it gets the bridge's MTU, which the bridge else
 * might lower to the tap's.
 */
static int join_bridge(struct tap *tap, const char *bridge)
{
	struct ifreq ifr = { 0 };
	int r = 0;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", bridge);
	if (ioctl(tap->sock, SIOCGIFMTU, &ifr) < 0)
		r = -errno;
	if (!r)
		r = if_ioctl(tap, SIOCSIFMTU, &ifr);
	ifr = (struct ifreq){ .ifr_ifindex = (int)if_nametoindex(tap->nif.name) };
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", bridge);
	if (!r && ioctl(tap->sock, SIOCBRADDIF, &ifr) < 0)
		r = -errno;
	if (r == -ENODEV)
		log_err("-n: bridge=%s: there is no such bridge; make it with: ip link add %s type bridge",
			bridge, bridge);
	else if (r == -EPERM)
		log_err("-n: bridge=%s: %s; run with CAP_NET_ADMIN", bridge, strerror(-r));
	else if (r)
		log_err("-n: bridge=%s: tap %s cannot join it: %s; name a bridge", bridge,
			tap->nif.name, strerror(-r));
	return r;
}

/* An address if one is due, or the bridge, then up, then the script. */
static int configure(struct tap *tap, const struct tap_config *cfg, const struct host_addr *ip,
		     bool exists)
{
	struct ifreq ifr = { 0 };
	int r = 0;

	if (cfg->host_ip || (!exists && !cfg->script && !cfg->bridge))
		r = set_address(tap, ip);
	else if (cfg->bridge)
		r = join_bridge(tap, cfg->bridge);
	if (r < 0)
		return r;
	tap->set_addr = exists && r == 1;
	tap->ip = *ip;

	r = set_up(tap, true);
	if (r == -EPERM && exists) {
		log_warn("tap %s: it is down, and we may not set it up; ip link set %s up",
			 tap->nif.name, tap->nif.name);
	} else if (r < 0) {
		log_err("-n: tapif=%s: cannot set it up: %s", tap->nif.name, strerror(-r));
		return r;
	}
	tap->set_up = exists && r == 1;
	if (if_ioctl(tap, SIOCGIFMTU, &ifr) == 0 && ifr.ifr_mtu <= UINT16_MAX)
		tap->nif.mtu = (u16)ifr.ifr_mtu;
	return cfg->script ? tap_script(cfg->script, tap->nif.name) : 0;
}

/* --- a tap that somebody opened --- */

static int say_fd(int fd, const char *what, const char *hint)
{
	log_err("-n: fd=%d: %s; %s", fd, what, hint);
	return -EINVAL;
}

/* Checks one of them and makes it as ours are. @ifr: what the first one is; filled in by that. */
static int adopt_fd(const struct tap *tap, unsigned queue, struct ifreq *first)
{
	const char *hint = "open it with IFF_TAP | IFF_NO_PI | IFF_VNET_HDR";
	struct ifreq ifr = { 0 };
	int fd = tap->nif.fd[queue];

	if (ioctl(fd, TUNGETIFF, &ifr) < 0)
		return say_fd(fd, "it is not the fd of a tap", hint);
	if (!(ifr.ifr_flags & IFF_TAP))
		return say_fd(fd, "it is a tun, not a tap", hint);
	if (!(ifr.ifr_flags & IFF_VNET_HDR) || !(ifr.ifr_flags & IFF_NO_PI))
		return say_fd(fd, "the tap's frames have no virtio header, or another one", hint);
	if (tap->nif.nr_queues > 1 && !(ifr.ifr_flags & IFF_MULTI_QUEUE))
		return say_fd(fd, "the tap has one queue", "open it with IFF_MULTI_QUEUE");
	if (queue == 0)
		*first = ifr;
	if (strncmp(ifr.ifr_name, first->ifr_name, sizeof(ifr.ifr_name)) != 0)
		return say_fd(fd, "it is of another tap than the first", "pass queues of one tap");
	if ((ifr.ifr_flags & IFF_DETACH_QUEUE) && queue_attach(&tap->nif, queue, true) < 0)
		return say_fd(fd, "its queue cannot be attached", "pass it attached");
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return say_fd(fd, strerror(errno), "pass another fd");
	return 0;
}

static int tap_adopt(struct tap *tap)
{
	struct ifreq ifr = { 0 };
	int r = 0;

	for (unsigned i = 0; i < tap->nif.nr_queues && !r; i++)
		r = adopt_fd(tap, i, &ifr);
	if (r)
		return r;
	snprintf(tap->nif.name, sizeof(tap->nif.name), "%s", ifr.ifr_name);
	tap->nr_attached = tap->nif.nr_queues;
	r = tap_set_queues(&tap->nif, 1);
	if (r) {
		log_err("-n: fd=%d: tap %s: cannot detach its queues: %s; pass one fd only",
			tap->nif.fd[0], tap->nif.name, strerror(-r));
		return r;
	}
	return set_header(tap);
}

/* --- life cycle --- */

static void tap_free(struct tap *tap)
{
	if (tap->set_addr && host_addr_change(if_nametoindex(tap->nif.name), &tap->ip, false))
		log_warn("tap %s: its address could not be taken away", tap->nif.name);
	if (tap->set_up)
		set_up(tap, false);
	if (tap->nif.nr_queues)
		tap_set_offload(&tap->nif, 0);
	while (tap->nif.nr_queues)
		close(tap->nif.fd[--tap->nif.nr_queues]);
	if (tap->sock >= 0)
		close(tap->sock);
	free(tap->downscript);
	free(tap);
}

static void tap_close(struct netif *nif)
{
	struct tap *tap = to_tap(nif);

	if (tap->downscript)
		tap_script(tap->downscript, nif->name);
	tap_free(tap);
}

static const struct netif_ops tap_ops = {
	.send = tap_send,
	.recv = tap_recv,
	.set_offload = tap_set_offload,
	.set_queues = tap_set_queues,
	.set_link = tap_set_link,
	.set_hdr_len = tap_set_hdr_len,
	.close = tap_close,
};

static int tap_setup(struct tap *tap, const struct tap_config *cfg)
{
	struct host_addr ip;
	bool exists;
	int r;

	r = host_addr_parse(cfg->host_ip ? cfg->host_ip : DEFAULT_IP, &ip);
	if (r < 0)
		return r;
	if (cfg->ifname && strlen(cfg->ifname) >= sizeof(tap->nif.name)) {
		log_err("-n: tapif=%s: an interface name has at most %zu characters", cfg->ifname,
			sizeof(tap->nif.name) - 1);
		return -EINVAL;
	}
	snprintf(tap->nif.name, sizeof(tap->nif.name), "%s", cfg->ifname ? cfg->ifname : "");
	if (cfg->downscript) {
		tap->downscript = strdup(cfg->downscript);
		if (!tap->downscript) {
			log_no_memory("-n: mode=tap");
			return -ENOMEM;
		}
	}
	tap->sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (tap->sock < 0) {
		r = -errno;
		log_err("-n: mode=tap: socket: %s", strerror(-r));
		return r;
	}
	exists = if_exists(tap);
	if (exists && cfg->bridge) {
		log_err("-n: bridge=%s: tap %s is there already; add it with: ip link set %s master %s",
			cfg->bridge, tap->nif.name, tap->nif.name, cfg->bridge);
		return -EEXIST;
	}
	r = open_tun(tap);
	if (r == 0)
		r = attach(tap, exists, cfg->queues > 1);
	if (r >= 0) {
		tap->nr_attached = 1;
		r = add_queues(tap, cfg, r);
	}
	if (r == 0)
		r = set_header(tap);
	if (r == 0)
		r = configure(tap, cfg, &ip, exists);
	return r;
}

struct netif *tap_open(const struct tap_config *cfg, int *err)
{
	struct tap *tap = calloc(1, sizeof(*tap));

	if (!tap) {
		for (unsigned i = 0; i < cfg->nr_fds; i++)
			close(cfg->fds[i]);
		*err = log_no_memory("-n: mode=tap");
		return NULL;
	}
	tap->nif.ops = &tap_ops;
	tap->sock = -1;
	tap->nif.nr_queues = cfg->nr_fds;
	memcpy(tap->nif.fd, cfg->fds, sizeof(cfg->fds));
	*err = cfg->nr_fds ? tap_adopt(tap) : tap_setup(tap, cfg);
	if (*err == 0)
		return &tap->nif;
	tap_free(tap);
	return NULL;
}
