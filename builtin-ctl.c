// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands that tell a running VM something over its control socket: list, stop, pause, resume,
 * net. Each is one request to one VM, or to all of this user.
 */
#include <unistd.h>

#include "builtin.h"
#include "ipc.h"
#include "log.h"

struct ctl {
	const char *name;
	bool all;
	const char *cmd; /* the request */
	const char *arg; /* its argument, or NULL */
};

static int set_name(void *ctx, const struct opt *opt, const char *value)
{
	int err = name_check(value);

	(void)opt;
	((struct ctl *)ctx)->name = value;
	return err;
}

static int set_all(void *ctx, const struct opt *opt, const char *value)
{
	(void)opt;
	(void)value;
	((struct ctl *)ctx)->all = true;
	return 0;
}

static int set_nothing(void *ctx, const struct opt *opt, const char *value)
{
	(void)ctx;
	(void)opt;
	(void)value;
	return 0;
}

const struct opt ctl_opts[] = {
	{ 'n', "name", "NAME", "the VM of this name", set_name },
	{ 'a', "all", NULL, "all VMs of this user", set_all },
	{ 0, NULL, NULL, NULL, NULL },
};

const struct opt list_opts[] = {
	{ 'i', "run", NULL, "running VMs (default)", set_nothing },
	{ 0, NULL, NULL, NULL, NULL },
};

/* An answer is {"ok":true}, or {"error":"TEXT"} which is shown. */
static int tell(void *ctx, const char *name, int fd)
{
	static const char error[] = "{\"error\":\"";
	const struct ctl *ctl = ctx;
	int err;
	char *text = ipc_ask(name, fd, ctl->cmd, ctl->arg, &err);

	if (!text)
		return err;
	if (!strncmp(text, error, sizeof(error) - 1)) {
		const char *why = text + sizeof(error) - 1;

		log_err("%s: %s: %.*s", ctl->cmd, name, (int)strcspn(why, "\""), why);
		err = -EPROTO;
	} else {
		err = 0;
	}
	free(text);
	return err;
}

static int ctl(const char *cmd, int argc, char **argv)
{
	struct ctl ctl = { .cmd = cmd };
	int next = opt_parse(ctl_opts, argc, argv, &ctl, NULL), err;

	if (next < 0)
		return EXIT_CANNOT;
	if (next < argc) {
		log_err("%s: %s: unexpected argument", cmd, argv[next]);
		return EXIT_CANNOT;
	}
	if (!ctl.name == !ctl.all) {
		log_err("%s: which VM? use one of --name NAME and --all", cmd);
		return EXIT_CANNOT;
	}
	err = ctl.all ? ipc_for_all(tell, &ctl) : tell(&ctl, ctl.name, ipc_connect(ctl.name));
	return err ? EXIT_CANNOT : 0;
}

int cmd_stop(int argc, char **argv)
{
	return ctl("stop", argc, argv);
}

int cmd_pause(int argc, char **argv)
{
	return ctl("pause", argc, argv);
}

int cmd_resume(int argc, char **argv)
{
	return ctl("resume", argc, argv);
}

static int net_word(void *ctx, const char *word)
{
	struct ctl *ctl = ctx;

	if (!ctl->name) {
		ctl->name = word;
		return name_check(word);
	}
	if (ctl->arg || (strcmp(word, "vhost=0") && strcmp(word, "vhost=1") &&
			 strcmp(word, "link=up") && strcmp(word, "link=down"))) {
		log_err("net: %s: not a setting; use one of vhost=0, vhost=1, link=up, link=down",
			word);
		return -EINVAL;
	}
	ctl->arg = word;
	return 0;
}

int cmd_net(int argc, char **argv)
{
	static const struct opt none[] = { { 0, NULL, NULL, NULL, NULL } };
	struct ctl ctl = { .cmd = "net" };
	int next = opt_parse(none, argc, argv, &ctl, net_word);

	if (next < 0)
		return EXIT_CANNOT;
	if (!ctl.arg) {
		log_err("net: which VM, and what? use lkvm net NAME vhost=1, or another setting");
		return EXIT_CANNOT;
	}
	return tell(&ctl, ctl.name, ipc_connect(ctl.name)) ? EXIT_CANNOT : 0;
}

static int print_name(void *ctx, const char *name, int fd)
{
	(void)ctx;
	if (fd >= 0)
		close(fd);
	return puts(name) < 0 ? -EIO : 0;
}

int cmd_list(int argc, char **argv)
{
	int next = opt_parse(list_opts, argc, argv, NULL, NULL);

	if (next < 0)
		return EXIT_CANNOT;
	if (next < argc) {
		log_err("list: %s: unexpected argument", argv[next]);
		return EXIT_CANNOT;
	}
	return ipc_for_all(print_name, NULL) ? EXIT_CANNOT : 0;
}
