/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The control socket of a running VM, and how a client finds it.
 *
 * Theory of operation: each VM listens on DIR/NAME.sock, where DIR (mode 0700, the user's own) is
 * $XDG_RUNTIME_DIR/lkvm, else /run/lkvm for root and /tmp/lkvm-UID for others. Protocol, version 1:
 * the client sends one line of at most 128 bytes, {"v":1,"cmd":"NAME"} or
 * {"v":1,"cmd":"NAME","arg":"ARG"}, for a person also NAME or NAME ARG, and gets one line of JSON
 * back; then the connection is closed. NAME is of a-z, ARG of letters, digits and =._- . What went
 * wrong is {"error":"..."}. Rank 2.
 */
#ifndef LKVM_IPC_H
#define LKVM_IPC_H

#include "types.h"

#define IPC_NAME_MAX    64  /* bytes of a VM's name */
#define IPC_REQUEST_MAX 128 /* bytes of a request, newline included */
#define IPC_PATH_MAX    108 /* sizeof(sun_path) */

struct machine;
struct ipc;

/*
 * [A-Za-z0-9._-], 1 to 64 characters, the first neither '.' nor '-'. 0, or -EINVAL after logging.
 */
int name_check(const char *name);

/*
 * What a VM does on request: writes one JSON object without newline to @out. @arg is "" for none.
 */
struct ipc_command {
	const char *name;
	void (*run)(void *ctx, const char *arg, FILE *out);
};

/*
 * Listens for VM @name in the machine's loop; @commands ends with a NULL name. Answering a client
 * wakes the loop twice (connection, request), and a third time if the request comes in pieces;
 * while there are none it costs nothing. On error NULL, *@err = -errno (-EADDRINUSE: a VM of that
 * name runs), and a message was logged.
 */
struct ipc *ipc_new(struct machine *m, const char *name, const struct ipc_command *commands,
		    void *ctx, int *err) __must_check;

/* Closes all connections and removes the socket if it is still ours. NULL is fine. */
void ipc_free(struct ipc *ipc);

/* --- for clients --- */

/*
 * A connection to VM @name, or -errno: -ECONNREFUSED and -ENOENT when it does not run.
 */
int ipc_connect(const char *name) __must_check;

/*
 * Sends a request over the connection @fd, or passes on the error that it is, and closes it. The
 * whole answer, to be freed; on error NULL, *@err = -errno, and one line about VM @name was logged.
 * @arg NULL = none.
 */
char *ipc_ask(const char *name, int fd, const char *cmd, const char *arg, int *err) __must_check;

/*
 * Calls fn with a connection to each VM of this user that answers; fn closes it. The first error of
 * fn, or -errno after logging.
 */
int ipc_for_all(int (*fn)(void *ctx, const char *name, int fd), void *ctx) __must_check;

/* The folder of the sockets, as above. 0, or -ENAMETOOLONG. Makes nothing. */
int ipc_dir(char *buf, size_t len) __must_check;

#endif
