// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: tables of what must be taken and what must be refused. A refusal is one
 * logged line that names the option and the value; the sink below keeps the last one.
 */
#include "tap.h"
#include "log.h"
#include "opt.h"

static char last[1024]; /* the last message */
static unsigned nr_messages;

static void keep(enum log_level level, const char *line)
{
	(void)level;
	snprintf(last, sizeof(last), "%s", line);
	nr_messages++;
}

static void expect_refusal(int err, const char *option, const char *value)
{
	CHECK_EQ(err, -EINVAL);
	CHECK_EQ(nr_messages, 1);
	if (!strstr(last, option) || !strstr(last, value)) {
		printf("# message '%s' does not name %s and %s\n", last, option, value);
		tap_failed++;
	}
	nr_messages = 0;
	last[0] = '\0';
}

/* --- values --- */

static void t_u64_good(void)
{
	static const struct {
		const char *s;
		u64 want;
	} good[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "007", 7 },
		{ "18446744073709551615", UINT64_MAX },
	};
	u64 v;

	log_set_sink(keep);
	for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
		v = 99;
		CHECK_EQ(opt_u64("-c", NULL, good[i].s, 0, UINT64_MAX, &v), 0);
		CHECK_EQ(v, good[i].want);
	}
	CHECK_EQ(opt_u64("-c", NULL, "4", 4, 4, &v), 0);
	CHECK_EQ(nr_messages, 0);
}

static void t_u64_bad(void)
{
	/* clang-format off */
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "1.0", "0x10", "ten", "1,2", "-",
					   "18446744073709551616", "99999999999999999999999", "3", "9" };
	/* clang-format on */
	u64 v = 99;

	log_set_sink(keep);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		expect_refusal(opt_u64("-c", NULL, bad[i], 4, 8, &v), "-c", bad[i]);
		expect_refusal(opt_u64("-n", "queues", bad[i], 4, 8, &v), "-n", "queues=");
	}
	CHECK_EQ(v, 99);
	opt_u64("-c", NULL, "9", 4, 8, &v);
	CHECK(strstr(last, "from 4 to 8") != NULL);
}

static void t_bool(void)
{
	static const char *const bad[] = { "", "yes", "no", "true", "on", "2", "01", "-1", "1 " };
	bool v = false;

	log_set_sink(keep);
	CHECK_EQ(opt_bool("-n", "vhost", "1", &v), 0);
	CHECK(v);
	CHECK_EQ(opt_bool("-n", "vhost", "0", &v), 0);
	CHECK(!v);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refusal(opt_bool("-n", "vhost", bad[i], &v), "-n: vhost=", bad[i]);
	CHECK(!v);
}

static void t_size_good(void)
{
	static const struct {
		const char *s;
		u64 want;
	} good[] = {
		{ "1", MiB },
		{ "512", 512 * MiB },
		{ "512M", 512 * MiB },
		{ "512m", 512 * MiB },
		{ "4096B", 4096 },
		{ "64K", 64 * KiB },
		{ "2G", 2 * GiB },
		{ "2g", 2 * GiB },
		{ "1T", BIT(40) },
		{ "1P", BIT(50) },
		{ "16383P", 16383 * BIT(50) },
		{ "18446744073709551615B", UINT64_MAX },
	};

	log_set_sink(keep);
	for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
		u64 v = 99;

		CHECK_EQ(opt_size("-m", good[i].s, &v), 0);
		CHECK_EQ(v, good[i].want);
	}
	CHECK_EQ(nr_messages, 0);
}

static void t_size_bad(void)
{
	/* clang-format off */
	static const char *const bad[] = { "", "0", "0G", "-1", "+1", "10X", "10MB", "10 M", "M", "1.5G",
					   "99999999T", "16384P", "18446744073709551615", "1M1",
					   "18446744073709551616B", "0x10", "10E", " 10" };
	/* clang-format on */
	u64 v = 99;

	log_set_sink(keep);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refusal(opt_size("-m", bad[i], &v), "-m: ", bad[i]);
	CHECK_EQ(v, 99);
}

