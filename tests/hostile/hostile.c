// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the tables of hostile guests: one process and one line for each case and target. Theory of
 * operation: hostile.h; what a case has to work with: rig.c.
 *
 * usage: hostile [PART OF A NAME]	names are GROUP/CASE, "ring/desc_self_loop"
 */
#include <ctype.h>
#include <sys/mman.h>
#include <time.h>

#include "hostile.h"
#include "log.h"
#include "tap.h"

#define SECONDS     60
#define GROWTH_KIB  (16 * 1024)
#define CHECKLIST   "checklist.txt"
#define EXIT_WEDGED 3

static const struct hostile_group *const groups[] = { &ring_group, &legal_group, &pci_group,
						      &net_group,  &state_group, &msix_group };

static const struct {
	unsigned target;
	const char *name;
} targets[] = {
	{ ECHO, "echo" },         { NET_RX, "net rx" },     { NET_TX, "net tx" },
	{ NET_CTRL, "net ctrl" }, { VHOST_RX, "vhost rx" }, { VHOST_TX, "vhost tx" },
};

static const char *const verdict_name[] = { "PASS", "REFUSED", "NOT OFFERED" };

/* Between the process of a case and ours. */
static struct report {
	enum verdict seen;
	bool wedged;
} * report;

static struct rig rig;
int hostile_failed;

void hostile_note(const char *file, int line, const char *what, u64 got, u64 want)
{
	/* a case that fails in a loop has said enough at the tenth time */
	if (hostile_failed++ < 10)
		printf("# %s:%d: %s: %#llx, not %#llx\n", file, line, what, (unsigned long long)got,
		       (unsigned long long)want);
}

/* --- what has to be so after each case --- */

