// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: see ipc.h for folder and protocol. All of it runs on the loop thread, so
 * there is no lock. A client can do no more than waste its own connection: it must be the same user
 * or root, nothing here blocks, a request has a limit, and when all places are taken the one who
 * has waited longest without a complete request loses his.
 *
 * Who owns a name is decided under flock() on the folder: a socket that nobody listens on is of a
 * VM that died and is replaced; one that answers is refused. When the VM ends it removes the path
 * only if it is still the inode that it made.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc.h"
#include "log.h"
#include "loop.h"
#include "machine.h"

#define MAX_CLIENTS 8
#define PATIENCE    5 /* seconds that a client waits for a VM */

struct client {
	struct loop_src src; /* fd -1 = free */
	struct ipc *ipc;
	u64 since; /* number of the connection: the smallest has waited longest */
	char request[IPC_REQUEST_MAX];
	size_t len;
};

struct ipc {
	struct machine *m;
	struct loop_src listener;
	struct client client[MAX_CLIENTS];
	u64 nr_connections;
	const struct ipc_command *commands;
	void *ctx;
	struct sockaddr_un addr;
	int dir; /* the folder; its flock() guards who owns a name */
	bool bound;
	dev_t st_dev; /* the socket's inode, while bound */
	ino_t st_ino;
};

int name_check(const char *name)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(name);

	if (len && len <= IPC_NAME_MAX && strspn(name, allowed) == len && *name != '.' &&
	    *name != '-')
		return 0;
	log_err("--name: %s: not a name; use 1 to %d of A-Z a-z 0-9 . _ -, the first not . or -",
		*name ? name : "''", IPC_NAME_MAX);
	return -EINVAL;
}

/* --- paths --- */

int ipc_dir(char *buf, size_t len)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n;

	if (runtime && runtime[0] == '/')
		n = snprintf(buf, len, "%s/lkvm", runtime);
	else if (geteuid() == 0)
		n = snprintf(buf, len, "/run/lkvm");
	else
		n = snprintf(buf, len, "/tmp/lkvm-%u", (unsigned)geteuid());
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

static int socket_addr(struct sockaddr_un *addr, const char *name)
{
	char dir[sizeof(addr->sun_path)];
	int err = ipc_dir(dir, sizeof(dir)), n;

	if (err)
		return err;
	addr->sun_family = AF_UNIX;
	n = snprintf(addr->sun_path, sizeof(addr->sun_path), "%s/%s.sock", dir, name);
	return n < 0 || (size_t)n >= sizeof(addr->sun_path) ? -ENAMETOOLONG : 0;
}

/* A VM that hangs must not hang its client: -EAGAIN after PATIENCE. */
static int connect_to(const struct sockaddr_un *addr)
{
	const struct timeval patience = { .tv_sec = PATIENCE };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
	    connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int ipc_connect(const char *name)
{
	struct sockaddr_un addr;
	int err = socket_addr(&addr, name);

	return err ? err : connect_to(&addr);
}

/* Makes the folder if need be and opens it, or -errno. Somebody else's folder is -EPERM. */
static int open_dir(const char *socket_path)
{
	char dir[IPC_PATH_MAX];
	struct stat st;
	int fd, err = 0;

	snprintf(dir, sizeof(dir), "%s", socket_path);
	*strrchr(dir, '/') = '\0';
	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (st.st_uid != geteuid())
		err = -EPERM;
	else if ((st.st_mode & 077) && fchmod(fd, 0700))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* --- clients --- */

static void client_drop(struct client *c)
{
	if (c->src.fd < 0)
		return;
	loop_del(c->ipc->m->loop, &c->src);
	close(c->src.fd);
	c->src.fd = -1;
}

/* The answer fits in the buffer of a fresh socket; a client that does not read it harms nobody. */
static void answer(const struct client *c, const char *text, size_t len)
{
	if (send(c->src.fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)len)
		log_debug("control socket: answer of %zu bytes not taken", len);
}

static void run_command(const struct client *c, const struct ipc_command *cmd, const char *arg)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	cmd->run(c->ipc->ctx, arg, out);
	fputc('\n', out);
	if (fclose(out) == 0)
		answer(c, text, len);
	free(text);
}

/* A command and its argument from either form of a request; what is behind them makes it none. */
static bool parse_request(const char *request, char cmd[16], char arg[64])
{
	static const char *const forms[] = {
		"{\"v\":1,\"cmd\":\"%15[a-z]\"}%n",
		"{\"v\":1,\"cmd\":\"%15[a-z]\",\"arg\":\"%63[A-Za-z0-9=._-]\"}%n",
		"%15[a-z]%n",
		"%15[a-z] %63[A-Za-z0-9=._-]%n",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(forms); i++) {
		bool has_arg = i % 2;
		int end = 0;

		arg[0] = 0;
		if (has_arg)
			sscanf(request, forms[i], cmd, arg, &end);
		else
			sscanf(request, forms[i], cmd, &end);
		if (end && !request[end])
			return true;
	}
	return false;
}

static void serve(const struct client *c, const char *request)
{
	static const char unknown[] = "{\"error\":\"no such command\"}\n";
	char name[16], arg[64];
	bool known = parse_request(request, name, arg);

	for (const struct ipc_command *cmd = c->ipc->commands; known && cmd->name; cmd++) {
		if (strcmp(name, cmd->name) == 0) {
			run_command(c, cmd, arg);
			return;
		}
	}
	answer(c, unknown, sizeof(unknown) - 1);
}

static void on_client(struct loop_src *src, u32 events)
{
	struct client *c = container_of(src, struct client, src);
	ssize_t n = recv(src->fd, c->request + c->len, sizeof(c->request) - c->len, MSG_DONTWAIT);
	char *end;

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		c->len += (size_t)n;
		end = memchr(c->request, '\n', c->len);
		if (!end && c->len < sizeof(c->request))
			return; /* more is to come */
		if (end) {
			*end = '\0';
			serve(c, c->request);
		}
	}
	client_drop(c);
}

