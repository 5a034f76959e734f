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
	int fd, error; /* what open() returned, or shall return */
	struct fake_vhost *fv;
} dev_vhost = { -1, 0, NULL };

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
	dev_vhost.fd = eventfd(0, EFD_CLOEXEC); /* stands for it, so that a leak is seen */
	dev_vhost.fv = fake_nic_dev_vhost;
	return dev_vhost.fd;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;
	int r;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd < 0 || fd != dev_vhost.fd)
		return (int)syscall(SYS_ioctl, fd, request, arg);
	r = fake_vhost_ioctl(dev_vhost.fv, request, arg);
	if (r < 0)
		errno = -r;
	return r < 0 ? -1 : 0;
}

#endif
