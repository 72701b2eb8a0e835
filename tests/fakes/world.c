/* world.c - objects by kind, namespace and name, and the history of their changes. */
#include "tests/fakes/world.h"

#include "common/clock.h"
#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *checked(void *p)
{
    if (!p)
        abort();
    return p;
}

void world_add_kind(struct world *w, const char *prefix, const char *plural, const char *name)
{
    if (w->n_kinds == KINDS_MAX)
        abort();
    struct kind *k = &w->kinds[w->n_kinds++];
    snprintf(k->prefix, sizeof(k->prefix), "%s", prefix);
    snprintf(k->plural, sizeof(k->plural), "%s", plural);
    snprintf(k->name, sizeof(k->name), "%s", name);
}

void world_init(struct world *w)
{
    *w = (struct world){.version = 1000};
    world_add_kind(w, "/api/v1", "pods", "Pod");
    world_add_kind(w, "/api/v1", "services", "Service");
    world_add_kind(w, "/api/v1", "configmaps", "ConfigMap");
    world_add_kind(w, "/api/v1", "secrets", "Secret");
    world_add_kind(w, "/api/v1", "events", "Event");
    world_add_kind(w, "/apis/apps/v1", "deployments", "Deployment");
    world_add_kind(w, "/apis/networking.k8s.io/v1", "networkpolicies", "NetworkPolicy");
    world_add_kind(w, "/apis/scheduling.x-k8s.io/v1alpha1", "podgroups", "PodGroup");
    world_add_kind(w, "/apis/coordination.k8s.io/v1", "leases", "Lease");
}

static void object_release(struct object *o)
{
    free(o->ns);
    free(o->name);
    cJSON_Delete(o->json);
}

void world_release(struct world *w)
{
    for (size_t i = 0; i < w->n_objects; i++)
        object_release(&w->objects[i]);
    for (size_t i = 0; i < w->n_changes; i++) {
        cJSON_Delete(w->changes[i].before);
        cJSON_Delete(w->changes[i].after);
    }
    free(w->objects);
    free(w->changes);
}

struct outcome world_error(int status, const char *reason, const char *message)
{
    cJSON *s = cJSON_CreateObject();

    cJSON_AddStringToObject(s, "kind", "Status");
    cJSON_AddStringToObject(s, "apiVersion", "v1");
    cJSON_AddStringToObject(s, "status", "Failure");
    cJSON_AddStringToObject(s, "message", message);
    cJSON_AddStringToObject(s, "reason", reason);
    cJSON_AddNumberToObject(s, "code", status);
    return (struct outcome){status, s};
}

static cJSON *meta_of(const cJSON *o)
{
    return cJSON_GetObjectItemCaseSensitive(o, "metadata");
}

static void set_member(cJSON *o, const char *key, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(o, key);
    if (value)
        cJSON_AddItemToObject(o, key, value);
}

static int compare(const struct object *o, const struct kind *k, const char *ns, const char *name)
{
    if (o->kind != k)
        return o->kind < k ? -1 : 1;
    int c = strcmp(o->ns, ns);
    return c ? c : strcmp(o->name, name);
}

static size_t place(const struct world *w, const struct kind *k, const char *ns, const char *name)
{
    size_t i = 0;

    while (i < w->n_objects && compare(&w->objects[i], k, ns, name) < 0)
        i++;
    return i;
}

struct object *world_find(const struct world *w, const struct kind *k, const char *ns, const char *name)
{
    size_t i = place(w, k, ns, name);

    return i < w->n_objects && compare(&w->objects[i], k, ns, name) == 0 ? &w->objects[i] : NULL;
}

