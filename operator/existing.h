/* existing.h - decide what an AlreadyExists means: who owns the object with the name of a create. actions.c reads that
 * object by a GET first. The decision depends on owner, labels and deletion, not on the object's spec. Pure. */
#ifndef TK_OPERATOR_EXISTING_H
#define TK_OPERATOR_EXISTING_H

#include "operator/plan/plan.h"

enum existing {
    EXISTING_WANTED, /* this job's, and the one to create: done */
    /* Being deleted, or a child of a deleted job of the same name that the garbage collector will delete:
     * wait. */
    EXISTING_LEAVING,
    /* This job's, but without the label that our watches select, a pod of an earlier attempt or restart, or a PodGroup of
     * an earlier spec: delete it first. */
    EXISTING_OLDER,
    EXISTING_NEWER,   /* this job's, a pod of a later attempt: the cache is behind */
    EXISTING_FOREIGN, /* another owner's */
};

/* act: the create that got AlreadyExists. there: the existing object. job, job_uid: of the job. */
enum existing existing_judge(const struct action *act, const cJSON *there, const char *job,
                             const char *job_uid);

/* Whether the object has that label. */
bool existing_is_labelled(const cJSON *there);

#endif
