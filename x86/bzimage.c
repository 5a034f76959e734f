// SPDX-License-Identifier: GPL-2.0-only
/*
 * bzImage, by its 64-bit entry (Linux Documentation/arch/x86/boot.rst).
 *
 * Theory of operation: the file is a real-mode part of setup_sects sectors, which holds the setup
 * header at 0x1f1, and the kernel proper, of which alone a copy goes to memory. The 64-bit entry is
 * 0x200 bytes into that. The kernel unpacks itself in place and claims init_size bytes from where
 * it was loaded, or from pref_address if that is higher: so it is loaded at pref_address. Only the
 * setup header is taken over into boot_params; all else there must be zero.
 */
#include "load.h"
#include "log.h"

#define SECTOR        512
#define HDR_OFFSET    0x1f1
#define HDR_MIN       0x268 /* protocol 2.12: up to init_size and handover_offset */
#define ENTRY_64      0x200
#define BOOT_MAGIC    0x53726448 /* "HdrS" */
#define PROTOCOL_2_12 0x20c
#define CMDLINE_LIMIT (X86_CMDLINE_SIZE - 1)

static int refuse(const struct load *ld, int err, const char *why)
{
	log_err("kernel: %s: %s", ld->kernel.path, why);
	return err;
}

/* Why a file without the setup header's magic cannot be booted. */
static const char *guess(const u8 *start, u64 len)
{
	static const struct {
		unsigned off, len;
		const char *magic, *why;
	} known[] = {
		{ 0, 2, "\x1f\x8b", "is gzip-compressed; unpack it first: -k <(zcat FILE)" },
		{ 0, 4,
		  "\xfd"
		  "7zX",
		  "is xz-compressed; unpack it first: -k <(xzcat FILE)" },
		{ 0, 4, "\x28\xb5\x2f\xfd",
		  "is zstd-compressed; unpack it first: -k <(zstdcat FILE)" },
		{ 0x38, 4, "ARM\x64", "is an arm64 kernel; this lkvm runs x86-64 kernels" },
		{ 0, 2, "#!", "is a script; give a bzImage or a vmlinux" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].off + known[i].len <= len &&
		    !memcmp(start + known[i].off, known[i].magic, known[i].len))
			return known[i].why;
	return "is neither a bzImage nor an ELF vmlinux";
}

/* Reads the setup header, as much of it as this kernel's version has. */
static int read_header(struct load *ld)
{
	u8 start[0x290] = { 0 };
	u64 len = MIN(ld->kernel.size, (u64)sizeof(start)), hdr_end;
	struct setup_header *hdr = &ld->hdr;
	int err = boot_file_read(&ld->kernel, start, len, 0);

	if (err) {
		log_err("kernel: %s: cannot be read: %s", ld->kernel.path, strerror(-err));
		return err;
	}
	memcpy(hdr, start + HDR_OFFSET, sizeof(*hdr));
	if (len < HDR_OFFSET + offsetof(struct setup_header, version) || hdr->boot_flag != 0xaa55 ||
	    hdr->header != BOOT_MAGIC)
		return refuse(ld, -ENOEXEC, guess(start, len));
	/* The jump over the header tells where it ends: what follows is code. */
	hdr_end = 0x202 + (hdr->jump >> 8);
	if (hdr->version < PROTOCOL_2_12 || hdr_end < HDR_MIN) {
		log_err("kernel: %s: has boot protocol %u.%02u, the 64-bit entry came with 2.12 (Linux 3.8)",
			ld->kernel.path, hdr->version >> 8, hdr->version & 0xff);
		return -ENOEXEC;
	}
	if (len < HDR_MIN)
		return refuse(ld, -EINVAL, "is truncated within its header");
	hdr_end = MIN(hdr_end, (u64)HDR_OFFSET + sizeof(*hdr));
	memset((u8 *)hdr + (hdr_end - HDR_OFFSET), 0, HDR_OFFSET + sizeof(*hdr) - hdr_end);
	return 0;
}

static int check_header(const struct load *ld)
{
	const struct setup_header *hdr = &ld->hdr;
	u64 align = hdr->kernel_alignment;

	if (!(hdr->xloadflags & XLF_KERNEL_64))
		return refuse(ld, -ENOEXEC, "is a 32-bit kernel; lkvm starts 64-bit ones");
	if (!(hdr->loadflags & LOADED_HIGH))
		return refuse(ld, -ENOEXEC, "is a zImage; build a bzImage");
	if (hdr->relocatable_kernel && (align == 0 || (align & (align - 1))))
		return refuse(ld, -EINVAL, "has a broken header: its alignment is no power of two");
	if ((u64)hdr->syssize * 16 <= ENTRY_64)
		return refuse(ld, -EINVAL,
			      "has a broken header: its size is too small for a kernel");
	return 0;
}

int bzimage_load(struct load *ld)
{
	struct setup_header *hdr = &ld->hdr;
	u64 setup, size, need, gpa;
	int err = read_header(ld);

	if (!err)
		err = check_header(ld);
	if (err)
		return err;

	setup = ((hdr->setup_sects ? hdr->setup_sects : 4) + 1) * SECTOR;
	size = (u64)hdr->syssize * 16;
	if (!boot_file_has(&ld->kernel, setup, size)) {
		log_err("kernel: %s: is truncated: %llu bytes, its header says %llu",
			ld->kernel.path, (unsigned long long)ld->kernel.size,
			(unsigned long long)(setup + size));
		return -EINVAL;
	}
	/* The last sector may be cut in the header's count, never in the file. */
	size = MIN(ALIGN_UP(size, (u64)SECTOR), ld->kernel.size - setup);
	need = hdr->init_size > size ? hdr->init_size : size;
	gpa = hdr->pref_address;
	if (hdr->relocatable_kernel && gpa < ld->low_end)
		gpa = ALIGN_UP(gpa < X86_KERNEL_LOWEST ? X86_KERNEL_LOWEST : gpa,
			       (u64)hdr->kernel_alignment);
	if (gpa < X86_KERNEL_LOWEST)
		return refuse(ld, -EINVAL, "wants to be loaded below 1 MiB");
	if (gpa > ld->low_end || need > ld->low_end - gpa)
		return load_no_room(ld, gpa, need);

	ld->entry = gpa + ENTRY_64;
	ld->kernel_end = gpa + need;
	ld->initrd_max = hdr->initrd_addr_max;
	ld->initrd_high = hdr->xloadflags & XLF_CAN_BE_LOADED_ABOVE_4G;
	ld->cmdline_max = MIN(hdr->cmdline_size, (u32)CMDLINE_LIMIT);
	hdr->code32_start = (u32)gpa;
	return boot_file_load(ld, &ld->kernel, setup, size, gpa);
}
