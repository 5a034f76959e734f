/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A hypervisor of plain fds: it keeps the rules of KVM's irqfd, ioeventfd and GSI routes, and what
 * it would inject it counts.
 *
 * Theory of operation: an irqfd is only looked at in fake_hv_deliver(), and when it is bound or
 * unbound: a signal pending at bind is an interrupt, one that came while bound is an interrupt also
 * if nobody called deliver in between, one that comes after unbinding stays in the fd. A doorbell
 * is what fake_hv_doorbell() finds. Any thread may call anything.
 *
 * Stricter than KVM: removing what is not there is an error, and all errors that the caller caused
 * are counted in misuse; a test ends with CHECK_EQ(hv.misuse, 0).
 */
#ifndef LKVM_TESTS_FAKE_HV_H
#define LKVM_TESTS_FAKE_HV_H

#include "hv.h"

#define FAKE_HV_PINS     24 /* GSIs below are pins of the interrupt controller */
#define FAKE_HV_IRQFDS   128
#define FAKE_HV_BELLS    256
#define FAKE_HV_MESSAGES 128

struct fake_hv {
	struct hv hv;
	pthread_mutex_t lock;

	bool level[FAKE_HV_PINS]; /* what irq_line said last */
	u64 rises[FAKE_HV_PINS];  /* how often it went up */
	bool routed[HV_MAX_GSI];
	struct msi_msg route[HV_MAX_GSI];
	struct fake_irqfd {
		int fd, resamplefd;
		u32 gsi;
	} irqfd[FAKE_HV_IRQFDS];
	struct fake_bell {
		struct doorbell db;
		int fd;
	} bell[FAKE_HV_BELLS];
	unsigned nr_irqfds, nr_bells, nr_routes; /* live now */

	/* Interrupts delivered: by GSI, and by message. lost: through a GSI without a route. */
	u64 irqs[HV_MAX_GSI], lost;
	struct {
		struct msi_msg msg;
		u64 count;
	} msi[FAKE_HV_MESSAGES];
	unsigned nr_msi;

	unsigned calls;   /* of all four verbs, but for those that take something away */
	unsigned fail_at; /* the call with this number fails, counted from 1; 0 = none */
	int fail_with;    /* its -errno; 0 = -EIO */
	unsigned misuse;
};

void fake_hv_init(struct fake_hv *fh);
void fake_hv_destroy(struct fake_hv *fh);

/* The next @n-th call of a verb that sets something up fails; 0 = none any more. */
void fake_hv_fail(struct fake_hv *fh, unsigned n);

/* Turns signals on bound irqfds into counted interrupts; how many. */
unsigned fake_hv_deliver(struct fake_hv *fh);

/* How often message (@addr, @data) was delivered, pending signals included. */
u64 fake_hv_msi_count(struct fake_hv *fh, u64 addr, u32 data);

/*
 * A guest's write of @value, @len bytes wide, to @addr: signals the doorbell there. False = there
 * is none for it, the write exits to the bus.
 */
bool fake_hv_doorbell(struct fake_hv *fh, u64 addr, bool pio, u32 value, u8 len);

/* The level of pin @gsi now. */
bool fake_hv_level(struct fake_hv *fh, u32 gsi);

#endif
