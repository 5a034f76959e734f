// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fake vhost: verbs and their rules. Theory of operation: fake-vhost.h. The worker:
 * fake-vhost-worker.c.
 */
#include <fcntl.h>
#define _LINUX_VIRTIO_RING_H /* as in vhost-kernel.c */
#include <linux/vhost.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake-vhost.h"
#include "fake-vhost-worker.h"
#include "uapi/vhost.h"
#include "virtio/net.h"

static struct fake_vhost *to_fake(struct vhost *vh)
{
	return container_of(vh, struct fake_vhost, vh);
}

static int dup_fd(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* --- the rules, as in drivers/vhost; lock held --- */

static bool in_table(const struct fake_vhost *fv, const void *p, u64 len)
{
	for (unsigned i = 0; i < fv->nr_mem; i++) {
		const char *base = fv->mem[i].hva;

		if ((const char *)p >= base && (const char *)p + len <= base + fv->mem[i].size)
			return true;
	}
	return false;
}

/* What SET_BACKEND checks: else -EFAULT. */
static bool access_ok(const struct fake_vhost *fv, const struct fake_vring *r)
{
	u64 event = fv->features & BIT(VIRTIO_B_EVENT_IDX) ? 2 : 0;

	return r->num && r->desc && in_table(fv, r->desc, r->num * 16ULL) &&
	       in_table(fv, r->avail, 4 + r->num * 2ULL + event) &&
	       in_table(fv, r->used, 4 + r->num * 8ULL + event);
}

static int set_backend(struct fake_vhost *fv, struct fake_vring *r, bool on)
{
	if (!on) {
		r->enabled = false;
		return 0;
	}
	if (!access_ok(fv, r))
		return -EFAULT;
	r->last_used = __atomic_load_n(&r->used->idx, __ATOMIC_RELAXED);
	r->signalled_valid = r->dead = r->waiting = false;
	r->enabled = true;
	fake_worker_begin(r);
	return 0;
}

static int set_addr(struct fake_vring *r, const struct fake_vring *to)
{
	if ((uintptr_t)to->avail % 2 || (uintptr_t)to->used % 4)
		return -EINVAL;
	r->desc = to->desc;
	r->avail = to->avail;
	r->used = to->used;
	return 0;
}

static int set_fd(int *which, int fd)
{
	if (*which >= 0)
		close(*which);
	*which = dup_fd(fd);
	return 0;
}

static int refuse(struct fake_vhost *fv, enum fake_verb verb, struct fake_vring *r, s64 value)
{
	if (!fv->owned && verb != FV_OWNER && verb != FV_GET_FEATURES && verb != FV_FEATURES)
		return -EPERM;
	if (verb == FV_OWNER && fv->owned)
		return -EBUSY;
	if (verb == FV_FEATURES && ((u64)value & ~fv->supported))
		return -EOPNOTSUPP;
	if (verb == FV_FEATURES &&
	    ((u64)value & (BIT(26) | BIT(27) | BIT(VIRTIO_B_ACCESS_PLATFORM))))
		return -EPROTO; /* the kernel would take it, and do what nobody here wants */
	if ((verb == FV_NUM || verb == FV_BASE) && r->enabled)
		return -EBUSY;
	if (verb == FV_NUM && (value <= 0 || value > 0x8000 || (value & (value - 1))))
		return -EINVAL;
	if (verb == FV_BASE && (u64)value > 0xffff)
		return -EINVAL;
	return 0;
}

/* One verb. @arg: FV_MEM: regions; FV_ADDR: struct fake_vring; FV_GET_BASE: u16 to fill. */
static int verb(struct fake_vhost *fv, enum fake_verb v, unsigned ring, s64 value, void *arg)
{
	struct fake_vring *r = &fv->ring[ring];
	u64 one = 1;
	int ret;

	if (ring > 1)
		return -ENOBUFS;
	pthread_mutex_lock(&fv->lock);
	fv->calls++;
	ret = refuse(fv, v, r, value);
	if (ret)
		fv->misuse++;
	else if (fv->calls == fv->fail_at)
		ret = -EIO;
	if (!ret && v == FV_OWNER)
		fv->owned = true;
	else if (!ret && v == FV_FEATURES)
		fv->features = (u64)value;
	else if (!ret && v == FV_MEM)
		memcpy(fv->mem, arg, (fv->nr_mem = (unsigned)value) * sizeof(fv->mem[0]));
	else if (!ret && v == FV_NUM)
		r->num = (u32)value;
	else if (!ret && v == FV_BASE)
		r->last_avail = (u16)value;
	else if (!ret && v == FV_ADDR)
		ret = set_addr(r, arg);
	else if (!ret && v == FV_GET_BASE)
		*(u16 *)arg = r->last_avail;
	else if (!ret && v == FV_BACKEND)
		ret = set_backend(fv, r, value >= 0);
	else if (!ret && (v == FV_CALL || v == FV_KICK || v == FV_ERR))
		ret = set_fd(v == FV_CALL   ? &r->call
			     : v == FV_KICK ? &r->kick
					    : &r->err,
			     (int)value);
	if (ret == -EFAULT || ret == -EINVAL)
		fv->misuse++;
	if (v == FV_CALL || v == FV_KICK || v == FV_ERR || v == FV_BACKEND)
		value = value < 0 ? -1 : 1;
	if (fv->nr_log < ARRAY_SIZE(fv->log))
		fv->log[fv->nr_log++] = (struct fake_call){ v, (u8)ring, value, ret };
	pthread_mutex_unlock(&fv->lock);
	if (write(fv->wake, &one, sizeof(one)) < 0)
		abort();
	return ret;
}

/* --- the wire as struct vhost_ops --- */

static int fake_get_features(struct vhost *vh, u64 features[2])
{
	features[0] = to_fake(vh)->supported;
	features[1] = 0;
	return verb(to_fake(vh), FV_GET_FEATURES, 0, 0, NULL);
}

static int fake_set_features(struct vhost *vh, const u64 features[2])
{
	return verb(to_fake(vh), FV_FEATURES, 0, (s64)features[0], NULL);
}

static int fake_set_mem(struct vhost *vh, const struct guest_mem *mem)
{
	return verb(to_fake(vh), FV_MEM, 0, mem->nr, (void *)mem->r);
}

static int fake_set_vring(struct vhost *vh, unsigned i, const struct virtq *vq)
{
	struct fake_vring to = { .desc = vq->desc, .avail = vq->avail, .used = vq->used };
	int r = verb(to_fake(vh), FV_NUM, i, vq->num, NULL);

	if (!r)
		r = verb(to_fake(vh), FV_BASE, i, vq->next_avail, NULL);
	return r ? r : verb(to_fake(vh), FV_ADDR, i, 0, &to);
}

static int fake_get_base(struct vhost *vh, unsigned i, u16 *next_avail)
{
	return verb(to_fake(vh), FV_GET_BASE, i, 0, next_avail);
}

static int fake_set_kick(struct vhost *vh, unsigned i, int fd)
{
	return verb(to_fake(vh), FV_KICK, i, fd, NULL);
}

static int fake_set_call(struct vhost *vh, unsigned i, int fd)
{
	return verb(to_fake(vh), FV_CALL, i, fd, NULL);
}

static int fake_set_err(struct vhost *vh, unsigned i, int fd)
{
	return verb(to_fake(vh), FV_ERR, i, fd, NULL);
}

static int fake_enable(struct vhost *vh, unsigned i, bool on)
{
	return verb(to_fake(vh), FV_BACKEND, i, on ? 1 : -1, NULL);
}

static void fake_close(struct vhost *vh)
{
	fake_vhost_release(to_fake(vh));
}

static const struct vhost_ops fake_ops = {
	.get_features = fake_get_features,
	.set_features = fake_set_features,
	.set_mem = fake_set_mem,
	.set_vring = fake_set_vring,
	.get_base = fake_get_base,
	.set_kick = fake_set_kick,
	.set_call = fake_set_call,
	.set_err = fake_set_err,
	.enable = fake_enable,
	.close = fake_close,
};

/* --- the wire as ioctls --- */

static int ioctl_mem(struct fake_vhost *fv, const struct vhost_memory *table)
{
	struct mem_region r[MEM_MAX_REGIONS];

	if (table->padding || table->nregions > MEM_MAX_REGIONS)
		return -EOPNOTSUPP;
	for (unsigned i = 0; i < table->nregions; i++) {
		const struct vhost_memory_region *from = &table->regions[i];

		if (from->flags_padding)
			return -EINVAL;
		r[i] = (struct mem_region){ .gpa = from->guest_phys_addr,
					    .size = from->memory_size,
					    .hva = (void *)(uintptr_t)from->userspace_addr };
	}
	return verb(fv, FV_MEM, 0, table->nregions, r);
}

static int ioctl_addr(struct fake_vhost *fv, const struct vhost_vring_addr *a)
{
	struct fake_vring to = { .desc = (const void *)(uintptr_t)a->desc_user_addr,
				 .avail = (const void *)(uintptr_t)a->avail_user_addr,
				 .used = (void *)(uintptr_t)a->used_user_addr };

	if (a->flags)
		return -EOPNOTSUPP;
	return verb(fv, FV_ADDR, a->index, 0, &to);
}

static int ioctl_features(struct fake_vhost *fv, bool set, struct vhost_features_words *words)
{
	if (!fv->has_array)
		return words->count > 1 ? -ENOBUFS : -ENOTTY;
	if (words->count != VHOST_FEATURES_WORDS)
		fv->misuse++;
	if (!set) {
		words->features[0] = fv->supported;
		words->features[1] = fv->supported_high;
		return verb(fv, FV_GET_FEATURES, 0, 0, NULL);
	}
	if (words->features[1] & ~fv->supported_high)
		return -EOPNOTSUPP;
	fv->features_high = words->features[1];
	return verb(fv, FV_FEATURES, 0, (s64)words->features[0], NULL);
}

int fake_vhost_ioctl(struct fake_vhost *fv, unsigned long request, void *arg)
{
	struct vhost_vring_state *state = arg;
	struct vhost_vring_file *file = arg;
	u16 base = 0;
	int r;

	switch (request) {
	case VHOST_SET_OWNER: return verb(fv, FV_OWNER, 0, 0, NULL);
	case VHOST_GET_FEATURES:
		*(u64 *)arg = fv->supported;
		return verb(fv, FV_GET_FEATURES, 0, 0, NULL);
	case VHOST_ARRAY_GET_FEATURES: return ioctl_features(fv, false, arg);
	case VHOST_ARRAY_SET_FEATURES: return ioctl_features(fv, true, arg);
	case VHOST_SET_FEATURES: return verb(fv, FV_FEATURES, 0, (s64) * (u64 *)arg, NULL);
	case VHOST_SET_MEM_TABLE: return ioctl_mem(fv, arg);
	case VHOST_SET_VRING_NUM: return verb(fv, FV_NUM, state->index, state->num, NULL);
	case VHOST_SET_VRING_BASE: return verb(fv, FV_BASE, state->index, state->num, NULL);
	case VHOST_SET_VRING_BUSYLOOP_TIMEOUT:
		if (fv->no_poll || !fv->owned || state->index > 1)
			return fv->no_poll ? -ENOTTY : -EPERM;
		fv->poll_us[state->index] = state->num;
		return 0;
	case VHOST_GET_VRING_BASE:
		r = verb(fv, FV_GET_BASE, state->index, 0, &base);
		state->num = base;
		return r;
	case VHOST_SET_VRING_ADDR: return ioctl_addr(fv, arg);
	case VHOST_SET_VRING_KICK: return verb(fv, FV_KICK, file->index, file->fd, NULL);
	case VHOST_SET_VRING_CALL: return verb(fv, FV_CALL, file->index, file->fd, NULL);
	case VHOST_SET_VRING_ERR: return verb(fv, FV_ERR, file->index, file->fd, NULL);
	case VHOST_NET_SET_BACKEND:
		if (file->fd >= 0 && file->fd != fv->backend)
			return -ENOTSOCK;
		return verb(fv, FV_BACKEND, file->index, file->fd, NULL);
	default: fv->misuse++; return -ENOTTY;
	}
}

/* --- life cycle --- */

struct fake_vhost *fake_vhost_bare(int backend, u64 supported)
{
	struct fake_vhost *fv = calloc(1, sizeof(*fv));

	if (!fv)
		abort();
	fv->backend = backend;
	fv->supported = supported;
	for (unsigned i = 0; i < ARRAY_SIZE(fv->ring); i++)
		fv->ring[i].kick = fv->ring[i].call = fv->ring[i].err = -1;
	pthread_mutex_init(&fv->lock, NULL);
	fv->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fv->wake < 0 || pthread_create(&fv->thread, NULL, fake_worker, fv))
		abort();
	return fv;
}

