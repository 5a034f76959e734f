/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hypervisor seam: the only four things that a device may ever ask for. KVM implements it in
 * kvm-hv.c, the tests in tests/fake/fake-hv.c. Rank 1: does not name KVM.
 */
#ifndef LKVM_HV_H
#define LKVM_HV_H

#include <pthread.h>
#include "types.h"

#define HV_MAX_GSI 1024

struct msi_msg {
	u64 addr;
	u32 data;
};

/*
 * An address whose write is a signal: any write, where each virtqueue has an address of its own; or
 * only one of @value, @len (1, 2, 4 or 8) bytes wide, where all of them share one.
 */
struct doorbell {
	u64 addr;
	bool pio;
	bool match;
	u8 len;
	u32 value;
};

struct hv;

struct hv_ops {
	/* Drives a level on an interrupt controller pin. */
	int (*irq_line)(struct hv *hv, u32 gsi, bool level);

	/*
	 * Binds an eventfd to a GSI: a signal on @fd becomes an interrupt without us. A signal that
	 * was pending when it is bound is delivered; after unbinding none is. An fd is bound once
	 * at most (-EBUSY); several fds may share a GSI. @resamplefd -1, or signalled on EOI of a
	 * level GSI.
	 */
	int (*irqfd)(struct hv *hv, u32 gsi, int fd, int resamplefd, bool on);

	/* Makes @gsi mean this message; NULL frees the route. A live irqfd need not be rebound. */
	int (*msi_route)(struct hv *hv, u32 gsi, const struct msi_msg *msg);

	/*
	 * A guest write to the doorbell signals @fd instead of leaving the kernel. -EEXIST when the
	 * same write is another's already.
	 */
	int (*ioeventfd)(struct hv *hv, const struct doorbell *db, int fd, bool on);
};

/* Embedded in the implementation. */
struct hv {
	const struct hv_ops *ops;
	pthread_mutex_t gsi_lock;
	u32 gsi_first; /* the pins of the interrupt controller lie below */
	u64 gsi_used[HV_MAX_GSI / 64];
};

/* irq.c: hands out GSIs for MSI routes, from @first up. */
void hv_gsi_init(struct hv *hv, u32 first);
void hv_gsi_destroy(struct hv *hv);
int hv_gsi_alloc(struct hv *hv); /* a GSI, or -ENOSPC */
void hv_gsi_free(struct hv *hv, u32 gsi);

#endif
