/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the PCI transports share: virtio/pci.c has what a modern driver sees
 * (capabilities, registers), virtio/pci-legacy.c what a legacy one does, virtio/pci-wire.c what
 * neither does (doorbells, interrupts). Rank 4.
 *
 * Locks: the device lock guards registers and wires. irq_lock, below it, guards the ISR status
 * together with the INTx line, so that a read of the ISR waits for no burst of packets and never
 * leaves the line up without a bit. The config space hooks run under the PCI root's lock, which is
 * above both; so bar[] is our own copy of where the BARs are, read under the device lock.
 */
#ifndef LKVM_VIRTIO_PCI_H
#define LKVM_VIRTIO_PCI_H

#include "hw/msix.h"
#include "hw/pci.h"
#include "loop.h"
#include "virtio/device.h"

#define VIRTIO_PCI_PAGE          0x1000
#define VIRTIO_PCI_NOTIFY_STRIDE 4 /* bytes for each queue's doorbell */

enum { BAR_REGS, BAR_MSIX, BAR_NOTIFY_IO };
enum { PAGE_COMMON, PAGE_ISR, PAGE_DEVICE, PAGE_NOTIFY, NR_PAGES }; /* of BAR_REGS */
enum { BELL_MEM, BELL_IO, NR_BELLS };

/* Where doorbells are: at @off of a BAR, for each queue @stride further on. */
struct pci_bells {
	bool there, io;
	u8 bar;
	u8 match; /* not 0: all are at @off, so many bytes wide, and the value names the queue */
	u32 off, stride;
};

struct pci_queue {
	struct virtio_pci *p;
	struct virtq *vq;
	u16 vector;
	bool wired;
	struct {
		struct doorbell db;
		bool live;
	} bell[NR_BELLS];
	struct loop_src call; /* INTx only */
	bool intx;            /* irq_lock: call is in the loop and ours to raise the line for */
};

struct virtio_pci {
	struct virtio_transport tp;
	struct pci_dev pci;
	struct msix msix;
	unsigned window; /* offset of the PCI_CFG capability in config space; 0 = there is none */
	struct pci_bells bells[NR_BELLS];

	struct {
		u64 addr;
		bool mapped;
	} bar[PCI_NR_BARS]; /* device lock */
	struct pci_queue q[VIRTIO_MAX_VQS];
	u32 device_feature_select, driver_feature_select;
	u16 queue_select, config_vector;
	int config_call; /* eventfd: the source of config interrupts with MSI-X */

	pthread_mutex_t irq_lock;
	bool msix_on; /* written under both locks */
};

/* --- pci-wire.c; device lock held, where it does not say otherwise --- */

extern const struct virtio_transport_ops virtio_pci_ops, virtio_pci_legacy_ops;

/* A doorbell write that no ioeventfd caught. Any number may come as queue @i. */
void virtio_pci_doorbell(struct virtio_pci *p, u64 i);

/*
 * Queues without wires, vectors set to none. Before anybody else sees @p; virtio_pci_ops.free ends
 * it.
 */
void virtio_pci_wires_init(struct virtio_pci *p);

/*
 * Sets the vector of config interrupts, or of a queue, and moves the wire when there is one. A
 * vector that is not there, or cannot be had, reads back as MSIX_NO_VECTOR (virtio 1.3 4.1.5.1.2).
 */
void virtio_pci_set_config_vector(struct virtio_pci *p, u64 vector);
void virtio_pci_set_queue_vector(struct pci_queue *q, u64 vector);

/*
 * Hook of pci_dev: the doorbells of a BAR leave with it, or come to where it landed. Takes the
 * lock.
 */
void virtio_pci_bar_moved(struct pci_dev *pci, unsigned bar, bool mapped);

/* MSI-X was switched on or off: the calls of running queues go the other way. */
void virtio_pci_msix_switched(struct virtio_pci *p);

/*
 * pci.c: makes a device with these @ops whose BARs and capabilities @build declares, after IDs and
 * class were filled in from @ids. The device's error, or pci_dev_add()'s.
 */
struct virtio_pci_ids {
	u16 device, subsystem;
	u8 revision;
};
int virtio_pci_attach_as(struct virtio_device *dev, const struct virtio_transport_ops *ops,
			 const struct virtio_pci_ids *ids,
			 int (*build)(struct virtio_pci *p)) __must_check;

/* For @build, at its end: MSI-X in BAR_MSIX, a vector for each queue and one for config. */
int virtio_pci_add_msix(struct virtio_pci *p) __must_check;

/* Reads the ISR status: clears it and lowers INTx (virtio 1.3 4.1.4.5.1). Takes irq_lock only. */
u8 virtio_pci_isr_read(struct virtio_pci *p);

#endif
