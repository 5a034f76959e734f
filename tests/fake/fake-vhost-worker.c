// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the vhost worker of the kernel does, in a thread: frames from ring 1 to the backend, and
 * from the backend to ring 0. Written from the specification, not from virtq.c; simple, not fast.
 */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake-vhost-worker.h"
#include "fake-vhost.h"
#include "virtio/net.h"

enum { RX, TX };
#define MAX_IOV 1024

struct chain {
	u16 head;
	unsigned out, in; /* buffers in iov[], readable ones first */
	u64 out_len, in_len;
	struct iovec *iov;
};

static bool has(const struct fake_vhost *fv, unsigned bit)
{
	return fv->features >> bit & 1;
}

/* --- the ring --- */

static bool add_pieces(const struct fake_vhost *fv, u64 gpa, u64 len, struct iovec *iov,
		       unsigned *n)
{
	while (len) {
		const struct mem_region *r = NULL;
		u64 here;

		for (unsigned i = 0; i < fv->nr_mem && !r; i++)
			if (gpa >= fv->mem[i].gpa && gpa - fv->mem[i].gpa < fv->mem[i].size)
				r = &fv->mem[i];
		if (!r || *n >= MAX_IOV)
			return false;
		here = MIN(len, r->size - (gpa - r->gpa));
		iov[(*n)++] = (struct iovec){ (char *)r->hva + (gpa - r->gpa), here };
		gpa += here;
		len -= here;
	}
	return true;
}

static bool read_desc(const struct fake_vhost *fv, u64 table, const struct vring_desc *ring, u32 i,
		      struct vring_desc *d)
{
	struct iovec iov[4];
	unsigned n = 0;
	size_t done = 0;

	if (ring) {
		d->addr = READ_ONCE(ring[i].addr);
		d->len = READ_ONCE(ring[i].len);
		d->flags = READ_ONCE(ring[i].flags);
		d->next = READ_ONCE(ring[i].next);
		return true;
	}
	if (!add_pieces(fv, table + 16ULL * i, 16, iov, &n))
		return false;
	for (unsigned p = 0; p < n; done += iov[p++].iov_len)
		memcpy((char *)d + done, iov[p].iov_base, iov[p].iov_len);
	return true;
}

static bool walk(const struct fake_vhost *fv, struct fake_vring *r, struct chain *c)
{
	const struct vring_desc *ring = r->desc;
	u32 entries = r->num, i = c->head, steps = 0;
	u64 table = 0;

	for (;;) {
		struct vring_desc d;
		unsigned n = c->out + c->in;

		if (i >= entries || steps++ >= entries || !read_desc(fv, table, ring, i, &d))
			return false;
		if (d.flags & VRING_DESC_F_INDIRECT) {
			if (!ring || !has(fv, VIRTIO_B_INDIRECT_DESC) || d.len % 16 || !d.len ||
			    d.len / 16 > 65536 || (d.flags & VRING_DESC_F_NEXT))
				return false;
			table = d.addr;
			entries = d.len / 16;
			ring = NULL;
			i = steps = 0;
			continue;
		}
		if (!(d.flags & VRING_DESC_F_WRITE) && c->in)
			return false;
		if (!add_pieces(fv, d.addr, d.len, c->iov, &n))
			return false;
		if (d.flags & VRING_DESC_F_WRITE) {
			c->in = n - c->out;
			c->in_len += d.len;
		} else {
			c->out = n;
			c->out_len += d.len;
		}
		if (!(d.flags & VRING_DESC_F_NEXT))
			return true;
		i = d.next;
	}
}

/* 1, 0 = none, -1 = malformed. */
static int pop(struct fake_vhost *fv, struct fake_vring *r, struct chain *c)
{
	u16 avail = __atomic_load_n(&r->avail->idx, __ATOMIC_ACQUIRE);

	r->avail_idx = avail;
	c->out = c->in = 0;
	c->out_len = c->in_len = 0;
	if (avail == r->last_avail)
		return 0;
	if ((u16)(avail - r->last_avail) > r->num)
		return -1;
	c->head = __atomic_load_n(&r->avail->ring[r->last_avail % r->num], __ATOMIC_RELAXED);
	if (c->head >= r->num || !walk(fv, r, c))
		return -1;
	r->last_avail++;
	return 1;
}

