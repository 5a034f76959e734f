/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernels made to order for the tests of x86/: a bzImage and an ELF vmlinux in a buffer, which the
 * test may damage, then given to arch_boot() as a file or a pipe.
 *
 * Theory of operation: log lines are kept, for each refusal must be exactly one line that names the
 * reason. Guest memory is real (memfd), so what was loaded is read back by mem_ptr().
 */
#ifndef LKVM_TESTS_BOOT_IMAGE_H
#define LKVM_TESTS_BOOT_IMAGE_H

#include <asm/bootparam.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include "arch.h"
#include "boot.h"
#include "log.h"
#include "tap.h"
#include "x86.h"

#define IMAGE_MAX (256 * KiB)
#define BZ_KERNEL 8192 /* bytes of the kernel proper */
#define BZ_ADDR   0x1000000ULL
#define BZ_INIT   MiB    /* init_size */
#define ELF_TEXT  0x1000 /* file offset of the first segment */
#define ELF_ADDR  0x1000000ULL
#define ELF_ENTRY (ELF_ADDR + 0x123)
#define ELF_NOTES 0x400 /* file offset */

struct image {
	u8 byte[IMAGE_MAX];
	u64 size;
};

static char image_log[512];
static int image_log_lines;

static inline void image_sink(enum log_level level, const char *line)
{
	(void)level;
	snprintf(image_log, sizeof(image_log), "%s", line);
	image_log_lines++;
}

static inline struct setup_header *bz_header(struct image *im)
{
	return (struct setup_header *)(void *)(im->byte + 0x1f1);
}

static inline u8 image_pattern(u64 i)
{
	return (u8)(i * 7 + (i >> 8));
}

/* Protocol 2.15, relocatable, @sects setup sectors (0 means 4). */
static inline void bz_make(struct image *im, u8 sects)
{
	struct setup_header *hdr = bz_header(im);
	u64 setup = ((sects ? sects : 4) + 1) * 512;

	memset(im, 0, sizeof(*im));
	/*
	 * What must not get into boot_params: code before and after the header, and the sentinel.
	 */
	memset(im->byte, 0xaa, setup);
	memset(hdr, 0, 0x26c - 0x1f1);
	im->byte[0x1ef] = 0xff;
	hdr->setup_sects = sects;
	hdr->syssize = BZ_KERNEL / 16;
	hdr->boot_flag = 0xaa55;
	hdr->jump = 0x6aeb;
	memcpy(&hdr->header, "HdrS", 4);
	hdr->version = 0x20f;
	hdr->loadflags = LOADED_HIGH;
	hdr->initrd_addr_max = 0x7fffffff;
	hdr->kernel_alignment = 0x200000;
	hdr->relocatable_kernel = 1;
	hdr->min_alignment = 21;
	hdr->xloadflags = XLF_KERNEL_64 | XLF_CAN_BE_LOADED_ABOVE_4G;
	hdr->cmdline_size = 2047;
	hdr->pref_address = BZ_ADDR;
	hdr->init_size = BZ_INIT;
	for (u64 i = 0; i < BZ_KERNEL; i++)
		im->byte[setup + i] = image_pattern(i);
	im->size = setup + BZ_KERNEL;
}

static inline Elf64_Ehdr *elf_header(struct image *im)
{
	return (Elf64_Ehdr *)(void *)im->byte;
}

static inline Elf64_Phdr *elf_phdr(struct image *im, unsigned i)
{
	return (Elf64_Phdr *)(void *)(im->byte + sizeof(Elf64_Ehdr)) + i;
}

/*
 * Text of a page at ELF_ADDR; data with a bss at ELF_ADDR + 64 KiB; notes, the PVH entry the
 * second.
 */
static inline void elf_make(struct image *im)
{
	static const u8 notes[] = {
		6, 0, 0, 0, 5, 0, 0, 0, 18, 0, 0, 0, 'L', 'i', 'n', 'u', 'x',  0,    0, 0,
		1, 2, 3, 4, 5, 0, 0, 0, /* same type, another owner, padded */
		4, 0, 0, 0, 4, 0, 0, 0, 18, 0, 0, 0, 'X', 'e', 'n', 0,   0x23, 0x01, 0, 0x01,
	};

	memset(im, 0, sizeof(*im));
	*elf_header(im) = (Elf64_Ehdr){
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = 0x1000000,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
	};
	*elf_phdr(im, 0) = (Elf64_Phdr){ .p_type = PT_LOAD,
					 .p_offset = ELF_TEXT,
					 .p_paddr = ELF_ADDR,
					 .p_filesz = 4096,
					 .p_memsz = 4096 };
	*elf_phdr(im, 1) = (Elf64_Phdr){ .p_type = PT_LOAD,
					 .p_offset = ELF_TEXT + 4096,
					 .p_paddr = ELF_ADDR + 64 * KiB,
					 .p_filesz = 100,
					 .p_memsz = 128 * KiB };
	*elf_phdr(im, 2) = (Elf64_Phdr){ .p_type = PT_NOTE,
					 .p_offset = ELF_NOTES,
					 .p_filesz = sizeof(notes),
					 .p_memsz = sizeof(notes) };
	memcpy(im->byte + ELF_NOTES, notes, sizeof(notes));
	for (u64 i = 0; i < 4096 + 100; i++)
		im->byte[ELF_TEXT + i] = image_pattern(i);
	im->size = ELF_TEXT + 4096 + 100;
}

