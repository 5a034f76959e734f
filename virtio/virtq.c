// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device side of a split virtqueue (virtio 1.3 2.7).
 *
 * Theory of operation: the ring lies in memory that the guest writes while we read. Each field is
 * loaded once, atomically, into a local, and only the local is checked and used; so a guest that
 * flips a length between two values gets one of the two, never a mixture of check and use. The
 * shared fields that need an order between them:
 *
 *	avail->idx  acquire: the entries and descriptors that it announces are read after it
 *	used->idx   release: the used elements (and the buffers) are written before it
 *	full fence  between a store that the driver looks at before it sleeps and our next look at
 *	            what it stored before that: used->idx / used_event in virtq_publish(),
 *	            avail_event / avail->idx in virtq_kicks_on(). Release and acquire do not order a
 *	            store before a later load, not even on x86.
 *
 * virtq_pop() walks one chain: first in the ring's own table, then, when a descriptor says so, in
 * one indirect table, which ends the chain. A walk takes at most as many steps as its table has
 * entries, so loops end. What a chain is refused for is listed at take_buffer() and
 * enter_indirect(). Nothing here takes a lock: the device's is held, or the caller is the only one.
 */
#include <unistd.h>

#include "mem.h"
#include "virtio/virtq.h"

#define CHAIN_MAX_BYTES (4 * GiB) /* virtio 1.3 2.7.5.2 */
#define INDIRECT_MAX    65536     /* entries that a 16-bit next can reach */

/* Relaxed loads and stores of what the guest may access at the same time. */
#define ring_load(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define ring_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/* Where a chain is being read, and how far we got. */
struct walk {
	struct virtq *vq;
	u64 table_gpa; /* the indirect table's address, while in one */
	bool in_indirect;
	u32 entries; /* in the current table */
	u32 ttl;     /* descriptors that it may still yield */
	struct virtq_chain *chain;
	struct iovec *iov;
	unsigned max_iov;
};

/* Store before, load after; see above. */
static void full_fence(void)
{
	__sync_synchronize();
}

/* virtio 1.3 2.7.7.2: the event fields lie behind the rings, and only exist with EVENT_IDX. */
static const u16 *used_event(const struct virtq *vq)
{
	return &vq->avail->ring[vq->num];
}

static u16 *avail_event(const struct virtq *vq)
{
	return (u16 *)(void *)&vq->used->ring[vq->num];
}

int virtq_map(struct virtq *vq, const struct guest_mem *mem, bool event_idx, bool indirect)
{
	u64 n = vq->num, event = event_idx ? sizeof(u16) : 0;
	u64 avail_len = sizeof(struct vring_avail) + n * sizeof(u16) + event;
	u64 used_len = sizeof(struct vring_used) + n * sizeof(struct vring_used_elem) + event;

	virtq_unmap(vq);
	if (!n || (n & (n - 1)) || n > vq->num_max)
		return -EINVAL;
	if (!IS_ALIGNED(vq->desc_gpa, 16) || !IS_ALIGNED(vq->avail_gpa, 2) ||
	    !IS_ALIGNED(vq->used_gpa, 4))
		return -EINVAL;
	vq->desc = mem_ptr(mem, vq->desc_gpa, n * sizeof(struct vring_desc));
	vq->avail = mem_ptr(mem, vq->avail_gpa, avail_len);
	vq->used = mem_ptr(mem, vq->used_gpa, used_len);
	if (!vq->desc || !vq->avail || !vq->used) {
		virtq_unmap(vq);
		return -EFAULT;
	}
	vq->mem = mem;
	vq->event_idx = event_idx;
	vq->indirect = indirect;
	vq->signalled = vq->next_used;
	vq->signalled_valid = false;
	return 0;
}

bool virtq_mapped(const struct virtq *vq)
{
	return vq->mem != NULL;
}

void virtq_unmap(struct virtq *vq)
{
	vq->mem = NULL;
	vq->desc = NULL;
	vq->avail = NULL;
	vq->used = NULL;
}

void virtq_reset(struct virtq *vq)
{
	virtq_unmap(vq);
	vq->ready = false;
	vq->num = vq->num_max;
	vq->desc_gpa = vq->avail_gpa = vq->used_gpa = 0;
	vq->event_idx = vq->indirect = false;
	vq->next_avail = vq->next_used = vq->signalled = 0;
	vq->signalled_valid = false;
}

