/* recorder.c - queue Events and send them, one per namespace at a time; drop what exceeds the bounds. */
#include "kube/recorder.h"

#include "common/arena.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/text.h"
#include "kube/client.h"
#include "kube/correlator.h"
#include "kube/fairqueue.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUEUE_MAX = 512,
    TRIES_MAX = 3,
    RETRY_MS = 10000,
    RETRY_MAX_MS = 60000, /* whatever the server asks for: others of its namespace wait behind it */
    LAST_RETRY_MS = 100,
    MESSAGE_MAX_BYTES = 1024
};

/* One at a time, and one of each namespace that does not answer. */
static const struct fairqueue_limits LIMITS = {
    .places = 1, .share_max = 1, .slow_ms = 1000, .slow_share_max = 1, .slow_max = 64};

struct pending {
    struct fairqueue_item turn; /* first; out until it is over, its next tries included */
    struct pending *next, **prev;
    struct kube_recorder *recorder;
    char *name, *body;
    bool patch;
    int tries;
    struct kube_call *call;
    struct kube_loop_timer next_try;
};

struct kube_recorder {
    struct kube_loop *loop;
    struct kube_transport transport;
    char *component, *host;
    struct correlator correlator;
    struct fairqueue *turns; /* by namespace */
    struct pending *pending; /* all of them */
    size_t n_pending;
    struct kube_loop_timer again;   /* when what is slow lets another go */
    struct kube_loop_timer give_up; /* of a flush */
    bool flushing;
    void (*flushed)(void *ctx);
    void *flushed_ctx;
    uint16_t sequence;
    struct kube_recorder_stats stats;
};

static void send_next(void *ctx);
static void end_flush(void *ctx);

struct kube_recorder *kube_recorder_new(struct kube_loop *l, const struct kube_transport *t,
                                        const char *component, const char *host)
{
    struct kube_recorder *r = memory_must(calloc(1, sizeof(*r)));

    r->loop = l;
    r->transport = *t;
    r->component = memory_strdup(component);
    r->host = memory_strdup(host ? host : component);
    r->turns = fairqueue_new(&LIMITS);
    r->again = (struct kube_loop_timer){.fire = send_next, .ctx = r};
    r->give_up = (struct kube_loop_timer){.fire = end_flush, .ctx = r};
    return r;
}

static void drop(struct kube_recorder *r, struct pending *p)
{
    kube_call_cancel(p->call);
    kube_loop_timer_cancel(r->loop, &p->next_try);
    fairqueue_leave(r->turns, &p->turn);
    *p->prev = p->next;
    if (p->next)
        p->next->prev = p->prev;
    r->n_pending--;
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
    kube_loop_timer_cancel(r->loop, &r->again);
    kube_loop_timer_cancel(r->loop, &r->give_up);
    fairqueue_free(r->turns);
    correlator_release(&r->correlator);
    free(r->component);
    free(r->host);
    free(r);
}

struct kube_recorder_stats kube_recorder_stats(const struct kube_recorder *r)
{
    return r->stats;
}

static void try_again(struct pending *p, int64_t after_ms)
{
    struct kube_recorder *r = p->recorder;

    if (++p->tries >= TRIES_MAX) {
        r->stats.failed++;
        drop(r, p);
        kube_loop_timer_set(r->loop, &r->again, kube_loop_now_ms(r->loop));
        return;
    }
    kube_loop_timer_set(r->loop, &p->next_try,
                        kube_loop_now_ms(r->loop) + (r->flushing ? LAST_RETRY_MS : after_ms));
}

static void send_one(void *ctx);

static void on_sent(void *ctx, struct kube_reply *reply)
{
    struct pending *p = ctx;
    struct kube_recorder *r = p->recorder;

    p->call = NULL;
    if (!reply->err) {
        r->stats.sent++;
        drop(r, p);
    } else if (reply->err->kind == ERR_NOT_FOUND && p->patch) {
        /* Events live for an hour: begin a new one under the same name. */
        p->patch = false;
        send_one(p);
    } else if (reply->err->kind == ERR_TRANSIENT || reply->err->kind == ERR_TIMEOUT) {
        int64_t wait = reply->status.retry_after_ms;
        wait = wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS;
        try_again(p, wait > RETRY_MS ? wait : RETRY_MS);
    } else {
        r->stats.failed++;
        drop(r, p);
    }
    send_next(r);
}

