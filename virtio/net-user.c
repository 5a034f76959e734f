// SPDX-License-Identifier: GPL-2.0-only
/*
 * The userspace data path of one virtio-net queue pair.
 *
 * Theory of operation: frames go between the rings and the netif without a copy of ours: writev()
 * takes a TX frame out of guest memory, readv() puts an RX frame into it.
 *
 * RX. The size of a frame is not known before it is read. So chains are popped ahead into a pool
 * until the largest frame fits, and the read gets all their buffers, followed by a spill buffer of
 * our own. The chains that the frame filled are pushed, the others wait in the pool for the next
 * one. When too few buffers are there, the end of the frame lands in the spill: a driver with
 * MRG_RXBUF gets it as soon as it posts more, else the frame was too big for its buffers and is
 * dropped. With no buffers at all the netif is not polled for input and the driver is asked to
 * kick. Used elements become visible after the frame's header is complete, several frames at once.
 *
 * TX. A burst ends when the ring is empty, when its budget is used up (the queue then kicks itself,
 * so that other sources get a turn), or when the netif is full: the chain goes back to the ring and
 * the netif is polled for output. A frame that the netif refuses is dropped and counted: the
 * driver's data may be bad, its ring is not. Only what breaks the rules of virtqueues breaks the
 * device.
 *
 * The netif may go away under us (a tap that somebody deletes): said once, then not polled again.
 *
 * All of it runs with the device lock held: uservq and the core take it for kicks, start and stop,
 * nif_event() takes it itself.
 */
#include <unistd.h>

#include "log.h"
#include "loop.h"
#include "virtio/iov.h"
#include "virtio/net.h"

#define BURST_FRAMES 64          /* one burst ends after as many frames */
#define BURST_BYTES  (512 * KiB) /* or bytes */
#define PUBLISH_AT   64          /* used elements that may wait for more */
#define SMALL_READ   4096        /* bytes: enough for all frames but segmented ones */
#define SMALL_ROW    64          /* so many small frames in a row: the next one is small, too */
#define MIN_FRAME    14          /* bytes of an Ethernet header */
#define MAX_PACKET   (NET_HDR_LEN + NET_MAX_FRAME) /* with either header */
#define NUM_BUFFERS  10 /* offset of num_buffers in the header, virtio 1.3 5.1.6 */

struct rx_chain {
	u16 head, nr_iov;
	u32 len; /* bytes; UINT32_MAX for longer ones, no frame is */
};

/* Chains that were popped and not filled yet: a window that moves through two arrays. */
struct rx_pool {
	unsigned first, nr;         /* in chain[] */
	unsigned first_iov, nr_iov; /* in iov[] */
	u64 bytes;
	struct rx_chain chain[2 * VIRTQ_MAX_SIZE];
	struct iovec iov[2 * VIRTQ_MAX_IOV + 1]; /* + the spill */
};

struct net_user {
	struct virtio_device *dev;
	struct netif *nif;
	unsigned queue; /* of the netif; the pair's number */
	struct virtq *rx, *tx;
	struct virtio_backend *be; /* the device's once it is added there */
	struct loop_src src;
	u32 events; /* that src is polled for */
	bool running;
	bool dead;          /* the netif is gone for good */
	bool mrg;           /* MRG_RXBUF negotiated */
	u32 hdr_len;        /* bytes, 12; of a legacy driver without MRG_RXBUF 10 */
	bool rx_starved;    /* waits for the driver to post buffers */
	bool tx_blocked;    /* waits for the netif */
	u32 rx_most;        /* bytes of buffers that the largest frame needs */
	u32 rx_want;        /* how many to have before a read now */
	u32 rx_small;       /* how many frames in a row were small */
	u32 held;           /* bytes of a frame that waits for buffers, header included; 0 = none */
	u32 held_spill;     /* how many of them, its last ones, are in spill[] */
	unsigned rx_pushed; /* used elements that are not visible yet */
	struct net_stats stats;
	struct rx_pool pool;
	struct iovec tx_iov[VIRTQ_MAX_IOV];
	u8 spill[MAX_PACKET];
};

