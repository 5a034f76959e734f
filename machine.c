// SPDX-License-Identifier: GPL-2.0-only
/* The list of a machine's devices: linked in as they are made, ended in reverse. */
#include "machine.h"

void machine_add(struct machine *m, struct device *dev)
{
	dev->next = m->devices;
	m->devices = dev;
}

void machine_reset_devices(struct machine *m)
{
	for (struct device *dev = m->devices; dev; dev = dev->next) {
		if (dev->reset)
			dev->reset(dev);
	}
}

void machine_free_devices(struct machine *m)
{
	for (struct device *dev = m->devices; dev; dev = dev->next) {
		if (dev->stop)
			dev->stop(dev);
	}
	while (m->devices) {
		struct device *dev = m->devices;

		m->devices = dev->next;
		dev->free(dev);
	}
}
