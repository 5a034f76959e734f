// SPDX-License-Identifier: GPL-2.0-only
/*
 * `lkvm run`: options become a struct vm_config, that becomes a VM, and why it ended becomes the
 * exit status.
 *
 * Everything that a user can get wrong is checked before the VM is made: options first, then the
 * files. Signals that end a program are taken from the loop as one more event, so that there is one
 * way down: whatever ends the VM, devices are stopped, taps are gone and the terminal is restored.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "builtin.h"
#include "console.h"
#include "devices.h"
#include "ipc.h"
#include "log.h"
#include "opt.h"
#include "vcpu.h"
#include "virtio/net.h"
#include "vm.h"

#define DEFAULT_MEM (256 * MiB) /* bytes */
#define MAX_MEM     BIT(52)     /* bytes: physical addresses have no more bits */
#define MAX_CPUS    4096        /* what the option takes; the architecture knows better */
#define MAX_TIMEOUT (365ULL * 24 * 3600)
/* Ours come first, so that the user's win. A panic ends in a reset, which ends the run. */
#define CMDLINE_HEAD "console=ttyS0 panic=-1"

struct run {
	struct vm_config cfg;
	char *name, *cmdline;
	const char *kernel, *initrd, *params;
	enum virtio_transport_kind transport;
	u64 timeout;  /* seconds, 0 = none */
	bool restart; /* a reset begins another life of the guest */
	struct device_list devices;

	struct vm *vm;
	struct ipc *ipc;
	struct loop_src signals, timer;
};

/* --- options --- */

static int set_kernel(void *ctx, const struct opt *opt, const char *value)
{
	(void)opt;
	((struct run *)ctx)->kernel = value;
	return 0;
}

static int set_initrd(void *ctx, const struct opt *opt, const char *value)
{
	(void)opt;
	((struct run *)ctx)->initrd = value;
	return 0;
}

static int set_params(void *ctx, const struct opt *opt, const char *value)
{
	(void)opt;
	((struct run *)ctx)->params = value;
	return 0;
}

static int set_mem(void *ctx, const struct opt *opt, const char *value)
{
	struct run *run = ctx;
	int err = opt_size("-m", value, &run->cfg.mem);

	(void)opt;
	if (!err && run->cfg.mem > MAX_MEM) {
		log_err("-m: %s: no machine has so much; use at most %lluT", value, MAX_MEM >> 40);
		return -EINVAL;
	}
	run->cfg.mem = ALIGN_UP(run->cfg.mem, (u64)sysconf(_SC_PAGESIZE));
	return err;
}

static int set_cpus(void *ctx, const struct opt *opt, const char *value)
{
	u64 n;
	int err = opt_u64("-c", NULL, value, 1, MAX_CPUS, &n);

	(void)opt;
	if (!err)
		((struct run *)ctx)->cfg.nr_cpus = (unsigned)n;
	return err;
}

static int set_timeout(void *ctx, const struct opt *opt, const char *value)
{
	(void)opt;
	return opt_u64("--timeout", NULL, value, 1, MAX_TIMEOUT, &((struct run *)ctx)->timeout);
}

static int set_reboot(void *ctx, const struct opt *opt, const char *value)
{
	struct run *run = ctx;

	(void)opt;
	run->restart = !strcmp(value, "restart");
	if (run->restart || !strcmp(value, "exit"))
		return 0;
	log_err("--reboot: %s: there is no such way; use exit or restart", value);
	return -EINVAL;
}

static int set_name(void *ctx, const struct opt *opt, const char *value)
{
	struct run *run = ctx;
	int err = name_check(value);

	(void)opt;
	if (err)
		return err;
	free(run->name);
	run->name = strdup(value);
	return run->name ? 0 : log_no_memory("--name");
}

static int set_transport(void *ctx, const struct opt *opt, const char *value)
{
	(void)opt;
	if (!virtio_transport_find(value, &((struct run *)ctx)->transport))
		return 0;
	log_err("--virtio-transport: %s: there is no such transport; use pci, pci-legacy or mmio",
		*value ? value : "''");
	return -EINVAL;
}

