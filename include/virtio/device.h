/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The virtio core: what all device types and transports share (virtio 1.3 section 2 and 3).
 *
 * Theory of operation: three parties that never call each other are joined here. The device type
 * (net.c) says WHAT the guest sees, the transport (pci.c) HOW the guest reaches it, a backend for
 * each range of queues WHO moves the bytes. The core owns the status machine, feature words, the
 * queues with their eventfds, and start and stop:
 *
 *	start (DRIVER_OK): map rings, wire each ready queue, start backends
 *	stop  (status 0, broken, end of the VM): stop backends, unwire, drain the eventfds
 *	one queue (enabled late, reset alone): stop its backend, change the queue, start the backend
 *
 * Stop is idempotent and the same for reset, error and shutdown: producers first, wires second.
 * A device that meets a malformed ring or a failing backend is broken: stopped, with
 * DEVICE_NEEDS_RESET set and a config interrupt sent; a reset by the driver mends it.
 *
 * Locking: dev->lock is taken by the transport (register access) and by loop callbacks (data),
 * never by device code. The ISR status is atomic and outside it, so that an interrupt acknowledge
 * does not wait for a burst of packets. Rank 4.
 */
#ifndef LKVM_VIRTIO_DEVICE_H
#define LKVM_VIRTIO_DEVICE_H

#include "machine.h"
#include "virtio/backend.h"
#include "virtio/virtq.h"

#define VIRTIO_MAX_VQS      40 /* 16 queue pairs and the control queue, with room */
#define VIRTIO_MAX_BACKENDS 20

/* virtio 1.3 2.1 */
enum {
	VIRTIO_S_ACKNOWLEDGE = 1,
	VIRTIO_S_DRIVER = 2,
	VIRTIO_S_DRIVER_OK = 4,
	VIRTIO_S_FEATURES_OK = 8,
	VIRTIO_S_NEEDS_RESET = 0x40,
	VIRTIO_S_FAILED = 0x80,
};

/* Feature bit numbers of the ring and the transport, virtio 1.3 section 6 */
enum {
	VIRTIO_B_ANY_LAYOUT = 27, /* legacy only */
	VIRTIO_B_INDIRECT_DESC = 28,
	VIRTIO_B_EVENT_IDX = 29,
	VIRTIO_B_VERSION_1 = 32,
	VIRTIO_B_ACCESS_PLATFORM = 33,
	VIRTIO_B_RING_RESET = 40,
};

enum { VIRTIO_ISR_QUEUE = 1, VIRTIO_ISR_CONFIG = 2 };

struct virtio_device;
struct virtio_transport;

struct virtio_device_ops {
	const char *name;
	u16 id; /* virtio 1.3 section 5 */

	/* Serves a kick on @vq; only for queues served by uservq. -errno breaks the device. */
	int (*handle_vq)(struct virtio_device *dev, struct virtq *vq);

	/* The driver wrote [off, off + len) of config space; NULL when it has nothing to write. */
	void (*config_write)(struct virtio_device *dev, unsigned off, const void *data,
			     unsigned len);

	/*
	 * DRIVER_OK: features are final. Before the rings are mapped. NULL, or -errno breaks the
	 * device.
	 */
	int (*starting)(struct virtio_device *dev);

	/* Device-private state back to power-on; the core did the rest. May be NULL. */
	void (*reset)(struct virtio_device *dev);

	void (*free)(struct virtio_device *dev);
};

struct virtio_transport_ops {
	const char *name;
	bool legacy; /* its drivers are of the time before virtio 1.0, see virtio_start_early() */

	/* Doorbell -> kick, call -> interrupt. After an error the core calls unwire. */
	int (*wire)(struct virtio_transport *tp, struct virtq *vq);
	void (*unwire)(struct virtio_transport *tp,
		       struct virtq *vq); /* fine when not, or half wired */

	/* Tells the driver that device config or status changed. */
	void (*config_irq)(struct virtio_transport *tp);

	/* The device was reset: forgets vectors, lowers INTx. May be NULL. */
	void (*reset)(struct virtio_transport *tp);

	void (*free)(struct virtio_transport *tp);
};

struct virtio_transport {
	const struct virtio_transport_ops *ops;
	struct virtio_device *dev;
};

struct virtio_device {
	struct device device; /* the machine's list */
	const struct virtio_device_ops *ops;
	struct machine *m;
	struct virtio_transport *tp;
	pthread_mutex_t lock;

	u64 offered[2], acked[2]; /* feature bits 0 to 127 */
	u8 status;
	bool started;
	_Atomic u8 isr;

	const void *config; /* little-endian, as the driver reads it; the device type's */
	unsigned config_len;
	_Atomic u32 config_gen; /* changes whenever config does; transports show its low 8 bits */

	unsigned nr_vqs;
	struct virtq vq[VIRTIO_MAX_VQS];
	unsigned nr_backends;
	struct virtio_backend *backend[VIRTIO_MAX_BACKENDS];
	u64 nr_resets, nr_broken;
};

