/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A table of scenarios, each a function s_NAME(enum nic_kind), becomes tests user_NAME, vhost_NAME,
 * kernel_NAME: one for each data path of fake-nic.h. And what most scenarios are made of.
 */
#ifndef LKVM_TESTS_NIC_SCENARIOS_H
#define LKVM_TESTS_NIC_SCENARIOS_H

#include "../tap.h"
#include "dev-vhost.h"
#include "log.h"

static u8 frame[NET_MAX_FRAME], got[NET_MAX_FRAME];

static inline void quiet(enum log_level level, const char *line)
{
	(void)level;
	printf("# %s\n", line);
}

/* Guest to wire, and wire to guest. */
static inline void check_tx(struct fake_nic *nic, u32 len, u32 seed)
{
	long n = -1;

	fake_nic_frame(frame, len, seed);
	REQUIRE(NIC_WAIT(nic, fake_nic_reap(nic) + 1 && fake_nic_send(nic, frame, len)));
	REQUIRE(NIC_WAIT(nic, (n = fake_netif_take(nic->fn, NULL, got, sizeof(got))) >= 0));
	CHECK_EQ(n, len);
	CHECK(n == len && fake_nic_is_frame(got, len, seed));
}

static inline void check_rx(struct fake_nic *nic, u32 len, u32 seed, u16 want_buffers)
{
	u16 buffers = 0;
	long n = -1;

	fake_nic_frame(frame, len, seed);
	REQUIRE(NIC_WAIT(nic, fake_netif_inject(nic->fn, frame, len)));
	REQUIRE(NIC_WAIT(nic, (n = fake_nic_recv(nic, got, sizeof(got), &buffers)) >= 0));
	CHECK_EQ(n, len);
	CHECK(n == len && fake_nic_is_frame(got, len, seed));
	CHECK_EQ(buffers, want_buffers);
}

/* Starts the driver anew, with nothing left on the wire of what came before. */
static inline void start_over(struct fake_nic *nic)
{
	CHECK(fake_driver_reset(&nic->drv));
	fake_netif_drain(nic->fn);
	REQUIRE(fake_nic_restart(nic));
}

#define DEFINE_SCENARIO(s) \
	static void user_##s(void) \
	{ \
		s_##s(NIC_USER); \
	} \
	static void vhost_##s(void) \
	{ \
		s_##s(NIC_VHOST); \
	} \
	static void kernel_##s(void) \
	{ \
		s_##s(NIC_VHOST_KERNEL); \
	}

#define LIST_SCENARIO(s) T(user_##s), T(vhost_##s), T(kernel_##s),

#endif
