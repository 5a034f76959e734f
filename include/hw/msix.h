/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * MSI-X: table, pending bits, and the wiring from eventfds to vectors.
 *
 * Theory of operation: a device has sources (one eventfd for each virtqueue, one for its config
 * interrupt); a bind joins a source to a vector, several sources may share one. For each vector an
 * idempotent sync computes what should be (enabled, not masked, fds bound) and moves the GSI route
 * and the irqfds there. A signal while masked stays in the eventfd: it is the pending bit, and the
 * kernel delivers it when the irqfd comes back. So there is no path on which we inject an
 * interrupt ourselves. PCI 3.0 6.8.2. Lock: its own, below the device lock. Rank 3.
 */
#ifndef LKVM_HW_MSIX_H
#define LKVM_HW_MSIX_H

#include <pthread.h>
#include "hv.h"

#define MSIX_MAX_VECTORS 64
#define MSIX_MAX_SOURCES 64
#define MSIX_NO_VECTOR   0xffff
#define MSIX_TABLE_SIZE  (MSIX_MAX_VECTORS * 16) /* bytes; the PBA follows it in the BAR */
#define MSIX_BAR_SIZE    4096

struct pci_dev;

struct msix_vector {
	u32 entry[4]; /* address low, address high, data, control (bit 0 = masked) */
	u32 gsi;
	bool routed;
	struct msi_msg msg; /* what the route says */
};

struct msix_source {
	int fd; /* -1 = not bound; the device's, not closed here */
	u16 vector;
	bool live; /* its irqfd is in place */
};

struct msix {
	pthread_mutex_t lock;
	struct hv *hv;
	struct pci_dev *pci;
	unsigned cap; /* offset of the capability in config space */
	unsigned nr_vectors, nr_sources;
	struct msix_vector vec[MSIX_MAX_VECTORS];
	struct msix_source src[MSIX_MAX_SOURCES];
	bool enabled, masked; /* function enable and function mask */
	int error;            /* what the hypervisor last refused: the device is then broken */
};

/*
 * Adds the capability and a memory BAR of MSIX_BAR_SIZE to @pci. Before pci_dev_add(). -EINVAL when
 * @nr_vectors or @nr_sources is 0 or too large.
 */
int msix_init(struct msix *msix, struct pci_dev *pci, struct hv *hv, unsigned bar,
	      unsigned nr_vectors, unsigned nr_sources) __must_check;

/* Frees all routes; sources must be unbound or their fds still open. Safe on a zeroed struct. */
void msix_free(struct msix *msix);

/* Call from the device's cfg_write hook. True when the enable bit changed. */
bool msix_cfg_write(struct msix *msix, unsigned off, unsigned len);

/*
 * Joins @fd to @vector; MSIX_NO_VECTOR = to none, signals then stay in the fd. -EINVAL for a vector
 * that is not there, else the hypervisor's error.
 */
int msix_bind(struct msix *msix, unsigned source, u16 vector, int fd) __must_check;
void msix_unbind(struct msix *msix, unsigned source);

/* Back to the state after power-on: all vectors masked, all sources unbound. */
void msix_reset(struct msix *msix);

#endif