/* A new resourceVersion for `after` (or for `before`, the last state of what is deleted), and a line of history. */
static void record(struct world *w, const struct kind *k, const cJSON *before, cJSON *after)
{
    char version[32];

    if (w->n_changes == w->cap_changes) {
        w->cap_changes = w->cap_changes ? w->cap_changes * 2 : 64;
        w->changes = checked(reallocarray(w->changes, w->cap_changes, sizeof(*w->changes)));
    }
    snprintf(version, sizeof(version), "%llu", (unsigned long long)++w->version);
    if (after)
        set_member(meta_of(after), "resourceVersion", cJSON_CreateString(version));
    struct change *c = &w->changes[w->n_changes++];
    *c = (struct change){.version = w->version, .kind = k};
    c->before = before ? checked(cJSON_Duplicate(before, true)) : NULL;
    c->after = after ? checked(cJSON_Duplicate(after, true)) : NULL;
    if (!after)
        set_member(meta_of(c->before), "resourceVersion", cJSON_CreateString(version));
}

static void take_out(struct world *w, struct object *o)
{
    size_t i = (size_t)(o - w->objects);

    object_release(o);
    memmove(o, o + 1, (w->n_objects - i - 1) * sizeof(*o));
    w->n_objects--;
}

void world_remove(struct world *w, struct object *o)
{
    record(w, o->kind, o->json, NULL);
    take_out(w, o);
}

static void put_in(struct world *w, const struct kind *k, const char *ns, const char *name, cJSON *json)
{
    if (w->n_objects == w->cap_objects) {
        w->cap_objects = w->cap_objects ? w->cap_objects * 2 : 64;
        w->objects = checked(reallocarray(w->objects, w->cap_objects, sizeof(*w->objects)));
    }
    size_t i = place(w, k, ns, name);
    memmove(&w->objects[i + 1], &w->objects[i], (w->n_objects - i) * sizeof(*w->objects));
    w->n_objects++;
    w->objects[i] = (struct object){k, checked(strdup(ns)), checked(strdup(name)), json};
}

void world_repeat(struct world *w, const struct change *c)
{
    const cJSON *meta = meta_of(c->after ? c->after : c->before);
    const char *ns = json_str(meta, "namespace");
    const char *name = json_str(meta, "name");
    struct object *o = world_find(w, c->kind, ns ? ns : "", name);

    if (o)
        take_out(w, o);
    if (c->after)
        put_in(w, c->kind, ns ? ns : "", name, checked(cJSON_Duplicate(c->after, true)));
}

int64_t world_now_s(const struct world *w)
{
    const struct clock c = clock_system();

    return w->now_s ? w->now_s : (c.wall_ms(c.ctx) + w->ahead_ms) / 1000;
}

static cJSON *now_text(const struct world *w)
{
    char text[32];
    const time_t now = (time_t)world_now_s(w);
    struct tm tm;

    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    return cJSON_CreateString(text);
}

static struct outcome create(struct world *w, const struct route *r, const cJSON *body)
{
    const char *name = json_str(meta_of(body), "name");
    char text[64];

    if (!name || !cJSON_IsObject(body))
        return world_error(422, "Invalid", "metadata.name: Required value");
    if (world_find(w, r->kind, r->ns, name)) {
        char message[400];
        snprintf(message, sizeof(message), "%s \"%.200s\" already exists", r->kind->plural, name);
        return world_error(409, "AlreadyExists", message);
    }
    cJSON *json = checked(cJSON_Duplicate(body, true));
    cJSON *meta = meta_of(json);
    cJSON_DeleteItemFromObjectCaseSensitive(json, "status");
    if (w->drops_groups)
        cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "spec"),
                                                "schedulingGroup");
    set_member(json, "kind", cJSON_CreateString(r->kind->name));
    snprintf(text, sizeof(text), "00000000-0000-4000-8000-%012llu", (unsigned long long)++w->uids);
    set_member(meta, "uid", cJSON_CreateString(text));
    set_member(meta, "generation", cJSON_CreateNumber(1));
    set_member(meta, "creationTimestamp", now_text(w));
    if (r->ns[0])
        set_member(meta, "namespace", cJSON_CreateString(r->ns));
    put_in(w, r->kind, r->ns, name, json);
    record(w, r->kind, NULL, json);
    return (struct outcome){201, checked(cJSON_Duplicate(json, true))};
}

