/* SPDX-License-Identifier: GPL-2.0-only */
/* Why the VM ended: the first reason wins. Rank 2. */
#ifndef LKVM_OUTCOME_H
#define LKVM_OUTCOME_H

#include "machine.h"

struct outcome {
	int why; /* enum stop_why; atomic */
	int detail;
};

/* True when this call was the first. Any thread. */
bool outcome_set(struct outcome *o, enum stop_why why, int detail);

/* True once somebody set a reason. */
bool outcome_stopping(const struct outcome *o);

/*
 * Exit status of `lkvm run`: 0 power-off or reset, 33 triple fault, 34 panic, 124 timeout, 125
 * error, 128 + signal.
 */
int outcome_status(const struct outcome *o);

/* One line for the user into @buf: "guest powered off"; empty for STOP_ERROR, which was logged. */
void outcome_text(const struct outcome *o, char *buf, size_t len);

#endif
