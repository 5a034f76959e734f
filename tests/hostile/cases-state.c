// SPDX-License-Identifier: GPL-2.0-only
/*
 * The status machine, features and life cycle (virtio 1.3 2.1, 2.2, 2.4, 3.1), by drivers that go
 * through it in other orders than they should. Traps C10 and C11.
 *
 * Theory of operation: hostile.h. A bit that the device refuses reads back 0; what it ignores
 * changes nothing.
 */
#include "hostile.h"

enum {
	ACK = VIRTIO_S_ACKNOWLEDGE,
	DRV = ACK | VIRTIO_S_DRIVER,
	FEAT = DRV | VIRTIO_S_FEATURES_OK,
	LIVE = FEAT | VIRTIO_S_DRIVER_OK,
};

static void status(struct rig *r, u8 value)
{
	reg_set(r, VP_STATUS, 1, value);
}

static void features(struct rig *r, u32 sel, u32 value)
{
	reg_set(r, VP_GFSELECT, 4, sel);
	reg_set(r, VP_GF, 4, value);
}

static u32 features_of(struct rig *r, u32 sel)
{
	reg_set(r, VP_GFSELECT, 4, sel);
	return (u32)reg(r, VP_GF, 4);
}

/* To status ACK | DRIVER. */
static void begin(struct rig *r)
{
	status(r, 0);
	status(r, ACK);
	status(r, DRV);
	r->down = true;
}

/* --- status --- */

/* From a running device: writes c->a; status then reads c->b. */
static void status_write(struct rig *r)
{
	status(r, (u8)r->c->a);
	WANT_EQ(rig_status(r), r->c->b);
	if (r->c->b == LIVE)
		return;
	r->refused = r->c->verdict == REFUSED;
	r->down = true;
}

/* From reset: writes c->a; status then reads c->b. */
static void status_first(struct rig *r)
{
	status(r, 0);
	status(r, (u8)r->c->a);
	WANT_EQ(rig_status(r), r->c->b);
	r->refused = r->c->a != r->c->b;
	r->down = true;
}

static void status_each_bit(struct rig *r)
{
	status(r, 0);
	for (unsigned bit = 0; bit < 8; bit++) {
		status(r, (u8)BIT(bit));
		WANT(!(rig_status(r) & 0x74)); /* neither reserved ones, NEEDS_RESET, DRIVER_OK */
	}
	r->down = true;
}

static void reset_twice(struct rig *r)
{
	for (u64 i = 0; i < r->c->a; i++) {
		status(r, 0);
		WANT_EQ(rig_status(r), 0);
	}
	r->down = true;
}

/* Resets from each state on the way up. */
static void reset_from(struct rig *r)
{
	rig_negotiate(r);
	if (r->c->a == LIVE)
		rig_setup_all(r);
	if (r->c->a == ACK || r->c->a == DRV) {
		status(r, 0);
		status(r, (u8)r->c->a);
	}
	if (r->c->a == LIVE)
		status(r, LIVE);
	WANT_EQ(rig_status(r), r->c->a);
	status(r, 0);
	WANT_EQ(rig_status(r), 0);
	r->down = true;
}

static void failed_then_kick(struct rig *r)
{
	struct fake_seg s[4];
	unsigned n = shape(r, s, 0);
	u16 used = guest_load(&r->vq->used->idx);

	status(r, LIVE | VIRTIO_S_FAILED);
	WANT_EQ(rig_status(r), LIVE | VIRTIO_S_FAILED);
	lay(r, s, n);
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	rig_settle(r);
	WANT_EQ(guest_load(&r->vq->used->idx), used);
	status(r, LIVE); /* FAILED does not go away by itself */
	WANT_EQ(rig_status(r), LIVE | VIRTIO_S_FAILED);
	r->down = true;
}

static void break_it(struct rig *r)
{
	head(r, 0xffff);
	fake_vq_publish(r->vq);
	fake_vq_ring(r->vq);
	WANT(RIG_WAIT(r, rig_broken(r)));
}

/* Broken: only a reset helps, and nobody touches the rings. */
static void broken_stays(struct rig *r)
{
	u16 used = guest_load(&r->vq->used->idx);

	break_it(r);
	status(r, (u8)r->c->a);
	WANT(rig_broken(r));
	for (int i = 0; i < 50; i++)
		fake_vq_ring(r->vq);
	rig_settle(r);
	WANT_EQ(guest_load(&r->vq->used->idx), used);
}

