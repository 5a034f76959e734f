// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver's side of a split virtqueue (virtio 1.3 2.7), for fake-driver.h.
 *
 * Theory of operation: written against the specification and not against virtq.c, so that a mistake
 * is not made twice. Free descriptors, and those of a chain in flight, are linked in private memory
 * (next_free), since a hostile test scribbles over the real ones. The mirror image of virtq.c's
 * orders: descriptors, then avail->idx (release); used->idx (acquire), then the elements; a full
 * fence between a store and the look that decides on a doorbell or on sleeping.
 */
#include "fake-driver.h"

#define load(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

static u64 ring_mem(struct fake_driver *drv, u64 len, u64 align)
{
	if (drv->opts.rings_high)
		return fake_alloc_high(drv, len, align);
	return fake_alloc(drv, len, align);
}

/* Memory for a ring of vq->size, taken once and cleared each time. */
static void ring_make(struct fake_driver *drv, struct fake_vq *vq)
{
	u64 n = vq->size, avail_len = 6 + 2 * n, used_len = 6 + 8 * n;

	if (!vq->desc_gpa && drv->tp->legacy) {
		/* virtio 1.3 2.7.2: one piece, the used ring on the next page */
		u64 used_off = ALIGN_UP(16 * n + avail_len, 4096ULL);

		vq->desc_gpa = ring_mem(drv, used_off + used_len, 4096);
		vq->avail_gpa = vq->desc_gpa + 16 * n;
		vq->used_gpa = vq->desc_gpa + used_off;
		vq->indirect_gpa = fake_alloc_high(drv, n * FAKE_INDIRECT_MAX * 16, 16);
	} else if (!vq->desc_gpa) {
		vq->desc_gpa = ring_mem(drv, 16 * n, 16);
		vq->avail_gpa = ring_mem(drv, avail_len, 2);
		vq->used_gpa = ring_mem(drv, used_len, 4);
		vq->indirect_gpa = fake_alloc_high(drv, n * FAKE_INDIRECT_MAX * 16, 16);
	}
	vq->desc = fake_ptr(drv, vq->desc_gpa, 16 * n);
	vq->avail = fake_ptr(drv, vq->avail_gpa, avail_len);
	vq->used = fake_ptr(drv, vq->used_gpa, used_len);
	memset(vq->desc, 0, 16 * n);
	memset(vq->avail, 0, avail_len);
	memset(vq->used, 0, used_len);
}

static void state_reset(struct fake_vq *vq)
{
	vq->free_head = 0;
	vq->nr_free = vq->size;
	for (unsigned i = 0; i < vq->size; i++)
		vq->next_free[i] = (u16)(i + 1);
	vq->avail_idx = vq->published = vq->last_used = 0;
	memset(vq->cookie, 0, sizeof(vq->cookie));
	vq->errors = 0;
	fake_vq_irqs(vq);
}

static void program(struct fake_driver *drv, struct fake_vq *vq)
{
	fake_common_write(drv, VP_QSIZE, 2, vq->size);
	fake_common_write(drv, VP_QDESC, 8, vq->desc_gpa);
	fake_common_write(drv, VP_QAVAIL, 8, vq->avail_gpa);
	fake_common_write(drv, VP_QUSED, 8, vq->used_gpa);
	if (!drv->opts.intx)
		fake_common_write(drv, VP_QMSIX, 2, fake_vq_vector(vq));
	fake_common_write(drv, VP_QENABLE, 2, 1);
}

void fake_driver_setup_vq(struct fake_driver *drv, unsigned i)
{
	struct fake_vq *vq = &drv->vq[i];
	u16 max;

	fake_common_write(drv, VP_QSELECT, 2, i);
	max = (u16)fake_common_read(drv, VP_QSIZE, 2);
	if (!max)
		return;
	vq->drv = drv;
	vq->index = (u16)i;
	if (drv->tp->legacy)
		vq->size = max;
	else if (!vq->size)
		vq->size = drv->opts.size ? MIN(drv->opts.size, max) : max;
	vq->event_idx = drv->features[0] & BIT(VIRTIO_B_EVENT_IDX);
	vq->indirect = drv->features[0] & BIT(VIRTIO_B_INDIRECT_DESC);
	ring_make(drv, vq);
	state_reset(vq);
	program(drv, vq);
}

/* --- adding --- */

static void fill_table(struct vring_desc *table, const u16 *index, const struct fake_seg *segs,
		       unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		bool last = i + 1 == n;

		table[index ? index[i] : i] = (struct vring_desc){
			.addr = segs[i].gpa,
			.len = segs[i].len,
			.flags = (u16)((segs[i].write ? VRING_DESC_F_WRITE : 0) |
				       (last ? 0 : VRING_DESC_F_NEXT)),
			.next = (u16)(last    ? 0
				      : index ? index[i + 1]
					      : i + 1),
		};
	}
}

static u16 take_free(struct fake_vq *vq)
{
	u16 i = vq->free_head;

	vq->free_head = vq->next_free[i];
	vq->nr_free--;
	return i;
}

static u16 add_indirect(struct fake_vq *vq, const struct fake_seg *segs, unsigned n)
{
	u16 head = take_free(vq);
	u64 gpa = vq->indirect_gpa + head * FAKE_INDIRECT_MAX * 16ULL;

	fill_table(fake_ptr(vq->drv, gpa, n * 16ULL), NULL, segs, n);
	vq->desc[head] =
		(struct vring_desc){ .addr = gpa, .len = n * 16, .flags = VRING_DESC_F_INDIRECT };
	vq->chain_len[head] = 1;
	return head;
}

