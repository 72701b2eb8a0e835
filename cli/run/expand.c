/* expand.c - expand $(NAME) as the kubelet does. */
#include "cli/run/expand.h"

#include <string.h>

char *expand(struct arena *a, const char *text, const struct expand_scope *scope)
{
    char *out = arena_strdup(a, "");
    const char *from = text; /* what is not in `out` yet */

    for (const char *p = strchr(text, '$'); p; p = strchr(p, '$')) {
        const char *end = p[1] == '(' ? strchr(p, ')') : NULL;
        if (p[1] == '$') {
            out = arena_printf(a, "%s%.*s", out, (int)(p + 1 - from), from);
            from = p = p + 2;
            continue;
        }
        const char *value =
            end ? scope->value(scope->ctx, arena_strndup(a, p + 2, (size_t)(end - p - 2))) : NULL;
        if (value) {
            out = arena_printf(a, "%s%.*s%s", out, (int)(p - from), from, value);
            from = end + 1;
        }
        p = end ? end + 1 : p + 1;
    }
    return arena_printf(a, "%s%s", out, from);
}
