/* recorder.c - Events are queued, sent one after the other, and forgotten when it takes too much. */
#include "kube/recorder.h"

#include "common/arena.h"
#include "common/json.h"
#include "common/memory.h"
#include "kube/client.h"
#include "kube/correlator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUEUE_MAX = 256,
    TRIES_MAX = 3,
    RETRY_MS = 10000,
    RETRY_MAX_MS = 60000, /* whatever the server asks for: the others wait behind it */
    LAST_RETRY_MS = 100,
    MESSAGE_MAX_BYTES = 1024
};

struct pending {
    struct pending *next;
    char *ns, *name;
    cJSON *event;
    bool patch;
    int tries;
};

struct recorder {
    struct loop *loop;
    struct transport transport;
    char *component, *host;
    struct correlator correlator;
    struct pending *first, **last;
    size_t n_pending;
    struct kube_call *call;
    struct loop_timer next_try;
    struct loop_timer give_up; /* of a flush */
    bool flushing;
    void (*flushed)(void *ctx);
    void *flushed_ctx;
    uint16_t sequence;
    struct recorder_stats stats;
};

static void send_first(struct recorder *r);
static void on_next_try(void *ctx);
static void end_flush(void *ctx);

static char *copy(const char *s)
{
    return memory_must(strdup(s));
}

struct recorder *recorder_new(struct loop *l, const struct transport *t, const char *component,
                              const char *host)
{
    struct recorder *r = memory_must(calloc(1, sizeof(*r)));

    r->loop = l;
    r->transport = *t;
    r->component = copy(component);
    r->host = copy(host ? host : component);
    r->last = &r->first;
    r->next_try = (struct loop_timer){.fire = on_next_try, .ctx = r};
    r->give_up = (struct loop_timer){.fire = end_flush, .ctx = r};
    return r;
}

static void drop_first(struct recorder *r)
{
    struct pending *p = r->first;

    r->first = p->next;
    if (!r->first)
        r->last = &r->first;
    r->n_pending--;
    free(p->ns);
    free(p->name);
    cJSON_Delete(p->event);
    free(p);
}

void recorder_free(struct recorder *r)
{
    if (!r)
        return;
    kube_call_cancel(r->call);
    loop_timer_cancel(r->loop, &r->next_try);
    loop_timer_cancel(r->loop, &r->give_up);
    while (r->first)
        drop_first(r);
    correlator_release(&r->correlator);
    free(r->component);
    free(r->host);
    free(r);
}

struct recorder_stats recorder_stats(const struct recorder *r)
{
    return r->stats;
}

static void try_again(struct recorder *r, int64_t after_ms)
{
    struct pending *p = r->first;

    if (r->flushing)
        after_ms = LAST_RETRY_MS;
    if (++p->tries >= TRIES_MAX) {
        r->stats.failed++;
        drop_first(r);
        after_ms = 0;
    }
    loop_timer_set(r->loop, &r->next_try, loop_now_ms(r->loop) + after_ms);
}

static void on_sent(void *ctx, struct kube_reply *reply)
{
    struct recorder *r = ctx;

    r->call = NULL;
    if (!reply->err) {
        r->stats.sent++;
        drop_first(r);
        send_first(r);
    } else if (reply->err->kind == ERR_NOT_FOUND && r->first->patch) {
        /* Events live for an hour: begin a new one under the same name. */
        r->first->patch = false;
        send_first(r);
    } else if (reply->err->kind == ERR_TRANSIENT || reply->err->kind == ERR_TIMEOUT) {
        int64_t wait = reply->status.retry_after_ms;
        wait = wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS;
        try_again(r, wait > RETRY_MS ? wait : RETRY_MS);
    } else {
        r->stats.failed++;
        drop_first(r);
        send_first(r);
    }
}

static void send_first(struct recorder *r)
{
    cleanup_arena struct arena a = {0};
    struct pending *p = r->first;
    struct err err;

    if (!p && r->flushing)
        end_flush(r);
    if (!p || r->call || loop_timer_is_set(&r->next_try))
        return;
    struct kube_request req = {
        .verb = p->patch ? KUBE_PATCH : KUBE_CREATE,
        .resource = &KUBE_EVENTS,
        .ns = p->ns,
        .name = p->patch ? p->name : NULL,
        .body = sv_from(json_print(p->event, &a)),
    };
    r->call = kube_call_start(&r->transport, &req, on_sent, r, &err);
    if (!r->call)
        try_again(r, RETRY_MS);
}

static void on_next_try(void *ctx)
{
    send_first(ctx);
}

static void end_flush(void *ctx)
{
    struct recorder *r = ctx;

    if (!r->flushing)
        return;
    r->flushing = false;
    loop_timer_cancel(r->loop, &r->give_up);
    r->flushed(r->flushed_ctx);
}

void recorder_flush(struct recorder *r, int64_t until_ms, void (*done)(void *ctx), void *ctx)
{
    r->flushing = true;
    r->flushed = done;
    r->flushed_ctx = ctx;
    loop_timer_set(r->loop, &r->give_up, until_ms);
    loop_timer_cancel(r->loop, &r->next_try);
    send_first(r);
}

