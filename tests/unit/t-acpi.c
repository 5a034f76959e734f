// SPDX-License-Identifier: GPL-2.0-only
/*
 * ACPI tables as a guest reads them: from the RSDP on, by offsets of the specification.
 *
 * Theory of operation: the structs of x86/acpi.c are not used here, so that a wrong layout there is
 * not wrong here too.
 */
#include "hw/legacy.h"
#include "log.h"
#include "mem.h"
#include "tap.h"
#include "virtio/mmio.h"
#include "x86.h"

static u64 get(const u8 *p, unsigned len)
{
	u64 value = 0;

	memcpy(&value, p, len);
	return value;
}

static u8 sum(const u8 *p, u64 len)
{
	u8 s = 0;

	while (len--)
		s += *p++;
	return s;
}

static const u8 *table_at(const struct guest_mem *mem, u64 gpa)
{
	const u8 *p = mem_ptr(mem, gpa, 36);
	u64 len;

	REQUIRE(p);
	len = get(p + 4, 4);
	REQUIRE(len >= 36 && gpa >= X86_ACPI && gpa + len <= X86_ACPI + X86_ACPI_SIZE);
	CHECK_EQ(sum(p, len), 0);
	CHECK(!memcmp(p + 10, "LKVM", 4));
	return p;
}

static const u8 *find_table(const struct guest_mem *mem, const char *signature)
{
	const u8 *rsdp = mem_ptr(mem, X86_ACPI, 36), *xsdt;

	REQUIRE(rsdp && !memcmp(rsdp, "RSD PTR ", 8));
	CHECK_EQ(sum(rsdp, 20), 0);
	CHECK_EQ(sum(rsdp, 36), 0);
	CHECK_EQ(rsdp[15], 2);
	xsdt = table_at(mem, get(rsdp + 24, 8));
	REQUIRE(!memcmp(xsdt, "XSDT", 4));
	for (unsigned off = 36; off < get(xsdt + 4, 4); off += 8) {
		const u8 *p = table_at(mem, get(xsdt + off, 8));

		if (!memcmp(p, signature, 4))
			return p;
	}
	return NULL;
}

static void make(struct guest_mem *mem, unsigned nr_cpus)
{
	memset(mem, 0, sizeof(*mem));
	REQUIRE(mem_add(mem, 0, 2 * MiB) == 0);
	REQUIRE(acpi_write(mem, nr_cpus) == 0);
}

static void check_port(const u8 *gas, u64 port)
{
	CHECK_EQ(gas[0], 1); /* system I/O */
	CHECK_EQ(gas[1], 8);
	CHECK_EQ(get(gas + 4, 8), port);
}

static void t_fadt(void)
{
	struct guest_mem mem;
	const u8 *fadt;
	u64 flags;

	make(&mem, 1);
	fadt = find_table(&mem, "FACP");
	REQUIRE(fadt && get(fadt + 4, 4) == 276);
	flags = get(fadt + 112, 4);
	CHECK(flags & BIT(20)); /* hardware-reduced */
	CHECK(flags & BIT(10)); /* reset register */
	check_port(fadt + 116, 0x602);
	CHECK_EQ(fadt[128], POWER_RESET);
	check_port(fadt + 244, 0x600);
	check_port(fadt + 256, 0x601);
	CHECK_EQ(get(fadt + 109, 2) & BIT(1), 0); /* no 8042 */
	CHECK_EQ(get(fadt + 109, 2) & BIT(5), 0); /* there is a clock */
	CHECK(get(fadt + 109, 2) & BIT(2));       /* no VGA */
	CHECK_EQ(get(fadt + 40, 4), get(fadt + 140, 8));
	CHECK(!memcmp(table_at(&mem, get(fadt + 140, 8)), "DSDT", 4));
	mem_free(&mem);
}

