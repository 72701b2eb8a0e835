/* control.c - what a test does to the fake API server from outside. */
#include "common/json.h"
#include "jsontext.h"
#include "tests/fakes/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wake(struct fake_apiserver *s)
{
    uint64_t one = 1;

    if (s->wake < 0)
        return;
    if (write(s->wake, &one, sizeof(one)) < 0)
        abort();
}

void server_unlock(struct fake_apiserver *s)
{
    pthread_mutex_unlock(&s->lock);
    wake(s);
}

void fake_settle(struct fake_apiserver *s)
{
    if (s->wake < 0)
        return;
    pthread_mutex_lock(&s->lock);
    uint64_t mine = ++s->asked;
    wake(s);
    while (s->answered < mine)
        pthread_cond_wait(&s->idle, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void fake_apiserver_stop(struct fake_apiserver *s)
{
    if (!s)
        return;
    if (s->wake >= 0) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        server_unlock(s);
        pthread_join(s->thread, NULL);
        close(s->listener);
        close(s->wake);
        s->wake = -1;
    }
    for (size_t i = 0; i < CONNS_MAX; i++)
        conn_close(&s->conns[i]);
    fake_log_clear(s);
    podlog_release(s);
    world_release(&s->world);
    if (s->frozen)
        world_release(&s->past);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->idle);
    free(s->log);
    free(s);
}

const char *fake_apiserver_url(const struct fake_apiserver *s)
{
    return s->url;
}

void fake_add_kind(struct fake_apiserver *s, const char *group_version, const char *plural, const char *kind)
{
    pthread_mutex_lock(&s->lock);
    world_add_kind(&s->world, group_version, plural, kind);
    server_unlock(s);
}

void fake_pods_linger(struct fake_apiserver *s, bool linger)
{
    pthread_mutex_lock(&s->lock);
    s->world.pods_linger = linger;
    server_unlock(s);
}

void fake_unknown_status(struct fake_apiserver *s, const char *field)
{
    pthread_mutex_lock(&s->lock);
    s->world.unknown_status = field;
    server_unlock(s);
}

void fake_drop_groups(struct fake_apiserver *s)
{
    pthread_mutex_lock(&s->lock);
    s->world.drops_groups = true;
    server_unlock(s);
}

void fake_set_time(struct fake_apiserver *s, int64_t wall_ms)
{
    pthread_mutex_lock(&s->lock);
    s->world.now_s = wall_ms / 1000;
    server_unlock(s);
}

void fake_set_ahead(struct fake_apiserver *s, int64_t ms)
{
    pthread_mutex_lock(&s->lock);
    s->world.now_s = 0;
    s->world.ahead_ms = ms;
    server_unlock(s);
}

bool fake_put(struct fake_apiserver *s, const char *path, const char *json)
{
    struct route r;
    struct err err;
    cleanup_free char *text = jsontext(json);
    cleanup_json cJSON *body = json_parse(text, strlen(text), &err);

    pthread_mutex_lock(&s->lock);
    bool ok = body && world_route(&s->world, path, &r) && r.name[0];
    if (ok && !world_find(&s->world, r.kind, r.ns, r.name)) {
        struct route collection = r;
        collection.name[0] = collection.sub[0] = '\0';
        if (!cJSON_GetObjectItemCaseSensitive(body, "metadata"))
            cJSON_AddObjectToObject(body, "metadata");
        cJSON *meta = cJSON_GetObjectItemCaseSensitive(body, "metadata");
        if (!json_str(meta, "name"))
            cJSON_AddStringToObject(meta, "name", r.name);
        struct outcome o = world_do(&s->world, "POST", &collection, body);
        ok = o.status == 201;
        cJSON_Delete(o.body);
    }
    /* Also after a create: it takes no status. */
    const char *sub = ok && cJSON_GetObjectItemCaseSensitive(body, "status") ? "status" : "";
    for (int i = 0; ok && i < (*sub ? 2 : 1); i++) {
        snprintf(r.sub, sizeof(r.sub), "%s", i ? sub : "");
        struct outcome o = world_do(&s->world, "PATCH", &r, body);
        ok = o.status == 200;
        cJSON_Delete(o.body);
    }
    server_unlock(s);
    return ok;
}

static struct object *find(struct fake_apiserver *s, const char *path)
{
    struct route r;

    return world_route(&s->world, path, &r) ? world_find(&s->world, r.kind, r.ns, r.name) : NULL;
}

char *fake_get(struct fake_apiserver *s, const char *path)
{
    pthread_mutex_lock(&s->lock);
    const struct object *o = find(s, path);
    char *text = o ? cJSON_PrintUnformatted(o->json) : NULL;
    server_unlock(s);
    return text;
}

cJSON *fake_json(struct fake_apiserver *s, const char *path)
{
    pthread_mutex_lock(&s->lock);
    const struct object *o = find(s, path);
    cJSON *copy = o ? cJSON_Duplicate(o->json, true) : NULL;
    server_unlock(s);
    return copy;
}

uint64_t fake_version(struct fake_apiserver *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t version = s->world.version;
    server_unlock(s);
    return version;
}

