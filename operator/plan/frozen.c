/* frozen.c - plan a job of which something cannot be read: one status patch and one event. */
#include "operator/plan/frozen.h"

#include <string.h>

static const char *patch(struct planner *p)
{
    cleanup_json cJSON *doc = cJSON_CreateObject();

    cJSON_AddStringToObject(cJSON_AddObjectToObject(doc, "metadata"), "resourceVersion",
                            p->job->resource_version);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(doc, "status"), "reason", FROZEN_REASON);
    return planner_json(p, doc);
}

void frozen_plan(struct planner *p, struct plan *out)
{
    const struct jobstatus *st = &p->job->status;
    struct action_list all = {0};

    /* The reason may be out of sight in a job that is too long. */
    if (p->in->unreadable_told || jobstatus_finished(st) ||
        (st->reason && strcmp(st->reason, FROZEN_REASON) == 0))
        return;
    struct action *act = planner_add(p, &all, ACTION_STATUS);
    act->child = CHILD_JOB;
    act->name = arena_strdup(p->a, p->job->name);
    act->uid = arena_strdup(p->a, p->job->uid);
    act->body = patch(p);
    act = planner_add(p, &all, ACTION_EVENT);
    act->warning = true;
    act->reason = FROZEN_REASON;
    act->message =
        arena_printf(p->a,
                     "%s; what runs goes on, but nothing is made or removed for this job until that is "
                     "changed or deleted",
                     p->in->unreadable);
    *out = (struct plan){.actions = all.items, .n_actions = all.n, .unreadable = true};
}

const char *frozen_final_reason(const struct jobstatus *st)
{
    bool frozen = st->reason && strcmp(st->reason, FROZEN_REASON) == 0;

    return frozen ? st->conditions[st->phase == JOB_FAILED ? COND_FAILED : COND_COMPLETED].reason
                  : st->reason;
}
