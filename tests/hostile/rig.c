// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a case of a hostile guest works with: registers, rings, good requests. Theory of operation:
 * hostile.h.
 *
 * A good request is the same thing on each target queue: bytes that the device reads, laid over the
 * readable buffers, and bytes that it has to write, gathered from the writable ones.
 */
#include <linux/pci_regs.h>

#include "hostile.h"
#include "hw/pci.h"

#define FRAME   100 /* bytes of the frame in a good request */
#define RX_SEED 7   /* one frame for all: some may still be on the wire from a case before */

/* --- the machine --- */

void rig_run(struct rig *r)
{
	if (!r->threaded)
		fake_machine_run(r->fm);
}

void rig_pause(int i)
{
	if (i < 200)
		sched_yield();
	else
		usleep(500);
}

void rig_settle(struct rig *r)
{
	int rounds = r->target & VHOST || r->threaded ? 10 : 1;

	for (int i = 0; i < rounds; i++) {
		rig_run(r);
		if (rounds > 1)
			usleep(200);
	}
}

u8 rig_status(struct rig *r)
{
	return (u8)fake_common_read(r->drv, VP_STATUS, 1);
}

bool rig_broken(struct rig *r)
{
	return rig_status(r) & VIRTIO_S_NEEDS_RESET;
}

bool rig_is_net(const struct rig *r)
{
	return r->target != ECHO;
}

unsigned rig_targets(const struct rig *r)
{
	if (r->target & ECHO)
		return ECHO;
	return NET_CTRL | (r->nic.fv ? VHOST : NET_RX | NET_TX);
}

void rig_aim(struct rig *r, unsigned target)
{
	unsigned q = target & RX ? 0 : target & TX ? 1 : target & NET_CTRL ? r->drv->nr_vqs - 1 : 0;

	r->target = target;
	r->vq = &r->drv->vq[q];
}

bool rig_offers(const struct rig *r, unsigned bit)
{
	return r->dev->offered[bit / 64] >> (bit % 64) & 1;
}

/* What a case did to config space, undone: else there is no way to the registers. */
static void restore_config(struct rig *r)
{
	cfg_set(r, PCI_COMMAND, 2, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(r->bar); i++)
		cfg_set(r, PCI_BASE_ADDRESS_0 + 4 * i, 4, r->bar[i]);
	cfg_set(r, PCI_COMMAND, 2, r->command);
	fake_driver_find_caps(r->drv);
}

void rig_negotiate(struct rig *r)
{
	WANT(fake_driver_negotiate(r->drv));
	fake_driver_setup_irqs(r->drv);
}

void rig_setup_all(struct rig *r)
{
	for (unsigned i = 0; i < r->drv->nr_vqs; i++)
		fake_driver_setup_vq(r->drv, i);
}

void rig_restart(struct rig *r)
{
	restore_config(r);
	WANT(fake_driver_reset(r->drv));
	if (rig_is_net(r) && !r->unplugged)
		fake_netif_drain(r->nic.fn);
	WANT(fake_driver_restart(r->drv));
}

u32 cfg(struct rig *r, unsigned off, unsigned len)
{
	return fake_pci_read(r->fm, r->drv->slot, off, len);
}

void cfg_set(struct rig *r, unsigned off, unsigned len, u32 value)
{
	fake_pci_write(r->fm, r->drv->slot, off, len, value);
}

u64 reg(struct rig *r, unsigned off, unsigned len)
{
	return fake_common_read(r->drv, off, len);
}

void reg_set(struct rig *r, unsigned off, unsigned len, u64 value)
{
	fake_common_write(r->drv, off, len, value);
}

u64 qreg(struct rig *r, unsigned q, unsigned off, unsigned len)
{
	reg_set(r, VP_QSELECT, 2, q);
	return reg(r, off, len);
}

void qreg_set(struct rig *r, unsigned q, unsigned off, unsigned len, u64 value)
{
	reg_set(r, VP_QSELECT, 2, q);
	reg_set(r, off, len, value);
}

/* --- the ring --- */

unsigned dir(const struct rig *r)
{
	return r->target & RX ? WRITE : 0;
}

