// SPDX-License-Identifier: GPL-2.0-only
/*
 * What makes a vCPU an x86 one: CPUID, the few model registers that a kernel expects firmware to
 * have set, and the registers of the first vCPU at the kernel's entry.
 *
 * CPUID is what KVM supports, with three kinds of change: what differs between vCPUs (APIC ID,
 * topology leaves), what KVM emulates but does not list (TSC deadline timer), and the number of
 * CPUs. It is set before any model register is touched: since Linux 6.13 KVM decides by it which
 * of them exist.
 */
#include <linux/kvm.h>
#include <sys/ioctl.h>

#include "log.h"
#include "vcpu.h"
#include "vm.h"
#include "x86.h"
#include "x86-vm.h"

#define MSR_MTRR_DEF_TYPE    0x2ff
#define MTRR_ENABLED_WB      (BIT(11) | 6)
#define MSR_MISC_ENABLE      0x1a0
#define MISC_ENABLE_FAST_STR BIT(0)

#define CR0_PE   BIT(0)
#define CR0_ET   BIT(4)
#define CR0_PG   BIT(31)
#define CR4_PAE  BIT(5)
#define EFER_LME BIT(8)
#define EFER_LMA BIT(10)

/* Number of APIC ID bits that @n CPUs need. */
static unsigned id_bits(unsigned n)
{
	return n > 1 ? 32 - (unsigned)__builtin_clz(n - 1) : 0;
}

static struct kvm_cpuid_entry2 *cpuid_add(struct kvm_cpuid2 *cpuid, u32 function, u32 index)
{
	struct kvm_cpuid_entry2 *e = &cpuid->entries[cpuid->nent];

	if (cpuid->nent == X86_MAX_CPUID)
		return NULL;
	cpuid->nent++;
	*e = (struct kvm_cpuid_entry2){
		.function = function,
		.index = index,
		.flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX,
	};
	return e;
}

/* Leaves 0xb and 0x1f: one thread for each core, one package. Level types: 1 = SMT, 2 = core. */
static void cpuid_topology(struct kvm_cpuid2 *cpuid, u32 leaf, u32 apic_id, unsigned nr_cpus)
{
	struct kvm_cpuid_entry2 *e;

	for (u32 level = 0; level < 3; level++) {
		e = cpuid_add(cpuid, leaf, level);
		if (!e)
			return;
		e->eax = level == 1 ? id_bits(nr_cpus) : 0;
		e->ebx = level == 0 ? 1 : level == 1 ? nr_cpus : 0;
		e->ecx = level | (level < 2 ? (level + 1) << 8 : 0);
		e->edx = apic_id;
	}
}

static void cpuid_leaf1(struct kvm_cpuid_entry2 *e, u32 apic_id, unsigned nr_cpus, bool deadline)
{
	e->ebx = (e->ebx & 0xff00) | MIN(nr_cpus, 255U) << 16 | (apic_id & 0xff) << 24;
	e->ecx |= 1U << 31 /* hypervisor */ | 1U << 21 /* x2APIC */;
	if (deadline)
		e->ecx |= 1U << 24;
	e->edx &= ~(1U << 28);
	if (nr_cpus > 1)
		e->edx |= 1U << 28; /* more than one logical CPU in the package */
}

static void cpuid_entry(struct kvm_cpuid_entry2 *e, u32 apic_id, unsigned nr_cpus, bool deadline)
{
	switch (e->function) {
	case 1: cpuid_leaf1(e, apic_id, nr_cpus, deadline); break;
	case 4:
		/*
		 * 31:26 cores in the package, 25:14 CPUs that share this cache: L3 by all, others
		 * by one.
		 */
		e->eax &= ~0xffffc000U;
		if (e->eax & 0x1f) {
			e->eax |= (MIN(BIT(id_bits(nr_cpus)), 64ULL) - 1) << 26;
			if ((e->eax >> 5 & 7) >= 3)
				e->eax |= (nr_cpus - 1) << 14;
		}
		break;
	case 0x80000008: e->ecx = (nr_cpus - 1) | id_bits(nr_cpus) << 12; break;
	case 0x8000001d:
		e->eax &= ~0x03ffc000U;
		if ((e->eax >> 5 & 7) >= 3)
			e->eax |= (nr_cpus - 1) << 14;
		break;
	case 0x8000001e:
		e->eax = apic_id;
		e->ebx = apic_id & 0xff;
		e->ecx = 0;
		break;
	}
}

