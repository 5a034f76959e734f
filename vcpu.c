// SPDX-License-Identifier: GPL-2.0-only
/* vCPU threads. Theory of operation: include/vcpu.h. */
#include <linux/kvm.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "vcpu.h"
#include "vm.h"

#define JOIN_RETRY_NS 100000000L

int vcpu_init(struct vcpu *vcpu, struct vm *vm, unsigned index)
{
	int size, err;

	vcpu->vm = vm;
	vcpu->index = index;
	vcpu->fd = ioctl(vm->vm_fd, KVM_CREATE_VCPU, (unsigned long)index);
	size = vcpu->fd < 0 ? -1 : ioctl(vm->kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (size > 0) {
		void *run =
			mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu->fd, 0);

		if (run != MAP_FAILED) {
			vcpu->run = run;
			vcpu->run_size = (size_t)size;
			return arch_vcpu_init(vcpu);
		}
	}
	err = -errno;
	log_err("vCPU %u: cannot make it: %s", index, strerror(-err));
	return err;
}

void vcpu_free(struct vcpu *vcpu)
{
	if (vcpu->run)
		munmap(vcpu->run, vcpu->run_size);
	if (vcpu->fd >= 0)
		close(vcpu->fd);
	vcpu->run = NULL;
	vcpu->fd = -1;
}

static void vcpu_stop(struct vcpu *vcpu, enum stop_why why)
{
	vcpu->vm->m.stop(&vcpu->vm->m, why, (int)vcpu->index);
}

/* KVM api.rst 5: string instructions come as one exit with a count. */
static void exit_io(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;
	struct bus *pio = &vcpu->vm->m.pio;
	u8 *data = (u8 *)run + run->io.data_offset;

	for (u32 i = 0; i < run->io.count; i++, data += run->io.size) {
		if (run->io.direction == KVM_EXIT_IO_OUT)
			bus_write(pio, run->io.port, data, run->io.size);
		else
			bus_read(pio, run->io.port, data, run->io.size);
	}
}

static void exit_mmio(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;
	struct bus *mmio = &vcpu->vm->m.mmio;

	if (run->mmio.is_write)
		bus_write(mmio, run->mmio.phys_addr, run->mmio.data, run->mmio.len);
	else
		bus_read(mmio, run->mmio.phys_addr, run->mmio.data, run->mmio.len);
}

static void exit_system_event(struct vcpu *vcpu)
{
	switch (vcpu->run->system_event.type) {
	case KVM_SYSTEM_EVENT_SHUTDOWN: vcpu_stop(vcpu, STOP_POWEROFF); break;
	case KVM_SYSTEM_EVENT_RESET: vcpu_stop(vcpu, STOP_RESET); break;
	case KVM_SYSTEM_EVENT_CRASH: vcpu_stop(vcpu, STOP_PANIC); break;
	default:
		log_warn_once("vCPU %u: unknown system event %u", vcpu->index,
			      vcpu->run->system_event.type);
	}
}

/* KVM cannot go on with this vCPU: the user gets its registers. */
static void exit_dead(struct vcpu *vcpu, const char *what, u64 code)
{
	log_err("vCPU %u: %s (%#llx)", vcpu->index, what, (unsigned long long)code);
	arch_vcpu_dump(vcpu);
	vcpu_stop(vcpu, STOP_KVM);
}

static enum exit_cause vcpu_handle(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;

	switch (run->exit_reason) {
	case KVM_EXIT_IO: exit_io(vcpu); return EXIT_PIO;
	case KVM_EXIT_MMIO: exit_mmio(vcpu); return EXIT_MMIO;
	case KVM_EXIT_INTR: return EXIT_INTR;
	case KVM_EXIT_SYSTEM_EVENT: exit_system_event(vcpu); break;
	case KVM_EXIT_SHUTDOWN:
		arch_vcpu_dump(vcpu);
		vcpu_stop(vcpu, STOP_TRIPLE_FAULT);
		break;
	case KVM_EXIT_FAIL_ENTRY:
		exit_dead(vcpu, "KVM cannot enter the guest",
			  run->fail_entry.hardware_entry_failure_reason);
		break;
	case KVM_EXIT_INTERNAL_ERROR:
		exit_dead(vcpu, "KVM internal error", run->internal.suberror);
		break;
	default:
		if (arch_vcpu_exit(vcpu))
			exit_dead(vcpu, "unknown exit", run->exit_reason);
	}
	return EXIT_OTHER;
}

