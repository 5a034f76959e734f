// SPDX-License-Identifier: GPL-2.0-only
/*
 * THE table of devices, and how each is made from its option. A device file knows nothing of
 * options; here they become its parameters. To add a device: write its file, add its row.
 */
#include <fcntl.h>
#include <unistd.h>

#include "devices.h"
#include "log.h"
#include "opt.h"
#include "virtio/net.h"

#define NET_QUEUE_SIZE 256 /* by default */
#define NET_MIN_QUEUE  64
#define NET_MAX_PAIRS  NETIF_MAX_QUEUES
#define IF_NAME_SIZE   16
#define NET_MANY_PAIRS 8 /* as many for a machine with many CPUs, when nobody said how many */

/* A complete device type gets its transport and its place in the machine. Owns @dev. */
static int put_on(struct virtio_device *dev, enum virtio_transport_kind transport)
{
	int err = virtio_attach(dev, transport);

	if (err) {
		log_err("virtio-%s: cannot give it its transport: %s; use fewer devices",
			dev->ops->name, strerror(-err));
		virtio_free(dev);
		return err;
	}
	virtio_register(dev);
	return 0;
}

/* --- net --- */

enum net_mode { NET_MODE_UNSET, NET_MODE_NONE, NET_MODE_TAP };

struct net_option {
	enum net_mode mode;
	bool vhost, vhost_given, has_mac, has_transport;
	enum virtio_transport_kind transport;
	u8 mac[6];
	unsigned queues; /* pairs; 0 = by the number of CPUs */
	u16 queue_size, mtu;
	unsigned poll_us;
	struct fd_list {
		int fd[NET_MAX_PAIRS];
		unsigned nr;
	} tap_fds, vhost_fds; /* whoever makes the device takes them over */
	char ifname[IF_NAME_SIZE];
	char *host_ip, *bridge, *script, *downscript;
};

static int net_key_mode(void *ctx, const char *option, const char *key, const char *value)
{
	struct net_option *n = ctx;

	if (!strcmp(value, "tap")) {
		n->mode = NET_MODE_TAP;
	} else if (!strcmp(value, "none")) {
		n->mode = NET_MODE_NONE;
	} else if (!strcmp(value, "user")) {
		log_err("%s: %s=user: user-mode networking is not there yet; use mode=tap or mode=none",
			option, key);
		return -ENOSYS;
	} else {
		log_err("%s: %s=%s: there is no such mode; use tap or none", option, key, value);
		return -EINVAL;
	}
	return 0;
}

static int net_key_vhost(void *ctx, const char *option, const char *key, const char *value)
{
	struct net_option *n = ctx;

	n->vhost_given = true;
	return opt_bool(option, key, value, &n->vhost);
}

static int net_key_mac(void *ctx, const char *option, const char *key, const char *value)
{
	struct net_option *n = ctx;

	n->has_mac = true;
	return opt_mac(option, key, value, n->mac);
}

/* queues= and mq= are one thing with two names. */
static int net_key_queues(void *ctx, const char *option, const char *key, const char *value)
{
	struct net_option *n = ctx;
	u64 queues = 0;
	int err = opt_u64(option, key, value, 1, NET_MAX_PAIRS, &queues);

	if (!err && n->queues) {
		log_err("%s: %s=%s: queues= and mq= mean the same; use one of them", option, key,
			value);
		return -EINVAL;
	}
	n->queues = (unsigned)queues;
	return err;
}

static int net_key_queue_size(void *ctx, const char *option, const char *key, const char *value)
{
	u64 size = 0;
	int err = opt_u64(option, key, value, NET_MIN_QUEUE, VIRTQ_MAX_SIZE, &size);

	if (!err && (size & (size - 1))) {
		log_err("%s: %s=%s: not a power of two; use 64, 128, 256, 512 or 1024", option, key,
			value);
		return -EINVAL;
	}
	((struct net_option *)ctx)->queue_size = (u16)size;
	return err;
}

static int net_key_mtu(void *ctx, const char *option, const char *key, const char *value)
{
	u64 mtu = 0;
	int err = opt_u64(option, key, value, 68, 65535, &mtu); /* virtio 1.3 5.1.4.1 */

	((struct net_option *)ctx)->mtu = (u16)mtu;
	return err;
}