static void broken_again_and_again(struct rig *r)
{
	for (int i = 0; i < 20; i++) {
		break_it(r);
		rig_restart(r);
		round_trip(r);
	}
	break_it(r);
}

static void broken_then_reset_many(struct rig *r)
{
	break_it(r);
	for (int i = 0; i < 100; i++)
		status(r, 0);
	WANT_EQ(rig_status(r), 0);
	r->down = true;
}

static void not_broken_for_nothing(struct rig *r)
{
	for (int i = 0; i < 50; i++) {
		good(r);
		WANT_EQ(rig_status(r), LIVE);
	}
	WANT_EQ(fake_driver_config_irqs(r->drv), r->config_irqs);
}

/* --- features --- */

/* One bit that is not offered: FEATURES_OK does not stay. */
static void unoffered_bit(struct rig *r)
{
	unsigned bit = (unsigned)r->c->a;

	if (rig_offers(r, bit))
		return; /* a later version has it: not for this case to try */
	begin(r);
	features(r, 1, 1);
	features(r, bit / 32, (u32)BIT(bit % 32) | (bit / 32 == 1));
	status(r, FEAT);
	WANT_EQ(rig_status(r), DRV);
	status(r, LIVE);
	WANT_EQ(rig_status(r), DRV);
	r->refused = true;
	r->not_offered = r->c->verdict == NOT_OFFERED;
}

/* Feature words 0 and 1 as they are; FEATURES_OK then, or DRIVER_OK, must not stay. */
static void feature_words(struct rig *r)
{
	begin(r);
	features(r, 0, (u32)r->c->a);
	features(r, 1, (u32)r->c->b);
	status(r, FEAT);
	WANT_EQ(rig_status(r), r->c->verdict == REFUSED ? DRV : FEAT);
	r->refused = rig_status(r) == DRV;
}

static void no_version_1_all_else(struct rig *r)
{
	begin(r);
	features(r, 0, (u32)r->dev->offered[0]);
	features(r, 1, (u32)(r->dev->offered[0] >> 32) & ~1u);
	status(r, FEAT);
	WANT_EQ(rig_status(r), DRV);
	r->refused = true;
}

/* Words that no device has: neither read nor written anywhere. */
static void feature_select(struct rig *r)
{
	u32 word0 = features_of(r, 0), word1 = features_of(r, 1);

	reg_set(r, VP_DFSELECT, 4, r->c->a);
	WANT_EQ(reg(r, VP_DFSELECT, 4), r->c->a);
	WANT_EQ(reg(r, VP_DF, 4), 0);
	begin(r);
	features(r, 0, word0);
	features(r, 1, word1);
	features(r, (u32)r->c->a, 0);
	WANT_EQ(features_of(r, (u32)r->c->a), 0);
	WANT_EQ(features_of(r, 0), word0);
	WANT_EQ(features_of(r, 1), word1);
	status(r, FEAT);
	WANT_EQ(rig_status(r), FEAT);
}

/* A one in a word that does not exist: no alias in one that does. */
static void feature_past_words(struct rig *r)
{
	begin(r);
	features(r, 1, 1);
	features(r, (u32)r->c->a, 0xffffffff);
	WANT_EQ(features_of(r, 0), 0);
	WANT_EQ(features_of(r, 1), 1);
	status(r, FEAT);
	r->refused = rig_status(r) == DRV;
}

static void features_after(struct rig *r)
{
	u32 before;

	if (r->c->a != LIVE)
		rig_negotiate(r);
	before = features_of(r, 0);
	features(r, 0, ~before);
	WANT_EQ(features_of(r, 0), before);
	features(r, 1, 0);
	WANT_EQ(features_of(r, 1) & 1, 1);
	if (r->c->a != LIVE) {
		rig_setup_all(r);
		WANT(fake_driver_start(r->drv));
	}
}

/* Features before ACKNOWLEDGE, all at once: that order is the driver's trouble. */
static void features_before_driver(struct rig *r)
{
	status(r, 0);
	features(r, 1, 1);
	status(r, FEAT);
	WANT_EQ(rig_status(r), FEAT);
	r->down = true;
}

static void features_rewritten(struct rig *r)
{
	begin(r);
	for (u32 i = 0; i < 100; i++) {
		features(r, 0, i * 0x01010101u);
		features(r, 1, 1);
	}
	features(r, 0, 0);
	status(r, FEAT);
	WANT_EQ(rig_status(r), FEAT);
	status(r, FEAT);
	WANT_EQ(rig_status(r), FEAT);
}

