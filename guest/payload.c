// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest of a few hundred instructions for the tests that need a KVM but no Linux. The first word
 * of the command line that names an action says what to do; what is found goes to the serial port.
 * Freestanding 32-bit code; start.S calls payload_main() with the PVH start info.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SERIAL  0x3f8
#define POWER   0x600
#define ECAM    0xe0000000u
#define LAPIC   0xfee00000u
#define AP_PAGE 0x8000u

struct start_info {
	u32 magic, version, flags, nr_modules;
	u64 modlist, cmdline, rsdp;
};

extern const u8 ap_begin[], ap_end[];
extern u8 ap_count[];
void payload_main(const struct start_info *info);

static inline void outb(u16 port, u8 v)
{
	__asm__ volatile("outb %0, %1" : : "a"(v), "Nd"(port));
}

static inline u8 inb(u16 port)
{
	u8 v;

	__asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port));
	return v;
}

static inline void outl(u16 port, u32 v)
{
	__asm__ volatile("outl %0, %1" : : "a"(v), "Nd"(port));
}

static inline u32 inl(u16 port)
{
	u32 v;

	__asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port));
	return v;
}

static inline u32 readl(u32 addr)
{
	return *(volatile u32 *)addr;
}

static inline void writel(u32 addr, u32 v)
{
	*(volatile u32 *)addr = v;
}

static void puts(const char *s)
{
	while (*s)
		outb(SERIAL, (u8)*s++);
}

static void puthex(u32 v)
{
	for (int shift = 28; shift >= 0; shift -= 4)
		outb(SERIAL, (u8) "0123456789abcdef"[v >> shift & 15]);
}

/* True when the command line has the word @w. */
static int has(const char *line, const char *w)
{
	for (; *line; line++) {
		const char *a = line, *b = w;

		while (*b && *a == *b)
			a++, b++;
		if (!*b && (*a == 0 || *a == ' '))
			return 1;
		while (*line && *line != ' ')
			line++;
		if (!*line)
			break;
	}
	return 0;
}

static void poweroff(void)
{
	outb(POWER, 5 << 2 | 1 << 5);
}

static void triple_fault(void)
{
	static const struct {
		u16 limit;
		u32 base;
	} __attribute__((packed)) idt = { 0, 0 };

	__asm__ volatile("lidt %0; int3" : : "m"(idt));
}

/* One string instruction for a whole line: one exit with a count. */
static void rep_outsb(void)
{
	static const char line[] = "rep outsb works\n";
	const char *p = line;
	u32 n = sizeof(line) - 1;

	__asm__ volatile("rep outsb" : "+S"(p), "+c"(n) : "d"(SERIAL) : "memory");
}

/*
 * The host bridge must look the same through both kinds of config access; empty slots are all ones.
 */
static void pci(void)
{
	u32 ecam = readl(ECAM), conf1;

	outl(0xcf8, 0x80000000u);
	conf1 = inl(0xcfc);
	puts(ecam == conf1 && ecam != 0xffffffff ? "pci same " : "pci DIFFERENT ");
	puthex(ecam);
	puts(readl(ECAM + (31u << 15)) == 0xffffffff ? " empty ok" : " empty BAD");
	puts(inb(0x5000) == 0xff ? " port ok\n" : " port BAD\n");
}

/*
 * Starts all other CPUs by INIT and two start-up interrupts to all but self; waits for @want of
 * them.
 */
static void smp(u32 want)
{
	volatile u16 *count = (volatile u16 *)(AP_PAGE + (u32)(ap_count - ap_begin));

	for (u32 i = 0; i < (u32)(ap_end - ap_begin); i++)
		((volatile u8 *)AP_PAGE)[i] = ap_begin[i];
	writel(LAPIC + 0xf0, 0x1ff);
	writel(LAPIC + 0x300, 0xc4500);
	writel(LAPIC + 0x300, 0xc4600 | AP_PAGE >> 12);
	while (*count < want)
		__asm__ volatile("pause");
	puts("\nall CPUs up\n");
}

/* The last bytes of memory above 4 GiB cannot be reached from here; those below the hole can. */
static void memory(const char *line)
{
	u32 last = has(line, "mem128") ? 0x08000000u : 0xc0000000u;

	writel(last - 4, 0x12345678);
	puts(readl(last - 4) == 0x12345678 ? "last word ok" : "last word BAD");
	puts(readl(last) == 0xffffffff ? " beyond ok\n" : " beyond BAD\n");
}

void payload_main(const struct start_info *info)
{
	const char *line = (const char *)(u32)info->cmdline;

	puts("payload: ");
	puts(line);
	puts("\n");
	if (has(line, "outsb"))
		rep_outsb();
	if (has(line, "pci"))
		pci();
	if (has(line, "mem128") || has(line, "mem3g"))
		memory(line);
	if (has(line, "smp4"))
		smp(3);
	if (has(line, "smp16"))
		smp(15);
	if (has(line, "panic"))
		puts("Kernel panic - not syncing: payload\n");
	if (has(line, "triple"))
		triple_fault();
	if (has(line, "reset-acpi"))
		outb(POWER + 2, 1);
	if (has(line, "reset-i8042"))
		outb(0x64, 0xfe);
	if (has(line, "reset-cf9"))
		outb(0xcf9, 6);
	if (has(line, "flood"))
		for (;;)
			puts("0123456789012345678901234567890123456789012345678901234567890123\n");
	if (has(line, "spin"))
		for (;;)
			;
	if (has(line, "cli-hlt"))
		__asm__ volatile("cli; hlt");
	if (has(line, "halt"))
		for (;;)
			__asm__ volatile("sti; hlt");
	poweroff();
}
