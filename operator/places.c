/* places.c - poll the pending Workloads of LocalQueues. */
#include "operator/places.h"

#include "common/memory.h"
#include "kube/client.h"
#include "operator/api/workload.h"

#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 10000, REST_MS = 60000, PLACE_LIMIT = 1 << 24 };

struct local_queue {
    struct local_queue *next;
    char *ns, *name;
    int64_t needed_ms, asked_ms, due_ms;
};

struct places {
    struct kube_loop *loop;
    const struct kube_transport *transport;
    struct kube_loop_timer timer;
    struct kube_request_run *call;
    struct local_queue *queues, *asked; /* asked: by the call */
    void (*found)(void *ctx, const char *ns, const char *job_uid, int place);
    void *ctx;
    int64_t rest_until_ms; /* the API does not answer */
};

static void free_queue(struct local_queue *q)
{
    free(q->ns);
    free(q->name);
    free(q);
}

static void forget_unneeded(struct places *p, int64_t now_ms)
{
    for (struct local_queue **at = &p->queues; *at;) {
        struct local_queue *q = *at;
        if (q->needed_ms + PLACES_FRESH_MS > now_ms) {
            at = &q->next;
            continue;
        }
        *at = q->next;
        free_queue(q);
    }
}

static struct local_queue *next_due(const struct places *p)
{
    struct local_queue *first = p->queues;

    for (struct local_queue *q = first; q; q = q->next)
        if (q->due_ms < first->due_ms)
            first = q;
    return first;
}

static void set_timer(struct places *p)
{
    const struct local_queue *q = p->call ? NULL : next_due(p);

    if (q)
        kube_loop_timer_set(p->loop, &p->timer, q->due_ms > p->rest_until_ms ? q->due_ms : p->rest_until_ms);
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
    int64_t now_ms = kube_loop_now_ms(p->loop);

    p->call = NULL;
    p->asked->due_ms = p->asked->asked_ms + (reply->object ? PLACES_EVERY_MS : REST_MS);
    if (reply->object)
        report(p, json_child(reply->object, "items"));
    else if (reply->err && reply->err->kind != ERR_NOT_FOUND)
        p->rest_until_ms = now_ms + REST_MS;
    set_timer(p);
}

static void ask(void *ctx)
{
    static const struct kube_resource QUEUES = {"visibility." WORKLOAD_GROUP, WORKLOAD_VERSION, "localqueues",
                                                "LocalQueue", false};
    struct places *p = ctx;
    struct err err;

    forget_unneeded(p, kube_loop_now_ms(p->loop));
    p->asked = next_due(p);
    if (!p->asked || p->asked->due_ms > kube_loop_now_ms(p->loop)) {
        set_timer(p);
        return;
    }
    p->asked->asked_ms = kube_loop_now_ms(p->loop);
    p->call = kube_request_start(p->transport,
                                 &(struct kube_request){.verb = KUBE_GET,
                                                        .resource = &QUEUES,
                                                        .ns = p->asked->ns,
                                                        .name = p->asked->name,
                                                        .subresource = "pendingworkloads"},
                                 on_answer, p, &err);
    if (!p->call)
        p->rest_until_ms = p->asked->asked_ms + REST_MS;
    set_timer(p);
}

static struct local_queue *queue_of(struct places *p, const char *ns, const char *name)
{
    int n = 0, of_ns = 0;

    for (struct local_queue *q = p->queues; q; q = q->next) {
        bool same_ns = strcmp(q->ns, ns) == 0;
        if (same_ns && strcmp(q->name, name) == 0)
            return q;
        n++;
        of_ns += same_ns;
    }
    if (n >= PLACES_MAX || of_ns >= PLACES_NS_MAX)
        return NULL;
    struct local_queue *q = memory_must(calloc(1, sizeof(*q)));
    q->ns = memory_strdup(ns);
    q->name = memory_strdup(name);
    q->asked_ms = -SOON_MS;
    q->next = p->queues;
    return p->queues = q;
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

    *p = (struct places){
        .loop = l, .transport = t, .timer = {.fire = ask, .ctx = p}, .found = found, .ctx = ctx};
    return p;
}

void places_free(struct places *p)
{
    if (!p)
        return;
    kube_request_cancel(p->call);
    kube_loop_timer_cancel(p->loop, &p->timer);
    while (p->queues) {
        struct local_queue *q = p->queues;
        p->queues = q->next;
        free_queue(q);
    }
    free(p);
}