static int net_key_poll_us(void *ctx, const char *option, const char *key, const char *value)
{
	u64 us = 0;
	int err = opt_u64(option, key, value, 1, 1000000, &us);

	((struct net_option *)ctx)->poll_us = (unsigned)us;
	return err;
}

/*
 * One fd that our parent left open for us. It is marked as ours: so it cannot be named again, nor
 * any that we opened, which are marked from the beginning.
 */
static int take_fd(struct fd_list *list, const char *option, const char *key, const char *value)
{
	u64 fd = 0;
	int err = opt_u64(option, key, value, 0, INT32_MAX, &fd), flags;

	if (err)
		return err;
	flags = fcntl((int)fd, F_GETFD);
	if (flags < 0 || (flags & FD_CLOEXEC)) {
		log_err("%s: %s=%s: %s; pass each fd once, and open, to lkvm", option, key, value,
			flags < 0 ? strerror(EBADF) : "it is named twice, or is lkvm's own");
		return -EBADF;
	}
	if (list->nr == NET_MAX_PAIRS) {
		log_err("%s: %s=%s: too many; use at most %d, one for each queue pair", option, key,
			value, NET_MAX_PAIRS);
		return -E2BIG;
	}
	fcntl((int)fd, F_SETFD, FD_CLOEXEC);
	list->fd[list->nr++] = (int)fd;
	return 0;
}

static int take_fds(struct fd_list *list, const char *option, const char *key, const char *value)
{
	char *copy = strdup(value), *item = copy;
	int err = copy ? 0 : log_no_memory(option);

	while (!err && item) {
		char *next = strchr(item, ':');

		if (next)
			*next++ = '\0';
		err = take_fd(list, option, key, item);
		item = next;
	}
	free(copy);
	return err;
}

static int net_key_fd(void *ctx, const char *option, const char *key, const char *value)
{
	return take_fds(&((struct net_option *)ctx)->tap_fds, option, key, value);
}

static int net_key_vhostfd(void *ctx, const char *option, const char *key, const char *value)
{
	return take_fds(&((struct net_option *)ctx)->vhost_fds, option, key, value);
}

static int net_key_tapif(void *ctx, const char *option, const char *key, const char *value)
{
	struct net_option *n = ctx;
	size_t len = strlen(value);

	static const char not_in_names[] = "/: %\t\n\v\f\r";

	if (!len || len >= sizeof(n->ifname) || strpbrk(value, not_in_names) ||
	    !strcmp(value, ".") || !strcmp(value, "..") || !strcmp(value, "all") ||
	    !strcmp(value, "default")) {
		log_err("%s: %s=%s: not an interface name; use 1 to 15 characters without blanks and slashes",
			option, key, value);
		return -EINVAL;
	}
	memcpy(n->ifname, value, len + 1);
	return 0;
}

static int keep_string(char **to, const char *option, const char *key, const char *value)
{
	if (!*value) {
		log_err("%s: %s=: it needs a value", option, key);
		return -EINVAL;
	}
	free(*to);
	*to = strdup(value);
	return *to ? 0 : log_no_memory(option);
}

static int net_key_host_ip(void *ctx, const char *option, const char *key, const char *value)
{
	return keep_string(&((struct net_option *)ctx)->host_ip, option, key, value);
}

static int net_key_bridge(void *ctx, const char *option, const char *key, const char *value)
{
	if (strlen(value) >= IF_NAME_SIZE) {
		log_err("%s: %s=%s: an interface name has at most %d characters", option, key,
			value, IF_NAME_SIZE - 1);
		return -EINVAL;
	}
	return keep_string(&((struct net_option *)ctx)->bridge, option, key, value);
}

static int net_key_script(void *ctx, const char *option, const char *key, const char *value)
{
	return keep_string(&((struct net_option *)ctx)->script, option, key, value);
}

static int net_key_downscript(void *ctx, const char *option, const char *key, const char *value)
{
	return keep_string(&((struct net_option *)ctx)->downscript, option, key, value);
}

static int net_key_trans(void *ctx, const char *option, const char *key, const char *value)
{
	struct net_option *n = ctx;

	n->has_transport = true;
	if (!virtio_transport_find(value, &n->transport))
		return 0;
	log_err("%s: %s=%s: there is no such transport; use pci, pci-legacy or mmio", option, key,
		value);
	return -EINVAL;
}

static int net_refuse(void *ctx, const char *option, const char *key, const char *value)
{
	(void)ctx;
	log_err("%s: %s=%s: this key is not there yet; leave it out", option, key, value);
	return -ENOSYS;
}

