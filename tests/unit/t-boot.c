// SPDX-License-Identifier: GPL-2.0-only
/*
 * What arch_boot() puts beside the kernel: initrd, command line, memory map; and where files may
 * come from.
 *
 * Theory of operation: see boot-image.h. Sizes of gigabytes cost nothing, for neither the guest's
 * memory nor an initrd that is only measured has pages.
 */
#include <limits.h>
#include "boot-image.h"

static const struct boot_params *params(const struct guest_mem *mem)
{
	return mem_ptr(mem, X86_BOOT_PARAMS, sizeof(struct boot_params));
}

static u64 initrd_addr(const struct guest_mem *mem)
{
	return params(mem)->hdr.ramdisk_image | (u64)params(mem)->ext_ramdisk_image << 32;
}

static u64 initrd_size(const struct guest_mem *mem)
{
	return params(mem)->hdr.ramdisk_size | (u64)params(mem)->ext_ramdisk_size << 32;
}

/* Boots @im with an initrd of @size bytes, a hole but for its last byte. */
static int boot_initrd(const struct guest_mem *mem, const struct image *im, u64 size)
{
	struct boot_start start;
	int fd = memfd_create("initrd", MFD_CLOEXEC);

	REQUIRE(fd >= 0 && ftruncate(fd, (off_t)size - 1) == 0 &&
		pwrite(fd, "E", 1, (off_t)size - 1) == 1);
	return image_boot_fds(mem,
			      (struct boot_source){ .kernel_path = "the-kernel",
						    .initrd_path = "the-initrd",
						    .kernel_fd = image_file(im->byte, im->size),
						    .initrd_fd = fd },
			      &start);
}

static void t_initrd(void)
{
	static const u64 sizes[] = { 1, 4095, 4096, 4097, 5 * MiB + 3 };
	static struct image im;
	struct guest_mem mem;

	bz_make(&im, 4);
	image_mem(&mem, 64 * MiB);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		const u8 *p;

		CHECK_EQ(boot_initrd(&mem, &im, sizes[i]), 0);
		CHECK_EQ(initrd_size(&mem), sizes[i]);
		CHECK_EQ(initrd_addr(&mem) % 4096, 0);
		CHECK(initrd_addr(&mem) + sizes[i] + 4096 > 64 * MiB); /* as high as it goes */
		p = mem_ptr(&mem, initrd_addr(&mem), sizes[i]);
		REQUIRE(p);
		CHECK_EQ(p[sizes[i] - 1], 'E');
	}
	mem_free(&mem);
}

/* Up to the last byte that the kernel leaves, and not one more. */
static void t_initrd_fits(void)
{
	u64 room = 64 * MiB - BZ_ADDR - 40 * MiB;
	static struct image im;
	struct guest_mem mem;

	bz_make(&im, 4);
	bz_header(&im)->init_size = 40 * MiB;
	image_mem(&mem, 64 * MiB);
	CHECK_EQ(boot_initrd(&mem, &im, room), 0);
	CHECK_EQ(initrd_addr(&mem), BZ_ADDR + 40 * MiB);
	CHECK_EQ(boot_initrd(&mem, &im, room + 1), -ENOMEM);
	CHECK(strstr(image_log, "initrd: the-initrd (9 MiB) does not fit in 64 MiB of memory"));
	CHECK_EQ(boot_initrd(&mem, &im, 200 * MiB), -ENOMEM);
	CHECK(strstr(image_log, "(200 MiB) does not fit in 64 MiB"));
	CHECK_EQ(boot_initrd(&mem, &im, 1ULL << 42), -ENOMEM);
	mem_free(&mem);
}