/* Refused once, accepted at the second try with what is offered. */
static void second_try(struct rig *r)
{
	begin(r);
	features(r, 0, 0xffffffff);
	features(r, 1, 0xffffffff);
	status(r, FEAT);
	WANT_EQ(rig_status(r), DRV);
	features(r, 0, 0);
	features(r, 1, 1);
	status(r, FEAT);
	WANT_EQ(rig_status(r), FEAT);
	r->refused = true;
}

/* One set of features and another from one life to the next. */
static void features_change(struct rig *r)
{
	for (int i = 0; i < 8; i++) {
		r->drv->opts.no_event_idx = i & 1;
		r->drv->opts.no_indirect = i & 2;
		rig_restart(r);
		round_trip(r);
		round_trip(r);
	}
}

/* --- what a reset clears: 2.4 --- */

static void reset_clears(struct rig *r)
{
	status(r, 0);
	for (unsigned q = 0; q < r->drv->nr_vqs; q++) {
		WANT_EQ(qreg(r, q, VP_QENABLE, 2), 0);
		WANT_EQ(qreg(r, q, VP_QDESC, 8), 0);
		WANT_EQ(qreg(r, q, VP_QAVAIL, 8), 0);
		WANT_EQ(qreg(r, q, VP_QUSED, 8), 0);
		WANT_EQ(qreg(r, q, VP_QMSIX, 2), 0xffff);
		WANT_EQ(qreg(r, q, VP_QSIZE, 2), r->dev->vq[q].num_max);
	}
	WANT_EQ(reg(r, VP_MSIX, 2), 0xffff);
	WANT_EQ(features_of(r, 0), 0);
	WANT_EQ(features_of(r, 1), 0);
	WANT_EQ(fake_isr_read(r->drv), 0);
	r->down = true;
}

static void reset_clears_size(struct rig *r)
{
	u64 max;

	rig_negotiate(r);
	status(r, 0);
	max = qreg(r, r->vq->index, VP_QSIZE, 2);
	qreg_set(r, r->vq->index, VP_QSIZE, 2, 2);
	WANT_EQ(qreg(r, r->vq->index, VP_QSIZE, 2), 2);
	status(r, 0);
	WANT_EQ(qreg(r, r->vq->index, VP_QSIZE, 2), max);
	r->down = true;
}

/* After status 0 nothing of the guest's memory changes, whatever is still on its way. */
static void reset_under_load(struct rig *r)
{
	struct fake_seg s[4];
	u64 at = r->data;

	for (int round = 0; round < 10; round++) {
		u8 *p = fake_ptr(r->drv, at, DATA_LEN);

		while (fake_vq_add(r->vq, s, shape(r, s, 0), r) >= 0)
			;
		fake_vq_publish(r->vq);
		fake_vq_ring(r->vq);
		if (round & 1)
			rig_run(r);
		status(r, 0);
		WANT_EQ(rig_status(r), 0);
		guest_scribble(p, 0xaa, DATA_LEN);
		guest_scribble(r->vq->used, 0xaa, 22);
		fake_vq_ring(r->vq);
		rig_settle(r);
		for (unsigned i = 0; i < DATA_LEN; i++)
			if (p[i] != 0xaa) {
				WANT_EQ(p[i], 0xaa);
				break;
			}
		WANT_EQ(guest_load(&r->vq->used->idx), 0xaaaa);
		rig_restart(r);
		round_trip(r);
	}
}

static void many_lives(struct rig *r)
{
	for (u64 i = 0; i < r->c->a; i++) {
		rig_restart(r);
		if (r->c->b)
			round_trip(r);
	}
}

static void sizes_change(struct rig *r)
{
	static const u16 size[] = { 8, 2, 4, 8, 2, 8 };

	for (unsigned i = 0; i < ARRAY_SIZE(size); i++) {
		r->vq->size = size[i];
		rig_restart(r);
		for (int k = 0; k < 5; k++)
			good(r);
	}
	round_trip(r);
}

/* The machine is reset, as by the guest's reset button. */
static void machine_reset(struct rig *r)
{
	r->dev->device.reset(&r->dev->device);
	WANT_EQ(rig_status(r), 0);
	r->down = true;
}