void put(struct rig *r, u16 i, u64 addr, u32 len, unsigned flags, u16 next)
{
	r->vq->desc[i] = (struct vring_desc){ addr, len, (u16)flags, next };
}

void put_table(struct rig *r, u64 gpa, unsigned i, u64 addr, u32 len, unsigned flags, u16 next)
{
	const struct vring_desc d = { addr, len, (u16)flags, next };
	const u8 *from = (const u8 *)&d;

	/* byte by byte: an entry may lie across two regions */
	for (unsigned b = 0; b < sizeof(d); b++)
		*(u8 *)fake_ptr(r->drv, gpa + i * sizeof(d) + b, 1) = from[b];
}

void head(struct rig *r, u16 i)
{
	fake_vq_add_head(r->vq, i);
}

/* Receive buffers are used when something comes. */
static void nudge(struct rig *r)
{
	u8 frame[FRAME];

	if (!(r->target & RX) || r->unplugged)
		return;
	fake_nic_frame(frame, sizeof(frame), RX_SEED);
	fake_netif_inject(r->nic.fn, frame, sizeof(frame));
}

void go(struct rig *r)
{
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	nudge(r);
	if (r->c->verdict == REFUSED) {
		WANT(RIG_WAIT(r, (nudge(r), rig_broken(r))));
		WANT(!fake_vq_has_used(r->vq) || r->target & RX);
	} else {
		rig_settle(r);
	}
}

void skip_used(struct rig *r)
{
	r->vq->last_used = guest_load(&r->vq->used->idx);
}

bool used_moved(struct rig *r, u16 from, u16 n)
{
	return RIG_WAIT(r, (u16)(guest_load(&r->vq->used->idx) - from) == n);
}

__attribute__((no_sanitize("thread"))) void guest_scribble(void *p, u8 value, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		((volatile u8 *)p)[i] = value;
}

__attribute__((no_sanitize("thread"))) void guest_copy(void *p, const void *from, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		((volatile u8 *)p)[i] = ((const u8 *)from)[i];
}

/* --- good requests --- */

static u32 out_len(const struct rig *r)
{
	return r->target & ECHO ? 16
	       : r->target & TX ? NET_HDR_LEN + FRAME
	       : r->target & RX ? 0
				: 3;
}

static u32 in_len(const struct rig *r)
{
	return r->target & ECHO ? 16
	       : r->target & TX ? 0
	       : r->target & RX ? NET_HDR_LEN + FRAME
				: 1;
}

/* What the device is to read, or, for a receive queue, to write. */
static void fill(const struct rig *r, u8 *bytes)
{
	memset(bytes, 0, NET_HDR_LEN + FRAME);
	if (r->target & ECHO)
		for (unsigned i = 0; i < 16; i++)
			bytes[i] = (u8)(r->seed + i);
	else if (r->target & (TX | RX))
		fake_nic_frame(bytes + NET_HDR_LEN, FRAME, r->target & RX ? RX_SEED : r->seed);
	else
		bytes[2] = 1; /* promiscuous mode on: class 0, command 0 */
}

static unsigned cut(struct fake_seg *s, u64 gpa, u32 len, u32 piece, bool write)
{
	unsigned n = 0;

	for (u32 done = 0; done < len; done += s[n++].len)
		s[n] = (struct fake_seg){ gpa + done, MIN(piece ? piece : len, len - done), write };
	return n;
}

unsigned shape(struct rig *r, struct fake_seg *s, u32 piece)
{
	unsigned n = cut(s, r->data + OUT, out_len(r), piece, false);

	return n + cut(s + n, r->data + IN, in_len(r), piece, true);
}

/* Copies between @bytes and the buffers of one direction. */
static void transfer(struct rig *r, const struct fake_seg *s, unsigned n, u8 *bytes, u32 len,
		     bool from_device)
{
	u32 done = 0;

	for (unsigned i = 0; i < n; i++) {
		if (s[i].write != from_device)
			continue;
		for (u32 b = 0; b < s[i].len && done < len; b++, done++) {
			u8 *p = fake_ptr(r->drv, s[i].gpa + b, 1);

			*(from_device ? &bytes[done] : p) = *(from_device ? p : &bytes[done]);
		}
	}
	WANT_EQ(done, len);
}

