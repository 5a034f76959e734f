// SPDX-License-Identifier: GPL-2.0-only
/*
 * The client's side of the control socket: one request, one answer, and the walk over all VMs of a
 * user. Theory of operation: include/ipc.h.
 */
#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ipc.h"
#include "log.h"

#define MAX_ANSWER MiB

/* The whole answer, NUL at its end, to be freed; NULL and *@err. */
static char *exchange(int fd, const char *request, int *err)
{
	char *text = malloc(MAX_ANSWER);
	size_t len = 0;
	ssize_t n = 1;

	*err = -ENOMEM;
	if (!text)
		return NULL;
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		n = -1;
	while (n > 0 && len < MAX_ANSWER - 1) {
		n = read(fd, text + len, MAX_ANSWER - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (n == 0 && len) {
		text[len] = '\0';
		return text;
	}
	*err = n < 0 ? -errno : -EPROTO;
	free(text);
	return NULL;
}

static void say(const char *name, int err)
{
	if (err == -ENOENT || err == -ECONNREFUSED)
		log_err("%s: no VM of this name is running", name);
	else if (err == -EAGAIN)
		log_err("%s: the VM does not answer", name);
	else
		log_err("%s: control socket: %s", name, strerror(-err));
}

char *ipc_ask(const char *name, int fd, const char *cmd, const char *arg, int *err)
{
	char request[IPC_REQUEST_MAX + 1], *text = NULL;

	if (arg)
		snprintf(request, sizeof(request), "{\"v\":1,\"cmd\":\"%s\",\"arg\":\"%s\"}\n", cmd,
			 arg);
	else
		snprintf(request, sizeof(request), "{\"v\":1,\"cmd\":\"%s\"}\n", cmd);
	*err = fd;
	if (fd >= 0) {
		text = exchange(fd, request, err);
		close(fd);
	}
	if (!text)
		say(name, *err);
	return text;
}

static int is_socket(const struct dirent *e)
{
	size_t len = strlen(e->d_name);

	return len > 5 && len <= 5 + IPC_NAME_MAX && e->d_name[0] != '.' &&
	       !strcmp(e->d_name + len - 5, ".sock");
}

/* Sockets that nobody listens on are what is left of VMs that were killed: passed over. */
int ipc_for_all(int (*fn)(void *ctx, const char *name, int fd), void *ctx)
{
	struct dirent **list = NULL;
	char dir[IPC_PATH_MAX];
	int n, result = ipc_dir(dir, sizeof(dir));

	if (result) {
		log_err("XDG_RUNTIME_DIR: %s; set it to a shorter path", strerror(-result));
		return result;
	}
	n = scandir(dir, &list, is_socket, alphasort);
	if (n < 0 && errno != ENOENT) {
		log_err("%s: %s; set XDG_RUNTIME_DIR to a folder of yours", dir, strerror(errno));
		return -EACCES;
	}
	for (int i = 0; i < n; i++) {
		char *name = list[i]->d_name;
		int fd, err;

		name[strlen(name) - 5] = '\0';
		fd = ipc_connect(name);
		if (fd != -ENOENT && fd != -ECONNREFUSED) {
			err = fn(ctx, name, fd);
			result = result ? result : err;
		}
		free(list[i]);
	}
	free(list);
	return result;
}
