// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: the control socket with real sockets in a folder of its own for each test,
 * and a loop that the test steps itself, so that a client and the VM can live in one thread.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tap.h"
#include "ipc.h"
#include "log.h"
#include "loop.h"
#include "machine.h"

#define NR_HUNG 12 /* more than the server has places */

static char last[1024];
static unsigned nr_messages;

static void keep(enum log_level level, const char *line)
{
	(void)level;
	snprintf(last, sizeof(last), "%s", line);
	nr_messages++;
}

struct fixture {
	char tmp[64], dir[80], path[104];
	struct loop loop;
	struct machine m;
	struct ipc *ipc;
	unsigned nr_stats;
};

static void write_stat(void *ctx, const char *arg, FILE *out)
{
	struct fixture *f = ctx;

	(void)arg;
	fprintf(out, "{\"asked\":%u}", ++f->nr_stats);
}

static const struct ipc_command commands[] = { { "stat", write_stat }, { NULL, NULL } };

/* A folder and a loop, no socket yet. */
static void begin(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	log_set_sink(keep);
	snprintf(f->tmp, sizeof(f->tmp), "/tmp/lkvm-t-ipc-XXXXXX");
	REQUIRE(mkdtemp(f->tmp));
	setenv("XDG_RUNTIME_DIR", f->tmp, 1);
	snprintf(f->dir, sizeof(f->dir), "%s/lkvm", f->tmp);
	snprintf(f->path, sizeof(f->path), "%s/vm.sock", f->dir);
	REQUIRE(!loop_init(&f->loop));
	f->m.loop = &f->loop;
}

static struct ipc *start(struct fixture *f, int *err)
{
	return ipc_new(&f->m, "vm", commands, f, err);
}

static void begin_running(struct fixture *f)
{
	int err;

	begin(f);
	f->ipc = start(f, &err);
	REQUIRE(f->ipc);
}

static void end(struct fixture *f)
{
	ipc_free(f->ipc);
	CHECK(access(f->path, F_OK) == -1);
	rmdir(f->dir);
	CHECK_EQ(rmdir(f->tmp), 0);
	loop_destroy(&f->loop);
}

static int client(const char *request)
{
	int fd = ipc_connect("vm");

	REQUIRE(fd >= 0);
	if (request)
		CHECK_EQ(write(fd, request, strlen(request)), strlen(request));
	return fd;
}

static void step(struct fixture *f)
{
	while (loop_once(&f->loop, 0) > 0)
		;
}

/* What the client has got, then end of file; closes it. */
static void expect_answer(int fd, const char *want)
{
	char buf[256] = "";
	ssize_t len = 0, n;

	while ((n = recv(fd, buf + len, sizeof(buf) - 1 - (size_t)len, MSG_DONTWAIT)) > 0)
		len += n;
	CHECK_EQ(n, 0);
	if (strcmp(buf, want)) {
		printf("# got '%s', wanted '%s'\n", buf, want);
		tap_failed++;
	}
	close(fd);
}

static void t_names(void)
{
	/* clang-format off */
	static const char *const bad[] = { "", ".", "..", ".x", "-x", "a/b", "a b", "a\nb", "\xc3\xa4", "a:b",
		"12345678901234567890123456789012345678901234567890123456789012345" };
	/* clang-format on */

	log_set_sink(keep);
	CHECK_EQ(name_check("guest-1"), 0);
	CHECK_EQ(name_check("A.b_C-9"), 0);
	CHECK_EQ(name_check("1234567890123456789012345678901234567890123456789012345678901234"), 0);
	CHECK_EQ(nr_messages, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK_EQ(name_check(bad[i]), -EINVAL);
		CHECK_EQ(nr_messages, i + 1);
		CHECK(strstr(last, "--name") != NULL);
	}
}

