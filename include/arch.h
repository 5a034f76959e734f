/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an architecture gives the rest: x86/ implements it, arm/ will. Rank 6.
 */
#ifndef LKVM_ARCH_H
#define LKVM_ARCH_H

#include "hw/pci.h"

struct vm;
struct vcpu;
struct boot_source;

/* Adds RAM of @bytes (a multiple of the page size) to @mem, around the architecture's holes. */
int arch_mem_init(struct guest_mem *mem, u64 bytes) __must_check;

const struct pci_layout *arch_pci_layout(void);

/*
 * Right after KVM_CREATE_VM and the memory slots: interrupt controllers, and what all vCPUs share,
 * in vm->arch. Checks the number of vCPUs. Logs.
 */
int arch_vm_init(struct vm *vm) __must_check;
void arch_vm_free(struct vm *vm);

/* Pins of the interrupt controllers: MSI routes get GSIs from here up. */
u32 arch_first_msi_gsi(void);

/*
 * The routes of those pins, which every KVM_SET_GSI_ROUTING must repeat. Number of entries written
 * to @e.
 */
struct kvm_irq_routing_entry;
unsigned arch_irq_routes(struct kvm_irq_routing_entry *e, unsigned max);

/* The platform's own devices (serial port, clock, power). Before any other device. */
int arch_devices(struct vm *vm) __must_check;

/* Right after KVM_CREATE_VCPU: features, CPUID, model registers. Reads no guest memory. */
int arch_vcpu_init(struct vcpu *vcpu) __must_check;

/*
 * Loads kernel, initrd, command line and tables into @mem for @nr_cpus. Logs what is wrong.
 * The first vCPU begins as @start says; its content is the architecture's.
 */
struct boot_start {
	bool pvh;   /* x86: 32-bit PVH entry, else the 64-bit entry of a bzImage */
	u64 entry;  /* gpa */
	u64 params; /* gpa of boot_params or hvm_start_info */
	u64 cr3;    /* x86, 64-bit entry: page tables */
	u64 gdt;    /* x86: gpa of the GDT */
};
int arch_boot(const struct guest_mem *mem, const struct boot_source *src, unsigned nr_cpus,
	      struct boot_start *start) __must_check;

/* Sets the first vCPU's registers; the others wait for a start-up interrupt. */
int arch_vcpu_start(struct vcpu *vcpu, const struct boot_start *start) __must_check;

/* An exit that vcpu.c does not know. 0 = go on, -errno = it cannot. */
int arch_vcpu_exit(struct vcpu *vcpu) __must_check;

/* What the user gets to see of a vCPU that died: one line of registers, logged. */
void arch_vcpu_dump(struct vcpu *vcpu);

#endif
