/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where virtio-mmio devices are: a fixed number of slots, each with its registers at an address of
 * its own and an interrupt pin that it shares with nobody. Rank 4.
 *
 * Such a device cannot be found by looking. The slots are the architecture's, which describes them
 * all to the guest at build time; which of them hold a device is a register's to say, one bit for
 * each slot.
 */
#ifndef LKVM_VIRTIO_MMIO_H
#define LKVM_VIRTIO_MMIO_H

#include "machine.h"

#define VIRTIO_MMIO_SLOTS 8
#define VIRTIO_MMIO_SIZE  0x1000 /* bytes of a slot */

struct virtio_mmio_layout {
	u64 base;         /* slot n is VIRTIO_MMIO_SIZE * n above */
	u64 present_port; /* I/O port of one byte: bit n = there is a device; 0 = no port */
	u32 gsi[VIRTIO_MMIO_SLOTS]; /* level, active high */
};

/*
 * Gives @m its slots, which @m then owns. Before any device that is put there. -ENOMEM or bus_add's
 * error.
 */
int virtio_mmio_slots_new(struct machine *m, const struct virtio_mmio_layout *layout) __must_check;

#endif