static void watch(struct net_user *nu, u32 events)
{
	if (nu->dead || nu->events == events)
		return;
	nu->events = events;
	loop_mod(nu->dev->m->loop, &nu->src, events);
}

static void nif_died(struct net_user *nu, const char *why)
{
	if (nu->dead)
		return;
	nu->dead = true;
	if (nu->running)
		loop_del(nu->dev->m->loop, &nu->src);
	if (!nu->nif->gone)
		log_warn("net %s: %s; its guest has no network from now on", nu->nif->name, why);
	nu->nif->gone = true;
	/* What waits for room to send is dropped: no event will come that says that there is. */
	if (nu->tx_blocked)
		net_kick_self(nu->tx);
	nu->tx_blocked = false;
}

/* True for errors that mean that no later call can work. */
static bool nif_error_final(long err)
{
	return err == -EBADFD || err == -EBADF || err == -ENODEV || err == -EPIPE ||
	       err == -ECONNRESET;
}

/* --- RX --- */

/* When the next chain may not fit behind the window, moves the window to the arrays' beginnings. */
static void pool_compact(struct rx_pool *p)
{
	if (p->first + p->nr == ARRAY_SIZE(p->chain)) {
		memmove(p->chain, p->chain + p->first, p->nr * sizeof(p->chain[0]));
		p->first = 0;
	}
	if (p->first_iov > VIRTQ_MAX_IOV) {
		memmove(p->iov, p->iov + p->first_iov, p->nr_iov * sizeof(p->iov[0]));
		p->first_iov = 0;
	}
}

/*
 * Pops until the pool has @want bytes. 1 = it has, or it is full; 0 = the ring has no more;
 * -EPROTO.
 */
static int pool_fill(struct net_user *nu, u64 want)
{
	struct rx_pool *p = &nu->pool;

	while (p->bytes < want && p->nr < VIRTQ_MAX_SIZE && p->nr_iov < VIRTQ_MAX_IOV) {
		struct virtq_chain c;
		u32 len;
		int r;

		pool_compact(p);
		r = virtq_pop(nu->rx, &c, p->iov + p->first_iov + p->nr_iov,
			      VIRTQ_MAX_IOV - p->nr_iov);
		if (r == -E2BIG && p->nr)
			return 1; /* its turn comes when the pool is emptier */
		if (r <= 0)
			return r == -E2BIG ? -EPROTO : r;
		if (c.nr_out || !c.in_len)
			return -EPROTO;
		len = (u32)MIN(c.in_len, (u64)UINT32_MAX);
		p->chain[p->first + p->nr++] = (struct rx_chain){ c.head, (u16)c.nr_in, len };
		p->nr_iov += c.nr_in;
		p->bytes += c.in_len;
	}
	return 1;
}

static void pool_forget(struct rx_pool *p)
{
	p->first = p->nr = p->first_iov = p->nr_iov = 0;
	p->bytes = 0;
}

static void rx_publish(struct net_user *nu)
{
	if (!nu->rx_pushed)
		return;
	nu->rx_pushed = 0;
	virtq_publish(nu->rx);
}

/*
 * The first @len bytes of the pool are a packet: pushes the chains they are in. virtio 1.3 5.1.6.4:
 * num_buffers is how many these are, and 1 without MRG_RXBUF; all of them become visible together.
 */
