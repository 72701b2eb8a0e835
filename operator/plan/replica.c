/* replica.c - decide whether failed pods are replaced one by one (restartScope Replica). */
#include "operator/plan/replica.h"

#include <string.h>

/* Ended by its own decision, and not by a signal from outside: it has closed the rendezvous for everyone. */
static bool torchrun_gave_up(const struct pod *pod)
{
    const struct pod_container *c = &pod->training;

    return c->state == CONTAINER_TERMINATED && c->exit_code > 0 && c->exit_code < 128 &&
           strcmp(c->reason, "OOMKilled") != 0 && !strstr(c->message, "SignalException");
}

static bool breaks_the_gang(const struct planner *p, const struct slot *s, const struct verdict *v)
{
    const struct torchrun_config *t = &p->spec->torchrun;

    if (v->class == VERDICT_PEER_LOST || !s->seen || s->seen->restarts == COUNT_MAX)
        return true;
    if (!t->enabled || p->spec->debug.enabled)
        return false;
    if (t->rdzv_backend == RDZV_STATIC || (t->rdzv_backend == RDZV_C10D && s->order == 0))
        return true;
    return s->pod && torchrun_gave_up(s->pod);
}

bool replica_can_replace(const struct planner *p, const struct judgement *j)
{
    if (p->spec->run_policy.restart_scope != SCOPE_REPLICA || j->v.class <= VERDICT_PERMANENT)
        return false;
    for (int i = 0; i < p->n_slots; i++)
        if (j->verdicts[i].class > VERDICT_SUCCESS && breaks_the_gang(p, &p->slots[i], &j->verdicts[i]))
            return false;
    return true;
}

static struct replica_status *status_of(const struct planner *p, const char *type, int index,
                                        struct task_status **ret_task)
{
    for (int t = 0; t < p->st.n_tasks; t++) {
        struct task_status *task = &p->st.tasks[t];
        if (task->type && strcmp(task->type, type) == 0 && index >= 0 && index < task->n_replicas) {
            *ret_task = task;
            return &task->replicas[index];
        }
    }
    return NULL;
}

void replica_write_ahead(struct planner *p, const struct slot *s)
{
    struct task_status *task;
    struct replica_status *r = status_of(p, s->spec->type, s->index, &task);

    if (!r)
        return;
    if (s->pod && s->pod->restart > r->restarts)
        r->restarts = s->pod->restart;
    r->restarts = count_up(r->restarts);
    r->uid = NULL;
    r->container = NULL;
    r->state = NULL;
    r->exit_code = -1;
    task->restart_count = count_up(task->restart_count);
}
