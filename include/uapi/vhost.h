/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers of linux/vhost.h that are newer than Linux 6.1. Whether the kernel knows them is found
 * out at run time. Rank 0.
 */
#ifndef LKVM_UAPI_VHOST_H
#define LKVM_UAPI_VHOST_H

#include <sys/ioctl.h>
#include "types.h"

/* Linux 6.17: struct vhost_features_array, so many words of 64 feature bits */
#define VHOST_FEATURES_WORDS     2
#define VHOST_ARRAY_GET_FEATURES _IOR(0xaf, 0x83, u64)
#define VHOST_ARRAY_SET_FEATURES _IOW(0xaf, 0x83, u64)

struct vhost_features_words {
	u64 count; /* VHOST_FEATURES_WORDS: early kernels get other counts wrong */
	u64 features[VHOST_FEATURES_WORDS];
};

#endif
