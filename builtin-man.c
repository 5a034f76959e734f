// SPDX-License-Identifier: GPL-2.0-only
/*
 * Theory of operation: prints the manual page and the completion for bash from the tables of
 * commands, options and keys, so that neither can say anything else than --help does. `make` keeps
 * the results in build/; nobody edits them.
 */
#include "builtin.h"
#include "devices.h"

/* Text as troff takes it literally. */
static void troff(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '-')
			fputs("\\-", out);
		else if (*text == '\'')
			fputs("\\(aq", out);
		else
			fputc(*text, out);
	}
}

static void man_option(FILE *out, const struct opt *opt)
{
	fputs(".TP\n\\fB", out);
	if (opt->letter)
		fprintf(out, "\\-%c", opt->letter);
	if (opt->letter && opt->name)
		fputs("\\fR, \\fB", out);
	if (opt->name) {
		fputs("\\-\\-", out);
		troff(out, opt->name);
	}
	fprintf(out, "\\fR%s%s%s\n", opt->arg ? " \\fI" : "", opt->arg ? opt->arg : "",
		opt->arg ? "\\fR" : "");
	troff(out, opt->help);
	fputc('\n', out);
}

static void man_command(FILE *out, const struct command *cmd)
{
	fprintf(out, ".SS lkvm %s%s%s%s\n", cmd->name, cmd->opts ? " [\\fIOPTION\\fR]..." : "",
		*cmd->args ? " " : "", cmd->args);
	troff(out, cmd->help);
	fputs(".\n", out);
	for (const struct opt *opt = cmd->opts; opt && (opt->name || opt->letter); opt++)
		man_option(out, opt);
}

static void man_keys(FILE *out, const struct device_type *type)
{
	fprintf(out, ".SS Keys of \\-%c, \\-\\-%s\n", type->letter, type->option);
	for (const struct opt_key *key = type->keys; key->key; key++) {
		if (!key->help)
			continue;
		fprintf(out, ".TP\n\\fB%s=\\fR\n", key->key);
		troff(out, key->help);
		fputc('\n', out);
	}
}

static const char man_head[] =
	".TH LKVM 1 \"\" \"lkvm " LKVM_VERSION "\" \"User Commands\"\n"
	".SH NAME\n"
	"lkvm \\- run a virtual machine with KVM\n"
	".SH SYNOPSIS\n"
	".B lkvm\n"
	".I COMMAND\n"
	"[\\fIOPTION\\fR]...\n"
	".SH DESCRIPTION\n"
	"lkvm is a minimal virtual machine monitor: it drives KVM directly, emulates virtio devices, and can\n"
	"leave the network data path to the kernel's vhost\\-net.\n"
	"The guest's serial console is the terminal that lkvm runs in; \\fBCtrl\\-a x\\fR ends the machine.\n"
	".SH COMMANDS\n";

static const char man_tail[] =
	".SH FILES\n"
	".TP\n"
	".I /dev/kvm\n"
	"needed to run a machine; \\fI/dev/net/tun\\fR for a tap, \\fI/dev/vhost\\-net\\fR for vhost=1\n"
	".TP\n"
	".I $XDG_RUNTIME_DIR/lkvm/NAME.sock\n"
	"the control socket of a running machine; \\fI/run/lkvm\\fR for root without XDG_RUNTIME_DIR\n"
	".SH EXAMPLES\n"
	".nf\n"
	"lkvm run \\-k bzImage \\-i initrd.img \\-m 512 \\-c 2\n"
	"lkvm run \\-k vmlinux \\-n mode=tap,tapif=tap0,vhost=1 \\-\\-name web\n"
	"lkvm stat \\-n web \\-\\-json\n"
	".fi\n";

void help_man(FILE *out)
{
	fputs(man_head, out);
	for (const struct command *cmd = commands; cmd->name; cmd++)
		man_command(out, cmd);
	for (const struct device_type *type = device_types; type->name; type++) {
		if (type->keys)
			man_keys(out, type);
	}
	fputs(".SH EXIT STATUS\nOf \\fBlkvm run\\fR:\n", out);
	for (const struct exit_status *s = exit_statuses; s->meaning; s++) {
		fprintf(out, ".TP\n.B %s\n", s->status);
		troff(out, s->meaning);
		fputc('\n', out);
	}
	fputs(man_tail, out);
}

static void words_of(FILE *out, const struct opt *opts)
{
	for (; opts && (opts->name || opts->letter); opts++) {
		if (opts->letter)
			fprintf(out, "-%c ", opts->letter);
		if (opts->name)
			fprintf(out, "--%s ", opts->name);
	}
	fputs("--help", out);
}

/* Keys complete up to their '=', after a comma as at the beginning; values do not. */
static void completion_keys(FILE *out)
{
	for (const struct device_type *type = device_types; type->name; type++) {
		if (!type->keys)
			continue;
		fprintf(out, "\t\"run -%c\"|\"run --%s\")\n\t\tkeys=\"", type->letter,
			type->option);
		for (const struct opt_key *key = type->keys; key->key; key++) {
			if (key->help)
				fprintf(out, "%s= ", key->key);
		}
		fputs("\" ;;\n", out);
	}
}

static const char completion_head[] =
	"# bash completion for lkvm, printed by `lkvm help --completion`\n"
	"_lkvm()\n"
	"{\n"
	"\t# bash takes words apart at '='; these two are whole\n"
	"\tlocal line=${COMP_LINE:0:COMP_POINT} cur=${COMP_WORDS[COMP_CWORD]} words=\"\" keys=\"\" last\n"
	"\tlocal word=${line##* } prev=${line% *}\n"
	"\tprev=${prev%\"${prev##*[! ]}\"}\n"
	"\tprev=${prev##* }\n"
	"\tCOMPREPLY=()\n"
	"\tcase \"${COMP_WORDS[1]} $prev\" in\n";

static const char completion_files[] =
	"\t\"run -k\"|\"run --kernel\"|\"run -i\"|\"run --initrd\")\n"
	"\t\tcompopt -o filenames\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	"\t\treturn ;;\n"
	"\tesac\n"
	"\tif [[ $keys ]]; then\n"
	"\t\tlast=${word##*,}\n"
	"\t\t[[ $last != *=* ]] || return\n"
	"\t\tcompopt -o nospace\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$keys\" -P \"${cur%\"$last\"}\" -- \"$last\")\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tcase ${COMP_WORDS[1]} in\n";

void help_completion(FILE *out)
{
	fputs(completion_head, out);
	completion_keys(out);
	fputs(completion_files, out);
	for (const struct command *cmd = commands; cmd->name; cmd++) {
		fprintf(out, "\t%s) words=\"", cmd->name);
		words_of(out, cmd->opts);
		fputs("\" ;;\n", out);
	}
	fputs("\tesac\n\t[[ $COMP_CWORD -ne 1 && $prev != help ]] || words=\"", out);
	for (const struct command *cmd = commands; cmd->name; cmd++)
		fprintf(out, "%s ", cmd->name);
	fputs("--help --version\"\n\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\n"
	      "complete -o default -F _lkvm lkvm\n",
	      out);
}
