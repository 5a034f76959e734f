// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtio core: status machine, features, config space, start and stop, driven through the PCI
 * transport's registers.
 */
#include "../fake/echo.h"
#include "../fake/fake-driver.h"
#include "../tap.h"
#include "log.h"

struct bench {
	struct fake_machine fm;
	struct fake_driver drv;
	struct echo *echo;
	u64 out, in;
};

static void ignore_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void bench_make(struct bench *b, u16 size)
{
	fake_machine_init(&b->fm, NULL);
	REQUIRE(echo_new(&b->fm.m, 2, size, &b->echo) == 0);
}

static void bench_open(struct bench *b, u16 size, const struct fake_driver_opts *opts)
{
	bench_make(b, size);
	fake_driver_open(&b->drv, &b->fm, ECHO_ID, opts);
	b->out = fake_alloc(&b->drv, 4096, 4096);
	b->in = fake_alloc(&b->drv, 4096, 4096);
}

static int request(struct bench *b, unsigned q)
{
	const struct fake_seg segs[] = { { b->out, 64 }, { b->in, 64, true } };

	return fake_vq_request(&b->drv.vq[q], segs, 2, NULL);
}

static u8 set_status(struct bench *b, u8 status)
{
	fake_common_write(&b->drv, VP_STATUS, 1, status);
	return fake_driver_status(&b->drv);
}

static u32 offered(struct bench *b, u32 sel)
{
	fake_common_write(&b->drv, VP_DFSELECT, 4, sel);
	return (u32)fake_common_read(&b->drv, VP_DF, 4);
}

static void ack(struct bench *b, u32 sel, u32 value)
{
	fake_common_write(&b->drv, VP_GFSELECT, 4, sel);
	fake_common_write(&b->drv, VP_GF, 4, value);
}

/* --- status machine and features (traps C10) --- */

static void t_features(void)
{
	struct bench b;

	bench_make(&b, 8);
	REQUIRE(fake_driver_probe(&b.drv, &b.fm, ECHO_ID, NULL));
	CHECK_EQ(offered(&b, 0), BIT(VIRTIO_B_INDIRECT_DESC) | BIT(VIRTIO_B_EVENT_IDX) | BIT(3));
	CHECK_EQ(offered(&b, 1), 1 | 1 << 8); /* VERSION_1, RING_RESET */
	for (u32 sel = 2; sel < 6; sel++)
		CHECK_EQ(offered(&b, sel), 0);
	CHECK_EQ(offered(&b, UINT32_MAX), 0);
	CHECK_EQ(offered(&b, 0x80000000), 0);
	/* Writing where there is nothing aliases onto nothing. */
	ack(&b, 0, 8);
	ack(&b, 1, 1);
	ack(&b, 2, 0);
	ack(&b, 3, 0);
	ack(&b, 4, 0xffffffff);
	ack(&b, UINT32_MAX, 0xffffffff);
	CHECK_EQ(b.echo->dev.acked[0], BIT(32) | 8);
	CHECK_EQ(b.echo->dev.acked[1], 0);
	CHECK_EQ(set_status(&b, 1), 1);
	CHECK_EQ(set_status(&b, 3), 3);
	CHECK_EQ(set_status(&b, 0xb), 0xb);
	ack(&b, 0, 0xffffffff); /* too late */
	CHECK_EQ(b.echo->dev.acked[0], BIT(32) | 8);
	fake_machine_free(&b.fm);
}

