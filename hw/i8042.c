// SPDX-License-Identifier: GPL-2.0-only
/*
 * The keyboard controller's reset line: what is left of it when there is no keyboard.
 *
 * Theory of operation: ports 0x60 and 0x64 read 0, that is both buffers are empty and a guest that
 * waits for room (Linux's reboot=k) goes on at once. Command 0xfe pulses the CPU's reset line. ACPI
 * tells the guest that there is no i8042, so that it does not look for a keyboard, which would
 * take it half a second.
 */
#include "hw/legacy.h"

#define PORT_DATA    0x60
#define PORT_COMMAND 0x64
#define CMD_RESET    0xfe

struct i8042 {
	struct device dev;
	struct machine *m;
};

static void i8042_read(void *dev, u64 off, void *data, unsigned len)
{
	(void)dev;
	(void)off;
	memset(data, 0, len);
}

static void data_write(void *dev, u64 off, const void *data, unsigned len)
{
	(void)dev;
	(void)off;
	(void)data;
	(void)len;
}

static void command_write(void *dev, u64 off, const void *data, unsigned len)
{
	struct i8042 *kbd = dev;

	(void)off;
	(void)len;
	if (*(const u8 *)data == CMD_RESET)
		kbd->m->stop(kbd->m, STOP_RESET, 0);
}

static const struct bus_ops data_ops = { .read = i8042_read, .write = data_write };
static const struct bus_ops command_ops = { .read = i8042_read, .write = command_write };

static void i8042_free(struct device *dev)
{
	struct i8042 *kbd = container_of(dev, struct i8042, dev);

	bus_del(&kbd->m->pio, PORT_DATA);
	bus_del(&kbd->m->pio, PORT_COMMAND);
	free(kbd);
}

int i8042_new(struct machine *m)
{
	struct i8042 *kbd = calloc(1, sizeof(*kbd));
	int err;

	if (!kbd)
		return -ENOMEM;
	kbd->dev.type = "i8042";
	kbd->dev.free = i8042_free;
	kbd->m = m;
	err = bus_add(&m->pio, PORT_DATA, 1, &data_ops, kbd);
	if (err) {
		free(kbd);
		return err;
	}
	err = bus_add(&m->pio, PORT_COMMAND, 1, &command_ops, kbd);
	if (err) {
		i8042_free(&kbd->dev);
		return err;
	}
	machine_add(m, &kbd->dev);
	return 0;
}
