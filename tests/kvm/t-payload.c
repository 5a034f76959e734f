// SPDX-License-Identifier: GPL-2.0-only
/*
 * The whole program on a real KVM with the payload guest: how a VM ends, what its status is, what
 * is left. Needs /dev/kvm; $LKVM is the program ($LKVM_DIR/lkvm by default), $PAYLOAD the guest.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "../tap.h"

#define MAX_ARGS 32

struct result {
	int status; /* exit status, or 1000 + signal */
	char out[8192], err[4096];
};

static const char *env(const char *name, const char *fallback)
{
	const char *v = getenv(name);

	return v ? v : fallback;
}

static void need_kvm(void)
{
	int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		SKIP("/dev/kvm: %s", strerror(errno));
	close(fd);
}

static void read_back(int fd, char *buf, size_t len)
{
	ssize_t n = pread(fd, buf, len - 1, 0);

	buf[n > 0 ? n : 0] = 0;
	close(fd);
}

static int scratch(void)
{
	char path[] = "/tmp/lkvm-test-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	REQUIRE(fd >= 0);
	unlink(path);
	return fd;
}

/* Runs the program with the payload, its command line and more options (NULL-terminated). */
static struct result lkvm(const char *cmdline, const char *const *more)
{
	const char *argv[MAX_ARGS] = { env("LKVM", "./lkvm"),
				       "run",
				       "-k",
				       env("PAYLOAD", "build/guest/payload.elf"),
				       "-m",
				       "128",
				       "-p",
				       cmdline };
	int out = scratch(), err = scratch(), n = 8, status;
	struct result r;
	pid_t pid;

	for (; more && *more && n < MAX_ARGS - 1; more++)
		argv[n++] = *more;
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(out, 1);
		dup2(err, 2);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	r.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
	read_back(out, r.out, sizeof(r.out));
	read_back(err, r.err, sizeof(r.err));
	return r;
}

static void check_run(const char *cmdline, const char *const *more, int status, const char *out,
		      const char *err)
{
	struct result r;

	need_kvm();
	r = lkvm(cmdline, more);
	CHECK_EQ(r.status, status);
	CHECK(!out || strstr(r.out, out));
	CHECK(!err || strstr(r.err, err));
	if (tap_failed)
		printf("# stdout: %s\n# stderr: %s\n", r.out, r.err);
}

static void t_poweroff(void)
{
	check_run("poweroff", NULL, 0, "payload: console=ttyS0 panic=-1 poweroff",
		  "guest powered off");
}

static void t_reset_acpi(void)
{
	check_run("reset-acpi", NULL, 0, NULL, "guest asked for a reset");
}

static void t_reset_i8042(void)
{
	check_run("reset-i8042", NULL, 0, NULL, "guest asked for a reset");
}

static void t_reset_cf9(void)
{
	check_run("reset-cf9", NULL, 0, NULL, "guest asked for a reset");
}

/* Each life begins with its line on the console; the last one ends by the time limit. */
static void t_restart(void)
{
	static const char *const more[] = {
		"--reboot", "restart", "--timeout", "2", "-c", "2", NULL
	};
	struct result r;
	int lives = 0;

	need_kvm();
	r = lkvm("reset-i8042", more);
	CHECK_EQ(r.status, 124);
	for (const char *p = r.out; (p = strstr(p, "payload: ")); p++)
		lives++;
	CHECK(lives > 2);
	check_run("poweroff", more, 0, NULL, "guest powered off");
}

static void t_triple_fault(void)
{
	/* A KVM that emulates each instruction may give up before it comes to the third fault. */
	check_run("triple", NULL, 33, NULL, "vCPU 0");
}

static void t_panic_is_no_clean_reset(void)
{
	check_run("panic reset-acpi", NULL, 34, NULL, "guest kernel panic");
}

static void t_timeout(void)
{
	static const char *const more[] = { "--timeout", "1", NULL };

	check_run("spin", more, 124, NULL, "timeout of 1 s ran out");
	check_run("halt", more, 124, NULL, NULL);
	check_run("cli-hlt", more, 124, NULL, NULL);
}

