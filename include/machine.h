/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a device sees of the machine it lives in. struct vm embeds it and adds what devices must
 * not see; tests build one by hand. Rank 2.
 */
#ifndef LKVM_MACHINE_H
#define LKVM_MACHINE_H

#include "bus.h"
#include "hv.h"
#include "mem.h"

struct loop;
struct machine;
struct pci_root;
struct mmio_slots;
struct console;

/*
 * Why a VM ended. The first reason wins, but that a user's or a signal's end replaces a reset,
 * which may begin another life of the guest. outcome.c turns it into an exit status.
 */
enum stop_why {
	STOP_NONE,
	STOP_POWEROFF,     /* the guest powered off */
	STOP_RESET,        /* the guest asked for a reset */
	STOP_TRIPLE_FAULT, /* + detail = the index of the vCPU */
	STOP_KVM,          /* KVM cannot go on with a vCPU; + detail = its index */
	STOP_PANIC,        /* the guest's kernel panicked */
	STOP_TIMEOUT,      /* --timeout; + detail = seconds */
	STOP_SIGNAL,       /* + detail = signal number */
	STOP_USER,         /* the user asked for the end (Ctrl-a x, lkvm stop) */
	STOP_ERROR,        /* lkvm could not go on; what happened is already logged */
	STOP_NR
};

/* How a guest reaches a virtio device (virtio 1.3 section 4). */
enum virtio_transport_kind { VIRTIO_ON_PCI, VIRTIO_ON_PCI_LEGACY, VIRTIO_ON_MMIO };

/* Every device starts with one; the machine ends and frees them in reverse order of creation. */
struct device {
	struct device *next; /* the one created before */
	const char *type;
	void (*stop)(struct device *dev); /* nobody touches guest memory after it; may be NULL */
	void (*free)(struct device *dev); /* frees the device and all it owns */
	void (*reset)(
		struct device *dev); /* back to power-on, no vCPU runs; NULL = it has no state */
	/* Appends the device's counters as a JSON object; may be NULL. */
	void (*stat)(struct device *dev, FILE *out);
};

struct machine {
	struct guest_mem mem;
	struct bus pio, mmio;
	struct hv *hv;
	struct loop *loop;
	unsigned nr_cpus; /* vCPUs; 0 = unknown, as in a test */
	struct pci_root *pci;
	struct mmio_slots *mmio_slots;        /* virtio/mmio.h; NULL = there are none */
	enum virtio_transport_kind transport; /* of devices that were not given one of their own */
	struct device *devices;               /* last created first */
	/*
	 * Any thread; the first call wins. @detail: signal number or vCPU index, see enum stop_why.
	 */
	void (*stop)(struct machine *m, enum stop_why why, int detail);
};

/* Links @dev in: from now on the machine owns it. */
void machine_add(struct machine *m, struct device *dev);

/* Brings all devices back to power-on, for the next life of the guest. No vCPU runs. */
void machine_reset_devices(struct machine *m);

/* Stops and frees all devices, last created first. */
void machine_free_devices(struct machine *m);

#endif
