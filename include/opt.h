/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options: a table for a command's -x/--long options, and key=value lists ("mode=tap,vhost=1").
 * Every error is one logged line that names the option and the value. Rank 0.
 */
#ifndef LKVM_OPT_H
#define LKVM_OPT_H

#include "types.h"

/* A table ends with an entry that has neither letter nor name. */
struct opt {
	char letter;      /* 0 = none */
	const char *name; /* long spelling */
	const char *arg;  /* what its value is called in --help; NULL = a flag */
	const char *help;
	/* @value is NULL for a flag. 0, or -errno after logging. */
	int (*set)(void *ctx, const struct opt *opt, const char *value);
};

/*
 * Parses argv[1..], calling set for each option; "--name=value", "--name value", "-xvalue", "-x
 * value", and one-dash long names are not accepted. Stops at "--". Positional arguments go to
 * @positional (may be NULL = refused). Returns the index of the first argument after "--" (or
 * argc), or -EINVAL.
 */
int opt_parse(const struct opt *opts, int argc, char **argv, void *ctx,
	      int (*positional)(void *ctx, const char *arg));

/* True when the arguments, read as opt_parse() would, ask for --help or -h. Calls no set. */
bool opt_help_wanted(const struct opt *opts, int argc, char **argv);

/* Prints the table as --help does. */
void opt_usage(const struct opt *opts, FILE *out);

/*
 * One key of a list. @value is never NULL, but may be empty, and is gone after the call: copy it to
 * keep it. 0, or -errno after logging. A table has at most 64 keys and ends with a NULL key.
 */
struct opt_key {
	const char *key;
	const char *help; /* NULL = known, but only to be refused: --help does not show it */
	int (*set)(void *ctx, const char *option, const char *key, const char *value);
};

/* Prints the table as --help does. */
void opt_keys_usage(const struct opt_key *keys, FILE *out);

/*
 * Splits "k=v,k=v" of option @option (for messages, "-n") and calls set for each. Unknown keys are
 * refused.
 */
int opt_keys(const struct opt_key *keys, const char *option, const char *list, void *ctx);

/*
 * Numbers: whole string, decimal, within [min, max]. 0, or -EINVAL after logging @option, @key (may
 * be NULL), value.
 */
int opt_u64(const char *option, const char *key, const char *value, u64 min, u64 max, u64 *out);

/* As opt_u64(), for 0 or 1. */
int opt_bool(const char *option, const char *key, const char *value, bool *out);

/* As opt_u64(), for bytes, not 0; suffix B K M G T P, default M. */
int opt_size(const char *option, const char *value, u64 *out);

/* As opt_u64(), for a MAC address, unicast and not zero. */
int opt_mac(const char *option, const char *key, const char *value, u8 mac[6]);

#endif
