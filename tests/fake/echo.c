// SPDX-License-Identifier: GPL-2.0-only
/*
 * The echo device. Theory of operation: all queues are alike and served by one userspace backend; a
 * chain whose writable part is shorter than its readable part gets what fits.
 */
#include "echo.h"

/* Copies between two lists of buffers; how many bytes. */
static u32 copy_iov(const struct iovec *out, unsigned nr_out, const struct iovec *in,
		    unsigned nr_in)
{
	size_t out_off = 0, in_off = 0;
	u32 total = 0;

	while (nr_out && nr_in) {
		size_t n = MIN(out->iov_len - out_off, in->iov_len - in_off);

		memcpy((char *)in->iov_base + in_off, (const char *)out->iov_base + out_off, n);
		total += (u32)n;
		out_off += n;
		in_off += n;
		if (out_off == out->iov_len) {
			out++;
			nr_out--;
			out_off = 0;
		}
		if (in_off == in->iov_len) {
			in++;
			nr_in--;
			in_off = 0;
		}
	}
	return total;
}

static int echo_handle(struct virtio_device *dev, struct virtq *vq)
{
	struct echo *e = container_of(dev, struct echo, dev);
	struct virtq_chain c;
	unsigned n = 0;
	int r;

	if (e->handle_error)
		return e->handle_error;
	do {
		virtq_kicks_off(vq);
		while ((r = virtq_pop(vq, &c, e->iov, e->max_iov)) == 1) {
			virtq_push(vq, c.head,
				   copy_iov(e->iov, c.nr_out, e->iov + c.nr_out, c.nr_in));
			e->nr_handled++;
			if (e->batch && ++n % e->batch == 0)
				virtq_publish(vq);
		}
		virtq_publish(vq);
	} while (r == 0 && virtq_kicks_on(vq));
	return r;
}

static void echo_config_write(struct virtio_device *dev, unsigned off, const void *data,
			      unsigned len)
{
	struct echo *e = container_of(dev, struct echo, dev);

	e->bad_writes += !len || off >= sizeof(e->config) || len > sizeof(e->config) - off;
	for (unsigned i = 0; i < len; i++)
		if (off + i >= 4 && off + i < 8)
			((u8 *)&e->config)[off + i] = ((const u8 *)data)[i];
}

static int echo_starting(struct virtio_device *dev)
{
	return container_of(dev, struct echo, dev)->starting_error;
}

static void echo_reset(struct virtio_device *dev)
{
	struct echo *e = container_of(dev, struct echo, dev);

	e->nr_resets++;
	e->config.scratch = 0;
}

static void echo_free(struct virtio_device *dev)
{
	struct echo *e = container_of(dev, struct echo, dev);

	if (e->freed)
		*e->freed = true;
	free(e);
}

static const struct virtio_device_ops echo_ops = {
	.name = "echo",
	.id = ECHO_ID,
	.handle_vq = echo_handle,
	.config_write = echo_config_write,
	.starting = echo_starting,
	.reset = echo_reset,
	.free = echo_free,
};

static int hook_start(void *ctx)
{
	struct echo *e = ctx;

	e->nr_starts += !e->start_error;
	return e->start_error;
}

static void hook_stop(void *ctx)
{
	((struct echo *)ctx)->nr_stops++;
}

static const struct uservq_hooks echo_hooks = { .start = hook_start, .stop = hook_stop };

static int echo_build(struct echo *e, struct machine *m, unsigned nr_vqs, unsigned vq_size)
{
	const u64 features[2] = { BIT(VIRTIO_B_EVENT_IDX) | BIT(VIRTIO_B_INDIRECT_DESC) | BIT(3) };
	int r = virtio_init(&e->dev, m, &echo_ops, nr_vqs, vq_size);

	if (r)
		return r;
	e->be = uservq_new(&e->dev, 0, (u16)nr_vqs, &echo_hooks, e);
	if (!e->be)
		return -ENOMEM;
	r = virtio_add_backend(&e->dev, e->be);
	if (r)
		return r;
	virtio_offer(&e->dev, features);
	e->config = (struct echo_config){ .magic = 0x6f686365, .tail = { 0xa1, 0xa2, 0xa3 } };
	e->dev.config = &e->config;
	e->dev.config_len = sizeof(e->config);
	e->max_iov = VIRTQ_MAX_IOV;
	return virtio_attach(&e->dev, m->transport);
}

int echo_new(struct machine *m, unsigned nr_vqs, unsigned vq_size, struct echo **out)
{
	struct echo *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	r = echo_build(e, m, nr_vqs, vq_size);
	if (r) {
		virtio_free(&e->dev);
		return r;
	}
	virtio_register(&e->dev);
	*out = e;
	return 0;
}
