/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event loop: one epoll set, run by the main thread. A source is embedded in its owner
 * (container_of in the callback), so there is no allocation and no registry.
 *
 * Theory of operation: loop_add/mod/del may be called from any thread. loop_del() makes sure that
 * no later callback runs for the source: it leaves the set, and the batch being dispatched forgets
 * it. From another thread there is one exception: a callback that already runs, or whose event was
 * fetched this very moment. That is the owner's to fence: the callback takes the owner's lock and
 * looks at the owner's state, so a source's memory lives as long as its owner.
 * Sources are level-triggered. Rank 1.
 */
#ifndef LKVM_LOOP_H
#define LKVM_LOOP_H

#include <pthread.h>
#include <sys/epoll.h>
#include "types.h"

#define LOOP_BATCH 16

struct loop_src {
	int fd;
	void (*fn)(struct loop_src *src, u32 events);
	const char *name; /* for messages and statistics */
};

struct loop {
	int epfd, stopfd;
	pthread_mutex_t lock; /* guards batch */
	struct epoll_event batch[LOOP_BATCH];
	int batch_nr;
	u64 wakeups; /* returns of epoll_wait with events; atomic */
	bool stop;   /* atomic */
};

int loop_init(struct loop *loop) __must_check;
void loop_destroy(struct loop *loop);

/*
 * @events: EPOLLIN, EPOLLOUT or both. Errors of epoll_ctl (-EPERM: a regular file cannot be
 * polled).
 */
int loop_add(struct loop *loop, struct loop_src *src, u32 events) __must_check;
int loop_mod(struct loop *loop, struct loop_src *src, u32 events);
void loop_del(struct loop *loop, struct loop_src *src);

/* Waits at most @ms (-1 = for ever) and dispatches one batch. Number of events, or -errno. */
int loop_once(struct loop *loop, int ms);

/* Dispatches until loop_stop(). 0, or the error of epoll_wait. */
int loop_run(struct loop *loop);

/* Any thread, also before loop_run(): which then returns at once. */
void loop_stop(struct loop *loop);

/* After loop_run() ended: makes another one possible. */
void loop_restart(struct loop *loop);

u64 loop_wakeups(const struct loop *loop);

#endif