static inline int image_file(const void *bytes, u64 size)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	return fd;
}

/* @size bytes from a child, in small pieces: a pipe that cannot be sought and is slow. */
static inline int image_pipe(const void *bytes, u64 size)
{
	const u8 *p = bytes;
	int fds[2];
	pid_t pid;

	REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		while (size) {
			u64 n = MIN(size, 1000ULL);

			if (write(fds[1], p, n) != (ssize_t)n)
				break;
			p += n;
			size -= n;
		}
		_exit(0);
	}
	close(fds[1]);
	return fds[0];
}

static inline void image_mem(struct guest_mem *mem, u64 bytes)
{
	u64 low = MIN(bytes, X86_LOWMEM_END);

	memset(mem, 0, sizeof(*mem));
	REQUIRE(mem_add(mem, 0, low) == 0);
	if (bytes > low)
		REQUIRE(mem_add(mem, X86_HIGHMEM, bytes - low) == 0);
}

/* arch_boot() of @src, whose fds are closed afterwards. */
static inline int image_boot_fds(const struct guest_mem *mem, struct boot_source src,
				 struct boot_start *start)
{
	int err;

	log_set_sink(image_sink);
	image_log_lines = 0;
	image_log[0] = 0;
	err = arch_boot(mem, &src, 2, start);
	log_set_sink(NULL);
	CHECK_EQ(image_log_lines, err ? 1 : 0);
	close(src.kernel_fd);
	if (src.initrd_fd >= 0)
		close(src.initrd_fd);
	return err;
}

static inline int image_boot(const struct guest_mem *mem, const struct image *im,
			     const char *cmdline, struct boot_start *start)
{
	return image_boot_fds(mem,
			      (struct boot_source){ .kernel_path = "the-kernel",
						    .initrd_fd = -1,
						    .kernel_fd = image_file(im->byte, im->size),
						    .cmdline = cmdline },
			      start);
}

/* A way to damage an image, and what must come of it. */
struct image_patch {
	u32 at;
	u8 len; /* bytes; 0 = no patch */
	u64 value;
};

#define IMAGE_EMPTY (-1)

struct image_case {
	const char *name;
	int err;          /* 0 = it still boots */
	const char *says; /* part of the line that is logged */
	s64 size;         /* of the file then; 0 = as before */
	struct image_patch patch[3];
};

static inline void image_damage(struct image *im, const struct image_case *c)
{
	for (unsigned i = 0; i < ARRAY_SIZE(c->patch); i++)
		memcpy(im->byte + c->patch[i].at, &c->patch[i].value, c->patch[i].len);
	if (c->size)
		im->size = c->size > 0 ? (u64)c->size : 0;
}

static inline void image_cases(const struct image_case *c, unsigned nr,
			       void (*make)(struct image *im))
{
	struct image *im = malloc(sizeof(*im));
	struct guest_mem mem;
	struct boot_start start;

	REQUIRE(im);
	image_mem(&mem, 64 * MiB);
	for (unsigned i = 0; i < nr; i++, c++) {
		int err;

		make(im);
		image_damage(im, c);
		err = image_boot(&mem, im, "", &start);
		if (err != c->err ||
		    (err && (!strstr(image_log, c->says) || !strstr(image_log, "the-kernel")))) {
			printf("# %s: %d, not %d; logged: %s\n", c->name, err, c->err, image_log);
			tap_failed++;
		}
	}
	mem_free(&mem);
	free(im);
}

/*
 * Any @rounds damages of the first @reach bytes: never a crash; if it boots, then inside of memory.
 */
static inline void image_fuzz(void (*make)(struct image *im), u64 reach, unsigned rounds)
{
	static const u8 nasty[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct image *im = malloc(sizeof(*im));
	struct guest_mem mem;
	struct boot_start start;
	unsigned booted = 0;
	u64 seed = 1;

	REQUIRE(im);
	image_mem(&mem, 32 * MiB);
	for (unsigned i = 0; i < rounds; i++) {
		make(im);
		for (unsigned k = 0; k < 1 + i % 4; k++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			im->byte[(seed >> 33) % reach] = nasty[(seed >> 25) % sizeof(nasty)];
		}
		if ((i & 15) == 15)
			im->size = (seed >> 20) % im->size;
		if (image_boot(&mem, im, "x", &start) == 0) {
			booted++;
			CHECK(start.entry >= MiB && start.entry < 32 * MiB);
		}
	}
	CHECK(booted > rounds / 50); /* else it only tests the first check */
	mem_free(&mem);
	free(im);
}

#endif
