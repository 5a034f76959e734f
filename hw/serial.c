// SPDX-License-Identifier: GPL-2.0-only
/*
 * 16550A UART (National Semiconductor PC16550D data sheet).
 *
 * Theory of operation: output is instant, the transmitter is always empty; each byte goes to the
 * console, which is also who makes a vCPU wait when the user's end is full. Input is what the
 * console offers and the receive FIFO holds; when the guest has emptied it, the console is asked
 * for more. So nothing is ever lost for want of room.
 *
 * Input is held back until somebody can receive it: a driver that looks for a UART, or opens it,
 * clears the FIFO and reads the data register for good measure, which would swallow what was typed
 * or piped in before. The receive interrupt being enabled is the sign of a receiver; so is a guest
 * that keeps polling the line status with nothing to send. While there is none, the receive FIFO
 * looks empty and cannot be cleared, and the console's bytes stay where they are.
 *
 * The interrupt line is a level, a function of the registers, and driven only when it changes. A
 * driver stays in its interrupt handler for as long as the identification register names a
 * reason; a guest whose other CPU keeps printing would never leave it ("too much work for irq4").
 * After NAMED_MAX reasons in a row we say "none" once and pulse the line: the handler ends, and the
 * interrupt is there again.
 *
 * Lock: one, over registers and FIFO. The console is called without it, since console_put() may
 * wait.
 */
#include "console.h"
#include "hw/legacy.h"

#define NR_REGS   8
#define FIFO_SIZE 64 /* a guest cannot tell it from 16 */
#define NAMED_MAX 128
#define POLLS_MIN 64 /* line status reads in a row that make a guest a polling one */

enum { REG_DATA, REG_IER, REG_IIR, REG_LCR, REG_MCR, REG_LSR, REG_MSR, REG_SCR, REG_FCR = REG_IIR };

#define IER_RDI  0x01
#define IER_THRI 0x02
#define IER_RLSI 0x04
#define IER_MASK 0x0f

#define IIR_NONE 0x01
#define IIR_THRI 0x02
#define IIR_RDI  0x04
#define IIR_RLSI 0x06
#define IIR_FIFO 0xc0

#define FCR_ENABLE   0x01
#define FCR_CLEAR_RX 0x02

#define LCR_DLAB 0x80

#define MCR_DTR  0x01
#define MCR_RTS  0x02
#define MCR_OUT1 0x04
#define MCR_OUT2 0x08
#define MCR_LOOP 0x10
#define MCR_MASK 0x1f

#define LSR_DR   0x01
#define LSR_OE   0x02
#define LSR_THRE 0x20
#define LSR_TEMT 0x40

#define MSR_CTS 0x10
#define MSR_DSR 0x20
#define MSR_RI  0x40
#define MSR_DCD 0x80

struct fifo {
	u8 byte[FIFO_SIZE];
	unsigned head, count;
};

struct serial {
	struct device dev;
	struct machine *m;
	struct console *con;
	u64 port;
	u32 gsi;

	pthread_mutex_t lock;
	u8 ier, lcr, mcr, scr, dll, dlm;
	bool fifo_on, overrun;
	bool rts_used;    /* the guest has raised RTS: lowering it means "wait" */
	bool thr_pending; /* the transmitter got empty and the guest was not told */
	bool line;        /* what the interrupt line was driven to */
	unsigned named, polls;
	struct fifo rx, looped; /* from the console; from ourselves in loopback mode */
};

static bool can_receive(const struct serial *s)
{
	bool wait = s->rts_used && !(s->mcr & MCR_RTS);

	if (s->mcr & MCR_LOOP)
		return false;
	return ((s->ier & IER_RDI) && !wait) || s->polls >= POLLS_MIN;
}

/* What the guest reads from now, or NULL when nothing should be received. */
static struct fifo *receiver(struct serial *s)
{
	if (s->mcr & MCR_LOOP)
		return &s->looped;
	return can_receive(s) ? &s->rx : NULL;
}

static bool data_ready(struct serial *s)
{
	const struct fifo *f = receiver(s);

	return f && f->count;
}