static void put_used(struct fake_vring *r, unsigned ahead, u16 head, u32 len)
{
	struct vring_used_elem *e = &r->used->ring[(u16)(r->last_used + ahead) % r->num];

	__atomic_store_n(&e->id, head, __ATOMIC_RELAXED);
	__atomic_store_n(&e->len, len, __ATOMIC_RELAXED);
}

static void publish(struct fake_vhost *fv, struct fake_vring *r, unsigned n)
{
	u16 old = r->last_used, now = (u16)(old + n), event;
	bool tell;
	u64 one = 1;

	r->last_used = now;
	__atomic_store_n(&r->used->idx, now, __ATOMIC_RELEASE);
	__sync_synchronize();
	if (has(fv, VIRTIO_B_EVENT_IDX)) {
		event = __atomic_load_n(&r->avail->ring[r->num], __ATOMIC_RELAXED);
		tell = !r->signalled_valid || (u16)(now - event - 1) < (u16)(now - old);
		r->signalled_valid = true;
	} else {
		tell = !(__atomic_load_n(&r->avail->flags, __ATOMIC_RELAXED) & 1);
	}
	if (tell && r->call >= 0) {
		r->nr_signals++;
		if (write(r->call, &one, sizeof(one)) < 0)
			abort();
	}
}

static void kicks(struct fake_vhost *fv, struct fake_vring *r, bool on)
{
	if (!has(fv, VIRTIO_B_EVENT_IDX))
		__atomic_store_n(&r->used->flags, on ? 0 : 1, __ATOMIC_RELAXED);
	else if (on)
		__atomic_store_n((u16 *)(void *)&r->used->ring[r->num], r->avail_idx,
				 __ATOMIC_RELAXED);
	__sync_synchronize();
}

/* Did the driver add anything since the last look? */
static bool more(const struct fake_vring *r)
{
	return __atomic_load_n(&r->avail->idx, __ATOMIC_RELAXED) != r->avail_idx;
}

static void give_up(struct fake_vring *r)
{
	u64 one = 1;

	r->dead = true;
	if (r->err >= 0 && write(r->err, &one, sizeof(one)) < 0)
		abort();
}

/* --- frames --- */

/* As the kernel's vhost-net has it. */
static u64 hdr_len(const struct fake_vhost *fv)
{
	return has(fv, NET_B_MRG_RXBUF) || has(fv, VIRTIO_B_VERSION_1) ? 12 : 10;
}

static void run_tx(struct fake_vhost *fv, struct fake_vring *r)
{
	struct iovec iov[MAX_IOV];
	struct chain c = { .iov = iov };
	int got;

	r->waiting = false;
	do {
		kicks(fv, r, false);
		while ((got = pop(fv, r, &c)) == 1) {
			struct msghdr msg = { .msg_iov = iov, .msg_iovlen = c.out };

			if (c.in) {
				give_up(r);
				return;
			}
			/* what a tap would answer EINVAL to is dropped */
			if (c.out_len >= hdr_len(fv) + 14 &&
			    c.out_len <= hdr_len(fv) + NET_MAX_FRAME &&
			    sendmsg(fv->backend, &msg, MSG_NOSIGNAL) < 0 && errno == EAGAIN) {
				r->last_avail--;
				r->waiting = true;
				return;
			}
			put_used(r, 0, c.head, 0);
			publish(fv, r, 1);
		}
		kicks(fv, r, true);
	} while (got == 0 && more(r));
	if (got < 0)
		give_up(r);
}

/*
 * Chains for a packet of @len bytes. Their number, 0 = not enough, -1 = malformed, -2 = it can
 * never fit.
 */
static int get_buffers(struct fake_vhost *fv, struct fake_vring *r, u64 len, struct iovec *iov,
		       unsigned *nr_iov)
{
	bool mrg = has(fv, NET_B_MRG_RXBUF);
	u64 have = 0;
	int n = 0;

	*nr_iov = 0;
	while (have < len) {
		struct chain c = { .iov = iov + *nr_iov };
		int got = n && !mrg ? -2 : pop(fv, r, &c);

		if (got <= 0 || c.out || !c.in) {
			r->last_avail -= (u16)(n + (got == 1));
			return got == 1 ? -1 : got;
		}
		put_used(r, (unsigned)n++, c.head, (u32)MIN(c.in_len, len - have));
		*nr_iov += c.in;
		have += c.in_len;
		if (*nr_iov > MAX_IOV / 2 && have < len) {
			r->last_avail -= (u16)n;
			return -2;
		}
	}
	return n;
}

