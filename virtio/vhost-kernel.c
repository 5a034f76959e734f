// SPDX-License-Identifier: GPL-2.0-only
/*
 * The vhost wire to the kernel: each verb is an ioctl on /dev/vhost-net (linux/vhost.h).
 *
 * Theory of operation: one fd serves one queue pair with a kernel thread of its own. Opening it
 * makes us the owner: the worker then uses our address space, so rings are given by the pointers
 * that we have to them, and the memory table says which guest addresses lie where in it. "Enable"
 * is VHOST_NET_SET_BACKEND with the tap, "disable" the same with -1, which waits until the worker
 * has let go of the ring. While a tap is attached the kernel refuses NUM and BASE.
 *
 * Feature words: Linux 6.17 has an ioctl for 128 bits, before there are 64. IN_ORDER, which such a
 * kernel offers as well, is not taken: the worker then finds a chain's head by counting descriptors
 * from BASE on, as if each chain before had one. So a ring could not go from our loop to vhost.
 */
#include <fcntl.h>
/* linux/vhost.h pulls it in for nothing used here; virtq.h has its names */
#define _LINUX_VIRTIO_RING_H
#include <linux/vhost.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "log.h"
#include "mem.h"
#include "uapi/vhost.h"
#include "virtio/device.h"
#include "virtio/net.h"
#include "virtio/vhost.h"

#define VHOST_NET_PATH "/dev/vhost-net"

struct vhost_kernel {
	struct vhost vh;
	int fd;
	int tap_fd; /* the netif's */
};

static struct vhost_kernel *to_vk(struct vhost *vh)
{
	return container_of(vh, struct vhost_kernel, vh);
}

static int vk_ioctl(struct vhost *vh, unsigned long request, void *arg)
{
	return ioctl(to_vk(vh)->fd, request, arg) < 0 ? -errno : 0;
}

static int vk_get_features(struct vhost *vh, u64 features[2])
{
	struct vhost_features_words words = { .count = VHOST_FEATURES_WORDS };
	int r = vk_ioctl(vh, VHOST_ARRAY_GET_FEATURES, &words);

	/* An older kernel takes it for a question about ring number 2 (count): ENOBUFS. */
	if (r != -ENOTTY && r != -ENOBUFS) {
		memcpy(features, words.features, sizeof(words.features));
		return r;
	}
	features[1] = 0;
	return vk_ioctl(vh, VHOST_GET_FEATURES, &features[0]);
}

static int vk_set_features(struct vhost *vh, const u64 features[2])
{
	struct vhost_features_words words = {
		.count = VHOST_FEATURES_WORDS,
		.features = { features[0], features[1] },
	};
	u64 word = features[0];

	if (features[1]) /* the kernel has it: it said that it can these */
		return vk_ioctl(vh, VHOST_ARRAY_SET_FEATURES, &words);
	return vk_ioctl(vh, VHOST_SET_FEATURES, &word);
}

static int vk_set_mem(struct vhost *vh, const struct guest_mem *mem)
{
	union {
		struct vhost_memory table;
		u8 size[sizeof(struct vhost_memory) +
			MEM_MAX_REGIONS * sizeof(struct vhost_memory_region)];
	} u;

	memset(&u, 0, sizeof(u)); /* the kernel refuses padding that is not zero */
	u.table.nregions = mem->nr;
	for (unsigned i = 0; i < mem->nr; i++) {
		u.table.regions[i].guest_phys_addr = mem->r[i].gpa;
		u.table.regions[i].memory_size = mem->r[i].size;
		u.table.regions[i].userspace_addr = (uintptr_t)mem->r[i].hva;
	}
	return vk_ioctl(vh, VHOST_SET_MEM_TABLE, &u.table);
}

static int vk_set_vring(struct vhost *vh, unsigned i, const struct virtq *vq)
{
	struct vhost_vring_state num = { .index = i, .num = vq->num };
	struct vhost_vring_state base = { .index = i, .num = vq->next_avail };
	struct vhost_vring_addr addr = {
		.index = i,
		.desc_user_addr = (uintptr_t)vq->desc,
		.avail_user_addr = (uintptr_t)vq->avail,
		.used_user_addr = (uintptr_t)vq->used,
	};
	int r = vk_ioctl(vh, VHOST_SET_VRING_NUM, &num);

	if (r == 0)
		r = vk_ioctl(vh, VHOST_SET_VRING_BASE, &base);
	if (r == 0)
		r = vk_ioctl(vh, VHOST_SET_VRING_ADDR, &addr);
	return r;
}

static int vk_get_base(struct vhost *vh, unsigned i, u16 *next_avail)
{
	struct vhost_vring_state base = { .index = i };
	int r = vk_ioctl(vh, VHOST_GET_VRING_BASE, &base);

	if (r == 0)
		*next_avail = (u16)base.num;
	return r;
}

