/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Test harness, TAP output. Each test runs in a child process with a time limit; it fails when a
 * CHECK fails, when it dies, hangs, or leaves file descriptors open (and, in a sanitizer build,
 * when it leaks memory).
 *
 *	static void t_wraps(void) { CHECK_EQ(f(1), 2); }
 *	int main(int argc, char **argv) { return TAP_RUN(argc, argv, T(t_wraps), T(t_other)); }
 *
 * An argument runs only the tests whose name contains it. SKIP(reason) ends a test as skipped.
 */
#ifndef LKVM_TAP_H
#define LKVM_TAP_H

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "types.h"

#define TAP_SECONDS   120 /* generous: sanitizers on a loaded machine */
#define TAP_EXIT_SKIP 77

struct tap_test {
	const char *name;
	void (*fn)(void);
};
/* clang-format off */
#define T(f) { #f, f }
/* clang-format on */

static int tap_failed; /* CHECKs that failed in this child */

#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			printf("# %s:%d: CHECK(%s)\n", __FILE__, __LINE__, #cond); \
			tap_failed++; \
		} \
	} while (0)

#define CHECK_EQ(a, b) \
	do { \
		long long tap_a = (long long)(a), tap_b = (long long)(b); \
		if (tap_a != tap_b) { \
			printf("# %s:%d: %s is %lld (%#llx), not %s = %lld (%#llx)\n", __FILE__, \
			       __LINE__, #a, tap_a, (unsigned long long)tap_a, #b, tap_b, \
			       (unsigned long long)tap_b); \
			tap_failed++; \
		} \
	} while (0)

/* For what the rest of the test needs: ends the test at once. */
#define REQUIRE(cond) \
	do { \
		if (!(cond)) { \
			printf("# %s:%d: REQUIRE(%s), errno %d\n", __FILE__, __LINE__, #cond, \
			       errno); \
			exit(1); \
		} \
	} while (0)

#define SKIP(...) \
	do { \
		printf("# SKIP "); \
		printf(__VA_ARGS__); \
		printf("\n"); \
		exit(TAP_EXIT_SKIP); \
	} while (0)

static inline int tap_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline void tap_child(const struct tap_test *t)
{
	int fds = tap_open_fds();

	alarm(TAP_SECONDS);
	t->fn();
	if (tap_open_fds() != fds) {
		printf("# %s left %d file descriptors open\n", t->name, tap_open_fds() - fds);
		tap_failed++;
	}
	exit(tap_failed ? 1 : 0);
}

static inline int tap_run(int argc, char **argv, const struct tap_test *tests, unsigned nr)
{
	int failed = 0, n = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; i < nr; i++) {
		int status = 0;
		pid_t pid;

		if (argc > 1 && !strstr(tests[i].name, argv[1]))
			continue;
		pid = fork();
		if (pid == 0)
			tap_child(&tests[i]);
		n++;
		if (pid < 0 || waitpid(pid, &status, 0) < 0) {
			printf("not ok %d - %s: cannot fork\n", n, tests[i].name);
			failed++;
		} else if (WIFEXITED(status) && WEXITSTATUS(status) == TAP_EXIT_SKIP) {
			printf("ok %d - %s # SKIP\n", n, tests[i].name);
		} else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			printf("ok %d - %s\n", n, tests[i].name);
		} else {
			printf("not ok %d - %s: %s %d\n", n, tests[i].name,
			       WIFSIGNALED(status) ? "signal" : "exit status",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
			failed++;
		}
	}
	printf("1..%d\n", n);
	return failed ? 1 : 0;
}

#define TAP_RUN(argc, argv, ...) \
	({ \
		static const struct tap_test tap_tests[] = { __VA_ARGS__ }; \
		tap_run(argc, argv, tap_tests, ARRAY_SIZE(tap_tests)); \
	})

#endif