static void check_madt(unsigned nr_cpus)
{
	struct guest_mem mem;
	unsigned cpus = 0, ioapics = 0;
	const u8 *madt, *e;

	make(&mem, nr_cpus);
	madt = find_table(&mem, "APIC");
	REQUIRE(madt);
	CHECK_EQ(get(madt + 36, 4), 0xfee00000);
	CHECK_EQ(get(madt + 40, 4), 0); /* no 8259 */
	for (e = madt + 44; e < madt + get(madt + 4, 4); e += e[1]) {
		REQUIRE(e[1] >= 8);
		if (e[0] == 0) {
			CHECK_EQ(e[2], cpus);
			CHECK_EQ(e[3], cpus++);
			CHECK_EQ(get(e + 4, 4), 1);
		} else if (e[0] == 9) {
			CHECK(cpus >= 255);
			CHECK_EQ(get(e + 12, 4), cpus);
			CHECK_EQ(get(e + 4, 4), cpus++);
			CHECK_EQ(get(e + 8, 4), 1);
		} else {
			CHECK_EQ(e[0], 1);
			CHECK_EQ(get(e + 4, 4), 0xfec00000);
			CHECK_EQ(get(e + 8, 4), 0);
			ioapics++;
		}
	}
	CHECK_EQ(cpus, nr_cpus);
	CHECK_EQ(ioapics, 1);
	mem_free(&mem);
}

static void t_madt(void)
{
	check_madt(1);
	check_madt(2);
	check_madt(255);
	check_madt(256);
	check_madt(4096);
}

static void t_mcfg(void)
{
	struct guest_mem mem;
	const u8 *mcfg;

	make(&mem, 1);
	mcfg = find_table(&mem, "MCFG");
	REQUIRE(mcfg && get(mcfg + 4, 4) == 60);
	CHECK_EQ(get(mcfg + 44, 8), X86_ECAM);
	CHECK_EQ(get(mcfg + 52, 4), 0); /* segment 0, bus 0 to 0 */
	CHECK_EQ(X86_ECAM_SIZE, MiB);
	mem_free(&mem);
}

/* AML: DWord 0x00SSffff, pin, source 0, GSI. */
static void t_interrupt_routing(void)
{
	struct guest_mem mem;
	bool seen[32][4] = { 0 };
	const u8 *dsdt, *p;
	unsigned n = 0;

	make(&mem, 1);
	dsdt = table_at(&mem, get(find_table(&mem, "FACP") + 140, 8));
	for (p = dsdt + 36; p + 10 < dsdt + get(dsdt + 4, 4); p++) {
		const u8 *q = p + 5;
		unsigned slot = p[3], pin;

		if (p[0] != 0x0c || p[1] != 0xff || p[2] != 0xff || p[4] != 0 || slot > 31)
			continue;
		pin = *q == 0x0a ? *++q : *q; /* a byte, or the constants Zero and One */
		REQUIRE(pin < 4 && q[1] == 0 && q[2] == 0x0a);
		CHECK_EQ(q[3], X86_INTX_GSI + (slot + pin) % 4);
		CHECK(!seen[slot][pin]);
		seen[slot][pin] = true;
		n++;
	}
	CHECK_EQ(n, 31 * 4);
	mem_free(&mem);
}

/* Whether the DSDT holds these bytes. */
static bool dsdt_has(const struct guest_mem *mem, const void *bytes, unsigned len)
{
	const u8 *dsdt = table_at(mem, get(find_table(mem, "FACP") + 140, 8));

	for (u64 i = 36; i + len <= get(dsdt + 4, 4); i++)
		if (!memcmp(dsdt + i, bytes, len))
			return true;
	return false;
}