/* What a server-side apply does with a list that is a map by type. Who owned what is not kept. */
static void merge_by_type(cJSON *list, const cJSON *applied)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, applied)
    {
        cJSON *have = json_item_with(list, "type", json_str(item, "type"));
        if (have)
            cJSON_ReplaceItemViaPointer(list, have, checked(cJSON_Duplicate(item, true)));
        else
            cJSON_AddItemToArray(list, checked(cJSON_Duplicate(item, true)));
    }
}

/* RFC 7386 */
static void merge(cJSON *target, const cJSON *patch, bool apply)
{
    const cJSON *p;

    cJSON_ArrayForEach(p, patch)
    {
        cJSON *have = cJSON_GetObjectItemCaseSensitive(target, p->string);
        if (cJSON_IsNull(p)) {
            cJSON_DeleteItemFromObjectCaseSensitive(target, p->string);
        } else if (cJSON_IsObject(p)) {
            if (!cJSON_IsObject(have)) {
                set_member(target, p->string, cJSON_CreateObject());
                have = cJSON_GetObjectItemCaseSensitive(target, p->string);
            }
            merge(have, p, apply);
        } else if (apply && cJSON_IsArray(have) && strcmp(p->string, "conditions") == 0) {
            merge_by_type(have, p);
        } else {
            set_member(target, p->string, cJSON_Duplicate(p, true));
        }
    }
}

/* What a writer cannot change stays as it was. */
static void keep_server_fields(const struct route *r, const cJSON *old, cJSON *new)
{
    static const char *const meta_keys[] = {"name",       "namespace",         "uid",
                                            "generation", "creationTimestamp", "deletionTimestamp"};
    bool status = strcmp(r->sub, "status") == 0;
    const char *other = status ? "spec" : "status";
    const cJSON *kept = cJSON_GetObjectItemCaseSensitive(old, other);

    if (!meta_of(new))
        cJSON_AddObjectToObject(new, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(meta_keys); i++) {
        const cJSON *m = cJSON_GetObjectItemCaseSensitive(meta_of(old), meta_keys[i]);
        set_member(meta_of(new), meta_keys[i], m ? cJSON_Duplicate(m, true) : NULL);
    }
    set_member(new, "kind", cJSON_CreateString(r->kind->name));
    set_member(new, other, kept ? cJSON_Duplicate(kept, true) : NULL);
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(new, "spec");
    const cJSON *old_spec = cJSON_GetObjectItemCaseSensitive(old, "spec");
    if ((spec || old_spec) && !cJSON_Compare(spec, old_spec, true))
        set_member(meta_of(new), "generation",
                   cJSON_CreateNumber((double)json_i64(meta_of(old), "generation", 0) + 1));
}

/* NULL when the writer's uid and resourceVersion fit, or were not given. */
static const char *mismatch(const cJSON *want, const cJSON *have)
{
    static const char *const keys[] = {"uid", "resourceVersion"};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *w = json_str(want, keys[i]);
        const char *h = json_str(have, keys[i]);
        if (w && w[0] && (!h || strcmp(w, h) != 0))
            return keys[i];
    }
    return NULL;
}

static struct outcome conflict(const char *what)
{
    char message[200];

    snprintf(message, sizeof(message),
             "the object has been modified (%s); please apply your changes to the latest version", what);
    return world_error(409, "Conflict", message);
}

static bool lingers(const struct world *w, const struct object *o)
{
    return w->pods_linger && strcmp(o->kind->name, "Pod") == 0;
}

