/* impersonate.c - build the Impersonate-* request headers; values that could begin another header are refused. */
#include "kube/auth/impersonate.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct lines {
    struct arena *a;
    struct impersonate out;
    size_t bytes;
};

static int add(struct lines *l, const struct json_at *at, const char *header, const char *value,
               struct err *err)
{
    if (!*value)
        return json_err(at, err, "expected a name, got an empty one");
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return json_err(at, err, "expected no control character, got one at byte %zu",
                            (size_t)(p - value));
    l->bytes += strlen(header) + strlen(value) + 2;
    if (l->out.n == IMPERSONATE_MAX_LINES || l->bytes > IMPERSONATE_MAX_BYTES)
        return json_err(at, err, "more than %d headers or %d bytes of them", IMPERSONATE_MAX_LINES,
                        IMPERSONATE_MAX_BYTES);
    if (!l->out.lines)
        l->out.lines = arena_array(l->a, IMPERSONATE_MAX_LINES, const char *);
    l->out.lines[l->out.n++] = arena_printf(l->a, "%s: %s", header, value);
    return 0;
}

static int add_list(struct lines *l, const struct json_at *list, const char *header, struct err *err)
{
    const cJSON *item;
    int i = 0;

    if (json_expect_array(list, IMPERSONATE_MAX_LINES, err) < 0)
        return -1;
    cJSON_ArrayForEach(item, list->node)
    {
        struct json_at at = json_item(list, item, i++);
        if (!cJSON_IsString(item))
            return json_err(&at, err, "expected a string");
        if (add(l, &at, header, item->valuestring, err) < 0)
            return -1;
    }
    return 0;
}

/* Keys may hold what no header name may: client-go writes those bytes, and '%' itself, as %XX. */
static const char *extra_header(struct arena *a, const char *key)
{
    char *name = arena_alloc(a, sizeof("Impersonate-Extra-") + 3 * strlen(key));
    char *at = name + sprintf(name, "Impersonate-Extra-");

    for (const char *p = key; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x80 && (isalnum(c) || strchr("!#$&'*+-.^_`|~", c)))
            *at++ = (char)c;
        else
            at += sprintf(at, "%%%02X", c);
    }
    return name;
}

static int add_extra(struct lines *l, const struct json_at *extra, struct err *err)
{
    const cJSON *item;

    if (json_expect_object(extra, err) < 0)
        return -1;
    cJSON_ArrayForEach(item, extra->node)
    {
        struct json_at at = json_member(extra, item->string);
        if (!*item->string || strlen(item->string) > 256)
            return json_err(&at, err, "expected a key of 1..256 bytes");
        if (add_list(l, &at, extra_header(l->a, item->string), err) < 0)
            return -1;
    }
    return 0;
}

int impersonate_decode(const struct json_at *user, struct arena *a, struct impersonate *ret, struct err *err)
{
    struct json_at as = json_member(user, "as");
    struct json_at uid_at = json_member(user, "as-uid");
    struct json_at groups = json_member(user, "as-groups");
    struct json_at extra = json_member(user, "as-user-extra");
    struct lines l = {.a = a};
    const char *name = "";
    const char *uid = "";

    if (json_get_str(user, "as", &name, err) < 0 || json_get_str(user, "as-uid", &uid, err) < 0)
        return -1;
    if (*name && add(&l, &as, "Impersonate-User", name, err) < 0)
        return -1;
    if (*uid && add(&l, &uid_at, "Impersonate-Uid", uid, err) < 0)
        return -1;
    if (add_list(&l, &groups, "Impersonate-Group", err) < 0 || add_extra(&l, &extra, err) < 0)
        return -1;
    if (l.out.n && !*name)
        return json_err(&as, err, "not set, but as-uid, as-groups or as-user-extra is");
    *ret = l.out;
    return 0;
}
