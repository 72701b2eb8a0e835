/* wrap.h - wrap help text at 80 columns. */
#ifndef TK_TRAINER_CLI_WRAP_H
#define TK_TRAINER_CLI_WRAP_H

#include <stdio.h>

/* Print `text`, indented by `indent` columns. */
void wrap_text(FILE *out, int indent, const char *text);

#endif
