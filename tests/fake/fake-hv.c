// SPDX-License-Identifier: GPL-2.0-only
/* The fake hypervisor. Theory of operation: fake-hv.h. */
#include <unistd.h>

#include "fake-hv.h"

static struct fake_hv *to_fake(struct hv *hv)
{
	return container_of(hv, struct fake_hv, hv);
}

/* Lock held. True when this call is the one that has to fail. */
static bool call_fails(struct fake_hv *fh)
{
	return ++fh->calls == fh->fail_at;
}

static int failure(const struct fake_hv *fh)
{
	return fh->fail_with ? fh->fail_with : -EIO;
}

static int misuse(struct fake_hv *fh, int err)
{
	fh->misuse++;
	return err;
}

static bool same_msg(const struct msi_msg *a, const struct msi_msg *b)
{
	return a->addr == b->addr && a->data == b->data;
}

static void count_msi(struct fake_hv *fh, const struct msi_msg *msg)
{
	unsigned i = 0;

	while (i < fh->nr_msi && !same_msg(&fh->msi[i].msg, msg))
		i++;
	if (i == FAKE_HV_MESSAGES)
		return;
	if (i == fh->nr_msi)
		fh->nr_msi++;
	fh->msi[i].msg = *msg;
	fh->msi[i].count++;
}

static void inject(struct fake_hv *fh, u32 gsi)
{
	fh->irqs[gsi]++;
	if (gsi < FAKE_HV_PINS)
		return;
	/* cppcheck-suppress arrayIndexOutOfBoundsCond ; callers check it against HV_MAX_GSI */
	if (fh->routed[gsi])
		count_msi(fh, &fh->route[gsi]);
	else
		fh->lost++;
}

/*
 * Lock held. One interrupt when @f was signalled, however often: as an eventfd's counter does it.
 */
static unsigned deliver_one(struct fake_hv *fh, const struct fake_irqfd *f)
{
	u64 count;

	if (read(f->fd, &count, sizeof(count)) != sizeof(count))
		return 0;
	inject(fh, f->gsi);
	return 1;
}

/* --- the four verbs --- */

static int fake_irq_line(struct hv *hv, u32 gsi, bool level)
{
	struct fake_hv *fh = to_fake(hv);
	int r = 0;

	pthread_mutex_lock(&fh->lock);
	if (gsi >= FAKE_HV_PINS) {
		r = misuse(fh, -EINVAL);
	} else {
		fh->rises[gsi] += level && !fh->level[gsi];
		fh->level[gsi] = level;
	}
	pthread_mutex_unlock(&fh->lock);
	return r;
}

static int irqfd_on(struct fake_hv *fh, u32 gsi, int fd, int resamplefd)
{
	struct fake_irqfd *f = &fh->irqfd[fh->nr_irqfds];

	if (gsi >= HV_MAX_GSI || fd < 0)
		return misuse(fh, -EINVAL);
	for (unsigned i = 0; i < fh->nr_irqfds; i++)
		if (fh->irqfd[i].fd == fd)
			return misuse(fh, -EBUSY);
	if (call_fails(fh))
		return failure(fh);
	if (fh->nr_irqfds == FAKE_HV_IRQFDS)
		return -ENOSPC;
	*f = (struct fake_irqfd){ .fd = fd, .resamplefd = resamplefd, .gsi = gsi };
	fh->nr_irqfds++;
	deliver_one(fh, f);
	return 0;
}

static int irqfd_off(struct fake_hv *fh, u32 gsi, int fd)
{
	for (unsigned i = 0; i < fh->nr_irqfds; i++) {
		if (fh->irqfd[i].fd != fd || fh->irqfd[i].gsi != gsi)
			continue;
		deliver_one(fh, &fh->irqfd[i]);
		fh->irqfd[i] = fh->irqfd[--fh->nr_irqfds];
		return 0;
	}
	return misuse(fh, -ENOENT);
}

static int fake_irqfd(struct hv *hv, u32 gsi, int fd, int resamplefd, bool on)
{
	struct fake_hv *fh = to_fake(hv);
	int r;

	pthread_mutex_lock(&fh->lock);
	r = on ? irqfd_on(fh, gsi, fd, resamplefd) : irqfd_off(fh, gsi, fd);
	pthread_mutex_unlock(&fh->lock);
	return r;
}

static int route_set(struct fake_hv *fh, u32 gsi, const struct msi_msg *msg)
{
	if (call_fails(fh))
		return failure(fh);
	fh->nr_routes += !fh->routed[gsi];
	fh->routed[gsi] = true;
	fh->route[gsi] = *msg;
	return 0;
}

static int route_free(struct fake_hv *fh, u32 gsi)
{
	if (!fh->routed[gsi])
		return misuse(fh, -ENOENT);
	fh->routed[gsi] = false;
	fh->nr_routes--;
	return 0;
}

static int fake_msi_route(struct hv *hv, u32 gsi, const struct msi_msg *msg)
{
	struct fake_hv *fh = to_fake(hv);
	int r;

	pthread_mutex_lock(&fh->lock);
	if (gsi < FAKE_HV_PINS || gsi >= HV_MAX_GSI)
		r = misuse(fh, -EINVAL);
	else
		r = msg ? route_set(fh, gsi, msg) : route_free(fh, gsi);
	pthread_mutex_unlock(&fh->lock);
	return r;
}

