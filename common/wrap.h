/* wrap.h - wrap help text at the width of a terminal. */
#ifndef TK_COMMON_WRAP_H
#define TK_COMMON_WRAP_H

#include <stdio.h>

enum { WRAP_WIDTH = 80 };

/* Print `text`, indented by `indent` columns. */
void wrap_text(FILE *out, int indent, const char *text);

#endif
