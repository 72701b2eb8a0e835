/* wrap.h - wrap help text at 80 columns. */
#ifndef TK_COMMON_WRAP_H
#define TK_COMMON_WRAP_H

#include <stdio.h>

/* Print `text`, indented by `indent` columns. */
void wrap_text(FILE *out, int indent, const char *text);

#endif
