/* apply.c - which action begins when: one after the other, but for pods. */
#include "operator/apply.h"

#include "common/memory.h"
#include "operator/step.h"

#include <stdlib.h>

/* Creates of pods at a time: as many as there are connections. */
enum { STEPS_MAX = 8 };

struct apply {
    struct recorder *recorder;
    struct apply_target target;
    const struct plan *plan;
    void (*done)(void *ctx, const struct apply_result *result);
    void *ctx;
    int at; /* the next action */
    struct step_pass pass;
    struct step steps[STEPS_MAX];
    int n_steps;  /* under way */
    bool running; /* inside run: what ends there is seen there */
    struct apply_result result;
};

static void run(struct apply *ap);

static void finish(struct apply *ap)
{
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

static void record(struct apply *ap, const struct action *act)
{
    struct recorder_object o = {.api_version = TRAINJOB_API_VERSION,
                                .kind = TRAINJOB_KIND,
                                .ns = ap->target.ns,
                                .name = ap->target.job,
                                .uid = ap->target.uid};

    recorder_event(ap->recorder, &o, act->warning, act->reason, "%s", act->message);
}

static void begin(struct apply *ap, const struct action *act)
{
    struct step *s = ap->steps;

    while (s->act)
        s++;
    ap->n_steps++;
    step_begin(s, &ap->pass, act);
}

static bool creates_pod(const struct action *act)
{
    return act->kind == ACTION_CREATE && act->child == CHILD_POD;
}

/* Alone, but for pods, which may be created beside each other: first one, and one more at a time with each that went well,
 * so that a quota that is used up is asked once. */
static bool may_begin(const struct apply *ap, const struct action *act)
{
    if (ap->n_steps == 0)
        return true;
    return creates_pod(act) && creates_pod(act - 1) && ap->n_steps < STEPS_MAX &&
           ap->n_steps <= ap->result.pods_created;
}

/* From the next action on, as far as one may go. */
static void run(struct apply *ap)
{
    ap->running = true;
    while (ap->result.ok && ap->at < ap->plan->n_actions && may_begin(ap, &ap->plan->actions[ap->at])) {
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

struct apply *apply_new(const struct transport *t, struct recorder *r, const struct apply_target *target,
                        const struct plan *plan, struct arena *a,
                        void (*done)(void *ctx, const struct apply_result *result), void *ctx)
{
    struct apply *ap = memory_must(calloc(1, sizeof(*ap)));

    *ap = (struct apply){.recorder = r, .target = *target, .plan = plan, .done = done, .ctx = ctx};
    ap->pass = (struct step_pass){.t = t,
                                  .ns = target->ns,
                                  .job_uid = target->uid,
                                  .a = a,
                                  .result = &ap->result,
                                  .ended = on_step_ended,
                                  .ctx = ap};
    apply_result_init(&ap->result, plan->n_actions, a);
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
