// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: a command's options are one table; parsing, --help, the man page and shell
 * completion all read it, so none of them can fall behind. Nothing is guessed: an option is known
 * or refused, a number is digits from end to end, a key of a list may come once. Whoever finds the
 * mistake logs it in one line with option and value, and returns -EINVAL. No state is kept.
 */
#include <ctype.h>
#include <stdlib.h>

#include "log.h"
#include "opt.h"

#define USAGE_COLUMN 28 /* where help texts begin */
#define USAGE_WIDTH  80

/* "-n: guest_mac=02:zz: WHY"; without a key "-m: 10X: WHY" */
static int refuse(const char *option, const char *key, const char *value, const char *why)
{
	log_err("%s: %s%s%s: %s", option, key ? key : "", key ? "=" : "",
		*value || key ? value : "''", why);
	return -EINVAL;
}

/* --- options --- */

static bool opt_end(const struct opt *opt)
{
	return !opt->name && !opt->letter;
}

static const struct opt *find_long(const struct opt *opts, const char *name, size_t len)
{
	for (; !opt_end(opts); opts++) {
		if (opts->name && strlen(opts->name) == len && !memcmp(opts->name, name, len))
			return opts;
	}
	return NULL;
}

static const struct opt *find_letter(const struct opt *opts, char letter)
{
	for (; !opt_end(opts); opts++) {
		if (opts->letter == letter)
			return opts;
	}
	return NULL;
}

/*
 * Takes the option at argv[i]; @value is what was glued to it, or NULL. Returns the index of the
 * next argument or -errno.
 */
static int take_option(const struct opt *opt, const char *value, int i, int argc, char **argv,
		       void *ctx)
{
	int err;

	if (!opt) {
		log_err("%s: no such option; see --help", argv[i]);
		return -EINVAL;
	}
	if (!opt->arg && value) {
		log_err("%s: this option takes no value", argv[i]);
		return -EINVAL;
	}
	if (opt->arg && !value) {
		if (i + 1 >= argc) {
			log_err("%s: %s is missing", argv[i], opt->arg);
			return -EINVAL;
		}
		value = argv[++i];
	}
	err = opt->set(ctx, opt, value);
	return err ? err : i + 1;
}

/* "--name" or "--name=value" */
static int take_long(const struct opt *opts, int i, int argc, char **argv, void *ctx)
{
	const char *name = argv[i] + 2;
	size_t len = strcspn(name, "=");

	return take_option(find_long(opts, name, len), name[len] ? name + len + 1 : NULL, i, argc,
			   argv, ctx);
}

/* "-x" or "-xvalue" */
static int take_short(const struct opt *opts, int i, int argc, char **argv, void *ctx)
{
	const char *arg = argv[i];

	return take_option(find_letter(opts, arg[1]), arg[2] ? arg + 2 : NULL, i, argc, argv, ctx);
}

int opt_parse(const struct opt *opts, int argc, char **argv, void *ctx,
	      int (*positional)(void *ctx, const char *arg))
{
	int i = 1, err;

	while (i < argc) {
		const char *arg = argv[i];

		if (!strcmp(arg, "--"))
			return i + 1;
		if (arg[0] == '-' && arg[1] == '-') {
			i = take_long(opts, i, argc, argv, ctx);
		} else if (arg[0] == '-' && arg[1]) {
			i = take_short(opts, i, argc, argv, ctx);
		} else if (positional) {
			err = positional(ctx, arg);
			i = err ? err : i + 1;
		} else {
			log_err("%s: unexpected argument; see --help", *arg ? arg : "''");
			i = -EINVAL;
		}
		if (i < 0)
			return i;
	}
	return argc;
}

bool opt_help_wanted(const struct opt *opts, int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		const char *arg = argv[i];
		const struct opt *opt = NULL;
		bool glued = false;

		if (!strcmp(arg, "--help") || !strcmp(arg, "-h"))
			return true;
		if (arg[0] == '-' && arg[1] == '-') {
			size_t len = strcspn(arg + 2, "=");

			opt = find_long(opts, arg + 2, len);
			glued = arg[2 + len];
		} else if (arg[0] == '-' && arg[1]) {
			opt = find_letter(opts, arg[1]);
			glued = arg[2];
		}
		if (opt && opt->arg && !glued)
			i++; /* its value, whatever it looks like */
	}
	return false;
}

/* Prints @text in the columns from USAGE_COLUMN on, broken at spaces. The first line is begun. */
static void print_help(FILE *out, const char *text)
{
	size_t room = USAGE_WIDTH - USAGE_COLUMN;

	while (strlen(text) > room) {
		size_t len = room;

		while (len > 0 && text[len] != ' ')
			len--;
		if (!len)
			len = strcspn(text, " ");
		fprintf(out, "%.*s\n%*s", (int)len, text, USAGE_COLUMN, "");
		text += len + strspn(text + len, " ");
	}
	fprintf(out, "%s\n", text);
}

