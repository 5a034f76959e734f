// SPDX-License-Identifier: GPL-2.0-only
/*
 * bzImage kernels: the memory that a guest begins with, and files that must be refused.
 *
 * Theory of operation: see boot-image.h. Each case damages one field; the message is part of what
 * is checked, because it is all that a user gets.
 */
#include "boot-image.h"

static void make(struct image *im)
{
	bz_make(im, 7);
}

static const struct boot_params *params(const struct guest_mem *mem, const struct boot_start *start)
{
	const struct boot_params *bp = mem_ptr(mem, start->params, sizeof(*bp));

	REQUIRE(bp);
	return bp;
}

static bool kernel_is_at(const struct guest_mem *mem, u64 gpa)
{
	const u8 *p = mem_ptr(mem, gpa, BZ_KERNEL);

	for (u64 i = 0; i < BZ_KERNEL; i++)
		if (p[i] != image_pattern(i))
			return false;
	return true;
}

static void t_boots(void)
{
	static struct image im;
	const struct boot_params *bp;
	struct guest_mem mem;
	struct boot_start start;

	image_mem(&mem, 128 * MiB);
	make(&im);
	CHECK_EQ(image_boot(&mem, &im, "console=ttyS0 quiet", &start), 0);
	CHECK(!start.pvh);
	CHECK_EQ(start.entry, BZ_ADDR + 0x200);
	CHECK(kernel_is_at(&mem, BZ_ADDR));
	bp = params(&mem, &start);
	CHECK_EQ(bp->sentinel, 0);
	CHECK_EQ(bp->hdr.version, 0x20f);
	CHECK_EQ(bp->hdr.type_of_loader, 0xff);
	CHECK_EQ(bp->hdr.ramdisk_size, 0);
	CHECK_EQ(bp->ext_ramdisk_size, 0);
	CHECK_EQ(bp->acpi_rsdp_addr, X86_ACPI);
	CHECK_EQ(bp->ext_cmd_line_ptr, 0);
	CHECK(!strcmp(mem_ptr(&mem, bp->hdr.cmd_line_ptr, 4096), "console=ttyS0 quiet"));
	mem_free(&mem);
}

/* Nothing but the header comes from the file, and of it only what this version has. */
static void t_clean_params(void)
{
	static struct image im;
	const struct boot_params *bp;
	struct guest_mem mem;
	struct boot_start start;
	const u8 *p;

	image_mem(&mem, 64 * MiB);
	make(&im);
	bz_header(&im)->jump = 0x66eb; /* ends at 0x268: kernel_info_offset is code already */
	bz_header(&im)->kernel_info_offset = 0xdeadbeef;
	CHECK_EQ(image_boot(&mem, &im, "", &start), 0);
	bp = params(&mem, &start);
	CHECK_EQ(bp->hdr.kernel_info_offset, 0);
	CHECK_EQ(bp->hdr.init_size, BZ_INIT);
	p = (const u8 *)bp;
	for (unsigned i = 0; i < 0x1f1; i++)
		CHECK(p[i] == 0 || (i >= 0x70 && i < 0x78) || i == 0x1e8); /* RSDP, e820_entries */
	for (unsigned i = 0x268; i < 0x2d0; i++)
		CHECK_EQ(p[i], 0);
	mem_free(&mem);
}

static void t_setup_sects(void)
{
	static const u8 sects[] = { 0, 3, 64, 255 };
	static struct image im;
	struct guest_mem mem;
	struct boot_start start;

	image_mem(&mem, 64 * MiB);
	for (unsigned i = 0; i < ARRAY_SIZE(sects); i++) {
		bz_make(&im, sects[i]);
		memset(mem_ptr(&mem, BZ_ADDR, BZ_KERNEL), 0, BZ_KERNEL);
		CHECK_EQ(image_boot(&mem, &im, "", &start), 0);
		CHECK(kernel_is_at(&mem, BZ_ADDR));
	}
	mem_free(&mem);
}