static const struct opt_key net_keys[] = {
	{ "mode", "tap, or none for no NIC at all", net_key_mode },
	{ "vhost", "1: the kernel's vhost-net moves the packets; 0 (default): lkvm's own loop does",
	  net_key_vhost },
	{ "tapif", "the tap to use; made, and gone at the end, when it does not exist",
	  net_key_tapif },
	{ "host_ip", "address[/prefix] of the tap; default 192.168.33.1/24 for one that lkvm makes",
	  net_key_host_ip },
	{ "queues", "queue pairs, 1 to 16; default: one for each vCPU, at most 8, if the tap can",
	  net_key_queues },
	{ "mq", "the same as queues=", net_key_queues },
	{ "bridge", "the bridge that a tap which lkvm makes joins, instead of host_ip",
	  net_key_bridge },
	{ "fd", "open fds of a tap that is set up, F:F:..., one for each queue pair", net_key_fd },
	{ "vhostfd", "open fds of /dev/vhost-net, one for each queue pair; means vhost=1",
	  net_key_vhostfd },
	{ "mtu", "the MTU that the guest is told; default: the tap's", net_key_mtu },
	{ "queue_size", "descriptors in a ring: 64 to 1024, a power of two; default 256",
	  net_key_queue_size },
	{ "poll_us", "with vhost=1: microseconds that its worker looks for more before it sleeps",
	  net_key_poll_us },
	{ "guest_mac", "MAC address; default: made from the VM's name", net_key_mac },
	{ "script", "program run with the tap's name once it is up, instead of host_ip",
	  net_key_script },
	{ "downscript", "program run with the tap's name before it goes", net_key_downscript },
	{ "trans", "pci, pci-legacy or mmio; default: what --virtio-transport says",
	  net_key_trans },
	{ "guest_ip", NULL, net_refuse },
	{ NULL, NULL, NULL },
};

static void net_free_params(void *params)
{
	struct net_option *n = params;

	if (!n)
		return;
	free(n->host_ip);
	free(n->bridge);
	free(n->script);
	free(n->downscript);
	free(n);
}

static bool count_fits(const struct net_option *n, const char *key, const struct fd_list *list)
{
	if (!list->nr || list->nr == n->queues)
		return true;
	log_err("-n: %s=: it has %u fds for %u queue pairs; pass one for each", key, list->nr,
		n->queues);
	return false;
}

/* Fds say how many queue pairs there are, if the user does not. */
static int net_check_fds(struct net_option *n)
{
	if (n->tap_fds.nr &&
	    (n->ifname[0] || n->host_ip || n->bridge || n->script || n->downscript)) {
		log_err("-n: fd=: that tap is set up already; leave out tapif=, host_ip=, bridge=, script= and downscript=");
		return -EINVAL;
	}
	if (n->vhost_fds.nr && n->vhost_given && !n->vhost) {
		log_err("-n: vhost=0: but vhostfd= brings a vhost; leave one of them out");
		return -EINVAL;
	}
	if (!n->queues)
		n->queues = n->tap_fds.nr ? n->tap_fds.nr : n->vhost_fds.nr;
	if (!count_fits(n, "fd", &n->tap_fds) || !count_fits(n, "vhostfd", &n->vhost_fds))
		return -EINVAL;
	if (n->vhost_fds.nr)
		n->vhost = true;
	return 0;
}

/* Keys that only mean something for a tap, given without one, are a mistake of the user. */
static int net_check(struct net_option *n)
{
	int err;
	bool tap_keys = n->vhost || n->queues || n->ifname[0] || n->host_ip || n->bridge ||
			n->script || n->downscript || n->tap_fds.nr || n->vhost_fds.nr ||
			n->poll_us;

	if (n->mode == NET_MODE_UNSET) {
		log_err("-n: mode= is missing; use mode=tap or mode=none");
		return -EINVAL;
	}
	if (n->mode == NET_MODE_NONE && tap_keys) {
		log_err("-n: mode=none: the other keys ask for a tap; use mode=tap, or leave them out");
		return -EINVAL;
	}
	if (n->bridge && n->host_ip) {
		log_err("-n: host_ip=%s: a port of a bridge has no address; leave out host_ip= or bridge=",
			n->host_ip);
		return -EINVAL;
	}
	err = net_check_fds(n);
	if (!err && n->poll_us && !n->vhost) {
		log_err("-n: poll_us=%u: only vhost polls; add vhost=1, or leave it out",
			n->poll_us);
		return -EINVAL;
	}
	return err;
}

