/* usage.c - mark an error as one of the command line. */
#include "cli/usage.h"

#include <stdarg.h>
#include <stdio.h>

enum { WRONG_USAGE = -2 }; /* neither an errno nor a status of HTTP */

int usage_wrong(struct err *err, const char *fmt, ...)
{
    va_list args;
    char text[ERR_MSG_BYTES];

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    err_set(err, ERR_INVALID, "%s", text);
    return usage_mark(err);
}

int usage_mark(struct err *err)
{
    err->code = WRONG_USAGE;
    return -1;
}

bool usage_is_wrong(const struct err *err)
{
    return err->kind == ERR_INVALID && err->code == WRONG_USAGE;
}
