// SPDX-License-Identifier: GPL-2.0-only
/* Each call that putting a device on its transport makes fails once: nothing is left behind. */
#include "../fake/echo.h"
#include "../fake/fake-driver.h"
#include "../fake/fault.h"
#include "../tap.h"
#include "log.h"
#include "virtio/mmio.h"

static struct fake_machine fm;

static void quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static int make(void)
{
	struct echo *e;
	int err;

	err = echo_new(&fm.m, 3, 8, &e);
	if (!err) {
		fm.m.devices = e->dev.device.next;
		virtio_free(&e->dev);
	}
	return err;
}

static void on(enum virtio_transport_kind kind, int rounds)
{
	log_set_sink(quiet);
	fake_transport = kind;
	fake_machine_init(&fm, NULL);
	CHECK(fault_loop(make) >= rounds);
	fake_machine_free(&fm);
}

static void t_pci(void)
{
	on(VIRTIO_ON_PCI, 8);
}

static void t_pci_legacy(void)
{
	on(VIRTIO_ON_PCI_LEGACY, 8);
}

static void t_mmio(void)
{
	on(VIRTIO_ON_MMIO, 8);
}

static int make_slots(void)
{
	static const struct virtio_mmio_layout layout = { .base = 0x1000000, .present_port = 0x9 };
	int err = virtio_mmio_slots_new(&fm.m, &layout);

	if (!err) {
		struct device *dev = fm.m.devices;

		fm.m.devices = dev->next;
		dev->free(dev);
	}
	return err;
}

static void t_slots(void)
{
	struct mmio_slots *own;

	fake_machine_init(&fm, NULL);
	own = fm.m.mmio_slots;
	CHECK_EQ(fault_loop(make_slots), 2);
	/* A port that is somebody else's. */
	CHECK_EQ(virtio_mmio_slots_new(&fm.m, &(struct virtio_mmio_layout){ .present_port =
										    FAKE_PRESENT }),
		 -EBUSY);
	fm.m.mmio_slots = own;
	fake_machine_free(&fm);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_pci), T(t_pci_legacy), T(t_mmio), T(t_slots));
}
