/* actions.h - run the actions of a plan in order, and report their results to the controller; the first failure ends
 * the pass.
 *
 * Ownership: actions_new copies nothing: plan, arena and target's strings live until `done`, and so does the result
 *            that is passed to it. The result's strings live in the arena.
 * Errors:    in result.err. Reaching what was wanted is no error: creating an object that exists and is this job's,
 *            deleting one that is gone.
 * Order:     one request after the other. Only creates of guards and of the Service before them run in parallel,
 *            consecutive creates of pods, and consecutive deletes of pods, up to 8. Of the creates the first pod of each
 *            replicaSpec runs alone, then, for each create that succeeded, one more at a time, so that an exhausted quota
 *            is asked once. After a failure, or when the
 *            target says that nothing may go on, nothing more is begun, and `done` is called when the requests under
 *            way have ended; their effects are part of the result. `done` is called exactly once, unless cancelled, and
 *            the struct is freed after it. Events are recorded at their place in the order, so that a status that could
 *            not be written announces nothing.
 */
#ifndef TK_OPERATOR_ACTIONS_H
#define TK_OPERATOR_ACTIONS_H

#include "kube/recorder.h"
#include "kube/request.h"
#include "operator/plan/plan.h"

enum { ACTIONS_VERSION_BYTES = DECODE_VERSION_BYTES + 1 };

extern const struct kube_resource TRAINJOBS;

struct actions_result {
    bool ok;                /* nothing has failed so far */
    struct err err;         /* when not ok; else why a pod was deleted that was to be patched, or empty */
    int64_t retry_after_ms; /* -1: not given */
    /* Not ok, but only because an object must be deleted first. `problem` is reported if that lasts. */
    bool wait;
    struct plan_problem problem; /* kind NONE unless a create failed */
    bool status_written;
    /* By enum child_kind, the highest resourceVersion that an answer to a write named; "": none. */
    char versions[CHILD_KINDS][ACTIONS_VERSION_BYTES];
    bool unseen; /* something is as it was wanted, and no version tells when the cache shows that */
    bool lost;   /* the answer to a write did not come */
    /* The job may be at another version than the one that was planned: a write of it was refused by 409 or 404, or its
     * answer did not come or named no version. */
    bool doubt;
    int pods_created, pods_deleted;
    const char *ignored; /* what of their template pods were made without; NULL: nothing */
};

/* The job that is reconciled. */
struct actions_target {
    const char *ns, *job, *uid;
    bool (*may_go_on)(void *ctx); /* asked before each request; NULL: always */
    void *ctx;
    bool ignored_told; /* actions_result.ignored of this generation; the rest is sent leniently */
};

struct actions;

struct actions *actions_new(const struct kube_transport *t, struct kube_recorder *r,
                            const struct actions_target *target, const struct plan *plan, struct arena *a,
                            void (*done)(void *ctx, const struct actions_result *result), void *ctx);
void actions_run(struct actions *as); /* `done` may be called inside, which frees *as */
void actions_cancel(struct actions *as);

#endif
