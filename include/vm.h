/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The virtual machine: vm.c is the one place that knows build order, run, and stop order. Rank 6.
 */
#ifndef LKVM_VM_H
#define LKVM_VM_H

#include "arch.h"
#include "boot.h"
#include "loop.h"
#include "machine.h"
#include "outcome.h"

struct kvm_hv;
struct arch_vm;

struct vm_config {
	const char *name;
	u64 mem; /* bytes */
	unsigned nr_cpus;
	struct boot_source boot;
};

struct vm {
	struct machine m;
	struct loop loop;
	struct vm_config cfg;
	int kvm_fd, vm_fd;
	struct kvm_hv *khv;
	struct vcpu *vcpu; /* array */
	unsigned nr_vcpus;
	struct console *console;
	struct boot_start start;
	struct arch_vm *arch;
	struct outcome outcome;

	pthread_mutex_t pause_lock; /* innermost; guards changes of paused */
	pthread_cond_t unpaused;
	bool paused; /* atomic */
};

/*
 * Builds the VM up to, but without, the devices on its buses other than the platform's own. On
 * error NULL, *@err = -errno, everything undone and one line logged.
 */
struct vm *vm_new(const struct vm_config *cfg, int *err) __must_check;

/* Runs until somebody stops it. Never fails: what went wrong is the outcome. */
void vm_run(struct vm *vm);

/*
 * After vm_run() ended: makes the VM as good as new for another vm_run(). Devices are reset and
 * keep what they have on the host (taps, fds); KVM's part, memory and the boot image are made
 * again. 0 or -errno after logging.
 */
int vm_reset(struct vm *vm) __must_check;

/*
 * Pause: on return no vCPU executes guest code, and none will before vm_resume(); devices go on.
 * Resume: the guest's clock is told that time was lost (KVM api.rst 4.74). Both are idempotent.
 * Loop thread.
 */
void vm_pause(struct vm *vm);
void vm_resume(struct vm *vm);

/* Ends devices, vCPUs, KVM and memory in order. NULL is fine, a half-built one too. */
void vm_free(struct vm *vm);

/* kvm-hv.c */
struct kvm_hv *kvm_hv_new(int vm_fd) __must_check;
/* Goes over to another KVM VM, with all MSI routes; no irqfd or ioeventfd may be in place. */
int kvm_hv_rebase(struct kvm_hv *khv, int vm_fd) __must_check;
struct hv *kvm_hv_base(struct kvm_hv *khv);
void kvm_hv_free(struct kvm_hv *khv);

#endif
