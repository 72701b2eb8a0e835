/* step.h - run one action of a plan: send its request, evaluate the answer, and look at the existing object
 * when a name is taken.
 *
 * Ownership: borrows the action, and all that struct step_pass names. The arrays of a result have one entry
 *            for each action; they and their strings live in the pass's arena, gone_uids' strings in the
 *            actions.
 * Order:     step_begin, then `ended` exactly once, perhaps from inside; the step is free again then, and the
 *            result is updated. After step_cancel `ended` is not called.
 */
#ifndef TK_OPERATOR_STEP_H
#define TK_OPERATOR_STEP_H

#include "kube/client.h"
#include "operator/plan/plan.h"

enum { APPLY_UID_BYTES = DECODE_UID_BYTES + 1, APPLY_VERSION_BYTES = DECODE_VERSION_BYTES + 1 };

/* A change that the cache must show before the job is planned again. */
struct expectation {
    enum child_kind child;
    bool present; /* otherwise: gone, or being deleted */
    bool removed; /* being deleted is not enough unless it is by force */
    char uid[APPLY_UID_BYTES];
};

struct apply_result {
    bool ok;                /* nothing has failed so far */
    struct err err;         /* when not ok; else why a pod was deleted that was to be patched, or empty */
    int64_t retry_after_ms; /* -1: not given */
    /* Not ok, but only because an object must be deleted first. `problem` is reported if that lasts. */
    bool wait;
    struct plan_problem problem; /* kind NONE unless a create failed; its strings live in the arena */
    bool status_written;
    bool status_refused; /* 409: the job is not at the version that was planned */
    /* Read the job live next: it was not found, or its version after the status is not known. */
    bool read_first;
    char status_version[APPLY_VERSION_BYTES]; /* the job's resourceVersion after the write; "": not known */
    struct expectation *expected;
    int n_expected;
    const char **gone_uids; /* pods that a check did not find */
    int n_gone_uids;
    bool checked_stale; /* a check found the pod: the cache is behind */
    int pods_created, pods_deleted;
    const char
        *ignored; /* what of their template pods were made without; lives in the arena; NULL: nothing */
};

/* The job that is reconciled. */
struct apply_target {
    const char *ns, *job, *uid;
    bool (*may_go_on)(void *ctx); /* asked before each request; NULL: always */
    void *ctx;
    bool ignored_told; /* apply_result.ignored of this generation; the rest is sent leniently */
};

static inline bool apply_may_go_on(const struct apply_target *t)
{
    return !t->may_go_on || t->may_go_on(t->ctx);
}

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
    const struct action *act; /* NULL: the step is free */
    struct kube_call *call;   /* its request under way */
    bool lenient;             /* and what the server does not know is left out */
};

/* Not for ACTION_EVENT, which goes to the recorder. */
void step_begin(struct step *s, const struct step_pass *pass, const struct action *act);
void step_cancel(struct step *s);

#endif