static cJSON *make_event(const struct recorder *r, const struct recorder_object *o, const char *ns,
                         const struct correlator_verdict *v, bool warning, const char *reason,
                         const char *message)
{
    cJSON *e = cJSON_CreateObject();
    char first[CLOCK_RFC3339_BYTES];
    char last[CLOCK_RFC3339_BYTES];
    struct clock clock = loop_clock(r->loop);

    clock_rfc3339(v->first_wall_ms, false, first);
    clock_rfc3339(clock.wall_ms(clock.ctx), false, last);
    cJSON_AddStringToObject(e, "apiVersion", "v1");
    cJSON_AddStringToObject(e, "kind", "Event");
    cJSON *meta = cJSON_AddObjectToObject(e, "metadata");
    cJSON_AddStringToObject(meta, "name", v->name);
    cJSON_AddStringToObject(meta, "namespace", ns);
    cJSON *about = cJSON_AddObjectToObject(e, "involvedObject");
    cJSON_AddStringToObject(about, "apiVersion", o->api_version);
    cJSON_AddStringToObject(about, "kind", o->kind);
    if (o->ns && o->ns[0])
        cJSON_AddStringToObject(about, "namespace", o->ns);
    cJSON_AddStringToObject(about, "name", o->name);
    cJSON_AddStringToObject(about, "uid", o->uid);
    if (o->resource_version)
        cJSON_AddStringToObject(about, "resourceVersion", o->resource_version);
    cJSON_AddStringToObject(e, "type", warning ? "Warning" : "Normal");
    cJSON_AddStringToObject(e, "reason", reason);
    cJSON_AddStringToObject(e, "message", message);
    cJSON_AddNumberToObject(e, "count", v->count);
    cJSON_AddStringToObject(e, "firstTimestamp", first);
    cJSON_AddStringToObject(e, "lastTimestamp", last);
    cJSON *source = cJSON_AddObjectToObject(e, "source");
    cJSON_AddStringToObject(source, "component", r->component);
    cJSON_AddStringToObject(source, "host", r->host);
    cJSON_AddStringToObject(e, "reportingComponent", r->component);
    cJSON_AddStringToObject(e, "reportingInstance", r->host);
    return e;
}

/* One that is still waiting is overtaken by its newer self; the first may be on the wire already. */
static bool replace_pending(struct recorder *r, const char *ns, const char *name, cJSON *event)
{
    for (struct pending *p = r->first; p; p = p->next) {
        if ((p == r->first && r->call) || strcmp(p->name, name) != 0 || strcmp(p->ns, ns) != 0)
            continue;
        cJSON_Delete(p->event);
        p->event = event;
        return true;
    }
    return false;
}

static void enqueue(struct recorder *r, const char *ns, const char *name, bool patch, cJSON *event)
{
    if (replace_pending(r, ns, name, event))
        return;
    struct pending *p = memory_must(calloc(1, sizeof(*p)));
    *p = (struct pending){.ns = copy(ns), .name = copy(name), .event = event, .patch = patch};
    *r->last = p;
    r->last = &p->next;
    r->n_pending++;
    send_first(r);
}

/* Cut at a border between characters. */
static void cut_utf8(char *s, size_t max)
{
    if (strlen(s) <= max)
        return;
    while (max && ((unsigned char)s[max] & 0xc0) == 0x80)
        max--;
    s[max] = '\0';
}

void recorder_event(struct recorder *r, const struct recorder_object *object, bool warning,
                    const char *reason, const char *fmt, ...)
{
    cleanup_arena struct arena a = {0};
    struct clock clock = loop_clock(r->loop);
    int64_t wall_ms = clock.wall_ms(clock.ctx);
    const char *ns = object->ns && object->ns[0] ? object->ns : "default";
    va_list ap;

    va_start(ap, fmt);
    char *message = arena_vprintf(&a, fmt, ap);
    va_end(ap);
    if (r->n_pending >= QUEUE_MAX) {
        r->stats.dropped++;
        return;
    }
    const char *who = arena_printf(&a, "%s/%s/%s/%s", object->kind, ns, object->name, object->uid);
    const char *what = arena_printf(&a, "%s/%s", warning ? "Warning" : "Normal", reason);
    struct correlator_verdict v =
        correlator_see(&r->correlator, who, what, message, loop_now_ms(r->loop), wall_ms);
    if (v.drop) {
        r->stats.dropped++;
        return;
    }
    if (v.combined)
        message = arena_printf(&a, "(combined from similar events): %s", message);
    cut_utf8(message, MESSAGE_MAX_BYTES - 1);
    if (!v.repeated)
        snprintf(v.name, CORRELATOR_NAME_BYTES, "%.200s.%llx", object->name,
                 (unsigned long long)wall_ms << 16 | r->sequence++);
    enqueue(r, ns, v.name, v.repeated, make_event(r, object, ns, &v, warning, reason, message));
}