static void t_stat(void)
{
	struct fixture f;
	int fd;

	begin_running(&f);
	fd = client("stat\n");
	step(&f);
	expect_answer(fd, "{\"asked\":1}\n");
	fd = client("{\"v\":1,\"cmd\":\"stat\"}\n");
	step(&f);
	expect_answer(fd, "{\"asked\":2}\n");
	fd = client("reboot\n");
	step(&f);
	expect_answer(fd, "{\"error\":\"no such command\"}\n");
	end(&f);
	CHECK_EQ(nr_messages, 0);
}

/* An observer must not disturb what it observes: see ipc.h. */
static void t_wakeups(void)
{
	struct fixture f;
	int fd;

	begin_running(&f);
	CHECK_EQ(loop_once(&f.loop, 0), 0);
	fd = client("stat\n");
	step(&f);
	CHECK_EQ(loop_wakeups(&f.loop), 2);
	expect_answer(fd, "{\"asked\":1}\n");

	fd = client("st");
	step(&f);
	CHECK_EQ(write(fd, "at\n", 3), 3);
	step(&f);
	CHECK_EQ(loop_wakeups(&f.loop), 5);
	expect_answer(fd, "{\"asked\":2}\n");
	end(&f);
}

static void t_bad_requests(void)
{
	static const char nuls[3] = "\0\0\n";
	struct fixture f;
	char line[IPC_REQUEST_MAX + 2];
	int fd;

	begin_running(&f);
	memset(line, 'x', sizeof(line));
	line[IPC_REQUEST_MAX] = '\0';
	fd = client(line); /* the limit, and no newline */
	step(&f);
	expect_answer(fd, "");

	line[IPC_REQUEST_MAX - 1] = '\n';
	fd = client(line);
	step(&f);
	expect_answer(fd, "{\"error\":\"no such command\"}\n");

	fd = client("stat"); /* no newline, then end of file */
	shutdown(fd, SHUT_WR);
	step(&f);
	expect_answer(fd, "");

	fd = client(NULL);
	CHECK_EQ(write(fd, nuls, 3), 3);
	step(&f);
	expect_answer(fd, "{\"error\":\"no such command\"}\n");

	close(client("stat\n")); /* gone before the answer */
	step(&f);
	CHECK_EQ(f.nr_stats, 1);
	end(&f);
}

static void t_hung_clients(void)
{
	struct fixture f;
	int hung[NR_HUNG], fd;

	begin_running(&f);
	for (unsigned i = 0; i < NR_HUNG; i++) {
		hung[i] = client(NULL);
		step(&f);
	}
	fd = client("stat\n");
	step(&f);
	expect_answer(fd, "{\"asked\":1}\n");

	/* The first ones lost their places, the last ones may still ask. */
	expect_answer(hung[0], "");
	CHECK_EQ(write(hung[NR_HUNG - 1], "stat\n", 5), 5);
	step(&f);
	expect_answer(hung[NR_HUNG - 1], "{\"asked\":2}\n");
	for (unsigned i = 1; i < NR_HUNG - 1; i++)
		close(hung[i]);
	end(&f);
}

static void t_folder(void)
{
	struct fixture f;
	struct stat st;
	char dir[IPC_PATH_MAX];

	begin_running(&f);
	CHECK_EQ(ipc_dir(dir, sizeof(dir)), 0);
	CHECK(!strcmp(dir, f.dir));
	REQUIRE(!stat(f.dir, &st));
	CHECK_EQ(st.st_mode & 07777, 0700);

	/* One that others may read is closed to them. */
	ipc_free(f.ipc);
	chmod(f.dir, 0755);
	f.ipc = ipc_new(&f.m, "vm", commands, &f, &(int){ 0 });
	REQUIRE(f.ipc && !stat(f.dir, &st));
	CHECK_EQ(st.st_mode & 07777, 0700);
	end(&f);

	setenv("XDG_RUNTIME_DIR", "not/absolute", 1);
	CHECK_EQ(ipc_dir(dir, sizeof(dir)), 0);
	CHECK(!strncmp(dir, geteuid() ? "/tmp/lkvm-" : "/run/lkvm", 9));
	CHECK_EQ(nr_messages, 0);
}

