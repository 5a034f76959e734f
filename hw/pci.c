// SPDX-License-Identifier: GPL-2.0-only
/*
 * The PCI bus. Theory of operation: include/hw/pci.h.
 *
 * A config write goes through the write mask byte by byte; then the BARs are looked at again: what
 * the command register and the address registers now say is compared with what is on the bus, and
 * the difference is carried out. So it does not matter in which order or width a guest moves a BAR.
 */
#include <linux/pci_regs.h>
#include <pthread.h>

#include "hw/pci.h"
#include "log.h"

#define CONF1_PORTS  8
#define CONF1_ENABLE 0x80000000u
#define CF9_RST_CPU  0x04 /* reset control register, at CONFIG_ADDRESS + 1 */
#define ECAM_SIZE    (1 * MiB)
#define CFG_SIZE     256
#define CFG_EXT_SIZE 4096

struct pci_root {
	struct machine *m;
	struct pci_layout layout;
	pthread_mutex_t lock;
	struct pci_dev *slot[PCI_MAX_SLOTS];
	struct pci_dev bridge;
	u64 next_mmio, next_io;
	u32 conf1_addr;

	pthread_mutex_t intx_lock; /* innermost but for the hypervisor: guards what follows */
	u32 intx_wanted;           /* by slot: the device drives its line */
	u32 intx_off;              /* by slot: INTx disable of the command register */
};

static u16 cfg16(const struct pci_dev *dev, unsigned off)
{
	return (u16)(dev->cfg[off] | dev->cfg[off + 1] << 8);
}

static u32 cfg32(const struct pci_dev *dev, unsigned off)
{
	return cfg16(dev, off) | (u32)cfg16(dev, off + 2) << 16;
}

static void cfg_set(u8 *bytes, unsigned off, u32 value, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		bytes[off + i] = (u8)(value >> (8 * i));
}

/* --- INTx: lines are shared, four for all slots --- */

static void intx_update(struct pci_root *root, unsigned slot)
{
	struct pci_dev *dev = root->slot[slot];
	bool level = false;

	if (!dev)
		return;
	for (unsigned i = 0; i < PCI_MAX_SLOTS; i++) {
		if (root->slot[i] && root->slot[i]->intx_gsi == dev->intx_gsi &&
		    (root->intx_wanted & ~root->intx_off & BIT(i)))
			level = true;
	}
	root->m->hv->ops->irq_line(root->m->hv, dev->intx_gsi, level);
}

void pci_intx(struct pci_dev *dev, bool level)
{
	struct pci_root *root = dev->root;
	u32 bit = (u32)BIT(dev->slot);

	if (!root)
		return;
	pthread_mutex_lock(&root->intx_lock);
	if (!!(root->intx_wanted & bit) != level) {
		root->intx_wanted ^= bit;
		intx_update(root, dev->slot);
	}
	pthread_mutex_unlock(&root->intx_lock);
}

static void intx_command(struct pci_dev *dev)
{
	struct pci_root *root = dev->root;
	bool off = cfg16(dev, PCI_COMMAND) & PCI_COMMAND_INTX_DISABLE;
	u32 bit = (u32)BIT(dev->slot);

	pthread_mutex_lock(&root->intx_lock);
	if (!!(root->intx_off & bit) != off) {
		root->intx_off ^= bit;
		intx_update(root, dev->slot);
	}
	pthread_mutex_unlock(&root->intx_lock);
}

/* --- BARs --- */

static struct bus *bar_bus(struct pci_root *root, const struct pci_bar *bar)
{
	return bar->io ? &root->m->pio : &root->m->mmio;
}

static void bar_unmap(struct pci_dev *dev, unsigned i)
{
	struct pci_bar *bar = &dev->bar[i];

	if (!bar->mapped)
		return;
	if (dev->bar_moved)
		dev->bar_moved(dev, i, false);
	bus_del(bar_bus(dev->root, bar), bar->addr);
	bar->mapped = false;
}

/*
 * An address that collides with something else on the bus leaves the BAR unmapped, as on hardware.
 */
static void bar_map(struct pci_dev *dev, unsigned i)
{
	struct pci_bar *bar = &dev->bar[i];
	int err = bus_add(bar_bus(dev->root, bar), bar->addr, bar->size, bar->ops, bar->ops_dev);

	if (err) {
		log_debug("pci %u: BAR %u at %#llx: %s", dev->slot, i,
			  (unsigned long long)bar->addr, strerror(-err));
		return;
	}
	bar->mapped = true;
	if (dev->bar_moved)
		dev->bar_moved(dev, i, true);
}

