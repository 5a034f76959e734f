// SPDX-License-Identifier: GPL-2.0-only
/* Buses. Theory of operation: include/bus.h. */
#include "bus.h"

void bus_init(struct bus *bus)
{
	memset(bus, 0, sizeof(*bus));
	pthread_rwlock_init(&bus->lock, NULL);
}

void bus_destroy(struct bus *bus)
{
	pthread_rwlock_destroy(&bus->lock);
}

/* Index of the first region that ends above @addr. */
static unsigned bus_find(const struct bus *bus, u64 addr)
{
	unsigned lo = 0, hi = bus->nr;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (bus->r[mid].base + (bus->r[mid].len - 1) < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int bus_insert(struct bus *bus, const struct bus_region *new)
{
	unsigned i = bus_find(bus, new->base);

	if (i < bus->nr && bus->r[i].base <= new->base + (new->len - 1))
		return -EBUSY;
	if (bus->nr == BUS_MAX_REGIONS)
		return -ENOSPC;
	memmove(&bus->r[i + 1], &bus->r[i], (bus->nr - i) * sizeof(bus->r[0]));
	bus->r[i] = *new;
	bus->nr++;
	return 0;
}

int bus_add(struct bus *bus, u64 base, u64 len, const struct bus_ops *ops, void *dev)
{
	struct bus_region new = { .base = base, .len = len, .ops = ops, .dev = dev };
	int err;

	if (!len || base + (len - 1) < base)
		return -EINVAL;
	pthread_rwlock_wrlock(&bus->lock);
	err = bus_insert(bus, &new);
	pthread_rwlock_unlock(&bus->lock);
	return err;
}

void bus_del(struct bus *bus, u64 base)
{
	unsigned i;

	pthread_rwlock_wrlock(&bus->lock);
	i = bus_find(bus, base);
	if (i < bus->nr && bus->r[i].base == base) {
		bus->nr--;
		memmove(&bus->r[i], &bus->r[i + 1], (bus->nr - i) * sizeof(bus->r[0]));
	}
	pthread_rwlock_unlock(&bus->lock);
}

/* Copies the region that holds @addr, so that its handler runs without the lock. */
static bool bus_lookup(struct bus *bus, u64 addr, struct bus_region *out)
{
	bool hit = false;
	unsigned i;

	pthread_rwlock_rdlock(&bus->lock);
	i = bus_find(bus, addr);
	if (i < bus->nr && bus->r[i].base <= addr) {
		*out = bus->r[i];
		hit = true;
	}
	pthread_rwlock_unlock(&bus->lock);
	if (!hit)
		__atomic_fetch_add(&bus->misses, 1, __ATOMIC_RELAXED);
	return hit;
}

bool bus_read(struct bus *bus, u64 addr, void *data, unsigned len)
{
	struct bus_region r;

	memset(data, 0xff, len);
	if (!bus_lookup(bus, addr, &r))
		return false;
	r.ops->read(r.dev, addr - r.base, data, len);
	return true;
}

bool bus_write(struct bus *bus, u64 addr, const void *data, unsigned len)
{
	struct bus_region r;

	if (!bus_lookup(bus, addr, &r))
		return false;
	r.ops->write(r.dev, addr - r.base, data, len);
	return true;
}
