/* losses.c - collect the fields that a conversion loses. */
#include "cli/convert/losses.h"

#include "common/sv.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 256, REASON_BYTES = 400 };

/* That of the nearest node which has one (yaml_json); 0: none has. */
static int line_of(const struct json_at *at)
{
    while (at && (!at->node || cJSON_IsNumber(at->node) || !at->node->valueint))
        at = at->parent;
    return at ? at->node->valueint : 0;
}

__attribute__((format(printf, 4, 0))) static void add_line(struct losses *l, const struct json_at *at,
                                                           const char *mark, const char *fmt, va_list ap)
{
    char path[PATH_BYTES];
    char reason[REASON_BYTES];
    const int line = l->one_file ? line_of(at) : 0;
    const char *colon = strrchr(l->place, ':');

    json_path(at, path, sizeof(path));
    /* A member of the document itself: the document has no name here. */
    const char *shown = strncmp(path, "[0].", 4) == 0 ? path + 4 : path;
    vsnprintf(reason, sizeof(reason), fmt, ap);
    if (line && colon)
        buf_printf(l->text, NULL, "%.*s:%d\t", (int)(colon - l->place), l->place, line);
    else
        buf_printf(l->text, NULL, "%s\t", l->place);
    buf_printf(l->text, NULL, "%s: %s%s%s: %s\n", l->subject, mark, mark[0] ? ": " : "", shown, reason);
}

void losses_add(struct losses *l, const struct json_at *at, const char *fmt, ...)
{
    va_list ap;

    l->lost++;
    va_start(ap, fmt);
    add_line(l, at, "", fmt, ap);
    va_end(ap);
}

void losses_note(struct losses *l, const struct json_at *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_line(l, at, "note", fmt, ap);
    va_end(ap);
}

bool losses_is_set(const cJSON *node)
{
    if (!node || cJSON_IsNull(node))
        return false;
    if (cJSON_IsString(node))
        return node->valuestring[0] != '\0';
    return !(cJSON_IsObject(node) || cJSON_IsArray(node)) || node->child;
}

static bool is_known(const char *known, const char *name)
{
    struct sv rest = sv_from(known), word;

    while (rest.len && sv_next(&rest, ' ', &word)) /* no text, no name */
        if (sv_eq(sv_skip(word, sv_starts(word, "=")), name))
            return true;
    return false;
}

void losses_members(struct losses *l, const struct json_at *at, const char *known,
                    const struct losses_field *lost)
{
    const cJSON *m;

    if (!cJSON_IsObject(at->node))
        return;
    cJSON_ArrayForEach(m, at->node)
    {
        const struct json_at member = json_member(at, m->string);
        const struct losses_field *f = lost;
        while (f && f->key && strcmp(f->key, m->string) != 0)
            f++;
        if (losses_is_set(m) && !is_known(known, m->string))
            losses_add(l, &member, "%s", f && f->key ? f->reason : "unknown field, left out");
    }
}