static void bars_sync(struct pci_dev *dev)
{
	u16 cmd = cfg16(dev, PCI_COMMAND);

	for (unsigned i = 0; i < PCI_NR_BARS; i++) {
		struct pci_bar *bar = &dev->bar[i];
		bool on = cmd & (bar->io ? PCI_COMMAND_IO : PCI_COMMAND_MEMORY);
		u32 mask = bar->io ? (u32)PCI_BASE_ADDRESS_IO_MASK : (u32)PCI_BASE_ADDRESS_MEM_MASK;
		u64 addr = cfg32(dev, PCI_BASE_ADDRESS_0 + 4 * i) & mask;

		if (!bar->size || (bar->mapped && on && addr == bar->addr))
			continue;
		bar_unmap(dev, i);
		bar->addr = addr;
		if (on)
			bar_map(dev, i);
	}
}

/* --- config space --- */

static void cfg_read(struct pci_root *root, unsigned slot, unsigned off, u8 *data, unsigned len)
{
	struct pci_dev *dev = root->slot[slot];

	if (!dev)
		return;
	if (dev->cfg_read)
		dev->cfg_read(dev, off, len);
	for (unsigned i = 0; i < len; i++)
		data[i] = off + i < CFG_SIZE ? dev->cfg[off + i] : 0;
}

static void cfg_write(struct pci_root *root, unsigned slot, unsigned off, const u8 *data,
		      unsigned len)
{
	struct pci_dev *dev = root->slot[slot];

	if (!dev || off >= CFG_SIZE)
		return;
	len = MIN(len, CFG_SIZE - off);
	for (unsigned i = 0; i < len; i++) {
		u8 mask = dev->wmask[off + i];

		dev->cfg[off + i] = (u8)((dev->cfg[off + i] & ~mask) | (data[i] & mask));
	}
	if (off < PCI_BASE_ADDRESS_5 + 4) {
		bars_sync(dev);
		intx_command(dev);
	}
	if (dev->cfg_write)
		dev->cfg_write(dev, off, len);
}

/* Bus 0 has single-function devices only: other functions and slots read as all ones. */
static bool ecam_decode(u64 off, unsigned *slot, unsigned *reg)
{
	*slot = off >> 15 & (PCI_MAX_SLOTS - 1);
	*reg = off & (CFG_EXT_SIZE - 1);
	return (off >> 12 & 7) == 0;
}

static void ecam_read(void *opaque, u64 off, void *data, unsigned len)
{
	struct pci_root *root = opaque;
	unsigned slot, reg;

	memset(data, 0xff, len);
	if (!ecam_decode(off, &slot, &reg))
		return;
	pthread_mutex_lock(&root->lock);
	cfg_read(root, slot, reg, data, len);
	pthread_mutex_unlock(&root->lock);
}

static void ecam_write(void *opaque, u64 off, const void *data, unsigned len)
{
	struct pci_root *root = opaque;
	unsigned slot, reg;

	if (!ecam_decode(off, &slot, &reg))
		return;
	pthread_mutex_lock(&root->lock);
	cfg_write(root, slot, reg, data, len);
	pthread_mutex_unlock(&root->lock);
}

static const struct bus_ops ecam_ops = { .read = ecam_read, .write = ecam_write };

/* CONFIG_ADDRESS: enable, bus (23:16), device (15:11), function (10:8), register (7:2). */
static bool conf1_decode(const struct pci_root *root, u64 off, unsigned *slot, unsigned *reg)
{
	u32 addr = root->conf1_addr;

	*slot = addr >> 11 & (PCI_MAX_SLOTS - 1);
	*reg = (addr & 0xfc) + (unsigned)(off & 3);
	return (addr & CONF1_ENABLE) && !(addr & 0x00ff0700);
}

static void conf1_read(void *opaque, u64 off, void *data, unsigned len)
{
	struct pci_root *root = opaque;
	unsigned slot, reg;

	memset(data, 0xff, len);
	len = MIN(len, 4U);
	pthread_mutex_lock(&root->lock);
	if (off < 4)
		memcpy(data, (const u8 *)&root->conf1_addr + off, MIN(len, (unsigned)(4 - off)));
	else if (conf1_decode(root, off, &slot, &reg))
		cfg_read(root, slot, reg, data, MIN(len, (unsigned)(8 - off)));
	pthread_mutex_unlock(&root->lock);
}

