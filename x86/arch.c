// SPDX-License-Identifier: GPL-2.0-only
/*
 * The x86 machine: where memory and devices lie, and its interrupt controllers, which are KVM's.
 * No firmware, no PIT, no PIC that a kernel would have to know: time is the TSC, kvmclock and the
 * local APIC's deadline timer; ACPI's reduced hardware profile says that the rest is not there.
 */
#include <linux/kvm.h>
#include <sys/ioctl.h>

#include "hw/legacy.h"
#include "log.h"
#include "virtio/mmio.h"
#include "vm.h"
#include "x86.h"
#include "x86-vm.h"

#define NR_PINS       24
#define NR_PIC_PINS   16
#define X86_MAX_CPUS  254U /* APIC IDs of 8 bits, of which 255 is broadcast */
#define TSS_ADDR      0xfffbd000UL
#define IDENTITY_ADDR 0xfffbc000ULL

int arch_mem_init(struct guest_mem *mem, u64 bytes)
{
	u64 low = MIN(bytes, X86_LOWMEM_END);
	int err = mem_add(mem, 0, low);

	if (!err && bytes > low)
		err = mem_add(mem, X86_HIGHMEM, bytes - low);
	return err;
}

const struct pci_layout *arch_pci_layout(void)
{
	static const struct pci_layout layout = {
		.ecam = X86_ECAM,
		.mmio_base = X86_PCI_MMIO,
		.mmio_size = X86_PCI_MMIO_SIZE,
		.io_base = X86_PCI_IO,
		.io_size = X86_PCI_IO_SIZE,
		.conf1 = X86_CONF1_PORT,
		.intx_gsi = { X86_INTX_GSI, X86_INTX_GSI + 1, X86_INTX_GSI + 2, X86_INTX_GSI + 3 },
	};

	return &layout;
}

u32 arch_first_msi_gsi(void)
{
	return NR_PINS;
}

unsigned arch_irq_routes(struct kvm_irq_routing_entry *e, unsigned max)
{
	unsigned n = 0;

	for (u32 pin = 0; pin < NR_PINS && n + 2 <= max; pin++) {
		e[n++] = (struct kvm_irq_routing_entry){
			.gsi = pin,
			.type = KVM_IRQ_ROUTING_IRQCHIP,
			.u.irqchip = { .irqchip = KVM_IRQCHIP_IOAPIC, .pin = pin },
		};
		if (pin >= NR_PIC_PINS)
			continue;
		e[n++] = (struct kvm_irq_routing_entry){
			.gsi = pin,
			.type = KVM_IRQ_ROUTING_IRQCHIP,
			.u.irqchip = { .irqchip = pin < 8 ? KVM_IRQCHIP_PIC_MASTER
							  : KVM_IRQCHIP_PIC_SLAVE,
				       .pin = pin % 8 },
		};
	}
	return n;
}

static int check_cpus(struct vm *vm)
{
	int kvm_max = ioctl(vm->kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS);
	unsigned max = kvm_max > 0 ? MIN((unsigned)kvm_max, X86_MAX_CPUS) : 4;

	if (vm->cfg.nr_cpus <= max)
		return 0;
	log_err("-c %u: more CPUs than possible here; use at most %u", vm->cfg.nr_cpus, max);
	return -EINVAL;
}

int arch_vm_init(struct vm *vm)
{
	u64 identity = IDENTITY_ADDR;
	const char *what = "room for its task state segment";
	int err = check_cpus(vm);

	if (err)
		return err;
	vm->arch = calloc(1, sizeof(*vm->arch));
	if (!vm->arch)
		return log_no_memory("list of CPU features");
	vm->arch->tsc_deadline =
		ioctl(vm->kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_TSC_DEADLINE_TIMER) > 0;
	vm->arch->cpuid.head.nent = X86_MAX_CPUID - 8; /* topology leaves are added */
	if (ioctl(vm->vm_fd, KVM_SET_IDENTITY_MAP_ADDR, &identity) == 0 &&
	    ioctl(vm->vm_fd, KVM_SET_TSS_ADDR, TSS_ADDR) == 0) {
		what = "interrupt controllers (CONFIG_KVM_IOAPIC of the host kernel)";
		if (ioctl(vm->vm_fd, KVM_CREATE_IRQCHIP) == 0) {
			what = "list of CPU features";
			if (ioctl(vm->kvm_fd, KVM_GET_SUPPORTED_CPUID, &vm->arch->cpuid.head) == 0)
				return 0;
		}
	}
	err = -errno;
	log_err("/dev/kvm: it gives no %s: %s", what, strerror(-err));
	return err;
}

void arch_vm_free(struct vm *vm)
{
	free(vm->arch);
	vm->arch = NULL;
}

int arch_devices(struct vm *vm)
{
	static const struct virtio_mmio_layout slots = {
		.base = X86_VIRTIO_MMIO,
		.present_port = X86_VIRTIO_PORT,
		.gsi = X86_VIRTIO_GSIS,
	};
	int err = serial_new(&vm->m, vm->console, X86_COM1_PORT, X86_COM1_GSI);

	if (!err)
		err = rtc_new(&vm->m, X86_RTC_PORT);
	if (!err)
		err = i8042_new(&vm->m);
	if (!err)
		err = power_new(&vm->m, X86_POWER_PORT);
	if (!err)
		err = virtio_mmio_slots_new(&vm->m, &slots);
	return err;
}