bool fake_put_raw(struct fake_apiserver *s, const char *path, const char *raw)
{
    cleanup_json cJSON *body = cJSON_CreateObject();
    struct route r;

    cleanup_free char *text = raw ? jsontext(raw) : NULL;
    if (text)
        cJSON_AddRawToObject(body, "raw", text);
    else
        cJSON_AddNullToObject(body, "raw");
    pthread_mutex_lock(&s->lock);
    bool ok = world_route(&s->world, path, &r) && r.name[0];
    struct outcome o = ok ? world_do(&s->world, "PATCH", &r, body) : (struct outcome){0};
    ok = o.status == 200;
    cJSON_Delete(o.body);
    server_unlock(s);
    return ok;
}

bool fake_remove(struct fake_apiserver *s, const char *path)
{
    pthread_mutex_lock(&s->lock);
    struct object *o = find(s, path);
    if (o)
        world_remove(&s->world, o);
    server_unlock(s);
    return o != NULL;
}

bool fake_delete(struct fake_apiserver *s, const char *path)
{
    struct route r;

    pthread_mutex_lock(&s->lock);
    bool ok = world_route(&s->world, path, &r) && r.name[0];
    if (ok) {
        struct outcome o = world_do(&s->world, "DELETE", &r, NULL);
        ok = o.status == 200;
        cJSON_Delete(o.body);
    }
    server_unlock(s);
    return ok;
}

bool fake_change_at(struct fake_apiserver *s, int i, struct fake_change *ret)
{
    pthread_mutex_lock(&s->lock);
    bool there = i >= 0 && (size_t)i < s->world.n_changes;
    if (there) {
        const struct change *c = &s->world.changes[i];
        ret->type = !c->before ? '+' : !c->after ? '-' : '=';
        ret->kind = c->kind->name;
        ret->object = c->after ? c->after : c->before;
    }
    server_unlock(s);
    return there;
}

/* Count the collection's objects; the n-th of them goes to *nth. */
static int walk(struct fake_apiserver *s, const char *collection, int n, cJSON **nth)
{
    struct route r;
    int count = 0;

    pthread_mutex_lock(&s->lock);
    bool known = world_route(&s->world, collection, &r);
    for (size_t i = 0; known && i < s->world.n_objects; i++) {
        const struct object *o = &s->world.objects[i];
        if (o->kind != r.kind || (r.ns[0] && strcmp(r.ns, o->ns) != 0))
            continue;
        if (nth && count == n)
            *nth = cJSON_Duplicate(o->json, true);
        count++;
    }
    server_unlock(s);
    return known ? count : -1;
}

int fake_count(struct fake_apiserver *s, const char *collection)
{
    return walk(s, collection, 0, NULL);
}

cJSON *fake_nth_json(struct fake_apiserver *s, const char *collection, int n)
{
    cJSON *copy = NULL;

    walk(s, collection, n, &copy);
    return copy;
}

void fake_plan_fault(struct fake_apiserver *s, const struct fake_fault_plan *plan)
{
    pthread_mutex_lock(&s->lock);
    s->planned = plan != NULL;
    if (plan)
        s->plan = *plan;
    s->plan_seen = s->plan_done = 0;
    server_unlock(s);
}

void fake_strike(struct fake_apiserver *s, const char *method, const char *path_part, enum fake_fault fault)
{
    fake_plan_fault(
        s, &(struct fake_fault_plan){.request = 1, .method = method, .path_part = path_part, .fault = fault});
}

void fake_refuse(struct fake_apiserver *s, const char *method, const char *path_part, int status)
{
    fake_plan_fault(s, &(struct fake_fault_plan){.method = method, .path_part = path_part, .status = status});
}

int fake_faults_done(struct fake_apiserver *s)
{
    pthread_mutex_lock(&s->lock);
    int n = s->plan_done;
    server_unlock(s);
    return n;
}

void fake_compact(struct fake_apiserver *s)
{
    pthread_mutex_lock(&s->lock);
    /* A list from now on gets a version that is still good. */
    s->world.oldest = ++s->world.version;
    server_unlock(s);
}

void fake_bookmark(struct fake_apiserver *s)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < CONNS_MAX; i++) {
        struct conn *c = &s->conns[i];
        if (c->fd < 0 || !c->watching || !c->route.bookmarks)
            continue;
        conn_pump(c, &s->world);
        conn_bookmark(c, s->world.version);
    }
    server_unlock(s);
}

void fake_close_watches(struct fake_apiserver *s)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < CONNS_MAX; i++)
        if (s->conns[i].fd >= 0 && s->conns[i].watching)
            conn_end_watch(&s->conns[i]);
    server_unlock(s);
}

void fake_watch_raw(struct fake_apiserver *s, const char *bytes)
{
    cleanup_free char *text = jsontext(bytes);

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < CONNS_MAX; i++)
        if (s->conns[i].fd >= 0 && s->conns[i].watching)
            conn_chunk(&s->conns[i], text, strlen(text));
    server_unlock(s);
}

int fake_open_watches(struct fake_apiserver *s)
{
    int n = 0;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < CONNS_MAX; i++)
        n += s->conns[i].fd >= 0 && s->conns[i].watching;
    server_unlock(s);
    return n;
}

int fake_connections(struct fake_apiserver *s)
{
    pthread_mutex_lock(&s->lock);
    int n = s->connections;
    server_unlock(s);
    return n;
}