struct fake_vhost *fake_vhost_new(int backend, u64 supported, u16 first)
{
	struct fake_vhost *fv = fake_vhost_bare(backend, supported);

	fv->owned = true;
	fv->vh.arbiter[0] = BIT(NET_B_MRG_RXBUF) | BIT(VIRTIO_B_INDIRECT_DESC) |
			    BIT(VIRTIO_B_EVENT_IDX) | BIT(VIRTIO_B_VERSION_1);
	if (vhost_init(&fv->vh, &fake_ops, first, 2))
		abort();
	fv->nr_log = 0;
	return fv;
}

void fake_vhost_release(struct fake_vhost *fv)
{
	u64 one = 1;

	pthread_mutex_lock(&fv->lock);
	fv->quit = true;
	pthread_mutex_unlock(&fv->lock);
	if (write(fv->wake, &one, sizeof(one)) < 0)
		abort();
	pthread_join(fv->thread, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(fv->ring); i++) {
		set_fd(&fv->ring[i].kick, -1);
		set_fd(&fv->ring[i].call, -1);
		set_fd(&fv->ring[i].err, -1);
	}
	close(fv->wake);
	fv->closed = true;
}

void fake_vhost_free(struct fake_vhost *fv)
{
	if (!fv)
		return;
	if (!fv->closed)
		fv->vh.be.ops ? fv->vh.be.ops->free(&fv->vh.be) : fake_vhost_release(fv);
	pthread_mutex_destroy(&fv->lock);
	free(fv);
}

const char *fake_vhost_said(struct fake_vhost *fv, char *buf, size_t len)
{
	static const char *const name[] = { "OWNER", "GET_FEATURES", "FEATURES", "MEM",
					    "NUM",   "BASE",         "ADDR",     "CALL",
					    "ERR",   "KICK",         "BACKEND",  "GET_BASE" };
	size_t n = 0;

	_Static_assert(ARRAY_SIZE(name) == FV_NR, "a name for each verb");
	buf[0] = 0;
	pthread_mutex_lock(&fv->lock);
	for (unsigned i = 0; i < fv->nr_log && n < len; i++) {
		const struct fake_call *c = &fv->log[i];

		n += (size_t)snprintf(buf + n, len - n, "%s%s", n ? " " : "", name[c->verb]);
		if (c->verb >= FV_NUM && n < len)
			n += (size_t)snprintf(buf + n, len - n, "%u", c->ring);
		if (c->verb != FV_ADDR && c->verb != FV_GET_BASE && n < len)
			n += (size_t)snprintf(buf + n, len - n, "=%lld", (long long)c->value);
	}
	fv->nr_log = 0;
	pthread_mutex_unlock(&fv->lock);
	return buf;
}
