// SPDX-License-Identifier: GPL-2.0-only
/*
 * ELF vmlinux, by its PVH entry (Xen docs/misc/pvh.pandoc; Linux CONFIG_PVH).
 *
 * Theory of operation: segments go to their physical addresses, which must be RAM above 1 MiB; what
 * a segment has more in memory than in the file is zero already, for guest memory is fresh. A note
 * "Xen", type 18, holds the address of the 32-bit entry. Nothing in the file is trusted: each
 * offset and length is checked against the file, each address against memory, without overflow.
 */
#include <elf.h>
#include "load.h"
#include "log.h"

#define XEN_ELFNOTE_PHYS32_ENTRY 18
#define NOTES_MAX                (64 * KiB)
#define PHDRS_MAX                64
#define LINUX_CMDLINE_MAX        2047 /* COMMAND_LINE_SIZE - 1: Linux cuts what is longer */

static int refuse(const struct load *ld, int err, const char *why)
{
	log_err("kernel: %s: %s", ld->kernel.path, why);
	return err;
}

static int read_part(const struct load *ld, void *buf, u64 len, u64 off)
{
	int err = boot_file_read(&ld->kernel, buf, len, off);

	if (err)
		log_err("kernel: %s: cannot be read: %s", ld->kernel.path, strerror(-err));
	return err;
}

static int check_ehdr(const struct load *ld, const Elf64_Ehdr *eh)
{
	if (eh->e_ident[EI_CLASS] != ELFCLASS64)
		return refuse(ld, -ENOEXEC, "is a 32-bit ELF file; lkvm starts 64-bit kernels");
	if (eh->e_ident[EI_DATA] != ELFDATA2LSB || eh->e_machine != EM_X86_64)
		return refuse(ld, -ENOEXEC, "is an ELF file for another machine than x86-64");
	if (eh->e_type != ET_EXEC && eh->e_type != ET_DYN)
		return refuse(ld, -ENOEXEC, "is an ELF file that cannot be executed");
	if (eh->e_phentsize != sizeof(Elf64_Phdr) || eh->e_phnum == 0 || eh->e_phnum > PHDRS_MAX)
		return refuse(ld, -EINVAL, "has a broken ELF header: no usable program headers");
	if (!boot_file_has(&ld->kernel, eh->e_phoff, eh->e_phnum * sizeof(Elf64_Phdr)))
		return refuse(ld, -EINVAL, "is truncated: its program headers lie beyond its end");
	return 0;
}

/* The entry that @notes name, or 0. */
static u64 find_entry(const u8 *notes, u64 len, u64 align)
{
	u64 off = 0;

	while (len - off >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr nh;
		u64 name, desc;

		memcpy(&nh, notes + off, sizeof(nh));
		name = off + sizeof(nh);
		desc = ALIGN_UP(name + nh.n_namesz, align);
		if (desc > len || nh.n_descsz > len - desc)
			return 0;
		if (nh.n_type == XEN_ELFNOTE_PHYS32_ENTRY && nh.n_namesz == sizeof("Xen") &&
		    !memcmp(notes + name, "Xen", sizeof("Xen")) && nh.n_descsz >= sizeof(u32)) {
			u64 entry = 0;

			memcpy(&entry, notes + desc, MIN((size_t)nh.n_descsz, sizeof(entry)));
			return entry;
		}
		off = ALIGN_UP(desc + nh.n_descsz, align);
		if (off > len)
			return 0;
	}
	return 0;
}

static int read_notes(struct load *ld, const Elf64_Phdr *ph)
{
	u8 *notes;
	int err;

	if (ph->p_filesz > NOTES_MAX)
		return refuse(ld, -EINVAL, "has a broken ELF header: its notes are too long");
	notes = malloc(ph->p_filesz + 1);
	if (!notes)
		return refuse(ld, -ENOMEM, "no memory to read its notes");
	err = read_part(ld, notes, ph->p_filesz, ph->p_offset);
	if (!err)
		ld->entry = find_entry(notes, ph->p_filesz, ph->p_align == 8 ? 8 : 4);
	free(notes);
	return err;
}

/* The first note that names an entry, of whatever segments hold notes. */
static int find_notes(struct load *ld, const Elf64_Phdr *ph, unsigned nr)
{
	for (unsigned i = 0; i < nr && !ld->entry; i++, ph++) {
		int err;

		if (ph->p_type != PT_NOTE)
			continue;
		if (!boot_file_has(&ld->kernel, ph->p_offset, ph->p_filesz))
			return refuse(ld, -EINVAL, "is truncated: its notes lie beyond its end");
		err = read_notes(ld, ph);
		if (err)
			return err;
	}
	if (!ld->entry)
		return refuse(ld, -ENOEXEC,
			      "has no PVH entry (CONFIG_PVH); boot its bzImage instead");
	return 0;
}

/* Whether all segments can be loaded, before any of them is. */
static int check_segments(struct load *ld, const Elf64_Phdr *ph, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++, ph++) {
		if (ph->p_type != PT_LOAD || (ph->p_memsz == 0 && ph->p_filesz == 0))
			continue;
		if (!boot_file_has(&ld->kernel, ph->p_offset, ph->p_filesz))
			return refuse(ld, -EINVAL, "is truncated: a segment lies beyond its end");
		if (ph->p_filesz > ph->p_memsz)
			return refuse(ld, -EINVAL,
				      "has a broken segment: larger in the file than in memory");
		if (ph->p_paddr < X86_KERNEL_LOWEST)
			return refuse(ld, -EINVAL,
				      "wants to be loaded below 1 MiB, where boot data is");
		if (ph->p_paddr > ld->low_end || ph->p_memsz > ld->low_end - ph->p_paddr)
			return load_no_room(ld, ph->p_paddr, ph->p_memsz);
		if (ph->p_paddr + ph->p_memsz > ld->kernel_end)
			ld->kernel_end = ph->p_paddr + ph->p_memsz;
	}
	return 0;
}

static bool entry_is_loaded(const struct load *ld, const Elf64_Phdr *ph, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++, ph++)
		if (ph->p_type == PT_LOAD && ld->entry >= ph->p_paddr &&
		    ld->entry - ph->p_paddr < ph->p_filesz)
			return true;
	return false;
}

int elf_load(struct load *ld)
{
	Elf64_Phdr ph[PHDRS_MAX];
	Elf64_Ehdr eh;
	int err;

	if (!boot_file_has(&ld->kernel, 0, sizeof(eh)))
		return refuse(ld, -EINVAL, "is truncated within its ELF header");
	err = read_part(ld, &eh, sizeof(eh), 0);
	if (!err)
		err = check_ehdr(ld, &eh);
	if (!err)
		err = read_part(ld, ph, eh.e_phnum * sizeof(ph[0]), eh.e_phoff);
	if (!err)
		err = find_notes(ld, ph, eh.e_phnum);
	if (!err)
		err = check_segments(ld, ph, eh.e_phnum);
	if (err)
		return err;
	if (ld->entry >> 32 || !entry_is_loaded(ld, ph, eh.e_phnum))
		return refuse(ld, -EINVAL, "has a PVH entry outside of its segments");

	for (unsigned i = 0; i < eh.e_phnum && !err; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_filesz)
			err = boot_file_load(ld, &ld->kernel, ph[i].p_offset, ph[i].p_filesz,
					     ph[i].p_paddr);
	ld->pvh = true;
	ld->initrd_max = 0xffffffff;
	ld->cmdline_max = LINUX_CMDLINE_MAX;
	return err;
}