/* --- queues and the status --- */

static void no_queues(struct rig *r)
{
	rig_negotiate(r);
	status(r, LIVE);
	WANT_EQ(rig_status(r), LIVE);
	for (unsigned i = 0; i < r->drv->nr_vqs; i++)
		fake_vq_ring(&r->drv->vq[i]);
	rig_settle(r);
	WANT_EQ(rig_status(r), LIVE);
	r->down = true;
}

static void one_queue(struct rig *r)
{
	rig_negotiate(r);
	fake_driver_setup_vq(r->drv, r->vq->index);
	WANT(fake_driver_start(r->drv));
	good(r);
	for (unsigned i = 0; i < r->drv->nr_vqs; i++)
		fake_vq_ring(&r->drv->vq[i]);
	good(r);
	r->down = true;
}

/* Enabled after DRIVER_OK, as only a queue that was reset may be (2.6.1): nothing breaks. */
static void queue_after_driver_ok(struct rig *r)
{
	rig_negotiate(r);
	status(r, LIVE);
	rig_setup_all(r);
	rig_settle(r);
	WANT_EQ(rig_status(r), LIVE);
	WANT(qreg(r, r->vq->index, VP_QENABLE, 2) <= 1);
	r->down = true;
}

/*
 * queue_reset in every order (4.1.4.3.1): twice, with 0, of a queue that is off, then on and off
 * again.
 */
static void ring_reset(struct rig *r)
{
	const unsigned reset = 58; /* of the register, behind queue_notify_data */
	unsigned q = r->vq->index;

	good(r);
	for (unsigned i = 0; i < 4; i++) {
		qreg_set(r, q, reset, 2, i & 1);
		qreg_set(r, q, reset, 2, 1);
		qreg_set(r, q, reset, 2, 1);
		WANT_EQ(qreg(r, q, reset, 2), 0);
		WANT_EQ(qreg(r, q, VP_QENABLE, 2), 0);
		qreg_set(r, q, VP_QENABLE, 2, i & 1); /* without addresses: at worst it breaks */
		rig_settle(r);
	}
	r->down = true;
}

static void queue_before_ack(struct rig *r)
{
	status(r, 0);
	rig_setup_all(r);
	status(r, ACK);
	status(r, DRV);
	features(r, 1, 1);
	status(r, FEAT);
	status(r, LIVE);
	WANT_EQ(rig_status(r), LIVE);
	r->down = true;
}

static void buffers_before_driver_ok(struct rig *r)
{
	struct fake_seg s[4];
	unsigned n;

	rig_negotiate(r);
	rig_setup_all(r);
	n = shape(r, s, 0);
	lay(r, s, n);
	fake_vq_publish(r->vq);
	if (r->c->a)
		fake_vq_ring(r->vq);
	rig_settle(r);
	WANT_EQ(guest_load(&r->vq->used->idx), 0);
	WANT_EQ(fake_vq_irqs(r->vq), 0);
	WANT(fake_driver_start(r->drv));
	finish(r, s, n);
}

static void kick_in_state(struct rig *r)
{
	u16 used = guest_load(&r->vq->used->idx);
	struct fake_seg s[4];

	lay(r, s, shape(r, s, 0));
	status(r, 0);
	if (r->c->a)
		status(r, (u8)r->c->a);
	fake_vq_publish(r->vq);
	for (int i = 0; i < 20; i++)
		fake_vq_ring(r->vq);
	rig_settle(r);
	WANT_EQ(guest_load(&r->vq->used->idx), used);
	r->down = true;
}

static void driver_ok_twice(struct rig *r)
{
	for (int i = 0; i < 10; i++) {
		status(r, LIVE);
		good(r);
	}
}

static void reinit_without_reset(struct rig *r)
{
	status(r, ACK);
	status(r, DRV);
	features(r, 0, 0);
	features(r, 1, 1);
	status(r, FEAT);
	qreg_set(r, r->vq->index, VP_QENABLE, 2, 1);
	status(r, LIVE);
	WANT_EQ(rig_status(r), LIVE);
	good(r);
}

static void config_read_early(struct rig *r)
{
	u64 want = fake_config_read(r->drv, 0, 4);

	status(r, 0);
	WANT_EQ(fake_config_read(r->drv, 0, 4), want);
	status(r, ACK);
	WANT_EQ(fake_config_read(r->drv, 0, 4), want);
	r->down = true;
}