static void vcpu_count(struct vcpu *vcpu, enum exit_cause cause)
{
	__atomic_fetch_add(&vcpu->exits[cause], 1, __ATOMIC_RELAXED);
}

/* Waits for the end of a pause, and tells the guest's clock of the time that it lost. */
static void wait_paused(struct vcpu *vcpu)
{
	struct vm *vm = vcpu->vm;

	pthread_mutex_lock(&vm->pause_lock);
	while (vm->paused && !outcome_stopping(&vm->outcome))
		pthread_cond_wait(&vm->unpaused, &vm->pause_lock);
	pthread_mutex_unlock(&vm->pause_lock);
	ioctl(vcpu->fd, KVM_KVMCLOCK_CTRL, 0); /* -EINVAL when the guest has no kvmclock */
}

/* False when the thread is to end. */
static bool may_run(struct vcpu *vcpu)
{
	struct vm *vm = vcpu->vm;

	while (!outcome_stopping(&vm->outcome) && __atomic_load_n(&vm->paused, __ATOMIC_SEQ_CST))
		wait_paused(vcpu);
	return !outcome_stopping(&vm->outcome);
}

static int enter_guest(struct vcpu *vcpu)
{
	int r;

	__atomic_store_n(&vcpu->in_guest, true, __ATOMIC_SEQ_CST);
	r = ioctl(vcpu->fd, KVM_RUN, 0);
	__atomic_store_n(&vcpu->in_guest, false, __ATOMIC_SEQ_CST);
	return r;
}

static void *vcpu_thread(void *arg)
{
	struct vcpu *vcpu = arg;
	char name[16];
	sigset_t kick;

	/* Who started us may have blocked it; without it no kick arrives. */
	sigemptyset(&kick);
	sigaddset(&kick, VCPU_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &kick, NULL);
	snprintf(name, sizeof(name), "vcpu%u", vcpu->index);
	pthread_setname_np(pthread_self(), name);
	while (may_run(vcpu)) {
		if (enter_guest(vcpu) == 0) {
			vcpu_count(vcpu, vcpu_handle(vcpu));
		} else if (errno == EINTR || errno == EAGAIN) {
			/* The kick is taken; one that comes now is seen by may_run(), or kept. */
			WRITE_ONCE(vcpu->run->immediate_exit, 0);
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			vcpu_count(vcpu, EXIT_INTR);
		} else {
			log_err("vCPU %u: KVM_RUN: %s", vcpu->index, strerror(errno));
			arch_vcpu_dump(vcpu);
			vcpu_stop(vcpu, STOP_ERROR);
		}
	}
	return NULL;
}

/* Its only work is to interrupt system calls. */
static void on_kick(int sig)
{
	(void)sig;
}

int vcpu_start(struct vcpu *vcpu)
{
	struct sigaction sa = { .sa_handler = on_kick };
	int err = sigaction(VCPU_SIGNAL, &sa, NULL) ? errno : 0;

	if (!err)
		err = pthread_create(&vcpu->thread, NULL, vcpu_thread, vcpu);
	if (err)
		log_err("vCPU %u: cannot start its thread: %s", vcpu->index, strerror(err));
	vcpu->running = !err;
	return -err;
}

void vcpu_kick(struct vcpu *vcpu)
{
	if (!vcpu->running)
		return;
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* what the kick is for is visible first */
	WRITE_ONCE(vcpu->run->immediate_exit, 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	pthread_kill(vcpu->thread, VCPU_SIGNAL);
}

void vcpu_join(struct vcpu *vcpu)
{
	struct timespec ts;

	/* A kick that falls between two system calls of a handler is repeated. */
	while (vcpu->running) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		ts.tv_nsec += JOIN_RETRY_NS;
		if (ts.tv_nsec >= 1000000000L) {
			ts.tv_nsec -= 1000000000L;
			ts.tv_sec++;
		}
		if (pthread_clockjoin_np(vcpu->thread, NULL, CLOCK_MONOTONIC, &ts) == 0)
			vcpu->running = false;
		else
			vcpu_kick(vcpu);
	}
}

u64 vcpu_exits(const struct vcpu *vcpu)
{
	u64 n = 0;

	for (unsigned i = 0; i < EXIT_NR; i++)
		n += __atomic_load_n(&vcpu->exits[i], __ATOMIC_RELAXED);
	return n;
}