/* @n columns are taken on this line. */
static void print_entry(FILE *out, int n, const char *text)
{
	if (n + 2 > USAGE_COLUMN) {
		fputc('\n', out);
		n = 0;
	}
	fprintf(out, "%*s", USAGE_COLUMN - n, "");
	print_help(out, text);
}

void opt_usage(const struct opt *opts, FILE *out)
{
	for (; !opt_end(opts); opts++) {
		int n;

		if (opts->letter && opts->name)
			n = fprintf(out, "  -%c, --%s", opts->letter, opts->name);
		else if (opts->letter)
			n = fprintf(out, "  -%c", opts->letter);
		else
			n = fprintf(out, "      --%s", opts->name);
		if (opts->arg)
			n += fprintf(out, " %s", opts->arg);
		print_entry(out, n, opts->help);
	}
}

/* --- lists of keys --- */

void opt_keys_usage(const struct opt_key *keys, FILE *out)
{
	for (; keys->key; keys++) {
		if (keys->help)
			print_entry(out, fprintf(out, "      %s=", keys->key), keys->help);
	}
}

static int take_key(const struct opt_key *keys, const char *option, char *item, u64 *seen,
		    void *ctx)
{
	char *value = strchr(item, '=');
	unsigned i = 0;

	if (!value)
		return refuse(option, NULL, item, "not of the form key=value");
	*value++ = '\0';
	while (keys[i].key && strcmp(keys[i].key, item))
		i++;
	if (!keys[i].key)
		return refuse(option, item, value, "no such key; see --help");
	if (*seen & BIT(i))
		return refuse(option, item, value, "this key was given before");
	*seen |= BIT(i);
	return keys[i].set(ctx, option, item, value);
}

int opt_keys(const struct opt_key *keys, const char *option, const char *list, void *ctx)
{
	char *copy = strdup(list), *item = copy;
	u64 seen = 0;
	int err = 0;

	if (!copy) {
		log_err("%s: %s: out of memory", option, list);
		return -ENOMEM;
	}
	while (!err && item) {
		char *next = strchr(item, ',');

		if (next)
			*next++ = '\0';
		err = take_key(keys, option, item, &seen, ctx);
		item = next;
	}
	free(copy);
	return err;
}

/* --- values --- */

/*
 * Leading decimal digits of @s into *@out. The rest, or NULL when there are no digits or too many.
 */
static const char *take_digits(const char *s, u64 *out)
{
	u64 v = 0;

	if (!isdigit((unsigned char)*s))
		return NULL;
	for (; isdigit((unsigned char)*s); s++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (u64)(*s - '0'), &v))
			return NULL;
	}
	*out = v;
	return s;
}

int opt_u64(const char *option, const char *key, const char *value, u64 min, u64 max, u64 *out)
{
	char why[80];
	const char *rest;
	u64 v;

	rest = take_digits(value, &v);
	if (rest && !*rest && v >= min && v <= max) {
		*out = v;
		return 0;
	}
	snprintf(why, sizeof(why), "must be a number from %llu to %llu", (unsigned long long)min,
		 (unsigned long long)max);
	return refuse(option, key, value, why);
}

int opt_bool(const char *option, const char *key, const char *value, bool *out)
{
	if ((value[0] != '0' && value[0] != '1') || value[1])
		return refuse(option, key, value, "must be 0 or 1");
	*out = value[0] == '1';
	return 0;
}

int opt_size(const char *option, const char *value, u64 *out)
{
	static const char units[] = "BKMGTP";
	const char *rest, *unit;
	unsigned shift = 20;
	u64 v;

	rest = take_digits(value, &v);
	if (!rest)
		return refuse(option, NULL, value, "must be a size, as 512, 512M or 2G");
	if (*rest) {
		unit = strchr(units, toupper((unsigned char)*rest));
		if (!unit || rest[1])
			return refuse(option, NULL, value, "unit must be one of B K M G T P");
		shift = 10 * (unsigned)(unit - units);
	}
	if (!v || v > UINT64_MAX >> shift)
		return refuse(option, NULL, value, v ? "too large" : "must be more than 0");
	*out = v << shift;
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Six bytes of one or two hex digits with colons between. */
static bool parse_mac(const char *s, u8 mac[6])
{
	for (unsigned i = 0; i < 6; i++) {
		int hi = hex_digit(*s), lo;

		if (hi < 0)
			return false;
		lo = hex_digit(*++s);
		if (lo >= 0)
			s++;
		mac[i] = (u8)(lo >= 0 ? hi << 4 | lo : hi);
		if (*s++ != (i < 5 ? ':' : '\0'))
			return false;
	}
	return true;
}

int opt_mac(const char *option, const char *key, const char *value, u8 mac[6])
{
	static const u8 zero[6];
	u8 m[6];

	if (!parse_mac(value, m))
		return refuse(option, key, value, "not a MAC address, as 02:15:15:15:15:15");
	if (m[0] & 1)
		return refuse(option, key, value, "a multicast address cannot be a NIC's own");
	if (!memcmp(m, zero, sizeof(zero)))
		return refuse(option, key, value, "the zero address cannot be a NIC's own");
	memcpy(mac, m, sizeof(m));
	return 0;
}
