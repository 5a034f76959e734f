/* SPDX-License-Identifier: GPL-2.0-only */
/* The DSDT as iasl compiled it from dsdt.asl. */
#ifndef LKVM_X86_DSDT_H
#define LKVM_X86_DSDT_H

extern const unsigned char dsdt_aml[];
extern const unsigned long dsdt_aml_len;

#endif