static int vk_set_file(struct vhost *vh, unsigned long request, unsigned i, int fd)
{
	struct vhost_vring_file file = { .index = i, .fd = fd };

	return vk_ioctl(vh, request, &file);
}

static int vk_set_kick(struct vhost *vh, unsigned i, int fd)
{
	return vk_set_file(vh, VHOST_SET_VRING_KICK, i, fd);
}

static int vk_set_call(struct vhost *vh, unsigned i, int fd)
{
	return vk_set_file(vh, VHOST_SET_VRING_CALL, i, fd);
}

static int vk_set_err(struct vhost *vh, unsigned i, int fd)
{
	return vk_set_file(vh, VHOST_SET_VRING_ERR, i, fd);
}

static int vk_enable(struct vhost *vh, unsigned i, bool on)
{
	return vk_set_file(vh, VHOST_NET_SET_BACKEND, i, on ? to_vk(vh)->tap_fd : -1);
}

static void vk_close(struct vhost *vh)
{
	struct vhost_kernel *vk = to_vk(vh);

	close(vk->fd);
	free(vk);
}

static const struct vhost_ops vhost_kernel_ops = {
	.get_features = vk_get_features,
	.set_features = vk_set_features,
	.set_mem = vk_set_mem,
	.set_vring = vk_set_vring,
	.get_base = vk_get_base,
	.set_kick = vk_set_kick,
	.set_call = vk_set_call,
	.set_err = vk_set_err,
	.enable = vk_enable,
	.close = vk_close,
};

static int vhost_open(const char *path, const char *module)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	int err = errno;

	if (fd >= 0)
		return fd;
	if (err == EACCES || err == EPERM)
		log_err("-n: vhost=1: %s: %s; give this user access to it, or use vhost=0", path,
			strerror(err));
	else
		log_err("-n: vhost=1: %s: %s; modprobe %s, or use vhost=0", path, strerror(err),
			module);
	return -err;
}

static int set_polling(struct vhost *vh, unsigned poll_us)
{
	int r = 0;

	for (unsigned i = 0; i < 2 && !r; i++) {
		struct vhost_vring_state state = { .index = i, .num = poll_us };

		r = vk_ioctl(vh, VHOST_SET_VRING_BUSYLOOP_TIMEOUT, &state);
	}
	return r;
}

/* What has to be asked and set once. *@step is what failed. */
static int vk_init(struct vhost_kernel *vk, u16 first, unsigned poll_us, const char **step)
{
	int r = vk_ioctl(&vk->vh, VHOST_SET_OWNER, NULL);

	*step = "VHOST_SET_OWNER";
	if (r == 0) {
		*step = "VHOST_GET_FEATURES";
		r = vhost_init(&vk->vh, &vhost_kernel_ops, first, 2);
	}
	if (r == 0 && !(vk->vh.features[0] & BIT(VIRTIO_B_VERSION_1))) {
		*step = "VIRTIO_F_VERSION_1";
		r = -EOPNOTSUPP;
	}
	if (r == 0 && poll_us) {
		*step = "poll_us=: VHOST_SET_VRING_BUSYLOOP_TIMEOUT";
		r = set_polling(&vk->vh, poll_us);
	}
	return r;
}

struct vhost *vhost_net_open(const struct vhost_net_config *cfg, int tap_fd, u16 first, int *err)
{
	struct vhost_kernel *vk = calloc(1, sizeof(*vk));
	const char *step;

	if (!vk) {
		if (cfg && cfg->fd >= 0)
			close(cfg->fd);
		*err = log_no_memory("-n: vhost=1");
		return NULL;
	}
	vk->tap_fd = tap_fd;
	vk->vh.err.fd = -1;
	vk->vh.arbiter[0] = BIT(NET_B_MRG_RXBUF) | BIT(VIRTIO_B_INDIRECT_DESC) |
			    BIT(VIRTIO_B_EVENT_IDX) | BIT(VIRTIO_B_VERSION_1);
	vk->fd = cfg && cfg->fd >= 0 ? cfg->fd : vhost_open(VHOST_NET_PATH, "vhost_net");
	if (vk->fd < 0) {
		*err = vk->fd;
		free(vk);
		return NULL;
	}
	*err = vk_init(vk, first, cfg ? cfg->poll_us : 0, &step);
	if (*err == 0)
		return &vk->vh;
	if (cfg && cfg->fd >= 0)
		log_err("-n: vhostfd=%d: %s: %s; pass a new fd of %s", cfg->fd, step,
			strerror(-*err), VHOST_NET_PATH);
	else
		log_err("-n: vhost=1: %s: %s: %s; use a newer kernel, or vhost=0", VHOST_NET_PATH,
			step, strerror(-*err));
	if (vk->vh.err.fd >= 0)
		close(vk->vh.err.fd);
	vk_close(&vk->vh);
	return NULL;
}
