/* poller.c - poll the progress of running jobs, and check their answers. */
#include "operator/poller.h"

#include "common/backoff.h"
#include "common/memory.h"
#include "common/random.h"
#include "kube/fairqueue.h"
#include "kube/store.h"
#include "operator/plan/statusprogress.h"
#include "operator/podget.h"

#include <stdlib.h>
#include <string.h>

enum { RESERVED = 2, FAILURES_MAX = 16 };

static const struct fairqueue_limits LIMITS = {.slots = POLLER_SLOTS - RESERVED,
                                               .reserved = RESERVED,
                                               .share_max = POLLER_NS_MAX,
                                               .slow_ms = INT64_MAX,
                                               .later_ms = INT64_MAX};

struct slot {
    struct podget get;
    struct polled *of; /* NULL: free */
    struct poller *poller;
};

/* One job. */
struct polled {
    struct poller *poller;
    struct poller_target target; /* with copies of the strings */
    struct fairqueue_item turn;
    struct heap_node due; /* in the heap unless the job is queued or in flight */
    struct slot *out;
    int64_t begun_ms;
    int failures; /* in a row */
};

struct poller {
    struct kube_loop *loop;
    struct poller_options o;
    struct kube_store *jobs; /* struct polled by UID */
    struct fairqueue *turns;
    struct heap due;
    struct kube_loop_timer timer;
    struct slot slots[POLLER_SLOTS];
    struct poller_counts counts;
    uint64_t random;
};

static struct polled *polled_of(void *p, size_t offset)
{
    return (struct polled *)(void *)((char *)p - offset);
}

static void set_timer(struct poller *p)
{
    const struct heap_node *first = heap_first(&p->due);

    if (first)
        kube_loop_timer_set(p->loop, &p->timer, first->at_ms);
    else
        kube_loop_timer_cancel(p->loop, &p->timer);
}

static void end(struct polled *j, enum jobprogress_verdict verdict)
{
    struct poller *p = j->poller;
    uint64_t *const counts[] = {[JOBPROGRESS_OK] = &p->counts.ok,
                                [JOBPROGRESS_OTHERS] = &p->counts.dropped,
                                [JOBPROGRESS_GARBAGE] = &p->counts.failed};

    ++*counts[verdict];
    if (verdict == JOBPROGRESS_OK)
        j->failures = 0;
    else if (j->failures < FAILURES_MAX)
        j->failures++;
    fairqueue_end(p->turns, &j->turn);
    heap_add(&p->due, &j->due,
             j->begun_ms + backoff_delay_ms(POLLER_INTERVAL_MS, POLLER_BACKOFF_MS, j->failures));
}

static void begin(struct poller *p, struct polled *j)
{
    struct slot *s = p->slots;
    char url[PODADDRESS_URL_BYTES];

    fairqueue_go(p->turns, &j->turn, kube_loop_now_ms(p->loop));
    j->begun_ms = kube_loop_now_ms(p->loop);
    while (s->of)
        s++;
    if (!p->o.url(j->target.ip, url) || !podget_start(&s->get, url)) {
        end(j, JOBPROGRESS_GARBAGE);
        return;
    }
    s->of = j;
    j->out = s;
}

static void asked_free(void *value)
{
    struct polled *j = value;
    struct poller *p = j->poller;

    if (j->out) {
        podget_release(&j->out->get);
        j->out->of = NULL;
    }
    fairqueue_leave(p->turns, &j->turn);
    heap_remove(&p->due, &j->due);
    free((char *)j->target.ns);
    free((char *)j->target.job_uid);
    free((char *)j->target.pod_uid);
    free((char *)j->target.ip);
    free(j);
}

/* Queue the due jobs, and start polls while slots are free. */
static void start_due(void *ctx)
{
    struct poller *p = ctx;
    int64_t now = kube_loop_now_ms(p->loop);
    struct heap_node *n;
    struct fairqueue_item *it;

    while ((n = heap_first(&p->due)) && n->at_ms <= now) {
        struct polled *j = polled_of(n, offsetof(struct polled, due));
        heap_remove(&p->due, n);
        fairqueue_wait(p->turns, &j->turn, false, now);
    }
    while ((it = fairqueue_next(p->turns, now)))
        begin(p, polled_of(it, offsetof(struct polled, turn)));
    set_timer(p);
}