/* GDT and page tables are what the 64-bit entry needs: 4 GiB mapped one to one. */
static void t_long_mode(void)
{
	static struct image im;
	struct guest_mem mem;
	struct boot_start start;
	const u64 *gdt, *pml4, *pdpt;

	image_mem(&mem, 64 * MiB);
	make(&im);
	CHECK_EQ(image_boot(&mem, &im, "", &start), 0);
	gdt = mem_ptr(&mem, start.gdt, 0x20);
	CHECK(gdt[2] & BIT(53)); /* 64-bit code */
	CHECK((gdt[2] & BIT(47)) && (gdt[3] & BIT(47)));
	pml4 = mem_ptr(&mem, start.cr3, 4096);
	REQUIRE(pml4 && (pml4[0] & 3) == 3);
	pdpt = mem_ptr(&mem, pml4[0] & ~0xfffULL, 4096);
	REQUIRE(pdpt);
	for (u64 g = 0; g < 4; g++) {
		const u64 *pd = mem_ptr(&mem, pdpt[g] & ~0xfffULL, 4096);

		REQUIRE(pd && (pdpt[g] & 3) == 3);
		for (u64 i = 0; i < 512; i++)
			CHECK_EQ(pd[i], (g * GiB + i * 2 * MiB) | 0x83);
	}
	mem_free(&mem);
}

/*
 * A guest that reboots by jumping to the BIOS gets to code that resets, here: mov dx, port; mov al,
 * value; out.
 */
static void t_reset_vector(void)
{
	static struct image im;
	struct guest_mem mem;
	struct boot_start start;

	image_mem(&mem, 64 * MiB);
	make(&im);
	CHECK_EQ(image_boot(&mem, &im, "", &start), 0);
	CHECK(!memcmp(mem_ptr(&mem, 0xffff0, 6), "\xba\x02\x06\xb0\x01\xee", 6));
	mem_free(&mem);
}

static void none(struct image *im)
{
	(void)im;
}
static void empty(struct image *im)
{
	im->size = 0;
}
static void one_byte(struct image *im)
{
	im->size = 1;
}
static void text(struct image *im)
{
	im->size = (u64)snprintf((char *)im->byte, 100, "root:x:0:0\n");
}
static void script(struct image *im)
{
	memcpy(im->byte, "#!/bin/sh\n", 11);
	bz_header(im)->header = 0;
}
static void gzip(struct image *im)
{
	memcpy(im->byte, "\x1f\x8b\x08", 3);
	bz_header(im)->header = 0;
}
static void arm64(struct image *im)
{
	memset(im->byte, 0, 4096);
	memcpy(im->byte + 0x38, "ARM\x64", 4);
}
static void no_magic(struct image *im)
{
	bz_header(im)->header = 0;
}
static void no_boot_flag(struct image *im)
{
	bz_header(im)->boot_flag = 0;
}
static void in_sector(struct image *im)
{
	im->size = 0x201;
}
static void in_header(struct image *im)
{
	im->size = 0x240;
}
static void in_setup(struct image *im)
{
	im->size = 2000;
}
static void in_kernel(struct image *im)
{
	im->size -= 1;
}
static void old(struct image *im)
{
	bz_header(im)->version = 0x20b;
}
static void old_206(struct image *im)
{
	bz_header(im)->version = 0x200;
	bz_header(im)->jump = 0x24eb;
}
static void short_header(struct image *im)
{
	bz_header(im)->jump = 0x20eb;
}
static void i386(struct image *im)
{
	bz_header(im)->xloadflags = 0;
}
static void zimage(struct image *im)
{
	bz_header(im)->loadflags = 0;
}
static void align_0(struct image *im)
{
	bz_header(im)->kernel_alignment = 0;
}
static void align_3(struct image *im)
{
	bz_header(im)->kernel_alignment = 0x300000;
}
static void align_huge(struct image *im)
{
	bz_header(im)->kernel_alignment = 0x80000000;
}
static void no_size(struct image *im)
{
	bz_header(im)->syssize = 0;
}
static void small_size(struct image *im)
{
	bz_header(im)->syssize = 0x20;
}
static void huge_size(struct image *im)
{
	bz_header(im)->syssize = 0xffffffff;
}
static void huge_init(struct image *im)
{
	bz_header(im)->init_size = 0xffffffff;
}
static void pref_high(struct image *im)
{
	bz_header(im)->pref_address = 5 * GiB;
}
static void pref_wrap(struct image *im)
{
	bz_header(im)->pref_address = ~0ULL;
}
static void pref_end(struct image *im)
{
	bz_header(im)->pref_address = 64 * MiB;
}
static void init_0(struct image *im)
{
	bz_header(im)->init_size = 0;
}
static void pref_low(struct image *im)
{
	bz_header(im)->pref_address = 0x1000;
}
static void pref_odd(struct image *im)
{
	bz_header(im)->pref_address += 0x1234;
}
static void signature(struct image *im)
{
	im->size += 1500;
}

