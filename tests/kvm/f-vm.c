// SPDX-License-Identifier: GPL-2.0-only
/*
 * A whole VM with the n-th call failing, for each n: building it, running it and taking it apart
 * must end in order, with nothing left, whichever ioctl, mapping, allocation or thread cannot be
 * had.
 */
#include <fcntl.h>

#include "../tap.h"
#include "../fake/fault.h"
#include "mem.h"
#include "vcpu.h"
#include "vm.h"

static int kernel_fd = -1;

/* 0 when the guest powered off, -errno when it was not made or ended otherwise. */
static int live_once(void)
{
	struct vm_config cfg = {
		.name = "test",
		.mem = 16 * MiB,
		.nr_cpus = 2,
		.boot = { .kernel_path = "payload",
			  .kernel_fd = kernel_fd,
			  .initrd_fd = -1,
			  .cmdline = "poweroff" },
	};
	struct vm *vm;
	int err;

	lseek(kernel_fd, 0, SEEK_SET);
	vm = vm_new(&cfg, &err);
	if (!vm)
		return err;
	vm_run(vm);
	err = vm->outcome.why == STOP_POWEROFF ? 0 : -EIO;
	vm_free(vm);
	return err;
}

static void t_any_call_may_fail(void)
{
	const char *path = getenv("PAYLOAD");
	int null, fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		SKIP("/dev/kvm: %s", strerror(errno));
	close(fd);
	kernel_fd = open(path ? path : "build/guest/payload.elf", O_RDONLY | O_CLOEXEC);
	REQUIRE(kernel_fd >= 0);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC); /* a terminal would be set raw */
	REQUIRE(null >= 0);
	dup2(null, STDIN_FILENO);
	close(null);
	CHECK(fault_loop_lenient(live_once) > 20);
	close(kernel_fd);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_any_call_may_fail));
}
