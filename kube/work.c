/* work.c - the reconcile of one key: its requests, and the ways to end it. */
#include "kube/work.h"

#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

struct kube_work {
    struct kube_works *ws;
    struct kube_work *next, **at;
    struct workqueue_key key; /* borrowed from the queue until workqueue_done */
    void *data;
    void (*free_data)(void *data);
    void (*answered)(void *ctx, struct kube_work *w, struct kube_reply *reply);
    struct kube_request_run *run;
    struct kube_loop_task unsent; /* passes `why` to `answered` */
    struct err why;
};

static int64_t now(const struct kube_works *ws)
{
    return kube_loop_now_ms(ws->loop);
}

struct kube_work *kube_works_begin(struct kube_works *ws, struct workqueue_key key)
{
    struct kube_work *w = memory_must(calloc(1, sizeof(*w)));

    *w = (struct kube_work){.ws = ws, .key = key, .next = ws->first, .at = &ws->first};
    if (w->next)
        w->next->at = &w->next;
    ws->first = w;
    ws->n++;
    return w;
}

static void work_free(struct kube_work *w)
{
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    w->ws->n--;
    kube_request_cancel(w->run);
    kube_loop_task_cancel(w->ws->loop, &w->unsent);
    if (w->free_data)
        w->free_data(w->data);
    free(w);
}

void kube_works_free(struct kube_works *ws)
{
    while (ws->first)
        work_free(ws->first);
}

static void end(struct kube_work *w)
{
    struct kube_works *ws = w->ws;

    workqueue_done(ws->queue, w->key, now(ws));
    work_free(w);
    ws->ended(ws->owner);
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
    workqueue_forget(w->ws->queue, w->key);
    end(w);
}

void kube_work_after(struct kube_work *w, int64_t delay_ms)
{
    workqueue_add_at(w->ws->queue, w->key, now(w->ws) + (delay_ms > 0 ? delay_ms : 0));
    kube_work_done(w);
}

void kube_work_retry(struct kube_work *w, int64_t retry_after_ms)
{
    workqueue_retry(w->ws->queue, w->key, now(w->ws), now(w->ws) + retry_after_ms);
    end(w);
}

static void answered_by_rule(void *ctx, struct kube_work *w, struct kube_reply *reply)
{
    if (!reply->err) {
        kube_work_done(w);
        return;
    }
    if (reply->err->kind != ERR_CONFLICT)
        w->ws->problem(ctx, w->key.name, reply->err);
    kube_work_retry(w, reply->status.retry_after_ms);
}

static void on_reply(void *ctx, struct kube_reply *reply)
{
    struct kube_work *w = ctx;

    w->run = NULL;
    w->answered(w->ws->ctx, w, reply);
}

static void on_unsent(void *ctx)
{
    struct kube_work *w = ctx;
    struct kube_reply reply = {.status = {.retry_after_ms = -1}, .err = &w->why};

    w->answered(w->ws->ctx, w, &reply);
}

void kube_work_send(struct kube_work *w, const struct kube_request *request,
                    void (*done)(void *ctx, struct kube_work *w, struct kube_reply *reply))
{
    w->answered = done ? done : answered_by_rule;
    w->run = kube_request_start(w->ws->transport, request, on_reply, w, &w->why);
    if (w->run)
        return;
    w->unsent = (struct kube_loop_task){.run = on_unsent, .ctx = w};
    kube_loop_task_add(w->ws->loop, &w->unsent);
}
