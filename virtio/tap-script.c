// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the user's script for a tap.
 *
 * It gets the interface's name, no input, default signals, none of our fds, and a process group of
 * its own. While it runs nobody takes signals from the loop: so we look for those that are to end
 * us, and end it with all its children when one waits, or when it takes too long.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "virtio/tap-script.h"

#define LOOK_MS     100 /* between two looks for a signal */
#define PATIENCE_MS 60000

static int script_spawn(const char *script, const char *ifname, pid_t *pid)
{
	char *argv[] = { (char *)script, (char *)ifname, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	r = -posix_spawn(pid, script, &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return r;
}

/* A signal that is to end us waits to be taken: nobody else looks at it while a script runs. */
static bool told_to_end(void)
{
	sigset_t set;

	if (sigpending(&set) < 0)
		return false;
	sigdelset(&set, SIGCONT);
	sigdelset(&set, SIGCHLD);
	return !sigisemptyset(&set);
}

/* The status of waitpid(), or -ETIMEDOUT, -EINTR after killing the script with its children. */
static int script_wait(pid_t pid)
{
	int fd = pidfd_open(pid, 0), status = 0, r = 0;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (int ms = 0; fd >= 0 && !r && poll(&p, 1, LOOK_MS) == 0; ms += LOOK_MS)
		r = told_to_end() ? -EINTR : ms >= PATIENCE_MS ? -ETIMEDOUT : 0;
	if (r)
		kill(-pid, SIGKILL);
	if (fd >= 0)
		close(fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r ? r : status;
}

int tap_script(const char *script, const char *ifname)
{
	pid_t pid;
	int r = script_spawn(script, ifname, &pid);

	if (!r)
		r = script_wait(pid);
	if (r == -EINTR)
		log_err("-n: tapif=%s: script=%s: ended with us by a signal", ifname, script);
	else if (r < 0)
		log_err("-n: tapif=%s: script=%s: %s; mend the script", ifname, script,
			strerror(-r));
	else if (r)
		log_err("-n: tapif=%s: script=%s: it ended with %s %d; mend the script", ifname,
			script, WIFEXITED(r) ? "status" : "signal",
			WIFEXITED(r) ? WEXITSTATUS(r) : WTERMSIG(r));
	return r > 0 ? -ECANCELED : r;
}
