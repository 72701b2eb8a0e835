/* step.h - one action of a plan under way: its request, what the answer means for the pass, and what has to be asked
 * besides when a name is taken.
 *
 * Ownership: borrows the action, and all that struct step_pass names. The arrays of a result have one entry for each action
 *            and live, with its strings, in the pass's arena; UIDs of what is gone are the actions' own.
 * Order:     step_begin, then `ended` exactly once, perhaps from inside; by then the step is free again and the result
 *            says what came of it. After step_cancel there is none.
 */
#ifndef TK_OPERATOR_STEP_H
#define TK_OPERATOR_STEP_H

#include "kube/client.h"
#include "operator/plan/plan.h"

enum { APPLY_UID_BYTES = DECODE_UID_BYTES + 1, APPLY_VERSION_BYTES = DECODE_VERSION_BYTES + 1 };

/* What the cache must show before the job is planned again. */
struct expectation {
    enum child_kind child;
    bool present; /* else: gone, or being deleted */
    bool removed; /* not present, and being deleted is not enough unless it is by force */
    char uid[APPLY_UID_BYTES];
};

struct apply_result {
    bool ok;                /* nothing failed so far */
    struct err err;         /* when not ok */
    int64_t retry_after_ms; /* -1: the server did not say */
    /* Not ok, but only because something has to go first. The problem is then what it is when it stays. */
    bool wait;
    struct plan_problem problem; /* kind NONE unless a create failed; its strings live in the arena */
    bool status_written;
    bool
        read_first; /* the job is not there, or its version after the status is not known: the cache may be old */
    char status_version[APPLY_VERSION_BYTES]; /* the job's resourceVersion after it; "": not known */
    struct expectation *expected;
    int n_expected;
    const char **gone_uids; /* checks that found nothing */
    int n_gone_uids;
    bool checked_stale; /* a check found the pod: the cache is behind */
    int pods_created, pods_deleted;
};

/* The job. */
struct apply_target {
    const char *ns, *job, *uid;
};

/* What the steps of one pass share. */
struct step_pass {
    const struct kube_transport *t;
    const struct apply_target *target;
    struct arena *a;
    struct apply_result *result;
    void (*ended)(void *ctx);
    void *ctx;
};

struct step {
    const struct step_pass *pass;
    const struct action *act; /* NULL: free */
    struct kube_call *call;   /* the request that it waits for */
};

/* Not for events, which are no requests. */
void step_begin(struct step *s, const struct step_pass *pass, const struct action *act);
void step_cancel(struct step *s);

#endif
