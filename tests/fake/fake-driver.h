/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's side, in process: a machine built by hand, and a virtio-pci driver that reaches the
 * device only through what a guest has: buses, guest memory, doorbells, interrupts.
 *
 * The short way, for a test of a device:
 *
 *	struct fake_machine fm;
 *	struct fake_driver drv;
 *	u32 len;
 *
 *	fake_machine_init(&fm, NULL);
 *	dev = my_device_new(&fm.m, ...);                       // registers itself with fm.m
 *	fake_driver_open(&drv, &fm, VIRTIO_ID_RNG, NULL);      // probe, negotiate, rings, DRIVER_OK
 *	buf = fake_alloc(&drv, 64, 1);                         // a guest physical address
 *	fake_vq_add(&drv.vq[0], (struct fake_seg[]){ { buf, 64, true } }, 1, cookie);
 *	fake_vq_kick(&drv.vq[0]);                              // publish, ring if wanted
 *	fake_machine_run(&fm);                                 // the loop, until it is idle
 *	CHECK(fake_vq_get(&drv.vq[0], &len) == cookie);
 *	fake_machine_free(&fm);                                // and the devices; checks for leaks
 *
 * fake_vq_add, _kick, _get, _irq_off, _irq_on mean what virtqueue_add, _kick, _get_buf,
 * _disable_cb, _enable_cb mean in Linux. fake_vq_request() does all of the above for one chain. For
 * hostile rings write vq->desc, vq->avail, vq->used yourself: they point into guest memory.
 *
 * What a test needs and does not get (memory, a device that is not there) ends it with a message.
 * A driver belongs to one thread; the loop may run in another.
 */
#ifndef LKVM_TESTS_FAKE_DRIVER_H
#define LKVM_TESTS_FAKE_DRIVER_H

#include "fake-hv.h"
#include "loop.h"
#include "machine.h"
#include "virtio/device.h"

/* --- the machine --- */

/*
 * Three regions: two that touch, so that a buffer may cross from one into the other, and one above
 * 4 GiB.
 */
#define FAKE_RAM_LOW   0ULL
#define FAKE_RAM_MID   (2 * MiB)
#define FAKE_RAM_HIGH  (4 * GiB)
#define FAKE_RAM_SIZE  (2 * MiB) /* of the first two */
#define FAKE_HIGH_SIZE (28 * MiB)
#define FAKE_ECAM      0xb0000000ULL
#define FAKE_MMIO      0xd0000000ULL /* where BARs go */
#define FAKE_MMIO_SIZE 0x10000000ULL
#define FAKE_IO        0x1000ULL
#define FAKE_IO_SIZE   0x1000ULL
#define FAKE_CONF1     0xcf8ULL
#define FAKE_INTX      16            /* GSIs of the four INTx lines */
#define FAKE_SLOTS     0xc0000000ULL /* of virtio-mmio */
#define FAKE_SLOT_GSI  4             /* of the first one, one up for each */
#define FAKE_PRESENT   0x608ULL

struct fake_machine_opts {
	u64 span_limit; /* mem_span() returns at most so many bytes */
	bool no_io;     /* no I/O space and no ports for config space, as on arm64 */
};

/*
 * Where devices of the machines made from now on hang, and so how the driver finds them: a test
 * runs over each transport in a process of its own. VIRTIO_ON_PCI at first.
 */
extern enum virtio_transport_kind fake_transport;

/* A test over another transport: defines it, and names it in TAP_RUN()'s list. */
/* clang-format off */
#define FAKE_ON_MMIO(t) static void mmio_##t(void) { fake_transport = VIRTIO_ON_MMIO; t(); }
#define FAKE_ON_LEGACY(t) \
	static void legacy_##t(void) { fake_transport = VIRTIO_ON_PCI_LEGACY; t(); }
#define FAKE_LIST(t)    T(t),
#define FAKE_LIST_MMIO(t) T(mmio_##t),
#define FAKE_LIST_LEGACY(t) T(legacy_##t),
/* clang-format on */

struct fake_machine {
	struct machine m;
	struct fake_hv hv;
	struct loop loop;
	enum stop_why why; /* what a device called m.stop() with */
};

/* @opts NULL = defaults. */
void fake_machine_init(struct fake_machine *fm, const struct fake_machine_opts *opts);

/*
 * Frees devices, bus and memory. Says so and fails the test (exit) when the hypervisor was misused
 * or something leaked in it.
 */
void fake_machine_free(struct fake_machine *fm);

/*
 * Runs the loop until nothing is ready, and delivers interrupts. Ends the test when it never gets
 * idle.
 */
void fake_machine_run(struct fake_machine *fm);

/* Config space of @slot, through the ports (or ECAM with no_io), and always through ECAM. */
u32 fake_pci_read(struct fake_machine *fm, unsigned slot, unsigned off, unsigned len);
void fake_pci_write(struct fake_machine *fm, unsigned slot, unsigned off, unsigned len, u32 value);
u32 fake_ecam_read(struct fake_machine *fm, unsigned slot, unsigned off, unsigned len);
void fake_ecam_write(struct fake_machine *fm, unsigned slot, unsigned off, unsigned len, u32 value);