static void t_mac_good(void)
{
	static const u8 want[6] = { 0x02, 0x15, 0x00, 0x0a, 0xBC, 0xff };
	u8 mac[6] = { 0 };

	log_set_sink(keep);
	CHECK_EQ(opt_mac("-n", "guest_mac", "02:15:00:0a:bC:FF", mac), 0);
	CHECK(!memcmp(mac, want, 6));
	memset(mac, 0, 6);
	CHECK_EQ(opt_mac("-n", "guest_mac", "2:15:0:a:bc:ff", mac), 0);
	CHECK(!memcmp(mac, want, 6));
	CHECK_EQ(nr_messages, 0);
}

static void t_mac_bad(void)
{
	/* clang-format off */
	static const char *const bad[] = {
		"", "02:zz:00:00:00:01", "02:15:15", "02:15:15:15:15", "02:15:15:15:15:15:15",
		"02:15:15:15:15:", ":15:15:15:15:15", "02:15:15:15:15:15 ", " 02:15:15:15:15:15",
		"+2:15:15:15:15:15", "-2:15:15:15:15:15", "02:+5:15:15:15:15", "02:015:15:15:15:15",
		"02-15-15-15-15-15", "021515151515", "02::15:15:15:15", "0x2:15:15:15:15:15",
		"01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "0:0:0:0:0:0", "02",
	};
	/* clang-format on */
	u8 mac[6] = { 7, 7, 7, 7, 7, 7 };

	log_set_sink(keep);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refusal(opt_mac("-n", "guest_mac", bad[i], mac), "-n: guest_mac=", bad[i]);
	for (unsigned i = 0; i < 6; i++)
		CHECK_EQ(mac[i], 7);
}

/* --- lists of keys --- */

/* What the setters saw: "key=value;" each. */
struct trace {
	char text[256];
	int err; /* what they return */
};

static void note(struct trace *trace, const char *name, const char *value)
{
	size_t len = strlen(trace->text);

	snprintf(trace->text + len, sizeof(trace->text) - len, "%s=%s;", name,
		 value ? value : "NULL");
}

static int set_key(void *ctx, const char *option, const char *key, const char *value)
{
	struct trace *trace = ctx;

	CHECK(!strcmp(option, "-n"));
	note(trace, key, value);
	return trace->err;
}

static const struct opt_key keys[] = {
	{ "mode", "how frames leave", set_key },
	{ "tapif", "interface", set_key },
	{ "vhost", "1 or 0", set_key },
	{ NULL },
};

static void t_keys_good(void)
{
	struct trace trace = { .text = "" };

	log_set_sink(keep);
	CHECK_EQ(opt_keys(keys, "-n", "mode=tap,vhost=1", &trace), 0);
	CHECK(!strcmp(trace.text, "mode=tap;vhost=1;"));

	/* An empty value is the setter's to judge, and does not eat the next key. */
	trace.text[0] = '\0';
	CHECK_EQ(opt_keys(keys, "-n", "tapif=,mode=a=b", &trace), 0);
	CHECK(!strcmp(trace.text, "tapif=;mode=a=b;"));
	CHECK_EQ(nr_messages, 0);
}

static void t_keys_bad(void)
{
	static const struct {
		const char *list, *named;
	} bad[] = {
		{ "", "-n: " },
		{ "mode", "mode" },
		{ "mode=a,", "-n: " },
		{ ",mode=a", "-n: " },
		{ "mod=none", "mod=none" },
		{ "Mode=tap", "Mode=tap" },
		{ "mode=a,mode=b", "mode=b" },
		{ "mode=a,tapif", "tapif" },
		{ "mode=a,,vhost=1", "-n: " },
		{ "=tap", "=tap" },
		{ "mode =tap", "mode =tap" },
		{ "mode=a,nosuch=1", "nosuch=1" },
	};

	log_set_sink(keep);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		struct trace trace = { .text = "" };

		expect_refusal(opt_keys(keys, "-n", bad[i].list, &trace), "-n: ", bad[i].named);
	}
}

