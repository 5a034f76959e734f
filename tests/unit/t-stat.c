// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: `lkvm stat` against a control socket in another thread of this process,
 * which answers whatever the test wants; standard output goes to a memory file and is compared.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tap.h"
#include "builtin.h"
#include "ipc.h"
#include "log.h"
#include "loop.h"
#include "machine.h"

static char last[1024];

static void keep(enum log_level level, const char *line)
{
	(void)level;
	snprintf(last, sizeof(last), "%s", line);
}

struct fixture {
	char dir[64], out[4096];
	struct loop loop;
	struct machine m;
	pthread_t thread;
	const char *answer;
};

static void write_answer(void *ctx, const char *arg, FILE *out)
{
	const struct fixture *f = ctx;

	(void)arg;
	fputs(f->answer, out);
}

static const struct ipc_command answers[] = { { "stat", write_answer }, { NULL, NULL } };

static void *run_loop(void *arg)
{
	loop_run(arg);
	return NULL;
}

static void begin(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	log_set_sink(keep);
	snprintf(f->dir, sizeof(f->dir), "/tmp/lkvm-t-stat-XXXXXX");
	REQUIRE(mkdtemp(f->dir));
	setenv("XDG_RUNTIME_DIR", f->dir, 1);
	REQUIRE(!loop_init(&f->loop));
	f->m.loop = &f->loop;
}

static void end(struct fixture *f)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/lkvm", f->dir);
	rmdir(path);
	CHECK_EQ(rmdir(f->dir), 0);
	loop_destroy(&f->loop);
}

/* Runs the command with its output in f->out; the exit status. */
static int stat_cmd(struct fixture *f, int argc, const char *const *args)
{
	char *argv[4] = { (char *)"stat", NULL };
	int fd = memfd_create("out", 0), saved = dup(STDOUT_FILENO), status;
	ssize_t n;

	REQUIRE(fd >= 0 && saved >= 0 && argc < 4);
	for (int i = 1; i < argc; i++)
		argv[i] = (char *)args[i - 1];
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	status = cmd_stat(argc, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	n = pread(fd, f->out, sizeof(f->out) - 1, 0);
	f->out[n > 0 ? n : 0] = '\0';
	close(saved);
	close(fd);
	return status;
}

#define STAT(f, ...) \
	({ \
		const char *const args[] = { __VA_ARGS__, NULL }; \
		stat_cmd(f, ARRAY_SIZE(args), args); \
	})

/* One or two VMs that answer @answer, and the command asked about them. */
static int ask(struct fixture *f, const char *answer, const char *second, const char *option)
{
	struct ipc *ipc[2] = { NULL, NULL };
	int err, status;

	f->answer = answer;
	ipc[0] = ipc_new(&f->m, "vm", answers, f, &err);
	REQUIRE(ipc[0]);
	if (second) {
		ipc[1] = ipc_new(&f->m, second, answers, f, &err);
		REQUIRE(ipc[1]);
	}
	f->loop.stop = false;
	REQUIRE(!pthread_create(&f->thread, NULL, run_loop, &f->loop));
	status = option ? STAT(f, option) : STAT(f, "-n", "vm");
	loop_stop(&f->loop);
	pthread_join(f->thread, NULL);
	ipc_free(ipc[0]);
	ipc_free(ipc[1]);
	return status;
}

static void expect(const struct fixture *f, const char *want)
{
	CHECK(!strcmp(f->out, want));
	if (strcmp(f->out, want))
		printf("# got:\n%s# wanted:\n%s", f->out, want);
}

static void t_json(void)
{
	struct fixture f;

	begin(&f);
	CHECK_EQ(ask(&f, "{\"a\":1}", NULL, "--json"), 0);
	expect(&f, "{\"a\":1}\n");
	CHECK_EQ(ask(&f, "{\"a\":1}", "vm2", "--json"), 0);
	expect(&f, "{\"a\":1}\n{\"a\":1}\n");
	end(&f);
}

static void t_table(void)
{
	struct fixture f;

	begin(&f);
	CHECK_EQ(ask(&f,
		     "{ \"name\" : \"a \\\"b\\\"\", \"exits\":{\"pio\":12,\"none\":{}},\n"
		     "\"devices\":[{\"type\":\"net\",\"q\":[1,-2.5e3]},[],true,null,\"\"]}",
		     NULL, NULL),
		 0);
	expect(&f, "name                             a \\\"b\\\"\n"
		   "exits.pio                        12\n"
		   "devices[0].type                  net\n"
		   "devices[0].q[0]                  1\n"
		   "devices[0].q[1]                  -2.5e3\n"
		   "devices[2]                       true\n"
		   "devices[3]                       null\n"
		   "devices[4]                       \n");
	CHECK_EQ(ask(&f, "{\"a\":\"\x1b[0m\"}", "vm2", "-a"), 0);
	expect(&f, "a                                ?[0m\n\n"
		   "a                                ?[0m\n");
	end(&f);
}

static void t_not_json(void)
{
	static const char *const bad[] = { "",
					   "{",
					   "[",
					   "{\"a\"",
					   "{\"a\":",
					   "{\"a\":1",
					   "{\"a\":1,",
					   "{\"a\":1,}",
					   "{a:1}",
					   "{\"a\":1}}",
					   "[1 2]",
					   "[1,]",
					   "\"",
					   "\"\\",
					   "{\"a\":}",
					   "[,]",
					   "[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]" };
	struct fixture f;

	begin(&f);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		last[0] = '\0';
		CHECK_EQ(ask(&f, bad[i], NULL, NULL), EXIT_CANNOT);
		CHECK(!strcmp(last, "lkvm: vm: the VM's answer is not JSON"));
	}
	end(&f);
}

static void t_long_names(void)
{
	struct fixture f;
	char json[600] = "{\"";

	begin(&f);
	memset(json + 2, 'k', 300);
	memcpy(json + 302, "\":1}", 5);
	CHECK_EQ(ask(&f, json, NULL, NULL), EXIT_CANNOT);
	end(&f);
}

/* A VM that was killed leaves its socket: passed over by --all, named when asked for by name. */
static void t_stale(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct fixture f;
	char path[80];
	int fd;

	begin(&f);
	CHECK_EQ(STAT(&f, "-a"), 0);
	expect(&f, "");
	snprintf(path, sizeof(path), "%s/lkvm", f.dir);
	REQUIRE(!mkdir(path, 0700));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/lkvm/dead.sock", f.dir);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	REQUIRE(fd >= 0 && !bind(fd, (struct sockaddr *)&addr, sizeof(addr)) && !listen(fd, 1));
	close(fd);
	CHECK_EQ(ask(&f, "{\"a\":1}", NULL, "--json"), 0);
	expect(&f, "{\"a\":1}\n");
	CHECK_EQ(STAT(&f, "-n", "dead"), EXIT_CANNOT);
	CHECK(strstr(last, "dead: no VM") != NULL);
	unlink(addr.sun_path);
	end(&f);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_json), T(t_table), T(t_not_json), T(t_long_names),
		       T(t_stale));
}