static void t_features_refused(void)
{
	static const struct {
		u32 word[4];
		u8 want;
	} c[] = {
		{ { 0, 1, 0, 0 }, 0xb },        { { 8, 1, 0, 0 }, 0xb },
		{ { 8, 0, 0, 0 }, 3 },                                 /* no VERSION_1 */
		{ { 8, 1 | 1 << 9, 0, 0 }, 3 },                        /* bit 41 was not offered */
		{ { 16, 1, 0, 0 }, 3 },         { { 0, 1, 1, 0 }, 3 }, /* bit 64 */
		{ { 0, 1, 0, 0x80000000 }, 3 },
	};
	struct bench b;

	bench_make(&b, 8);
	REQUIRE(fake_driver_probe(&b.drv, &b.fm, ECHO_ID, NULL));
	for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
		CHECK_EQ(set_status(&b, 0), 0);
		set_status(&b, 1);
		set_status(&b, 3);
		for (u32 sel = 0; sel < 4; sel++)
			ack(&b, sel, c[i].word[sel]);
		CHECK_EQ(set_status(&b, 0xb), c[i].want);
		/* DRIVER_OK is no way around FEATURES_OK. */
		CHECK_EQ(set_status(&b, 0xf), c[i].want == 0xb ? 0xf : 3);
		CHECK_EQ(b.echo->dev.started, c[i].want == 0xb);
	}
	/* Mended in place: the driver may try other features. */
	set_status(&b, 3);
	ack(&b, 3, 0);
	CHECK_EQ(set_status(&b, 0xb), 0xb);
	fake_machine_free(&b.fm);
}

static void t_status_bits_stay(void)
{
	struct bench b;

	bench_open(&b, 8, NULL);
	CHECK_EQ(set_status(&b, 1), 0xf);
	CHECK_EQ(set_status(&b, 4), 0xf);
	CHECK_EQ(set_status(&b, 0x30), 0xf); /* bits of no meaning */
	CHECK_EQ(set_status(&b, 0x40), 0xf); /* the device's own */
	CHECK(b.echo->dev.started);
	CHECK_EQ(request(&b, 0), 0);
	CHECK_EQ(b.echo->nr_starts, 1);
	fake_machine_free(&b.fm);
}

/* DRIVER_OK alone, in the state 0xb. */
static void t_driver_ok_alone(void)
{
	struct bench b;

	bench_make(&b, 8);
	REQUIRE(fake_driver_probe(&b.drv, &b.fm, ECHO_ID, NULL));
	REQUIRE(fake_driver_negotiate(&b.drv));
	CHECK_EQ(set_status(&b, 4), 0xf);
	fake_machine_free(&b.fm);
}

static void t_failed_stops(void)
{
	struct bench b;

	bench_open(&b, 8, NULL);
	CHECK_EQ(set_status(&b, 0x8f), 0x80 | fake_status_ok(&b.drv));
	CHECK(!b.echo->dev.started);
	CHECK_EQ(request(&b, 0), -EAGAIN);
	CHECK(fake_driver_restart(&b.drv));
	CHECK_EQ(request(&b, 0), 0);
	fake_machine_free(&b.fm);
}

static void t_reset(void)
{
	struct bench b;

	bench_open(&b, 8, NULL);
	fake_config_write(&b.drv, 4, 4, 0x11223344);
	CHECK_EQ(request(&b, 0), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(set_status(&b, 0), 0);
		CHECK(!b.echo->dev.started);
		CHECK_EQ(b.fm.hv.nr_bells, 0);
		CHECK_EQ(b.fm.hv.nr_irqfds, 0);
		CHECK_EQ(b.echo->dev.acked[0], 0);
		CHECK_EQ(fake_config_read(&b.drv, 4, 4), 0);
		CHECK_EQ(b.echo->dev.vq[0].desc_gpa, 0);
		fake_common_write(&b.drv, VP_QSELECT, 2, 0);
		CHECK_EQ(fake_common_read(&b.drv, VP_QSIZE, 2), 8);
		CHECK_EQ(fake_common_read(&b.drv, VP_QENABLE, 2), 0);
		if (b.drv.opts.intx)
			continue;
		CHECK_EQ(fake_common_read(&b.drv, VP_QMSIX, 2), 0xffff);
		CHECK_EQ(fake_common_read(&b.drv, VP_MSIX, 2), 0xffff);
	}
	CHECK_EQ(b.echo->nr_stops, 1);
	CHECK(fake_driver_restart(&b.drv));
	CHECK_EQ(request(&b, 1), 0);
	fake_machine_free(&b.fm);
}

/*
 * After status read 0 nothing is written any more, also what was available and kicked (traps C11).
 */
