/* usage.h - errors of the command line: it is wrong whatever is in the cluster or in files, and the program ends with 2. */
#ifndef TK_CLI_USAGE_H
#define TK_CLI_USAGE_H

#include "common/err.h"

#include <stdbool.h>

/* Set such an error, or make one of what is set. Always -1. */
int usage_wrong(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int usage_mark(struct err *err);

bool usage_is_wrong(const struct err *err);

#endif
