/* watches.h - the operator's local copies: jobs, and the pods, Services and Deployments that carry our label and have a job
 * for a controller. Of what cannot be read the names are kept, and why.
 *
 * Ownership: the caches belong to the reconciler and live as long as it.
 * Order:     every change becomes the key of the job it concerns: its UID.
 */
#ifndef TK_OPERATOR_WATCHES_H
#define TK_OPERATOR_WATCHES_H

#include "kube/reconciler.h"
#include "operator/api/jobtext.h"
#include "operator/plan/plan.h"

enum { WATCHES_KINDS = 4 };

struct watches {
    struct kube_cache *kinds[WATCHES_KINDS]; /* by child_kind */
};

/* ns NULL: all. pages: first lists come in pages, not as streams. job_gone gets the ctx of the reconciler's options. */
void watches_add(struct watches *w, struct kube_reconciler *r, const char *ns, bool pages,
                 void (*job_gone)(void *ctx, const struct kube_store_entry *job));

/* NULL when there is none. */
const struct jobtext *watches_job(const struct watches *w, const char *uid);

/* A job read live takes the place of the cached one with this UID, if that still is there; unreadable as for kube_cache_put. */
void watches_put_job(struct watches *w, const char *uid, const cJSON *object, const struct err *unreadable);

/* A job that is not there any more, though its watch did not say so yet. */
void watches_forget_job(struct watches *w, const char *uid);

/* For kube_store_group: children by the UID of their controller. */
const struct kube_store *watches_children(const struct watches *w, enum child_kind kind);

/* Why nothing but names is known of it; "": it could be read. */
const char *watches_unreadable(enum child_kind kind, const struct kube_store_entry *e);

struct watches_counts {
    size_t jobs, pods;
    size_t pod_bytes; /* of heap, that the pods take */
    size_t unreadable[WATCHES_KINDS];
};

/* Looks at every object. */
struct watches_counts watches_counts(const struct watches *w);

#endif
