// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: the fault injection itself, tried on a set-up that undoes its work as it
 * should, and on three that do not.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "tap.h"
#include "fake/fault.h"

/* Keeps compilers from leaving out malloc and free together. */
static void *used(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

struct thing {
	int a, b, ep;
	void *map;
};

static void thing_free(struct thing *t)
{
	if (!t)
		return;
	if (t->map)
		munmap(t->map, 4096);
	if (t->ep >= 0)
		close(t->ep);
	if (t->b >= 0)
		close(t->b);
	if (t->a >= 0)
		close(t->a);
	free(t);
}

/* Six calls that can fail. */
static int thing_init(struct thing *t)
{
	struct epoll_event ev = { .events = EPOLLIN };

	t->a = eventfd(0, EFD_CLOEXEC);
	if (t->a < 0)
		return -errno;
	t->b = eventfd(0, EFD_CLOEXEC);
	if (t->b < 0)
		return -errno;
	t->ep = epoll_create1(EPOLL_CLOEXEC);
	if (t->ep < 0 || epoll_ctl(t->ep, EPOLL_CTL_ADD, t->a, &ev))
		return -errno;
	t->map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->map == MAP_FAILED) {
		t->map = NULL;
		return -errno;
	}
	return 0;
}

static int careful(void)
{
	struct thing *t = used(calloc(1, sizeof(*t)));
	int err;

	if (!t)
		return -errno;
	t->a = t->b = t->ep = -1;
	err = thing_init(t);
	thing_free(t);
	return err;
}

static int leaks_fd(void)
{
	int a = eventfd(0, 0), b = eventfd(0, 0);

	if (a < 0 || b < 0)
		return -EMFILE; /* the other one stays open */
	close(a);
	close(b);
	return 0;
}

static int ignores(void)
{
	free(used(malloc(10)));
	return 0;
}

static int always_fails(void)
{
	return -EIO;
}

static void t_all_rounds(void)
{
	CHECK_EQ(fault_loop(careful), 7); /* six faults and the clean round */
}

static void t_mistakes_are_found(void)
{
	int next = dup(STDIN_FILENO);

	close(next);
	CHECK_EQ(fault_loop(leaks_fd), -1);
	close(next); /* what it left */
	CHECK_EQ(fault_loop(ignores), -1);
	CHECK_EQ(fault_loop_lenient(ignores), 2);
	CHECK_EQ(fault_loop(always_fails), -1);
}

static void t_arm(void)
{
	int fd;

	fault_arm(2, EACCES);
	fd = eventfd(0, 0);
	CHECK(fd >= 0);
	CHECK_EQ(eventfd(0, 0), -1);
	CHECK_EQ(errno, EACCES);
	CHECK(!strcmp(fault_disarm(), "eventfd"));
	close(fd);
	fault_arm(1, 0);
	CHECK(fault_disarm() == NULL);
	fd = eventfd(0, 0);
	CHECK(fd >= 0);
	close(fd);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_all_rounds), T(t_mistakes_are_found), T(t_arm));
}
