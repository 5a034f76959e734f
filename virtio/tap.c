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
 * Interface questions go through ioctls on a socket of our network namespace, not through sysfs,
 * which may show another one.
 */
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "virtio/host-addr.h"
#include "virtio/net.h"

#ifndef TUN_F_USO4 /* Linux 6.2 */
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#define TUN_PATH           "/dev/net/tun"
#define SCRIPT_LOOK_MS     100 /* between two looks for a signal */
#define SCRIPT_PATIENCE_MS 60000
#define DEFAULT_IP         "192.168.33.1"

struct tap {
	struct netif nif;
	int sock; /* for interface ioctls */
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

static long tap_send(struct netif *nif, const struct iovec *iov, unsigned nr)
{
	ssize_t n = writev(nif->fd, iov, (int)nr);

	return n < 0 ? -errno : n;
}

static long tap_recv(struct netif *nif, const struct iovec *iov, unsigned nr)
{
	ssize_t n = readv(nif->fd, iov, (int)nr);

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
	if (ioctl(nif->fd, TUNSETOFFLOAD, (unsigned long)tun_offload(features)) == 0)
		return 0;
	if (errno == EBADFD)
		return 0; /* the interface is deleted: no frame will come at all */
	return -errno;
}

static int tap_set_hdr_len(struct netif *nif, unsigned len)
{
	int hdr_len = (int)len;

	if (ioctl(nif->fd, TUNSETVNETHDRSZ, &hdr_len) == 0)
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

static int attach_flags(struct tap *tap, short flags)
{
	struct ifreq ifr = { 0 };

	memcpy(ifr.ifr_name, tap->nif.name, sizeof(ifr.ifr_name));
	ifr.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | flags);
	if (ioctl(tap->nif.fd, TUNSETIFF, &ifr) < 0)
		return -errno;
	snprintf(tap->nif.name, sizeof(tap->nif.name), "%s", ifr.ifr_name);
	return 0;
}

/*
 * Makes the interface ours. A tap that was made with multi_queue must be opened so (EINVAL else),
 * and then a second program would be let in beside the first.
 */
static int attach(struct tap *tap, bool exists)
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
	r = attach_flags(tap, 0);
	if (r == -EINVAL && exists) {
		if (if_has_carrier(tap))
			return say_busy(tap);
		r = attach_flags(tap, IFF_MULTI_QUEUE);
	}
	return r < 0 ? say_attach(tap, exists, r) : 0;
}

static int open_tun(struct tap *tap)
{
	int err;

	tap->nif.fd = open(TUN_PATH, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tap->nif.fd >= 0)
		return 0;
	err = errno;
	if (err == EACCES || err == EPERM)
		log_err("-n: mode=tap: %s: %s; give this user access to it", TUN_PATH,
			strerror(err));
	else
		log_err("-n: mode=tap: %s: %s; modprobe tun", TUN_PATH, strerror(err));
	return -err;
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

	if (ioctl(tap->nif.fd, TUNSETVNETHDRSZ, &hdr_len) < 0 ||
	    ioctl(tap->nif.fd, TUNSETVNETLE, &le) < 0) {
		int err = errno;

		log_err("-n: tapif=%s: cannot set the virtio header: %s; Linux 4.0 or later is needed",
			tap->nif.name, strerror(err));
		return -err;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(probe); i++) {
		if (ioctl(tap->nif.fd, TUNSETOFFLOAD, (unsigned long)probe[i].flags) == 0)
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

static int script_spawn(const char *script, const char *ifname, pid_t *pid)
{
	char *argv[] = { (char *)script, (char *)ifname, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	r = -posix_spawn(pid, script, &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return r;
}

/* A signal that is to end us waits to be taken: nobody else looks at it while a script runs. */
static bool told_to_end(void)
{
	sigset_t set;

	return sigpending(&set) == 0 && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
					 sigismember(&set, SIGHUP) || sigismember(&set, SIGQUIT));
}

/* The status of waitpid(), or -ETIMEDOUT, -EINTR after killing the script with its children. */
static int script_wait(pid_t pid)
{
	int fd = pidfd_open(pid, 0), status = 0, r = 0;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (int ms = 0; fd >= 0 && !r && poll(&p, 1, SCRIPT_LOOK_MS) == 0; ms += SCRIPT_LOOK_MS)
		r = told_to_end() ? -EINTR : ms >= SCRIPT_PATIENCE_MS ? -ETIMEDOUT : 0;
	if (r)
		kill(-pid, SIGKILL);
	if (fd >= 0)
		close(fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r ? r : status;
}

/*
 * Runs @script with the interface's name: no input, default signals, none of our fds, in a process
 * group of its own. 0, or -errno after a message.
 */
static int run_script(const char *script, const char *ifname)
{
	pid_t pid;
	int r = script_spawn(script, ifname, &pid);

	if (!r)
		r = script_wait(pid);
	if (r == -EINTR)
		log_err("-n: tapif=%s: script=%s: ended with us by a signal", ifname, script);
	else if (r < 0)
		log_err("-n: tapif=%s: script=%s: %s; mend the script", ifname, script,
			strerror(-r));
	else if (r)
		log_err("-n: tapif=%s: script=%s: it ended with %s %d; mend the script", ifname,
			script, WIFEXITED(r) ? "status" : "signal",
			WIFEXITED(r) ? WEXITSTATUS(r) : WTERMSIG(r));
	return r > 0 ? -ECANCELED : r;
}

/* An address if one is due, then up, then the script. */
static int configure(struct tap *tap, const struct tap_config *cfg, const struct host_addr *ip,
		     bool exists)
{
	struct ifreq ifr = { 0 };
	int r = 0;

	if (cfg->host_ip || (!exists && !cfg->script))
		r = set_address(tap, ip);
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
	return cfg->script ? run_script(cfg->script, tap->nif.name) : 0;
}

/* --- life cycle --- */

static void tap_free(struct tap *tap)
{
	if (tap->set_addr && host_addr_change(if_nametoindex(tap->nif.name), &tap->ip, false))
		log_warn("tap %s: its address could not be taken away", tap->nif.name);
	if (tap->set_up)
		set_up(tap, false);
	if (tap->nif.fd >= 0) {
		tap_set_offload(&tap->nif, 0);
		close(tap->nif.fd);
	}
	if (tap->sock >= 0)
		close(tap->sock);
	free(tap->downscript);
	free(tap);
}

static void tap_close(struct netif *nif)
{
	struct tap *tap = to_tap(nif);

	if (tap->downscript)
		run_script(tap->downscript, nif->name);
	tap_free(tap);
}

static const struct netif_ops tap_ops = {
	.send = tap_send,
	.recv = tap_recv,
	.set_offload = tap_set_offload,
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
	r = open_tun(tap);
	if (r == 0)
		r = attach(tap, exists);
	if (r == 0)
		r = set_header(tap);
	if (r == 0)
		r = configure(tap, cfg, &ip, exists);
	return r;
}

struct netif *tap_open(const struct tap_config *cfg, int *err)
{
	struct tap *tap = calloc(1, sizeof(*tap));

	*err = -ENOMEM;
	if (!tap)
		return NULL;
	tap->nif.ops = &tap_ops;
	tap->nif.fd = tap->sock = -1;
	*err = tap_setup(tap, cfg);
	if (*err < 0) {
		tap_free(tap);
		return NULL;
	}
	return &tap->nif;
}
