// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtual machine: the one place that knows in which order it is built, run and taken apart.
 *
 * Build: KVM, memory and its slots, interrupt controllers, vCPUs, boot image, buses, platform
 * devices. The memory slots come right after KVM_CREATE_VM: the kernel waits there for readers of
 * older slots, and with a fresh VM there are none (0.6 ms instead of 7 to 11).
 * Stop: whoever ends the VM sets the outcome and stops the loop. Then, on the main thread: all
 * vCPUs leave, then devices stop and are freed in reverse order, then KVM, then memory.
 */
#include <fcntl.h>
#include <linux/kvm.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "console.h"
#include "log.h"
#include "vcpu.h"
#include "vm.h"

#define KVM_PATH "/dev/kvm"

/* Wakes vCPUs that wait for the end of a pause: it ended, or the machine stops. */
static void unpark(struct vm *vm)
{
	pthread_mutex_lock(&vm->pause_lock);
	pthread_cond_broadcast(&vm->unpaused);
	pthread_mutex_unlock(&vm->pause_lock);
}

static void vm_stop(struct machine *m, enum stop_why why, int detail)
{
	struct vm *vm = container_of(m, struct vm, m);

	if (!outcome_set(&vm->outcome, why, detail))
		return;
	loop_stop(&vm->loop);
	if (vm->console)
		console_stop(vm->console);
	unpark(vm);
}

static const char *kvm_hint(int err)
{
	switch (err) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return "load the kvm_intel or kvm_amd module, or enable virtualization in the firmware";
	case EMFILE:
	case ENFILE: return "raise the limit of open files (ulimit -n)";
	case ENOMEM: return "it needs more memory than there is";
	case EACCES:
	case EPERM: return "join the group that owns it (usually kvm)";
	}
	return "another hypervisor may hold it";
}

static int vm_create(struct vm *vm)
{
	int err;

	do {
		vm->vm_fd = ioctl(vm->kvm_fd, KVM_CREATE_VM, 0UL);
	} while (vm->vm_fd < 0 && errno == EINTR);
	if (vm->vm_fd >= 0)
		return 0;
	err = errno;
	log_err("%s: cannot create a VM: %s; %s", KVM_PATH, strerror(err), kvm_hint(err));
	return -err;
}

static int kvm_open(struct vm *vm)
{
	int version, err;

	vm->kvm_fd = open(KVM_PATH, O_RDWR | O_CLOEXEC);
	if (vm->kvm_fd < 0) {
		err = errno;
		log_err("%s: %s; %s", KVM_PATH, strerror(err), kvm_hint(err));
		return -err;
	}
	version = ioctl(vm->kvm_fd, KVM_GET_API_VERSION, 0);
	if (version != KVM_API_VERSION) {
		log_err("%s: it is not KVM of version %d; check what this file is", KVM_PATH,
			KVM_API_VERSION);
		return -ENODEV;
	}
	return 0;
}

static int mem_slots(struct vm *vm)
{
	for (unsigned i = 0; i < vm->m.mem.nr; i++) {
		const struct mem_region *r = &vm->m.mem.r[i];
		struct kvm_userspace_memory_region slot = {
			.slot = i,
			.guest_phys_addr = r->gpa,
			.memory_size = r->size,
			.userspace_addr = (u64)(uintptr_t)r->hva,
		};

		if (ioctl(vm->vm_fd, KVM_SET_USER_MEMORY_REGION, &slot)) {
			int err = errno;

			log_err("-m %llu: KVM refuses %llu MiB at %#llx: %s; use less memory",
				(unsigned long long)(vm->cfg.mem / MiB),
				(unsigned long long)(r->size / MiB), (unsigned long long)r->gpa,
				strerror(err));
			return -err;
		}
	}
	return 0;
}

static int vcpus_new(struct vm *vm)
{
	vm->vcpu = calloc(vm->cfg.nr_cpus, sizeof(*vm->vcpu));
	if (!vm->vcpu)
		return log_no_memory("vCPUs");
	for (unsigned i = 0; i < vm->cfg.nr_cpus; i++)
		vm->vcpu[i].fd = -1;
	for (unsigned i = 0; i < vm->cfg.nr_cpus; i++) {
		int err = vcpu_init(&vm->vcpu[i], vm, i);

		vm->nr_vcpus = i + 1;
		if (err)
			return err;
	}
	return 0;
}

static int platform_new(struct vm *vm)
{
	int err;

	vm->khv = kvm_hv_new(vm->vm_fd);
	if (!vm->khv)
		return log_no_memory("interrupt routes");
	vm->m.hv = kvm_hv_base(vm->khv);
	vm->console = console_new(&vm->m, STDIN_FILENO, STDOUT_FILENO);
	if (!vm->console)
		return -ENOMEM;
	if (!pci_root_new(&vm->m, arch_pci_layout()))
		return log_no_memory("PCI bus");
	err = arch_devices(vm);
	if (err)
		log_err("platform devices: %s", strerror(-err));
	return err;
}

