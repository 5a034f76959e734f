// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: all help comes from the tables that the parser uses: commands[], each
 * command's options, and for options that take a key=value list the device's keys. The manual page
 * and the shell completion (builtin-man.c) are printed from the same tables, at build time.
 */
#include "builtin.h"
#include "devices.h"
#include "log.h"

const struct exit_status exit_statuses[] = {
	{ "0", "the guest powered off or rebooted, or the user ended it (Ctrl-a x, lkvm stop)" },
	{ "33", "triple fault, or KVM gave up on a vCPU" },
	{ "34", "the guest's kernel panicked" },
	{ "124", "--timeout ran out" },
	{ "125",
	  "lkvm itself could not start or go on: bad option, missing file or device, KVM error" },
	{ "128+n", "lkvm was ended by signal n" },
	{ NULL, NULL },
};

void help_all(FILE *out)
{
	fputs("usage: lkvm COMMAND [OPTION]...\n\nCommands:\n", out);
	for (const struct command *cmd = commands; cmd->name; cmd++)
		fprintf(out, "  %-10s%s\n", cmd->name, cmd->help);
	fputs("\n`lkvm help COMMAND` explains one, `man lkvm` all.\n", out);
}

static void help_run(FILE *out)
{
	for (const struct device_type *type = device_types; type->name; type++) {
		if (!type->keys)
			continue;
		fprintf(out, "\nKeys of -%c, --%s:\n", type->letter, type->option);
		opt_keys_usage(type->keys, out);
	}
	fputs("\nExit status:\n", out);
	for (const struct exit_status *s = exit_statuses; s->meaning; s++)
		fprintf(out, "  %-8s%s\n", s->status, s->meaning);
}

void help_command(const struct command *cmd, FILE *out)
{
	fprintf(out, "usage: lkvm %s%s%s%s\n\n%s\n", cmd->name, cmd->opts ? " [OPTION]..." : "",
		*cmd->args ? " " : "", cmd->args, cmd->help);
	if (cmd->opts) {
		fputs("\nOptions:\n", out);
		opt_usage(cmd->opts, out);
	}
	if (cmd->run == cmd_run)
		help_run(out);
}

int cmd_help(int argc, char **argv)
{
	const struct command *cmd;

	if (argc > 2) {
		log_err("help: %s: unexpected argument", argv[2]);
		return EXIT_CANNOT;
	}
	if (argc < 2) {
		help_all(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--man")) {
		help_man(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--completion")) {
		help_completion(stdout);
		return 0;
	}
	cmd = command_find(argv[1]);
	if (!cmd) {
		log_err("help: %s: no such command; see lkvm help", argv[1]);
		return EXIT_CANNOT;
	}
	help_command(cmd, stdout);
	return 0;
}
