/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread for each vCPU, running KVM_RUN and handing exits to the buses. Rank 6.
 *
 * Stopping: vcpu_kick() sets immediate_exit and then signals the thread. A KVM_RUN that began
 * before the flag was set is interrupted by the signal, one that begins later sees the flag: no
 * kick is lost.
 *
 * Pausing: vm->paused is set, then each vCPU is kicked; a thread that finds it set waits on a
 * condition before it enters the guest again.
 */
#ifndef LKVM_VCPU_H
#define LKVM_VCPU_H

#include <pthread.h>
#include <signal.h>
#include "types.h"

struct vm;
struct kvm_run;

/* Interrupts KVM_RUN and any system call of a handler. */
#define VCPU_SIGNAL (SIGRTMIN + 0)

enum exit_cause { EXIT_PIO, EXIT_MMIO, EXIT_INTR, EXIT_OTHER, EXIT_NR };

struct vcpu {
	struct vm *vm;
	unsigned index;
	int fd;
	struct kvm_run *run;
	size_t run_size;
	pthread_t thread;
	bool running;       /* the thread was made and is not joined */
	bool in_guest;      /* atomic: inside KVM_RUN */
	u64 exits[EXIT_NR]; /* returns of KVM_RUN by cause; written by the thread, atomic */
};

/* Makes vCPU @index of @vm; @vcpu is zeroed with fd -1. Logs and returns -errno. */
int vcpu_init(struct vcpu *vcpu, struct vm *vm, unsigned index) __must_check;
void vcpu_free(struct vcpu *vcpu);

int vcpu_start(struct vcpu *vcpu) __must_check;

/* Makes the thread leave KVM_RUN and, once the machine is stopping, end. */
void vcpu_kick(struct vcpu *vcpu);
void vcpu_join(struct vcpu *vcpu);

/* Returns of KVM_RUN to userspace so far, all causes. Any thread. */
u64 vcpu_exits(const struct vcpu *vcpu);

#endif