/*
 * Sets drv->slot to the first slot with these IDs (vendor | device << 16). False = there is none.
 */
struct fake_driver;
bool fake_pci_find(struct fake_driver *drv, u32 ids);

/* Offset in config space of the @nth (from 0) capability with @id, 0 = none. */
unsigned fake_pci_cap(struct fake_machine *fm, unsigned slot, u8 id, unsigned nth);

/*
 * A guest's write to a bus: the doorbell there takes it, else the device. True when a doorbell did.
 */
bool fake_guest_write(struct fake_machine *fm, bool pio, u64 addr, u64 value, unsigned len);
u64 fake_guest_read(struct fake_machine *fm, bool pio, u64 addr, unsigned len);

/* --- the driver --- */

/* Registers of the common configuration: offset. */
enum {
	VP_DFSELECT = 0,
	VP_DF = 4,
	VP_GFSELECT = 8,
	VP_GF = 12,
	VP_MSIX = 16,
	VP_NUMQ = 18,
	VP_STATUS = 20,
	VP_GEN = 21,
	VP_QSELECT = 22,
	VP_QSIZE = 24,
	VP_QMSIX = 26,
	VP_QENABLE = 28,
	VP_QNOFF = 30,
	VP_QDESC = 32,
	VP_QAVAIL = 40,
	VP_QUSED = 48,
	VP_QRESET = 58,
};

#define FAKE_INDIRECT_MAX 64 /* longer chains are laid out directly */

struct fake_driver_opts {
	u16 size;          /* of each ring; 0 = what the device offers */
	bool no_event_idx; /* do not accept these, also if they are offered */
	bool no_indirect;
	bool intx;          /* leave MSI-X off; always so on MMIO */
	bool slow_doorbell; /* write doorbells to the bus, as if there were no ioeventfd */
	bool mem_doorbell;  /* prefer the doorbell in memory to the one in I/O space */
	bool rings_high;    /* rings above 4 GiB */
	u64 features[2];    /* accept only these of the device's own bits; both 0 = all offered */
};

struct fake_seg {
	u64 gpa;
	u32 len;
	bool write; /* by the device */
};

struct fake_vq {
	struct fake_driver *drv;
	u16 index, size;
	bool event_idx, indirect;

	/* the ring in guest memory */
	u64 desc_gpa, avail_gpa, used_gpa, indirect_gpa;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;

	/* the driver's own state */
	u16 free_head, nr_free;
	u16 avail_idx; /* next entry to fill; published by fake_vq_publish() */
	u16 published; /* what the device may see */
	u16 last_used;
	void *cookie[VIRTQ_MAX_SIZE];
	u16 chain_len[VIRTQ_MAX_SIZE];
	u16 next_free[VIRTQ_MAX_SIZE];

	u64 bell_addr;
	bool bell_io;
	u8 bell_len;
	u64 irqs_seen;
	u64 nr_rings, nr_rings_spared; /* doorbells rung, and those that the device did not want */
	unsigned errors;               /* used elements that name no chain in flight */
};

/* What differs between transports. Registers go by the names that they have on PCI. */
struct fake_transport_ops {
	/* No FEATURES_OK, no VERSION_1, rings of one piece, all registers in I/O space. */
	bool legacy;
	bool (*probe)(struct fake_driver *drv, u16 virtio_id);
	void (*find)(struct fake_driver *drv); /* addresses of registers and doorbells */
	u64 (*read)(struct fake_driver *drv, unsigned reg, unsigned len);
	void (*write)(struct fake_driver *drv, unsigned reg, unsigned len, u64 value);
	u8 (*isr)(struct fake_driver *drv);     /* reads and acknowledges */
	u64 (*config)(struct fake_driver *drv); /* where it begins; NULL = at drv->config */
};
extern const struct fake_transport_ops fake_pci_transport, fake_mmio_transport,
	fake_legacy_transport;

struct fake_driver {
	struct fake_machine *fm;
	const struct fake_transport_ops *tp;
	struct fake_driver_opts opts;
	unsigned slot;
	u64 common, isr, config, msix_table; /* addresses on the mmio bus */
	u8 isr_seen;                         /* bits of the ISR that were read and not asked for */
	u64 isr_config;                      /* how often the config bit was among them */
	u32 queue_sel, feature_sel[2];       /* of transports that cannot be asked */
	u32 config_len;
	struct {
		u64 addr;
		bool io;
	} notify[2]; /* in the device's order of preference */
	unsigned nr_notify;
	u32 notify_multiplier;
	unsigned nr_vqs;
	u64 features[2]; /* accepted */
	u64 next_mem, next_high;
	struct fake_vq vq[VIRTIO_MAX_VQS];
};

