/* wantbrief.c - an action a line, as short as it can be without saying less. */
#include "wantbrief.h"

#include "statusbrief.h"
#include "yamldoc.h"

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

static void unescape(char *key)
{
    char *to = key;

    while (*key) {
        const bool pair = key[0] == '~' && key[1];
        *to++ = !pair ? key[0] : key[1] == '1' ? '/' : '~';
        key += pair ? 2 : 1;
    }
    *to = '\0';
}

static int set_at(cJSON *body, const cJSON *value, struct err *err)
{
    cleanup_arena struct arena a = {0};
    char *rest = arena_strdup(&a, value->string);
    char *key = strsep(&rest, "/");

    for (key = strsep(&rest, "/"); key && rest && body; key = strsep(&rest, "/")) {
        unescape(key);
        body = cJSON_IsArray(body) ? cJSON_GetArrayItem(body, atoi(key)) : get(body, key);
    }
    if (!key || !body)
        return err_set(err, ERR_INVALID, "but: nothing is at %s", value->string);
    unescape(key);
    if (cJSON_IsArray(body))
        cJSON_ReplaceItemInArray(body, atoi(key), cJSON_Duplicate(value, true));
    else if (cJSON_IsNull(value))
        cJSON_DeleteItemFromObjectCaseSensitive(body, key);
    else if (get(body, key))
        cJSON_ReplaceItemInObjectCaseSensitive(body, key, cJSON_Duplicate(value, true));
    else
        cJSON_AddItemToObject(body, key, cJSON_Duplicate(value, true));
    return 0;
}

/* The body of the create of that name among the actions; NULL: there is none. */
static const cJSON *body_of(const cJSON *actions, const char *name)
{
    const cJSON *act;

    cJSON_ArrayForEach(act, actions)
    {
        const char *own = json_str(act, "create");
        if (own && strcmp(own, name) == 0)
            return get(act, "body");
    }
    return NULL;
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

static int unliken(const cJSON *actions, cJSON *o, struct err *err)
{
    cleanup_json cJSON *but = cJSON_DetachItemFromObjectCaseSensitive(o, "but");
    const char *name = json_str(o, "like");
    const cJSON *value;

    if (!name)
        return 0;
    if (!body_of(actions, name))
        return err_set(err, ERR_INVALID, "like: no create of %s stands before", name);
    cJSON *body = cJSON_Duplicate(body_of(actions, name), true);
    cJSON_AddItemToObject(o, "body", body);
    cJSON_DeleteItemFromObjectCaseSensitive(o, "like");
    cJSON_ArrayForEach(value, but) if (set_at(body, value, err) < 0) return -1;
    return 0;
}

/* ---- to the short form */

/* {metadata: {resourceVersion}, status} of the job that was planned from: its status alone. */
static cJSON *short_status(const struct sentences *s, const cJSON *body, const char *version)
{
    const cJSON *meta = get(body, "metadata");
    const char *own = json_str(meta, "resourceVersion");
    cJSON *o = cJSON_CreateObject();
    bool usual = get(body, "status") && cJSON_GetArraySize(body) == 2 && cJSON_GetArraySize(meta) == 1 &&
                 own && strcmp(own, version) == 0;

    cJSON *copy = cJSON_Duplicate(usual ? get(body, "status") : body, true);
    if (usual)
        status_shorten(s, copy);
    cJSON_AddItemToObject(o, usual ? "status" : "document", copy);
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

/* ---- and back */

static cJSON *long_event(const struct sentences *s, const cJSON *event, struct err *err)
{
    cleanup_arena struct arena a = {0};
    const char *text = sentences_text(s, event, &a, err);

    if (!text)
        return NULL;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "event", event->string);
    cJSON_AddStringToObject(o, "message", text);
    return o;
}

static cJSON *long_status(const struct sentences *s, const cJSON *status, const char *version,
                          struct err *err)
{
    cleanup_json cJSON *copy = cJSON_Duplicate(status, true);

    if (status_expand(s, copy, err) < 0)
        return NULL;
    cJSON *o = cJSON_CreateObject();
    cJSON *body = cJSON_AddObjectToObject(o, "status");
    cJSON_AddStringToObject(cJSON_AddObjectToObject(body, "metadata"), "resourceVersion", version);
    cJSON_AddItemToObject(body, "status", TAKE(copy));
    return o;
}

static cJSON *long_action(const struct sentences *s, const cJSON *actions, const cJSON *item,
                          const char *version, struct err *err)
{
    const cJSON *first = item->child;

    if (is_event(first->string))
        return long_event(s, first, err);
    if (get(item, "status"))
        return long_status(s, get(item, "status"), version, err);
    cleanup_json cJSON *o = cJSON_Duplicate(item, true);
    cJSON *document = cJSON_DetachItemFromObjectCaseSensitive(o, "document");
    if (document)
        cJSON_AddItemToObject(o, "status", document);
    for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++) {
        char text[32];
        if (!cJSON_IsNumber(get(o, NUMBERS[i])))
            continue;
        snprintf(text, sizeof(text), "%lld", (long long)json_i64(o, NUMBERS[i], 0));
        cJSON_ReplaceItemInObjectCaseSensitive(o, NUMBERS[i], cJSON_CreateString(text));
    }
    if (unliken(actions, o, err) < 0)
        return NULL;
    return TAKE(o);
}

bool want_is_flag(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++)
        if (strcmp(key, FLAGS[i]) == 0)
            return true;
    return false;
}

cJSON *want_expand(const struct sentences *s, const cJSON *want, const char *version, struct err *err)
{
    cleanup_json cJSON *copy = cJSON_Duplicate(want, true);
    cleanup_json cJSON *plan = cJSON_CreateObject();
    cJSON *actions = cJSON_AddArrayToObject(plan, "actions");
    const cJSON *item;

    if (!cJSON_IsArray(copy))
        return err_set(err, ERR_INVALID, "want: expected a list"), NULL;
    times_expand(copy);
    cJSON_ArrayForEach(item, copy)
    {
        if (!item->child || !item->child->string)
            return err_set(err, ERR_INVALID, "want: expected actions"), NULL;
        if (want_is_flag(item->child->string)) {
            yamldoc_merge(plan, item);
            continue;
        }
        cJSON *act = long_action(s, actions, item, version, err);
        if (!act)
            return NULL;
        cJSON_AddItemToArray(actions, act);
    }
    return TAKE(plan);
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
