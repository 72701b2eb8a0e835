/* reconciler.c - joins caches, queue, calls and loop. */
#include "kube/reconciler.h"

#include <stdlib.h>
#include <string.h>

struct source {
    struct reconciler *r;
    struct source *next;
    struct reconciler_source o;
    struct cache *cache;
};

struct reconciler {
    struct loop *loop;
    struct transport transport;
    struct reconciler_options o;
    struct source *sources, **last_source;
    uint64_t n_sources;
    struct workqueue *queue;
    struct loop_task task;
    struct loop_timer timer;
    struct work *works; /* under way */
    int n_works;
    bool leads, draining;
    void (*drained)(void *ctx);
    void *drained_ctx;
};

struct work {
    struct reconciler *r;
    struct work *next, **at;
    const char *key; /* the queue's, until workqueue_done */
    void *data;
    void (*free_data)(void *data);
    void (*answered)(void *ctx, struct work *w, struct kube_reply *reply);
    struct kube_call *call;
    struct loop_task unsent; /* tells of `why` */
    struct err why;
};

static void *checked(void *p)
{
    if (!p)
        abort();
    return p;
}

static int64_t now(const struct reconciler *r)
{
    return loop_now_ms(r->loop);
}

static void wake(void *ctx)
{
    struct reconciler *r = ctx;

    loop_task_add(r->loop, &r->task);
}

void reconciler_add(struct reconciler *r, const char *key)
{
    if (!key[0] || !r->leads)
        return;
    workqueue_add(r->queue, key, now(r));
    wake(r);
}

/* ---- sources */

static void on_changed(void *ctx, const struct store_entry *e)
{
    struct source *s = ctx;

    if (s->o.map)
        s->o.map(s->r, e);
    else
        reconciler_add(s->r, e->group);
}

static void on_gone(void *ctx, const struct store_entry *e)
{
    struct source *s = ctx;

    if (s->o.gone)
        s->o.gone(s->r->o.ctx, e);
}

/* Keys were added all along; the list that completes the picture lets them go. */
static void on_synced(void *ctx)
{
    wake(((struct source *)ctx)->r);
}

static void on_problem(void *ctx, const struct err *err)
{
    struct source *s = ctx;

    s->r->o.problem(s->r->o.ctx, s->o.watch.resource.plural, err);
}

struct cache *reconciler_watch(struct reconciler *r, const struct reconciler_source *source)
{
    struct source *s = checked(calloc(1, sizeof(*s)));

    s->r = r;
    s->o = *source;
    s->o.watch.seed = r->o.seed + r->n_sources++;
    s->cache = cache_new(r->loop, &r->transport,
                         &(struct cache_options){.watch = s->o.watch,
                                                 .decode = source->decode,
                                                 .free_value = source->free_value,
                                                 .changed = on_changed,
                                                 .gone = on_gone,
                                                 .synced = on_synced,
                                                 .problem = on_problem,
                                                 .ctx = s});
    *r->last_source = s;
    r->last_source = &s->next;
    return s->cache;
}

bool reconciler_synced(const struct reconciler *r)
{
    for (const struct source *s = r->sources; s; s = s->next)
        if (!cache_stats(s->cache).synced)
            return false;
    return true;
}

int64_t reconciler_progress_ms(const struct reconciler *r)
{
    int64_t least = INT64_MAX;

    for (const struct source *s = r->sources; s; s = s->next) {
        int64_t at = cache_stats(s->cache).progress_ms;
        least = at < least ? at : least;
    }
    return least;
}

const struct cache *reconciler_cache(const struct reconciler *r, size_t i, const char **ret_resource)
{
    const struct source *s = r->sources;

    for (; s && i > 0; i--)
        s = s->next;
    if (!s)
        return NULL;
    *ret_resource = s->o.watch.resource.plural;
    return s->cache;
}

/* ---- one key */

static struct work *work_new(struct reconciler *r, const char *key)
{
    struct work *w = checked(calloc(1, sizeof(*w)));

    *w = (struct work){.r = r, .key = key, .next = r->works, .at = &r->works};
    if (w->next)
        w->next->at = &w->next;
    r->works = w;
    r->n_works++;
    return w;
}

static void work_free(struct work *w)
{
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    w->r->n_works--;
    kube_call_cancel(w->call);
    loop_task_cancel(w->r->loop, &w->unsent);
    if (w->free_data)
        w->free_data(w->data);
    free(w);
}

static void end(struct work *w)
{
    struct reconciler *r = w->r;

    workqueue_done(r->queue, w->key, now(r));
    work_free(w);
    wake(r);
    if (r->draining && r->n_works == 0 && r->drained)
        r->drained(r->drained_ctx);
}

const char *work_key(const struct work *w)
{
    return w->key;
}

