// SPDX-License-Identifier: GPL-2.0-only
/*
 * THE table of devices, and how each is made from its option. A device file knows nothing of
 * options; here they become its parameters. To add a device: write its file, add its row.
 */
#include "devices.h"
#include "log.h"
#include "opt.h"
#include "virtio/net.h"
#include "virtio/vhost.h"

#define NET_QUEUE_SIZE 256

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
	bool vhost, has_mac, has_transport;
	enum virtio_transport_kind transport;
	u8 mac[6];
	char ifname[16];
	char *host_ip, *script, *downscript;
};

static int net_set_mode(void *ctx, const char *option, const char *key, const char *value)
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

static int net_set_vhost(void *ctx, const char *option, const char *key, const char *value)
{
	return opt_bool(option, key, value, &((struct net_option *)ctx)->vhost);
}

static int net_set_mac(void *ctx, const char *option, const char *key, const char *value)
{
	struct net_option *n = ctx;

	n->has_mac = true;
	return opt_mac(option, key, value, n->mac);
}

static int net_set_tapif(void *ctx, const char *option, const char *key, const char *value)
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

static int net_set_host_ip(void *ctx, const char *option, const char *key, const char *value)
{
	return keep_string(&((struct net_option *)ctx)->host_ip, option, key, value);
}

static int net_set_script(void *ctx, const char *option, const char *key, const char *value)
{
	return keep_string(&((struct net_option *)ctx)->script, option, key, value);
}

static int net_set_downscript(void *ctx, const char *option, const char *key, const char *value)
{
	return keep_string(&((struct net_option *)ctx)->downscript, option, key, value);
}

static int net_set_trans(void *ctx, const char *option, const char *key, const char *value)
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
	{ "mode", "tap, or none for no NIC at all", net_set_mode },
	{ "vhost", "1: the kernel's vhost-net moves the packets; 0 (default): lkvm's own loop does",
	  net_set_vhost },
	{ "tapif", "the tap to use; made, and gone at the end, when it does not exist",
	  net_set_tapif },
	{ "host_ip", "address[/prefix] of the tap; default 192.168.33.1/24 for one that lkvm makes",
	  net_set_host_ip },
	{ "guest_mac", "MAC address; default: made from the VM's name", net_set_mac },
	{ "script", "program run with the tap's name once it is up, instead of host_ip",
	  net_set_script },
	{ "downscript", "program run with the tap's name before it goes", net_set_downscript },
	{ "trans", "pci, pci-legacy or mmio; default: what --virtio-transport says",
	  net_set_trans },
	{ "guest_ip", NULL, net_refuse },
	{ "fd", NULL, net_refuse },
	{ "mq", NULL, net_refuse },
	{ "queues", NULL, net_refuse },
	{ NULL, NULL, NULL },
};

static void net_free_params(void *params)
{
	struct net_option *n = params;

	if (!n)
		return;
	free(n->host_ip);
	free(n->script);
	free(n->downscript);
	free(n);
}

/* Keys that only mean something for a tap, given without one, are a mistake of the user. */
static int net_check(const struct net_option *n)
{
	bool tap_keys = n->vhost || n->ifname[0] || n->host_ip || n->script || n->downscript;

	if (n->mode == NET_MODE_UNSET) {
		log_err("-n: mode= is missing; use mode=tap or mode=none");
		return -EINVAL;
	}
	if (n->mode == NET_MODE_NONE && tap_keys) {
		log_err("-n: mode=none: the other keys ask for a tap; use mode=tap, or leave them out");
		return -EINVAL;
	}
	return 0;
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

static int net_create(struct machine *m, const void *params, const char *vm_name, unsigned index)
{
	const struct net_option *n = params;
	const struct tap_config cfg = {
		.ifname = n->ifname,
		.host_ip = n->host_ip,
		.script = n->script,
		.downscript = n->downscript,
	};
	struct net_params np = { .queue_size = NET_QUEUE_SIZE };
	struct virtio_device *dev;
	struct vhost *vh = NULL;
	struct netif *nif;
	int err;

	if (n->mode == NET_MODE_NONE)
		return 0;
	if (n->has_mac)
		memcpy(np.mac, n->mac, sizeof(np.mac));
	else
		mac_from_name(np.mac, vm_name, index);
	nif = tap_open(&cfg, &err);
	if (!nif)
		return err;
	if (n->vhost) {
		vh = vhost_net_open(nif->fd, 0, &err);
		if (!vh) {
			nif->ops->close(nif);
			return err;
		}
	}
	dev = net_new(m, &np, nif, vh, &err);
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