static void t_keys_setter_fails(void)
{
	struct trace trace = { .text = "", .err = -ENOENT };

	log_set_sink(keep);
	CHECK_EQ(opt_keys(keys, "-n", "mode=tap,vhost=1", &trace), -ENOENT);
	CHECK(!strcmp(trace.text, "mode=tap;")); /* the first error ends it */
	CHECK_EQ(nr_messages, 0);                /* the setter has logged */
}

/* --- options --- */

static int set_opt(void *ctx, const struct opt *opt, const char *value)
{
	struct trace *trace = ctx;

	note(trace, opt->name ? opt->name : "letter", value);
	return trace->err;
}

static int take_arg(void *ctx, const char *arg)
{
	note(ctx, "arg", arg);
	return 0;
}

static const struct opt opts[] = {
	{ 'c', "cpus", "N", "number of CPUs", set_opt },
	{ 0, "name", "NAME", "name of the instance", set_opt },
	{ 0, "rng", NULL, "a random number device", set_opt },
	{ 'x', NULL, NULL,
	  "has no long spelling and a help text that is so long that it must be broken", set_opt },
	{ 0 },
};

#define PARSE(trace, positional, ...) \
	({ \
		char *argv[] = { (char *)"run", __VA_ARGS__, NULL }; \
		opt_parse(opts, ARRAY_SIZE(argv) - 1, argv, trace, positional); \
	})
#define A(s) ((char *)(s))

static void t_parse_good(void)
{
	struct trace trace = { .text = "" };

	log_set_sink(keep);
	CHECK_EQ(PARSE(&trace, take_arg, A("-c"), A("4"), A("--name"), A("a=b"), A("img")), 6);
	CHECK(!strcmp(trace.text, "cpus=4;name=a=b;arg=img;"));

	trace.text[0] = '\0';
	CHECK_EQ(PARSE(&trace, NULL, A("-c4"), A("--cpus=5"), A("--name="), A("--rng"), A("-x")),
		 6);
	CHECK(!strcmp(trace.text, "cpus=4;cpus=5;name=;rng=NULL;letter=NULL;"));

	/* A value may begin with a dash; "-" is an argument; "--" ends it all. */
	trace.text[0] = '\0';
	CHECK_EQ(PARSE(&trace, take_arg, A("--name"), A("-x"), A("-"), A("--"), A("-c"), A("sh")),
		 5);
	CHECK(!strcmp(trace.text, "name=-x;arg=-;"));

	trace.text[0] = '\0';
	CHECK_EQ(PARSE(&trace, NULL, A("--")), 2);
	CHECK_EQ(opt_parse(opts, 1, (char *[]){ A("run"), NULL }, &trace, NULL), 1);
	CHECK(!strcmp(trace.text, ""));
	CHECK_EQ(nr_messages, 0);
}

static void t_parse_bad(void)
{
	struct trace trace = { .text = "" };

	log_set_sink(keep);
	expect_refusal(PARSE(&trace, take_arg, A("--nosuch")), "--nosuch", "no such option");
	expect_refusal(PARSE(&trace, take_arg, A("--nosuch=1")), "--nosuch", "no such option");
	expect_refusal(PARSE(&trace, take_arg, A("--cpu"), A("1")), "--cpu", "no such option");
	expect_refusal(PARSE(&trace, take_arg, A("--=1")), "--=1", "no such option");
	expect_refusal(PARSE(&trace, take_arg, A("-q")), "-q", "no such option");
	expect_refusal(PARSE(&trace, take_arg, A("-c")), "-c", "N is missing");
	expect_refusal(PARSE(&trace, take_arg, A("--cpus")), "--cpus", "N is missing");
	expect_refusal(PARSE(&trace, take_arg, A("--rng=1")), "--rng=1", "no value");
	expect_refusal(PARSE(&trace, take_arg, A("-xx")), "-xx", "no value");
	expect_refusal(PARSE(&trace, NULL, A("img")), "img", "unexpected");
	expect_refusal(PARSE(&trace, NULL, A("")), "''", "unexpected");
	CHECK(!strcmp(trace.text, ""));

	trace.err = -ENOENT;
	CHECK_EQ(PARSE(&trace, NULL, A("--rng"), A("-x")), -ENOENT);
	CHECK(!strcmp(trace.text, "rng=NULL;"));
	CHECK_EQ(nr_messages, 0);
}

