/* SPDX-License-Identifier: GPL-2.0-only */
/* What all vCPUs of a VM share; private to x86/. */
#ifndef LKVM_X86_VM_H
#define LKVM_X86_VM_H

#include <linux/kvm.h>
#include "types.h"

#define X86_MAX_CPUID 256

struct x86_cpuid {
	struct kvm_cpuid2 head;
	struct kvm_cpuid_entry2 entries[X86_MAX_CPUID];
};

struct arch_vm {
	bool tsc_deadline;
	struct x86_cpuid cpuid; /* what KVM supports */
};

#endif