static void generation_stable(struct rig *r)
{
	u64 gen = reg(r, VP_GEN, 1);

	for (int i = 0; i < 500; i++)
		WANT_EQ(reg(r, VP_GEN, 1), gen);
	good(r);
	WANT_EQ(reg(r, VP_GEN, 1), gen);
}

static void kick_storm_and_status(struct rig *r)
{
	for (int i = 0; i < 100; i++) {
		fake_vq_ring(r->vq);
		if (i % 10 == 5)
			status(r, 0);
		fake_vq_ring(r->vq);
		if (i % 10 == 5)
			rig_restart(r);
		rig_run(r);
	}
}

/* The wiring of a queue fails when it starts: broken, and fine with the next start. */
static void start_fails(struct rig *r)
{
	rig_negotiate(r);
	rig_setup_all(r);
	fake_hv_fail(&r->fm->hv, (unsigned)r->c->a);
	WANT(!fake_driver_start(r->drv));
	fake_hv_fail(&r->fm->hv, 0);
	WANT(rig_broken(r));
}

static void vhost_verb_fails(struct rig *r)
{
	rig_negotiate(r);
	rig_setup_all(r);
	r->nic.fv->fail_at = r->nic.fv->calls + (unsigned)r->c->a;
	WANT(!fake_driver_start(r->drv));
	r->nic.fv->fail_at = 0;
	WANT(rig_broken(r));
}

static void vhost_stop_fails(struct rig *r)
{
	r->nic.fv->fail_at = r->nic.fv->calls + (unsigned)r->c->a;
	status(r, 0);
	WANT_EQ(rig_status(r), 0);
	r->nic.fv->fail_at = 0;
	r->down = true;
}

#define D DEVICES