#define HELP(...) \
	({ \
		char *argv[] = { (char *)"run", __VA_ARGS__, NULL }; \
		opt_help_wanted(opts, ARRAY_SIZE(argv) - 1, argv); \
	})

static void t_help_wanted(void)
{
	CHECK(HELP(A("--help")));
	CHECK(HELP(A("-h")));
	CHECK(HELP(A("-c"), A("4"), A("img"), A("-h")));
	CHECK(HELP(A("-c4"), A("--cpus=4"), A("--rng"), A("-x"), A("--nosuch"), A("-q"), A("-"),
		   A("--help")));
	CHECK(!HELP(A("-c"), A("--help")));
	CHECK(!HELP(A("--name"), A("-h")));
	CHECK(!HELP(A("--"), A("--help")));
	CHECK(!HELP(A("--name=--help"), A("-c")));
	CHECK(!HELP(A("")));
}

static void t_keys_usage(void)
{
	static const struct opt_key some[] = {
		{ "mode", "how frames leave", set_key },
		{ "hidden", NULL, set_key },
		{ "a_name_that_is_too_long", "help", set_key },
		{ NULL },
	};
	static const char want[] = "      mode=                 how frames leave\n"
				   "      a_name_that_is_too_long=\n"
				   "                            help\n";
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	REQUIRE(out);
	opt_keys_usage(some, out);
	fclose(out);
	CHECK(!strcmp(text, want));
	free(text);
}

static void t_usage(void)
{
	static const char want[] =
		"  -c, --cpus N              number of CPUs\n"
		"      --name NAME           name of the instance\n"
		"      --rng                 a random number device\n"
		"  -x                        has no long spelling and a help text that is so long\n"
		"                            that it must be broken\n";
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	REQUIRE(out);
	opt_usage(opts, out);
	fclose(out);
	CHECK(!strcmp(text, want));
	if (strcmp(text, want))
		printf("# got:\n%s", text);
	free(text);
}

/* --- messages --- */

static void t_log_line(void)
{
	char longer[3000];

	log_set_sink(keep);
	log_err("%s: line\nbreak\x1b[0m", "-k");
	CHECK(!strcmp(last, "lkvm: -k: line?break?[0m"));
	log_warn("w");
	CHECK(!strcmp(last, "lkvm: warning: w"));

	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	log_err("%s", longer);
	CHECK_EQ(strlen(last), 1022);

	nr_messages = 0;
	log_info("not shown");
	CHECK_EQ(nr_messages, 0);
	log_set_level(LOG_INFO);
	errno = EXDEV;
	log_info("shown: %m");
	CHECK(strstr(last, "shown: Invalid cross-device link") != NULL);
	CHECK_EQ(errno, EXDEV);
}

/* With no sink a message is one write to stderr, newline at its end. */
static void t_log_stderr(void)
{
	char buf[64] = "";
	int fds[2], saved = dup(STDERR_FILENO);

	REQUIRE(saved >= 0 && !pipe(fds) && dup2(fds[1], STDERR_FILENO) >= 0);
	log_err("to stderr");
	dup2(saved, STDERR_FILENO);
	CHECK_EQ(read(fds[0], buf, sizeof(buf) - 1), 16);
	CHECK(!strcmp(buf, "lkvm: to stderr\n"));
	close(saved);
	close(fds[0]);
	close(fds[1]);
}

int main(int argc, char **argv)
{
	return TAP_RUN(argc, argv, T(t_u64_good), T(t_u64_bad), T(t_bool), T(t_size_good),
		       T(t_size_bad), T(t_mac_good), T(t_mac_bad), T(t_keys_good), T(t_keys_bad),
		       T(t_keys_setter_fails), T(t_parse_good), T(t_parse_bad), T(t_help_wanted),
		       T(t_usage), T(t_keys_usage), T(t_log_line), T(t_log_stderr));
}
