// SPDX-License-Identifier: GPL-2.0-only
/* Why a VM ended, and what that is as an exit status and as a line for the user. */
#include <signal.h>

#include "outcome.h"

static bool beats(int why, int old)
{
	return old == STOP_NONE || (old == STOP_RESET && (why == STOP_USER || why == STOP_SIGNAL));
}

bool outcome_set(struct outcome *o, enum stop_why why, int detail)
{
	int old = __atomic_load_n(&o->why, __ATOMIC_ACQUIRE);

	/* Two steps, so that who sees the reason also sees its detail. */
	do {
		if (!beats((int)why, old))
			return false;
	} while (!__atomic_compare_exchange_n(&o->why, &old, STOP_NR, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	o->detail = detail;
	__atomic_store_n(&o->why, (int)why, __ATOMIC_RELEASE);
	return true;
}

bool outcome_stopping(const struct outcome *o)
{
	return __atomic_load_n(&o->why, __ATOMIC_ACQUIRE) != STOP_NONE;
}

int outcome_status(const struct outcome *o)
{
	switch ((enum stop_why)o->why) {
	case STOP_POWEROFF:
	case STOP_RESET:
	case STOP_USER: return 0;
	case STOP_TRIPLE_FAULT:
	case STOP_KVM: return 33;
	case STOP_PANIC: return 34;
	case STOP_TIMEOUT: return 124;
	case STOP_SIGNAL: return 128 + o->detail;
	case STOP_ERROR:
	case STOP_NONE:
	case STOP_NR: break;
	}
	return 125;
}

void outcome_text(const struct outcome *o, char *buf, size_t len)
{
	switch ((enum stop_why)o->why) {
	case STOP_POWEROFF: snprintf(buf, len, "guest powered off"); break;
	case STOP_RESET: snprintf(buf, len, "guest asked for a reset"); break;
	case STOP_USER: snprintf(buf, len, "ended by the user"); break;
	case STOP_KVM: snprintf(buf, len, "KVM gave up on vCPU %d", o->detail); break;
	case STOP_TRIPLE_FAULT: snprintf(buf, len, "triple fault on vCPU %d", o->detail); break;
	case STOP_PANIC: snprintf(buf, len, "guest kernel panic"); break;
	case STOP_TIMEOUT: snprintf(buf, len, "timeout of %d s ran out", o->detail); break;
	case STOP_SIGNAL:
		snprintf(buf, len, "ended by signal %d (%s)", o->detail, strsignal(o->detail));
		break;
	case STOP_ERROR:
	case STOP_NONE:
	case STOP_NR: buf[0] = 0; break;
	}
}