static long anon_kib(void)
{
	char line[128];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* No source of the loop is ready for ever, and no thread runs while nothing happens. */
static void check_idle(struct rig *r)
{
	double used = 0;

	for (int i = 0; i < 10; i++) {
		rig_run(r);
		used = cpu_ms();
		usleep(4000);
		used = cpu_ms() - used;
		if (used < 2 && loop_once(&r->fm->loop, 0) == 0)
			return;
	}
	printf("# a thread spins: %.1f ms of 4\n", used);
	report->wedged = true;
}

static enum verdict verdict_of(struct rig *r)
{
	u8 status = rig_status(r);

	if (r->not_offered)
		return NOT_OFFERED;
	if (!(status & VIRTIO_S_NEEDS_RESET))
		return r->refused ? REFUSED : PASS;
	if (!r->no_irq && !(r->c->how & INTX) && (status & VIRTIO_S_DRIVER_OK))
		WANT(fake_driver_config_irqs(r->drv) > r->config_irqs);
	return REFUSED;
}

/* The device goes on where it may, and in any case after a reset. */
static void check_alive(struct rig *r)
{
	int failed = hostile_failed;

	if (!r->down && report->seen == PASS) {
		WANT_EQ(rig_status(r), 0xf);
		round_trip(r);
		return;
	}
	rig_restart(r);
	round_trip(r);
	report->wedged = hostile_failed > failed;
}

static void judge(struct rig *r)
{
	enum verdict want = r->c->verdict;

	rig_settle(r);
	report->seen = verdict_of(r);
	if (want != EITHER && report->seen != want) {
		printf("# status %#x: %s, not %s\n", rig_status(r), verdict_name[report->seen],
		       verdict_name[want]);
		hostile_failed++;
	}
	check_alive(r);
	r->down = true; /* now with a reset */
	check_alive(r);
	check_idle(r);
}

/* --- one case --- */

static void quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void open_echo(struct rig *r, const struct fake_driver_opts *opts)
{
	const struct fake_machine_opts mopts = { .span_limit = r->c->how & SPANS ? 3 : 0 };

	fake_machine_init(r->fm, &mopts);
	if (echo_new(&r->fm->m, 2, r->c->how & LARGE ? VIRTQ_MAX_SIZE : 8, &r->echo))
		exit(1);
	r->dev = &r->echo->dev;
	fake_driver_open(r->drv, r->fm, ECHO_ID, opts);
}

static void rig_open(struct rig *r)
{
	unsigned how = r->c->how;
	const struct fake_driver_opts opts = {
		.size = how & LARGE ? 0 : 8,
		.no_event_idx = how & NO_EVENT,
		.no_indirect = how & NO_INDIRECT,
		.intx = how & INTX,
		.slow_doorbell = how & SLOW_BELL,
		.mem_doorbell = how & MEM_BELL,
		.rings_high = how & RINGS_UP,
		.features = { how & NO_MRG ? ~BIT(NET_B_MRG_RXBUF) : 0, how & NO_MRG ? ~0ULL : 0 },
	};

	r->fm = &r->nic.fm;
	r->drv = &r->nic.drv;
	if (rig_is_net(r)) {
		fake_nic_open(&r->nic, r->target & VHOST ? NIC_VHOST : NIC_USER, &opts);
		r->dev = r->nic.dev;
	} else {
		open_echo(r, &opts);
	}
	r->data = fake_alloc(r->drv, DATA_LEN, 4096);
	r->command = cfg(r, 4, 2);
	for (unsigned i = 0; i < ARRAY_SIZE(r->bar); i++)
		r->bar[i] = cfg(r, 0x10 + 4 * i, 4);
	r->config_irqs = fake_driver_config_irqs(r->drv);
	rig_aim(r, r->target);
}

static void rig_close(struct rig *r)
{
	if (rig_is_net(r))
		fake_nic_free(&r->nic);
	else
		fake_machine_free(r->fm);
}

/* In a process of its own; does not return. */
static void child(const struct hostile_case *c, unsigned target)
{
	int fds = tap_open_fds();
	long kib;

	alarm(SECONDS);
	log_set_sink(quiet);
	rig.c = c;
	rig.target = target;
	rig_open(&rig);
	round_trip(&rig);
	kib = anon_kib();
	c->fn(&rig);
	judge(&rig);
	kib = anon_kib() - kib;
	if (kib >= GROWTH_KIB) {
		printf("# memory has grown by %ld KiB\n", kib);
		hostile_failed++;
	}
	rig_close(&rig);
	if (tap_open_fds() != fds) {
		printf("# %d file descriptors were left open\n", tap_open_fds() - fds);
		hostile_failed++;
	}
	exit(hostile_failed || report->wedged);
}

/* --- the list --- */

static struct tally {
	unsigned n, nr[3], failed, wedged;
} tally;

static void print_line(const struct hostile_group *g, const struct hostile_case *c,
		       const char *target, int status)
{
	bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	bool wedged = report->wedged || (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
	const char *seen = ok ? verdict_name[report->seen] : wedged ? "WEDGED" : "FAIL";

	tally.n++;
	printf("%s %u - %s/%s [%s] %s", ok ? "ok" : "not ok", tally.n, g->name, c->name, target,
	       seen);
	if (ok && report->seen == NOT_OFFERED && c->why)
		printf(": %s", c->why);
	else if (WIFSIGNALED(status))
		printf(": signal %d", WTERMSIG(status));
	printf("\n");
	if (ok)
		tally.nr[report->seen]++;
	else if (wedged)
		tally.wedged++;
	else
		tally.failed++;
}

static void run_case(const struct hostile_group *g, const struct hostile_case *c)
{
	for (unsigned t = 0; t < ARRAY_SIZE(targets); t++) {
		int status = 0;
		pid_t pid;

		if (!(c->on & targets[t].target))
			continue;
		*report = (struct report){ .seen = PASS };
		pid = fork();
		if (pid == 0)
			child(c, targets[t].target);
		if (pid < 0 || waitpid(pid, &status, 0) < 0)
			status = 1 << 8;
		print_line(g, c, targets[t].name, status);
	}
}

static bool has_case(const char *name)
{
	for (unsigned i = 0; i < ARRAY_SIZE(groups); i++) {
		size_t n = strlen(groups[i]->name);

		if (strncmp(name, groups[i]->name, n) != 0 || name[n] != '/')
			continue;
		for (unsigned k = 0; k < groups[i]->nr; k++)
			if (!strcmp(name + n + 1, groups[i]->cases[k].name))
				return true;
	}
	return false;
}

/* Lines "NAME GROUP/CASE" or "NAME - REASON". How many are neither; *@nr = how many there are. */
static unsigned check_list(FILE *f, unsigned *nr)
{
	char line[256], name[128], ours[128], reason[2];
	unsigned bad = 0;

	while (fgets(line, sizeof(line), f)) {
		int n;

		if (line[0] == '#' || isspace((unsigned char)line[0]))
			continue;
		n = sscanf(line, "%127s %127s %1s", name, ours, reason);
		++*nr;
		if (n >= 2 && (strcmp(ours, "-") ? has_case(ours) : n == 3))
			continue;
		printf("# %s: no such case of ours and no reason: %s", CHECKLIST, line);
		bad++;
	}
	return bad;
}

static void run_checklist(void)
{
	char path[256];
	unsigned nr = 0, bad = 1;
	FILE *f;

	snprintf(path, sizeof(path), "%.*s%s", (int)(sizeof(__FILE__) - sizeof("hostile.c")),
		 __FILE__, CHECKLIST);
	f = fopen(path, "re");
	if (f) {
		bad = check_list(f, &nr);
		fclose(f);
	}
	tally.n++;
	tally.failed += bad || !nr;
	printf("%s %u - %s: %u names, %u without a case\n", bad || !nr ? "not ok" : "ok", tally.n,
	       CHECKLIST, nr, bad);
}

int main(int argc, char **argv)
{
	char name[128];

	setvbuf(stdout, NULL, _IOLBF, 0);
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (report == MAP_FAILED)
		return 1;
	for (unsigned i = 0; i < ARRAY_SIZE(groups); i++) {
		for (unsigned k = 0; k < groups[i]->nr; k++) {
			snprintf(name, sizeof(name), "%s/%s", groups[i]->name,
				 groups[i]->cases[k].name);
			if (argc < 2 || strstr(name, argv[1]))
				run_case(groups[i], &groups[i]->cases[k]);
		}
	}
	if (argc < 2)
		run_checklist();
	printf("# %u PASS, %u REFUSED, %u NOT OFFERED, %u WEDGED, %u FAIL\n", tally.nr[PASS],
	       tally.nr[REFUSED], tally.nr[NOT_OFFERED], tally.wedged, tally.failed);
	printf("1..%u\n", tally.n);
	return tally.failed || tally.wedged;
}