void virtq_resume(struct virtq *vq)
{
	vq->next_used = ring_load(&vq->used->idx);
	vq->signalled = vq->next_used;
	vq->signalled_valid = false;
}

/*
 * A private copy of the aligned descriptor at @p. Two loads: the fields of one half belong
 * together.
 */
static struct vring_desc load_desc(const void *p)
{
	const u64 *half = p;
	u64 addr = ring_load(&half[0]), rest = ring_load(&half[1]);

	return (struct vring_desc){ .addr = addr,
				    .len = (u32)rest,
				    .flags = (u16)(rest >> 32),
				    .next = (u16)(rest >> 48) };
}

/*
 * A private copy of entry @i of an indirect table, which may have any alignment (virtio 1.3
 * 2.7.5.3) and may cross from one memory region into the next. -EPROTO when it is not in memory.
 */
static int load_indirect(const struct walk *w, u32 i, struct vring_desc *desc)
{
	u64 gpa = w->table_gpa + i * sizeof(*desc), got = sizeof(*desc);
	u8 *to = (u8 *)desc;
	void *p = mem_span(w->vq->mem, gpa, &got);

	if (p && got == sizeof(*desc) && IS_ALIGNED((uintptr_t)p, sizeof(u64))) {
		*desc = load_desc(p);
		return 0;
	}
	for (u64 done = 0; done < sizeof(*desc); done += got) {
		got = sizeof(*desc) - done;
		p = mem_span(w->vq->mem, gpa + done, &got);
		if (!p)
			return -EPROTO;
		memcpy(to + done, p, got);
	}
	/*
	 * From here on the compiler cannot replace a use of the copy by a second look at the table.
	 */
	__asm__ volatile("" : "+m"(*desc) : : "memory");
	return 0;
}

/* The next head that the driver made available, unchecked: 1 and *@head, 0 = none, -EPROTO. */
static int next_head(struct virtq *vq, u16 *head)
{
	u16 idx = __atomic_load_n(&vq->avail->idx, __ATOMIC_ACQUIRE);

	if (idx == vq->next_avail)
		return 0;
	if ((u16)(idx - vq->next_avail) > vq->num)
		return -EPROTO; /* more than fit: it jumped, or went back */
	*head = ring_load(&vq->avail->ring[vq->next_avail & (vq->num - 1)]);
	return 1;
}

/* Adds @len bytes at @gpa to the chain's iovecs, in as many pieces as memory has there. */
static int add_buffer(struct walk *w, u64 gpa, u64 len, unsigned *nr)
{
	struct virtq_chain *c = w->chain;

	if (gpa + len < gpa)
		return -EPROTO;
	while (len) {
		u64 got = len;
		void *p = mem_span(w->vq->mem, gpa, &got);

		if (!p)
			return -EPROTO;
		if (c->nr_out + c->nr_in == w->max_iov)
			return -E2BIG;
		w->iov[c->nr_out + c->nr_in] = (struct iovec){ .iov_base = p, .iov_len = got };
		++*nr;
		gpa += got;
		len -= got;
	}
	return 0;
}

/*
 * Takes one buffer descriptor into the chain. Writable ones come last (virtio 1.3 2.7.4.2), all
 * together have at most 4 GiB (2.7.5.2). A zero-length one is empty wherever it points, as for
 * Linux's vhost: the specification does not forbid it in a split ring.
 */
static int take_buffer(struct walk *w, const struct vring_desc *d, bool *writable)
{
	struct virtq_chain *c = w->chain;
	int r;

	if (d->flags & VRING_DESC_F_WRITE) {
		*writable = true;
		r = add_buffer(w, d->addr, d->len, &c->nr_in);
		c->in_len += d->len;
	} else if (*writable) {
		return -EPROTO;
	} else {
		r = add_buffer(w, d->addr, d->len, &c->nr_out);
		c->out_len += d->len;
	}
	if (!r && c->in_len + c->out_len > CHAIN_MAX_BYTES)
		r = -EPROTO;
	return r;
}

/*
 * Goes on in the indirect table that @d names, virtio 1.3 2.7.5.3: refused unless negotiated,
 * inside another one, with NEXT, or with a length that is no whole, positive number of entries.
 * WRITE means nothing.
 */