static void *net_parse(const char *value, int *err)
{
	struct net_option *n = calloc(1, sizeof(*n));

	*err = n ? opt_keys(net_keys, "-n", value, n) : log_no_memory("-n");
	if (!*err)
		*err = net_check(n);
	if (!*err)
		return n;
	net_free_params(n);
	return NULL;
}

/*
 * Stable for a name, different for each name and NIC: FNV-1a over both, marked as locally
 * administered.
 */
static void mac_from_name(u8 mac[6], const char *name, unsigned index)
{
	u64 hash = 0xcbf29ce484222325;

	for (const char *p = name; *p; p++)
		hash = (hash ^ (u8)*p) * 0x100000001b3;
	hash = (hash ^ (index + 1)) * 0x100000001b3;
	hash ^= hash >> 32;
	mac[0] = 0x02;
	for (unsigned i = 1; i < 6; i++)
		mac[i] = (u8)(hash >> (8 * (i - 1)));
}

/* A driver uses one pair for each CPU, if there are so many. */
static unsigned default_pairs(const struct machine *m)
{
	return m->nr_cpus ? MIN(m->nr_cpus, (unsigned)NET_MANY_PAIRS) : 1;
}

static int net_create(struct machine *m, const void *params, const char *vm_name, unsigned index)
{
	const struct net_option *n = params;
	struct tap_config cfg = {
		.ifname = n->ifname,
		.host_ip = n->host_ip,
		.bridge = n->bridge,
		.script = n->script,
		.downscript = n->downscript,
		.queues = n->queues ? n->queues : default_pairs(m),
		.or_one = !n->queues,
		.nr_fds = n->tap_fds.nr,
	};
	struct net_params np = {
		.queue_size = n->queue_size ? n->queue_size : NET_QUEUE_SIZE,
		.mtu = n->mtu,
		.vhost = n->vhost,
		.nr_vhost_fds = n->vhost_fds.nr,
		.poll_us = n->poll_us,
	};
	struct virtio_device *dev;
	struct netif *nif;
	int err;

	if (n->mode == NET_MODE_NONE)
		return 0;
	if (n->has_mac)
		memcpy(np.mac, n->mac, sizeof(np.mac));
	else
		mac_from_name(np.mac, vm_name, index);
	memcpy(cfg.fds, n->tap_fds.fd, sizeof(cfg.fds));
	memcpy(np.vhost_fd, n->vhost_fds.fd, sizeof(np.vhost_fd));
	nif = tap_open(&cfg, &err);
	if (!nif) {
		for (unsigned i = 0; i < np.nr_vhost_fds; i++)
			close(np.vhost_fd[i]);
		return err;
	}
	dev = net_new(m, &np, nif, &err);
	return dev ? put_on(dev, n->has_transport ? n->transport : m->transport) : err;
}

/* --- the table --- */

const struct device_type device_types[] = {
	{ "net", 'n', "network", "KEYS", "a NIC, as key=value,...; may be given several times",
	  net_keys, net_parse, net_create, net_free_params },
	{ NULL },
};

int device_list_add(struct device_list *list, const struct device_type *type, const char *value)
{
	void *params;
	int err;

	if (list->nr == DEVICES_MAX) {
		log_err("-%c %s: too many devices; use at most %d", type->letter, value,
			DEVICES_MAX);
		return -ENOSPC;
	}
	params = type->parse(value, &err);
	if (!params)
		return err;
	list->d[list->nr].type = type;
	list->d[list->nr++].params = params;
	return 0;
}

int device_list_create(struct machine *m, const struct device_list *list, const char *vm_name)
{
	for (const struct device_type *type = device_types; type->name; type++) {
		unsigned index = 0;

		for (unsigned i = 0; i < list->nr; i++) {
			int err;

			if (list->d[i].type != type)
				continue;
			err = type->create(m, list->d[i].params, vm_name, index++);
			if (err)
				return err;
		}
	}
	return 0;
}

void device_list_free(struct device_list *list)
{
	for (unsigned i = 0; i < list->nr; i++)
		list->d[i].type->free_params(list->d[i].params);
	list->nr = 0;
}
