// SPDX-License-Identifier: GPL-2.0-only
/* The fake netif. Theory of operation: fake-netif.h. */
#include <sys/socket.h>
#include <unistd.h>

#include "fake-netif.h"

static struct fake_netif *to_fake(struct netif *nif)
{
	return container_of(nif, struct fake_netif, nif);
}

static long fake_send(struct netif *nif, unsigned queue, const struct iovec *iov, unsigned nr)
{
	struct fake_netif *fn = to_fake(nif);
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = nr };
	ssize_t n;

	fn->nr_sends++;
	if (fn->fail_send) {
		int r = fn->fail_send;

		fn->fail_send = 0;
		return r;
	}
	n = sendmsg(nif->fd[queue], &msg, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

static long fake_recv(struct netif *nif, unsigned queue, const struct iovec *iov, unsigned nr)
{
	ssize_t n = readv(nif->fd[queue], iov, (int)nr);

	to_fake(nif)->nr_recvs++;
	return n < 0 ? -errno : n;
}

static int fake_set_offload(struct netif *nif, u64 features)
{
	struct fake_netif *fn = to_fake(nif);

	fn->nr_offload++;
	if (fn->fail_offload)
		return fn->fail_offload;
	fn->offload = features;
	return 0;
}

static int fake_set_queues(struct netif *nif, unsigned nr)
{
	struct fake_netif *fn = to_fake(nif);

	if (!nr || nr > nif->nr_queues)
		abort();
	if (fn->fail_queues)
		return fn->fail_queues;
	fn->nr_active = nr;
	return 0;
}

static int fake_set_link(struct netif *nif, bool up)
{
	struct fake_netif *fn = to_fake(nif);

	if (!fn->fail_link)
		fn->link_down = !up;
	return fn->fail_link;
}

static int fake_set_hdr_len(struct netif *nif, unsigned len)
{
	__atomic_store_n(&to_fake(nif)->hdr_len, len, __ATOMIC_RELAXED);
	return 0;
}

static void fake_close(struct netif *nif)
{
	struct fake_netif *fn = to_fake(nif);

	if (fn->closed)
		*fn->closed = true;
	fake_netif_unplug(fn);
	for (unsigned i = 0; i < nif->nr_queues; i++)
		close(nif->fd[i]);
	free(fn);
}

static const struct netif_ops fake_ops = {
	.send = fake_send,
	.recv = fake_recv,
	.set_offload = fake_set_offload,
	.set_queues = fake_set_queues,
	.set_link = fake_set_link,
	.set_hdr_len = fake_set_hdr_len,
	.close = fake_close,
};

struct fake_netif *fake_netif_new(unsigned queues)
{
	struct fake_netif *fn = calloc(1, sizeof(*fn));

	if (!fn)
		abort();
	fn->nr_active = 1;
	fn->nif = (struct netif){
		.ops = &fake_ops,
		.nr_queues = queues,
		.features = BIT(NET_B_CSUM) | BIT(NET_B_GUEST_CSUM) | BIT(NET_B_GUEST_TSO4) |
			    BIT(NET_B_GUEST_TSO6) | BIT(NET_B_GUEST_ECN) | BIT(NET_B_HOST_TSO4) |
			    BIT(NET_B_HOST_TSO6) | BIT(NET_B_HOST_ECN) | BIT(NET_B_GUEST_USO4) |
			    BIT(NET_B_GUEST_USO6) | BIT(NET_B_HOST_USO),
		.mtu = 1500,
		.name = "fake0",
	};
	for (unsigned i = 0; i < queues; i++) {
		int fd[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) < 0) {
			perror("fake_netif");
			exit(1);
		}
		fn->nif.fd[i] = fd[0];
		fn->peer[i] = fd[1];
	}
	fn->hdr_len = NET_HDR_LEN;
	return fn;
}

/* The test's threads ask while the device's sets it. */
static u32 hdr_len_now(struct fake_netif *fn)
{
	return __atomic_load_n(&fn->hdr_len, __ATOMIC_RELAXED);
}

bool fake_netif_inject(struct fake_netif *fn, const void *frame, u32 len)
{
	u32 hdr_len = hdr_len_now(fn);

	/* like a tap, which leaves num_buffers as it was: garbage */
	u8 hdr[NET_HDR_LEN] = { [10] = 0x5a, [11] = 0xa5 };
	struct iovec iov[2] = { { hdr, hdr_len }, { (void *)frame, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	return sendmsg(fn->peer[fn->queue], &msg, MSG_NOSIGNAL) == (ssize_t)(len + hdr_len);
}

long fake_netif_take(struct fake_netif *fn, void *hdr, void *frame, u32 room)
{
	u32 hdr_len = hdr_len_now(fn);
	u8 own[NET_HDR_LEN];
	struct iovec iov[2] = { { hdr ? hdr : own, hdr_len }, { frame, room } };
	ssize_t n = readv(fn->peer[fn->queue], iov, 2);

	return n < (ssize_t)hdr_len ? -1 : n - hdr_len;
}

void fake_netif_drain(struct fake_netif *fn)
{
	u8 byte;

	for (unsigned i = 0; i < fn->nif.nr_queues; i++)
		while (recv(fn->peer[i], &byte, 1, 0) > 0 || recv(fn->nif.fd[i], &byte, 1, 0) > 0)
			;
}

void fake_netif_unplug(struct fake_netif *fn)
{
	for (unsigned i = 0; i < fn->nif.nr_queues; i++) {
		if (fn->peer[i] >= 0)
			close(fn->peer[i]);
		fn->peer[i] = -1;
	}
}
