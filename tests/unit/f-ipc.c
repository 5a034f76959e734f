// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: each call of the control socket's set-up fails once; nothing may stay
 * behind.
 */
#include "tap.h"
#include "fake/fault.h"
#include "ipc.h"
#include "loop.h"
#include "machine.h"

static char dir[64];

static void write_stat(void *ctx, const char *arg, FILE *out)
{
	(void)arg;
	(void)ctx;
	fputs("{}", out);
}

static const struct ipc_command commands[] = { { "stat", write_stat }, { NULL, NULL } };

static int set_up(void)
{
	struct loop loop;
	struct machine m = { .loop = &loop };
	struct ipc *ipc;
	int err = loop_init(&loop);

	if (err)
		return err;
	ipc = ipc_new(&m, "vm", commands, NULL, &err);
	ipc_free(ipc);
	loop_destroy(&loop);
	return ipc ? 0 : err;
}

static void t_faults(void)
{
	char path[80];

	snprintf(dir, sizeof(dir), "/tmp/lkvm-f-ipc-XXXXXX");
	REQUIRE(mkdtemp(dir));
	setenv("XDG_RUNTIME_DIR", dir, 1);
	CHECK(fault_loop(set_up) > 6);
	snprintf(path, sizeof(path), "%s/lkvm", dir);
	CHECK_EQ(rmdir(path), 0); /* empty: no socket was left */
	CHECK_EQ(rmdir(dir), 0);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_faults));
}
