/* reconciler.c - join caches, work queue and reconcile calls; the reconcile of a key: its requests, and the ways to end it. */
#include "kube/reconciler.h"
#include "common/memory.h"

#include <stdlib.h>

struct source {
    struct kube_reconciler *r;
    struct source *next;
    struct kube_reconciler_source o;
    struct kube_cache *cache;
    uint64_t lists; /* lists begun before this term */
};

/* The reconcile of one key. */
struct kube_work {
    struct kube_reconciler *r;
    struct kube_work *next, **at;
    struct workqueue_key key; /* borrowed from the queue until workqueue_done */
    void *data;
    void (*free_data)(void *data);
    struct kube_request_run *run;
};

struct kube_reconciler {
    struct kube_loop *loop;
    struct kube_transport transport;
    struct kube_reconciler_options o;
    struct source *sources, **last_source;
    uint64_t n_sources;
    struct workqueue *queue;
    struct kube_loop_task task;
    struct kube_loop_timer timer;
    struct kube_work *works; /* under way */
    bool leads, draining;
    void (*synced)(void *ctx);
    void *synced_ctx;
    void (*drained)(void *ctx);
    void *drained_ctx;
};

static int64_t now(const struct kube_reconciler *r)
{
    return kube_loop_now_ms(r->loop);
}

static void wake(void *ctx)
{
    struct kube_reconciler *r = ctx;

    kube_loop_task_add(r->loop, &r->task);
}

void kube_reconciler_add(struct kube_reconciler *r, const char *ns, const char *key)
{
    if (!key[0] || !r->leads)
        return;
    workqueue_add(r->queue, (struct workqueue_key){ns, key}, now(r));
    wake(r);
}

/* ---- sources */

static void on_changed(void *ctx, const struct kube_store_entry *e)
{
    struct source *s = ctx;

    if (s->o.map)
        s->o.map(s->r->o.ctx, e);
    else
        kube_reconciler_add(s->r, e->ns, e->group);
}

static void on_gone(void *ctx, const struct kube_store_entry *e)
{
    struct source *s = ctx;

    if (s->o.gone)
        s->o.gone(s->r->o.ctx, e);
}

static void report_synced(struct kube_reconciler *r)
{
    void (*synced)(void *ctx) = r->synced;

    if (!synced || !kube_reconciler_synced(r))
        return;
    r->synced = NULL;
    synced(r->synced_ctx);
}

/* Keys wait in the queue while the caches fill. When the last cache is complete they may be taken. */
static void on_synced(void *ctx)
{
    struct source *s = ctx;

    if (s->o.listed)
        s->o.listed(s->r->o.ctx);
    wake(s->r);
    report_synced(s->r);
}

static void on_problem(void *ctx, const struct err *err)
{
    struct source *s = ctx;

    s->r->o.problem(s->r->o.ctx, s->o.watch.resource.plural, err);
}

struct kube_cache *kube_reconciler_watch(struct kube_reconciler *r,
                                         const struct kube_reconciler_source *source)
{
    struct source *s = memory_must(calloc(1, sizeof(*s)));

    s->r = r;
    s->o = *source;
    *r->last_source = s;
    r->last_source = &s->next;
    s->o.watch.seed = r->o.seed + r->n_sources++;
    s->cache = kube_cache_new(r->loop, &r->transport,
                              &(struct kube_cache_options){.watch = s->o.watch,
                                                           .decode = source->decode,
                                                           .unsure = source->unsure,
                                                           .free_value = source->free_value,
                                                           .changed = on_changed,
                                                           .gone = on_gone,
                                                           .synced = on_synced,
                                                           .problem = on_problem,
                                                           .ctx = s});
    return s->cache;
}

void kube_reconciler_await(struct kube_reconciler *r, void (*synced)(void *ctx), void *ctx)
{
    r->synced = synced;
    r->synced_ctx = ctx;
    report_synced(r);
}

/* Whether each cache has completed a list of this term, so that it includes the writes of earlier leaders. */
static bool is_listed(const struct kube_reconciler *r)
{
    for (const struct source *s = r->sources; s; s = s->next)
        if (!s->o.spare && !kube_cache_is_listed(s->cache, s->lists))
            return false;
    return true;
}

bool kube_reconciler_synced(const struct kube_reconciler *r)
{
    for (const struct source *s = r->sources; s; s = s->next)
        if (!s->o.spare && !kube_cache_stats(s->cache).synced)
            return false;
    return true;
}

const struct kube_cache *kube_reconciler_cache(const struct kube_reconciler *r, size_t i,
                                               const char **ret_resource)
{
    const struct source *s = r->sources;

    for (; s && i > 0; i--)
        s = s->next;
    if (!s)
        return NULL;
    *ret_resource = s->o.watch.resource.plural;
    return s->cache;
}

/* ---- works */

static struct kube_work *work_begin(struct kube_reconciler *r, struct workqueue_key key)
{
    struct kube_work *w = memory_must(calloc(1, sizeof(*w)));

    *w = (struct kube_work){.r = r, .key = key, .next = r->works, .at = &r->works};
    if (w->next)
        w->next->at = &w->next;
    r->works = w;
    return w;
}

static void work_free(struct kube_work *w)
{
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    kube_request_cancel(w->run);
    if (w->free_data)
        w->free_data(w->data);
    free(w);
}

static void end(struct kube_work *w)
{
    struct kube_reconciler *r = w->r;

    workqueue_done(r->queue, w->key, now(r));
    work_free(w);
    wake(r);
}

const char *kube_work_key(const struct kube_work *w)
{
    return w->key.name;
}

