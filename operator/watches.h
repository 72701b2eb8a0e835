/* watches.h - the operator's caches: all jobs; the pods, Services and Deployments that carry LABEL_JOB and have
 * a job as controller; the Workloads that have a job as controller. For an unreadable object they store its names and the reason.
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

struct watches {
    struct kube_cache *kinds[CHILD_KINDS];       /* by enum child_kind; NULL: not watched */
    struct kube_cache *settings[QUEUE_SETTINGS]; /* of Kueue; NULL: not watched */
    uint64_t lists[CHILD_KINDS]; /* of each kind, begun before the last one of watches_relist */
};

/* ns NULL: all namespaces. The callbacks get the ctx of the reconciler's options; deployments_listed is
 * called after each list of Deployments; NULL: they are not watched. */
void watches_add(struct watches *w, struct kube_reconciler *r, const char *ns,
                 void (*job_gone)(void *ctx, const struct kube_store_entry *job),
                 void (*deployments_listed)(void *ctx));

/* Watch Workloads, and what they refer to in the cluster. It may be called while the loop runs. `listed` is called
 * after each list, `setting_changed` when one of the cluster's objects changes. */
void watches_add_queues(struct watches *w, struct kube_reconciler *r, const char *ns,
                        void (*listed)(void *ctx),
                        void (*setting_changed)(void *ctx, const struct kube_store_entry *e));

/* Fill in->queue except the mode: the Workloads of this job, and `settings` of the cluster. */
void watches_gather_queue(const struct watches *w, const char *ns, const char *uid, bool settings,
                          struct arena *a, struct plan_input *in);

/* Whether all settings of the cluster have been listed. */
bool watches_settings_listed(const struct watches *w);

/* The job with this UID; NULL: none. */
const struct jobtext *watches_job(const struct watches *w, const char *uid);

/* Collect the pods of the job with this UID. */
void watches_gather_pods(const struct watches *w, const char *ns, const char *uid, struct arena *a,
                         struct plan_input *in);

/* Collect the cached objects of this job (by its UID, in its namespace): pods, other children, and the first
 * unreadable one. Call it after watches_gather_queue. The array lives in the arena; the objects are valid until the next turn of the loop. */
void watches_gather(const struct watches *w, const struct trainjob *job, struct arena *a,
                    struct plan_input *in);

/* kube_cache_shows for the cache of one kind. */
bool watches_show(const struct watches *w, enum child_kind kind, const char *version, uint64_t lists);
bool watches_listed(const struct watches *w, enum child_kind kind, uint64_t lists);
uint64_t watches_lists(const struct watches *w, enum child_kind kind);

/* List this kind again, at most once a minute. */
void watches_relist(struct watches *w, enum child_kind kind, int64_t now_ms);

/* The store of one kind, for kube_store_group by the UID of the controlling job (for jobs: its own UID). */
const struct kube_store *watches_children(const struct watches *w, enum child_kind kind);

struct watches_counts {
    size_t jobs, pods;
    size_t pod_bytes; /* heap memory of the pods */
    size_t unreadable[CHILD_KINDS];
};

/* Visits every object. */
struct watches_counts watches_counts(const struct watches *w);

#endif
