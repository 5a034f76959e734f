/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The devices that a user can ask for: one table, in the order in which they are created. Rank 7.
 */
#ifndef LKVM_DEVICES_H
#define LKVM_DEVICES_H

#include "machine.h"

struct device_type {
	const char *name; /* "net" */
	char letter;      /* of its option, -n */
	const char *option, *arg, *help;
	const struct opt_key *keys; /* its key=value list, for --help */

	/*
	 * Checks @value and keeps it. NULL and *@err = -errno after logging. Freed by
	 * free_params().
	 */
	void *(*parse)(const char *value, int *err);
	/* Makes the @index-th device of this type on @m. 0 or -errno after logging. */
	int (*create)(struct machine *m, const void *params, const char *vm_name, unsigned index);
	void (*free_params)(void *params);
};

/* Ends with a NULL name. */
extern const struct device_type device_types[];

/* What the command line asked for. */
#define DEVICES_MAX 16
struct device_list {
	struct {
		const struct device_type *type;
		void *params;
	} d[DEVICES_MAX];
	unsigned nr;
};

int device_list_add(struct device_list *list, const struct device_type *type,
		    const char *value) __must_check;
int device_list_create(struct machine *m, const struct device_list *list,
		       const char *vm_name) __must_check;
void device_list_free(struct device_list *list);

#endif
