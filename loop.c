// SPDX-License-Identifier: GPL-2.0-only
/* The event loop. Theory of operation: include/loop.h. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"
#include "loop.h"

int loop_init(struct loop *loop)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int err;

	memset(loop, 0, sizeof(*loop));
	loop->stopfd = -1;
	loop->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epfd >= 0)
		loop->stopfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->stopfd >= 0 && epoll_ctl(loop->epfd, EPOLL_CTL_ADD, loop->stopfd, &ev) == 0) {
		pthread_mutex_init(&loop->lock, NULL);
		return 0;
	}
	err = -errno;
	log_err("event loop: %s", strerror(-err));
	if (loop->stopfd >= 0)
		close(loop->stopfd);
	if (loop->epfd >= 0)
		close(loop->epfd);
	loop->epfd = loop->stopfd = -1;
	return err;
}

void loop_destroy(struct loop *loop)
{
	if (loop->epfd < 0)
		return;
	close(loop->stopfd);
	close(loop->epfd);
	pthread_mutex_destroy(&loop->lock);
	loop->epfd = loop->stopfd = -1;
}

int loop_add(struct loop *loop, struct loop_src *src, u32 events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	return epoll_ctl(loop->epfd, EPOLL_CTL_ADD, src->fd, &ev) ? -errno : 0;
}

int loop_mod(struct loop *loop, struct loop_src *src, u32 events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	return epoll_ctl(loop->epfd, EPOLL_CTL_MOD, src->fd, &ev) ? -errno : 0;
}

void loop_del(struct loop *loop, struct loop_src *src)
{
	epoll_ctl(loop->epfd, EPOLL_CTL_DEL, src->fd, NULL);
	pthread_mutex_lock(&loop->lock);
	for (int i = 0; i < loop->batch_nr; i++) {
		if (loop->batch[i].data.ptr == src)
			loop->batch[i].data.ptr = NULL;
	}
	pthread_mutex_unlock(&loop->lock);
}

static struct loop_src *batch_take(struct loop *loop, int i, u32 *events)
{
	struct loop_src *src;

	pthread_mutex_lock(&loop->lock);
	src = loop->batch[i].data.ptr;
	*events = loop->batch[i].events;
	loop->batch[i].data.ptr = NULL;
	pthread_mutex_unlock(&loop->lock);
	return src;
}

int loop_once(struct loop *loop, int ms)
{
	struct epoll_event ev[LOOP_BATCH];
	int n = epoll_wait(loop->epfd, ev, LOOP_BATCH, ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n > 0)
		__atomic_fetch_add(&loop->wakeups, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&loop->lock);
	memcpy(loop->batch, ev, (size_t)n * sizeof(ev[0]));
	loop->batch_nr = n;
	pthread_mutex_unlock(&loop->lock);
	for (int i = 0; i < n; i++) {
		u32 events;
		struct loop_src *src = batch_take(loop, i, &events);

		if (src)
			src->fn(src, events);
	}
	return n;
}

int loop_run(struct loop *loop)
{
	while (!__atomic_load_n(&loop->stop, __ATOMIC_ACQUIRE)) {
		int n = loop_once(loop, -1);

		if (n < 0) {
			log_err("event loop: %s", strerror(-n));
			return n;
		}
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	u64 one = 1;

	__atomic_store_n(&loop->stop, true, __ATOMIC_RELEASE);
	if (write(loop->stopfd, &one, sizeof(one)) < 0)
		log_debug("loop: stop: %s", strerror(errno)); /* full: it is awake already */
}

void loop_restart(struct loop *loop)
{
	u64 n;

	if (read(loop->stopfd, &n, sizeof(n)) < 0)
		log_debug("loop: restart: %s", strerror(errno)); /* nobody had stopped it */
	__atomic_store_n(&loop->stop, false, __ATOMIC_RELEASE);
}

u64 loop_wakeups(const struct loop *loop)
{
	return __atomic_load_n(&loop->wakeups, __ATOMIC_RELAXED);
}
