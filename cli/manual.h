/* manual.h - the man page of kubectl-ptj in roff, from the table of verbs. */
#ifndef TK_CLI_MANUAL_H
#define TK_CLI_MANUAL_H

#include <stdio.h>

void manual_print(FILE *out);

#endif
