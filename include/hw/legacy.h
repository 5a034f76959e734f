/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few platform devices that a kernel needs beside virtio. Each is linked into the machine,
 * which owns it. All return 0 or -errno (-ENOMEM, or bus_add's). Rank 3.
 */
#ifndef LKVM_HW_LEGACY_H
#define LKVM_HW_LEGACY_H

#include "machine.h"

/* 8250 UART (16550A) of 8 registers at I/O port @port, interrupt on level GSI @gsi. */
int serial_new(struct machine *m, struct console *con, u64 port, u32 gsi) __must_check;

/* MC146818 RTC and CMOS at @port and @port + 1: the host's UTC time, no alarms. */
int rtc_new(struct machine *m, u64 port) __must_check;

/* As much i8042 as a reset by command 0xfe needs: ports 0x60 and 0x64. */
int i8042_new(struct machine *m) __must_check;

/*
 * ACPI 6.4 4.8.3.7: sleep control register at @port, sleep status at @port + 1, reset register at
 * @port + 2. Sleep type POWER_S5 with SLP_EN is power-off; POWER_RESET written to the reset
 * register is a reset.
 */
#define POWER_S5    5
#define POWER_RESET 1
int power_new(struct machine *m, u64 port) __must_check;

#endif
