/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The user's end of the serial console: stdin, stdout, terminal modes, Ctrl-a.
 *
 * Theory of operation: output is a bounded buffer that vCPU threads fill and the loop writes to
 * stdout, without ever blocking; only a vCPU that prints into a full buffer waits, and a stop wakes
 * it. Input is read by the loop and offered to the device, which takes what its FIFO holds. The
 * terminal is raw only while the VM runs; console_free() restores it. Rank 2.
 *
 * The process must ignore or block SIGPIPE, and have fds 0 to 2 open.
 *
 * At a terminal, Ctrl-a begins a command: x ends the VM, a or Ctrl-a sends one Ctrl-a, any other
 * key is sent together with the Ctrl-a. Input that is not a terminal is passed on byte for byte.
 */
#ifndef LKVM_CONSOLE_H
#define LKVM_CONSOLE_H

#include "types.h"

struct machine;
struct console;

/*
 * Makes the console of @m, whose loop is there already, on @in_fd and @out_fd (-1 = none; not
 * owned, but for the terminal's mode). NULL when out of memory or fds; logged.
 */
struct console *console_new(struct machine *m, int in_fd, int out_fd) __must_check;

/*
 * Sets a terminal raw and starts reading and writing. A file, a pipe, /dev/null and a closed fd are
 * all fine. 0 or -errno, logged. Loop thread, as all below where nothing else is said.
 */
int console_start(struct console *con) __must_check;

/* Wakes all writers that wait: the machine is stopping. What does not fit is lost. Any thread. */
void console_stop(struct console *con);

/* After console_stop(): the machine runs again, and has not panicked yet. */
void console_restart(struct console *con);

/* Writes out what is buffered for at most a second, restores the terminal, frees. NULL is fine. */
void console_free(struct console *con);

/*
 * The process was stopped and goes on: a shell has set the terminal its own way meanwhile, so it is
 * set raw again as soon as we are in the foreground. Loop thread.
 */
void console_continued(struct console *con);

/*
 * Output of the guest; any thread. Waits while the buffer is full, unless console_stop() was
 * called.
 */
void console_put(struct console *con, const void *buf, size_t len);

/*
 * Who gets input; before console_start(). @fn returns how many bytes it took; the rest is offered
 * again after console_input_ready(). Called on the loop thread with no lock held.
 */
void console_set_input(struct console *con, size_t (*fn)(void *dev, const u8 *buf, size_t len),
		       void *dev);

/* The device may have room again. Any thread; costs nothing when no input waits. */
void console_input_ready(struct console *con);

/* True once a Linux panic message went by in the output. Any thread. */
bool console_saw_panic(const struct console *con);

#endif
