/* usage.h - errors of the command line, independent of the cluster and of files: the program ends with 2. */
#ifndef TK_CLI_USAGE_H
#define TK_CLI_USAGE_H

#include "common/err.h"

#include <stdbool.h>

enum { USAGE_WRONG = -2 }; /* code of such an error: neither an errno nor a status of HTTP */

/* Make it one of what is set. Always -1. */
static inline int usage_mark(struct err *err)
{
    err->code = USAGE_WRONG;
    return -1;
}

#define usage_wrong(err, ...) (err_set(err, ERR_INVALID, __VA_ARGS__), usage_mark(err))

static inline bool usage_is_wrong(const struct err *err)
{
    return err->kind == ERR_INVALID && err->code == USAGE_WRONG;
}

#endif
