/* queuespec.h - the spec of a job's Workload: podSets, queue, priority; only for queue.c. Pure. */
#ifndef TK_OPERATOR_PLAN_QUEUESPEC_H
#define TK_OPERATOR_PLAN_QUEUESPEC_H

#include "operator/plan/planner.h"

/* What the Workload should be. */
struct queuespec {
    struct workload_podset sets[TRAINJOB_TYPES_MAX];
    int n;
    char content[17], sizes[WORKLOAD_SIZES_BYTES];
    const char *class_group, *class_kind, *class_name; /* of the priority; "": none */
    int64_t priority;
    const char *unknown; /* a class that does not exist; NULL: all is well */
};

/* The setting of this name; name NULL: the default of its kind. NULL: there is none. */
const struct queue_setting *queuespec_setting(const struct planner *p, enum queue_setting_kind kind,
                                              const char *name);

void queuespec_read(const struct planner *p, struct queuespec *ret);

/* Whether Kueue would decide the same of both, counts left out. */
bool queuespec_same_content(const struct queuespec *q, const struct workload *w);

/* The whole Workload. */
cJSON *queuespec_workload(struct planner *p, const struct queuespec *q);

/* {"spec": ..., "metadata": {"annotations": ...}} for EDIT_SPEC as JSON: what a Workload without quota has to change, or one with quota may. NULL:
 * nothing. */
const char *queuespec_waiting_patch(struct planner *p, const struct queuespec *q, const struct workload *w);
const char *queuespec_admitted_patch(struct planner *p, const struct queuespec *q, const struct workload *w);

/* Whether p->queue.patch may be written; sets p->out->seen. The same one three times at once, then every 30 s: a webhook may change
 * what is written. */
bool queuespec_may_edit(struct planner *p);

/* Whether the job may delete this Workload in order to queue again; sets p->out->seen. Not twice within 30 s: something may
 * change every Workload of the job. */
bool queuespec_may_queue_again(struct planner *p, const struct workload *w);

#endif
