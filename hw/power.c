// SPDX-License-Identifier: GPL-2.0-only
/*
 * Power-off and reset ports of hardware-reduced ACPI (ACPI 6.4 4.8.3.6, 4.8.3.7), as x86/acpi.c
 * describes them to the guest. Theory of operation: no state but the machine; a write that means
 * something stops the machine, whichever vCPU made it, all else is ignored. Status reads 0.
 */
#include "hw/legacy.h"

enum { REG_SLEEP_CONTROL, REG_SLEEP_STATUS, REG_RESET, NR_REGS };

#define SLP_TYP(v) (((v) >> 2) & 7)
#define SLP_EN     0x20

struct power {
	struct device dev;
	struct machine *m;
	u64 port;
};

static void power_read(void *dev, u64 off, void *data, unsigned len)
{
	(void)dev;
	(void)off;
	memset(data, 0, len);
}

static void power_write(void *dev, u64 off, const void *data, unsigned len)
{
	struct power *power = dev;
	u8 value = *(const u8 *)data;

	(void)len;
	if (off == REG_SLEEP_CONTROL && (value & SLP_EN) && SLP_TYP(value) == POWER_S5)
		power->m->stop(power->m, STOP_POWEROFF, 0);
	else if (off == REG_RESET && value == POWER_RESET)
		power->m->stop(power->m, STOP_RESET, 0);
}

static const struct bus_ops power_ops = { .read = power_read, .write = power_write };

static void power_free(struct device *dev)
{
	struct power *power = container_of(dev, struct power, dev);

	bus_del(&power->m->pio, power->port);
	free(power);
}

int power_new(struct machine *m, u64 port)
{
	struct power *power = calloc(1, sizeof(*power));
	int err;

	if (!power)
		return -ENOMEM;
	power->dev.type = "power";
	power->dev.free = power_free;
	power->m = m;
	power->port = port;
	err = bus_add(&m->pio, port, NR_REGS, &power_ops, power);
	if (err) {
		free(power);
		return err;
	}
	machine_add(m, &power->dev);
	return 0;
}
