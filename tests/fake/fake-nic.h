/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A virtio-net device with both ends in the test: the guest's driver on one side, the wire on the
 * other, and between them one of three data paths. What holds for one has to hold for all.
 *
 *	NIC_USER          net-user.c                     -> fake netif
 *	NIC_VHOST         vhost.c -> fake vhost's verbs  -> fake netif
 *	NIC_VHOST_KERNEL  vhost.c -> vhost-kernel.c -> ioctl() -> fake vhost -> fake netif
 *
 * For the last one the test includes unit/dev-vhost.h, which catches the calls.
 */
#ifndef LKVM_TESTS_FAKE_NIC_H
#define LKVM_TESTS_FAKE_NIC_H

#include "fake-driver.h"
#include "fake-netif.h"
#include "fake-vhost.h"

enum nic_kind { NIC_USER, NIC_VHOST, NIC_VHOST_KERNEL };

#define NIC_BUFS     1024 /* receive buffers of a driver at most */
#define NIC_BUF_SEGS 4
#define NIC_MS       5000 /* how long a test waits for what must come */

/* One receive buffer: a chain. */
struct nic_buf {
	struct fake_seg seg[NIC_BUF_SEGS];
	unsigned nr;
};

struct fake_nic {
	enum nic_kind kind;
	struct fake_machine fm;
	struct fake_netif *fn;
	unsigned nr_pairs;
	unsigned pair; /* the one that the functions below use, see fake_nic_use() */
	u64 vhost_features;
	struct fake_vhost *fvs[NETIF_MAX_QUEUES]; /* of each pair; NULL = never made */
	struct fake_vhost *fv;                    /* of the first one */
	struct virtio_device *dev;
	struct fake_driver drv;
	struct nic_buf buf[NIC_BUFS];
	unsigned nr_bufs;
	u64 tx_mem, tx_next;
	u64 nr_reaped; /* transmit chains that came back */
	bool nif_closed;
};

extern const u8 fake_nic_mac[6];

/* What the next open("/dev/vhost-net") is connected to. */
extern struct fake_vhost *fake_nic_dev_vhost;

/*
 * Machine and device of one queue pair or several, without a driver. @vhost_features 0 =
 * FAKE_VHOST_FEATURES.
 */
void fake_nic_init(struct fake_nic *nic, enum nic_kind kind, u64 vhost_features);
void fake_nic_init_pairs(struct fake_nic *nic, enum nic_kind kind, u64 vhost_features,
			 unsigned pairs);

/* With its driver running. @opts NULL = defaults. */
void fake_nic_open_pairs(struct fake_nic *nic, enum nic_kind kind,
			 const struct fake_driver_opts *opts, unsigned pairs);
void fake_nic_open(struct fake_nic *nic, enum nic_kind kind, const struct fake_driver_opts *opts);

/* Ends and frees all; fails the test when rules were broken on the way. */
void fake_nic_free(struct fake_nic *nic);

/* The driver starts from reset again, with empty rings. False = the device does not run then. */
bool fake_nic_restart(struct fake_nic *nic);

/*
 * Makes what the device finds when it opens the vhost of @pair. It is made then, too; this is for a
 * test that counts calls.
 */
void fake_nic_make_vhost(struct fake_nic *nic, unsigned pair);

/* --- the guest --- */

/* From now on guest and wire use queue pair @pair, 0 at first. */
void fake_nic_use(struct fake_nic *nic, unsigned pair);

/*
 * Sends a command on the control queue, its readable bytes cut at every @cut bytes. The answer, or
 * -1 when there is none, and -2 when the device wrote more or less than it.
 */
int fake_nic_ctrl(struct fake_nic *nic, const void *cmd, u32 len, u32 cut);
#define NIC_CTRL(nic, cut, ...) \
	({ \
		const u8 ctrl_cmd[] = { __VA_ARGS__ }; \
		fake_nic_ctrl(nic, ctrl_cmd, sizeof(ctrl_cmd), cut); \
	})

/*
 * Posts @n receive buffers; each is a chain with the given segment lengths (the last one is 0), or
 * one of a single segment.
 */
void fake_nic_post(struct fake_nic *nic, unsigned n, u32 len);
void fake_nic_post_cut(struct fake_nic *nic, unsigned n, const u32 *lens);

/*
 * Sends a frame: as one buffer, or cut up (the last length is 0 = the rest). False = the ring is
 * full.
 */
bool fake_nic_send(struct fake_nic *nic, const void *frame, u32 len);
bool fake_nic_send_cut(struct fake_nic *nic, const void *frame, u32 len, const u32 *lens);

/* Takes back the transmit buffers that the device used; how many. Counted in nr_reaped. */
unsigned fake_nic_reap(struct fake_nic *nic);

/*
 * Takes a frame that the device received; its length, or -1 = none yet. *@num_buffers (may be NULL)
 * as the header says. Fails the test when fewer used elements are visible than the header says.
 */
long fake_nic_recv(struct fake_nic *nic, void *frame, u32 room, u16 *num_buffers);

/* --- both --- */

/* A frame of @len bytes whose contents follow from @seed; and whether it is that one. */
void fake_nic_frame(u8 *frame, u32 len, u32 seed);
bool fake_nic_is_frame(const u8 *frame, u32 len, u32 seed);

/* Lets the loop and the worker run until @cond, at most NIC_MS. The value of @cond at the end. */
#define NIC_WAIT(nic, cond) \
	({ \
		bool nic_ok = false; \
		for (int nic_i = 0; nic_i < NIC_MS && !nic_ok; nic_i++) { \
			fake_machine_run(&(nic)->fm); \
			nic_ok = (cond); \
			if (!nic_ok) \
				fake_nic_pause(); \
		} \
		nic_ok; \
	})
void fake_nic_pause(void);

/* Runs for a moment in which nothing is expected to happen. */
void fake_nic_settle(struct fake_nic *nic);

#endif
