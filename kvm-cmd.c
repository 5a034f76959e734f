// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: main() finds the command in the table and hands over; a command returns its
 * exit status. A command of kvmtool's that is not there yet is refused by name, never ignored.
 */
#include <fcntl.h>
#include <unistd.h>

#include "builtin.h"
#include "log.h"

const struct command commands[] = {
	{ "run", "[KERNEL]", "start a virtual machine", run_opts, cmd_run },
	{ "list", "", "print the names of running virtual machines", list_opts, cmd_list },
	{ "stop", "", "end a virtual machine", ctl_opts, cmd_stop },
	{ "pause", "", "hold the vCPUs of a virtual machine", ctl_opts, cmd_pause },
	{ "resume", "", "let them go on", ctl_opts, cmd_resume },
	{ "net", "NAME SETTING", "change its NICs: vhost=0, vhost=1, link=up, link=down", NULL,
	  cmd_net },
	{ "stat", "", "show the counters of running virtual machines", stat_opts, cmd_stat },
	{ "version", "", "print the version", NULL, cmd_version },
	{ "help", "[COMMAND]", "explain a command", NULL, cmd_help },
	{ NULL, NULL, NULL, NULL, NULL },
};

static const char *const not_yet[] = { "balloon", "debug", "setup", "sandbox",
				       "bench",   "exec",  "cable", NULL };

const struct command *command_find(const char *name)
{
	for (const struct command *cmd = commands; cmd->name; cmd++) {
		if (!strcmp(cmd->name, name))
			return cmd;
	}
	return NULL;
}

static int refuse(const char *name)
{
	for (unsigned i = 0; not_yet[i]; i++) {
		if (!strcmp(name, not_yet[i])) {
			log_err("%s: this command is not there yet; see lkvm help", name);
			return EXIT_CANNOT;
		}
	}
	log_err("%s: no such command; see lkvm help", *name ? name : "''");
	return EXIT_CANNOT;
}

/* A file opened as 0, 1 or 2 would be taken for the terminal. */
static void fill_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int dispatch(int argc, char **argv)
{
	static const struct opt none[] = { { 0, NULL, NULL, NULL, NULL } };
	const struct command *cmd;

	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		argv[1] = (char *)"help";
	if (!strcmp(argv[1], "--version"))
		argv[1] = (char *)"version";
	cmd = command_find(argv[1]);
	if (!cmd)
		return refuse(argv[1]);
	if (opt_help_wanted(cmd->opts ? cmd->opts : none, argc - 1, argv + 1)) {
		help_command(cmd, stdout);
		return 0;
	}
	return cmd->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	int status;

	fill_standard_fds();
	if (argc < 2) {
		help_all(stderr);
		return EXIT_CANNOT;
	}
	status = dispatch(argc, argv);
	if ((fflush(stdout) || ferror(stdout)) && !status) {
		log_err("standard output: %s", strerror(errno));
		return EXIT_CANNOT;
	}
	return status;
}
