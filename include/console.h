/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The user's end of the serial console: stdin, stdout, terminal modes, Ctrl-a.
 *
 * Theory of operation: output is a bounded buffer that vCPU threads fill and that is written to stdout
 * without ever blocking the loop; only a vCPU that prints into a full buffer waits, and a stop wakes it. Input comes
 * from the loop and is offered to the device, which takes what its FIFO holds. The terminal is raw
 * only while the VM runs; console_free() restores it, and so does console_restore() from anywhere. Rank 2.
 */
#ifndef LKVM_CONSOLE_H
#define LKVM_CONSOLE_H

#include "types.h"

struct machine;
struct console;

/* Makes the console of @m on @in_fd and @out_fd (not owned, but for their mode); NULL when out of memory or fds. */
struct console *console_new(struct machine *m, int in_fd, int out_fd) __must_check;

/* Sets a terminal raw and starts reading. 0 or -errno; a file, a pipe, /dev/null and a closed stdin are all fine. */
int console_start(struct console *con) __must_check;

/* Wakes and fails all writers that wait: the machine is stopping. Any thread. */
void console_stop(struct console *con);

/* Writes out what is buffered for at most a second, restores the terminal, frees. NULL is fine. */
void console_free(struct console *con);

/* Output of the guest; any thread. Waits while the buffer is full, unless console_stop() was called. */
void console_put(struct console *con, const void *buf, size_t len);

/*
 * Who gets input. @fn returns how many bytes it took; the rest is offered again after
 * console_input_ready(). Called on the loop thread with no lock held.
 */
void console_set_input(struct console *con, size_t (*fn)(void *dev, const u8 *buf, size_t len), void *dev);
void console_input_ready(struct console *con);

#endif