static bool same_user(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return false;
	return cred.uid == geteuid() || cred.uid == 0;
}

/* A free place, or else the longest waiting client's. */
static struct client *find_place(struct ipc *ipc)
{
	struct client *best = &ipc->client[0];

	for (unsigned i = 0; i < MAX_CLIENTS; i++) {
		struct client *c = &ipc->client[i];

		if (c->src.fd < 0)
			return c;
		if (c->since < best->since)
			best = c;
	}
	client_drop(best);
	return best;
}

static void on_listener(struct loop_src *src, u32 events)
{
	struct ipc *ipc = container_of(src, struct ipc, listener);
	int fd = accept4(src->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c;

	(void)events;
	if (fd < 0) {
		/* Out of file descriptors: the connection would stay ready and the loop spin. */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			log_warn(
				"control socket: %s; lkvm stat and its kin no longer work for this VM",
				strerror(errno));
			loop_del(ipc->m->loop, src);
		}
		return;
	}
	if (!same_user(fd)) {
		close(fd);
		return;
	}
	c = find_place(ipc);
	c->src.fd = fd;
	c->len = 0;
	c->since = ipc->nr_connections++;
	if (loop_add(ipc->m->loop, &c->src, EPOLLIN)) {
		close(fd);
		c->src.fd = -1;
	}
}

/* --- begin and end --- */

/* What is at our path may go when it is a socket that nobody listens on. Folder locked. */
static int clear_path(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd;

	if (lstat(addr->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = connect_to(addr);
	if (fd >= 0)
		close(fd);
	if (fd != -ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(addr->sun_path) ? -errno : 0;
}

static int listen_locked(struct ipc *ipc)
{
	struct stat st;
	int err = clear_path(&ipc->addr), fd = ipc->listener.fd;

	if (err)
		return err;
	if (bind(fd, (struct sockaddr *)&ipc->addr, sizeof(ipc->addr)))
		return -errno;
	if (lstat(ipc->addr.sun_path, &st) == 0) {
		ipc->bound = true;
		ipc->st_dev = st.st_dev;
		ipc->st_ino = st.st_ino;
	}
	return listen(fd, MAX_CLIENTS) ? -errno : 0;
}

static int ipc_listen(struct ipc *ipc, const char *name)
{
	int err = socket_addr(&ipc->addr, name);

	if (err)
		return err;
	ipc->listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ipc->listener.fd < 0)
		return -errno;
	ipc->dir = open_dir(ipc->addr.sun_path);
	if (ipc->dir < 0)
		return ipc->dir;
	if (flock(ipc->dir, LOCK_EX))
		return -errno;
	err = listen_locked(ipc);
	flock(ipc->dir, LOCK_UN);
	return err ? err : loop_add(ipc->m->loop, &ipc->listener, EPOLLIN);
}

static void log_failure(const struct ipc *ipc, const char *name, int err)
{
	if (err == -EADDRINUSE)
		log_err("--name: %s: a VM of this name is running; choose another", name);
	else
		log_err("control socket %s: %s; check the folder, or set XDG_RUNTIME_DIR",
			ipc->addr.sun_path[0] ? ipc->addr.sun_path : name, strerror(-err));
}

struct ipc *ipc_new(struct machine *m, const char *name, const struct ipc_command *commands,
		    void *ctx, int *err)
{
	struct ipc *ipc;

	*err = name_check(name);
	if (*err)
		return NULL;
	ipc = calloc(1, sizeof(*ipc));
	if (!ipc) {
		*err = -ENOMEM;
		log_err("control socket: out of memory");
		return NULL;
	}
	ipc->m = m;
	ipc->commands = commands;
	ipc->ctx = ctx;
	ipc->dir = -1;
	ipc->listener = (struct loop_src){ .fd = -1, .fn = on_listener, .name = "control socket" };
	for (unsigned i = 0; i < MAX_CLIENTS; i++) {
		ipc->client[i].src =
			(struct loop_src){ .fd = -1, .fn = on_client, .name = "control client" };
		ipc->client[i].ipc = ipc;
	}
	*err = ipc_listen(ipc, name);
	if (!*err)
		return ipc;
	log_failure(ipc, name, *err);
	ipc_free(ipc);
	return NULL;
}

static void remove_socket(const struct ipc *ipc)
{
	struct stat st;

	flock(ipc->dir, LOCK_EX);
	if (lstat(ipc->addr.sun_path, &st) == 0 && st.st_dev == ipc->st_dev &&
	    st.st_ino == ipc->st_ino)
		unlink(ipc->addr.sun_path);
	flock(ipc->dir, LOCK_UN);
}

void ipc_free(struct ipc *ipc)
{
	if (!ipc)
		return;
	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		client_drop(&ipc->client[i]);
	if (ipc->bound)
		remove_socket(ipc);
	if (ipc->dir >= 0)
		close(ipc->dir);
	if (ipc->listener.fd >= 0) {
		loop_del(ipc->m->loop, &ipc->listener);
		close(ipc->listener.fd);
	}
	free(ipc);
}