const char *kube_work_ns(const struct kube_work *w)
{
    return w->key.ns;
}

void kube_work_attach(struct kube_work *w, void *data, void (*free_data)(void *data))
{
    w->data = data;
    w->free_data = free_data;
}

void kube_work_done(struct kube_work *w)
{
    workqueue_forget(w->r->queue, w->key);
    end(w);
}

void kube_work_after(struct kube_work *w, int64_t delay_ms)
{
    workqueue_add_at(w->r->queue, w->key, now(w->r) + (delay_ms > 0 ? delay_ms : 0));
    kube_work_done(w);
}

void kube_work_put_back(struct kube_work *w, int64_t delay_ms)
{
    workqueue_add_at(w->r->queue, w->key, now(w->r) + delay_ms);
    end(w);
}

void kube_work_retry(struct kube_work *w, int64_t retry_after_ms)
{
    workqueue_retry(w->r->queue, w->key, now(w->r), now(w->r) + retry_after_ms);
    end(w);
}

static void send_failed(struct kube_work *w, const struct err *err, int64_t retry_after_ms)
{
    if (err->kind != ERR_CONFLICT)
        w->r->o.problem(w->r->o.ctx, w->key.name, err);
    kube_work_retry(w, retry_after_ms);
}

static void on_reply(void *ctx, struct kube_reply *reply)
{
    struct kube_work *w = ctx;

    w->run = NULL;
    if (reply->err)
        send_failed(w, reply->err, reply->status.retry_after_ms);
    else
        kube_work_done(w);
}

void kube_work_send(struct kube_work *w, const struct kube_request *request)
{
    struct err err;

    w->run = kube_request_start(&w->r->transport, request, on_reply, w, &err);
    if (!w->run)
        send_failed(w, &err, -1);
}

/* ---- creation, leadership, shutdown */

static void report_drained(struct kube_reconciler *r)
{
    void (*drained)(void *ctx) = r->drained;

    if (!drained || r->works)
        return;
    r->drained = NULL;
    drained(r->drained_ctx);
}

static void take_keys(void *ctx)
{
    struct kube_reconciler *r = ctx;

    struct clock clock = kube_loop_clock(r->loop);
    int64_t until_ms = clock.mono_ms(clock.ctx) + KUBE_RECONCILER_TURN_MS;

    if (r->draining)
        report_drained(r);
    if (r->draining || !r->leads || !is_listed(r))
        return;
    for (int n = 0; n < WORKQUEUE_PARALLEL && clock.mono_ms(clock.ctx) < until_ms; n++) {
        struct workqueue_key key = workqueue_take(r->queue, now(r));
        if (!key.name)
            break;
        r->o.reconcile(r->o.ctx, work_begin(r, key));
    }
    int64_t next = workqueue_next_ms(r->queue);
    if (next <= now(r))
        wake(r);
    else if (next != INT64_MAX)
        kube_loop_timer_set(r->loop, &r->timer, next);
}

struct kube_reconciler *kube_reconciler_new(struct kube_loop *l, const struct kube_transport *t,
                                            const struct kube_reconciler_options *options)
{
    struct kube_reconciler *r = memory_must(calloc(1, sizeof(*r)));

    r->loop = l;
    r->transport = *t;
    r->o = *options;
    r->last_source = &r->sources;
    r->queue = workqueue_new();
    r->task = (struct kube_loop_task){.run = take_keys, .ctx = r};
    r->timer = (struct kube_loop_timer){.fire = take_keys, .ctx = r};
    return r;
}

void kube_reconciler_free(struct kube_reconciler *r)
{
    if (!r)
        return;
    kube_reconciler_lead(r, false);
    kube_loop_task_cancel(r->loop, &r->task);
    kube_loop_timer_cancel(r->loop, &r->timer);
    while (r->sources) {
        struct source *s = r->sources;
        r->sources = s->next;
        kube_cache_free(s->cache);
        free(s);
    }
    workqueue_free(r->queue);
    free(r);
}

static void begin_term(struct kube_reconciler *r)
{
    if (r->o.begins)
        r->o.begins(r->o.ctx);
    for (struct source *s = r->sources; s; s = s->next) {
        s->lists = kube_cache_lists(s->cache);
        if (s->lists)
            kube_cache_relist(s->cache, true);
    }
}

static void end_term(struct kube_reconciler *r)
{
    while (r->works)
        work_free(r->works);
    workqueue_clear(r->queue);
    kube_loop_timer_cancel(r->loop, &r->timer);
    if (r->o.ends)
        r->o.ends(r->o.ctx);
    wake(r);
}

void kube_reconciler_lead(struct kube_reconciler *r, bool leads)
{
    if (r->leads == leads)
        return;
    r->leads = leads;
    if (leads)
        begin_term(r);
    else
        end_term(r);
}

bool kube_reconciler_leads(const struct kube_reconciler *r)
{
    return r->leads;
}

void kube_reconciler_drain(struct kube_reconciler *r, void (*drained)(void *ctx), void *ctx)
{
    r->draining = true;
    r->drained = drained;
    r->drained_ctx = ctx;
    wake(r);
}

struct kube_workqueue_stats kube_reconciler_queue(const struct kube_reconciler *r)
{
    return workqueue_stats(r->queue);
}

struct kube_workqueue_unfinished kube_reconciler_unfinished(const struct kube_reconciler *r)
{
    return workqueue_unfinished(r->queue, now(r));
}

const char *kube_reconciler_name(const struct kube_reconciler *r)
{
    return r->o.name;
}
