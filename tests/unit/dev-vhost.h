/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A /dev/vhost-net for one test program: defines open() and ioctl() for it, which connect that path
 * to the fake vhost that fake_nic_dev_vhost names, and pass everything else on to the kernel.
 */
#ifndef LKVM_TESTS_DEV_VHOST_H
#define LKVM_TESTS_DEV_VHOST_H

#include <fcntl.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake/fake-nic.h"

static struct {
	int error;   /* what open() shall fail with; 0 = it works */
	unsigned nr; /* of what it returned, newest last */
	struct {
		int fd;
		struct fake_vhost *fv;
	} opened[512];
} dev_vhost;

int open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (strcmp(path, "/dev/vhost-net"))
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	if (dev_vhost.error) {
		errno = dev_vhost.error;
		return -1;
	}
	if (dev_vhost.nr == ARRAY_SIZE(dev_vhost.opened))
		abort();
	dev_vhost.opened[dev_vhost.nr].fd = eventfd(0, EFD_CLOEXEC); /* so that a leak is seen */
	dev_vhost.opened[dev_vhost.nr].fv = fake_nic_dev_vhost;
	return dev_vhost.opened[dev_vhost.nr++].fd;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;
	unsigned i;
	int r;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	for (i = dev_vhost.nr; i-- > 0;) {
		if (fd >= 0 && dev_vhost.opened[i].fd == fd)
			break;
	}
	if (i == UINT32_MAX)
		return (int)syscall(SYS_ioctl, fd, request, arg);
	r = fake_vhost_ioctl(dev_vhost.opened[i].fv, request, arg);
	if (r < 0)
		errno = -r;
	return r < 0 ? -1 : 0;
}

#endif
