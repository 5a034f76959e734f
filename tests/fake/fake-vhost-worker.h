/* SPDX-License-Identifier: GPL-2.0-only */
/* Between fake-vhost.c and its worker. */
#ifndef LKVM_TESTS_FAKE_VHOST_WORKER_H
#define LKVM_TESTS_FAKE_VHOST_WORKER_H

struct fake_vring;

/* The thread; @fv is a struct fake_vhost. */
void *fake_worker(void *fv);

/* A backend was attached to the ring; lock held. */
void fake_worker_begin(struct fake_vring *r);

#endif
