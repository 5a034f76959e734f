// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: each call of the set-up of console, UART, clock and power ports fails once,
 * and each call of loading a kernel; nothing may stay behind.
 */
#include <fcntl.h>
#include "boot-image.h"
#include "console.h"
#include "fake/fake-hv.h"
#include "fake/fault.h"
#include "hw/legacy.h"
#include "loop.h"

static void on_stop(struct machine *m, enum stop_why why, int detail)
{
	(void)m;
	(void)why;
	(void)detail;
}

static int devices(struct machine *m, struct console *con)
{
	int err = serial_new(m, con, 0x3f8, 4);

	if (!err)
		err = rtc_new(m, 0x70);
	if (!err)
		err = i8042_new(m);
	if (!err)
		err = power_new(m, 0x600);
	if (!err)
		err = console_start(con);
	return err;
}

/* A user's end that cannot be opened anew is used as it is, or not at all: that is no error. */
static int platform(void)
{
	struct fake_hv hv;
	struct loop loop;
	struct machine m = { .loop = &loop, .hv = &hv.hv, .stop = on_stop };
	struct console *con;
	int err = loop_init(&loop), fds[2];

	if (err)
		return err;
	REQUIRE(pipe(fds) == 0);
	fake_hv_init(&hv);
	bus_init(&m.pio);
	con = console_new(&m, fds[0], fds[1]);
	err = con ? devices(&m, con) : -ENOMEM;
	machine_free_devices(&m);
	console_free(con);
	bus_destroy(&m.pio);
	loop_destroy(&loop);
	fake_hv_destroy(&hv);
	close(fds[0]);
	close(fds[1]);
	return err;
}

static void t_platform(void)
{
	CHECK(fault_loop_lenient(platform) > 10);
}

static struct guest_mem *boot_mem;
static const struct image *boot_im;

/* The kernel comes by a pipe, so that it is copied. */
static int boot(void)
{
	struct boot_start start;
	int fds[2], err;

	REQUIRE(pipe(fds) == 0);
	REQUIRE(write(fds[1], boot_im->byte, boot_im->size) == (ssize_t)boot_im->size);
	close(fds[1]);
	err = arch_boot(
		boot_mem,
		&(struct boot_source){ .kernel_path = "k", .kernel_fd = fds[0], .initrd_fd = -1 },
		1, &start);
	close(fds[0]);
	return err;
}

static void t_boot(void)
{
	static struct image im;
	struct guest_mem mem;

	image_mem(&mem, 32 * MiB);
	boot_mem = &mem;
	boot_im = &im;
	bz_make(&im, 4);
	CHECK(fault_loop(boot) > 2);
	elf_make(&im);
	CHECK(fault_loop(boot) > 3);
	mem_free(&mem);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_platform), T(t_boot));
}