static void rx_deliver(struct net_user *nu, u32 len)
{
	struct rx_pool *p = &nu->pool;
	u16 num_buffers = 0;

	for (u32 left = len; left; num_buffers++)
		left -= MIN(left, p->chain[p->first + num_buffers].len);
	if (nu->hdr_len > NUM_BUFFERS)
		iov_write(p->iov + p->first_iov, p->nr_iov, NUM_BUFFERS, &num_buffers,
			  sizeof(num_buffers));

	for (u32 left = len; left;) {
		const struct rx_chain *c = &p->chain[p->first];
		u32 written = MIN(left, c->len);

		for (unsigned i = 0; i < c->nr_iov; i++)
			p->bytes -= p->iov[p->first_iov + i].iov_len;
		p->first_iov += c->nr_iov;
		p->nr_iov -= c->nr_iov;
		p->first++;
		p->nr--;
		virtq_push(nu->rx, c->head, written);
		nu->rx_pushed++;
		left -= written;
	}
	nu->stats.rx_frames++;
	nu->stats.rx_bytes += len - nu->hdr_len;
	if (nu->rx_pushed >= PUBLISH_AT)
		rx_publish(nu);
}

/*
 * Makes a packet of the held frame when its buffers are there. When the pool is @full, or has all
 * that the driver can have posted, they never will be: dropped.
 */
static void rx_unhold(struct net_user *nu, bool full)
{
	struct rx_pool *p = &nu->pool;

	if (p->bytes >= nu->held) {
		iov_write(p->iov + p->first_iov, p->nr_iov, nu->held - nu->held_spill, nu->spill,
			  nu->held_spill);
		rx_deliver(nu, nu->held);
		nu->held = 0;
	} else if (full || p->nr >= nu->rx->num) {
		nu->stats.rx_dropped++;
		nu->held = 0;
	}
}

/* Gets buffers for the next read. 1 = go on, 0 = wait for a kick, -EPROTO. */
static int rx_prepare(struct net_user *nu)
{
	for (;;) {
		int r = pool_fill(nu, nu->held ? nu->held : nu->rx_want);

		if (r < 0)
			return r;
		if (nu->held) {
			rx_unhold(nu, r == 1);
			if (!nu->held)
				continue;
		} else if (nu->pool.nr) {
			return 1;
		}
		rx_publish(nu); /* the driver refills as it empties the used ring */
		if (!virtq_kicks_on(nu->rx)) {
			nu->rx_starved = true;
			watch(nu, nu->events & ~(u32)EPOLLIN);
			return 0;
		}
		virtq_kicks_off(nu->rx);
	}
}

/*
 * A read pays for each buffer that it is offered. So when all frames are small, fewer are gathered;
 * a large one then costs a copy out of the spill, once.
 */
static void rx_adapt(struct net_user *nu, u32 len)
{
	if (len > SMALL_READ) {
		nu->rx_small = 0;
		nu->rx_want = nu->rx_most;
	} else if (++nu->rx_small == SMALL_ROW) {
		nu->rx_want = MIN(nu->rx_most, (u32)SMALL_READ);
	}
}

/* Reads one frame into the pool. Bytes, or the netif's -errno. */
static long rx_one(struct net_user *nu)
{
	struct rx_pool *p = &nu->pool;
	struct iovec *iov = p->iov + p->first_iov;
	bool spill = p->nr_iov < VIRTQ_MAX_IOV;
	u64 room = p->bytes;
	long n;

	if (spill)
		iov[p->nr_iov] = (struct iovec){ nu->spill, sizeof(nu->spill) };
	n = nu->nif->ops->recv(nu->nif, nu->queue, iov, p->nr_iov + spill);
	if (n < 0)
		return n;
	rx_adapt(nu, (u32)n);
	if (n < nu->hdr_len + MIN_FRAME || n > MAX_PACKET || (!spill && (u64)n >= room)) {
		nu->stats.rx_dropped++;
	} else if ((u64)n <= room) {
		rx_deliver(nu, (u32)n);
	} else if (nu->mrg) {
		nu->held = (u32)n;
		nu->held_spill = (u32)((u64)n - room);
	} else {
		nu->stats.rx_dropped++;
	}
	return n;
}

