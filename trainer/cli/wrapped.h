/* wrapped.h - wrap help text at 80 columns. */
#ifndef TK_TRAINER_CLI_WRAPPED_H
#define TK_TRAINER_CLI_WRAPPED_H

#include <stdio.h>

/* `text`, `indent` columns in. */
void wrapped(FILE *out, int indent, const char *text);

#endif
