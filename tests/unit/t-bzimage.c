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

#define HDR(field, v) \
	{ \
		0x1f1 + offsetof(struct setup_header, field), sizeof(bz_header(NULL)->field), v \
	}
#define START(len, v) \
	{ \
		0, len, v \
	}

static void t_not_a_kernel(void)
{
	static const struct image_case cases[] = {
		{ "unharmed", 0, "", 0, {} },
		{ "empty", -EINVAL, "is empty", IMAGE_EMPTY, {} },
		{ "one byte", -ENOEXEC, "neither a bzImage nor an ELF", 1, {} },
		{ "text",
		  -ENOEXEC,
		  "neither a bzImage nor an ELF",
		  11,
		  { START(8, 0x3a783a746f6f72) } },
		{ "script", -ENOEXEC, "is a script", 0, { START(2, 0x2123), HDR(header, 0) } },
		{ "gzip", -ENOEXEC, "(zcat", 0, { START(2, 0x8b1f), HDR(header, 0) } },
		{ "xz", -ENOEXEC, "(xzcat", 0, { START(4, 0x587a37fd), HDR(header, 0) } },
		{ "zstd", -ENOEXEC, "(zstdcat", 0, { START(4, 0xfd2fb528), HDR(header, 0) } },
		{ "arm64", -ENOEXEC, "arm64", 0, { { 0x38, 4, 0x644d5241 }, HDR(header, 0) } },
		{ "no magic", -ENOEXEC, "neither", 0, { HDR(header, 0) } },
		{ "no boot flag", -ENOEXEC, "neither", 0, { HDR(boot_flag, 0) } },
		{ "cut in the boot sector", -ENOEXEC, "neither", 0x201, {} },
		{ "cut in the header", -EINVAL, "truncated", 0x240, {} },
		{ "cut in setup", -EINVAL, "truncated", 2000, {} },
		{ "cut by a byte", -EINVAL, "truncated", 8 * 512 + BZ_KERNEL - 1, {} },
	};

	image_cases(cases, ARRAY_SIZE(cases), make);
}

static void t_headers(void)
{
	static const struct image_case cases[] = {
		{ "2.11", -ENOEXEC, "2.11", 0, { HDR(version, 0x20b) } },
		{ "2.00", -ENOEXEC, "2.00", 0, { HDR(version, 0x200), HDR(jump, 0x24eb) } },
		{ "short header", -ENOEXEC, "protocol", 0, { HDR(jump, 0x20eb) } },
		{ "32 bit", -ENOEXEC, "32-bit", 0, { HDR(xloadflags, 0) } },
		{ "zImage", -ENOEXEC, "zImage", 0, { HDR(loadflags, 0) } },
		{ "alignment 0", -EINVAL, "alignment", 0, { HDR(kernel_alignment, 0) } },
		{ "alignment 3 MiB", -EINVAL, "alignment", 0, { HDR(kernel_alignment, 0x300000) } },
		{ "alignment 2 GiB", -ENOMEM, "needs", 0, { HDR(kernel_alignment, 2 * GiB) } },
		{ "size 0", -EINVAL, "too small", 0, { HDR(syssize, 0) } },
		{ "size below the entry", -EINVAL, "too small", 0, { HDR(syssize, 0x20) } },
		{ "size 64 GiB", -EINVAL, "truncated", 0, { HDR(syssize, ~0U) } },
		{ "init_size 4 GiB", -ENOMEM, "needs 4096 MiB", 0, { HDR(init_size, ~0U) } },
		{ "address 5 GiB", -ENOMEM, "needs", 0, { HDR(pref_address, 5 * GiB) } },
		{ "address wraps", -ENOMEM, "needs", 0, { HDR(pref_address, ~0ULL) } },
		{ "address at the end", -ENOMEM, "needs", 0, { HDR(pref_address, 64 * MiB) } },
		{ "init_size 0", 0, "", 0, { HDR(init_size, 0) } },
		{ "address low", 0, "", 0, { HDR(pref_address, 0x1000) } },
		{ "address not aligned", 0, "", 0, { HDR(pref_address, BZ_ADDR + 0x1234) } },
		{ "trailing signature", 0, "", 8 * 512 + BZ_KERNEL + 1500, {} },
		{ "fixed", 0, "", 0, { HDR(relocatable_kernel, 0), HDR(kernel_alignment, 0) } },
		{ "fixed and low",
		  -EINVAL,
		  "below 1 MiB",
		  0,
		  { HDR(relocatable_kernel, 0), HDR(pref_address, 0x10000) } },
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
		       T(t_reset_vector), T(t_not_a_kernel), T(t_headers), T(t_truncated),
		       T(t_fuzz));
}