static void conf1_write(void *opaque, u64 off, const void *data, unsigned len)
{
	struct pci_root *root = opaque;
	const u8 *bytes = data;
	unsigned slot, reg;

	if (off == 1 && len == 1) {
		if (bytes[0] & CF9_RST_CPU)
			root->m->stop(root->m, STOP_RESET, 0);
		return;
	}
	pthread_mutex_lock(&root->lock);
	if (off == 0 && len == 4)
		memcpy(&root->conf1_addr, data, 4);
	else if (off >= 4 && conf1_decode(root, off, &slot, &reg))
		cfg_write(root, slot, reg, data, MIN(len, (unsigned)(8 - off)));
	pthread_mutex_unlock(&root->lock);
}

static const struct bus_ops conf1_ops = { .read = conf1_read, .write = conf1_write };

/* --- building --- */

void pci_dev_init(struct pci_dev *dev, u16 vendor, u16 device, u16 subsystem, u32 class_code,
		  u8 revision)
{
	memset(dev, 0, sizeof(*dev));
	cfg_set(dev->cfg, PCI_VENDOR_ID, vendor, 2);
	cfg_set(dev->cfg, PCI_DEVICE_ID, device, 2);
	cfg_set(dev->cfg, PCI_CLASS_REVISION, class_code << 8 | revision, 4);
	cfg_set(dev->cfg, PCI_SUBSYSTEM_VENDOR_ID, vendor, 2);
	cfg_set(dev->cfg, PCI_SUBSYSTEM_ID, subsystem, 2);
	cfg_set(dev->wmask, PCI_COMMAND, PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE, 2);
	dev->wmask[PCI_CACHE_LINE_SIZE] = 0xff;
	dev->wmask[PCI_INTERRUPT_LINE] = 0xff;
	dev->next_cap = 0x40;
}

void pci_dev_bar(struct pci_dev *dev, unsigned bar, u64 size, bool io, const struct bus_ops *ops,
		 void *ops_dev)
{
	dev->bar[bar] = (struct pci_bar){ .size = size, .io = io, .ops = ops, .ops_dev = ops_dev };
	cfg_set(dev->wmask, PCI_BASE_ADDRESS_0 + 4 * bar, (u32) ~(size - 1), 4);
	dev->wmask[PCI_COMMAND] |= io ? PCI_COMMAND_IO : PCI_COMMAND_MEMORY;
}

unsigned pci_dev_cap(struct pci_dev *dev, u8 id, const void *cap, unsigned len)
{
	unsigned off = dev->next_cap;

	memcpy(&dev->cfg[off], cap, len);
	dev->cfg[off] = id;
	dev->cfg[off + 1] = 0;
	dev->cfg[dev->last_cap ? dev->last_cap + 1 : PCI_CAPABILITY_LIST] = (u8)off;
	dev->cfg[PCI_STATUS] |= PCI_STATUS_CAP_LIST;
	dev->last_cap = (u8)off;
	dev->next_cap = (u8)ALIGN_UP(off + len, 4);
	return off;
}

/* Addresses are naturally aligned; the space is never given back, devices do not come and go. */
static int bar_place(struct pci_root *root, struct pci_dev *dev, unsigned i)
{
	struct pci_bar *bar = &dev->bar[i];
	const struct pci_layout *l = &root->layout;
	u64 *next = bar->io ? &root->next_io : &root->next_mmio;
	u64 end = bar->io ? l->io_base + l->io_size : l->mmio_base + l->mmio_size;
	u64 addr = ALIGN_UP(*next, bar->size);

	if (addr + bar->size > end)
		return -ENOSPC;
	*next = addr + bar->size;
	bar->addr = addr;
	cfg_set(dev->cfg, PCI_BASE_ADDRESS_0 + 4 * i,
		(u32)addr | (bar->io ? PCI_BASE_ADDRESS_SPACE_IO : 0), 4);
	return 0;
}

static void intx_assign(struct pci_root *root, struct pci_dev *dev, unsigned slot)
{
	unsigned line = slot % PCI_INTX_LINES; /* pin A, swizzled by slot */

	dev->intx_gsi = root->layout.intx_gsi[line];
	dev->cfg[PCI_INTERRUPT_PIN] = 1;
	dev->cfg[PCI_INTERRUPT_LINE] = (u8)dev->intx_gsi;
}

