// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: see fault.h. Each WRAP line below makes one __wrap_ function; the makefile
 * reads the names from the same lines for the linker. With 64-bit file offsets glibc names some
 * calls ...64, so both spellings are here. Counting is atomic: the code under test may have
 * threads.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "tap.h"
#include "fake/fault.h"
#include "log.h"

#define MAX_ROUNDS 10000 /* a set-up that makes more calls than this does not end */

static int countdown; /* calls until the one that fails; 0 = not armed */
static int chosen_errno;
static const char *hit;

static bool fault_now(const char *name, int usual)
{
	int left = __atomic_load_n(&countdown, __ATOMIC_RELAXED);

	while (left > 0 && !__atomic_compare_exchange_n(&countdown, &left, left - 1, false,
							__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	if (left != 1)
		return false;
	__atomic_store_n(&hit, name, __ATOMIC_RELAXED);
	errno = chosen_errno ? chosen_errno : usual;
	return true;
}

/* WRAP(name, when it may fail, usual error, value returned then, type, parameters, arguments) */
#define WRAP(name, when, err, fail, type, params, args) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params \
	{ \
		if ((when) && fault_now(#name, err)) \
			return fail; \
		return __real_##name args; \
	}

/* clang-format off */
WRAP(malloc, true, ENOMEM, NULL, void *, (size_t n), (n))
WRAP(calloc, true, ENOMEM, NULL, void *, (size_t n, size_t size), (n, size))
WRAP(realloc, true, ENOMEM, NULL, void *, (void *p, size_t n), (p, n))
WRAP(strdup, true, ENOMEM, NULL, char *, (const char *s), (s))
WRAP(open_memstream, true, ENOMEM, NULL, FILE *, (char **p, size_t *n), (p, n))
WRAP(mmap, true, ENOMEM, MAP_FAILED, void *,
     (void *p, size_t n, int prot, int fl, int fd, off_t off), (p, n, prot, fl, fd, off))
WRAP(mmap64, true, ENOMEM, MAP_FAILED, void *,
     (void *p, size_t n, int prot, int fl, int fd, off_t off), (p, n, prot, fl, fd, off))
WRAP(memfd_create, true, EMFILE, -1, int, (const char *name, unsigned flags), (name, flags))
WRAP(ftruncate, true, EFBIG, -1, int, (int fd, off_t len), (fd, len))
WRAP(ftruncate64, true, EFBIG, -1, int, (int fd, off_t len), (fd, len))
WRAP(open, true, EMFILE, -1, int, (const char *path, int flags, mode_t mode), (path, flags, mode))
WRAP(open64, true, EMFILE, -1, int, (const char *path, int flags, mode_t mode), (path, flags, mode))
WRAP(pipe2, true, EMFILE, -1, int, (int *fds, int flags), (fds, flags))
WRAP(socket, true, EMFILE, -1, int, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(ioctl, true, EIO, -1, int, (int fd, unsigned long request, void *arg), (fd, request, arg))
WRAP(eventfd, true, EMFILE, -1, int, (unsigned initial, int flags), (initial, flags))
WRAP(epoll_create1, true, EMFILE, -1, int, (int flags), (flags))
WRAP(epoll_ctl, op != EPOLL_CTL_DEL, ENOSPC, -1, int,
     (int epfd, int op, int fd, struct epoll_event *ev), (epfd, op, fd, ev))
WRAP(signalfd, true, EMFILE, -1, int, (int fd, const sigset_t *mask, int flags), (fd, mask, flags))
WRAP(timerfd_create, true, EMFILE, -1, int, (int clock, int flags), (clock, flags))
WRAP(pthread_create, true, EAGAIN, EAGAIN, int,
     (pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg), (t, a, fn, arg))
/* clang-format on */

void fault_arm(unsigned nth, int err)
{
	hit = NULL;
	chosen_errno = err;
	__atomic_store_n(&countdown, (int)nth, __ATOMIC_RELAXED);
}

const char *fault_disarm(void)
{
	__atomic_store_n(&countdown, 0, __ATOMIC_RELAXED);
	return __atomic_load_n(&hit, __ATOMIC_RELAXED);
}

static void silent(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* What is wrong with a round: NULL = nothing. */
static const char *judge(const char *name, int err, int fds, bool lenient)
{
	if (tap_open_fds() != fds)
		return "file descriptors left open";
	if (!name && err)
		return "failed without a fault";
	if (name && !err && !lenient)
		return "the fault went unnoticed";
	return NULL;
}

static int run_rounds(int (*fn)(void), bool lenient)
{
	log_set_sink(silent);
	for (int n = 1; n < MAX_ROUNDS; n++) {
		int fds = tap_open_fds(), err;
		const char *name, *wrong;

		fault_arm((unsigned)n, 0);
		err = fn();
		name = fault_disarm();
		wrong = judge(name, err, fds, lenient);
		if (wrong) {
			printf("# round %d, fault in %s, returned %d: %s\n", n,
			       name ? name : "nothing", err, wrong);
			return -1;
		}
		if (!name)
			return n;
	}
	printf("# still hit by a fault after %d rounds\n", MAX_ROUNDS);
	return -1;
}

int fault_loop(int (*fn)(void))
{
	return run_rounds(fn, false);
}

int fault_loop_lenient(int (*fn)(void))
{
	return run_rounds(fn, true);
}
