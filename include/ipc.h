/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The control socket of a running VM, and how a client finds it.
 *
 * Theory of operation: each VM listens on DIR/NAME.sock, where DIR (mode 0700, the user's own) is
 * $XDG_RUNTIME_DIR/lkvm, else /run/lkvm for root and /tmp/lkvm-UID for others. Protocol, version 1:
 * the client sends one line of at most 64 bytes, {"v":1,"cmd":"stat"} or just stat, and gets one
 * line of JSON back; then the connection is closed. An error is answered {"error":"..."}. Rank 2.
 */
#ifndef LKVM_IPC_H
#define LKVM_IPC_H

#include "types.h"

#define IPC_NAME_MAX    64  /* bytes of a VM's name */
#define IPC_REQUEST_MAX 64  /* bytes of a request, newline included */
#define IPC_PATH_MAX    108 /* sizeof(sun_path) */

struct machine;
struct ipc;

/*
 * [A-Za-z0-9._-], 1 to 64 characters, the first neither '.' nor '-'. 0, or -EINVAL after logging.
 */
int name_check(const char *name);

/*
 * Listens for VM @name in the machine's loop; @stat writes one JSON object without newline.
 * Answering a client wakes the loop twice (connection, request), and a third time if the request
 * comes in pieces; while there are none it costs nothing. On error NULL, *@err = -errno
 * (-EADDRINUSE: a VM of that name runs), and a message was logged.
 */
struct ipc *ipc_new(struct machine *m, const char *name, void (*stat)(void *ctx, FILE *out),
		    void *ctx, int *err) __must_check;

/* Closes all connections and removes the socket if it is still ours. NULL is fine. */
void ipc_free(struct ipc *ipc);

/* The folder of the sockets, as above. 0, or -ENAMETOOLONG. Makes nothing. */
int ipc_dir(char *buf, size_t len) __must_check;

/*
 * A connection to VM @name for a client, or -errno: -ECONNREFUSED and -ENOENT when it does not run.
 */
int ipc_connect(const char *name) __must_check;

#endif