/* It has its turn. */
static void send_one(void *ctx)
{
    struct pending *p = ctx;
    struct kube_recorder *r = p->recorder;
    struct err err;
    struct kube_request req = {
        .verb = p->patch ? KUBE_PATCH : KUBE_CREATE,
        .resource = &KUBE_EVENTS,
        .ns = fairqueue_share(&p->turn),
        .name = p->patch ? p->name : NULL,
        .body = sv_from(p->body),
        .later = !r->flushing,
    };

    p->call = kube_call_start(&r->transport, &req, on_sent, p, &err);
    if (!p->call)
        try_again(p, RETRY_MS);
}

static void send_next(void *ctx)
{
    struct kube_recorder *r = ctx;
    struct fairqueue_item *it;

    while ((it = fairqueue_next(r->turns, kube_loop_now_ms(r->loop)))) {
        fairqueue_go(r->turns, it, kube_loop_now_ms(r->loop));
        send_one(it);
    }
    if (fairqueue_due_ms(r->turns) != INT64_MAX)
        kube_loop_timer_set(r->loop, &r->again, fairqueue_due_ms(r->turns));
    if (r->flushing && !r->pending)
        end_flush(r);
}

static void end_flush(void *ctx)
{
    struct kube_recorder *r = ctx;

    if (!r->flushing)
        return;
    r->flushing = false;
    kube_loop_timer_cancel(r->loop, &r->give_up);
    r->flushed(r->flushed_ctx);
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
    send_next(r);
}

static char *make_event(const struct kube_recorder *r, const struct kube_recorder_object *o, const char *ns,
                        const struct correlator_verdict *v, bool warning, const char *reason,
                        const char *message)
{
    cleanup_arena struct arena a = {0};
    cleanup_json cJSON *e = cJSON_CreateObject();
    char first[CLOCK_RFC3339_BYTES];
    char last[CLOCK_RFC3339_BYTES];
    struct clock clock = kube_loop_clock(r->loop);

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
    return memory_strdup(json_print(e, &a));
}

/* One that is still waiting is overtaken by its newer self; one that had its turn may be on the wire already. */
static bool replace_pending(struct kube_recorder *r, const char *ns, const char *name, char *body)
{
    for (struct pending *p = r->pending; p; p = p->next) {
        if (p->call || strcmp(p->name, name) != 0 || strcmp(fairqueue_share(&p->turn), ns) != 0)
            continue;
        free(p->body);
        p->body = body;
        return true;
    }
    return false;
}

/* No namespace has more than the others have left: half of the queue alone, a third beside another that is as busy. */
static void enqueue(struct kube_recorder *r, const char *ns, const char *name, bool patch, char *body)
{
    if (replace_pending(r, ns, name, body))
        return;
    struct pending *p = memory_must(calloc(1, sizeof(*p)));
    *p = (struct pending){.recorder = r,
                          .name = memory_strdup(name),
                          .body = body,
                          .patch = patch,
                          .next = r->pending,
                          .prev = &r->pending};
    p->next_try = (struct kube_loop_timer){.fire = send_one, .ctx = p};
    if (p->next)
        p->next->prev = &p->next;
    r->pending = p;
    fairqueue_join(r->turns, &p->turn, ns);
    if (++r->n_pending + fairqueue_share_size(&p->turn) > QUEUE_MAX + 1) {
        r->stats.dropped++;
        drop(r, p);
        return;
    }
    fairqueue_wait(r->turns, &p->turn, false, kube_loop_now_ms(r->loop));
    send_next(r);
}

void kube_recorder_event(struct kube_recorder *r, const struct kube_recorder_object *object, bool warning,
                         const char *reason, const char *fmt, ...)
{
    cleanup_arena struct arena a = {0};
    struct clock clock = kube_loop_clock(r->loop);
    int64_t wall_ms = clock.wall_ms(clock.ctx);
    const char *ns = object->ns && object->ns[0] ? object->ns : "default";
    va_list ap;

    va_start(ap, fmt);
    char *message = arena_vprintf(&a, fmt, ap);
    va_end(ap);
    const char *who = arena_printf(&a, "%s/%s/%s/%s", object->kind, ns, object->name, object->uid);
    const char *what = arena_printf(&a, "%s/%s", warning ? "Warning" : "Normal", reason);
    struct correlator_verdict v =
        correlator_see(&r->correlator, who, what, message, kube_loop_now_ms(r->loop), wall_ms);
    if (v.drop) {
        r->stats.dropped++;
        return;
    }
    if (v.combined)
        message = arena_printf(&a, "(combined from similar events): %s", message);
    text_ellipsis(message, MESSAGE_MAX_BYTES, strlen(message));
    if (!v.repeated)
        snprintf(v.name, CORRELATOR_NAME_BYTES, "%.200s.%llx", object->name,
                 (unsigned long long)wall_ms << 16 | r->sequence++);
    enqueue(r, ns, v.name, v.repeated, make_event(r, object, ns, &v, warning, reason, message));
}