static void t_reset_with_requests_waiting(void)
{
	struct bench b;
	struct fake_seg segs[2];
	u16 used;

	bench_open(&b, 8, NULL);
	segs[0] = (struct fake_seg){ b.out, 64 };
	segs[1] = (struct fake_seg){ b.in, 64, true };
	for (int round = 0; round < 50; round++) {
		memset(fake_ptr(&b.drv, b.out, 64), 0x77, 64);
		memset(fake_ptr(&b.drv, b.in, 64), 0xee, 64);
		REQUIRE(fake_vq_add(&b.drv.vq[0], segs, 2, &b) >= 0);
		fake_vq_kick(&b.drv.vq[0]);
		used = b.drv.vq[0].used->idx;
		REQUIRE(fake_driver_reset(&b.drv));
		fake_machine_run(&b.fm);
		CHECK_EQ(*(u8 *)fake_ptr(&b.drv, b.in, 1), 0xee);
		CHECK_EQ(b.drv.vq[0].used->idx, used);
		REQUIRE(fake_driver_restart(&b.drv));
		CHECK_EQ(fake_vq_irqs(&b.drv.vq[0]), 0); /* no interrupt of an earlier life */
		CHECK_EQ(request(&b, 0), 0);
	}
	fake_machine_free(&b.fm);
}

/* Buffers that were available before DRIVER_OK are served although nobody kicks. */
static void t_available_before_start(void)
{
	struct bench b;

	bench_make(&b, 8);
	REQUIRE(fake_driver_probe(&b.drv, &b.fm, ECHO_ID, NULL));
	REQUIRE(fake_driver_negotiate(&b.drv));
	fake_driver_setup_irqs(&b.drv);
	fake_driver_setup_vq(&b.drv, 1);
	b.in = fake_alloc(&b.drv, 64, 64);
	REQUIRE(fake_vq_add(&b.drv.vq[1], (struct fake_seg[]){ { b.in, 64, true } }, 1, &b) >= 0);
	fake_vq_publish(&b.drv.vq[1]);
	CHECK(fake_driver_start(&b.drv)); /* queue 0 stays disabled */
	fake_machine_run(&b.fm);
	CHECK(fake_vq_get(&b.drv.vq[1], NULL) == &b);
	fake_machine_free(&b.fm);
}

/* No queue enabled: nothing for the backend to do. */
static void t_no_queue_ready(void)
{
	struct bench b;

	bench_make(&b, 8);
	REQUIRE(fake_driver_probe(&b.drv, &b.fm, ECHO_ID, NULL));
	REQUIRE(fake_driver_negotiate(&b.drv));
	CHECK(fake_driver_start(&b.drv));
	CHECK_EQ(b.echo->nr_starts, 0);
	CHECK(!b.echo->be->started);
	CHECK(fake_driver_restart(&b.drv));
	CHECK_EQ(b.echo->nr_starts, 1);
	fake_machine_free(&b.fm);
}

/* Rings that are not in memory, or crooked: seen at DRIVER_OK. */
static void t_bad_rings(void)
{
	static const struct {
		unsigned reg;
		u64 gpa;
	} c[] = {
		{ VP_QDESC, 0xdead00000000 },   { VP_QDESC, 0x100008 },
		{ VP_QAVAIL, 0x100001 },        { VP_QUSED, 0x100002 },
		{ VP_QUSED, FAKE_RAM_MID - 2 }, { VP_QUSED, UINT64_MAX - 3 },
	};
	struct bench b;

	log_set_sink(ignore_log);
	bench_open(&b, 8, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
		REQUIRE(fake_driver_negotiate(&b.drv));
		fake_driver_setup_irqs(&b.drv);
		fake_common_write(&b.drv, VP_QSELECT, 2, 1);
		fake_common_write(&b.drv, VP_QDESC, 8, 0x100000);
		fake_common_write(&b.drv, VP_QAVAIL, 8, 0x100000);
		fake_common_write(&b.drv, VP_QUSED, 8, 0x100000);
		fake_common_write(&b.drv, c[i].reg, 8, c[i].gpa);
		fake_common_write(&b.drv, VP_QENABLE, 2, 1);
		CHECK(!fake_driver_start(&b.drv));
		CHECK_EQ(fake_driver_status(&b.drv), 0x4f);
		CHECK_EQ(b.fm.hv.nr_bells, 0);
	}
	CHECK(fake_driver_restart(&b.drv));
	CHECK_EQ(request(&b, 0), 0);
	fake_machine_free(&b.fm);
}

