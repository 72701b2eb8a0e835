/* expand.h - expand $(NAME) in a container's words, as the kubelet does, and change paths in them. Pure.
 *
 * Ownership: results live in the arena.
 * Errors:    ERR_INVALID: a result of more than EXPAND_BYTES_MAX.
 */
#ifndef TK_CLI_RUN_EXPAND_H
#define TK_CLI_RUN_EXPAND_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"

/* The value of a variable; NULL: it has none. */
struct expand_scope {
    const char *(*value)(void *ctx, const char *name);
    void *ctx;
};

enum { EXPAND_BYTES_MAX = 1 << 20 };

/* $(NAME) becomes the value, $$ a $; a name without a value stays as it is written. */
const char *expand(struct arena *a, const char *text, const struct expand_scope *scope,
                   struct err *err) MUST_CHECK;

/* Each `what` in the text becomes `by`. */
const char *expand_replace(struct arena *a, const char *text, const char *what, const char *by,
                           struct err *err) MUST_CHECK;

/* A path, without a slash at its end, and what stands in its place. */
struct expand_path {
    const char *from, *to;
};

/* Each of these paths in the text, and what is below it, begins with `to`: of "/data" also "--in=/data/a" and "x:/data", but not
 * "/data2" or "a/data". Of several the longest counts. */
const char *expand_paths(struct arena *a, const char *text, const struct expand_path *paths, int n,
                         struct err *err) MUST_CHECK;

#endif