static bool same_but_count(const cJSON *old, const cJSON *new)
{
    cJSON *copy = checked(cJSON_Duplicate(old, true));

    set_member(copy, "count", cJSON_CreateNumber((double)json_i64(new, "count", 0)));
    bool same = cJSON_Compare(copy, new, true) && json_i64(new, "count", 0) <= json_i64(old, "count", 0);
    cJSON_Delete(copy);
    return same;
}

static const cJSON *pod_sets(const cJSON *workload)
{
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(workload, "spec"), "podSets");
}

/* What Kueue refuses of a PUT (a patch is how tests edit): of a podSet with quota it accepts only a lower count, which
 * is not below its minCount. */
static bool kueue_refuses(const cJSON *old, const cJSON *new)
{
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(old, "status");
    const cJSON *conditions = cJSON_GetObjectItemCaseSensitive(status, "conditions");
    const char *quota = json_str(json_item_with(conditions, "type", "QuotaReserved"), "status");
    bool good = cJSON_GetArraySize(pod_sets(old)) == cJSON_GetArraySize(pod_sets(new));
    const cJSON *was = pod_sets(old) ? pod_sets(old)->child : NULL, *is;

    if (strcmp(json_str(old, "kind"), "Workload") != 0 || !quota || strcmp(quota, "True") != 0)
        return false;
    cJSON_ArrayForEach(is, pod_sets(new))
    {
        good = good && same_but_count(was, is) && json_i64(is, "minCount", 0) <= json_i64(is, "count", 0);
        was = was ? was->next : NULL;
    }
    return !good;
}

static struct outcome change_object(struct world *w, const struct route *r, struct object *o,
                                    const cJSON *body, bool replace)
{
    const char *wrong = mismatch(meta_of(body), meta_of(o->json));

    if (wrong)
        return conflict(wrong);
    cJSON *new = checked(cJSON_Duplicate(replace ? body : o->json, true));
    if (!replace)
        merge(new, body, r->apply);
    if (w->unknown_status)
        cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(new, "status"),
                                                w->unknown_status);
    keep_server_fields(r, o->json, new);
    if (replace && kueue_refuses(o->json, new)) {
        cJSON_Delete(new);
        return world_error(422, "Invalid", "spec.podSets: Invalid value: field is immutable");
    }
    const char *version = json_str(meta_of(o->json), "resourceVersion");
    set_member(meta_of(new), "resourceVersion", cJSON_CreateString(version));
    if (cJSON_Compare(new, o->json, true))
        return (struct outcome){200, new};
    const cJSON *finalizers = cJSON_GetObjectItemCaseSensitive(meta_of(new), "finalizers");
    bool dying = json_str(meta_of(new), "deletionTimestamp") != NULL && !lingers(w, o);
    if (dying && cJSON_GetArraySize(finalizers) == 0) {
        world_remove(w, o);
        return (struct outcome){200, new};
    }
    cJSON *before = o->json;
    o->json = new;
    record(w, o->kind, before, new);
    cJSON_Delete(before);
    return (struct outcome){200, checked(cJSON_Duplicate(new, true))};
}

static struct outcome delete_object(struct world *w, struct object *o, const cJSON *body)
{
    const char *wrong = mismatch(cJSON_GetObjectItemCaseSensitive(body, "preconditions"), meta_of(o->json));
    const cJSON *finalizers = cJSON_GetObjectItemCaseSensitive(meta_of(o->json), "finalizers");
    bool now = json_i64(body, "gracePeriodSeconds", 1) == 0;
    bool linger = lingers(w, o) && !now;

    if (wrong)
        return conflict(wrong);
    cJSON *last = checked(cJSON_Duplicate(o->json, true));
    if (!linger && cJSON_GetArraySize(finalizers) == 0) {
        world_remove(w, o);
        return (struct outcome){200, last};
    }
    if (!json_str(meta_of(o->json), "deletionTimestamp")) {
        cJSON_AddItemToObject(meta_of(o->json), "deletionTimestamp", now_text(w));
        cJSON_AddNumberToObject(meta_of(o->json), "deletionGracePeriodSeconds", now ? 0 : 30);
        record(w, o->kind, last, o->json);
    } else if (now && json_i64(meta_of(o->json), "deletionGracePeriodSeconds", 0) != 0) {
        set_member(meta_of(o->json), "deletionGracePeriodSeconds", cJSON_CreateNumber(0));
        record(w, o->kind, last, o->json);
    }
    cJSON_Delete(last);
    return (struct outcome){200, checked(cJSON_Duplicate(o->json, true))};
}

