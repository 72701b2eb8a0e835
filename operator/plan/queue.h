/* queue.h - decide what a job's place in a queue of Kueue allows. Pure.
 *
 * Ownership: everything lives in the plan's arena, except the assignments, which queue_end frees.
 * Order:     queue_begin before planner_fill_slots, since an admission may allow fewer pods than an elastic job
 *            expects; queuewrite_act after the plan has decided about pods; queue_end at the end.
 */
#ifndef TK_OPERATOR_PLAN_QUEUE_H
#define TK_OPERATOR_PLAN_QUEUE_H

#include "operator/plan/planner.h"

/* Reasons in the status of a job that waits for its admission, or whose admission its template contradicts. */
#define QUEUE_REASON "Queued"
#define QUEUE_REASON_FAILED "FailedToStart"

/* What becomes of the job's Workload when no pod is active. */
enum queue_step {
    QUEUE_STEP_NONE,
    QUEUE_STEP_CREATE,
    QUEUE_STEP_RELEASE,
    QUEUE_STEP_DELETE, /* or, when that is under way, remove the finalizer */
    QUEUE_STEP_FAIL,   /* Finished: the pods cannot be as the admission says */
    QUEUE_STEP_ADOPT,
    QUEUE_STEP_OUT_OF_SYNC, /* Finished: MultiKueue sends the job again */
};

/* pytorchtrainingjob-<job>-<the first 8 characters of its UID>, or the one that others made for the job. */
char *queue_workload_name(struct arena *a, const struct trainjob *job);

/* Set p->queue, and in an elastic job that was admitted in part p->spec. */
void queue_begin(struct planner *p);

/* After the attempt was judged; judged false: a failure waits for stronger evidence. creates: pods are missing. A job
 * that changed keeps its admission only while it runs. The admission is compared with the pod templates only when pods
 * are to be created. */
void queue_settle(struct planner *p, bool judged, bool creates);

/* Whether a pod may still use what the quota is for. */
static inline bool queue_is_active(const struct pod *pod)
{
    return pod->phase != POD_SUCCEEDED && pod->phase != POD_FAILED;
}

bool queue_has_active_pods(const struct plan_input *in);

/* What MultiKueue copied of the job's status. A job that ends by an eviction has pods of its last attempt until the
 * worker cluster has given the quota back. */
bool queue_shows_pods(const struct jobstatus *st);

/* Whether pods use the quota, or may. */
bool queue_is_used(const struct planner *p);

/* Whether pods that use the quota have to end. */
bool queue_ends_pods(const struct planner *p);

/* Whether the job's Workload has to be created, adopted, or changed before its admission. */
bool queue_writes(const struct planner *p);

/* The place that the reason shows: exact up to 10; 11 and 101 stand for over 10 and over 100. Each admission moves all
 * jobs behind it, and each change of a status is a write. */
int queue_shown_place(int place);

/* Set the reason while the job waits. */
void queue_report(struct planner *p);

void queue_end(struct planner *p);

#endif