static void t_foreign_folder(void)
{
	struct fixture f;
	int err = 0;

	if (geteuid())
		SKIP("only root can make a folder somebody else's");
	begin(&f);
	REQUIRE(!mkdir(f.dir, 0755) && !chown(f.dir, 1, 1));
	CHECK(!start(&f, &err));
	CHECK_EQ(err, -EPERM);
	CHECK_EQ(nr_messages, 1);
	rmdir(f.dir);
	REQUIRE(!symlink("/tmp", f.dir));
	CHECK(!start(&f, &err));
	CHECK(err == -ELOOP || err == -ENOTDIR);
	unlink(f.dir);
	end(&f);
}

static void t_name_taken(void)
{
	struct fixture f;
	int err = 0, fd;

	begin_running(&f);
	CHECK(!start(&f, &err));
	CHECK_EQ(err, -EADDRINUSE);
	CHECK_EQ(nr_messages, 1);
	CHECK(strstr(last, "vm: a VM of this name is running") != NULL);
	step(&f);
	fd = client("stat\n"); /* and the first one was not harmed */
	step(&f);
	expect_answer(fd, "{\"asked\":1}\n");
	end(&f);
}

static void t_stale_socket(void)
{
	struct fixture f;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), err = 0;

	begin(&f);
	REQUIRE(!mkdir(f.dir, 0700));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f.path);
	REQUIRE(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)) && !listen(fd, 1));
	close(fd); /* as after a kill -9 */
	CHECK_EQ(ipc_connect("vm"), -ECONNREFUSED);
	f.ipc = start(&f, &err);
	CHECK(f.ipc);
	close(client(NULL));
	end(&f);
	CHECK_EQ(nr_messages, 0);
}

static void t_not_a_socket(void)
{
	struct fixture f;
	int err = 0;

	begin(&f);
	REQUIRE(!mkdir(f.dir, 0700));
	close(open(f.path, O_CREAT | O_WRONLY, 0600));
	CHECK(!start(&f, &err));
	CHECK_EQ(err, -EEXIST);
	CHECK(strstr(last, f.path) != NULL);
	CHECK_EQ(unlink(f.path), 0);
	end(&f);
}

/* Somebody replaced our path: it is not ours to remove. */
static void t_removes_its_own_only(void)
{
	struct fixture f;

	begin_running(&f);
	REQUIRE(!unlink(f.path));
	close(open(f.path, O_CREAT | O_WRONLY, 0600));
	ipc_free(f.ipc);
	f.ipc = NULL;
	CHECK_EQ(unlink(f.path), 0);
	end(&f);
}

static void t_paths_too_long(void)
{
	struct fixture f;
	char longer[200];
	int err = 0;

	begin(&f);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	setenv("XDG_RUNTIME_DIR", longer, 1);
	CHECK(!start(&f, &err));
	CHECK_EQ(err, -ENAMETOOLONG);
	longer[95] = '\0'; /* the folder fits, the socket does not */
	setenv("XDG_RUNTIME_DIR", longer, 1);
	CHECK(!start(&f, &err));
	CHECK_EQ(err, -ENAMETOOLONG);
	CHECK_EQ(nr_messages, 2);
	CHECK_EQ(ipc_connect("vm"), -ENAMETOOLONG);

	setenv("XDG_RUNTIME_DIR", "/nosuch", 1);
	CHECK(!start(&f, &err));
	CHECK_EQ(err, -ENOENT);
	CHECK(strstr(last, "/nosuch/lkvm/vm.sock") != NULL);
	CHECK_EQ(ipc_connect("vm"), -ENOENT);
	CHECK(!ipc_new(&f.m, "../vm", commands, &f, &err));
	CHECK_EQ(err, -EINVAL);
	end(&f);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_names), T(t_stat), T(t_wakeups), T(t_bad_requests),
		       T(t_hung_clients), T(t_folder), T(t_foreign_folder), T(t_name_taken),
		       T(t_stale_socket), T(t_not_a_socket), T(t_removes_its_own_only),
		       T(t_paths_too_long));
}