/* The doorbell that a write rings; one without match takes any value and width. */
static int bell_find(const struct fake_hv *fh, const struct doorbell *w)
{
	for (unsigned i = 0; i < fh->nr_bells; i++) {
		const struct doorbell *db = &fh->bell[i].db;

		if (db->addr != w->addr || db->pio != w->pio)
			continue;
		if (!db->match || (db->len == w->len && db->value == w->value))
			return (int)i;
	}
	return -1;
}

/* KVM's rule: at one address either one for all writes, or some that differ. */
static bool bell_taken(const struct fake_hv *fh, const struct doorbell *new)
{
	for (unsigned i = 0; i < fh->nr_bells; i++) {
		const struct doorbell *db = &fh->bell[i].db;

		if (db->addr == new->addr && db->pio == new->pio &&
		    (!new->match || !db->match || (db->len == new->len && db->value == new->value)))
			return true;
	}
	return false;
}

static int bell_on(struct fake_hv *fh, const struct doorbell *db, int fd)
{
	if (fd < 0)
		return misuse(fh, -EINVAL);
	if (db->match && db->len != 1 && db->len != 2 && db->len != 4 && db->len != 8)
		return misuse(fh, -EINVAL);
	if (bell_taken(fh, db))
		return misuse(fh, -EEXIST);
	if (call_fails(fh))
		return failure(fh);
	if (fh->nr_bells == FAKE_HV_BELLS)
		return -ENOSPC;
	fh->bell[fh->nr_bells++] = (struct fake_bell){ .db = *db, .fd = fd };
	return 0;
}

static int bell_off(struct fake_hv *fh, const struct doorbell *db, int fd)
{
	int i = bell_find(fh, db);

	if (i < 0 || fh->bell[i].fd != fd || fh->bell[i].db.match != db->match)
		return misuse(fh, -ENOENT);
	fh->bell[i] = fh->bell[--fh->nr_bells];
	return 0;
}

static int fake_ioeventfd(struct hv *hv, const struct doorbell *db, int fd, bool on)
{
	struct fake_hv *fh = to_fake(hv);
	int r;

	pthread_mutex_lock(&fh->lock);
	r = on ? bell_on(fh, db, fd) : bell_off(fh, db, fd);
	pthread_mutex_unlock(&fh->lock);
	return r;
}

static const struct hv_ops fake_hv_ops = {
	.irq_line = fake_irq_line,
	.irqfd = fake_irqfd,
	.msi_route = fake_msi_route,
	.ioeventfd = fake_ioeventfd,
};

/* --- for tests --- */

void fake_hv_init(struct fake_hv *fh)
{
	memset(fh, 0, sizeof(*fh));
	fh->hv.ops = &fake_hv_ops;
	hv_gsi_init(&fh->hv, FAKE_HV_PINS);
	pthread_mutex_init(&fh->lock, NULL);
}

void fake_hv_destroy(struct fake_hv *fh)
{
	pthread_mutex_destroy(&fh->lock);
	hv_gsi_destroy(&fh->hv);
}

void fake_hv_fail(struct fake_hv *fh, unsigned n)
{
	pthread_mutex_lock(&fh->lock);
	fh->fail_at = n ? fh->calls + n : 0;
	pthread_mutex_unlock(&fh->lock);
}

unsigned fake_hv_deliver(struct fake_hv *fh)
{
	unsigned n = 0;

	pthread_mutex_lock(&fh->lock);
	for (unsigned i = 0; i < fh->nr_irqfds; i++)
		n += deliver_one(fh, &fh->irqfd[i]);
	pthread_mutex_unlock(&fh->lock);
	return n;
}

u64 fake_hv_msi_count(struct fake_hv *fh, u64 addr, u32 data)
{
	const struct msi_msg msg = { .addr = addr, .data = data };
	u64 count = 0;

	fake_hv_deliver(fh);
	pthread_mutex_lock(&fh->lock);
	for (unsigned i = 0; i < fh->nr_msi; i++)
		if (same_msg(&fh->msi[i].msg, &msg))
			count = fh->msi[i].count;
	pthread_mutex_unlock(&fh->lock);
	return count;
}

bool fake_hv_doorbell(struct fake_hv *fh, u64 addr, bool pio, u32 value, u8 len)
{
	const struct doorbell write_to = {
		.addr = addr, .pio = pio, .match = true, .len = len, .value = value
	};
	u64 one = 1;
	bool hit;
	int i;

	pthread_mutex_lock(&fh->lock);
	i = bell_find(fh, &write_to);
	hit = i >= 0 && write(fh->bell[i].fd, &one, sizeof(one)) == sizeof(one);
	pthread_mutex_unlock(&fh->lock);
	return hit;
}

bool fake_hv_level(struct fake_hv *fh, u32 gsi)
{
	bool level;

	pthread_mutex_lock(&fh->lock);
	level = fh->level[gsi];
	pthread_mutex_unlock(&fh->lock);
	return level;
}
