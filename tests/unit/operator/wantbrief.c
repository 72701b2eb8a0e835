/* wantbrief.c - an action a line, as short as it can be without saying less. */
#include "wantbrief.h"

#include "statusbrief.h"

#include <stdio.h>
#include <string.h>

static const char *const FLAGS[] = {"requeueInMs", "podsFirst", "mayWait"};
static const char *const NUMBERS[] = {"attempt", "restart"}; /* texts in labels */

static cJSON *get(const cJSON *o, const char *key)
{
    return cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
}

static bool is_event(const char *key)
{
    return strncmp(key, "Normal ", 7) == 0 || strncmp(key, "Warning ", 8) == 0;
}

/* ---- a body that resembles another: {JSON pointer: value}, null for a member that is not there */

static void put_difference(const cJSON *from, const cJSON *to, const char *at, cJSON *but, struct arena *a);

static const char *escaped(const char *key, struct arena *a)
{
    const char *out = "";

    for (; *key; key++)
        out = *key == '~'   ? arena_printf(a, "%s~0", out)
              : *key == '/' ? arena_printf(a, "%s~1", out)
                            : arena_printf(a, "%s%c", out, *key);
    return out;
}

static void put_members(const cJSON *from, const cJSON *to, const char *at, cJSON *but, struct arena *a)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, to)
        put_difference(get(from, m->string), m, arena_printf(a, "%s/%s", at, escaped(m->string, a)), but, a);
    cJSON_ArrayForEach(m, from) if (!get(to, m->string))
        cJSON_AddNullToObject(but, arena_printf(a, "%s/%s", at, escaped(m->string, a)));
}

static void put_difference(const cJSON *from, const cJSON *to, const char *at, cJSON *but, struct arena *a)
{
    const cJSON *m = from ? from->child : NULL;
    int i = 0;

    if (cJSON_Compare(from, to, true))
        return;
    if (cJSON_IsObject(from) && cJSON_IsObject(to)) {
        put_members(from, to, at, but, a);
    } else if (cJSON_IsArray(from) && cJSON_IsArray(to) &&
               cJSON_GetArraySize(from) == cJSON_GetArraySize(to)) {
        for (const cJSON *n = to->child; n; n = n->next, m = m->next)
            put_difference(m, n, arena_printf(a, "%s/%d", at, i++), but, a);
    } else {
        cJSON_AddItemToObject(but, at, cJSON_Duplicate(to, true));
    }
}

/* The first create before this one whose body resembles it. */
static void liken(const cJSON *actions, const cJSON *act, cJSON *o)
{
    cleanup_arena struct arena a = {0};
    const cJSON *body = get(act, "body");
    const cJSON *first = actions->child;

    while (first != act && !(get(first, "create") && get(first, "body") &&
                             strncmp(json_str(first, "create"), "pod ", 4) == 0))
        first = first->next;
    if (first == act || !body || strncmp(json_str(act, "create"), "pod ", 4) != 0)
        return;
    cJSON_AddStringToObject(o, "like", json_str(first, "create"));
    put_difference(get(first, "body"), body, "", cJSON_AddObjectToObject(o, "but"), &a);
    cJSON_DeleteItemFromObjectCaseSensitive(o, "body");
}

/* ---- the whole */

/* {metadata: {resourceVersion}, status} of the job that was planned from: its status alone, where its short form says all of it. */
static cJSON *short_status(const struct sentences *s, const cJSON *body, const char *version)
{
    const cJSON *meta = get(body, "metadata");
    const char *own = json_str(meta, "resourceVersion");
    cJSON *o = cJSON_CreateObject();
    struct err err;
    bool usual = get(body, "status") && cJSON_GetArraySize(body) == 2 && cJSON_GetArraySize(meta) == 1 &&
                 own && strcmp(own, version) == 0;

    cJSON *copy = cJSON_Duplicate(get(body, "status"), true);
    if (usual)
        status_shorten(s, copy);
    cleanup_json cJSON *back = cJSON_Duplicate(copy, true);
    if (usual && status_expand(s, back, &err) == 0 && cJSON_Compare(back, get(body, "status"), true)) {
        cJSON_AddItemToObject(o, "status", copy);
        return o;
    }
    cJSON_Delete(copy);
    cJSON_AddItemToObject(o, "document", cJSON_Duplicate(body, true));
    return o;
}

static cJSON *short_action(const struct sentences *s, const cJSON *actions, const cJSON *act,
                           const char *version)
{
    if (get(act, "event")) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddItemToObject(o, json_str(act, "event"), sentences_node(s, json_str(act, "message")));
        return o;
    }
    if (get(act, "status"))
        return short_status(s, get(act, "status"), version);
    cJSON *o = cJSON_Duplicate(act, true);
    for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++) {
        const char *text = json_str(o, NUMBERS[i]);
        char back[32];
        snprintf(back, sizeof(back), "%d", text ? atoi(text) : 0);
        if (text && strcmp(text, back) == 0)
            cJSON_ReplaceItemInObjectCaseSensitive(o, NUMBERS[i], cJSON_CreateNumber(atoi(back)));
    }
    if (get(o, "create") && get(o, "body"))
        liken(actions, act, o);
    return o;
}

cJSON *want_shorten(const struct sentences *s, const cJSON *plan, const char *version)
{
    cJSON *want = cJSON_CreateArray();
    const cJSON *act;

    cJSON_ArrayForEach(act, get(plan, "actions"))
        cJSON_AddItemToArray(want, short_action(s, get(plan, "actions"), act, version));
    cJSON *flags = cJSON_CreateObject();
    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++)
        if (get(plan, FLAGS[i]))
            cJSON_AddItemToObject(flags, FLAGS[i], cJSON_Duplicate(get(plan, FLAGS[i]), true));
    if (flags->child)
        cJSON_AddItemToArray(want, flags);
    else
        cJSON_Delete(flags);
    times_shorten(want);
    return want;
}

void want_messages(const cJSON *want, void (*show)(void *ctx, const cJSON *message), void *ctx)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, want)
    {
        if (item->child && item->child->string && is_event(item->child->string))
            show(ctx, item->child);
        status_messages(get(item, "status"), show, ctx);
    }
}
