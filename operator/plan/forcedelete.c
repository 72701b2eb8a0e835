/* forcedelete.c - delete pods without grace that stay Terminating for longer than forceDeleteAfterSeconds. */
#include "operator/plan/forcedelete.h"

static void force(struct planner *p, const struct pod *pod)
{
    int64_t late_s = (p->now_ms - pod->deletion_ms) / 1000;

    planner_delete(p, &p->deletes, CHILD_POD, pod->name, pod->uid);
    p->deletes.items[p->deletes.n - 1].force = true;
    struct action *event = planner_add(p, &p->deletes, ACTION_EVENT);
    event->warning = true;
    event->reason = "PodForceDeleted";
    event->message = arena_printf(
        p->a, "pod %s was still on node %s %lld s after its grace period; it may still run there", pod->name,
        pod->node[0] ? pod->node : "(none)", (long long)late_s);
}

void forcedelete_plan(struct planner *p)
{
    const struct opt_i64 *limit = &p->spec->run_policy.force_delete_after_s;

    for (int i = 0; limit->set && i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        if (!pod->deletion_ms || pod->forced)
            continue; /* forced and still there: a finalizer holds it, and asking again changes nothing */
        int64_t due = pod->deletion_ms + limit->v * 1000;
        if (due > p->now_ms)
            planner_requeue(p, due);
        else
            force(p, pod);
    }
}
