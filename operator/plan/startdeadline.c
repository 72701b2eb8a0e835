/* startdeadline.c - fail an attempt whose pods do not all run within startDeadlineSeconds. */
#include "operator/plan/startdeadline.h"

#include "operator/plan/backoff.h"
#include "operator/plan/waiting.h"

#include <string.h>

static const char REASON[] = "StartDeadlineExceeded";

bool startdeadline_is(const char *reason)
{
    return reason && strcmp(reason, REASON) == 0;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Without a pod nothing is held and nothing can be given back: 0. */
static int64_t waiting_since(struct planner *p)
{
    const struct jobstatus *st = &p->st;
    int64_t created = 0;

    for (int i = 0; i < p->n_slots; i++) {
        const struct pod *pod = p->slots[i].pod;
        if (pod && (!created || pod->created_ms < created))
            created = pod->created_ms > 0 ? pod->created_ms : 1;
    }
    if (!created)
        return 0;
    p->seen.waiting_ms = planner_first_seen(p, p->in->seen.waiting_ms, p->now_ms);
    created = planner_first_seen(p, p->seen.waiting_ms, created);
    /* Pods are created after that; but it is the API server's clock that says when they were. */
    if (st->last_failure && st->last_failure->attempt == st->attempt - 1)
        created = later(created, later(st->last_failure->time_ms, backoff_due_ms(st)));
    for (int i = 0; i < p->n_slots; i++)
        if (!p->slots[i].pod)
            created = later(created, backoff_slot_due_ms(st, p->slots[i].name));
    created = later(created, st->conditions[COND_RUNNING].transition_ms);
    return created < p->now_ms ? created : p->now_ms;
}

static const char *why(struct planner *p, const struct slot *s)
{
    if (!s->pod)
        return "it could not be created";
    struct waiting w = waiting_of(s->pod, s->spec->template, p->now_ms, p->a);
    if (w.reason)
        return w.message;
    return s->pod->training.reason[0] ? s->pod->training.reason : "it is pending";
}

bool startdeadline_check(struct planner *p, struct judgement *ret)
{
    const struct opt_i64 *limit = &p->spec->run_policy.start_deadline_s;
    const struct slot *missing = NULL;
    int started = 0;

    if (!limit->set || p->spec->debug.enabled || p->st.conditions[COND_RUNNING].state == COND_TRUE)
        return false;
    for (int i = 0; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        if (planner_slot_done(s) || (s->pod && pod_is_running(s->pod)))
            started++;
        else if (!missing)
            missing = s;
    }
    int64_t since = waiting_since(p);
    bool enough = p->spec->elastic.enabled && started >= p->spec->elastic.min;
    if (!missing || !since || enough)
        return false;
    int64_t due = since + limit->v * 1000;
    if (due > p->now_ms) {
        planner_requeue(p, due);
        return false;
    }
    ret->slot = missing;
    ret->v = (struct verdict){.class = VERDICT_ADMISSION, .reason = REASON, .exit_code = -1, .rank = -1};
    ret->v.message =
        arena_printf(p->a, "%d of %d pods ran when startDeadlineSeconds (%lld) were over; pod %s: %s",
                     started, p->n_slots, (long long)limit->v, missing->name, why(p, missing));
    judge_apply_policy(&ret->v, missing->spec->restart_policy);
    return true;
}