/* What a life of the guest needs of KVM, with memory there already: see the order at the top. */
static int kvm_build(struct vm *vm)
{
	int err = vm_create(vm);

	if (!err)
		err = mem_slots(vm);
	if (!err)
		err = arch_vm_init(vm);
	if (!err)
		err = vcpus_new(vm);
	if (!err)
		err = arch_boot(&vm->m.mem, &vm->cfg.boot, vm->cfg.nr_cpus, &vm->start);
	if (!err)
		err = arch_vcpu_start(&vm->vcpu[0], &vm->start);
	return err;
}

static void kvm_unbuild(struct vm *vm)
{
	for (unsigned i = 0; i < vm->nr_vcpus; i++)
		vcpu_free(&vm->vcpu[i]);
	free(vm->vcpu);
	vm->vcpu = NULL;
	vm->nr_vcpus = 0;
	arch_vm_free(vm);
	if (vm->vm_fd >= 0)
		close(vm->vm_fd);
	vm->vm_fd = -1;
}

static int vm_build(struct vm *vm)
{
	int err = kvm_open(vm);

	if (!err)
		err = arch_mem_init(&vm->m.mem, vm->cfg.mem);
	if (!err)
		err = kvm_build(vm);
	if (!err)
		err = platform_new(vm);
	return err;
}

static int kvm_rebase(struct vm *vm)
{
	int err = kvm_hv_rebase(vm->khv, vm->vm_fd);

	if (err)
		log_err("restart: KVM refuses the interrupt routes: %s", strerror(-err));
	return err;
}

int vm_reset(struct vm *vm)
{
	int err;

	machine_reset_devices(&vm->m);
	pci_root_reset(vm->m.pci);
	kvm_unbuild(vm);
	err = mem_clear(&vm->m.mem);
	if (err)
		log_err("restart: cannot give the memory back: %s", strerror(-err));
	else
		err = kvm_build(vm);
	if (!err)
		err = kvm_rebase(vm);
	if (err)
		return err;
	console_restart(vm->console);
	loop_restart(&vm->loop);
	vm->outcome = (struct outcome){ 0 };
	return 0;
}

struct vm *vm_new(const struct vm_config *cfg, int *err)
{
	struct vm *vm = calloc(1, sizeof(*vm));

	if (!vm) {
		*err = log_no_memory("VM");
		return NULL;
	}
	vm->cfg = *cfg;
	vm->m.nr_cpus = cfg->nr_cpus;
	vm->kvm_fd = vm->vm_fd = vm->loop.epfd = -1;
	bus_init(&vm->m.pio);
	bus_init(&vm->m.mmio);
	pthread_mutex_init(&vm->pause_lock, NULL);
	pthread_cond_init(&vm->unpaused, NULL);
	vm->m.stop = vm_stop;
	*err = loop_init(&vm->loop);
	vm->m.loop = &vm->loop;
	if (!*err)
		*err = vm_build(vm);
	if (*err) {
		vm_free(vm);
		return NULL;
	}
	return vm;
}

void vm_run(struct vm *vm)
{
	int err = console_start(vm->console);

	for (unsigned i = vm->nr_vcpus; i-- > 0 && !err;)
		err = vcpu_start(&vm->vcpu[i]);
	if (!err)
		err = loop_run(&vm->loop);
	if (err)
		vm_stop(&vm->m, STOP_ERROR, err);
	for (unsigned i = 0; i < vm->nr_vcpus; i++)
		vcpu_kick(&vm->vcpu[i]);
	for (unsigned i = 0; i < vm->nr_vcpus; i++)
		vcpu_join(&vm->vcpu[i]);
	/* With panic=-1 a panic ends in a reset: it must not pass for one that the guest wanted. */
	if (console_saw_panic(vm->console) &&
	    (vm->outcome.why == STOP_RESET || vm->outcome.why == STOP_TRIPLE_FAULT))
		vm->outcome.why = STOP_PANIC;
}

static void set_paused(struct vm *vm, bool paused)
{
	pthread_mutex_lock(&vm->pause_lock);
	__atomic_store_n(&vm->paused, paused, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&vm->pause_lock);
}

void vm_pause(struct vm *vm)
{
	set_paused(vm, true);
	for (unsigned i = 0; i < vm->nr_vcpus; i++)
		vcpu_kick(&vm->vcpu[i]);
	/* Who is not in KVM_RUN, also who waits in a device, executes no guest code. */
	for (unsigned i = 0; i < vm->nr_vcpus; i++) {
		while (__atomic_load_n(&vm->vcpu[i].in_guest, __ATOMIC_SEQ_CST))
			sched_yield();
	}
}

void vm_resume(struct vm *vm)
{
	set_paused(vm, false);
	unpark(vm);
}

void vm_free(struct vm *vm)
{
	if (!vm)
		return;
	machine_free_devices(&vm->m);
	pci_root_free(vm->m.pci);
	console_free(vm->console);
	kvm_unbuild(vm);
	kvm_hv_free(vm->khv);
	if (vm->kvm_fd >= 0)
		close(vm->kvm_fd);
	mem_free(&vm->m.mem);
	loop_destroy(&vm->loop);
	bus_destroy(&vm->m.mmio);
	bus_destroy(&vm->m.pio);
	pthread_cond_destroy(&vm->unpaused);
	pthread_mutex_destroy(&vm->pause_lock);
	free(vm);
}