/* --- config space (traps C9) --- */

static void t_config_space(void)
{
	struct bench b;
	u8 bytes[40]; /* as far as a legacy BAR reaches */

	bench_open(&b, 8, NULL);
	CHECK(b.drv.config_len == sizeof(struct echo_config) || fake_transport != VIRTIO_ON_PCI);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)fake_config_read(&b.drv, i, 1);
	CHECK_EQ(memcmp(bytes, &b.echo->config, sizeof(b.echo->config)), 0);
	for (unsigned len = 1; len <= 8; len *= 2) {
		for (unsigned off = 0; off + len <= sizeof(bytes); off++) {
			u64 want = 0, got = fake_config_read(&b.drv, off, len);

			memcpy(&want, bytes + off, len);
			CHECK_EQ(got, want);
		}
	}
	for (unsigned i = sizeof(b.echo->config); i < sizeof(bytes); i++)
		CHECK_EQ(bytes[i], 0);
	/* Only scratch can be written, by any width and across its ends. */
	for (unsigned len = 1; len <= 8; len *= 2)
		for (unsigned off = 0; off < 0x1000; off++)
			fake_config_write(&b.drv, off, len, UINT64_MAX);
	CHECK_EQ(b.echo->config.magic, 0x6f686365);
	CHECK_EQ(b.echo->config.scratch, UINT32_MAX);
	CHECK_EQ(b.echo->config.tail[2], 0xa3);
	CHECK_EQ(b.echo->bad_writes, 0);
	CHECK_EQ(request(&b, 0), 0);
	fake_machine_free(&b.fm);
}

static void t_config_changed(void)
{
	struct bench b;
	u8 gen;

	bench_open(&b, 8, NULL);
	gen = (u8)fake_common_read(&b.drv, VP_GEN, 1);
	CHECK_EQ(fake_common_read(&b.drv, VP_GEN, 1), gen);
	pthread_mutex_lock(&b.echo->dev.lock);
	virtio_config_changed(&b.echo->dev);
	pthread_mutex_unlock(&b.echo->dev.lock);
	CHECK_EQ((u8)fake_common_read(&b.drv, VP_GEN, 1), (u8)(gen + 1));
	CHECK_EQ(fake_driver_config_irqs(&b.drv), 1);
	CHECK_EQ(fake_vq_irqs(&b.drv.vq[0]), 0);
	/* Without a vector, and before DRIVER_OK, there is no interrupt, now or later. */
	if (!b.drv.opts.intx) {
		fake_common_write(&b.drv, VP_MSIX, 2, 0xffff);
		pthread_mutex_lock(&b.echo->dev.lock);
		virtio_config_changed(&b.echo->dev);
		pthread_mutex_unlock(&b.echo->dev.lock);
		fake_common_write(&b.drv, VP_MSIX, 2, 0);
	}
	CHECK_EQ(fake_driver_config_irqs(&b.drv), 1);
	REQUIRE(fake_driver_negotiate(&b.drv));
	fake_driver_setup_irqs(&b.drv);
	pthread_mutex_lock(&b.echo->dev.lock);
	virtio_config_changed(&b.echo->dev);
	pthread_mutex_unlock(&b.echo->dev.lock);
	CHECK_EQ(fake_driver_config_irqs(&b.drv), 1);
	fake_machine_free(&b.fm);
}

/* --- what goes wrong at start --- */