static void set_num_buffers(const struct iovec *iov, unsigned nr, u16 n)
{
	const u8 *from = (const u8 *)&n;
	size_t at = 10;

	for (unsigned i = 0; i < nr; i++) {
		for (; at < iov[i].iov_len && from < (const u8 *)&n + 2; at++)
			((u8 *)iov[i].iov_base)[at] = *from++;
		at -= MIN(at, iov[i].iov_len);
	}
}

/* One frame. False = the ring or the backend has none. */
static bool rx_frame(struct fake_vhost *fv, struct fake_vring *r)
{
	struct iovec iov[2 * MAX_IOV];
	ssize_t len = recv(fv->backend, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	unsigned nr_iov;
	int n;

	r->waiting = len == 0; /* the peer is gone: until the next kick */
	if (len <= 0)
		return false;
	n = get_buffers(fv, r, (u64)len, iov, &nr_iov);
	if (n == 0) {
		kicks(fv, r, true);
		if (more(r))
			n = get_buffers(fv, r, (u64)len, iov, &nr_iov);
	}
	if (n == -1)
		give_up(r);
	else if (n == -2)
		return recv(fv->backend, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) >= 0;
	r->waiting = n == 0;
	if (n <= 0)
		return false;
	kicks(fv, r, false);
	if (readv(fv->backend, iov, (int)nr_iov) != len)
		abort(); /* nobody else reads there */
	if (hdr_len(fv) == 12)
		set_num_buffers(iov, nr_iov, has(fv, NET_B_MRG_RXBUF) ? (u16)n : 1);
	publish(fv, r, (unsigned)n);
	return true;
}

/* --- the thread --- */

void fake_worker_begin(struct fake_vring *r)
{
	__atomic_store_n(&r->used->flags, 0, __ATOMIC_RELAXED);
}

static void take_kick(struct fake_vring *r)
{
	u64 n;

	if (r->kick >= 0 && read(r->kick, &n, sizeof(n)) == sizeof(n)) {
		r->nr_kicks++;
		r->waiting = false;
	}
}

static unsigned what_to_poll(struct fake_vhost *fv, struct pollfd *p)
{
	struct fake_vring *rx = &fv->ring[RX], *tx = &fv->ring[TX];
	unsigned n = 0;
	short backend = 0;

	p[n++] = (struct pollfd){ .fd = fv->wake, .events = POLLIN };
	for (unsigned i = 0; i < 2; i++)
		if (fv->ring[i].enabled && fv->ring[i].kick >= 0)
			p[n++] = (struct pollfd){ .fd = fv->ring[i].kick, .events = POLLIN };
	if (rx->enabled && !rx->dead && !rx->waiting)
		backend |= POLLIN;
	if (tx->enabled && !tx->dead && tx->waiting)
		backend |= POLLOUT;
	if (backend)
		p[n++] = (struct pollfd){ .fd = fv->backend, .events = backend };
	return n;
}

static void work(struct fake_vhost *fv)
{
	struct fake_vring *rx = &fv->ring[RX], *tx = &fv->ring[TX];

	for (unsigned i = 0; i < 2; i++)
		if (fv->ring[i].enabled)
			take_kick(&fv->ring[i]);
	if (tx->enabled && !tx->dead)
		run_tx(fv, tx);
	for (int i = 0; i < 64 && rx->enabled && !rx->dead; i++)
		if (!rx_frame(fv, rx))
			break;
}

void *fake_worker(void *arg)
{
	struct fake_vhost *fv = arg;
	struct pollfd p[4];
	bool quit;
	u64 n;

	do {
		unsigned nr;

		pthread_mutex_lock(&fv->lock);
		nr = what_to_poll(fv, p);
		pthread_mutex_unlock(&fv->lock);
		if (poll(p, nr, -1) < 0 && errno != EINTR)
			abort();
		if ((p[0].revents & POLLIN) && read(fv->wake, &n, sizeof(n)) < 0)
			abort();
		pthread_mutex_lock(&fv->lock);
		work(fv);
		quit = fv->quit;
		pthread_mutex_unlock(&fv->lock);
	} while (!quit);
	return NULL;
}
