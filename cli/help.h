/* help.h - --help, the man page and the shell completions of kubectl-ptj, all from the table of verbs. */
#ifndef TK_CLI_HELP_H
#define TK_CLI_HELP_H

#include "cli/verbs.h"

#include <stdio.h>

/* The length of the first paragraph of a text, which an empty line or the end follows; *next: the one behind it. */
size_t help_paragraph(const char *text, const char **next);

/* The manual of a verb; NULL: of the program. */
void help_print(FILE *out, const struct verb *verb);

#endif