/* Where the kernel wants it, else in low memory, else above 4 GiB: as far as the kernel can. */
static void t_initrd_high(void)
{
	static struct image im;
	struct guest_mem mem;

	bz_make(&im, 4);
	image_mem(&mem, 5 * GiB);
	CHECK_EQ(boot_initrd(&mem, &im, MiB), 0);
	CHECK_EQ(initrd_addr(&mem), 0x80000000 - MiB);         /* initrd_addr_max */
	bz_header(&im)->init_size = 0x80000000 - (u32)BZ_ADDR; /* no room below it any more */
	CHECK_EQ(boot_initrd(&mem, &im, MiB), 0);
	CHECK_EQ(initrd_addr(&mem), X86_LOWMEM_END - MiB);
	bz_header(&im)->init_size = (u32)(X86_LOWMEM_END - BZ_ADDR);
	CHECK_EQ(boot_initrd(&mem, &im, MiB), 0);
	CHECK_EQ(initrd_addr(&mem), X86_HIGHMEM + 2 * GiB - MiB);
	CHECK_EQ(params(&mem)->ext_ramdisk_image, 1);
	bz_header(&im)->xloadflags = XLF_KERNEL_64;
	CHECK_EQ(boot_initrd(&mem, &im, MiB), -ENOMEM);
	bz_header(&im)->init_size = 0x80000000 - (u32)BZ_ADDR;
	CHECK_EQ(boot_initrd(&mem, &im, MiB), -ENOMEM);
	bz_header(&im)->initrd_addr_max = 0xffffffff;
	CHECK_EQ(boot_initrd(&mem, &im, MiB), 0);
	CHECK_EQ(initrd_addr(&mem), X86_LOWMEM_END - MiB);
	bz_header(&im)->initrd_addr_max = 0;
	CHECK_EQ(boot_initrd(&mem, &im, MiB), -ENOMEM);
	mem_free(&mem);
}

static void t_cmdline(void)
{
	static const u32 limits[] = { 0, 1, 255, 2047, 4096, 65535 };
	static struct image im;
	static char line[70001];
	struct guest_mem mem;
	struct boot_start start;

	image_mem(&mem, 64 * MiB);
	for (unsigned i = 0; i < ARRAY_SIZE(limits); i++) {
		char number[16];

		bz_make(&im, 4);
		bz_header(&im)->cmdline_size = limits[i];
		memset(line, 0, sizeof(line));
		memset(line, 'a' + (int)i, limits[i]);
		CHECK_EQ(image_boot(&mem, &im, line, &start), 0);
		CHECK(!strcmp(mem_ptr(&mem, params(&mem)->hdr.cmd_line_ptr, limits[i] + 1), line));
		line[limits[i]] = 'z';
		CHECK_EQ(image_boot(&mem, &im, line, &start), -E2BIG);
		snprintf(number, sizeof(number), "%u", limits[i]);
		CHECK(strstr(image_log, number));
	}
	bz_header(&im)->cmdline_size = 0xffffffff;
	memset(line, 'x', 70000);
	CHECK_EQ(image_boot(&mem, &im, line, &start), -E2BIG); /* there is no room for it */
	CHECK_EQ(image_boot(&mem, &im, NULL, &start), 0);
	mem_free(&mem);
}

/* Sorted, no overlap, RAM where there is RAM but the hole below 1 MiB, config space reserved. */
static void t_memory_map(void)
{
	static const u64 sizes[] = { 32 * MiB, 3 * GiB - 4096, 3 * GiB, 3 * GiB + 4096, 9 * GiB };
	static struct image im;
	struct boot_start start;

	bz_make(&im, 4);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct guest_mem mem;
		const struct boot_params *bp;
		u64 ram = 0, end = 0, ecam = 0;

		image_mem(&mem, sizes[i]);
		CHECK_EQ(image_boot(&mem, &im, "", &start), 0);
		bp = params(&mem);
		for (unsigned k = 0; k < bp->e820_entries; k++) {
			const struct boot_e820_entry *e = &bp->e820_table[k];
			bool is_ram = e->type == 1;

			CHECK(e->addr >= end && e->size > 0);
			end = e->addr + e->size;
			ram += is_ram ? e->size : 0;
			CHECK(!is_ram || mem_ptr(&mem, e->addr, e->size));
			CHECK(!is_ram || end <= 0x9fc00 || e->addr >= MiB);
			if (!is_ram && e->addr <= X86_ECAM && end >= X86_ECAM + X86_ECAM_SIZE)
				ecam++;
		}
		CHECK_EQ(ram, sizes[i] - MiB + 0x9fc00);
		CHECK_EQ(ecam, 1);
		mem_free(&mem);
	}
}

static void t_little_memory(void)
{
	static const u64 sizes[] = { 4096, MiB, 2 * MiB, BZ_ADDR, BZ_ADDR + BZ_INIT - 4096 };
	static struct image im;
	struct boot_start start;
	struct guest_mem mem = { .nr = 0 };

	bz_make(&im, 4);
	CHECK_EQ(image_boot(&mem, &im, "", &start), -ENOMEM);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		image_mem(&mem, sizes[i]);
		CHECK_EQ(image_boot(&mem, &im, "", &start), -ENOMEM);
		CHECK(strstr(image_log, "(-m)"));
		mem_free(&mem);
	}
	image_mem(&mem, BZ_ADDR + BZ_INIT);
	CHECK_EQ(image_boot(&mem, &im, "", &start), 0);
	mem_free(&mem);
}

