/* statusbrief.c - a status with conditions, replicas and failures in a line each. */
#include "statusbrief.h"

#include <stdio.h>
#include <string.h>

static const char *const COUNTS[] = {
    "observedGeneration", "attempt",     "ranAttempt", "backoffCount", "disruptionCount",
    "admissionCount",     "resumeCount", "restarts",   "replicas",     "gpus"};
static const char DAY[] = "2026-01-01T";
static const char NO_FAILURES[] = "none";

static cJSON *get(const cJSON *o, const char *key)
{
    return cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
}

static void drop(cJSON *o, const char *key)
{
    cJSON_DeleteItemFromObjectCaseSensitive(o, key);
}

static void set(cJSON *o, const char *key, cJSON *value)
{
    if (get(o, key))
        cJSON_ReplaceItemInObjectCaseSensitive(o, key, value);
    else
        cJSON_AddItemToObject(o, key, value);
}

/* The member under another name, at the end of `to`. */
static void move(cJSON *to, const char *key, cJSON *from, const char *from_key)
{
    cJSON *m = cJSON_DetachItemFromObjectCaseSensitive(from, from_key);

    if (m)
        cJSON_AddItemToObject(to, key, m);
}

static bool equal_text(const cJSON *node, const char *text)
{
    return cJSON_IsString(node) && strcmp(node->valuestring, text) == 0;
}

/* ---- times */

void times_expand(cJSON *node)
{
    const char *t = node->valuestring;

    if (cJSON_IsString(node) && strlen(t) == 8 && t[2] == ':' && t[5] == ':' &&
        strspn(t, "0123456789:") == 8) {
        char text[32];
        snprintf(text, sizeof(text), "%s%sZ", DAY, t);
        cJSON_SetValuestring(node, text);
    }
    for (cJSON *m = node->child; m; m = m->next)
        times_expand(m);
}

void times_shorten(cJSON *node)
{
    const char *t = node->valuestring;

    if (cJSON_IsString(node) && strlen(t) == 20 && strncmp(t, DAY, strlen(DAY)) == 0 && t[19] == 'Z') {
        char text[9];
        snprintf(text, sizeof(text), "%.8s", t + strlen(DAY));
        cJSON_SetValuestring(node, text);
    }
    for (cJSON *m = node->child; m; m = m->next)
        times_shorten(m);
}

/* ---- messages */

static int expand_message(const struct sentences *s, cJSON *o, const char *key, struct err *err)
{
    cleanup_arena struct arena a = {0};
    cJSON *m = get(o, key);

    if (!cJSON_IsArray(m))
        return 0;
    const char *text = sentences_text(s, m, &a, err);
    if (!text)
        return -1;
    set(o, key, cJSON_CreateString(text));
    return 0;
}

static void shorten_message(const struct sentences *s, cJSON *o, const char *key)
{
    const cJSON *m = get(o, key);

    if (cJSON_IsString(m))
        set(o, key, sentences_node(s, m->valuestring));
}

/* ---- conditions: {Running: true, reason, message unless empty, since, generation unless 1} */

static int expand_condition(const struct sentences *s, cJSON *c, struct err *err)
{
    if (!cJSON_IsObject(c) || !c->child || get(c, "type"))
        return 0;
    if (get(c, "gone")) {
        move(c, "type", c, "gone");
        cJSON_AddTrueToObject(c, "gone");
        return 0;
    }
    cJSON *state = c->child;
    const char *const text = cJSON_IsTrue(state)    ? "True"
                             : cJSON_IsFalse(state) ? "False"
                             : state->valuestring   ? state->valuestring
                                                    : "";
    cJSON_AddStringToObject(c, "type", state->string);
    cJSON_AddStringToObject(c, "status", text);
    cJSON_Delete(cJSON_DetachItemViaPointer(c, state));
    if (!get(c, "message"))
        cJSON_AddStringToObject(c, "message", "");
    move(c, "lastTransitionTime", c, "since");
    if (!get(c, "generation"))
        cJSON_AddNumberToObject(c, "observedGeneration", 1);
    else
        move(c, "observedGeneration", c, "generation");
    return expand_message(s, c, "message", err);
}

static cJSON *short_condition(const struct sentences *s, cJSON *c)
{
    cJSON *o = cJSON_CreateObject();
    const char *type = json_str(c, "type");

    if (type && cJSON_IsTrue(get(c, "gone"))) {
        cJSON_AddStringToObject(o, "gone", type);
        return o;
    }
    if (!type || !json_str(c, "status")) {
        cJSON_Delete(o);
        return cJSON_Duplicate(c, true);
    }
    const cJSON *state = get(c, "status");
    if (equal_text(state, "True") || equal_text(state, "False"))
        cJSON_AddBoolToObject(o, type, equal_text(state, "True"));
    else
        cJSON_AddItemToObject(o, type, cJSON_Duplicate(state, true));
    move(o, "reason", c, "reason");
    if (!equal_text(get(c, "message"), ""))
        move(o, "message", c, "message");
    shorten_message(s, o, "message");
    move(o, "since", c, "lastTransitionTime");
    if (json_i64(c, "observedGeneration", 0) != 1)
        move(o, "generation", c, "observedGeneration");
    return o;
}