static u8 reason(struct serial *s)
{
	if ((s->ier & IER_RLSI) && s->overrun)
		return IIR_RLSI;
	if ((s->ier & IER_RDI) && data_ready(s))
		return IIR_RDI;
	if ((s->ier & IER_THRI) && s->thr_pending)
		return IIR_THRI;
	return IIR_NONE;
}

static void drive(struct serial *s, bool level)
{
	if (level == s->line)
		return;
	s->line = level;
	s->m->hv->ops->irq_line(s->m->hv, s->gsi, level);
}

static void update(struct serial *s)
{
	drive(s, reason(s) != IIR_NONE);
}

static unsigned room(const struct serial *s, const struct fifo *f)
{
	unsigned size = s->fifo_on ? FIFO_SIZE : 1;

	return size > f->count ? size - f->count : 0;
}

static void push(struct fifo *f, u8 byte)
{
	f->byte[(f->head + f->count++) % FIFO_SIZE] = byte;
}

static u8 pop(struct fifo *f)
{
	u8 byte;

	if (!f || !f->count)
		return 0;
	byte = f->byte[f->head];
	f->head = (f->head + 1) % FIFO_SIZE;
	f->count--;
	return byte;
}

/* The console's bytes: takes what fits. */
static size_t serial_input(void *dev, const u8 *buf, size_t len)
{
	struct serial *s = dev;
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	if (can_receive(s)) {
		n = MIN(len, (size_t)room(s, &s->rx));
		for (size_t i = 0; i < n; i++)
			push(&s->rx, buf[i]);
		update(s);
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

static u8 read_iir(struct serial *s)
{
	u8 iir = reason(s);

	if (iir == IIR_NONE || ++s->named > NAMED_MAX) {
		s->named = 0;
		drive(s, false);
		iir = IIR_NONE;
	}
	if (iir == IIR_THRI)
		s->thr_pending = false;
	return iir | (s->fifo_on ? IIR_FIFO : 0);
}

static u8 read_lsr(struct serial *s)
{
	u8 lsr = LSR_THRE | LSR_TEMT;

	if (data_ready(s))
		lsr |= LSR_DR;
	else if (s->polls < POLLS_MIN)
		s->polls++;
	if (s->overrun)
		lsr |= LSR_OE;
	s->overrun = false;
	return lsr;
}

static u8 read_msr(const struct serial *s)
{
	if (!(s->mcr & MCR_LOOP))
		return MSR_DCD | MSR_DSR | MSR_CTS;
	return ((s->mcr & MCR_RTS) ? MSR_CTS : 0) | ((s->mcr & MCR_DTR) ? MSR_DSR : 0) |
	       ((s->mcr & MCR_OUT1) ? MSR_RI : 0) | ((s->mcr & MCR_OUT2) ? MSR_DCD : 0);
}

static u8 read_reg(struct serial *s, unsigned reg)
{
	bool dlab = s->lcr & LCR_DLAB;

	switch (reg) {
	case REG_DATA: return dlab ? s->dll : pop(receiver(s));
	case REG_IER: return dlab ? s->dlm : s->ier;
	case REG_IIR: return read_iir(s);
	case REG_LCR: return s->lcr;
	case REG_MCR: return s->mcr;
	case REG_LSR: return read_lsr(s);
	case REG_MSR: return read_msr(s);
	default: return s->scr;
	}
}

static void write_ier(struct serial *s, u8 value)
{
	/* Enabling the interrupt tells that the transmitter is empty, even if that is no news. */
	if ((value & IER_THRI) && !(s->ier & IER_THRI))
		s->thr_pending = true;
	s->ier = value & IER_MASK;
	if (!(s->ier & IER_RDI))
		s->polls = 0;
}

/*
 * Turning the FIFO on or off clears it in hardware. Not here: Linux enables the receive interrupt
 * first, and what came in between would be lost.
 */
static void write_fcr(struct serial *s, u8 value)
{
	struct fifo *f = receiver(s);

	s->fifo_on = value & FCR_ENABLE;
	if (s->fifo_on && (value & FCR_CLEAR_RX) && f)
		f->head = f->count = 0;
}

static void transmit_looped(struct serial *s, u8 byte)
{
	if (room(s, &s->looped))
		push(&s->looped, byte);
	else
		s->overrun = true;
}

static void write_reg(struct serial *s, unsigned reg, u8 value)
{
	bool dlab = s->lcr & LCR_DLAB;

	switch (reg) {
	case REG_DATA:
		if (dlab) {
			s->dll = value;
			break;
		}
		if (s->mcr & MCR_LOOP)
			transmit_looped(s, value);
		s->thr_pending = true;
		s->polls = 0;
		break;
	case REG_IER:
		if (dlab)
			s->dlm = value;
		else
			write_ier(s, value);
		break;
	case REG_FCR: write_fcr(s, value); break;
	case REG_LCR: s->lcr = value; break;
	case REG_MCR:
		s->mcr = value & MCR_MASK;
		s->rts_used |= value & MCR_RTS;
		break;
	case REG_SCR: s->scr = value; break;
	}
}

/* Whether a write to @reg is a byte for the user. */
static bool prints(struct serial *s, unsigned reg)
{
	bool yes;

	pthread_mutex_lock(&s->lock);
	yes = reg == REG_DATA && !(s->lcr & LCR_DLAB) && !(s->mcr & MCR_LOOP);
	pthread_mutex_unlock(&s->lock);
	return yes;
}

static bool hungry(const struct serial *s)
{
	return can_receive(s) && s->rx.count == 0;
}

/* One register access; a receiver that became empty, or ready, asks the console for more. */
static void reg_access(struct serial *s, unsigned reg, u8 *value, bool write)
{
	bool was, is;

	if (write && prints(s, reg))
		console_put(s->con, value, 1);
	pthread_mutex_lock(&s->lock);
	was = hungry(s);
	if (write)
		write_reg(s, reg, *value);
	else
		*value = read_reg(s, reg);
	update(s);
	is = hungry(s);
	pthread_mutex_unlock(&s->lock);
	if (is && !was)
		console_input_ready(s->con);
}

static void serial_read(void *dev, u64 off, void *data, unsigned len)
{
	u8 *bytes = data;

	for (unsigned i = 0; i < len; i++) {
		bytes[i] = 0xff;
		if (off + i < NR_REGS)
			reg_access(dev, (unsigned)off + i, &bytes[i], false);
	}
}

static void serial_write(void *dev, u64 off, const void *data, unsigned len)
{
	for (unsigned i = 0; i < len && off + i < NR_REGS; i++) {
		u8 byte = ((const u8 *)data)[i];

		reg_access(dev, (unsigned)off + i, &byte, true);
	}
}

static const struct bus_ops serial_ops = { .read = serial_read, .write = serial_write };

static void power_on(struct serial *s)
{
	s->ier = s->lcr = s->mcr = s->scr = s->dlm = 0;
	s->dll = 1; /* 115200 baud */
	s->fifo_on = s->overrun = s->rts_used = s->thr_pending = false;
	s->named = s->polls = 0;
	s->looped.count = 0;
	drive(s, false);
}

/* What the user typed meanwhile stays for the next kernel. */
static void serial_reset(struct device *dev)
{
	struct serial *s = container_of(dev, struct serial, dev);

	pthread_mutex_lock(&s->lock);
	power_on(s);
	pthread_mutex_unlock(&s->lock);
}

static void serial_free(struct device *dev)
{
	struct serial *s = container_of(dev, struct serial, dev);

	bus_del(&s->m->pio, s->port);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int serial_new(struct machine *m, struct console *con, u64 port, u32 gsi)
{
	struct serial *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->dev.type = "serial";
	s->dev.reset = serial_reset;
	s->dev.free = serial_free;
	s->m = m;
	s->con = con;
	s->port = port;
	s->gsi = gsi;
	pthread_mutex_init(&s->lock, NULL);
	power_on(s);
	err = bus_add(&m->pio, port, NR_REGS, &serial_ops, s);
	if (err) {
		pthread_mutex_destroy(&s->lock);
		free(s);
		return err;
	}
	machine_add(m, &s->dev);
	console_set_input(con, serial_input, s);
	return 0;
}
