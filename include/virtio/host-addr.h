/* SPDX-License-Identifier: GPL-2.0-only */
/* IPv4 addresses of host interfaces, by rtnetlink(7). Rank 4. */
#ifndef LKVM_VIRTIO_HOST_ADDR_H
#define LKVM_VIRTIO_HOST_ADDR_H

#include <netinet/in.h>
#include "types.h"

struct host_addr {
	struct in_addr addr;
	unsigned len; /* of the network's prefix, bits */
};

/*
 * "a.b.c.d" or "a.b.c.d/len", a host's own address; the default length is 24. 0, or -EINVAL after
 * logging.
 */
int host_addr_parse(const char *text, struct host_addr *out) __must_check;

/*
 * Adds exactly this address to interface @index, or takes it away; the interface's other addresses
 * stay. 0, -EEXIST when it is there already, -EADDRNOTAVAIL when it is not, or another -errno.
 */
int host_addr_change(unsigned index, const struct host_addr *ip, bool add) __must_check;

#endif
