// SPDX-License-Identifier: GPL-2.0-only
/*
 * ACPI tables (ACPI 6.4 chapter 5).
 *
 * Theory of operation: all tables are built one after another in a buffer that becomes the memory
 * at X86_ACPI, RSDP first, so that a guest finds it by the boot parameters and by scanning alike.
 * The platform is "hardware-reduced": no PM timer, no SCI, no legacy interrupt controller, which a
 * kernel then does not probe for. Power-off, sleep and reset are three ports (hw/power.c); what
 * hangs on ports and pins is in the DSDT, which iasl compiled. Local APIC ids are vCPU indices.
 */
#include "x86.h"
#include "dsdt.h"
#include "hw/legacy.h"
#include "log.h"

#define APIC_ID_X2APIC 255 /* from this id on, only an x2APIC entry can hold it */

struct acpi_header {
	char signature[4];
	u32 length;
	u8 revision, checksum;
	char oem_id[6], oem_table_id[8];
	u32 oem_revision;
	char creator_id[4];
	u32 creator_revision;
} __attribute__((packed));

struct acpi_rsdp {
	char signature[8];
	u8 checksum;
	char oem_id[6];
	u8 revision;
	u32 rsdt, length;
	u64 xsdt;
	u8 ext_checksum, reserved[3];
} __attribute__((packed));

struct acpi_gas {
	u8 space, bit_width, bit_offset, access;
	u64 addr;
} __attribute__((packed));

#define GAS_IO_BYTE(port) \
	{ \
		.space = 1, .bit_width = 8, .access = 1, .addr = (port) \
	}

/* FADT; the fields of fixed hardware stay 0 on this platform. */
struct acpi_fadt {
	struct acpi_header h;
	u32 facs, dsdt;
	u8 reserved0, pm_profile;
	u16 sci;
	u8 fixed_hw[60]; /* up to and including CENTURY at 108 */
	u8 century;
	u16 boot_arch;
	u8 reserved1;
	u32 flags;
	struct acpi_gas reset;
	u8 reset_value;
	u16 arm_boot_arch;
	u8 minor;
	u64 x_facs, x_dsdt;
	struct acpi_gas x_fixed_hw[8];
	struct acpi_gas sleep_control, sleep_status;
	u64 hypervisor_id;
} __attribute__((packed));

#define FADT_WBINVD        BIT(0)
#define FADT_PROC_C1       BIT(2)
#define FADT_PWR_BUTTON    BIT(4) /* set = there is none as fixed hardware */
#define FADT_SLP_BUTTON    BIT(5)
#define FADT_FIX_RTC       BIT(6)
#define FADT_RESET_REG_SUP BIT(10)
#define FADT_HW_REDUCED    BIT(20)
#define FADT_BOOT_NO_VGA   BIT(2)
#define FADT_BOOT_NO_ASPM  BIT(4)
#define RTC_CENTURY        0x32

struct madt_lapic {
	u8 type, length, uid, id;
	u32 flags;
} __attribute__((packed));

struct madt_x2apic {
	u8 type, length;
	u16 reserved;
	u32 id, flags, uid;
} __attribute__((packed));

struct madt_ioapic {
	u8 type, length, id, reserved;
	u32 addr, gsi_base;
} __attribute__((packed));

#define MADT_ENABLED 1

struct acpi_mcfg {
	struct acpi_header h;
	u64 reserved;
	u64 base;
	u16 segment;
	u8 bus_start, bus_end;
	u32 reserved1;
} __attribute__((packed));

_Static_assert(sizeof(struct acpi_header) == 36, "ACPI 6.4 5.2.6");
_Static_assert(sizeof(struct acpi_rsdp) == 36, "ACPI 6.4 5.2.5.3");
_Static_assert(sizeof(struct acpi_fadt) == 276, "ACPI 6.4 5.2.9");
_Static_assert(offsetof(struct acpi_fadt, century) == 108, "ACPI 6.4 5.2.9");
_Static_assert(offsetof(struct acpi_fadt, sleep_control) == 244, "ACPI 6.4 5.2.9");

/* The buffer being filled. A table that no longer fits sets full; nothing is written then. */
struct tables {
	u8 *buf;
	u32 len;
	bool full;
};

static u8 checksum(const void *p, u32 len)
{
	const u8 *b = p;
	u8 sum = 0;

	while (len--)
		sum += *b++;
	return (u8)-sum;
}

/* Room for @len bytes, zeroed; NULL when full. */
static void *append(struct tables *t, u32 len)
{
	void *p = t->buf + t->len;

	if (t->full || len > X86_ACPI_SIZE - t->len) {
		t->full = true;
		return NULL;
	}
	t->len += len;
	return p;
}

/* Begins a table on a 16-byte boundary. */
static void *begin(struct tables *t, u32 len)
{
	t->len = MIN(ALIGN_UP(t->len, 16U), (u32)X86_ACPI_SIZE);
	return append(t, len);
}

/*
 * Fills in the header and the checksum of the table that begins at @h and ends at the buffer's end.
 */
