/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A table of what a hostile guest does, and of what the specification wants of the device then.
 *
 * Theory of operation: a case is a function that breaks, or seems to break, one rule, against one
 * target: a virtqueue of one of three devices. The runner (hostile.c) makes a fresh machine for
 * each pair of case and target, in a process of its own, and judges what came of it:
 *
 *	PASS         the device did as the specification says and goes on without a reset
 *	REFUSED      it said no: DEVICE_NEEDS_RESET with a config interrupt, or a status bit or
 *	             register that does not take the value; a reset mends it
 *	NOT OFFERED  the case needs a feature that is not there, which the case proves
 *	WEDGED       it hangs, or works no more after a reset
 *	FAIL         it did something else
 *
 * After each of them: a reset and a round trip on every queue, an idle loop, no thread that burns
 * time, memory that has not grown, no file descriptor, GSI, route or doorbell left.
 *
 * The list of things to try owes much to the public suite virtio-villain; checklist.txt says which
 * of our cases stands for which of its names, or why there is none.
 */
#ifndef LKVM_TESTS_HOSTILE_H
#define LKVM_TESTS_HOSTILE_H

#include <sched.h>
#include <unistd.h>

#include "fake/echo.h"
#include "fake/fake-nic.h"

/* A queue of a device, and a set of them. For what is about no queue: DEVICES. */
enum {
	ECHO = 1,
	NET_RX = 2,
	NET_TX = 4,
	NET_CTRL = 8,
	VHOST_RX = 16,
	VHOST_TX = 32,
};
#define USER    (ECHO | NET_RX | NET_TX | NET_CTRL) /* served in userspace */
#define VHOST   (VHOST_RX | VHOST_TX)
#define ALL     (USER | VHOST)
#define RX      (NET_RX | VHOST_RX)
#define TX      (NET_TX | VHOST_TX)
#define DEVICES (ECHO | NET_TX | VHOST_TX)
#define NICS    (NET_TX | VHOST_TX)

/* EITHER: the specification leaves it open whether the device notices; it must not suffer. */
enum verdict { PASS, REFUSED, NOT_OFFERED, EITHER };

/* How the driver is set up before the case. */
enum {
	NO_EVENT = 1,
	NO_INDIRECT = 2,
	INTX = 4,
	SLOW_BELL = 8,  /* without ioeventfd */
	LARGE = 16,     /* rings as large as the device offers, else of 8 */
	NO_MRG = 32,    /* without MRG_RXBUF */
	MEM_BELL = 64,  /* the doorbell in memory */
	RINGS_UP = 128, /* rings above 4 GiB */
	SPANS = 256,    /* memory comes in pieces of 3 bytes */
	PLAIN = NO_EVENT | NO_INDIRECT,
};

struct rig;
struct hostile_case {
	const char *name;
	void (*fn)(struct rig *r);
	enum verdict verdict;
	unsigned on;     /* targets */
	unsigned how;    /* the driver */
	u64 a, b;        /* the case's own */
	const char *why; /* NOT_OFFERED: what is missing */
};

struct hostile_group {
	const char *name;
	const struct hostile_case *cases;
	unsigned nr;
};
extern const struct hostile_group ring_group, legal_group, pci_group, net_group, state_group,
	msix_group, race_group;

/* One case at work. */
struct rig {
	const struct hostile_case *c;
	unsigned target;
	struct fake_nic nic; /* its machine and driver also when the device is no NIC */
	struct fake_machine *fm;
	struct fake_driver *drv;
	struct virtio_device *dev;
	struct echo *echo;  /* NULL for a NIC */
	struct fake_vq *vq; /* the target queue */
	u64 data;           /* DATA_LEN bytes of guest memory, on a page */
	u32 command, bar[6];
	u32 seed;
	u64 config_irqs;

	/* for the runner; cases set them */
	bool refused;     /* a bit or value was refused, and that is right */
	bool not_offered; /* proven */
	bool down;        /* the device does not run now, and is not meant to */
	bool unplugged;   /* the wire is gone for good */
	bool no_irq;      /* do not look for the config interrupt of NEEDS_RESET */
	bool threaded;    /* the loop runs in a thread of the case */
};

#define DATA_LEN (64 * KiB)
#define OUT      0x0000 /* in r->data: what the device reads in a good request */
#define IN       0x8000 /* and what it writes */

/* Descriptor flags, and whether the target queue's buffers are the device's to write */
#define NEXT     VRING_DESC_F_NEXT
#define WRITE    VRING_DESC_F_WRITE
#define INDIRECT VRING_DESC_F_INDIRECT

