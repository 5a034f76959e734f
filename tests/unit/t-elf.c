// SPDX-License-Identifier: GPL-2.0-only
/* ELF kernels by their PVH entry. Theory of operation: see boot-image.h and t-bzimage.c. */
#include "boot-image.h"

struct start_info {
	u32 magic, version, flags, nr_modules;
	u64 modlist, cmdline, rsdp, memmap;
	u32 memmap_entries, reserved;
};

static void t_boots(void)
{
	static struct image im;
	const struct start_info *info;
	struct guest_mem mem;
	struct boot_start start;
	const u8 *p;

	image_mem(&mem, 64 * MiB);
	elf_make(&im);
	CHECK_EQ(image_boot(&mem, &im, "root=/dev/vda", &start), 0);
	CHECK(start.pvh);
	CHECK_EQ(start.entry, ELF_ENTRY);
	p = mem_ptr(&mem, ELF_ADDR, 4096);
	for (u64 i = 0; i < 4096; i++)
		CHECK_EQ(p[i], image_pattern(i));
	p = mem_ptr(&mem, ELF_ADDR + 64 * KiB, 128 * KiB);
	for (u64 i = 0; i < 128 * KiB; i++)
		CHECK_EQ(p[i], i < 100 ? image_pattern(4096 + i) : 0);
	info = mem_ptr(&mem, start.params, sizeof(*info));
	REQUIRE(info);
	CHECK_EQ(info->magic, 0x336ec578);
	CHECK_EQ(info->version, 1);
	CHECK_EQ(info->nr_modules, 0);
	CHECK_EQ(info->rsdp, X86_ACPI);
	CHECK(!strcmp(mem_ptr(&mem, info->cmdline, 100), "root=/dev/vda"));
	CHECK_EQ(info->memmap_entries, 5);
	mem_free(&mem);
}

static void t_initrd(void)
{
	static struct image im;
	const struct start_info *info;
	const u64 *module;
	struct guest_mem mem;
	struct boot_start start;
	struct boot_source src = { .kernel_path = "k", .initrd_path = "i" };

	image_mem(&mem, 64 * MiB);
	elf_make(&im);
	src.kernel_fd = image_file(im.byte, im.size);
	src.initrd_fd = image_file("the initrd", 10);
	CHECK_EQ(image_boot_fds(&mem, src, &start), 0);
	info = mem_ptr(&mem, start.params, sizeof(*info));
	REQUIRE(info && info->nr_modules == 1);
	module = mem_ptr(&mem, info->modlist, 32);
	CHECK_EQ(module[1], 10);
	CHECK(!memcmp(mem_ptr(&mem, module[0], 10), "the initrd", 10));
	mem_free(&mem);
}

/* Linux cuts what is longer. */
static void t_cmdline(void)
{
	static struct image im;
	static char line[2049];
	struct guest_mem mem;
	struct boot_start start;

	image_mem(&mem, 64 * MiB);
	elf_make(&im);
	memset(line, 'x', 2047);
	CHECK_EQ(image_boot(&mem, &im, line, &start), 0);
	line[2047] = 'x';
	CHECK_EQ(image_boot(&mem, &im, line, &start), -E2BIG);
	CHECK(strstr(image_log, "2047"));
	mem_free(&mem);
}

#define EH(field, v) \
	{ \
		offsetof(Elf64_Ehdr, field), sizeof(elf_header(NULL)->field), v \
	}
#define PH(i, field, v) \
	{ \
		sizeof(Elf64_Ehdr) + (i) * sizeof(Elf64_Phdr) + offsetof(Elf64_Phdr, field), \
			sizeof(elf_phdr(NULL, 0)->field), v \
	}
#define NOTE(off, len, v) \
	{ \
		ELF_NOTES + (off), len, v \
	}

static void t_headers(void)
{
	static const struct image_case cases[] = {
		{ "unharmed", 0, "", 0, {} },
		{ "position independent", 0, "", 0, { EH(e_type, ET_DYN) } },
		{ "only the magic", -EINVAL, "truncated", 4, {} },
		{ "cut in the header", -EINVAL, "truncated", 63, {} },
		{ "cut in program headers", -EINVAL, "truncated", 64 + 56 + 10, {} },
		{ "32 bit", -ENOEXEC, "32-bit", 0, { { EI_CLASS, 1, ELFCLASS32 } } },
		{ "big endian", -ENOEXEC, "another machine", 0, { { EI_DATA, 1, ELFDATA2MSB } } },
		{ "arm64", -ENOEXEC, "another machine", 0, { EH(e_machine, EM_AARCH64) } },
		{ "object file", -ENOEXEC, "executed", 0, { EH(e_type, ET_REL) } },
		{ "core file", -ENOEXEC, "executed", 0, { EH(e_type, ET_CORE) } },
		{ "no program headers", -EINVAL, "program headers", 0, { EH(e_phnum, 0) } },
		{ "65535 program headers", -EINVAL, "program headers", 0, { EH(e_phnum, 0xffff) } },
		{ "32-byte program headers",
		  -EINVAL,
		  "program headers",
		  0,
		  { EH(e_phentsize, 32) } },
		{ "program headers wrap", -EINVAL, "truncated", 0, { EH(e_phoff, ~0ULL - 16) } },
	};

	image_cases(cases, ARRAY_SIZE(cases), elf_make);
}