static int enter_indirect(struct walk *w, const struct vring_desc *d)
{
	if (!w->vq->indirect || w->in_indirect || (d->flags & VRING_DESC_F_NEXT))
		return -EPROTO;
	if (d->len % sizeof(*d) || d->len / sizeof(*d) > INDIRECT_MAX)
		return -EPROTO;
	if (d->addr + d->len < d->addr)
		return -EPROTO;
	w->in_indirect = true;
	w->table_gpa = d->addr;
	w->entries = w->ttl = d->len / sizeof(*d); /* 0 entries: the walk finds none */
	return 0;
}

/* Walks the chain that begins at @head, wherever that points. 0, -EPROTO or -E2BIG. */
static int walk_chain(struct walk *w, u16 head)
{
	bool writable = false;
	u32 i = head;

	for (;;) {
		struct vring_desc d;
		int r = 0;

		if (i >= w->entries || !w->ttl--)
			return -EPROTO;
		if (w->in_indirect)
			r = load_indirect(w, i, &d);
		else
			d = load_desc(&w->vq->desc[i]);
		if (r)
			return r;
		if (d.flags & VRING_DESC_F_INDIRECT) {
			r = enter_indirect(w, &d);
			i = 0;
		} else {
			r = take_buffer(w, &d, &writable);
			i = d.next;
			if (!r && !(d.flags & VRING_DESC_F_NEXT))
				return 0;
		}
		if (r)
			return r;
	}
}

int virtq_pop(struct virtq *vq, struct virtq_chain *chain, struct iovec *iov, unsigned max_iov)
{
	struct walk w = { .vq = vq,
			  .entries = vq->num,
			  .ttl = vq->num,
			  .chain = chain,
			  .iov = iov,
			  .max_iov = max_iov };
	u16 head;
	int r = next_head(vq, &head);

	if (r != 1)
		return r;
	*chain = (struct virtq_chain){ .head = head };
	r = walk_chain(&w, head);
	if (r)
		return r;
	vq->next_avail++;
	vq->nr_chains++;
	return 1;
}

void virtq_unpop(struct virtq *vq, unsigned n)
{
	vq->next_avail -= n;
	vq->nr_chains -= n;
}

void virtq_push(struct virtq *vq, u16 head, u32 written)
{
	struct vring_used_elem *e = &vq->used->ring[vq->next_used++ & (vq->num - 1)];

	ring_store(&e->id, (u32)head);
	ring_store(&e->len, written);
}

/*
 * virtio 1.3 2.7.7 and 2.7.10: did the used index, now @next, pass what the driver asked to be told
 * about?
 */
static bool driver_wants_signal(struct virtq *vq, u16 old, u16 next)
{
	bool valid = vq->signalled_valid;

	vq->signalled_valid = true;
	if (!vq->event_idx)
		return !(ring_load(&vq->avail->flags) & VRING_AVAIL_F_NO_INTERRUPT);
	/* Before the first signal we do not know what the last backend already told: tell. */
	return !valid || (u16)(next - ring_load(used_event(vq)) - 1) < (u16)(next - old);
}

void virtq_publish(struct virtq *vq)
{
	u16 old = vq->signalled, next = vq->next_used;

	if (old == next)
		return;
	__atomic_store_n(&vq->used->idx, next, __ATOMIC_RELEASE);
	full_fence();
	vq->signalled = next;
	if (driver_wants_signal(vq, old, next))
		virtq_signal(vq);
}

/*
 * With EVENT_IDX there is nothing to do: the driver kicks once past avail_event, which we leave
 * behind.
 */
void virtq_kicks_off(struct virtq *vq)
{
	if (!vq->event_idx)
		ring_store(&vq->used->flags, VRING_USED_F_NO_NOTIFY);
}

bool virtq_kicks_on(struct virtq *vq)
{
	if (vq->event_idx)
		ring_store(avail_event(vq), vq->next_avail);
	else
		ring_store(&vq->used->flags, 0);
	full_fence();
	return ring_load(&vq->avail->idx) != vq->next_avail;
}

void virtq_signal(struct virtq *vq)
{
	u64 one = 1;

	vq->nr_signals++;
	/* EAGAIN means that 2^64 - 2 signals are pending: one more says nothing new. */
	if (vq->call >= 0 && write(vq->call, &one, sizeof(one)) < 0)
		return;
}
