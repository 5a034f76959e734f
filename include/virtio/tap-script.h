/* SPDX-License-Identifier: GPL-2.0-only */
/* The user's script for a tap. Rank 4. */
#ifndef LKVM_VIRTIO_TAP_SCRIPT_H
#define LKVM_VIRTIO_TAP_SCRIPT_H

#include "types.h"

/*
 * Runs @script with the interface's name and waits for its end, at most a minute. 0, or -errno
 * after a message: -ECANCELED = it failed, -ETIMEDOUT, -EINTR = a signal is to end us.
 */
int tap_script(const char *script, const char *ifname);

#endif