static void on_done(void *ctx, const struct sv *body)
{
    struct slot *s = ctx;
    struct polled *j = s->of;
    struct poller *p = s->poller;
    struct jobprogress_answer answer;
    enum jobprogress_verdict verdict = JOBPROGRESS_GARBAGE;

    s->of = NULL;
    j->out = NULL;
    if (body)
        verdict = jobprogress_answer(*body, j->target.job_uid, j->target.attempt, &answer);
    end(j, verdict);
    if (verdict == JOBPROGRESS_OK)
        p->o.answered(p->o.ctx, &j->target, &answer);
    start_due(p);
}

struct poller *poller_new(struct kube_loop *l, const struct poller_options *options)
{
    struct poller *p = memory_must(calloc(1, sizeof(*p)));

    p->loop = l;
    p->o = *options;
    p->random = options->seed;
    p->jobs = kube_store_new(asked_free);
    p->turns = fairqueue_new(&LIMITS);
    p->timer = (struct kube_loop_timer){.fire = start_due, .ctx = p};
    for (int i = 0; i < POLLER_SLOTS; i++) {
        p->slots[i].poller = p;
        p->slots[i].get = (struct podget){.loop = l, .done = on_done, .ctx = &p->slots[i]};
    }
    return p;
}

void poller_free(struct poller *p)
{
    if (!p)
        return;
    kube_store_free(p->jobs);
    kube_loop_timer_cancel(p->loop, &p->timer);
    for (int i = 0; i < POLLER_SLOTS; i++)
        podget_release(&p->slots[i].get);
    fairqueue_free(p->turns);
    heap_release(&p->due);
    free(p);
}

static bool is_same(const struct poller_target *a, const struct poller_target *b)
{
    return strcmp(a->ns, b->ns) == 0 && strcmp(a->pod_uid, b->pod_uid) == 0 && strcmp(a->ip, b->ip) == 0 &&
           a->attempt == b->attempt;
}

void poller_add(struct poller *p, const struct poller_target *target)
{
    const struct kube_store_entry *e = kube_store_get(p->jobs, "", target->job_uid);
    char url[PODADDRESS_URL_BYTES];

    if (e && is_same(&((const struct polled *)e->value)->target, target))
        return;
    poller_forget(p, target->job_uid);
    if (!p->o.url(target->ip, url))
        return;
    struct polled *j = memory_must(calloc(1, sizeof(*j)));
    j->poller = p;
    j->target =
        (struct poller_target){memory_strdup(target->ns), memory_strdup(target->job_uid),
                               memory_strdup(target->pod_uid), memory_strdup(target->ip), target->attempt};
    fairqueue_join(p->turns, &j->turn, j->target.ns);
    heap_add(&p->due, &j->due,
             kube_loop_now_ms(p->loop) + (int64_t)(random_next(&p->random) % POLLER_INTERVAL_MS));
    kube_store_put(p->jobs, "", j->target.job_uid, NULL, NULL, j);
    set_timer(p);
}

void poller_follow(struct poller *p, const struct plan_input *in)
{
    const struct pod *pod = progress_pod(in);

    if (pod)
        poller_add(p, &(struct poller_target){in->job->ns, in->job->uid, pod->uid, pod->ip, pod->attempt});
    else
        poller_forget(p, in->job->uid);
}

void poller_forget(struct poller *p, const char *job_uid)
{
    if (kube_store_remove(p->jobs, "", job_uid)) /* its slot may be free for another job */
        kube_loop_timer_set(p->loop, &p->timer, kube_loop_now_ms(p->loop));
}

struct poller_counts poller_counts(const struct poller *p)
{
    struct poller_counts c = p->counts;

    for (int i = 0; i < POLLER_SLOTS; i++)
        c.out += p->slots[i].of != NULL;
    return c;
}
