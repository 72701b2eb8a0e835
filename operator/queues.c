/* queues.c - ask the API server for the resources of Kueue's group. */
#include "operator/queues.h"

#include "common/memory.h"
#include "kube/client.h"
#include "operator/actions.h"

#include <stdlib.h>

enum { ASK_MS = 60000, ASK_AGAIN_MS = 2000, MISSES = 2 };

struct queues {
    struct kube_loop *loop;
    const struct kube_transport *transport;
    struct kube_loop_timer timer;
    struct kube_request_run *call;
    bool (*needed)(void *ctx);
    void (*changed)(void *ctx);
    void *ctx;
    bool known, served;
    bool rests; /* nobody needed it when the timer fired last */
    int misses; /* consecutive answers without Workloads */
};

static void conclude(struct queues *q, bool served)
{
    bool changed = !q->known || q->served != served;

    q->misses = served ? 0 : q->misses + 1;
    if (!changed || (!served && q->misses < MISSES))
        return;
    q->known = true;
    q->served = served;
    q->changed(q->ctx);
}

static void on_answer(void *ctx, struct kube_reply *reply)
{
    struct queues *q = ctx;
    bool missing = reply->err && reply->err->kind == ERR_NOT_FOUND;
    const cJSON *list = json_child(reply->object, "resources");

    q->call = NULL;
    if (missing || reply->object)
        conclude(q, json_item_with(list, "name", WORKLOADS.plural) != NULL);
    int64_t wait_ms = q->known ? ASK_MS : ASK_AGAIN_MS;
    if (reply->err && wait_ms < reply->status.retry_after_ms)
        wait_ms = reply->status.retry_after_ms;
    kube_loop_timer_set(q->loop, &q->timer, kube_loop_now_ms(q->loop) + wait_ms);
}

static void ask(void *ctx)
{
    static const struct kube_resource GROUP = {WORKLOAD_GROUP, WORKLOAD_VERSION, NULL, NULL, true};
    struct queues *q = ctx;
    struct err err;

    q->rests = !q->served && q->misses >= MISSES && !q->needed(q->ctx);
    if (q->rests) {
        q->known = false;
        return;
    }
    q->call = kube_request_start(q->transport, &(struct kube_request){.verb = KUBE_LIST, .resource = &GROUP},
                                 on_answer, q, &err);
    if (!q->call)
        kube_loop_timer_set(q->loop, &q->timer, kube_loop_now_ms(q->loop) + ASK_AGAIN_MS);
}

struct queues *queues_new(struct kube_loop *l, const struct kube_transport *t, enum queues_use use,
                          bool (*needed)(void *ctx), void (*changed)(void *ctx), void *ctx)
{
    struct queues *q = memory_must(calloc(1, sizeof(*q)));

    *q = (struct queues){.loop = l,
                         .transport = t,
                         .timer = {.fire = ask, .ctx = q},
                         .needed = needed,
                         .changed = changed,
                         .ctx = ctx,
                         .known = use != QUEUES_AUTO,
                         .served = use == QUEUES_ON};
    if (use == QUEUES_AUTO)
        kube_loop_timer_set(l, &q->timer, kube_loop_now_ms(l));
    return q;
}

void queues_need(struct queues *q)
{
    if (!q->rests)
        return;
    q->rests = false;
    q->misses = 0;
    kube_loop_timer_set(q->loop, &q->timer, kube_loop_now_ms(q->loop));
}

void queues_free(struct queues *q)
{
    if (!q)
        return;
    kube_request_cancel(q->call);
    kube_loop_timer_cancel(q->loop, &q->timer);
    free(q);
}

bool queues_are_known(const struct queues *q)
{
    return q->known;
}

bool queues_are_served(const struct queues *q)
{
    return q->served;
}