static int rx_burst(struct net_user *nu)
{
	u64 bytes = 0;
	int r = 1;

	for (int i = 0; i < BURST_FRAMES && bytes < BURST_BYTES; i++) {
		long n;

		r = rx_prepare(nu);
		if (r <= 0)
			break;
		n = rx_one(nu);
		if (n == -EAGAIN)
			break;
		if (n == 0 || nif_error_final(n)) {
			nif_died(nu, n ? strerror((int)-n) : "end of file");
			break;
		}
		if (n < 0)
			nu->stats.rx_dropped++;
		else
			bytes += (u64)n;
	}
	rx_publish(nu);
	return r < 0 ? r : 0;
}

/* --- TX --- */

/* Sends one popped chain. -EAGAIN, -EPROTO, or 0 when it is done with: sent or dropped. */
static int tx_one(struct net_user *nu, const struct virtq_chain *c)
{
	long n;

	if (c->nr_in)
		return -EPROTO;
	if (c->out_len < nu->hdr_len + MIN_FRAME || c->out_len > MAX_PACKET || nu->dead) {
		nu->stats.tx_dropped++;
		return 0;
	}
	n = nu->nif->ops->send(nu->nif, nu->queue, nu->tx_iov, c->nr_out);
	if (n == -EAGAIN)
		return -EAGAIN;
	if (n < 0) {
		nu->stats.tx_dropped++;
		if (nif_error_final(n))
			nif_died(nu, strerror((int)-n));
		return 0;
	}
	nu->stats.tx_frames++;
	nu->stats.tx_bytes += c->out_len - nu->hdr_len;
	return 0;
}

/*
 * Sends what is in the ring, at most *@frames and *@bytes, which count down. 0 = empty, 1 = budget
 * used, -errno.
 */
static int tx_drain(struct net_user *nu, int *frames, s64 *bytes)
{
	bool pushed = false;
	int r;

	for (;;) {
		struct virtq_chain c;

		r = 1;
		if (*frames <= 0 || *bytes <= 0)
			break;
		r = virtq_pop(nu->tx, &c, nu->tx_iov, VIRTQ_MAX_IOV);
		if (r <= 0)
			break;
		r = tx_one(nu, &c);
		if (r == -EAGAIN)
			virtq_unpop(nu->tx, 1);
		if (r < 0)
			break;
		virtq_push(nu->tx, c.head, 0);
		pushed = true;
		(*frames)--;
		*bytes -= (s64)MIN(c.out_len, BURST_BYTES);
	}
	if (pushed)
		virtq_publish(nu->tx);
	return r == -E2BIG ? -EPROTO : r;
}

void net_kick_self(const struct virtq *vq)
{
	u64 one = 1;

	if (write(vq->kick, &one, sizeof(one)) < 0)
		return; /* only a full counter refuses: it is kicked already */
}

static int tx_burst(struct net_user *nu)
{
	int frames = BURST_FRAMES;
	s64 bytes = BURST_BYTES;
	int r;

	do {
		virtq_kicks_off(nu->tx);
		r = tx_drain(nu, &frames, &bytes);
	} while (r == 0 && virtq_kicks_on(nu->tx));

	if (r == -EAGAIN) {
		nu->tx_blocked = true;
		watch(nu, nu->events | EPOLLOUT);
		return 0;
	}
	if (r == 1)
		net_kick_self(nu->tx);
	return r < 0 ? r : 0;
}

/* --- events --- */

int net_user_handle(struct net_user *nu, struct virtq *vq)
{
	if (vq == nu->tx)
		return nu->tx_blocked ? 0 : tx_burst(nu);
	if (!nu->rx_starved)
		return 0;
	nu->rx_starved = false;
	virtq_kicks_off(nu->rx);
	watch(nu, nu->events | EPOLLIN);
	return nu->dead ? 0 : rx_burst(nu);
}