/* ---- replicas: {j-node-0: Running, uid, restarts unless 0, container: name state exitCode} */

static void expand_replica(cJSON *r)
{
    cJSON *phase = r->child;
    char name[64] = "", state[32] = "";
    int code = 0;

    if (!cJSON_IsObject(r) || !r->child || get(r, "name"))
        return;
    cJSON_AddStringToObject(r, "name", phase->string);
    cJSON_AddItemToObject(r, "phase", cJSON_Duplicate(phase, true));
    cJSON_Delete(cJSON_DetachItemViaPointer(r, phase));
    if (!get(r, "restarts"))
        cJSON_AddNumberToObject(r, "restarts", 0);
    const char *text = json_str(r, "container");
    int n = sscanf(text ? text : "", "%63s %31s %d", name, state, &code);
    cJSON *list = cJSON_AddArrayToObject(r, "containers");
    if (n >= 1) {
        cJSON *c = cJSON_CreateObject();
        cJSON_AddStringToObject(c, "name", name);
        if (n >= 2)
            cJSON_AddStringToObject(c, "state", state);
        if (n >= 3)
            cJSON_AddNumberToObject(c, "exitCode", code);
        cJSON_AddItemToArray(list, c);
    }
    drop(r, "container");
}

static cJSON *short_replica(const cJSON *r)
{
    const char *name = json_str(r, "name");
    const cJSON *c = get(r, "containers") ? get(r, "containers")->child : NULL;
    cJSON *o = cJSON_CreateObject();
    char text[128];

    if (name)
        cJSON_AddItemToObject(o, name, cJSON_Duplicate(get(r, "phase"), true));
    if (get(r, "uid"))
        cJSON_AddItemToObject(o, "uid", cJSON_Duplicate(get(r, "uid"), true));
    if (json_i64(r, "restarts", 0) != 0)
        cJSON_AddItemToObject(o, "restarts", cJSON_Duplicate(get(r, "restarts"), true));
    if (c && json_str(c, "name")) {
        int len = snprintf(text, sizeof(text), "%s", json_str(c, "name"));
        if (json_str(c, "state"))
            len += snprintf(text + len, sizeof(text) - (size_t)len, " %s", json_str(c, "state"));
        if (get(c, "exitCode"))
            snprintf(text + len, sizeof(text) - (size_t)len, " %d", (int)json_i64(c, "exitCode", 0));
        cJSON_AddStringToObject(o, "container", text);
    }
    return o;
}

/* ---- tasks: {node: [replicas], restartCount unless 0} */

static void expand_task(cJSON *t)
{
    cJSON *list = t->child;
    cJSON *r;

    if (!cJSON_IsObject(t) || !t->child || get(t, "type"))
        return;
    cJSON_AddStringToObject(t, "type", list->string);
    if (!get(t, "restartCount"))
        cJSON_AddNumberToObject(t, "restartCount", 0);
    cJSON_DetachItemViaPointer(t, list);
    cJSON_AddItemToObject(t, "replicas", list);
    cJSON_ArrayForEach(r, list) expand_replica(r);
}

static cJSON *short_task(const cJSON *t)
{
    const cJSON *r;

    if (!json_str(t, "type"))
        return cJSON_Duplicate(t, true);
    cJSON *o = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(o, json_str(t, "type"));
    cJSON_ArrayForEach(r, get(t, "replicas")) cJSON_AddItemToArray(list, short_replica(r));
    if (json_i64(t, "restartCount", 0) != 0)
        cJSON_AddItemToObject(o, "restartCount", cJSON_Duplicate(get(t, "restartCount"), true));
    return o;
}

/* ---- failures: their UID is left out where it is that of the pod of the attempt, and "none" where there is none */

static bool own_uid(const cJSON *f, char *ret, size_t size)
{
    const char *pod = json_str(f, "pod");

    if (!pod || !cJSON_IsNumber(get(f, "attempt")))
        return false;
    snprintf(ret, size, "uid-%s-%lld", pod, (long long)json_i64(f, "attempt", 0));
    return true;
}

static int expand_failure(const struct sentences *s, cJSON *f, struct err *err)
{
    char uid[160];

    if (own_uid(f, uid, sizeof(uid))) {
        if (!get(f, "uid"))
            cJSON_AddStringToObject(f, "uid", uid);
        else if (equal_text(get(f, "uid"), NO_FAILURES))
            drop(f, "uid");
    }
    return expand_message(s, f, "message", err);
}

