// SPDX-License-Identifier: GPL-2.0-only
/* virtio/pci.c */
#include "../tap.h"

#include "../fake/echo.h"
#include "../fake/fake-driver.h"

static void t_echo(void)
{
	struct fake_machine fm;
	struct fake_driver drv;
	struct echo *e;
	u64 a, b;
	u32 len = 0;

	fake_machine_init(&fm, NULL);
	REQUIRE(echo_new(&fm.m, 2, 256, &e) == 0);
	fake_driver_open(&drv, &fm, ECHO_ID, NULL);
	a = fake_alloc(&drv, 64, 1);
	b = fake_alloc(&drv, 64, 1);
	memset(fake_ptr(&drv, a, 64), 0x5a, 64);
	for (int i = 0; i < 1000; i++) {
		struct fake_vq *vq = &drv.vq[i & 1];

		CHECK_EQ(fake_vq_request(vq, (struct fake_seg[]){ { a, 64 }, { b, 64, true } }, 2, &len), 0);
		CHECK_EQ(len, 64);
		CHECK_EQ(memcmp(fake_ptr(&drv, a, 64), fake_ptr(&drv, b, 64), 64), 0);
		memset(fake_ptr(&drv, b, 64), 0, 64);
	}
	fm.m.devices->stat(fm.m.devices, stdout);
	printf("\n");
	fake_machine_free(&fm);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_echo));
}
