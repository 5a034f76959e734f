// SPDX-License-Identifier: GPL-2.0-only
/*
 * From files to a guest that can start.
 *
 * Theory of operation: arch_boot() lets the loader of the kernel's format (bzimage.c, elf.c) check
 * and load it, which yields struct load: entry, the memory that the kernel claims, limits of
 * initrd and command line. Then initrd, command line, memory map and ACPI tables follow, and last
 * what the first vCPU needs to be in 64-bit mode (GDT, identity page tables), or for PVH in flat
 * 32-bit mode. Everything goes through mem_write() and mem_load(), that is through the memory
 * file: not one guest page is faulted in here. Addresses are in x86.h. One line is logged for
 * whatever is wrong, before any vCPU exists.
 */
#include <elf.h>
#include "hw/legacy.h"
#include "load.h"
#include "log.h"

#define E820_RAM      1
#define E820_RESERVED 2
#define MAP_MAX       (4 + MEM_MAX_REGIONS)

#define PAGE_SIZE    4096ULL
#define PTE_PRESENT  BIT(0)
#define PTE_WRITABLE BIT(1)
#define PTE_LARGE    BIT(7)

#define LOADER_UNDEFINED 0xff

/* Xen public/arch-x86/hvm/start_info.h, version 1. */
struct pvh_start_info {
	u32 magic, version, flags, nr_modules;
	u64 modlist, cmdline, rsdp, memmap;
	u32 memmap_entries, reserved;
};

struct pvh_module {
	u64 addr, size, cmdline, reserved;
};

struct pvh_memmap {
	u64 addr, size;
	u32 type, reserved;
};

#define PVH_MAGIC 0x336ec578

struct pvh_params {
	struct pvh_start_info info;
	struct pvh_module initrd;
	struct pvh_memmap map[MAP_MAX];
};

_Static_assert(sizeof(struct boot_params) == PAGE_SIZE, "the zero page is a page");
_Static_assert(sizeof(struct pvh_start_info) == 56, "hvm_start_info, version 1");
_Static_assert(X86_BOOT_PARAMS + sizeof(struct boot_params) <= X86_PAGE_TABLES,
	       "boot data overlaps");
_Static_assert(sizeof(struct pvh_params) <= PAGE_SIZE, "boot data overlaps");
_Static_assert(X86_PAGE_TABLES + 6 * PAGE_SIZE <= X86_CMDLINE, "boot data overlaps");
_Static_assert(X86_CMDLINE + X86_CMDLINE_SIZE <= X86_EBDA, "boot data overlaps");

int load_no_room(const struct load *ld, u64 gpa, u64 size)
{
	log_err("kernel: %s: needs %llu MiB at %#llx, which %llu MiB of memory do not have; give more (-m)",
		ld->kernel.path, (unsigned long long)(ALIGN_UP(size, MiB) / MiB),
		(unsigned long long)gpa, (unsigned long long)(mem_size(ld->mem) / MiB));
	return -ENOMEM;
}

static int write_part(const struct load *ld, const char *what, u64 gpa, const void *buf, u64 len)
{
	int err = mem_write(ld->mem, gpa, buf, len);

	if (err)
		log_err("boot: cannot write the %s to guest memory: %s", what, strerror(-err));
	return err;
}

static int load_kernel(struct load *ld)
{
	u8 magic[SELFMAG] = { 0 };
	int err = boot_file_read(&ld->kernel, magic, MIN(ld->kernel.size, (u64)SELFMAG), 0);

	if (err) {
		log_err("kernel: %s: cannot be read: %s", ld->kernel.path, strerror(-err));
		return err;
	}
	return memcmp(magic, ELFMAG, SELFMAG) ? bzimage_load(ld) : elf_load(ld);
}

/* As high as it goes in [from, end): the address, or 0. */
static u64 place(u64 from, u64 end, u64 size)
{
	if (end <= from || size > end - from)
		return 0;
	end = (end - size) & ~(PAGE_SIZE - 1);
	return end >= from ? end : 0;
}

/*
 * High in memory, out of the way of a kernel that unpacks itself: where the kernel wants it, else
 * anywhere in RAM if the kernel allows that.
 */
