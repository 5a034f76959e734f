/* SPDX-License-Identifier: GPL-2.0-only */
/* The commands of lkvm: one table, one function and one table of options each. Rank 7. */
#ifndef LKVM_BUILTIN_H
#define LKVM_BUILTIN_H

#include "opt.h"

#define LKVM_VERSION "0.1"
#define EXIT_CANNOT  125 /* lkvm itself could not do it; one line on stderr says why */

struct command {
	const char *name;
	const char *args; /* what may follow the options; "" = nothing */
	const char *help;
	const struct opt *opts;            /* NULL = none */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name. The exit status */
};

/* kvm-cmd.c; ends with a NULL name. */
extern const struct command commands[];
const struct command *command_find(const char *name);

extern const struct opt run_opts[], stat_opts[], ctl_opts[], list_opts[];

int cmd_run(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_net(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_help(int argc, char **argv);

/* --- builtin-help.c --- */

void help_all(FILE *out);
void help_command(const struct command *cmd, FILE *out);

/* builtin-man.c: the same, as a manual page and as a completion for bash. */
void help_man(FILE *out);
void help_completion(FILE *out);

/* Exit statuses of `lkvm run`, for all three. Ends with a NULL meaning. */
struct exit_status {
	const char *status, *meaning;
};
extern const struct exit_status exit_statuses[];

#endif
