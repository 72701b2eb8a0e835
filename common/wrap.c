/* wrap.c - wrap help text at the width of a terminal. */
#include "common/wrap.h"

#include <string.h>

void wrap_text(FILE *out, int indent, const char *text)
{
    int column = 0;

    while (*text) {
        int len = (int)strcspn(text, " \n");
        if (len && column && column + 1 + len > WRAP_WIDTH) {
            fputc('\n', out);
            column = 0;
        }
        if (len) {
            fprintf(out, "%*s%.*s", column ? 1 : indent, column ? " " : "", len, text);
            column += len + (column ? 1 : indent);
        }
        text += len;
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}