static int set_cpuid(struct vcpu *vcpu)
{
	const struct arch_vm *arch = vcpu->vm->arch;
	struct x86_cpuid table = arch->cpuid;
	struct kvm_cpuid2 *cpuid = &table.head;
	unsigned nr_cpus = vcpu->vm->cfg.nr_cpus, n = 0;
	bool has_1f = false, has_b = false;

	for (unsigned i = 0; i < cpuid->nent; i++) {
		struct kvm_cpuid_entry2 e = table.entries[i];

		has_b |= e.function == 0xb;
		has_1f |= e.function == 0x1f;
		if (e.function == 0xb || e.function == 0x1f)
			continue;
		cpuid_entry(&e, vcpu->index, nr_cpus, arch->tsc_deadline);
		table.entries[n++] = e;
	}
	cpuid->nent = n;
	if (has_b)
		cpuid_topology(cpuid, 0xb, vcpu->index, nr_cpus);
	if (has_1f)
		cpuid_topology(cpuid, 0x1f, vcpu->index, nr_cpus);
	return ioctl(vcpu->fd, KVM_SET_CPUID2, cpuid) ? -errno : 0;
}

static int set_msrs(struct vcpu *vcpu)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry e[2];
	} msrs = {
		.head.nmsrs = 2,
		.e = {
			{ .index = MSR_MTRR_DEF_TYPE, .data = MTRR_ENABLED_WB },
			{ .index = MSR_MISC_ENABLE, .data = MISC_ENABLE_FAST_STR },
		},
	};
	int n = ioctl(vcpu->fd, KVM_SET_MSRS, &msrs);

	/* MISC_ENABLE is Intel's: a KVM that does not have it stops before it, which is fine. */
	return n < 0 ? -errno : n < 1 ? -EINVAL : 0;
}

int arch_vcpu_init(struct vcpu *vcpu)
{
	const char *what = "CPUID";
	int err = set_cpuid(vcpu);

	if (!err) {
		what = "model registers";
		err = set_msrs(vcpu);
	}
	if (err)
		log_err("vCPU %u: KVM refuses its %s: %s", vcpu->index, what, strerror(-err));
	return err;
}

static struct kvm_segment flat(u16 selector, u8 type, bool code64)
{
	return (struct kvm_segment){
		.base = 0,
		.limit = 0xffffffff,
		.selector = selector,
		.type = type,
		.present = 1,
		.s = 1,
		.db = !code64,
		.l = code64,
		.g = 1,
	};
}

static void sregs_set(struct kvm_sregs *s, const struct boot_start *start)
{
	bool code64 = !start->pvh;

	s->cs = flat(0x10, 0xb, code64);
	s->ds = s->es = s->fs = s->gs = s->ss = flat(0x18, 0x3, false);
	s->tr.limit = 0x67;
	s->tr.type = 0xb;
	s->gdt.base = start->gdt;
	s->gdt.limit = 4 * 8 - 1;
	s->idt.limit = 0;
	s->cr0 = CR0_PE | CR0_ET;
	s->cr4 = 0;
	s->efer = 0;
	if (code64) {
		s->cr0 |= CR0_PG;
		s->cr3 = start->cr3;
		s->cr4 = CR4_PAE;
		s->efer = EFER_LME | EFER_LMA;
	}
}

int arch_vcpu_start(struct vcpu *vcpu, const struct boot_start *start)
{
	struct kvm_regs regs = { .rflags = 2, .rip = start->entry };
	struct kvm_sregs sregs;

	if (start->pvh)
		regs.rbx = start->params;
	else
		regs.rsi = start->params;
	if (ioctl(vcpu->fd, KVM_GET_SREGS, &sregs) == 0) {
		sregs_set(&sregs, start);
		if (ioctl(vcpu->fd, KVM_SET_SREGS, &sregs) == 0 &&
		    ioctl(vcpu->fd, KVM_SET_REGS, &regs) == 0)
			return 0;
	}
	log_err("vCPU %u: KVM refuses its registers: %s", vcpu->index, strerror(errno));
	return -EINVAL;
}

int arch_vcpu_exit(struct vcpu *vcpu)
{
	/* An end-of-interrupt of the in-kernel IOAPIC that we did not ask for, and the like. */
	return vcpu->run->exit_reason == KVM_EXIT_IRQ_WINDOW_OPEN ? 0 : -ENOSYS;
}

void arch_vcpu_dump(struct vcpu *vcpu)
{
	struct kvm_regs r;
	struct kvm_sregs s;

	if (ioctl(vcpu->fd, KVM_GET_REGS, &r) || ioctl(vcpu->fd, KVM_GET_SREGS, &s))
		return;
	log_err("vCPU %u: rip %#llx rsp %#llx rflags %#llx rax %#llx rbx %#llx rcx %#llx rdx %#llx rsi %#llx "
		"rdi %#llx cr0 %#llx cr2 %#llx cr3 %#llx cr4 %#llx efer %#llx cs %#x",
		vcpu->index, r.rip, r.rsp, r.rflags, r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi,
		s.cr0, s.cr2, s.cr3, s.cr4, s.efer, s.cs.selector);
}
