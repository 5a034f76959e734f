/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the two halves of the modern PCI transport share: virtio/pci.c has what the driver sees
 * (capabilities, registers), virtio/pci-wire.c what it does not (doorbells, interrupts). Rank 4.
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
	unsigned window; /* offset of the PCI_CFG capability in config space */

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

extern const struct virtio_transport_ops virtio_pci_ops;

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

/* Reads the ISR status: clears it and lowers INTx (virtio 1.3 4.1.4.5.1). Takes irq_lock only. */
u8 virtio_pci_isr_read(struct virtio_pci *p);

#endif
