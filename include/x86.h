/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The x86 machine: where things are in guest physical memory and in port space. The DSDT
 * (x86/dsdt.asl) repeats what it describes. Rank 6.
 *
 *	0x00000000  boot data: GDT, page tables, boot_params or hvm_start_info, command line
 *	0x0009fc00  end of conventional memory
 *	0x000e0000  ACPI tables, RSDP first
 *	0x000ffff0  reset vector
 *	0x00100000  kernel (where its header says), then free, then the initrd
 *	0xc0000000  memory BARs
 *	0xe0000000  PCI config space (ECAM) of bus 0
 *	0xe0100000  virtio-mmio slots, behind it
 *	0xfec00000  I/O APIC, 0xfee00000 local APIC
 *	0x100000000 RAM beyond 3 GiB
 */
#ifndef LKVM_X86_H
#define LKVM_X86_H

#include "mem.h"

/* Memory. */
#define X86_LOWMEM_END    0xc0000000ULL /* RAM below 4 GiB ends here at the latest */
#define X86_PCI_MMIO      0xc0000000ULL
#define X86_PCI_MMIO_SIZE 0x20000000ULL
#define X86_ECAM          0xe0000000ULL
#define X86_ECAM_SIZE     MiB
#define X86_VIRTIO_MMIO   0xe0100000ULL
#define X86_IOAPIC        0xfec00000U
#define X86_LAPIC         0xfee00000U
#define X86_HIGHMEM       (4 * GiB)

/* I/O ports. */
#define X86_RTC_PORT    0x70
#define X86_COM1_PORT   0x3f8
#define X86_POWER_PORT  0x600 /* sleep control; +1 sleep status; +2 reset */
#define X86_VIRTIO_PORT 0x608 /* bit n: there is a device in virtio-mmio slot n */
#define X86_CONF1_PORT  0xcf8
#define X86_PCI_IO      0x1000
#define X86_PCI_IO_SIZE 0xf000

/* Pins of the I/O APIC. */
#define X86_COM1_GSI 4
#define X86_INTX_GSI 16 /* four PCI lines: (slot + pin) % 4, pin 0 is INTA */
#define X86_VIRTIO_GSIS \
	{ \
		20, 21, 22, 23, 5, 6, 7, 9 \
	} /* by slot; first those that no ISA device ever had */

/* Boot data, below X86_EBDA. */
#define X86_BOOT_GDT      0x6000
#define X86_BOOT_PARAMS   0x7000 /* boot_params, or hvm_start_info and what it points to */
#define X86_PAGE_TABLES   0x9000 /* PML4, PDPT, four page directories */
#define X86_CMDLINE       0x20000
#define X86_CMDLINE_SIZE  0x10000
#define X86_EBDA          0x9fc00
#define X86_ROM           0xa0000
#define X86_ACPI          0xe0000 /* the RSDP is here, where a scan looks for it */
#define X86_ACPI_SIZE     0x1fff0
#define X86_RESET_VECTOR  0xffff0
#define X86_KERNEL_LOWEST MiB

/*
 * Writes the ACPI tables for @nr_cpus (APIC id = index of the vCPU) to X86_ACPI. -ENOSPC when they
 * do not fit, -ENOMEM, or the error of mem_write(); logged.
 */
int acpi_write(const struct guest_mem *mem, unsigned nr_cpus) __must_check;

#endif