static void t_segments(void)
{
	static const struct image_case cases[] = {
		{ "empty segment", 0, "", 0, { PH(1, p_filesz, 0), PH(1, p_memsz, 0) } },
		{ "cut in text", -EINVAL, "truncated", ELF_TEXT + 10, {} },
		{ "offset wraps", -EINVAL, "truncated", 0, { PH(0, p_offset, ~0ULL - 100) } },
		{ "size wraps", -EINVAL, "truncated", 0, { PH(0, p_filesz, ~0ULL - 100) } },
		{ "smaller in memory", -EINVAL, "larger in the file", 0, { PH(1, p_memsz, 99) } },
		{ "memory size wraps", -ENOMEM, "needs", 0, { PH(1, p_memsz, ~0ULL) } },
		{ "below 1 MiB", -EINVAL, "below 1 MiB", 0, { PH(1, p_paddr, 0x9000) } },
		{ "address wraps", -ENOMEM, "needs", 0, { PH(1, p_paddr, ~0ULL - 4096) } },
		{ "in the hole", -ENOMEM, "needs", 0, { PH(1, p_paddr, 0xe0000000) } },
		{ "over the end", -ENOMEM, "needs", 0, { PH(1, p_paddr, 64 * MiB - 4096) } },
		{ "no segments", -EINVAL, "outside", 0, { PH(0, p_type, 0), PH(1, p_type, 0) } },
	};

	image_cases(cases, ARRAY_SIZE(cases), elf_make);
}

/* The Xen note is at 28: name at 40, value at 44. */
static void t_notes(void)
{
	static const struct image_case cases[] = {
		{ "no notes", -ENOEXEC, "CONFIG_PVH", 0, { PH(2, p_type, 0) } },
		{ "empty notes", -ENOEXEC, "CONFIG_PVH", 0, { PH(2, p_filesz, 0) } },
		{ "notes beyond the end", -EINVAL, "truncated", 0, { PH(2, p_offset, MiB) } },
		{ "notes of 16 EiB", -EINVAL, "truncated", 0, { PH(2, p_filesz, ~0ULL) } },
		{ "notes of 64 KiB", -EINVAL, "too long", IMAGE_MAX, { PH(2, p_filesz, 65537) } },
		{ "cut by a byte", -ENOEXEC, "CONFIG_PVH", 0, { PH(2, p_filesz, 47) } },
		{ "name of 4 GiB", -ENOEXEC, "CONFIG_PVH", 0, { NOTE(0, 4, ~0U) } },
		{ "value of 4 GiB", -ENOEXEC, "CONFIG_PVH", 0, { NOTE(32, 4, ~0U) } },
		{ "first value of 4 GiB", -ENOEXEC, "CONFIG_PVH", 0, { NOTE(4, 4, ~0U) } },
		{ "another owner", -ENOEXEC, "CONFIG_PVH", 0, { NOTE(40, 4, 0x006e6558 + 1) } },
		{ "another type", -ENOEXEC, "CONFIG_PVH", 0, { NOTE(36, 4, 17) } },
		{ "value of 2 bytes", -ENOEXEC, "CONFIG_PVH", 0, { NOTE(32, 4, 2) } },
		{ "entry 0", -ENOEXEC, "CONFIG_PVH", 0, { NOTE(44, 4, 0) } },
		{ "entry outside", -EINVAL, "outside", 0, { NOTE(44, 4, 0x1550123) } },
		{ "entry in bss", -EINVAL, "outside", 0, { NOTE(44, 4, 0x1010123) } },
		{ "entry at the last byte", 0, "", 0, { NOTE(44, 4, 0x1000fff) } },
	};

	image_cases(cases, ARRAY_SIZE(cases), elf_make);
}

static void t_fuzz(void)
{
	image_fuzz(elf_make, 64 + 3 * 56, 2000);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_boots), T(t_initrd), T(t_cmdline), T(t_headers),
		       T(t_segments), T(t_notes), T(t_fuzz));
}
