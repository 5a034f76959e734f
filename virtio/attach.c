// SPDX-License-Identifier: GPL-2.0-only
/* The transports by name, and the way of a device to its own. */
#include "virtio/device.h"

static const struct {
	const char *name;
	int (*attach)(struct virtio_device *dev);
} transports[] = {
	[VIRTIO_ON_PCI] = { "pci", virtio_pci_attach },
	[VIRTIO_ON_PCI_LEGACY] = { "pci-legacy", virtio_pci_legacy_attach },
	[VIRTIO_ON_MMIO] = { "mmio", virtio_mmio_attach },
};

int virtio_transport_find(const char *name, enum virtio_transport_kind *kind)
{
	for (unsigned i = 0; i < ARRAY_SIZE(transports); i++) {
		if (strcmp(transports[i].name, name))
			continue;
		*kind = (enum virtio_transport_kind)i;
		return 0;
	}
	return -ENOENT;
}

int virtio_attach(struct virtio_device *dev, enum virtio_transport_kind kind)
{
	return transports[kind].attach(dev);
}