static inline bool virtio_has(const struct virtio_device *dev, unsigned bit)
{
	return dev->acked[bit / 64] >> (bit % 64) & 1;
}

/*
 * Fills in a zeroed @dev with @nr_vqs queues of at most @vq_size (power of two) descriptors and
 * makes their eventfds. -errno of eventfd. virtio_free() is right after a failure too.
 */
int virtio_init(struct virtio_device *dev, struct machine *m, const struct virtio_device_ops *ops,
		unsigned nr_vqs, unsigned vq_size) __must_check;

/*
 * Adds a backend, which the device owns once it succeeded. -ENOSPC, or -EBUSY when its queue range
 * overlaps another's.
 */
int virtio_add_backend(struct virtio_device *dev, struct virtio_backend *be) __must_check;

/*
 * Moves the device's backend @be to queues [first, first + nr), @nr 0 = it serves none. Only from
 * ops->starting, or earlier; ranges must not overlap then.
 */
void virtio_move_backend(struct virtio_device *dev, struct virtio_backend *be, u16 first, u16 nr);

/*
 * Puts each @to[i] in the place of the device's backend @from[i]. If that runs, the new one goes on
 * where it stopped; the driver notices nothing. From then on @to are the device's and @from the
 * caller's. On error it is as before, or the device is broken. Device lock held.
 */
int virtio_swap_backends(struct virtio_device *dev, struct virtio_backend *const from[],
			 struct virtio_backend *const to[], unsigned nr) __must_check;

/*
 * Sets what is offered: @features and RING_RESET, less what the arbiters among the backends cannot
 * do, plus VERSION_1.
 */
void virtio_offer(struct virtio_device *dev, const u64 features[2]);

/* Stops, frees transport, backends and eventfds, then calls ops->free(dev). */
void virtio_free(struct virtio_device *dev);

/*
 * Links @dev, complete with its transport, into its machine: stop and free go through virtio_stop
 * and virtio_free.
 */
void virtio_register(struct virtio_device *dev);

/* --- for transports; device lock held --- */

/*
 * Feature words of 32 bits; @sel beyond 3 reads 0 and ignores writes. Writes after FEATURES_OK are
 * ignored.
 */
u32 virtio_get_features(const struct virtio_device *dev, u32 sel);
u32 virtio_get_acked(const struct virtio_device *dev, u32 sel);
void virtio_set_acked(struct virtio_device *dev, u32 sel, u32 value);

/* The driver wrote the status register: 0 resets, FEATURES_OK is checked, DRIVER_OK starts. */
void virtio_set_status(struct virtio_device *dev, u8 status);

/*
 * A legacy driver may use a queue before it sets DRIVER_OK (virtio 1.3 3.1.2): starts the device,
 * unless that cannot be. DRIVER_OK then has nothing more to do. A driver that changes features
 * after that gets them: the device waits for the next kick, or DRIVER_OK.
 */
void virtio_start_early(struct virtio_device *dev);

/*
 * A size for @vq, 0 unless the driver may set it: a power of two up to num_max. Others are ignored.
 */
void virtio_queue_size(struct virtq *vq, u64 size);

/*
 * The driver enables @vq, whose size and addresses are final from here on. On a device that runs it
 * starts to be served at once; what is wrong with it then breaks the device.
 */
void virtio_queue_enable(struct virtio_device *dev, struct virtq *vq);

/*
 * Resets @vq alone (virtio 1.3 2.6.1): on return it is as after a reset of the device, nobody
 * touches its ring, and none of its interrupts is pending. The other queues go on.
 */
void virtio_queue_reset(struct virtio_device *dev, struct virtq *vq);

/* Reads and writes of config space: beyond its end reads 0 and ignores writes. */
void virtio_config_read(struct virtio_device *dev, unsigned off, void *data, unsigned len);
void virtio_config_write(struct virtio_device *dev, unsigned off, const void *data, unsigned len);

/* --- for devices, backends and the core; device lock held --- */

/* Stops the device and asks the driver for a reset. @why is logged once for each device. */
void virtio_broken(struct virtio_device *dev, const char *why);

/* Device config changed: new generation and config interrupt. */
void virtio_config_changed(struct virtio_device *dev);

/* Stops backends, unwires, drains. Idempotent. */
void virtio_stop(struct virtio_device *dev);

/* --- transports --- */

/*
 * Gives @dev its transport. -ENOSPC when there is no more room there, -ENODEV when the machine has
 * no such place, -ENOMEM, or eventfd's error.
 */
int virtio_attach(struct virtio_device *dev, enum virtio_transport_kind kind) __must_check;

/* What users call the kinds: "pci", "pci-legacy", "mmio". 0, or -ENOENT. */
int virtio_transport_find(const char *name, enum virtio_transport_kind *kind) __must_check;

/*
 * Each of them: a modern virtio-pci device; a legacy one; a virtio-mmio device in one of the
 * machine's slots.
 */
int virtio_pci_attach(struct virtio_device *dev) __must_check;
int virtio_pci_legacy_attach(struct virtio_device *dev) __must_check;
int virtio_mmio_attach(struct virtio_device *dev) __must_check;

#endif