static u64 place_initrd(const struct load *ld, u64 size)
{
	const struct mem_region *top = &ld->mem->r[ld->mem->nr - 1];
	u64 gpa = place(ld->kernel_end, MIN(ld->low_end, ld->initrd_max + 1), size);

	if (!gpa && ld->initrd_high)
		gpa = place(ld->kernel_end, ld->low_end, size);
	if (!gpa && ld->initrd_high && ld->mem->nr > 1)
		gpa = place(top->gpa, top->gpa + top->size, size);
	return gpa;
}

static int load_initrd(struct load *ld)
{
	struct boot_file f;
	int err;

	if (ld->src->initrd_fd < 0)
		return 0;
	err = boot_file_open(&f, "initrd", ld->src->initrd_path, ld->src->initrd_fd,
			     mem_size(ld->mem));
	if (err)
		return err;
	ld->initrd = place_initrd(ld, f.size);
	ld->initrd_size = f.size;
	if (ld->initrd) {
		err = boot_file_load(ld, &f, 0, f.size, ld->initrd);
	} else {
		log_err("initrd: %s (%llu MiB) does not fit in %llu MiB of memory", f.path,
			(unsigned long long)(ALIGN_UP(f.size, MiB) / MiB),
			(unsigned long long)(mem_size(ld->mem) / MiB));
		err = -ENOMEM;
	}
	boot_file_close(&f);
	return err;
}

static int load_cmdline(const struct load *ld)
{
	const char *cmdline = ld->src->cmdline ? ld->src->cmdline : "";
	size_t len = strlen(cmdline);

	if (len > ld->cmdline_max) {
		log_err("kernel command line: has %zu characters, kernel %s takes %llu", len,
			ld->kernel.path, (unsigned long long)ld->cmdline_max);
		return -E2BIG;
	}
	return write_part(ld, "command line", X86_CMDLINE, cmdline, len + 1);
}

/* The memory map, sorted, without overlap. Number of entries. */
static unsigned memory_map(const struct load *ld, struct boot_e820_entry map[MAP_MAX])
{
	unsigned n = 0;

	map[n++] = (struct boot_e820_entry){ 0, X86_EBDA, E820_RAM };
	map[n++] = (struct boot_e820_entry){ X86_EBDA, X86_ROM - X86_EBDA, E820_RESERVED };
	map[n++] = (struct boot_e820_entry){ X86_ROM, MiB - X86_ROM, E820_RESERVED };
	map[n++] = (struct boot_e820_entry){ MiB, ld->low_end - MiB, E820_RAM };
	map[n++] = (struct boot_e820_entry){ X86_ECAM, X86_ECAM_SIZE, E820_RESERVED };
	for (unsigned i = 1; i < ld->mem->nr; i++)
		map[n++] =
			(struct boot_e820_entry){ ld->mem->r[i].gpa, ld->mem->r[i].size, E820_RAM };
	return n;
}

static int write_boot_params(const struct load *ld)
{
	struct boot_params bp = { .hdr = ld->hdr };

	bp.hdr.type_of_loader = LOADER_UNDEFINED;
	bp.hdr.cmd_line_ptr = X86_CMDLINE;
	if (ld->initrd_size) {
		bp.hdr.ramdisk_image = (u32)ld->initrd;
		bp.hdr.ramdisk_size = (u32)ld->initrd_size;
		bp.ext_ramdisk_image = (u32)(ld->initrd >> 32);
		bp.ext_ramdisk_size = (u32)(ld->initrd_size >> 32);
	}
	bp.acpi_rsdp_addr = X86_ACPI;
	bp.e820_entries = (u8)memory_map(ld, bp.e820_table);
	return write_part(ld, "boot parameters", X86_BOOT_PARAMS, &bp, sizeof(bp));
}

