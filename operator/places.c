/* places.c - poll the pending Workloads of LocalQueues. */
#include "operator/places.h"

#include "common/memory.h"
#include "kube/client.h"
#include "kube/store.h"
#include "operator/api/workload.h"

#include <stdlib.h>

enum { SOON_MS = 10000, REST_MS = 60000, PLACE_LIMIT = 1 << 24 };

struct local_queue {
    int64_t needed_ms, asked_ms, due_ms;
};

struct places {
    struct kube_loop *loop;
    const struct kube_transport *transport;
    struct kube_loop_timer timer;
    struct kube_request_run *call;
    struct kube_store *queues;            /* struct local_queue; its group is the namespace */
    const struct kube_store_entry *asked; /* by the call */
    void (*found)(void *ctx, const char *ns, const char *job_uid, int place);
    void *ctx;
    int64_t rest_until_ms; /* the API does not answer */
};

static struct local_queue *queue_at(const struct kube_store_entry *e)
{
    return e->value;
}

static void forget_unneeded(struct places *p, int64_t now_ms)
{
    kube_store_mark(p->queues);
    for (const struct kube_store_entry *e = kube_store_first(p->queues); e; e = kube_store_next(p->queues, e))
        if (queue_at(e)->needed_ms + PLACES_FRESH_MS > now_ms)
            kube_store_unmark_one(e);
    kube_store_sweep(p->queues, NULL, NULL);
}

static const struct kube_store_entry *next_due(const struct places *p)
{
    const struct kube_store_entry *first = NULL;

    for (const struct kube_store_entry *e = kube_store_first(p->queues); e; e = kube_store_next(p->queues, e))
        if (!first || queue_at(e)->due_ms < queue_at(first)->due_ms)
            first = e;
    return first;
}

static void set_timer(struct places *p)
{
    const struct kube_store_entry *e = p->call ? NULL : next_due(p);
    int64_t due_ms = e ? queue_at(e)->due_ms : 0;

    if (e)
        kube_loop_timer_set(p->loop, &p->timer, due_ms > p->rest_until_ms ? due_ms : p->rest_until_ms);
}

static void report(const struct places *p, const cJSON *items)
{
    const cJSON *item, *owner;

    cJSON_ArrayForEach(item, items)
    {
        int64_t place = json_i64(item, "positionInClusterQueue", -1);
        cJSON_ArrayForEach(owner, json_find(item, (const char *[]){"metadata", "ownerReferences", NULL}))
        {
            const char *uid = json_str(owner, "uid");
            if (uid && place >= 0 && place < PLACE_LIMIT)
                p->found(p->ctx, p->asked->ns, uid, (int)place + 1);
        }
    }
}

static void on_answer(void *ctx, struct kube_reply *reply)
{
    struct places *p = ctx;
    struct local_queue *q = queue_at(p->asked);

    p->call = NULL;
    q->due_ms = q->asked_ms + (reply->object ? PLACES_EVERY_MS : REST_MS);
    if (reply->object)
        report(p, json_child(reply->object, "items"));
    else if (reply->err && reply->err->kind != ERR_NOT_FOUND)
        p->rest_until_ms = kube_loop_now_ms(p->loop) + REST_MS;
    set_timer(p);
}

static void ask(void *ctx)
{
    static const struct kube_resource QUEUES = {"visibility." WORKLOAD_GROUP, WORKLOAD_VERSION, "localqueues",
                                                "LocalQueue", false};
    struct places *p = ctx;
    int64_t now_ms = kube_loop_now_ms(p->loop);
    struct err err;

    forget_unneeded(p, now_ms);
    p->asked = next_due(p);
    if (!p->asked || queue_at(p->asked)->due_ms > now_ms) {
        set_timer(p);
        return;
    }
    queue_at(p->asked)->asked_ms = now_ms;
    p->call = kube_request_start(p->transport,
                                 &(struct kube_request){.verb = KUBE_GET,
                                                        .resource = &QUEUES,
                                                        .ns = p->asked->ns,
                                                        .name = p->asked->name,
                                                        .subresource = "pendingworkloads"},
                                 on_answer, p, &err);
    if (!p->call)
        p->rest_until_ms = now_ms + REST_MS;
    set_timer(p);
}

static struct local_queue *queue_of(struct places *p, const char *ns, const char *name)
{
    const struct kube_store_entry *e = kube_store_get(p->queues, ns, name);
    int of_ns = 0;

    if (e)
        return queue_at(e);
    for (e = kube_store_group(p->queues, ns); e; e = kube_store_group_next(e))
        of_ns++;
    if (kube_store_count(p->queues) >= PLACES_MAX || of_ns >= PLACES_NS_MAX)
        return NULL;
    struct local_queue *q = memory_must(calloc(1, sizeof(*q)));
    q->asked_ms = -SOON_MS;
    kube_store_put(p->queues, ns, name, NULL, ns, q);
    return q;
}

void places_need(struct places *p, const char *ns, const char *queue, bool known)
{
    struct local_queue *q = queue_of(p, ns, queue);

    if (!q)
        return;
    q->needed_ms = kube_loop_now_ms(p->loop);
    if (!known && q->due_ms > q->asked_ms + SOON_MS && q->due_ms <= q->asked_ms + PLACES_EVERY_MS)
        q->due_ms = q->asked_ms + SOON_MS;
    set_timer(p);
}

struct places *places_new(struct kube_loop *l, const struct kube_transport *t,
                          void (*found)(void *ctx, const char *ns, const char *job_uid, int place), void *ctx)
{
    struct places *p = memory_must(calloc(1, sizeof(*p)));

    *p = (struct places){.loop = l,
                         .transport = t,
                         .timer = {.fire = ask, .ctx = p},
                         .queues = kube_store_new(free),
                         .found = found,
                         .ctx = ctx};
    return p;
}

void places_free(struct places *p)
{
    if (!p)
        return;
    kube_request_cancel(p->call);
    kube_loop_timer_cancel(p->loop, &p->timer);
    kube_store_free(p->queues);
    free(p);
}
