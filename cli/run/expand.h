/* expand.h - expand $(NAME) in a container's words, as the kubelet does. Pure. */
#ifndef TK_CLI_RUN_EXPAND_H
#define TK_CLI_RUN_EXPAND_H

#include "common/arena.h"

/* The value of a variable; NULL: it has none. */
struct expand_scope {
    const char *(*value)(void *ctx, const char *name);
    void *ctx;
};

/* $(NAME) becomes the value, $$ a $; a name without a value stays as it is written. */
char *expand(struct arena *a, const char *text, const struct expand_scope *scope);

#endif
