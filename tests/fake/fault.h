/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fault injection: makes the n-th system or library call of the code under test fail.
 *
 * Theory of operation: tests named tests/unit/f-*.c are linked with -Wl,--wrap for each call that
 * fault.c lists, so calls from our objects (not those inside libc) come here first. fault_loop()
 * runs a set-up again and again, with call 1, 2, 3... failing, until it comes through unharmed: so
 * each error path has run, in each round file descriptors are counted, and a sanitizer build sees
 * leaked memory at exit.
 *
 *	static int set_up_and_undo(void)	0, or -errno after undoing what was done
 *	static void t_faults(void) { CHECK(fault_loop(set_up_and_undo) > 5); }
 */
#ifndef LKVM_TESTS_FAULT_H
#define LKVM_TESTS_FAULT_H

#include "types.h"

/*
 * The @nth counted call from now on (1 = the next) fails with @err, or with its usual error if 0.
 */
void fault_arm(unsigned nth, int err);

/*
 * Ends injection. The name of the call that was made to fail, or NULL when it did not come to that.
 */
const char *fault_disarm(void);

/*
 * Calls fn until no fault hit it. The number of rounds, or -1 after printing why: fn left file
 * descriptors open, returned success though a call failed, or failed though none was made to.
 */
int fault_loop(int (*fn)(void));

/* The same for code that may go on without what it asked for: success after a fault is fine. */
int fault_loop_lenient(int (*fn)(void));

#endif
