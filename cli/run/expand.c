/* expand.c - expand $(NAME) as the kubelet does, and change paths. */
#include "cli/run/expand.h"

#include "common/buf.h"

#include <ctype.h>
#include <string.h>

/* The end of the text, and the whole of it. */
static const char *ended(struct arena *a, struct buf *out, const char *end, struct err *err)
{
    buf_puts(out, end, NULL);
    if (!out->full)
        return arena_strdup(a, buf_str(out));
    err_set(err, ERR_INVALID, "a word of the command or of the environment is longer than %d bytes",
            EXPAND_BYTES_MAX);
    return NULL;
}

const char *expand(struct arena *a, const char *text, const struct expand_scope *scope, struct err *err)
{
    cleanup_buf struct buf out = BUF_INIT(EXPAND_BYTES_MAX);
    const char *from = text; /* what is not in `out` yet */
    const char *last = strrchr(text, ')');

    for (const char *p = strchr(text, '$'); p; p = strchr(p, '$')) {
        const char *end = p[1] == '(' && last && p < last ? strchr(p, ')') : NULL;
        const char *value =
            end ? scope->value(scope->ctx, arena_strndup(a, p + 2, (size_t)(end - p - 2))) : NULL;
        const char *next = end ? end + 1 : p + 1;
        if (p[1] == '$') {
            value = "$";
            next = p + 2;
        }
        if (value) {
            buf_append(&out, from, (size_t)(p - from), NULL);
            buf_puts(&out, value, NULL);
            from = next;
        }
        p = next;
    }
    return ended(a, &out, from, err);
}

const char *expand_replace(struct arena *a, const char *text, const char *what, const char *by,
                           struct err *err)
{
    cleanup_buf struct buf out = BUF_INIT(EXPAND_BYTES_MAX);
    const char *at;

    for (; (at = strstr(text, what)); text = at + strlen(what)) {
        buf_append(&out, text, (size_t)(at - text), NULL);
        buf_puts(&out, by, NULL);
    }
    return ended(a, &out, text, err);
}

static bool is_of_name(char c)
{
    return c && (isalnum((unsigned char)c) || strchr("_-.~", c));
}

static const struct expand_path *path_at(const char *text, const char *p, const struct expand_path *paths,
                                         int n)
{
    const struct expand_path *ret = NULL;

    /* Behind a path, a shell's ${A} or its $(a), it goes on. */
    if (p > text && (is_of_name(p[-1]) || strchr("/})", p[-1])))
        return NULL;
    for (int i = 0; i < n; i++) {
        const size_t len = strlen(paths[i].from);
        if (strncmp(p, paths[i].from, len) == 0 && !is_of_name(p[len]) && (!ret || len > strlen(ret->from)))
            ret = &paths[i];
    }
    return ret;
}

const char *expand_paths(struct arena *a, const char *text, const struct expand_path *paths, int n,
                         struct err *err)
{
    cleanup_buf struct buf out = BUF_INIT(EXPAND_BYTES_MAX);
    const char *from = text; /* what is not in `out` yet */

    for (const char *p = strchr(text, '/'); p; p = strchr(p, '/')) {
        const struct expand_path *path = path_at(text, p, paths, n);
        if (!path) {
            p++;
            continue;
        }
        buf_append(&out, from, (size_t)(p - from), NULL);
        buf_puts(&out, path->to, NULL);
        from = p += strlen(path->from);
    }
    return ended(a, &out, from, err);
}