static int set_device(void *ctx, const struct opt *opt, const char *value)
{
	for (const struct device_type *type = device_types; type->name; type++) {
		if (type->letter == opt->letter)
			return device_list_add(&((struct run *)ctx)->devices, type, value);
	}
	return -EINVAL;
}

static int positional(void *ctx, const char *arg)
{
	struct run *run = ctx;

	if (run->kernel) {
		log_err("%s: one kernel is enough; -k %s is taken already", arg, run->kernel);
		return -EINVAL;
	}
	run->kernel = arg;
	return 0;
}

const struct opt run_opts[] = {
	{ 'k', "kernel", "FILE", "kernel to boot: a bzImage, or a vmlinux with a PVH note",
	  set_kernel },
	{ 'i', "initrd", "FILE", "initial RAM disk", set_initrd },
	{ 'p', "params", "TEXT", "kernel command line, added to '" CMDLINE_HEAD "'", set_params },
	{ 'm', "mem", "SIZE", "memory, in MiB or with a suffix B K M G T P; default 256", set_mem },
	{ 'c', "cpus", "N", "number of vCPUs; default 1", set_cpus },
	{ 'n', "network", "KEYS", "a NIC, as key=value,...; may be given several times",
	  set_device },
	{ 0, "name", "NAME", "name of the VM; default guest-PID", set_name },
	{ 0, "reboot", "HOW",
	  "exit (default): a reset ends the VM; restart: it boots again in place", set_reboot },
	{ 0, "virtio-transport", "HOW",
	  "what virtio devices hang on: pci (default), pci-legacy or mmio", set_transport },
	{ 0, "timeout", "SEC", "end the VM after so many seconds, with status 124", set_timeout },
	{ 0, NULL, NULL, NULL, NULL },
};

static int parse(struct run *run, int argc, char **argv)
{
	int next = opt_parse(run_opts, argc, argv, run, positional);

	if (next < 0)
		return next;
	if (next < argc) {
		log_err("-- %s: running a command in the guest is not there yet; leave it out",
			argv[next]);
		return -ENOSYS;
	}
	if (!run->kernel) {
		log_err("no kernel: -k is missing; use -k FILE with a bzImage or a vmlinux");
		return -EINVAL;
	}
	if (!run->name && asprintf(&run->name, "guest-%d", (int)getpid()) < 0)
		return log_no_memory("--name");
	if (asprintf(&run->cmdline, "%s%s%s", CMDLINE_HEAD, run->params ? " " : "",
		     run->params ? run->params : "") < 0)
		return log_no_memory("-p");
	return 0;
}

/* --- files --- */