static cJSON *short_failure(const struct sentences *s, const cJSON *f)
{
    cJSON *o = cJSON_Duplicate(f, true);
    char uid[160];

    if (own_uid(o, uid, sizeof(uid))) {
        if (!get(o, "uid"))
            cJSON_AddStringToObject(o, "uid", NO_FAILURES);
        else if (equal_text(get(o, "uid"), uid))
            drop(o, "uid");
    }
    shorten_message(s, o, "message");
    return o;
}

/* ---- the whole */

static int expand_failures(const struct sentences *s, cJSON *st, struct err *err)
{
    cJSON *last = get(st, "lastFailure");
    cJSON *f;

    if (cJSON_IsObject(last) && expand_failure(s, last, err) < 0)
        return -1;
    if (equal_text(get(st, "failures"), NO_FAILURES)) {
        drop(st, "failures");
    } else if (cJSON_IsObject(last) && !get(st, "failures")) {
        cJSON_AddItemToArray(cJSON_AddArrayToObject(st, "failures"), cJSON_Duplicate(last, true));
    } else {
        cJSON_ArrayForEach(f, get(st, "failures")) if (cJSON_IsObject(f) &&
                                                       expand_failure(s, f, err) < 0) return -1;
    }
    return 0;
}

int status_expand(const struct sentences *s, cJSON *st, struct err *err)
{
    cJSON *counts = cJSON_DetachItemFromObjectCaseSensitive(st, "counts");
    cJSON *m;

    while (counts && counts->child) {
        m = cJSON_DetachItemViaPointer(counts, counts->child);
        cJSON_AddItemToObject(st, m->string, m);
    }
    cJSON_Delete(counts);
    cJSON_ArrayForEach(m, get(st, "conditions")) if (expand_condition(s, m, err) < 0) return -1;
    cJSON_ArrayForEach(m, get(st, "tasks")) expand_task(m);
    if (expand_failures(s, st, err) < 0 || expand_message(s, get(st, "tensorboard"), "note", err) < 0)
        return -1;
    return 0;
}

static void shorten_list(const struct sentences *s, cJSON *st, const char *key)
{
    cJSON *old = get(st, key);
    cJSON *list = cJSON_CreateArray();
    cJSON *m;

    cJSON_ArrayForEach(m, old)
    {
        cJSON *o = strcmp(key, "tasks") == 0        ? short_task(m)
                   : strcmp(key, "conditions") == 0 ? short_condition(s, m)
                                                    : short_failure(s, m);
        cJSON_AddItemToArray(list, o);
    }
    if (cJSON_IsArray(old))
        set(st, key, list);
    else
        cJSON_Delete(list);
}

static void shorten_failures(const struct sentences *s, cJSON *st)
{
    const cJSON *last = get(st, "lastFailure");
    const cJSON *all = get(st, "failures");
    bool only = last && cJSON_GetArraySize(all) == 1 && cJSON_Compare(last, all->child, true);

    if (only)
        drop(st, "failures");
    else if (cJSON_IsObject(last) && !all)
        cJSON_AddStringToObject(st, "failures", NO_FAILURES);
    else
        shorten_list(s, st, "failures");
    if (cJSON_IsObject(last))
        set(st, "lastFailure", short_failure(s, last));
}

void status_shorten(const struct sentences *s, cJSON *st)
{
    cJSON *counts = cJSON_CreateObject();
    cJSON *rest = cJSON_CreateObject();

    for (size_t i = 0; i < ARRAY_LEN(COUNTS); i++)
        move(counts, COUNTS[i], st, COUNTS[i]);
    move(rest, "phase", st, "phase");
    move(rest, "reason", st, "reason");
    if (counts->child)
        cJSON_AddItemToObject(rest, "counts", counts);
    else
        cJSON_Delete(counts);
    while (st->child) {
        cJSON *m = cJSON_DetachItemViaPointer(st, st->child);
        cJSON_AddItemToObject(rest, m->string, m);
    }
    while (rest->child) {
        cJSON *m = cJSON_DetachItemViaPointer(rest, rest->child);
        cJSON_AddItemToObject(st, m->string, m);
    }
    cJSON_Delete(rest);
    shorten_list(s, st, "conditions");
    shorten_list(s, st, "tasks");
    shorten_failures(s, st);
    if (get(st, "tensorboard"))
        shorten_message(s, get(st, "tensorboard"), "note");
}

void status_messages(const cJSON *st, void (*show)(void *ctx, const cJSON *message), void *ctx)
{
    static const char *const LISTS[] = {"conditions", "failures"};
    const cJSON *m;

    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++)
        cJSON_ArrayForEach(m, get(st, LISTS[i])) if (get(m, "message")) show(ctx, get(m, "message"));
    if (get(get(st, "lastFailure"), "message"))
        show(ctx, get(get(st, "lastFailure"), "message"));
    if (get(get(st, "tensorboard"), "note"))
        show(ctx, get(get(st, "tensorboard"), "note"));
}