static void fixed_low(struct image *im)
{
	bz_header(im)->relocatable_kernel = 0;
	bz_header(im)->pref_address = 0x10000;
}

static void fixed(struct image *im)
{
	bz_header(im)->relocatable_kernel = 0;
	bz_header(im)->kernel_alignment = 0;
}

static void t_cases(void)
{
	static const struct image_case cases[] = {
		{ "unharmed", none, 0, "" },
		{ "empty", empty, -EINVAL, "is empty" },
		{ "one byte", one_byte, -ENOEXEC, "neither a bzImage nor an ELF" },
		{ "text", text, -ENOEXEC, "neither a bzImage nor an ELF" },
		{ "script", script, -ENOEXEC, "is a script" },
		{ "gzip", gzip, -ENOEXEC, "zcat" },
		{ "arm64", arm64, -ENOEXEC, "arm64" },
		{ "no magic", no_magic, -ENOEXEC, "neither" },
		{ "no boot flag", no_boot_flag, -ENOEXEC, "neither" },
		{ "cut in the boot sector", in_sector, -ENOEXEC, "neither" },
		{ "cut in the header", in_header, -EINVAL, "truncated" },
		{ "cut in setup", in_setup, -EINVAL, "truncated" },
		{ "cut by a byte", in_kernel, -EINVAL, "truncated" },
		{ "2.11", old, -ENOEXEC, "2.11" },
		{ "2.00", old_206, -ENOEXEC, "2.00" },
		{ "short header", short_header, -ENOEXEC, "protocol" },
		{ "32 bit", i386, -ENOEXEC, "32-bit" },
		{ "zImage", zimage, -ENOEXEC, "zImage" },
		{ "alignment 0", align_0, -EINVAL, "alignment" },
		{ "alignment 3 MiB", align_3, -EINVAL, "alignment" },
		{ "alignment 2 GiB", align_huge, -ENOMEM, "needs" },
		{ "size 0", no_size, -EINVAL, "too small" },
		{ "size below the entry", small_size, -EINVAL, "too small" },
		{ "size 64 GiB", huge_size, -EINVAL, "truncated" },
		{ "init_size 4 GiB", huge_init, -ENOMEM, "needs 4096 MiB" },
		{ "address 5 GiB", pref_high, -ENOMEM, "needs" },
		{ "address wraps", pref_wrap, -ENOMEM, "needs" },
		{ "address at the end", pref_end, -ENOMEM, "needs" },
		{ "init_size 0", init_0, 0, "" },
		{ "address low", pref_low, 0, "" },
		{ "address not aligned", pref_odd, 0, "" },
		{ "trailing signature", signature, 0, "" },
		{ "fixed", fixed, 0, "" },
		{ "fixed and low", fixed_low, -EINVAL, "below 1 MiB" },
	};

	image_cases(cases, ARRAY_SIZE(cases), make);
}

/* A file cut at any place is refused. */
static void t_truncated(void)
{
	static struct image im;
	struct guest_mem mem;
	struct boot_start start;
	u64 whole;

	image_mem(&mem, 64 * MiB);
	make(&im);
	whole = im.size;
	for (im.size = 0; im.size < whole; im.size += im.size < 0x300 ? 1 : 97)
		CHECK(image_boot(&mem, &im, "", &start) < 0);
	mem_free(&mem);
}

static void t_fuzz(void)
{
	image_fuzz(make, 0x270, 3000);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_boots), T(t_clean_params), T(t_setup_sects), T(t_long_mode),
		       T(t_reset_vector), T(t_cases), T(t_truncated), T(t_fuzz));
}