static int open_file(const char *what, const char *path, bool again, int *fd)
{
	struct stat st;
	int err;

	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0) {
		err = errno;
		log_err("%s %s: %s; check the path and its permissions", what, path, strerror(err));
		return -err;
	}
	if (fstat(*fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		log_err("%s %s: it is a directory; name a file", what, path);
		return -EISDIR;
	}
	if (again && fstat(*fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		log_err("--reboot restart: %s %s can be read only once; use a regular file", what,
			path);
		return -ESPIPE;
	}
	return 0;
}

static int open_files(struct run *run)
{
	struct boot_source *boot = &run->cfg.boot;
	int err;

	boot->kernel_path = run->kernel;
	boot->initrd_path = run->initrd;
	boot->cmdline = run->cmdline;
	err = open_file("kernel", run->kernel, run->restart, &boot->kernel_fd);
	if (!err && run->initrd)
		err = open_file("initrd", run->initrd, run->restart, &boot->initrd_fd);
	return err;
}

static void close_files(struct run *run)
{
	if (run->cfg.boot.kernel_fd >= 0)
		close(run->cfg.boot.kernel_fd);
	if (run->cfg.boot.initrd_fd >= 0)
		close(run->cfg.boot.initrd_fd);
	run->cfg.boot.kernel_fd = run->cfg.boot.initrd_fd = -1;
}

/* --- signals and the time limit, as loop sources --- */

static void on_signal(struct loop_src *src, u32 events)
{
	struct run *run = container_of(src, struct run, signals);
	struct signalfd_siginfo si;

	(void)events;
	if (read(src->fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	if (si.ssi_signo == SIGCONT)
		console_continued(run->vm->console);
	else
		run->vm->m.stop(&run->vm->m, STOP_SIGNAL, (int)si.ssi_signo);
}

static void on_timeout(struct loop_src *src, u32 events)
{
	struct run *run = container_of(src, struct run, timer);

	(void)events;
	run->vm->m.stop(&run->vm->m, STOP_TIMEOUT, (int)run->timeout);
}

/*
 * From here on the loop takes the signals that end a program. Not earlier: what may take for ever
 * before (a pipe as kernel) ends by a signal's default action, and has nothing yet that must be put
 * back. Not later: devices change the host. No thread was made so far, so all inherit the mask.
 */
static int signals_add(struct run *run)
{
	static const int ending[] = { SIGINT,  SIGTERM, SIGHUP,    SIGQUIT, SIGUSR1,
				      SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU };
	sigset_t set;

	struct sigaction old;

	/* One that our caller has us ignore (nohup) stays ignored: blocked it would be queued. */
	sigemptyset(&set);
	for (unsigned i = 0; i < ARRAY_SIZE(ending); i++) {
		if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&set, ending[i]);
	}
	sigaddset(&set, SIGCONT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	run->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	run->signals.fn = on_signal;
	run->signals.name = "signals";
	if (run->signals.fd < 0)
		return -errno;
	return loop_add(&run->vm->loop, &run->signals, EPOLLIN);
}

static int timer_add(struct run *run)
{
	struct itimerspec when = { .it_value.tv_sec = (time_t)run->timeout };

	if (!run->timeout)
		return 0;
	run->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	run->timer.fn = on_timeout;
	run->timer.name = "timeout";
	if (run->timer.fd < 0 || timerfd_settime(run->timer.fd, 0, &when, NULL))
		return -errno;
	return loop_add(&run->vm->loop, &run->timer, EPOLLIN);
}

/* --- statistics: one JSON object --- */

static u64 sum_exits(const struct vm *vm, enum exit_cause cause)
{
	u64 n = 0;

	for (unsigned i = 0; i < vm->nr_vcpus; i++)
		n += __atomic_load_n(&vm->vcpu[i].exits[cause], __ATOMIC_RELAXED);
	return n;
}

static void do_stat(void *ctx, const char *arg, FILE *out)
{
	const struct run *run = ctx;
	const struct vm *vm = run->vm;
	const char *comma = "";
	u64 all = 0;

	(void)arg;
	for (unsigned i = 0; i < vm->nr_vcpus; i++)
		all += vcpu_exits(&vm->vcpu[i]);
	fprintf(out, "{\"name\":\"%s\",\"cpus\":%u,\"memory\":%llu,", run->name, vm->nr_vcpus,
		(unsigned long long)vm->cfg.mem);
	fprintf(out,
		"\"exits\":{\"userspace\":%llu,\"pio\":%llu,\"mmio\":%llu,\"intr\":%llu,\"other\":%llu},",
		(unsigned long long)all, (unsigned long long)sum_exits(vm, EXIT_PIO),
		(unsigned long long)sum_exits(vm, EXIT_MMIO),
		(unsigned long long)sum_exits(vm, EXIT_INTR),
		(unsigned long long)sum_exits(vm, EXIT_OTHER));
	fprintf(out, "\"paused\":%s,", vm->paused ? "true" : "false");
	fprintf(out, "\"loop_wakeups\":%llu,\"devices\":[",
		(unsigned long long)loop_wakeups(&vm->loop));
	for (struct device *dev = vm->m.devices; dev; dev = dev->next) {
		if (!dev->stat)
			continue;
		fputs(comma, out);
		dev->stat(dev, out);
		comma = ",";
	}
	fputs("]}", out);
}

/* --- what else the control socket takes --- */

static void do_stop(void *ctx, const char *arg, FILE *out)
{
	struct run *run = ctx;

	(void)arg;
	run->vm->m.stop(&run->vm->m, STOP_USER, 0);
	fputs("{\"ok\":true}", out);
}

static void do_pause(void *ctx, const char *arg, FILE *out)
{
	(void)arg;
	vm_pause(((struct run *)ctx)->vm);
	fputs("{\"ok\":true}", out);
}

static void do_resume(void *ctx, const char *arg, FILE *out)
{
	(void)arg;
	vm_resume(((struct run *)ctx)->vm);
	fputs("{\"ok\":true}", out);
}

/* "vhost=0", "vhost=1", "link=up" or "link=down", for all NICs. */
static int net_change(struct virtio_device *nic, const char *arg)
{
	if (!strcmp(arg, "vhost=0") || !strcmp(arg, "vhost=1"))
		return net_set_vhost(nic, arg[6] == '1');
	if (!strcmp(arg, "link=up") || !strcmp(arg, "link=down"))
		return net_set_link(nic, !strcmp(arg, "link=up"));
	return -EINVAL;
}

static void do_net(void *ctx, const char *arg, FILE *out)
{
	struct run *run = ctx;
	int err = -ENODEV;

	for (struct device *dev = run->vm->m.devices; dev; dev = dev->next) {
		if (strcmp(dev->type, "net"))
			continue;
		err = net_change(container_of(dev, struct virtio_device, device), arg);
		if (err)
			break;
	}
	if (err)
		fprintf(out, "{\"error\":\"%s: %s\"}", arg, strerror(-err));
	else
		fputs("{\"ok\":true}", out);
}

static const struct ipc_command control[] = {
	{ "net", do_net },     { "stat", do_stat },     { "stop", do_stop },
	{ "pause", do_pause }, { "resume", do_resume }, { NULL, NULL },
};

/* --- the run --- */

static int run_setup(struct run *run)
{
	int err;

	run->vm = vm_new(&run->cfg, &err);
	if (!run->restart)
		close_files(run);
	if (!run->vm)
		return err;
	err = signals_add(run);
	if (!err)
		err = timer_add(run);
	if (err) {
		log_err("signals and timers: %s", strerror(-err));
		return err;
	}
	/* The name first: a script must not run for a VM that is refused. */
	run->vm->m.transport = run->transport;
	run->ipc = ipc_new(&run->vm->m, run->name, control, run, &err);
	return run->ipc ? device_list_create(&run->vm->m, &run->devices, run->name) : err;
}

static void run_cleanup(struct run *run)
{
	ipc_free(run->ipc);
	vm_free(run->vm);
	if (run->signals.fd >= 0)
		close(run->signals.fd);
	if (run->timer.fd >= 0)
		close(run->timer.fd);
	close_files(run);
	device_list_free(&run->devices);
	free(run->cmdline);
	free(run->name);
}

/*
 * Runs a VM that is set up; its exit status. What ended it goes to stderr once the terminal is
 * restored.
 */
static int run_vm(struct run *run, char *why, size_t len)
{
	vm_run(run->vm);
	while (run->restart && run->vm->outcome.why == STOP_RESET) {
		if (vm_reset(run->vm) == 0)
			vm_run(run->vm);
		else
			run->vm->outcome.why = STOP_ERROR;
	}
	outcome_text(&run->vm->outcome, why, len);
	return outcome_status(&run->vm->outcome);
}

int cmd_run(int argc, char **argv)
{
	struct run run = {
		.cfg = { .mem = DEFAULT_MEM,
			 .nr_cpus = 1,
			 .boot = { .kernel_fd = -1, .initrd_fd = -1 } },
		.signals.fd = -1,
		.timer.fd = -1,
	};
	char why[128] = "", name[80] = "";
	int status = EXIT_CANNOT;

	signal(SIGPIPE, SIG_IGN); /* a reader that is gone is an error of write(), not our end */
	signal(SIGXFSZ, SIG_IGN); /* so is a file that may not grow */
	if (parse(&run, argc, argv) == 0 && open_files(&run) == 0) {
		run.cfg.name = run.name;
		snprintf(name, sizeof(name), "%s", run.name);
		if (run_setup(&run) == 0)
			status = run_vm(&run, why, sizeof(why));
	}
	run_cleanup(&run);
	if (why[0])
		log_err("%s: %s", name, why);
	return status;
}
