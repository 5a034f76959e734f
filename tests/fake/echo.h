/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The smallest virtio device: what a chain brings in its readable part comes back in its writable
 * part. The tests of the core, the transport and the ring drive it; an example of a device type,
 * too.
 */
#ifndef LKVM_TESTS_ECHO_H
#define LKVM_TESTS_ECHO_H

#include "virtio/device.h"

#define ECHO_ID 62 /* of no type in the specification */

struct echo_config {
	u32 magic;   /* read-only */
	u32 scratch; /* the driver's to write */
	u8 tail[3];  /* so that the end is not aligned */
} __attribute__((packed));

struct echo {
	struct virtio_device dev;
	struct echo_config config;
	struct virtio_backend *be;
	unsigned max_iov;    /* handed to virtq_pop() */
	unsigned batch;      /* publish after so many chains; 0 = when there are none left */
	int start_error;     /* what the backend's start hook returns */
	int starting_error;  /* what ops->starting returns */
	int handle_error;    /* what handle_vq returns */
	unsigned bad_writes; /* calls of config_write that leave config space */
	u64 nr_starts, nr_stops, nr_resets, nr_handled;
	bool *freed; /* set when the device is freed; may be NULL */
	struct iovec iov[VIRTQ_MAX_IOV];
};

/* A registered echo device on @m's transport; -errno. Freed with the machine. */
int echo_new(struct machine *m, unsigned nr_vqs, unsigned vq_size, struct echo **out) __must_check;

#endif
