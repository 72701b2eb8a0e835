/* losses.c - collect the fields that a conversion loses. */
#include "cli/convert/losses.h"

#include <stdio.h>
#include <string.h>

const char LOSSES_SAME[] = "";
const struct losses_field LOSSES_METADATA_AND_SPEC[] = {{"metadata", NULL}, {"spec", NULL}, {0}};

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
    struct err full;

    const int line = l->one_file ? line_of(at) : 0;
    const char *colon = strrchr(l->place, ':');

    json_path(at, path, sizeof(path));
    /* A member of the document itself: the document has no name here. */
    const char *shown = strncmp(path, "[0].", 4) == 0 ? path + 4 : path;
    vsnprintf(reason, sizeof(reason), fmt, ap);
    if (line && colon)
        (void)buf_printf(l->text, &full, "%.*s:%d\t", (int)(colon - l->place), l->place, line);
    else
        (void)buf_printf(l->text, &full, "%s\t", l->place);
    (void)buf_printf(l->text, &full, "%s: %s%s%s: %s\n", l->subject, mark, mark[0] ? ": " : "", shown,
                     reason);
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

void losses_members(struct losses *l, const struct json_at *at, const struct losses_field *fields)
{
    const cJSON *m;

    if (!cJSON_IsObject(at->node))
        return;
    cJSON_ArrayForEach(m, at->node)
    {
        const struct json_at member = json_member(at, m->string);
        const struct losses_field *f = fields;
        while (f->key && strcmp(f->key, m->string) != 0)
            f++;
        if (losses_is_set(m) && (!f->key || (f->reason && f->reason != LOSSES_SAME)))
            losses_add(l, &member, "%s", f->key ? f->reason : "unknown field, left out");
    }
}