static int write_pvh_params(const struct load *ld)
{
	struct boot_e820_entry map[MAP_MAX];
	struct pvh_params p = {
		.info = {
			.magic = PVH_MAGIC,
			.version = 1,
			.cmdline = X86_CMDLINE,
			.rsdp = X86_ACPI,
			.memmap = X86_BOOT_PARAMS + offsetof(struct pvh_params, map),
			.memmap_entries = memory_map(ld, map),
		},
	};

	if (ld->initrd_size) {
		p.info.nr_modules = 1;
		p.info.modlist = X86_BOOT_PARAMS + offsetof(struct pvh_params, initrd);
		p.initrd.addr = ld->initrd;
		p.initrd.size = ld->initrd_size;
	}
	for (unsigned i = 0; i < p.info.memmap_entries; i++) {
		p.map[i].addr = map[i].addr;
		p.map[i].size = map[i].size;
		p.map[i].type = map[i].type;
	}
	return write_part(ld, "start info", X86_BOOT_PARAMS, &p, sizeof(p));
}

/* Selectors 0x10 code, 0x18 data, 0x20 a task that is never switched to. */
static int write_gdt(const struct load *ld)
{
	u64 gdt[] = {
		0,
		0,
		ld->pvh ? 0x00cf9b000000ffffULL : 0x00af9b000000ffffULL,
		0x00cf93000000ffffULL,
		0x00008b0000000067ULL,
	};

	return write_part(ld, "GDT", X86_BOOT_GDT, gdt, sizeof(gdt));
}

/* 4 GiB mapped one to one by pages of 2 MiB, which every CPU has. */
static int write_page_tables(const struct load *ld)
{
	u64 table[6][PAGE_SIZE / sizeof(u64)] = { 0 };

	table[0][0] = (X86_PAGE_TABLES + PAGE_SIZE) | PTE_PRESENT | PTE_WRITABLE;
	for (unsigned g = 0; g < 4; g++) {
		table[1][g] = (X86_PAGE_TABLES + (2 + g) * PAGE_SIZE) | PTE_PRESENT | PTE_WRITABLE;
		for (unsigned i = 0; i < 512; i++)
			table[2 + g][i] = (g * GiB + i * 2 * MiB) | PTE_PRESENT | PTE_WRITABLE |
					  PTE_LARGE;
	}
	return write_part(ld, "page tables", X86_PAGE_TABLES, table, sizeof(table));
}

/*
 * All that there is of a BIOS. Linux jumps here to reboot when ACPI is hardware-reduced and there
 * is no EFI: mov dx, reset port; mov al, POWER_RESET; out dx, al; hlt; jmp to the hlt.
 */
static int write_reset_vector(const struct load *ld)
{
	static const u8 code[] = {
		0xba,
		(X86_POWER_PORT + 2) & 0xff,
		(X86_POWER_PORT + 2) >> 8,
		0xb0,
		POWER_RESET,
		0xee,
		0xf4,
		0xeb,
		0xfd,
	};

	return write_part(ld, "reset vector", X86_RESET_VECTOR, code, sizeof(code));
}

static int load_all(struct load *ld, unsigned nr_cpus)
{
	int err = load_kernel(ld);

	if (!err)
		err = load_cmdline(ld);
	if (!err)
		err = load_initrd(ld);
	if (!err)
		err = ld->pvh ? write_pvh_params(ld) : write_boot_params(ld);
	if (!err)
		err = acpi_write(ld->mem, nr_cpus);
	if (!err)
		err = write_reset_vector(ld);
	if (!err)
		err = write_gdt(ld);
	if (!err && !ld->pvh)
		err = write_page_tables(ld);
	return err;
}

int arch_boot(const struct guest_mem *mem, const struct boot_source *src, unsigned nr_cpus,
	      struct boot_start *start)
{
	struct load ld = { .mem = mem, .src = src };
	int err;

	if (mem->nr == 0 || mem->r[0].gpa != 0 || mem->r[0].size <= MiB) {
		log_err("memory: %llu bytes are too few to boot; give more (-m)",
			(unsigned long long)mem_size(mem));
		return -ENOMEM;
	}
	ld.low_end = mem->r[0].size;
	err = boot_file_open(&ld.kernel, "kernel", src->kernel_path, src->kernel_fd, mem_size(mem));
	if (err)
		return err;
	err = load_all(&ld, nr_cpus);
	boot_file_close(&ld.kernel);
	*start = (struct boot_start){
		.pvh = ld.pvh,
		.entry = ld.entry,
		.params = X86_BOOT_PARAMS,
		.cr3 = ld.pvh ? 0 : X86_PAGE_TABLES,
		.gdt = X86_BOOT_GDT,
	};
	return err;
}
