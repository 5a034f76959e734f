/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One PCI bus (segment 0, bus 0): config space by ECAM and by ports 0xcf8/0xcfc, BARs that the
 * guest may move, INTx lines.
 *
 * Theory of operation: config space is 256 bytes with a mask of the bits that the guest may write;
 * the rest of ECAM's 4096 reads 0. BARs get addresses when the device is added, since there is no
 * firmware; they are on the bus while the command register enables their kind of space. Every
 * config access runs under the root's lock, which is outermost: root lock > device lock > MSI-X
 * lock > bus lock. Rank 3.
 */
#ifndef LKVM_HW_PCI_H
#define LKVM_HW_PCI_H

#include "machine.h"

#define PCI_MAX_SLOTS  32
#define PCI_NR_BARS    6
#define PCI_INTX_LINES 4

struct pci_dev;

struct pci_bar {
	u64 size; /* power of two, at least 4 for I/O and 4096 for memory; 0 = no such BAR */
	u64 addr; /* where the guest has it now */
	bool io;
	bool mapped;
	const struct bus_ops *ops; /* the handler gets the offset in the BAR */
	void *ops_dev;
};

struct pci_dev {
	u8 cfg[256];
	u8 wmask[256]; /* 1 = the guest may write this bit */
	u8 power_on[256];
	struct pci_bar bar[PCI_NR_BARS];
	u8 next_cap; /* where the next capability goes */
	u8 last_cap; /* whose next pointer it becomes */
	struct pci_root *root;
	unsigned slot;
	u32 intx_gsi;

	/*
	 * Hooks, NULL when not needed; called with the root's lock held.
	 * bar_moved: BAR @bar was or will be at ->bar[].addr: mapped tells which. Called before it
	 *   leaves an address (mapped = false) and after it came to one (mapped = true).
	 * cfg_read / cfg_write: before a read and after a write of config bytes [off, off + len).
	 */
	void (*bar_moved)(struct pci_dev *dev, unsigned bar, bool mapped);
	void (*cfg_read)(struct pci_dev *dev, unsigned off, unsigned len);
	void (*cfg_write)(struct pci_dev *dev, unsigned off, unsigned len);
	/*
	 * reset: config space and BARs are back to power-on, the rest of the device is to follow.
	 */
	void (*reset)(struct pci_dev *dev);
};

/* Address ranges that a root hands out to BARs, and its INTx lines' GSIs. The architecture's. */
struct pci_layout {
	u64 ecam;                 /* 1 MiB: bus 0 */
	u64 mmio_base, mmio_size; /* below 4 GiB */
	u64 io_base, io_size;     /* I/O ports; size 0 = there are none, as on arm64 */
	u64 conf1;                /* port of CONFIG_ADDRESS, or 0 for none */
	u32 intx_gsi[PCI_INTX_LINES];
};

/*
 * Makes the root with its host bridge in slot 0 and links it to @m. NULL when out of memory or bus
 * ranges.
 */
struct pci_root *pci_root_new(struct machine *m, const struct pci_layout *layout) __must_check;
void pci_root_free(struct pci_root *root); /* NULL is fine; the devices are gone already */

/* True when the root can place an I/O BAR. */
bool pci_has_io(const struct pci_root *root);

/* Fills in IDs, class, revision and the read-only defaults of config space. No failure. */
void pci_dev_init(struct pci_dev *dev, u16 vendor, u16 device, u16 subsystem, u32 class_code,
		  u8 revision);

/* Declares a BAR; before pci_dev_add(). Memory BARs are 32 bit, not prefetchable. */
void pci_dev_bar(struct pci_dev *dev, unsigned bar, u64 size, bool io, const struct bus_ops *ops,
		 void *ops_dev);

/*
 * Appends a capability of @len bytes, of which the first two (ID, next) are filled in here. Returns
 * its offset in config space. The caller knows that it fits: capabilities are fixed at build time.
 */
unsigned pci_dev_cap(struct pci_dev *dev, u8 id, const void *cap, unsigned len);

/*
 * Gives the device a slot, addresses for its BARs and an INTx line, and maps it. -ENOSPC when full.
 */
int pci_dev_add(struct pci_root *root, struct pci_dev *dev) __must_check;

/* Takes it off the bus; its memory stays the caller's. Safe when it was never added. */
void pci_dev_del(struct pci_dev *dev);

/* Brings config space and BARs of all devices back to power-on. No vCPU runs. */
void pci_root_reset(struct pci_root *root);

/* Drives the device's INTx line; lines are shared, the level is the OR of all devices on one. */
void pci_intx(struct pci_dev *dev, bool level);

#endif