static void t_string_io(void)
{
	check_run("outsb", NULL, 0, "rep outsb works\n", NULL);
}

static void t_pci_config(void)
{
	check_run("pci", NULL, 0, "pci same 00081b36 empty ok port ok", NULL);
}

static void t_memory_ends(void)
{
	static const char *const more[] = { "-m", "4096", NULL };

	check_run("mem128", NULL, 0, "last word ok beyond ok", NULL);
	check_run("mem3g", more, 0, "last word ok beyond ok", NULL);
}

static void t_smp(void)
{
	static const char *const four[] = { "-c", "4", NULL }, *const many[] = { "-c", "16", NULL };

	check_run("smp4", four, 0, "all CPUs up", NULL);
	check_run("smp16", many, 0, "all CPUs up", NULL);
}

/* A status of the program run with @argv, its output thrown away. */
static int command(const char *const *argv)
{
	int status;
	pid_t pid = fork();

	REQUIRE(pid >= 0);
	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 1);
		dup2(null, 2);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int control(const char *cmd, const char *name)
{
	const char *argv[] = { env("LKVM", "./lkvm"), cmd, "-n", name, NULL };

	return command(argv);
}

/*
 * How much the guest has printed after at most a second in which it printed more than @more_than.
 */
static off_t printed(int fd, off_t more_than)
{
	struct stat st;

	for (int i = 0; i < 100; i++) {
		REQUIRE(fstat(fd, &st) == 0);
		if (st.st_size > more_than)
			break;
		usleep(10000);
	}
	return st.st_size;
}

/*
 * A guest that prints without end stops printing in a pause, and goes on after it; a stop ends it
 * also then.
 */
static void t_pause(void)
{
	char name[32];
	const char *argv[] = { env("LKVM", "./lkvm"),
			       "run",
			       "-k",
			       env("PAYLOAD", "build/guest/payload.elf"),
			       "-p",
			       "flood",
			       "--name",
			       name,
			       "--timeout",
			       "60",
			       NULL };
	int out = scratch(), status;
	off_t seen;
	pid_t pid;

	need_kvm();
	snprintf(name, sizeof(name), "t-pause-%d", (int)getpid());
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		dup2(out, 1);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	while (printed(out, 100) <= 100)
		;
	CHECK_EQ(control("pause", name), 0);
	CHECK_EQ(control("pause", name), 0);
	seen = printed(out, 1LL << 40); /* what was buffered is out */
	CHECK_EQ(printed(out, seen), seen);
	CHECK_EQ(control("resume", name), 0);
	CHECK_EQ(control("resume", name), 0);
	CHECK(printed(out, seen) > seen);
	CHECK_EQ(control("pause", name), 0);
	CHECK_EQ(control("stop", name), 0);
	REQUIRE(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK_EQ(control("stop", name), 125); /* gone */
	close(out);
}

/* A full pipe that nobody reads holds the guest, and not the end of the VM. */
static void t_stuck_reader(void)
{
	const char *argv[] = { env("LKVM", "./lkvm"),
			       "run",
			       "-k",
			       env("PAYLOAD", "build/guest/payload.elf"),
			       "-p",
			       "flood",
			       "--timeout",
			       "2",
			       NULL };
	int p[2], status;
	pid_t pid;

	need_kvm();
	REQUIRE(pipe(p) == 0);
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		dup2(p[1], 1);
		close(p[0]);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(p[1]);
	REQUIRE(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 124);
	close(p[0]);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_poweroff), T(t_reset_acpi), T(t_reset_i8042), T(t_reset_cf9),
		       T(t_restart), T(t_triple_fault), T(t_panic_is_no_clean_reset), T(t_timeout),
		       T(t_string_io), T(t_pci_config), T(t_memory_ends), T(t_smp), T(t_pause),
		       T(t_stuck_reader));
}
