/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A list of buffers seen as one run of bytes. Drivers may cut a message into buffers as they like
 * (virtio 1.3 2.7.4.1), so no device looks at a single iovec. Rank 1.
 */
#ifndef LKVM_VIRTIO_IOV_H
#define LKVM_VIRTIO_IOV_H

#include <string.h>
#include <sys/uio.h>
#include "types.h"

/*
 * Copies up to @len bytes that begin @off bytes into the buffers to @buf. Returns how many there
 * were.
 */
static inline u64 iov_read(const struct iovec *iov, unsigned nr, u64 off, void *buf, u64 len)
{
	u64 done = 0;

	for (unsigned i = 0; i < nr && done < len; i++) {
		u64 here = iov[i].iov_len;

		if (off >= here) {
			off -= here;
			continue;
		}
		here = MIN(here - off, len - done);
		memcpy((char *)buf + done, (const char *)iov[i].iov_base + off, here);
		done += here;
		off = 0;
	}
	return done;
}

/* The other direction: @buf into the buffers. */
static inline u64 iov_write(const struct iovec *iov, unsigned nr, u64 off, const void *buf, u64 len)
{
	u64 done = 0;

	for (unsigned i = 0; i < nr && done < len; i++) {
		u64 here = iov[i].iov_len;

		if (off >= here) {
			off -= here;
			continue;
		}
		here = MIN(here - off, len - done);
		memcpy((char *)iov[i].iov_base + off, (const char *)buf + done, here);
		done += here;
		off = 0;
	}
	return done;
}

#endif