/* Each call of the hypervisor in turn fails: broken, nothing left behind, a reset mends it. */
static void start_fails(bool intx)
{
	const struct fake_driver_opts opts = { .intx = intx };
	struct bench b;
	unsigned n, failures = 0;

	bench_open(&b, 8, &opts);
	for (n = 1; n < 100; n++) {
		bool done;

		REQUIRE(fake_driver_negotiate(&b.drv));
		fake_driver_setup_irqs(&b.drv);
		for (unsigned q = 0; q < 2; q++)
			fake_driver_setup_vq(&b.drv, q);
		fake_hv_fail(&b.fm.hv, n);
		done = fake_driver_start(&b.drv);
		fake_hv_fail(&b.fm.hv, 0);
		if (done)
			break;
		failures++;
		CHECK_EQ(fake_driver_status(&b.drv), 0x40 | fake_status_ok(&b.drv));
		CHECK_EQ(b.fm.hv.nr_bells, 0);
		CHECK_EQ(b.fm.hv.nr_irqfds, b.drv.opts.intx ? 0 : 1); /* the config vector's */
		CHECK(!b.echo->dev.started);
		fake_vq_ring(&b.drv.vq[0]);
		fake_machine_run(&b.fm);
	}
	CHECK(failures >= (intx || b.drv.opts.intx ? 2 : 4));
	CHECK_EQ(request(&b, 0), 0);
	CHECK_EQ(request(&b, 1), 0);
	fake_machine_free(&b.fm);
}

static void t_start_fails(void)
{
	log_set_sink(ignore_log);
	start_fails(false);
	start_fails(true);
}

/* The hypervisor refuses the config vector: the register says so. */
static void t_no_config_vector(void)
{
	struct bench b;

	log_set_sink(ignore_log);
	bench_open(&b, 8, NULL);
	for (unsigned n = 1; n < 3; n++) {
		REQUIRE(fake_driver_reset(&b.drv));
		fake_hv_fail(&b.fm.hv, n);
		fake_common_write(&b.drv, VP_MSIX, 2, 2);
		if (fake_common_read(&b.drv, VP_MSIX, 2) != 2)
			CHECK_EQ(fake_common_read(&b.drv, VP_MSIX, 2), 0xffff);
		else
			CHECK(n > 1);
		fake_hv_fail(&b.fm.hv, 0);
	}
	CHECK(fake_driver_restart(&b.drv));
	CHECK_EQ(request(&b, 0), 0);
	fake_machine_free(&b.fm);
}

static void t_backend_fails(void)
{
	/* A reset takes back an interrupt of MMIO that nobody has seen yet. */
	u64 irqs = fake_transport == VIRTIO_ON_MMIO ? 1 : 3;
	struct bench b;

	log_set_sink(ignore_log);
	bench_open(&b, 8, NULL);
	b.echo->start_error = -EIO;
	CHECK(!fake_driver_restart(&b.drv));
	CHECK_EQ(fake_driver_status(&b.drv), 0x40 | fake_status_ok(&b.drv));
	CHECK_EQ(b.echo->nr_stops, 1); /* of the first start only */
	b.echo->start_error = 0;
	b.echo->starting_error = -EOPNOTSUPP;
	CHECK(!fake_driver_restart(&b.drv));
	CHECK_EQ(b.echo->nr_starts, 1);
	b.echo->starting_error = 0;
	CHECK(fake_driver_restart(&b.drv));
	CHECK_EQ(request(&b, 0), 0);
	/* Later: the device type gives up. Told once, by the config interrupt, and sticky. */
	b.echo->handle_error = -EIO;
	CHECK_EQ(request(&b, 0), -EAGAIN);
	CHECK_EQ(fake_driver_status(&b.drv), 0x40 | fake_status_ok(&b.drv));
	CHECK_EQ(set_status(&b, 0xf), 0x40 | fake_status_ok(&b.drv));
	CHECK_EQ(b.echo->dev.nr_broken, 3);
	CHECK_EQ(fake_driver_config_irqs(&b.drv), irqs);
	pthread_mutex_lock(&b.echo->dev.lock);
	virtio_broken(&b.echo->dev, "once more");
	pthread_mutex_unlock(&b.echo->dev.lock);
	CHECK_EQ(b.echo->dev.nr_broken, 3);
	CHECK_EQ(fake_driver_config_irqs(&b.drv), irqs);
	b.echo->handle_error = 0;
	CHECK_EQ(request(&b, 0), -EAGAIN);
	CHECK(fake_driver_restart(&b.drv));
	CHECK_EQ(request(&b, 0), 0);
	fake_machine_free(&b.fm);
}

static int broken_lines;

static void count_log(enum log_level level, const char *line)
{
	broken_lines += level <= LOG_WARN && strstr(line, "virtio-echo");
}

