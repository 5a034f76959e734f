// SPDX-License-Identifier: GPL-2.0-only
/* Theory of operation: `lkvm version` prints one line, "lkvm VERSION". */
#include "builtin.h"
#include "log.h"

int cmd_version(int argc, char **argv)
{
	if (argc > 1) {
		log_err("version: %s: unexpected argument", argv[1]);
		return EXIT_CANNOT;
	}
	printf("lkvm %s\n", LKVM_VERSION);
	return 0;
}