static int dev_place(struct pci_root *root, struct pci_dev *dev)
{
	u16 cmd = 0;

	for (unsigned i = 0; i < PCI_NR_BARS; i++) {
		int err = dev->bar[i].size ? bar_place(root, dev, i) : 0;

		if (err)
			return err;
		if (dev->bar[i].size)
			cmd |= dev->bar[i].io ? PCI_COMMAND_IO : PCI_COMMAND_MEMORY;
	}
	cfg_set(dev->cfg, PCI_COMMAND, cmd, 2);
	memcpy(dev->power_on, dev->cfg, sizeof(dev->power_on));
	bars_sync(dev);
	return 0;
}

int pci_dev_add(struct pci_root *root, struct pci_dev *dev)
{
	int err = -ENOSPC;

	pthread_mutex_lock(&root->lock);
	for (unsigned slot = 1; slot < PCI_MAX_SLOTS; slot++) {
		if (root->slot[slot])
			continue;
		dev->root = root;
		dev->slot = slot;
		intx_assign(root, dev, slot);
		err = dev_place(root, dev);
		if (err)
			dev->root = NULL;
		else
			root->slot[slot] = dev;
		break;
	}
	pthread_mutex_unlock(&root->lock);
	return err;
}

void pci_dev_del(struct pci_dev *dev)
{
	struct pci_root *root = dev->root;

	if (!root)
		return;
	pci_intx(dev, false);
	pthread_mutex_lock(&root->lock);
	for (unsigned i = 0; i < PCI_NR_BARS; i++)
		bar_unmap(dev, i);
	pthread_mutex_lock(&root->intx_lock);
	root->slot[dev->slot] = NULL;
	root->intx_off &= ~(u32)BIT(dev->slot);
	pthread_mutex_unlock(&root->intx_lock);
	pthread_mutex_unlock(&root->lock);
	dev->root = NULL;
}

void pci_root_reset(struct pci_root *root)
{
	pthread_mutex_lock(&root->lock);
	root->conf1_addr = 0;
	for (unsigned slot = 1; slot < PCI_MAX_SLOTS; slot++) {
		struct pci_dev *dev = root->slot[slot];

		if (!dev)
			continue;
		memcpy(dev->cfg, dev->power_on, sizeof(dev->cfg));
		bars_sync(dev);
		intx_command(dev);
		if (dev->reset)
			dev->reset(dev);
	}
	pthread_mutex_unlock(&root->lock);
}

bool pci_has_io(const struct pci_root *root)
{
	return root->layout.io_size != 0;
}

static int root_map(struct pci_root *root)
{
	const struct pci_layout *l = &root->layout;
	int err = bus_add(&root->m->mmio, l->ecam, ECAM_SIZE, &ecam_ops, root);

	if (err || !l->conf1)
		return err;
	err = bus_add(&root->m->pio, l->conf1, CONF1_PORTS, &conf1_ops, root);
	if (err)
		bus_del(&root->m->mmio, l->ecam);
	return err;
}

struct pci_root *pci_root_new(struct machine *m, const struct pci_layout *layout)
{
	struct pci_root *root = calloc(1, sizeof(*root));

	if (!root)
		return NULL;
	root->m = m;
	root->layout = *layout;
	root->next_mmio = layout->mmio_base;
	root->next_io = layout->io_base;
	pthread_mutex_init(&root->lock, NULL);
	pthread_mutex_init(&root->intx_lock, NULL);
	/*
	 * A host bridge of no known make: 1b36:0008 is QEMU's generic one, which needs no driver.
	 */
	pci_dev_init(&root->bridge, 0x1b36, 0x0008, 0x1100, 0x060000, 0);
	root->bridge.root = root;
	root->slot[0] = &root->bridge;
	if (root_map(root)) {
		pci_root_free(root);
		return NULL;
	}
	m->pci = root;
	return root;
}

void pci_root_free(struct pci_root *root)
{
	if (!root)
		return;
	if (root->m->pci == root) {
		bus_del(&root->m->mmio, root->layout.ecam);
		if (root->layout.conf1)
			bus_del(&root->m->pio, root->layout.conf1);
		root->m->pci = NULL;
	}
	pthread_mutex_destroy(&root->intx_lock);
	pthread_mutex_destroy(&root->lock);
	free(root);
}
