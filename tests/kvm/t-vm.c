// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a VM in this process, so that the harness counts descriptors and a sanitizer build
 * counts memory after vm_free(): whole runs, and builds that fail half-way.
 */
#include <fcntl.h>

#include "../tap.h"
#include "mem.h"
#include "vcpu.h"
#include "vm.h"

static int payload(void)
{
	const char *path = getenv("PAYLOAD");
	int fd = open(path ? path : "build/guest/payload.elf", O_RDONLY | O_CLOEXEC);

	REQUIRE(fd >= 0);
	return fd;
}

static void need_kvm(void)
{
	int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		SKIP("/dev/kvm: %s", strerror(errno));
	close(fd);
}

static struct vm_config config(const char *cmdline, int kernel_fd)
{
	return (struct vm_config){
		.name = "test",
		.mem = 64 * MiB,
		.nr_cpus = 2,
		.boot = { .kernel_path = "payload",
			  .kernel_fd = kernel_fd,
			  .initrd_fd = -1,
			  .cmdline = cmdline },
	};
}

static void run_once(const char *cmdline, enum stop_why why)
{
	struct vm_config cfg = config(cmdline, payload());
	struct vm *vm;
	int err;

	vm = vm_new(&cfg, &err);
	REQUIRE(vm != NULL);
	vm_run(vm);
	/* A KVM that emulates each instruction may give up before it comes to a third fault. */
	CHECK(vm->outcome.why == (int)why ||
	      (why == STOP_TRIPLE_FAULT && vm->outcome.why == STOP_KVM));
	vm_free(vm);
	close(cfg.boot.kernel_fd);
}

static void t_runs_leave_nothing(void)
{
	need_kvm();
	for (int i = 0; i < 20; i++)
		run_once("poweroff", STOP_POWEROFF);
	run_once("triple", STOP_TRIPLE_FAULT);
	run_once("reset-acpi", STOP_RESET);
}

static void t_never_run(void)
{
	struct vm_config cfg;
	struct vm *vm;
	int err;

	need_kvm();
	cfg = config("poweroff", payload());
	vm = vm_new(&cfg, &err);
	REQUIRE(vm != NULL);
	vm_free(vm);
	close(cfg.boot.kernel_fd);
}

static void t_build_fails(void)
{
	struct vm_config cfg;
	int err = 0;

	need_kvm();
	cfg = config("poweroff", open("/dev/null", O_RDONLY | O_CLOEXEC));
	CHECK(vm_new(&cfg, &err) == NULL);
	CHECK(err < 0);
	close(cfg.boot.kernel_fd);

	cfg = config("poweroff", payload());
	cfg.nr_cpus = 100000;
	err = 0;
	CHECK(vm_new(&cfg, &err) == NULL);
	CHECK(err < 0);
	close(cfg.boot.kernel_fd);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_runs_leave_nothing), T(t_never_run), T(t_build_fails));
}