static struct outcome list(const struct world *w, const struct route *r)
{
    cJSON *list = cJSON_CreateObject();
    char text[96];
    size_t first = 0;
    int n = 0;

    snprintf(text, sizeof(text), "%sList", r->kind->name);
    cJSON_AddStringToObject(list, "kind", text);
    cJSON_AddStringToObject(list, "apiVersion",
                            strncmp(r->kind->prefix, "/api/", 5) == 0 ? "v1" : r->kind->prefix + 6);
    cJSON *meta = cJSON_AddObjectToObject(list, "metadata");
    unsigned long long version = w->version;
    if (r->more[0] && sscanf(r->more, "%llu.%zu", &version, &first) != 2)
        version = 0;
    if (r->more[0] && version < w->oldest) {
        cJSON_Delete(list);
        return world_error(410, "Expired", "The provided continue parameter is too old");
    }
    snprintf(text, sizeof(text), "%llu", version);
    cJSON_AddStringToObject(meta, "resourceVersion", text);
    cJSON *items = cJSON_AddArrayToObject(list, "items");
    for (size_t i = first; i < w->n_objects; i++) {
        const struct object *o = &w->objects[i];
        if (o->kind != r->kind || (r->ns[0] && strcmp(r->ns, o->ns) != 0) || !world_matches(r, o->json))
            continue;
        if (r->limit && n == r->limit) {
            snprintf(text, sizeof(text), "%llu.%zu", version, i);
            cJSON_AddStringToObject(meta, "continue", text);
            break;
        }
        cJSON_AddItemToArray(items, cJSON_Duplicate(o->json, true));
        n++;
    }
    return (struct outcome){200, list};
}

struct outcome world_do(struct world *w, const char *method, const struct route *r, const cJSON *body)
{
    struct object *o = r->name[0] ? world_find(w, r->kind, r->ns, r->name) : NULL;
    char message[700];

    if (strcmp(method, "GET") == 0 && !r->name[0])
        return list(w, r);
    if (strcmp(method, "POST") == 0 && !r->name[0])
        return create(w, r, body);
    if (!o) {
        snprintf(message, sizeof(message), "%s \"%s\" not found", r->kind->plural, r->name);
        return world_error(404, "NotFound", message);
    }
    if (strcmp(method, "GET") == 0)
        return (struct outcome){200, checked(cJSON_Duplicate(o->json, true))};
    if (strcmp(method, "DELETE") == 0)
        return delete_object(w, o, body);
    if (strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0) {
        if (!cJSON_IsObject(body))
            return world_error(400, "BadRequest", "the body is not a JSON object");
        return change_object(w, r, o, body, method[1] == 'U');
    }
    return world_error(405, "MethodNotAllowed",
                       "the server does not allow this method on the requested resource");
}

bool world_resources(const struct world *w, const char *prefix, struct outcome *ret)
{
    cJSON *o = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(o, "resources");

    cJSON_AddStringToObject(o, "kind", "APIResourceList");
    for (size_t i = 0; i < w->n_kinds; i++) {
        if (strcmp(w->kinds[i].prefix, prefix) != 0)
            continue;
        cJSON *r = cJSON_CreateObject();
        cJSON_AddStringToObject(r, "name", w->kinds[i].plural);
        cJSON_AddItemToArray(list, r);
    }
    *ret = (struct outcome){200, o};
    if (list->child)
        return true;
    cJSON_Delete(o);
    return false;
}