static u32 finish(struct tables *t, struct acpi_header *h, const char signature[5], u8 revision)
{
	u32 gpa = X86_ACPI + (u32)((u8 *)h - t->buf);

	memcpy(h->signature, signature, sizeof(h->signature));
	h->length = X86_ACPI + t->len - gpa;
	h->revision = revision;
	memcpy(h->oem_id, "LKVM  ", sizeof(h->oem_id));
	memcpy(h->oem_table_id, "LKVM    ", sizeof(h->oem_table_id));
	h->oem_revision = 1;
	memcpy(h->creator_id, "LKVM", sizeof(h->creator_id));
	h->creator_revision = 1;
	h->checksum = 0;
	h->checksum = checksum(h, h->length);
	return gpa;
}

static u32 build_dsdt(struct tables *t)
{
	u8 *p = begin(t, (u32)dsdt_aml_len);

	if (!p)
		return 0;
	memcpy(p, dsdt_aml, dsdt_aml_len);
	return X86_ACPI + (u32)(p - t->buf);
}

static u32 build_fadt(struct tables *t, u32 dsdt)
{
	struct acpi_fadt *fadt = begin(t, sizeof(*fadt));

	if (!fadt)
		return 0;
	*fadt = (struct acpi_fadt){
		.dsdt = dsdt,
		.x_dsdt = dsdt,
		.minor = 4,
		.century = RTC_CENTURY,
		.boot_arch = FADT_BOOT_NO_VGA | FADT_BOOT_NO_ASPM,
		.flags = FADT_WBINVD | FADT_PROC_C1 | FADT_PWR_BUTTON | FADT_SLP_BUTTON |
			 FADT_FIX_RTC | FADT_RESET_REG_SUP | FADT_HW_REDUCED,
		.reset = GAS_IO_BYTE(X86_POWER_PORT + 2),
		.reset_value = POWER_RESET,
		.sleep_control = GAS_IO_BYTE(X86_POWER_PORT),
		.sleep_status = GAS_IO_BYTE(X86_POWER_PORT + 1),
	};
	return finish(t, &fadt->h, "FACP", 6);
}

static void append_cpu(struct tables *t, u32 id)
{
	if (id < APIC_ID_X2APIC) {
		struct madt_lapic *e = append(t, sizeof(*e));

		if (e)
			*e = (struct madt_lapic){ .type = 0,
						  .length = sizeof(*e),
						  .uid = (u8)id,
						  .id = (u8)id,
						  .flags = MADT_ENABLED };
	} else {
		struct madt_x2apic *e = append(t, sizeof(*e));

		if (e)
			*e = (struct madt_x2apic){ .type = 9,
						   .length = sizeof(*e),
						   .id = id,
						   .flags = MADT_ENABLED,
						   .uid = id };
	}
}

static u32 build_madt(struct tables *t, unsigned nr_cpus)
{
	struct {
		struct acpi_header h;
		u32 lapic, flags; /* flags 0: no dual 8259 */
	} *madt = begin(t, sizeof(*madt));
	struct madt_ioapic *ioapic;

	for (unsigned i = 0; i < nr_cpus; i++)
		append_cpu(t, i);
	ioapic = append(t, sizeof(*ioapic));
	if (!madt || !ioapic)
		return 0;
	*ioapic = (struct madt_ioapic){ .type = 1, .length = sizeof(*ioapic), .addr = X86_IOAPIC };
	madt->lapic = X86_LAPIC;
	return finish(t, &madt->h, "APIC", 5);
}

static u32 build_mcfg(struct tables *t)
{
	struct acpi_mcfg *mcfg = begin(t, sizeof(*mcfg));

	if (!mcfg)
		return 0;
	mcfg->base = X86_ECAM;
	return finish(t, &mcfg->h, "MCFG", 1);
}

static void build_rsdp(struct acpi_rsdp *rsdp, u32 xsdt)
{
	memcpy(rsdp->signature, "RSD PTR ", sizeof(rsdp->signature));
	memcpy(rsdp->oem_id, "LKVM  ", sizeof(rsdp->oem_id));
	rsdp->revision = 2;
	rsdp->length = sizeof(*rsdp);
	rsdp->xsdt = xsdt;
	rsdp->checksum = checksum(rsdp, offsetof(struct acpi_rsdp, length));
	rsdp->ext_checksum = checksum(rsdp, sizeof(*rsdp));
}

static void build(struct tables *t, unsigned nr_cpus)
{
	struct acpi_rsdp *rsdp = append(t, sizeof(*rsdp));
	u32 dsdt = build_dsdt(t);
	u64 entry[3] = { build_fadt(t, dsdt), build_madt(t, nr_cpus), build_mcfg(t) };
	struct acpi_header *xsdt = begin(t, sizeof(*xsdt) + sizeof(entry));

	if (t->full)
		return;
	memcpy(xsdt + 1, entry, sizeof(entry));
	build_rsdp(rsdp, finish(t, xsdt, "XSDT", 1));
}

int acpi_write(const struct guest_mem *mem, unsigned nr_cpus)
{
	struct tables t = { .buf = calloc(1, X86_ACPI_SIZE) };
	int err = t.buf ? 0 : -ENOMEM;

	if (t.buf)
		build(&t, nr_cpus);
	if (t.full)
		err = -ENOSPC;
	if (!err)
		err = mem_write(mem, X86_ACPI, t.buf, t.len);
	if (err)
		log_err("ACPI: no tables for %u CPUs: %s", nr_cpus, strerror(-err));
	free(t.buf);
	return err;
}