/* Kernel and initrd from slow pipes come out as from files. */
static void t_pipes(void)
{
	static struct image im, initrd;
	struct guest_mem mem;
	struct boot_start start;
	struct boot_source src = { .kernel_path = "k", .initrd_path = "i", .cmdline = "" };

	bz_make(&im, 4);
	for (u64 i = 0; i < IMAGE_MAX; i++)
		initrd.byte[i] = image_pattern(i + 99);
	image_mem(&mem, 64 * MiB);
	src.kernel_fd = image_pipe(im.byte, im.size);
	src.initrd_fd = image_pipe(initrd.byte, IMAGE_MAX);
	CHECK_EQ(image_boot_fds(&mem, src, &start), 0);
	CHECK(!memcmp(mem_ptr(&mem, BZ_ADDR, BZ_KERNEL), im.byte + 5 * 512, BZ_KERNEL));
	CHECK_EQ(initrd_size(&mem), IMAGE_MAX);
	CHECK(!memcmp(mem_ptr(&mem, initrd_addr(&mem), IMAGE_MAX), initrd.byte, IMAGE_MAX));

	elf_make(&im);
	src.kernel_fd = image_pipe(im.byte, im.size);
	src.initrd_fd = -1;
	CHECK_EQ(image_boot_fds(&mem, src, &start), 0);
	CHECK(start.pvh);

	src.kernel_fd = image_pipe(im.byte, 0);
	CHECK_EQ(image_boot_fds(&mem, src, &start), -EINVAL);
	CHECK(strstr(image_log, "is empty"));
	mem_free(&mem);
}

/* A file whose offset somebody moved: we read it from its start. */
static void t_offset(void)
{
	static struct image im;
	struct guest_mem mem;
	struct boot_start start;
	struct boot_source src = { .kernel_path = "k", .initrd_fd = -1 };

	bz_make(&im, 4);
	image_mem(&mem, 64 * MiB);
	src.kernel_fd = image_file(im.byte, im.size);
	REQUIRE(lseek(src.kernel_fd, 777, SEEK_SET) == 777);
	CHECK_EQ(image_boot_fds(&mem, src, &start), 0);
	mem_free(&mem);
}

static int boot_path(const struct guest_mem *mem, const char *kernel, const char *initrd)
{
	static struct image im;
	struct boot_start start;
	struct boot_source src = { .kernel_path = kernel, .initrd_path = initrd };

	bz_make(&im, 4);
	src.kernel_fd = kernel ? open(kernel, O_RDONLY | O_CLOEXEC) : image_file(im.byte, im.size);
	src.initrd_fd = initrd ? open(initrd, O_RDONLY | O_CLOEXEC) : -1;
	return image_boot_fds(mem, src, &start);
}

static void t_refusals(void)
{
	struct guest_mem mem;

	image_mem(&mem, 32 * MiB);
	CHECK_EQ(boot_path(&mem, "/", NULL), -EINVAL);
	CHECK(strstr(image_log, "kernel: /: is a directory"));
	CHECK_EQ(boot_path(&mem, NULL, "/"), -EINVAL);
	CHECK(strstr(image_log, "initrd: /: is a directory"));
	CHECK_EQ(boot_path(&mem, "/dev/null", NULL), -EINVAL);
	CHECK(strstr(image_log, "kernel: /dev/null: is empty"));
	CHECK_EQ(boot_path(&mem, NULL, "/dev/null"), -EINVAL);
	CHECK_EQ(boot_path(&mem, "/dev/zero", NULL), -EFBIG); /* and not for ever */
	CHECK(strstr(image_log, "/dev/zero"));
	CHECK_EQ(boot_path(&mem, NULL, "/dev/zero"), -EFBIG);
	CHECK_EQ(boot_path(&mem, "/proc/self/exe", NULL), -ENOEXEC); /* a program is no kernel */
	mem_free(&mem);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_initrd), T(t_initrd_fits), T(t_initrd_high), T(t_cmdline),
		       T(t_memory_map), T(t_little_memory), T(t_pipes), T(t_offset), T(t_refusals));
}