int lay(struct rig *r, const struct fake_seg *s, unsigned n)
{
	u8 bytes[NET_HDR_LEN + FRAME];
	int h;

	r->seed++;
	fill(r, bytes);
	transfer(r, s, n, bytes, out_len(r), false);
	memset(bytes, 0x5a, sizeof(bytes));
	for (unsigned i = 0; i < n; i++)
		for (u32 b = 0; s[i].write && b < MIN(s[i].len, in_len(r)); b++)
			*(u8 *)fake_ptr(r->drv, s[i].gpa + b, 1) = 0x5a;
	h = fake_vq_add(r->vq, s, n, r);
	WANT(h >= 0);
	return h;
}

bool take_frame(struct rig *r, u8 *frame, u32 len)
{
	u8 got[2048];
	long n;

	while ((n = fake_netif_take(r->nic.fn, NULL, got, sizeof(got))) >= 0)
		if (n == (long)len && !memcmp(got, frame, len))
			return true;
	return false;
}

/* Our chain came back? Others before it are of no interest. */
static bool came_back(struct rig *r, u32 *len)
{
	while (fake_vq_has_used(r->vq))
		if (fake_vq_get(r->vq, len) == r)
			return true;
	return false;
}

static bool once_in_a_while(struct rig *r, unsigned *turn)
{
	if (++*turn % 256 == 0)
		nudge(r);
	return true;
}

void finish(struct rig *r, const struct fake_seg *s, unsigned n)
{
	u8 want[NET_HDR_LEN + FRAME], got[NET_HDR_LEN + FRAME];
	unsigned turn = 0;
	u32 len = 0;

	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	nudge(r);
	if (!RIG_WAIT(r, once_in_a_while(r, &turn) && came_back(r, &len))) {
		hostile_note(__FILE__, __LINE__, "a good request is served", rig_status(r), 0xf);
		return;
	}
	fill(r, want);
	if (r->target & NET_CTRL)
		want[0] = 0;                      /* VIRTIO_NET_OK */
	want[10] = r->target & RX ? 1 : want[10]; /* num_buffers */
	WANT_EQ(len, in_len(r));
	transfer(r, s, n, got, in_len(r), true);
	WANT(!memcmp(got, want, in_len(r)));
	if (r->target & TX)
		WANT(RIG_WAIT(r, take_frame(r, want + NET_HDR_LEN, FRAME)));
}

void serve(struct rig *r, const struct fake_seg *s, unsigned n)
{
	if (lay(r, s, n) >= 0)
		finish(r, s, n);
}

void good(struct rig *r)
{
	struct fake_seg s[4];
	unsigned n = shape(r, s, 0);

	serve(r, s, n);
}

void round_trip(struct rig *r)
{
	unsigned all = rig_targets(r), target = r->target;
	struct fake_vq *vq = r->vq;

	if (r->unplugged)
		all &= NET_CTRL;
	for (unsigned t = 1; t <= VHOST_TX; t <<= 1) {
		if (!(all & t))
			continue;
		rig_aim(r, t);
		good(r);
	}
	r->target = target;
	r->vq = vq;
}

/* --- commands --- */

int ctrl(struct rig *r, u8 class, u8 command, const void *data, u32 len)
{
	struct fake_vq *vq = &r->drv->vq[r->drv->nr_vqs - 1];
	struct fake_seg s[2] = { { r->data + OUT, 2 + len }, { r->data + IN, 1, true } };
	u8 *p = fake_ptr(r->drv, s[0].gpa, DATA_LEN / 2);
	u8 *ack = fake_ptr(r->drv, s[1].gpa, 1);

	p[0] = class;
	p[1] = command;
	memcpy(p + 2, data, MIN(len, (u32)(DATA_LEN / 2 - 2)));
	*ack = 0x5a;
	if (fake_vq_add(vq, s, 2, r) < 0)
		return -1;
	fake_vq_publish(vq);
	fake_vq_ring(vq);
	return RIG_WAIT(r, fake_vq_get(vq, NULL) == r) ? *ack : -1;
}
