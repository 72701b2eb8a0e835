/* watches.h - the operator's caches: all jobs, and the pods, Services and Deployments that carry LABEL_JOB
 * and have a job as controller. Of an object that cannot be read the names and the reason are kept.
 *
 * Ownership: the caches belong to the reconciler and live as long as it.
 * Order:     each change adds the key of the job it concerns: the job's UID, in the namespace of the changed
 *            object.
 */
#ifndef TK_OPERATOR_WATCHES_H
#define TK_OPERATOR_WATCHES_H

#include "kube/reconciler.h"
#include "operator/api/jobtext.h"
#include "operator/plan/plan.h"

enum { WATCHES_KINDS = 4 };

struct watches {
    struct kube_cache *kinds[WATCHES_KINDS]; /* indexed by enum child_kind */
};

/* ns NULL: all namespaces. job_gone gets the ctx of the reconciler's options. */
void watches_add(struct watches *w, struct kube_reconciler *r, const char *ns,
                 void (*job_gone)(void *ctx, const struct kube_store_entry *job));

/* The job with this UID; NULL: none. */
const struct jobtext *watches_job(const struct watches *w, const char *uid);

/* Replace the cached job of this UID, if it still is there and is not newer, by what a live read returned; `unreadable` as
 * for kube_cache_put. */
void watches_put_job(struct watches *w, const char *uid, const cJSON *object, const struct err *unreadable);

/* Remove a job that a live read did not find, though its watch has not reported the deletion yet. */
void watches_forget_job(struct watches *w, const char *uid);

/* The store of one kind, for kube_store_group by the UID of the controlling job (of a job: its own). */
const struct kube_store *watches_children(const struct watches *w, enum child_kind kind);

/* Why only the object's names could be read; "": it was read. */
const char *watches_unreadable(enum child_kind kind, const struct kube_store_entry *e);

struct watches_counts {
    size_t jobs, pods;
    size_t pod_bytes; /* heap memory of the pods */
    size_t unreadable[WATCHES_KINDS];
};

/* Visits every object. */
struct watches_counts watches_counts(const struct watches *w);

#endif
