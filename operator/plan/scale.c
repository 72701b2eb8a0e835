/* scale.c - shrink an elastic job: removed indices stay in the status, so that their old pods are never
 * reused. */
#include "operator/plan/scale.h"

#include "operator/plan/desired.h"

#include <string.h>

static const struct pod *pod_at(const struct planner *p, const char *type, int index)
{
    for (int i = 0; i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        if (pod->attempt == p->st.attempt && pod->index == index && strcmp(pod->type, type) == 0)
            return pod;
    }
    return NULL;
}

/* Whether an event announced the pod's removal, together with the status; not again while the pod terminates. */
static bool was_announced(const struct planner *p, const struct pod *pod)
{
    const struct task_status *task = planner_task(p, pod->type);

    return task && pod->index < task->n_replicas && task->replicas[pod->index].restarts > pod->restart;
}

void scale_announce(struct planner *p)
{
    int expected = p->spec->replica_specs[0].replicas;

    for (int i = 0; p->spec->elastic.enabled && i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        if (pod->attempt == p->st.attempt && pod->index >= expected && !was_announced(p, pod))
            planner_event(p, false, "Scaled", "pod %s is removed: %d expected", arena_strdup(p->a, pod->name),
                          expected);
    }
}

int scale_entries(const struct planner *p, int type)
{
    const struct replica_spec *r = &p->spec->replica_specs[type];
    const struct task_status *task = planner_task(p, r->type);
    int n = r->replicas;

    if (!p->spec->elastic.enabled)
        return n;
    if (task && task->n_replicas > n)
        n = task->n_replicas;
    for (int i = 0; i < p->in->n_pods; i++)
        if (p->in->pods[i]->attempt == p->st.attempt && p->in->pods[i]->index >= n)
            n = p->in->pods[i]->index + 1;
    return n < p->spec->elastic.max ? n : p->spec->elastic.max;
}

void scale_remember(const struct planner *p, int type, int index, struct replica_status *r)
{
    const struct replica_spec *spec = &p->spec->replica_specs[type];
    const struct task_status *task = planner_task(p, spec->type);
    const struct pod *pod = pod_at(p, spec->type, index);

    *r = (struct replica_status){.exit_code = -1};
    if (task && index < task->n_replicas) {
        r->restarts = task->replicas[index].restarts;
        if (task->replicas[index].uid)
            r->restarts = count_up(r->restarts);
    }
    if (pod && r->restarts <= pod->restart)
        r->restarts = count_up(pod->restart);
    r->name = desired_pod_name(p->a, p->job->name, spec->type, index);
    r->phase = REPLICA_DELETED;
}
