// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: `lkvm stat` asks a running VM over its control socket (ipc.h) and prints the
 * answer: as it came with --json, else one line for each value, "exits.mmio  17", by a walk over
 * the JSON that knows nothing of what the VM has to tell.
 */
#include <ctype.h>

#include "builtin.h"
#include "ipc.h"
#include "log.h"

#define MAX_DEPTH 16

struct stat_args {
	const char *name;
	bool all, json;
	unsigned shown;
};

/* --- options --- */

static int set_name(void *ctx, const struct opt *opt, const char *value)
{
	int err = name_check(value);

	(void)opt;
	((struct stat_args *)ctx)->name = value;
	return err;
}

static int set_all(void *ctx, const struct opt *opt, const char *value)
{
	(void)opt;
	(void)value;
	((struct stat_args *)ctx)->all = true;
	return 0;
}

static int set_json(void *ctx, const struct opt *opt, const char *value)
{
	(void)opt;
	(void)value;
	((struct stat_args *)ctx)->json = true;
	return 0;
}

const struct opt stat_opts[] = {
	{ 'n', "name", "NAME", "the VM of this name", set_name },
	{ 'a', "all", NULL, "all VMs of this user (default)", set_all },
	{ 0, "json", NULL, "one line of JSON for each VM, as it answered", set_json },
	{ 0, NULL, NULL, NULL, NULL },
};

/* --- JSON to lines --- */

struct walk {
	const char *p;
	char path[256];
	FILE *out;
};

static bool walk_value(struct walk *w, size_t path_len, unsigned depth);

static char next_token(struct walk *w)
{
	w->p += strspn(w->p, " \t\r\n");
	return *w->p;
}

/* A string, quotes not included, escapes as they are. NULL when it does not end. */
static const char *take_string(struct walk *w, size_t *len)
{
	const char *begin = ++w->p;

	while (*w->p && *w->p != '"')
		w->p += w->p[0] == '\\' && w->p[1] ? 2 : 1;
	*len = (size_t)(w->p - begin);
	return *w->p++ ? begin : NULL;
}

static void print_value(const struct walk *w, const char *value, size_t len)
{
	fprintf(w->out, "%-32s ", w->path);
	for (size_t i = 0; i < len; i++)
		fputc(isprint((unsigned char)value[i]) ? value[i] : '?', w->out);
	fputc('\n', w->out);
}

/* One member or element, with its name appended to the path. */
static bool walk_member(struct walk *w, size_t path_len, unsigned depth, bool object,
			unsigned index)
{
	size_t room = sizeof(w->path) - path_len, len;
	const char *key;
	int n;

	if (object) {
		if (next_token(w) != '"')
			return false;
		key = take_string(w, &len);
		if (!key || next_token(w) != ':')
			return false;
		w->p++;
		n = snprintf(w->path + path_len, room, "%s%.*s", path_len ? "." : "", (int)len,
			     key);
	} else {
		n = snprintf(w->path + path_len, room, "[%u]", index);
	}
	return n >= 0 && (size_t)n < room && walk_value(w, path_len + (size_t)n, depth + 1);
}

static bool walk_container(struct walk *w, size_t path_len, unsigned depth)
{
	bool object = *w->p++ == '{';
	char end = object ? '}' : ']';

	if (next_token(w) == end) {
		w->p++;
		return true;
	}
	for (unsigned i = 0;; i++) {
		if (!walk_member(w, path_len, depth, object, i))
			return false;
		if (next_token(w) != ',')
			break;
		w->p++;
	}
	return *w->p++ == end;
}

static bool walk_value(struct walk *w, size_t path_len, unsigned depth)
{
	const char *begin;
	size_t len;
	char c = next_token(w);

	if (depth > MAX_DEPTH)
		return false;
	if (c == '{' || c == '[')
		return walk_container(w, path_len, depth);
	if (c == '"') {
		begin = take_string(w, &len);
	} else {
		begin = w->p;
		len = strcspn(w->p, ",]}\" \t\r\n");
		w->p += len;
	}
	if (!begin || (!len && c != '"'))
		return false;
	print_value(w, begin, len);
	return true;
}

static bool print_table(const char *json, FILE *out)
{
	struct walk w = { .p = json, .out = out };

	return walk_value(&w, 0, 0) && !next_token(&w);
}

/* --- asking --- */

static int print_answer(const char *name, const char *text, bool json)
{
	if (json) {
		fputs(text, stdout);
	} else if (!print_table(text, stdout)) {
		log_err("%s: the VM's answer is not JSON", name);
		return -EPROTO;
	}
	return 0;
}

static int stat_one(const struct stat_args *args, const char *name, int fd)
{
	int err;
	char *text = ipc_ask(name, fd, "stat", NULL, &err);

	if (!text)
		return err;
	err = print_answer(name, text, args->json);
	free(text);
	return err;
}

static int stat_next(void *ctx, const char *name, int fd)
{
	struct stat_args *args = ctx;

	if (args->shown++ && !args->json)
		putchar('\n');
	return stat_one(args, name, fd);
}

int cmd_stat(int argc, char **argv)
{
	struct stat_args args = { .name = NULL };
	int next = opt_parse(stat_opts, argc, argv, &args, NULL), err;

	if (next < 0)
		return EXIT_CANNOT;
	if (next < argc) {
		log_err("stat: %s: unexpected argument", argv[next]);
		return EXIT_CANNOT;
	}
	if (args.name && args.all) {
		log_err("stat: --all and --name %s: use one of them", args.name);
		return EXIT_CANNOT;
	}
	err = args.name ? stat_one(&args, args.name, ipc_connect(args.name))
			: ipc_for_all(stat_next, &args);
	return err ? EXIT_CANNOT : 0;
}