/* --- checks; a failed one fails the case --- */

extern int hostile_failed;
void hostile_note(const char *file, int line, const char *what, u64 got, u64 want);

#define WANT(cond) \
	do { \
		if (!(cond)) \
			hostile_note(__FILE__, __LINE__, #cond, 0, 1); \
	} while (0)
#define WANT_EQ(a, b) \
	do { \
		u64 want_a = (u64)(a), want_b = (u64)(b); \
		if (want_a != want_b) \
			hostile_note(__FILE__, __LINE__, #a " == " #b, want_a, want_b); \
	} while (0)

/* --- the machine --- */

/* Runs the loop until it is idle; a pause that grows with @i. */
void rig_run(struct rig *r);
void rig_pause(int i);
/* Runs for a moment in which nothing is expected to happen. */
void rig_settle(struct rig *r);
/* Lets all parties run until @cond, 5 s at most. Its value at the end. */
#define RIG_WAIT(r, cond) \
	({ \
		bool rig_ok = false; \
		for (int rig_i = 0; rig_i < 10000 && !rig_ok; rig_i++) { \
			rig_run(r); \
			rig_ok = (cond); \
			if (!rig_ok) \
				rig_pause(rig_i); \
		} \
		rig_ok; \
	})

u8 rig_status(struct rig *r);
bool rig_broken(struct rig *r);
bool rig_is_net(const struct rig *r);
/* Queues that the device has as targets: bit by bit of ALL. */
unsigned rig_targets(const struct rig *r);
void rig_aim(struct rig *r, unsigned target);

/* Reset, and everything from the beginning, with empty rings; fails the case when that fails. */
void rig_restart(struct rig *r);
/* The same by hand, up to FEATURES_OK with interrupts set up, queues not. */
void rig_negotiate(struct rig *r);
void rig_setup_all(struct rig *r);

u32 cfg(struct rig *r, unsigned off, unsigned len);
void cfg_set(struct rig *r, unsigned off, unsigned len, u32 value);
/* Registers of the common configuration; those of a queue after selecting it. */
u64 reg(struct rig *r, unsigned off, unsigned len);
void reg_set(struct rig *r, unsigned off, unsigned len, u64 value);
u64 qreg(struct rig *r, unsigned q, unsigned off, unsigned len);
void qreg_set(struct rig *r, unsigned q, unsigned off, unsigned len, u64 value);
bool rig_offers(const struct rig *r, unsigned bit);

/* --- the ring --- */

/* Writes descriptor @i of the target queue. */
void put(struct rig *r, u16 i, u64 addr, u32 len, unsigned flags, u16 next);
/* The flag that a buffer of the target queue needs: WRITE for receive queues. */
unsigned dir(const struct rig *r);
void put_table(struct rig *r, u64 gpa, unsigned i, u64 addr, u32 len, unsigned flags, u16 next);
void head(struct rig *r, u16 i);
/* Publishes and rings, brings a frame for a receive queue, waits for what the verdict says. */
void go(struct rig *r);
/* Forgets what is in the used ring, after chains that the case laid out itself. */
void skip_used(struct rig *r);
/* Waits until the target queue's used index moved on by @n from @from. */
bool used_moved(struct rig *r, u16 from, u16 n);

/*
 * The guest's hand in memory that the device may read and write at the same time. Only its loads
 * and stores are atomic; the others are kept from the eyes of a race detector, for what they are
 * about is the device's share of the race.
 */
static inline u16 guest_load(const u16 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
static inline void guest_store(u16 *p, u16 value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}
void guest_scribble(void *p, u8 value, unsigned len);
void guest_copy(void *p, const void *from, unsigned len);

/*
 * A good request of the target queue: its buffers, cut into pieces of @piece bytes at most (0 = as
 * few as there can be). lay() fills them and makes the chain available, its head is returned;
 * finish() publishes, rings, waits and compares; serve() is both.
 */
#define MAX_SEGS 256
unsigned shape(struct rig *r, struct fake_seg *s, u32 piece);
int lay(struct rig *r, const struct fake_seg *s, unsigned n);
void finish(struct rig *r, const struct fake_seg *s, unsigned n);
void serve(struct rig *r, const struct fake_seg *s, unsigned n);
void good(struct rig *r);
/* One on each queue of the device. */
void round_trip(struct rig *r);

/* --- frames and commands of a NIC --- */

bool take_frame(struct rig *r, u8 *frame, u32 len);
/* Runs one command on the control queue: its answer, or -1. */
int ctrl(struct rig *r, u8 class, u8 command, const void *data, u32 len);

#endif
