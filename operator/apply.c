/* apply.c - run the actions of a plan one after the other; creates of pods run side by side, and so do deletes of pods. */
#include "operator/apply.h"

#include "common/memory.h"

#include <stdlib.h>

/* Creates or deletes of pods at a time: as many as there are connections. */
enum { STEPS_MAX = 8 };

struct apply {
    struct kube_recorder *recorder;
    struct apply_target target;
    const struct plan *plan;
    void (*done)(void *ctx, const struct apply_result *result);
    void *ctx;
    int at; /* the next action */
    struct step_pass pass;
    struct step steps[STEPS_MAX];
    int n_steps;  /* under way */
    int n_before; /* pods created before the last one that went alone */
    bool running; /* inside run: what ends there is seen there */
    struct apply_result result;
};

static void run(struct apply *ap);

static void record(struct apply *ap, const struct action *act)
{
    struct kube_recorder_object o = {.api_version = TRAINJOB_API_VERSION,
                                     .kind = TRAINJOB_KIND,
                                     .ns = ap->target.ns,
                                     .name = ap->target.job,
                                     .uid = ap->target.uid};

    kube_recorder_event(ap->recorder, &o, act->warning, act->reason, "%s", act->message);
}

static void finish(struct apply *ap)
{
    if (ap->result.ignored && !ap->target.ignored_told)
        record(ap, &(struct action){.warning = true, .reason = "Ignored", .message = ap->result.ignored});
    ap->done(ap->ctx, &ap->result);
    free(ap);
}

static void on_step_ended(void *ctx)
{
    struct apply *ap = ctx;

    ap->n_steps--;
    if (!ap->running)
        run(ap);
}

static void begin(struct apply *ap, const struct action *act)
{
    struct step *s = ap->steps;

    while (s->act)
        s++;
    ap->n_steps++;
    if (act->first)
        ap->n_before = ap->result.pods_created;
    step_begin(s, &ap->pass, act);
}

/* Alone, but for pods. They may be deleted beside each other. They may be created beside each other, too: first one of each
 * replicaSpec, and one more at a time with each that went well, so that a quota that is used up is asked once. */
static bool may_begin(const struct apply *ap, const struct action *act)
{
    if (ap->n_steps == 0)
        return true;
    if (ap->n_steps == STEPS_MAX || act->child != CHILD_POD || act->kind != act[-1].kind ||
        act[-1].child != CHILD_POD)
        return false;
    return act->kind == ACTION_DELETE || (act->kind == ACTION_CREATE && !act->first &&
                                          ap->n_steps <= ap->result.pods_created - ap->n_before);
}

/* From the next action on, as far as one may go. */
static void run(struct apply *ap)
{
    ap->running = true;
    while (ap->result.ok && ap->at < ap->plan->n_actions && may_begin(ap, &ap->plan->actions[ap->at]) &&
           apply_may_go_on(&ap->target)) {
        const struct action *act = &ap->plan->actions[ap->at++];
        if (act->kind == ACTION_EVENT)
            record(ap, act);
        else
            begin(ap, act);
    }
    ap->running = false;
    if (ap->n_steps == 0)
        finish(ap);
}

struct apply *apply_new(const struct kube_transport *t, struct kube_recorder *r,
                        const struct apply_target *target, const struct plan *plan, struct arena *a,
                        void (*done)(void *ctx, const struct apply_result *result), void *ctx)
{
    struct apply *ap = memory_must(calloc(1, sizeof(*ap)));

    *ap = (struct apply){.recorder = r, .target = *target, .plan = plan, .done = done, .ctx = ctx};
    ap->pass = (struct step_pass){
        .t = t, .target = &ap->target, .a = a, .result = &ap->result, .ended = on_step_ended, .ctx = ap};
    ap->result = (struct apply_result){.ok = true, .retry_after_ms = -1};
    ap->result.expected = arena_array(a, (size_t)plan->n_actions + 1, struct expectation);
    ap->result.gone_uids = arena_array(a, (size_t)plan->n_actions + 1, const char *);
    return ap;
}

void apply_run(struct apply *ap)
{
    run(ap);
}

void apply_cancel(struct apply *ap)
{
    if (!ap)
        return;
    for (int i = 0; i < STEPS_MAX; i++)
        step_cancel(&ap->steps[i]);
    free(ap);
}