/* A guest can break its device in a loop: one line of log. */
static void t_broken_logs_once(void)
{
	struct bench b;

	bench_open(&b, 8, NULL);
	log_set_sink(count_log);
	b.echo->handle_error = -EIO;
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(request(&b, 0), -EAGAIN);
		CHECK(fake_driver_restart(&b.drv));
	}
	log_set_sink(NULL);
	CHECK_EQ(broken_lines, 1);
	fake_machine_free(&b.fm);
}

/* --- building --- */

static void t_build_limits(void)
{
	struct fake_machine fm;
	struct echo *e;

	fake_machine_init(&fm, NULL);
	CHECK_EQ(echo_new(&fm.m, VIRTIO_MAX_VQS + 1, 8, &e), -EINVAL);
	CHECK_EQ(echo_new(&fm.m, 1, 0, &e), -EINVAL);
	CHECK_EQ(echo_new(&fm.m, 1, 12, &e), -EINVAL);
	CHECK_EQ(echo_new(&fm.m, 1, 2 * VIRTQ_MAX_SIZE, &e), -EINVAL);
	CHECK_EQ(echo_new(&fm.m, VIRTIO_MAX_VQS, VIRTQ_MAX_SIZE, &e), 0);
	fake_machine_free(&fm);
}

static void t_backend_ranges(void)
{
	struct bench b;
	struct virtio_backend *be;

	bench_make(&b, 8);
	CHECK(!uservq_new(&b.echo->dev, 1, 2, NULL, NULL)); /* past the last queue */
	be = uservq_new(&b.echo->dev, 1, 1, NULL, NULL);
	REQUIRE(be);
	CHECK_EQ(virtio_add_backend(&b.echo->dev, be), -EBUSY);
	be->ops->free(be);
	fake_machine_free(&b.fm);
}

/* More devices than slots: an error, and those that are there still work. */
static void t_many_devices(void)
{
	struct fake_machine fm;
	struct echo *e;
	int n = 0;

	log_set_sink(ignore_log);
	fake_machine_init(&fm, NULL);
	while (n < 40 && echo_new(&fm.m, 1, 8, &e) == 0)
		n++;
	CHECK_EQ(n, 31);
	fake_machine_free(&fm);
}

static void t_stat(void)
{
	struct bench b;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	REQUIRE(f);
	bench_open(&b, 8, NULL);
	CHECK_EQ(request(&b, 1), 0);
	b.fm.m.devices->stat(b.fm.m.devices, f);
	fclose(f);
	CHECK(strstr(text, "{\"type\":\"echo\",\"transport\":\"pci\",\"status\":15,"));
	CHECK(strstr(text, "\"features\":\"0x00000000000000000000010130000008\""));
	CHECK(strstr(text, "{\"index\":1,\"size\":8,\"ready\":true,\"backend\":\"userspace\","
			   "\"running\":true,\"doorbell_exits\":0,\"kicks\":"));
	CHECK(strstr(text, "\"chains\":1}]}"));
	free(text);
	fake_machine_free(&b.fm);
}

/* clang-format off */
#define EVERYWHERE(X) \
	X(t_failed_stops) X(t_reset) X(t_reset_with_requests_waiting) \
	X(t_available_before_start) X(t_no_queue_ready) X(t_config_space) X(t_start_fails) \
	X(t_backend_fails) X(t_broken_logs_once)
#define MODERN(X) \
	X(t_features) X(t_features_refused) X(t_status_bits_stay) X(t_driver_ok_alone) \
	X(t_bad_rings) X(t_config_changed)
EVERYWHERE(FAKE_ON_MMIO)
MODERN(FAKE_ON_MMIO)
EVERYWHERE(FAKE_ON_LEGACY)

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, MODERN(FAKE_LIST) EVERYWHERE(FAKE_LIST) MODERN(FAKE_LIST_MMIO)
		       EVERYWHERE(FAKE_LIST_MMIO) EVERYWHERE(FAKE_LIST_LEGACY)
		       T(t_no_config_vector), T(t_build_limits), T(t_backend_ranges),
		       T(t_many_devices), T(t_stat));
}
