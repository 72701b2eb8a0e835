/* recorder.c - queue Events and send them, one per namespace at a time; drop Events beyond the limits. */
#include "kube/recorder.h"

#include "common/arena.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/text.h"
#include "kube/client.h"
#include "kube/correlator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUEUE_MAX = 512,
    TRIES_MAX = 3,
    RETRY_MS = 10000,
    LAST_RETRY_MS = 100,
    MESSAGE_MAX_BYTES = 1024,
    NAME_MAX_BYTES = 254,
};

/* An Event that is not sent yet. The oldest one of a namespace is in flight, or waits for its next try. */
struct pending {
    struct pending *next;
    struct kube_recorder *recorder;
    char *ns, *name, *body;
    bool patch;
    int tries;
    struct kube_request_run *run;
    struct kube_loop_timer next_try;
};

struct kube_recorder {
    struct kube_loop *loop;
    struct kube_transport transport;
    const char *component;
    struct correlator correlator;
    struct pending *pending;        /* the oldest first */
    struct kube_loop_timer give_up; /* of a flush */
    bool flushing;
    void (*flushed)(void *ctx);
    void *flushed_ctx;
    struct kube_recorder_stats stats;
};

static void send_event(void *ctx);

static void end_flush(void *ctx)
{
    struct kube_recorder *r = ctx;

    if (!r->flushing)
        return;
    r->flushing = false;
    kube_loop_timer_cancel(r->loop, &r->give_up);
    r->flushed(r->flushed_ctx);
}

struct kube_recorder *kube_recorder_new(struct kube_loop *l, const struct kube_transport *t,
                                        const char *component)
{
    struct kube_recorder *r = memory_must(calloc(1, sizeof(*r)));

    r->loop = l;
    r->transport = *t;
    r->component = component;
    r->give_up = (struct kube_loop_timer){.fire = end_flush, .ctx = r};
    return r;
}

static void drop(struct kube_recorder *r, struct pending *p)
{
    struct pending **at = &r->pending;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    kube_request_cancel(p->run);
    kube_loop_timer_cancel(r->loop, &p->next_try);
    free(p->ns);
    free(p->name);
    free(p->body);
    free(p);
}

void kube_recorder_free(struct kube_recorder *r)
{
    if (!r)
        return;
    while (r->pending)
        drop(r, r->pending);
    kube_loop_timer_cancel(r->loop, &r->give_up);
    free(r);
}

struct kube_recorder_stats kube_recorder_stats(const struct kube_recorder *r)
{
    return r->stats;
}

/* The Event was sent or dropped: start the next one of its namespace. */
static void end_event(struct pending *p)
{
    struct kube_recorder *r = p->recorder;
    struct pending *next = p->next;

    while (next && strcmp(next->ns, p->ns) != 0)
        next = next->next;
    drop(r, p);
    if (next)
        send_event(next);
    if (!r->pending)
        end_flush(r);
}

static void try_again(struct pending *p, int64_t after_ms)
{
    struct kube_recorder *r = p->recorder;

    if (++p->tries < TRIES_MAX) {
        kube_loop_timer_set(r->loop, &p->next_try,
                            kube_loop_now_ms(r->loop) + (r->flushing ? LAST_RETRY_MS : after_ms));
        return;
    }
    r->stats.failed++;
    end_event(p);
}

static void on_sent(void *ctx, struct kube_reply *reply)
{
    struct pending *p = ctx;
    struct kube_recorder *r = p->recorder;

    p->run = NULL;
    if (!reply->err) {
        r->stats.sent++;
        end_event(p);
    } else if (reply->err->kind == ERR_NOT_FOUND && p->patch) {
        /* The server deletes Events after an hour: create a new one under the same name. */
        p->patch = false;
        send_event(p);
    } else if (reply->err->kind == ERR_TRANSIENT || reply->err->kind == ERR_TIMEOUT) {
        int64_t wait = reply->status.retry_after_ms;
        try_again(p, wait > RETRY_MS ? wait : RETRY_MS);
    } else {
        r->stats.failed++;
        end_event(p);
    }
}

static void send_event(void *ctx)
{
    struct pending *p = ctx;
    struct kube_recorder *r = p->recorder;
    struct err err;
    struct kube_request req = {
        .verb = p->patch ? KUBE_PATCH : KUBE_CREATE,
        .resource = &KUBE_EVENTS,
        .ns = p->ns,
        .name = p->patch ? p->name : NULL,
        .body = sv_from(p->body),
        .later = !r->flushing,
    };

    p->run = kube_request_start(&r->transport, &req, on_sent, p, &err);
    if (!p->run)
        try_again(p, RETRY_MS);
}

