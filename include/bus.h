/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bus: ranges of addresses and who answers there. A machine has two, port I/O and MMIO.
 *
 * Theory of operation: ranges are sorted and never overlap; lookup is a binary search under a read
 * lock, which is dropped before the handler runs. So a handler may add or remove ranges (a BAR
 * move from inside a config write), and a handler may still be running on another vCPU when
 * bus_del() returns: devices outlive all vCPUs. A handler gets the offset in its range, not an
 * address, and returns nothing: what went wrong is the device's state, never the vCPU's.
 * Lock order: the bus lock is innermost, nothing is called with it held. Rank 1.
 */
#ifndef LKVM_BUS_H
#define LKVM_BUS_H

#include <pthread.h>
#include "types.h"

#define BUS_MAX_REGIONS 256

struct bus_ops {
	/*
	 * @len is 1 to 8, KVM splits an access at the end of a page; off + len may pass the end of
	 * the range: fill or ignore that part.
	 */
	void (*read)(void *dev, u64 off, void *data, unsigned len);
	void (*write)(void *dev, u64 off, const void *data, unsigned len);
};

struct bus_region {
	u64 base, len;
	const struct bus_ops *ops;
	void *dev;
};

struct bus {
	pthread_rwlock_t lock;
	struct bus_region r[BUS_MAX_REGIONS];
	unsigned nr;
	u64 misses; /* accesses that nobody answered; atomic */
};

void bus_init(struct bus *bus);
void bus_destroy(struct bus *bus);

/* -EBUSY when the range overlaps another, -EINVAL when empty or wrapping, -ENOSPC when full. */
int bus_add(struct bus *bus, u64 base, u64 len, const struct bus_ops *ops, void *dev) __must_check;

/* Removes the range that begins at @base; nothing happens when there is none. */
void bus_del(struct bus *bus, u64 base);

/* True when somebody answered. A read that nobody answers fills @data with 0xff. */
bool bus_read(struct bus *bus, u64 addr, void *data, unsigned len);
bool bus_write(struct bus *bus, u64 addr, const void *data, unsigned len);

#endif