static const struct hostile_case cases[] = {
	/* status */
	{ "clear_driver_ok", status_write, PASS, D, 0, FEAT, LIVE },
	{ "clear_features_ok", status_write, PASS, D, 0, LIVE & ~VIRTIO_S_FEATURES_OK, LIVE },
	{ "clear_all_but_ack", status_write, PASS, D, 0, ACK, LIVE },
	{ "set_reserved_10", status_write, PASS, D, 0, LIVE | 0x10, LIVE },
	{ "set_reserved_20", status_write, PASS, D, 0, LIVE | 0x20, LIVE },
	{ "set_needs_reset", status_write, PASS, D, 0, LIVE | VIRTIO_S_NEEDS_RESET, LIVE },
	{ "set_needs_reset_alone", status_write, PASS, D, 0, VIRTIO_S_NEEDS_RESET, LIVE },
	{ "set_failed", status_write, PASS, D, 0, LIVE | VIRTIO_S_FAILED, LIVE | VIRTIO_S_FAILED },
	{ "set_failed_alone", status_write, PASS, D, 0, VIRTIO_S_FAILED, LIVE | VIRTIO_S_FAILED },
	{ "set_all_ones", status_write, PASS, D, 0, 0xff, LIVE | VIRTIO_S_FAILED },
	{ "first_driver_ok", status_first, REFUSED, D, 0, VIRTIO_S_DRIVER_OK, 0 },
	{ "first_driver_ok_and_driver", status_first, REFUSED, D, 0, DRV | VIRTIO_S_DRIVER_OK,
	  DRV },
	{ "first_features_ok", status_first, REFUSED, D, 0, VIRTIO_S_FEATURES_OK, 0 },
	{ "first_features_ok_no_version", status_first, REFUSED, D, 0, FEAT, DRV },
	{ "first_all_at_once", status_first, REFUSED, D, 0, LIVE, DRV },
	{ "first_all_ones", status_first, REFUSED, D, 0, 0xff, DRV | VIRTIO_S_FAILED },
	{ "first_failed", status_first, PASS, D, 0, VIRTIO_S_FAILED, VIRTIO_S_FAILED },
	{ "first_driver_without_ack", status_first, PASS, D, 0, VIRTIO_S_DRIVER, VIRTIO_S_DRIVER },
	{ "first_reserved", status_first, REFUSED, D, 0, 0x30, 0 },
	{ "each_bit", status_each_bit, PASS, D },
	{ "reset_twice", reset_twice, PASS, D, 0, 2 },
	{ "reset_1000_times", reset_twice, PASS, D, 0, 1000 },
	{ "reset_from_ack", reset_from, PASS, D, 0, ACK },
	{ "reset_from_driver", reset_from, PASS, D, 0, DRV },
	{ "reset_from_features_ok", reset_from, PASS, D, 0, FEAT },
	{ "reset_from_driver_ok", reset_from, PASS, D, 0, LIVE },
	{ "failed_then_kick", failed_then_kick, PASS, D },
	{ "broken_driver_ok_again", broken_stays, REFUSED, D, 0, LIVE },
	{ "broken_ack_again", broken_stays, REFUSED, D, 0, ACK },
	{ "broken_and_failed", broken_stays, REFUSED, D, 0, VIRTIO_S_FAILED },
	{ "broken_clear_needs_reset", broken_stays, REFUSED, D, 0, LIVE },
	{ "broken_again_and_again", broken_again_and_again, REFUSED, D },
	{ "broken_then_reset_many", broken_then_reset_many, PASS, D },
	{ "not_broken_for_nothing", not_broken_for_nothing, PASS, D },

	/* features */
	{ "no_version_1", feature_words, REFUSED, D, 0, 0, 0 },
	{ "no_version_1_all_else", no_version_1_all_else, REFUSED, D },
	{ "version_1_only", feature_words, PASS, D, 0, 0, 1 },
	{ "features_all_ones", feature_words, REFUSED, D, 0, 0xffffffff, 0xffffffff },
	{ "features_low_all_ones", feature_words, REFUSED, D, 0, 0xffffffff, 1 },
	{ "features_high_all_ones", feature_words, REFUSED, D, 0, 0, 0xffffffff },
	{ "feature_reserved_41", unoffered_bit, REFUSED, D, 0, 43 },
	{ "feature_reserved_49", unoffered_bit, REFUSED, D, 0, 49 },
	{ "feature_bit_10", unoffered_bit, REFUSED, D, 0, 10 },
	{ "feature_bit_14", unoffered_bit, REFUSED, D, 0, 14 },
	{ "feature_notify_on_empty_24", unoffered_bit, REFUSED, D, 0, 24 },
	{ "feature_any_layout_27", unoffered_bit, REFUSED, D, 0, 27 },
	{ "feature_bad_30", unoffered_bit, REFUSED, D, 0, 30 },
	{ "feature_bit_64", unoffered_bit, REFUSED, D, 0, 64 },
	{ "feature_bit_95", unoffered_bit, REFUSED, D, 0, 95 },
	{ "feature_bit_96", unoffered_bit, REFUSED, D, 0, 96 },
	{ "feature_bit_127", unoffered_bit, REFUSED, D, 0, 127 },
	{ "feature_select_2", feature_select, PASS, D, 0, 2 },
	{ "feature_select_3", feature_select, PASS, D, 0, 3 },
	{ "feature_select_4", feature_select, PASS, D, 0, 4 },
	{ "feature_select_100", feature_select, PASS, D, 0, 0x100 },
	{ "feature_select_80000000", feature_select, PASS, D, 0, 0x80000000 },
	{ "feature_select_max", feature_select, PASS, D, 0, 0xffffffff },
	{ "feature_write_past_4", feature_past_words, EITHER, D, 0, 4 },
	{ "feature_write_past_max", feature_past_words, EITHER, D, 0, 0xffffffff },
	{ "feature_write_past_2", feature_past_words, REFUSED, D, 0, 2 },
	{ "feature_write_past_3", feature_past_words, REFUSED, D, 0, 3 },
	{ "features_after_features_ok", features_after, PASS, D, 0, FEAT },
	{ "features_after_driver_ok", features_after, PASS, D, 0, LIVE },
	{ "features_before_driver", features_before_driver, PASS, D },
	{ "features_rewritten", features_rewritten, PASS, D },
	{ "features_second_try", second_try, REFUSED, D },
	{ "features_change_over_resets", features_change, PASS, D },

	/* resets */
	{ "reset_clears_registers", reset_clears, PASS, D },
	{ "reset_clears_registers_intx", reset_clears, PASS, D, INTX },
	{ "reset_clears_size", reset_clears_size, PASS, D },
	{ "reset_under_load", reset_under_load, PASS, D },
	{ "reset_under_load_rx", reset_under_load, PASS, RX },
	{ "reset_under_load_intx", reset_under_load, PASS, D, INTX },
	{ "restart_50_times", many_lives, PASS, D, 0, 50, 1 },
	{ "restart_200_times_idle", many_lives, PASS, D, 0, 200, 0 },
	{ "restart_50_times_intx", many_lives, PASS, D, INTX, 50, 1 },
	{ "sizes_change_over_resets", sizes_change, PASS, D, NO_INDIRECT },
	{ "machine_reset", machine_reset, PASS, D },

	/* queues */
	{ "driver_ok_without_queues", no_queues, PASS, D },
	{ "driver_ok_one_queue", one_queue, PASS, ALL },
	{ "ring_reset", ring_reset, PASS, D },
	{ "queue_after_driver_ok", queue_after_driver_ok, EITHER, D },
	{ "queue_before_ack", queue_before_ack, PASS, D },
	{ "buffers_before_driver_ok", buffers_before_driver_ok, PASS, ALL, 0, 0 },
	{ "kick_before_driver_ok", buffers_before_driver_ok, PASS, ALL, 0, 1 },
	{ "kick_after_reset", kick_in_state, PASS, D, 0, 0 },
	{ "kick_in_ack", kick_in_state, PASS, D, 0, ACK },
	{ "kick_in_driver", kick_in_state, PASS, D, 0, DRV },
	{ "kick_in_driver_exits", kick_in_state, PASS, D, SLOW_BELL, DRV },
	{ "driver_ok_twice", driver_ok_twice, PASS, D },
	{ "reinit_without_reset", reinit_without_reset, PASS, D },
	{ "config_read_early", config_read_early, PASS, D },
	{ "generation_stable", generation_stable, PASS, D },
	{ "kick_storm_and_status", kick_storm_and_status, PASS, D },

	/* the host's side fails */
	{ "start_fails_1", start_fails, REFUSED, D, 0, 1 },
	{ "start_fails_2", start_fails, REFUSED, D, 0, 2 },
	{ "start_fails_4", start_fails, REFUSED, D, 0, 4 },
	{ "vhost_set_features_fails", vhost_verb_fails, REFUSED, VHOST_TX, 0, 1 },
	{ "vhost_set_mem_fails", vhost_verb_fails, REFUSED, VHOST_TX, 0, 2 },
	{ "vhost_set_num_fails", vhost_verb_fails, REFUSED, VHOST_TX, 0, 3 },
	{ "vhost_set_base_fails", vhost_verb_fails, REFUSED, VHOST_TX, 0, 4 },
	{ "vhost_set_addr_fails", vhost_verb_fails, REFUSED, VHOST_TX, 0, 5 },
	{ "vhost_ring_1_fails", vhost_verb_fails, REFUSED, VHOST_TX, 0, 10 },
	{ "vhost_enable_fails", vhost_verb_fails, REFUSED, VHOST_TX, 0, 15 },
	{ "vhost_disable_fails", vhost_stop_fails, PASS, VHOST_TX, 0, 3 },
	{ "vhost_get_base_fails", vhost_stop_fails, PASS, VHOST_TX, 0, 4 },

	/* not there */
	{ "packed_ring", unoffered_bit, NOT_OFFERED, D, 0, 34, 0, "VIRTIO_F_RING_PACKED" },
	{ "in_order", unoffered_bit, NOT_OFFERED, D, 0, 35, 0, "VIRTIO_F_IN_ORDER" },
	{ "order_platform", unoffered_bit, NOT_OFFERED, D, 0, 36, 0, "VIRTIO_F_ORDER_PLATFORM" },
	{ "access_platform", unoffered_bit, NOT_OFFERED, D, 0, 33, 0, "VIRTIO_F_ACCESS_PLATFORM" },
	{ "sr_iov", unoffered_bit, NOT_OFFERED, D, 0, 37, 0, "VIRTIO_F_SR_IOV" },
	{ "notification_data", unoffered_bit, NOT_OFFERED, D, 0, 38, 0,
	  "VIRTIO_F_NOTIFICATION_DATA" },
	{ "notif_config_data", unoffered_bit, NOT_OFFERED, D, 0, 39, 0,
	  "VIRTIO_F_NOTIF_CONFIG_DATA" },
	{ "admin_queue", unoffered_bit, NOT_OFFERED, D, 0, 41, 0, "VIRTIO_F_ADMIN_VQ" },
	{ "suspend", unoffered_bit, NOT_OFFERED, D, 0, 42, 0, "VIRTIO_F_SUSPEND" },
};

const struct hostile_group state_group = { "state", cases, ARRAY_SIZE(cases) };