static u16 add_direct(struct fake_vq *vq, const struct fake_seg *segs, unsigned n)
{
	u16 index[VIRTQ_MAX_SIZE];

	for (unsigned i = 0; i < n; i++) {
		index[i] = take_free(vq);
		if (i)
			vq->next_free[index[i - 1]] = index[i]; /* for give_back() */
	}
	fill_table(vq->desc, index, segs, n);
	vq->chain_len[index[0]] = (u16)n;
	return index[0];
}

int fake_vq_add(struct fake_vq *vq, const struct fake_seg *segs, unsigned n, void *cookie)
{
	bool indirect = vq->indirect && n > 1 && n <= FAKE_INDIRECT_MAX;
	u16 head;

	if (vq->nr_free < (indirect ? 1 : n) || !n)
		return -ENOSPC;
	head = indirect ? add_indirect(vq, segs, n) : add_direct(vq, segs, n);
	vq->cookie[head] = cookie;
	fake_vq_add_head(vq, head);
	return head;
}

void fake_vq_add_head(struct fake_vq *vq, u16 head)
{
	store(&vq->avail->ring[vq->avail_idx++ & (vq->size - 1)], head);
}

/* --- telling the device --- */

void fake_vq_publish(struct fake_vq *vq)
{
	__atomic_store_n(&vq->avail->idx, vq->avail_idx, __ATOMIC_RELEASE);
	vq->published = vq->avail_idx;
}

void fake_vq_ring(struct fake_vq *vq)
{
	u32 index = vq->index;

	vq->nr_rings++;
	if (vq->drv->opts.slow_doorbell)
		bus_write(vq->bell_io ? &vq->drv->fm->m.pio : &vq->drv->fm->m.mmio, vq->bell_addr,
			  &index, vq->bell_len);
	else
		fake_guest_write(vq->drv->fm, vq->bell_io, vq->bell_addr, index, vq->bell_len);
}

/* virtio 1.3 2.7.10: was avail_event among the entries that we just published? */
static bool device_wants_kick(const struct fake_vq *vq, u16 before)
{
	u16 added = vq->published - before;

	if (!vq->event_idx)
		return !(load(&vq->used->flags) & VRING_USED_F_NO_NOTIFY);
	for (u16 i = 0; i < added; i++)
		if (load((u16 *)(void *)&vq->used->ring[vq->size]) == (u16)(before + i))
			return true;
	return false;
}

bool fake_vq_kick(struct fake_vq *vq)
{
	u16 before = vq->published;

	fake_vq_publish(vq);
	__sync_synchronize();
	if (!device_wants_kick(vq, before)) {
		vq->nr_rings_spared++;
		return false;
	}
	fake_vq_ring(vq);
	return true;
}

/* --- what comes back --- */

bool fake_vq_has_used(const struct fake_vq *vq)
{
	return __atomic_load_n(&vq->used->idx, __ATOMIC_ACQUIRE) != vq->last_used;
}

static void give_back(struct fake_vq *vq, u16 head)
{
	u16 i = head;

	for (u16 n = 0; n < vq->chain_len[head]; n++) {
		u16 next = vq->next_free[i];

		vq->next_free[i] = vq->free_head;
		vq->free_head = i;
		vq->nr_free++;
		i = next;
	}
}

void *fake_vq_get(struct fake_vq *vq, u32 *len)
{
	const struct vring_used_elem *e;
	void *cookie;
	u32 id;

	if (!fake_vq_has_used(vq))
		return NULL;
	e = &vq->used->ring[vq->last_used++ & (vq->size - 1)];
	id = load(&e->id);
	if (len)
		*len = load(&e->len);
	cookie = id < vq->size ? vq->cookie[id] : NULL;
	if (!cookie) {
		vq->errors++;
		return NULL;
	}
	vq->cookie[id] = NULL;
	give_back(vq, (u16)id);
	return cookie;
}

void fake_vq_irq_off(struct fake_vq *vq)
{
	/* With EVENT_IDX: an event that is as far away as can be. */
	if (vq->event_idx)
		store(&vq->avail->ring[vq->size], (u16)(vq->last_used - 1));
	else
		store(&vq->avail->flags, VRING_AVAIL_F_NO_INTERRUPT);
}

bool fake_vq_irq_on(struct fake_vq *vq)
{
	if (vq->event_idx)
		store(&vq->avail->ring[vq->size], vq->last_used);
	else
		store(&vq->avail->flags, 0);
	__sync_synchronize();
	return fake_vq_has_used(vq);
}

u64 fake_vq_irqs(struct fake_vq *vq)
{
	struct fake_driver *drv = vq->drv;
	unsigned v = fake_vq_vector(vq);
	u64 count, before = vq->irqs_seen;

	if (drv->opts.intx)
		return fake_isr_queue(drv);
	count = fake_hv_msi_count(&drv->fm->hv, fake_msix_addr(drv, v), fake_msix_data(drv, v));
	vq->irqs_seen = count;
	return count - before;
}

int fake_vq_request(struct fake_vq *vq, const struct fake_seg *segs, unsigned n, u32 *len)
{
	int head = fake_vq_add(vq, segs, n, vq);

	if (head < 0)
		return head;
	fake_vq_kick(vq);
	fake_machine_run(vq->drv->fm);
	return fake_vq_get(vq, len) ? 0 : -EAGAIN;
}
