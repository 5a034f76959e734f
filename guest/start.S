/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entry of the payloads: 32-bit protected mode, flat, as the PVH boot protocol leaves it, with
 * hvm_start_info in ebx. The note tells the loader where to begin (XEN_ELFNOTE_PHYS32_ENTRY).
 */
	.section .note.pvh, "a", @note
	.long 4, 4, 18
	.asciz "Xen"
	.long start

	.text
	.globl start
start:
	cld
	mov	$stack_top, %esp
	push	%ebx
	call	payload_main
0:	cli
	hlt
	jmp	0b

/* What a started CPU runs: copied to a page below 1 MiB, real mode, cs = page >> 4. */
	.globl ap_begin, ap_end
	.code16
ap_begin:
	cli
	movw	$0x3f8, %dx
	movb	$'A', %al
	outb	%al, %dx
	lock incw %cs:(ap_count - ap_begin)
1:	hlt
	jmp	1b
	.globl ap_count
ap_count:
	.word	0
ap_end:
	.code32

	.bss
	.balign	16
	.skip	8192
stack_top:
	.section .note.GNU-stack, "", @progbits
