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

static void none(struct image *im)
{
	(void)im;
}
static void only_magic(struct image *im)
{
	im->size = 4;
}
static void in_ehdr(struct image *im)
{
	im->size = 63;
}
static void in_phdrs(struct image *im)
{
	im->size = 64 + 56 + 10;
}
static void in_text(struct image *im)
{
	im->size = ELF_TEXT + 10;
}
static void class32(struct image *im)
{
	im->byte[EI_CLASS] = ELFCLASS32;
}
static void big_endian(struct image *im)
{
	im->byte[EI_DATA] = ELFDATA2MSB;
}
static void aarch64(struct image *im)
{
	elf_header(im)->e_machine = EM_AARCH64;
}
static void object(struct image *im)
{
	elf_header(im)->e_type = ET_REL;
}
static void core(struct image *im)
{
	elf_header(im)->e_type = ET_CORE;
}
static void pie(struct image *im)
{
	elf_header(im)->e_type = ET_DYN;
}
static void no_phdrs(struct image *im)
{
	elf_header(im)->e_phnum = 0;
}
static void many_phdrs(struct image *im)
{
	elf_header(im)->e_phnum = 0xffff;
}
static void odd_phdrs(struct image *im)
{
	elf_header(im)->e_phentsize = 32;
}
static void phoff_wrap(struct image *im)
{
	elf_header(im)->e_phoff = ~0ULL - 16;
}
static void off_wrap(struct image *im)
{
	elf_phdr(im, 0)->p_offset = ~0ULL - 100;
}
static void filesz_wrap(struct image *im)
{
	elf_phdr(im, 0)->p_filesz = ~0ULL - 100;
}
static void memsz_small(struct image *im)
{
	elf_phdr(im, 1)->p_memsz = 99;
}
static void memsz_huge(struct image *im)
{
	elf_phdr(im, 1)->p_memsz = ~0ULL;
}
static void paddr_low(struct image *im)
{
	elf_phdr(im, 1)->p_paddr = 0x9000;
}
static void paddr_wrap(struct image *im)
{
	elf_phdr(im, 1)->p_paddr = ~0ULL - 4096;
}
static void paddr_hole(struct image *im)
{
	elf_phdr(im, 1)->p_paddr = 0xe0000000;
}
static void paddr_end(struct image *im)
{
	elf_phdr(im, 1)->p_paddr = 64 * MiB - 4096;
}
static void no_segments(struct image *im)
{
	elf_phdr(im, 0)->p_type = elf_phdr(im, 1)->p_type = PT_NULL;
}
static void no_notes(struct image *im)
{
	elf_phdr(im, 2)->p_type = PT_NULL;
}
static void notes_huge(struct image *im)
{
	elf_phdr(im, 2)->p_filesz = ~0ULL;
}
static void notes_long(struct image *im)
{
	elf_phdr(im, 2)->p_filesz = 65537;
	im->size = IMAGE_MAX;
}
static void notes_none(struct image *im)
{
	elf_phdr(im, 2)->p_filesz = 0;
}
static void notes_cut(struct image *im)
{
	elf_phdr(im, 2)->p_filesz -= 1;
}
static void namesz_huge(struct image *im)
{
	memset(im->byte + ELF_NOTES, 0xff, 4);
}
static void descsz_huge(struct image *im)
{
	memset(im->byte + ELF_NOTES + 28 + 4, 0xff, 4);
}
static void descsz_wrap(struct image *im)
{
	memset(im->byte + ELF_NOTES + 4, 0xff, 4);
}
static void entry_out(struct image *im)
{
	im->byte[ELF_NOTES + 28 + 18] = 0x55;
}
static void entry_0(struct image *im)
{
	memset(im->byte + ELF_NOTES + 28 + 16, 0, 4);
}
static void empty_segment(struct image *im)
{
	elf_phdr(im, 1)->p_filesz = elf_phdr(im, 1)->p_memsz = 0;
}
static void entry_in_bss(struct image *im)
{
	im->byte[ELF_NOTES + 28 + 18] = 0x01;
}

static void t_cases(void)
{
	static const struct image_case cases[] = {
		{ "unharmed", none, 0, "" },
		{ "position independent", pie, 0, "" },
		{ "empty segment", empty_segment, 0, "" },
		{ "only the magic", only_magic, -EINVAL, "truncated" },
		{ "cut in the header", in_ehdr, -EINVAL, "truncated" },
		{ "cut in program headers", in_phdrs, -EINVAL, "truncated" },
		{ "cut in text", in_text, -EINVAL, "truncated" },
		{ "32 bit", class32, -ENOEXEC, "32-bit" },
		{ "big endian", big_endian, -ENOEXEC, "another machine" },
		{ "arm64", aarch64, -ENOEXEC, "another machine" },
		{ "object file", object, -ENOEXEC, "executed" },
		{ "core file", core, -ENOEXEC, "executed" },
		{ "no program headers", no_phdrs, -EINVAL, "program headers" },
		{ "65535 program headers", many_phdrs, -EINVAL, "program headers" },
		{ "32-byte program headers", odd_phdrs, -EINVAL, "program headers" },
		{ "program headers wrap", phoff_wrap, -EINVAL, "truncated" },
		{ "segment offset wraps", off_wrap, -EINVAL, "truncated" },
		{ "segment size wraps", filesz_wrap, -EINVAL, "truncated" },
		{ "smaller in memory", memsz_small, -EINVAL, "larger in the file" },
		{ "memory size wraps", memsz_huge, -ENOMEM, "needs" },
		{ "below 1 MiB", paddr_low, -EINVAL, "below 1 MiB" },
		{ "address wraps", paddr_wrap, -ENOMEM, "needs" },
		{ "in the hole", paddr_hole, -ENOMEM, "needs" },
		{ "over the end", paddr_end, -ENOMEM, "needs" },
		{ "no segments", no_segments, -EINVAL, "outside" },
		{ "no notes", no_notes, -ENOEXEC, "CONFIG_PVH" },
		{ "notes of 16 EiB", notes_huge, -EINVAL, "truncated" },
		{ "notes of 64 KiB", notes_long, -EINVAL, "notes" },
		{ "empty notes", notes_none, -ENOEXEC, "CONFIG_PVH" },
		{ "cut notes", notes_cut, -ENOEXEC, "CONFIG_PVH" },
		{ "name of 4 GiB", namesz_huge, -ENOEXEC, "CONFIG_PVH" },
		{ "value of 4 GiB", descsz_huge, -ENOEXEC, "CONFIG_PVH" },
		{ "first value of 4 GiB", descsz_wrap, -ENOEXEC, "CONFIG_PVH" },
		{ "entry outside", entry_out, -EINVAL, "outside" },
		{ "entry in bss", entry_in_bss, -EINVAL, "outside" },
		{ "entry 0", entry_0, -ENOEXEC, "CONFIG_PVH" },
	};

	image_cases(cases, ARRAY_SIZE(cases), elf_make);
}

static void t_fuzz(void)
{
	image_fuzz(elf_make, 64 + 3 * 56, 2000);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_boots), T(t_initrd), T(t_cmdline), T(t_cases), T(t_fuzz));
}