/*
 * All of the steps below, in order. @opts NULL = defaults. Ends the test when the device refuses.
 */
void fake_driver_open(struct fake_driver *drv, struct fake_machine *fm, u16 virtio_id,
		      const struct fake_driver_opts *opts);

/* Finds the first device of that type and its capabilities. False = there is none. */
bool fake_driver_probe(struct fake_driver *drv, struct fake_machine *fm, u16 virtio_id,
		       const struct fake_driver_opts *opts);

/* Finds the addresses again: after a BAR was moved. */
void fake_driver_find_caps(struct fake_driver *drv);

/*
 * Status 0. True when it then reads 0. Forgets the features; rings are set up anew by the next
 * setup.
 */
bool fake_driver_reset(struct fake_driver *drv);

/* Reset, ACKNOWLEDGE, DRIVER, features, FEATURES_OK. False = the device refused them. */
bool fake_driver_negotiate(struct fake_driver *drv);

/*
 * Switches MSI-X on (unless opts.intx), vector 0 for config, the rest for queues in turn, and
 * unmasks them all.
 */
void fake_driver_setup_irqs(struct fake_driver *drv);

/* Makes an empty ring for queue @i and enables it. */
void fake_driver_setup_vq(struct fake_driver *drv, unsigned i);

/* Resets queue @i alone, by RING_RESET. True when it then reads as reset and not enabled. */
bool fake_driver_reset_vq(struct fake_driver *drv, unsigned i);

/* DRIVER_OK. True when the device is then running, without NEEDS_RESET. */
bool fake_driver_start(struct fake_driver *drv);

/* Negotiate to start again, as after fake_driver_reset() or a rebind of the driver. */
bool fake_driver_restart(struct fake_driver *drv);

/* Status of a device that runs: 0xf, 7 on legacy. */
u8 fake_status_ok(const struct fake_driver *drv);

u8 fake_driver_status(struct fake_driver *drv);
u64 fake_common_read(struct fake_driver *drv, unsigned reg, unsigned len);
void fake_common_write(struct fake_driver *drv, unsigned reg, unsigned len, u64 value);
u64 fake_config_read(struct fake_driver *drv, unsigned off, unsigned len);
void fake_config_write(struct fake_driver *drv, unsigned off, unsigned len, u64 value);
u8 fake_isr_read(struct fake_driver *drv);
/* Without MSI-X: was the queue bit there since the last call? Never mind who read the ISR. */
bool fake_isr_queue(struct fake_driver *drv);

/* Vector @v as the guest's table has it: its message, its mask bit. */
void fake_msix_mask(struct fake_driver *drv, unsigned v, bool masked);
u64 fake_msix_addr(const struct fake_driver *drv, unsigned v);
u32 fake_msix_data(const struct fake_driver *drv, unsigned v);
unsigned fake_vq_vector(const struct fake_vq *vq);

/* How often the config vector fired, in all. */
u64 fake_driver_config_irqs(struct fake_driver *drv);

/*
 * Guest memory that nobody else has, below and above 4 GiB; zeroed once, never given back. Ends the
 * test when used up.
 */
u64 fake_alloc(struct fake_driver *drv, u64 len, u64 align);
u64 fake_alloc_high(struct fake_driver *drv, u64 len, u64 align);
/* The test's view of guest memory; ends the test when it is not there. */
void *fake_ptr(struct fake_driver *drv, u64 gpa, u64 len);

/* --- queues --- */

/*
 * Lays out a chain of @n segments (indirect when negotiated and @n > 1) and makes it the next
 * available one; @cookie, not NULL, comes back from fake_vq_get(). Its head, or -ENOSPC. Not
 * published yet.
 */
int fake_vq_add(struct fake_vq *vq, const struct fake_seg *segs, unsigned n, void *cookie);

/* Makes an index available that the test laid out itself in vq->desc. Not published yet. */
void fake_vq_add_head(struct fake_vq *vq, u16 head);

void fake_vq_publish(struct fake_vq *vq); /* avail->idx */
void fake_vq_ring(struct fake_vq *vq);    /* the doorbell, in any case */
bool fake_vq_kick(struct fake_vq *vq);    /* publish, ring if wanted; true = rung */

/* The next used chain's cookie, or NULL; @len may be NULL. */
void *fake_vq_get(struct fake_vq *vq, u32 *len);
bool fake_vq_has_used(const struct fake_vq *vq);
void fake_vq_irq_off(struct fake_vq *vq);
bool fake_vq_irq_on(struct fake_vq *vq); /* true = used chains came meanwhile: look again */
/*
 * Interrupts of this queue's vector since the last call; with INTx: 1 if reading the ISR shows the
 * queue bit.
 */
u64 fake_vq_irqs(struct fake_vq *vq);

/* add, kick, run, get. 0 and *@len, or -ENOSPC, or -EAGAIN when the device did not use it. */
int fake_vq_request(struct fake_vq *vq, const struct fake_seg *segs, unsigned n, u32 *len);

#endif
