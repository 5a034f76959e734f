// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine of fake-driver.h: memory, buses, loop, PCI and the fake hypervisor, without vCPUs.
 *
 * Theory of operation: a guest's access is a call of bus_read() or bus_write() by the test, after
 * the fake hypervisor was asked whether a doorbell is there, as KVM does before it leaves the
 * guest.
 */
#include <linux/pci_regs.h>

#include "fake-driver.h"
#include "hw/pci.h"
#include "virtio/mmio.h"

#define IDLE_ROUNDS 100000

enum virtio_transport_kind fake_transport;

static void fatal(const char *what)
{
	printf("# fake machine: %s\n", what);
	exit(1);
}

static void on_stop(struct machine *m, enum stop_why why, int detail)
{
	struct fake_machine *fm = container_of(m, struct fake_machine, m);

	(void)detail;
	if (fm->why == STOP_NONE)
		fm->why = why;
}

void fake_machine_init(struct fake_machine *fm, const struct fake_machine_opts *opts)
{
	bool io = !opts || !opts->no_io;
	struct pci_layout layout = {
		.ecam = FAKE_ECAM,
		.mmio_base = FAKE_MMIO,
		.mmio_size = FAKE_MMIO_SIZE,
		.io_base = FAKE_IO,
		.io_size = io ? FAKE_IO_SIZE : 0,
		.conf1 = io ? FAKE_CONF1 : 0,
		.intx_gsi = { FAKE_INTX, FAKE_INTX + 1, FAKE_INTX + 2, FAKE_INTX + 3 },
	};

	struct virtio_mmio_layout slots = { .base = FAKE_SLOTS,
					    .present_port = io ? FAKE_PRESENT : 0 };

	memset(fm, 0, sizeof(*fm));
	for (unsigned i = 0; i < VIRTIO_MMIO_SLOTS; i++)
		slots.gsi[i] = FAKE_SLOT_GSI + i;
	fm->m.transport = fake_transport;
	fake_hv_init(&fm->hv);
	bus_init(&fm->m.pio);
	bus_init(&fm->m.mmio);
	fm->m.hv = &fm->hv.hv;
	fm->m.loop = &fm->loop;
	fm->m.stop = on_stop;
	if (loop_init(&fm->loop))
		fatal("no loop");
	if (mem_add(&fm->m.mem, FAKE_RAM_LOW, FAKE_RAM_SIZE) ||
	    mem_add(&fm->m.mem, FAKE_RAM_MID, FAKE_RAM_SIZE) ||
	    mem_add(&fm->m.mem, FAKE_RAM_HIGH, FAKE_HIGH_SIZE))
		fatal("no memory");
	fm->m.mem.span_limit = opts ? opts->span_limit : 0;
	if (!pci_root_new(&fm->m, &layout))
		fatal("no PCI root");
	if (virtio_mmio_slots_new(&fm->m, &slots))
		fatal("no virtio-mmio slots");
}

void fake_machine_free(struct fake_machine *fm)
{
	machine_free_devices(&fm->m);
	pci_root_free(fm->m.pci);
	loop_destroy(&fm->loop);
	mem_free(&fm->m.mem);
	if (fm->hv.nr_irqfds || fm->hv.nr_bells || fm->hv.nr_routes)
		fatal("devices left irqfds, doorbells or routes behind");
	if (fm->hv.misuse)
		fatal("the hypervisor's verbs were misused");
	if (fm->m.pio.nr || fm->m.mmio.nr)
		fatal("devices left ranges on a bus");
	bus_destroy(&fm->m.pio);
	bus_destroy(&fm->m.mmio);
	fake_hv_destroy(&fm->hv);
}

void fake_machine_run(struct fake_machine *fm)
{
	for (unsigned i = 0; i < IDLE_ROUNDS; i++) {
		int n = loop_once(&fm->loop, 0);

		if (n < 0)
			fatal("the loop failed");
		fake_hv_deliver(&fm->hv);
		if (!n)
			return;
	}
	fatal("the loop never gets idle");
}

bool fake_guest_write(struct fake_machine *fm, bool pio, u64 addr, u64 value, unsigned len)
{
	if (fake_hv_doorbell(&fm->hv, addr, pio, (u32)value, (u8)len))
		return true;
	bus_write(pio ? &fm->m.pio : &fm->m.mmio, addr, &value, len);
	return false;
}

u64 fake_guest_read(struct fake_machine *fm, bool pio, u64 addr, unsigned len)
{
	u64 value = 0;

	bus_read(pio ? &fm->m.pio : &fm->m.mmio, addr, &value, len);
	return value;
}

/* --- config space --- */

static u64 ecam(unsigned slot, unsigned off)
{
	return FAKE_ECAM + slot * 0x8000 + off;
}

u32 fake_ecam_read(struct fake_machine *fm, unsigned slot, unsigned off, unsigned len)
{
	return (u32)fake_guest_read(fm, false, ecam(slot, off), len);
}

void fake_ecam_write(struct fake_machine *fm, unsigned slot, unsigned off, unsigned len, u32 value)
{
	fake_guest_write(fm, false, ecam(slot, off), value, len);
}

/*
 * CONFIG_ADDRESS for a register; the access itself goes to the port that its low two bits choose.
 */
static u64 conf1_select(struct fake_machine *fm, unsigned slot, unsigned off)
{
	fake_guest_write(fm, true, FAKE_CONF1, 0x80000000u | slot << 11 | (off & 0xfc), 4);
	return FAKE_CONF1 + 4 + (off & 3);
}

u32 fake_pci_read(struct fake_machine *fm, unsigned slot, unsigned off, unsigned len)
{
	if (!pci_has_io(fm->m.pci))
		return fake_ecam_read(fm, slot, off, len);
	return (u32)fake_guest_read(fm, true, conf1_select(fm, slot, off), len);
}

void fake_pci_write(struct fake_machine *fm, unsigned slot, unsigned off, unsigned len, u32 value)
{
	if (!pci_has_io(fm->m.pci))
		fake_ecam_write(fm, slot, off, len, value);
	else
		fake_guest_write(fm, true, conf1_select(fm, slot, off), value, len);
}

unsigned fake_pci_cap(struct fake_machine *fm, unsigned slot, u8 id, unsigned nth)
{
	unsigned off, ttl = 64;

	if (!(fake_pci_read(fm, slot, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST))
		return 0;
	for (off = fake_pci_read(fm, slot, PCI_CAPABILITY_LIST, 1); off && ttl--;
	     off = fake_pci_read(fm, slot, off + 1, 1))
		if (fake_pci_read(fm, slot, off, 1) == id && !nth--)
			return off;
	return 0;
}