/* The DSDT has its addresses written out: they must be those of x86.h. */
static void t_dsdt_addresses(void)
{
	struct guest_mem mem;
	u32 mmio[] = { 0, X86_PCI_MMIO, X86_PCI_MMIO + X86_PCI_MMIO_SIZE - 1, 0,
		       X86_PCI_MMIO_SIZE };
	u16 io[] = { 0, X86_PCI_IO, X86_PCI_IO + X86_PCI_IO_SIZE - 1, 0, X86_PCI_IO_SIZE };
	u32 ecam[] = { X86_ECAM, X86_ECAM_SIZE };
	/* I/O port descriptors: decode 16 bits, minimum, maximum, alignment, length. */
	u8 com1[] = { 0x47,
		      1,
		      X86_COM1_PORT & 0xff,
		      X86_COM1_PORT >> 8,
		      X86_COM1_PORT & 0xff,
		      X86_COM1_PORT >> 8,
		      1,
		      8,
		      0x22,
		      1 << X86_COM1_GSI,
		      0 };
	u8 rtc[] = { 0x47, 1, X86_RTC_PORT, 0, X86_RTC_PORT, 0, 1, 2 };
	u8 conf1[] = { 0x47,
		       1,
		       X86_CONF1_PORT & 0xff,
		       X86_CONF1_PORT >> 8,
		       X86_CONF1_PORT & 0xff,
		       X86_CONF1_PORT >> 8,
		       1,
		       8 };
	u8 power[] = { 0x47,
		       1,
		       X86_POWER_PORT & 0xff,
		       X86_POWER_PORT >> 8,
		       X86_POWER_PORT & 0xff,
		       X86_POWER_PORT >> 8,
		       1,
		       3 };
	u8 s5[] = { '_', 'S', '5', '_', 0x12, 7, 4, 0x0a, POWER_S5 };

	make(&mem, 1);
	CHECK(dsdt_has(&mem, mmio, sizeof(mmio)));
	CHECK(dsdt_has(&mem, io, sizeof(io)));
	CHECK(dsdt_has(&mem, ecam, sizeof(ecam)));
	CHECK(dsdt_has(&mem, com1, sizeof(com1)));
	CHECK(dsdt_has(&mem, rtc, sizeof(rtc)));
	CHECK(dsdt_has(&mem, conf1, sizeof(conf1)));
	CHECK(dsdt_has(&mem, power, sizeof(power)));
	CHECK(dsdt_has(&mem, s5, sizeof(s5)));
	mem_free(&mem);
}

/* Each slot: its registers' address right before its pin, level, high, shared with nobody. */
static void t_virtio_mmio_slots(void)
{
	static const u32 gsi[] = X86_VIRTIO_GSIS;
	struct guest_mem mem;
	u8 port[] = { 0x5b,
		      0x80,
		      'V',
		      'R',
		      'E',
		      'G',
		      1,
		      0x0b,
		      X86_VIRTIO_PORT & 0xff,
		      X86_VIRTIO_PORT >> 8 };

	make(&mem, 1);
	REQUIRE(ARRAY_SIZE(gsi) == VIRTIO_MMIO_SLOTS);
	for (unsigned i = 0; i < VIRTIO_MMIO_SLOTS; i++) {
		u32 addr[] = { (u32)X86_VIRTIO_MMIO + i * VIRTIO_MMIO_SIZE, VIRTIO_MMIO_SIZE };
		u8 crs[12 + 9] = { 0x86, 9, 0, 1 };

		memcpy(crs + 4, addr, sizeof(addr));
		memcpy(crs + 12, (u8[]){ 0x89, 6, 0, 1, 1 }, 5);
		memcpy(crs + 17, &gsi[i], sizeof(gsi[i]));
		CHECK(dsdt_has(&mem, crs, sizeof(crs)));
		CHECK(gsi[i] != X86_COM1_GSI);
		CHECK(gsi[i] < X86_INTX_GSI || gsi[i] >= X86_INTX_GSI + 4);
		for (unsigned k = 0; k < i; k++)
			CHECK(gsi[i] != gsi[k]);
	}
	CHECK(dsdt_has(&mem, "LNRO0005", 8));
	CHECK(dsdt_has(&mem, port, sizeof(port)));
	mem_free(&mem);
}

static void quiet(enum log_level level, const char *line)
{
	(void)level;
	CHECK(strstr(line, "20000 CPUs"));
}

static void t_too_many(void)
{
	struct guest_mem mem = { .nr = 0 };

	REQUIRE(mem_add(&mem, 0, 2 * MiB) == 0);
	log_set_sink(quiet);
	CHECK_EQ(acpi_write(&mem, 20000), -ENOSPC);
	log_set_sink(NULL);
	CHECK_EQ(*(u8 *)mem_ptr(&mem, X86_ACPI, 1), 0);
	CHECK_EQ(*(u8 *)mem_ptr(&mem, MiB, 1), 0);
	mem_free(&mem);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_fadt), T(t_madt), T(t_mcfg), T(t_interrupt_routing),
		       T(t_dsdt_addresses), T(t_virtio_mmio_slots), T(t_too_many));
}