void work_attach(struct work *w, void *data, void (*free_data)(void *data))
{
    w->data = data;
    w->free_data = free_data;
}

void *work_data(const struct work *w)
{
    return w->data;
}

void work_done(struct work *w)
{
    workqueue_forget(w->r->queue, w->key);
    end(w);
}

void work_after(struct work *w, int64_t delay_ms)
{
    workqueue_add_at(w->r->queue, w->key, now(w->r) + (delay_ms > 0 ? delay_ms : 0));
    work_done(w);
}

void work_retry(struct work *w, int64_t retry_after_ms)
{
    workqueue_retry(w->r->queue, w->key, now(w->r), now(w->r) + retry_after_ms);
    end(w);
}

static void answered_by_rule(void *ctx, struct work *w, struct kube_reply *reply)
{
    if (!reply->err) {
        work_done(w);
        return;
    }
    if (reply->err->kind != ERR_CONFLICT)
        w->r->o.problem(ctx, w->key, reply->err);
    work_retry(w, reply->status.retry_after_ms);
}

static void on_reply(void *ctx, struct kube_reply *reply)
{
    struct work *w = ctx;

    w->call = NULL;
    w->answered(w->r->o.ctx, w, reply);
}

static void on_unsent(void *ctx)
{
    struct work *w = ctx;
    struct kube_reply reply = {.status = {.retry_after_ms = -1}, .err = &w->why};

    w->answered(w->r->o.ctx, w, &reply);
}

void work_send(struct work *w, const struct kube_request *request,
               void (*done)(void *ctx, struct work *w, struct kube_reply *reply))
{
    w->answered = done ? done : answered_by_rule;
    w->call = kube_call_start(&w->r->transport, request, on_reply, w, &w->why);
    if (w->call)
        return;
    w->unsent = (struct loop_task){.run = on_unsent, .ctx = w};
    loop_task_add(w->r->loop, &w->unsent);
}

/* ---- its life */

static void work(void *ctx)
{
    struct reconciler *r = ctx;
    const char *key;

    if (r->draining || !r->leads || !reconciler_synced(r))
        return;
    for (int n = 0; n < RECONCILER_KEYS_PER_TURN && r->n_works < r->o.parallel; n++) {
        key = workqueue_take(r->queue, now(r));
        if (!key)
            break;
        r->o.reconcile(r->o.ctx, work_new(r, key));
    }
    int64_t next = workqueue_next_ms(r->queue);
    if (next > now(r) && next != INT64_MAX)
        loop_timer_set(r->loop, &r->timer, next);
    else if (next <= now(r) && r->n_works < r->o.parallel)
        wake(r);
}

struct reconciler *reconciler_new(struct loop *l, const struct transport *t,
                                  const struct reconciler_options *options)
{
    struct reconciler *r = checked(calloc(1, sizeof(*r)));

    r->loop = l;
    r->transport = *t;
    r->o = *options;
    if (r->o.parallel <= 0)
        r->o.parallel = RECONCILER_PARALLEL;
    r->leads = true;
    r->last_source = &r->sources;
    r->queue = workqueue_new();
    r->task = (struct loop_task){.run = work, .ctx = r};
    r->timer = (struct loop_timer){.fire = work, .ctx = r};
    return r;
}

void reconciler_free(struct reconciler *r)
{
    if (!r)
        return;
    while (r->works)
        work_free(r->works);
    loop_task_cancel(r->loop, &r->task);
    loop_timer_cancel(r->loop, &r->timer);
    while (r->sources) {
        struct source *s = r->sources;
        r->sources = s->next;
        cache_free(s->cache);
        free(s);
    }
    workqueue_free(r->queue);
    free(r);
}

/* Keys were not kept meanwhile: every object is a change now. */
static void add_all(struct reconciler *r)
{
    for (struct source *s = r->sources; s; s = s->next) {
        const struct store *store = cache_store(s->cache);
        for (const struct store_entry *e = store_first(store); e; e = store_next(store, e))
            on_changed(s, e);
    }
}

void reconciler_lead(struct reconciler *r, bool leads)
{
    bool begins = leads && !r->leads;

    r->leads = leads;
    if (!begins)
        return;
    add_all(r);
    wake(r);
}

void reconciler_drain(struct reconciler *r, void (*drained)(void *ctx), void *ctx)
{
    r->draining = true;
    r->drained = drained;
    r->drained_ctx = ctx;
    if (r->n_works == 0)
        drained(ctx);
}

struct workqueue_stats reconciler_queue(const struct reconciler *r)
{
    return workqueue_stats(r->queue);
}

struct workqueue_unfinished reconciler_unfinished(const struct reconciler *r)
{
    return workqueue_unfinished(r->queue, now(r));
}

const char *reconciler_name(const struct reconciler *r)
{
    return r->o.name;
}