static void nif_event(struct loop_src *src, u32 events)
{
	struct net_user *nu = container_of(src, struct net_user, src);
	struct virtio_device *dev = nu->dev;
	int r = 0;

	pthread_mutex_lock(&dev->lock);
	if (!nu->running || nu->dead) {
		/* it stopped while this event waited for the lock */
	} else if (events & (EPOLLERR | EPOLLHUP)) {
		nif_died(nu, "the interface is gone");
	} else {
		if ((events & EPOLLOUT) && nu->tx_blocked) {
			nu->tx_blocked = false;
			watch(nu, nu->events & ~(u32)EPOLLOUT);
			r = tx_burst(nu);
		}
		if ((events & EPOLLIN) && !nu->rx_starved && r == 0)
			r = rx_burst(nu);
	}
	if (r < 0)
		virtio_broken(dev, "a queue: the driver broke a rule of the ring");
	pthread_mutex_unlock(&dev->lock);
}

/* --- start and stop --- */

/* Enough buffers for the largest frame that may come; without MRG_RXBUF a frame gets one chain. */
static u32 rx_most(const struct net_user *nu)
{
	const struct virtio_device *dev = nu->dev;

	if (!nu->mrg)
		return 1;
	if (virtio_has(dev, NET_B_GUEST_TSO4) || virtio_has(dev, NET_B_GUEST_TSO6) ||
	    virtio_has(dev, NET_B_GUEST_USO4) || virtio_has(dev, NET_B_GUEST_USO6))
		return MAX_PACKET;
	return nu->hdr_len + MIN_FRAME + 4 + (nu->nif->mtu ? nu->nif->mtu : 1500);
}

static int net_user_start(void *ctx)
{
	struct net_user *nu = ctx;
	int r;

	nu->mrg = virtio_has(nu->dev, NET_B_MRG_RXBUF);
	nu->hdr_len = net_hdr_len(nu->dev);
	nu->rx_want = nu->rx_most = rx_most(nu);
	nu->rx_small = 0;
	nu->rx_starved = nu->tx_blocked = false;
	nu->events = virtq_mapped(nu->rx) ? EPOLLIN : 0;
	if (virtq_mapped(nu->rx))
		virtq_kicks_off(nu->rx);
	if (!nu->dead) {
		r = loop_add(nu->dev->m->loop, &nu->src, nu->events);
		if (r < 0) {
			log_err("net %s: cannot poll it: %s", nu->nif->name, strerror(-r));
			return r;
		}
	}
	nu->running = true;
	return 0;
}

/* The chains in the pool go back to the ring; a frame that was held for want of buffers is lost. */
static void net_user_stop(void *ctx)
{
	struct net_user *nu = ctx;

	if (!nu->running)
		return;
	nu->running = false;
	if (!nu->dead)
		loop_del(nu->dev->m->loop, &nu->src);
	if (nu->held)
		nu->stats.rx_dropped++;
	nu->held = 0;
	if (virtq_mapped(nu->rx)) {
		rx_publish(nu);
		virtq_unpop(nu->rx, nu->pool.nr);
	}
	nu->rx_pushed = 0;
	pool_forget(&nu->pool);
}

struct net_user *net_user_new(struct virtio_device *dev, struct netif *nif, unsigned pair)
{
	static const struct uservq_hooks hooks = { .start = net_user_start, .stop = net_user_stop };
	struct net_user *nu = calloc(1, sizeof(*nu));

	if (!nu)
		return NULL;
	nu->dev = dev;
	nu->nif = nif;
	nu->queue = pair;
	nu->rx = &dev->vq[2 * pair];
	nu->tx = &dev->vq[2 * pair + 1];
	nu->src = (struct loop_src){ .fd = nif->fd[pair], .fn = nif_event, .name = "netif" };
	nu->be = uservq_new(dev, (u16)(2 * pair), 2, &hooks, nu);
	if (!nu->be) {
		free(nu);
		return NULL;
	}
	return nu;
}

void net_user_free(struct net_user *nu)
{
	free(nu);
}

struct virtio_backend *net_user_backend(struct net_user *nu)
{
	return nu->be;
}

const struct net_stats *net_user_stats(const struct net_user *nu)
{
	return &nu->stats;
}