void kube_recorder_flush(struct kube_recorder *r, int64_t until_ms, void (*done)(void *ctx), void *ctx)
{
    r->flushing = true;
    r->flushed = done;
    r->flushed_ctx = ctx;
    kube_loop_timer_set(r->loop, &r->give_up, until_ms);
    for (struct pending *p = r->pending; p; p = p->next)
        if (kube_loop_timer_is_set(&p->next_try))
            kube_loop_timer_set(r->loop, &p->next_try, kube_loop_now_ms(r->loop));
    if (!r->pending)
        end_flush(r);
}

/* pairs: name, value ... NULL; a pair whose value is NULL or empty is left out. */
static void put(cJSON *o, const char *const *pairs)
{
    for (; *pairs; pairs += 2)
        if (pairs[1] && pairs[1][0])
            cJSON_AddStringToObject(o, pairs[0], pairs[1]);
}
#define PUT(o, ...) put(o, (const char *const[]){__VA_ARGS__, NULL})

static char *make_event(const struct kube_recorder *r, const struct kube_recorder_object *o, const char *name,
                        const struct correlator_event *counted, bool warning, const char *reason,
                        const char *message)
{
    cleanup_arena struct arena a = {0};
    cleanup_json cJSON *e = cJSON_CreateObject();
    char first[CLOCK_RFC3339_BYTES];
    char last[CLOCK_RFC3339_BYTES];

    clock_rfc3339(counted->first_wall_ms, false, first);
    clock_rfc3339(kube_loop_wall_ms(r->loop), false, last);
    PUT(e, "apiVersion", "v1", "kind", "Event", "type", warning ? "Warning" : "Normal", "reason", reason,
        "message", message, "firstTimestamp", first, "lastTimestamp", last, "reportingComponent",
        r->component, "reportingInstance", r->component);
    cJSON_AddNumberToObject(e, "count", counted->count);
    PUT(cJSON_AddObjectToObject(e, "metadata"), "name", name, "namespace", o->ns);
    PUT(cJSON_AddObjectToObject(e, "involvedObject"), "apiVersion", o->api_version, "kind", o->kind,
        "namespace", o->ns, "name", o->name, "uid", o->uid);
    PUT(cJSON_AddObjectToObject(e, "source"), "component", r->component, "host", r->component);
    return memory_strdup(json_print(e, &a));
}

/* Replace the body of the same Event if that is not sent yet. A namespace never has more Events waiting than
 * the queue has free slots: half of the queue alone, a third beside an equally busy namespace. */
static void enqueue(struct kube_recorder *r, const char *ns, const char *name, bool patch, char *body)
{
    struct pending **at = &r->pending;
    size_t all = 0;
    size_t own = 0;

    for (; *at; at = &(*at)->next) {
        bool same_ns = strcmp((*at)->ns, ns) == 0;
        if (same_ns && !(*at)->run && strcmp((*at)->name, name) == 0) {
            free((*at)->body);
            (*at)->body = body;
            return;
        }
        all++;
        own += same_ns;
    }
    if (all + own >= QUEUE_MAX) {
        r->stats.dropped++;
        free(body);
        return;
    }
    struct pending *p = *at = memory_must(calloc(1, sizeof(*p)));
    *p = (struct pending){.recorder = r,
                          .ns = memory_strdup(ns),
                          .name = memory_strdup(name),
                          .body = body,
                          .patch = patch,
                          .next_try = {.fire = send_event, .ctx = p}};
    if (own == 0)
        send_event(p);
}

void kube_recorder_event(struct kube_recorder *r, const struct kube_recorder_object *object, bool warning,
                         const char *reason, const char *fmt, ...)
{
    cleanup_arena struct arena a = {0};
    char name[NAME_MAX_BYTES];
    va_list ap;

    va_start(ap, fmt);
    char *message = arena_vprintf(&a, fmt, ap);
    va_end(ap);
    const char *who = arena_printf(&a, "%s/%s/%s/%s", object->kind, object->ns, object->name, object->uid);
    const char *what = arena_printf(&a, "%s/%s", warning ? "Warning" : "Normal", reason);
    const struct correlator_event *counted = correlator_see(
        &r->correlator, who, what, message, kube_loop_now_ms(r->loop), kube_loop_wall_ms(r->loop));
    if (!counted) {
        r->stats.dropped++;
        return;
    }
    text_ellipsis(message, MESSAGE_MAX_BYTES, strlen(message));
    snprintf(name, sizeof(name), "%.200s.%llx", object->name, (unsigned long long)counted->id);
    enqueue(r, object->ns, name, counted->count > 1,
            make_event(r, object, name, counted, warning, reason, message));
}
