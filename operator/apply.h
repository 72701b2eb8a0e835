/* apply.h - carry out what plan decided, in its order; the first failure ends the pass.
 *
 * Ownership: apply_new copies nothing: actions and target live until `done`, as does the result given to it.
 * Errors:    result.err. Already what was wanted is no error: creating what is there and ours, deleting what
 *            is gone.
 * Order:     one request after the other. Only pods in a row are created beside each other: first one, and one more
 *            at a time for each that went well, up to 8, so that a spent quota is asked once. After a failure nothing is
 *            begun any more, and `done` comes when what was under way has ended; what that achieved counts.
 *            Exactly one `done`, after which the struct is gone, unless cancelled. Events are recorded when
 *            their turn comes, so a status that could not be written announces nothing.
 */
#ifndef TK_OPERATOR_APPLY_H
#define TK_OPERATOR_APPLY_H

#include "kube/client.h"
#include "kube/recorder.h"
#include "operator/request.h"

enum { APPLY_UID_BYTES = 48, APPLY_VERSION_BYTES = 32 };

/* What the cache must show before the job is planned again. */
struct expectation {
    enum child_kind child;
    bool present; /* else: gone, or being deleted */
    bool removed; /* not present, and being deleted is not enough unless it is by force */
    char uid[APPLY_UID_BYTES];
};

struct apply_target {
    const char *ns, *job, *uid;
};

struct apply_result {
    bool ok;
    struct err err;              /* when not ok */
    int64_t retry_after_ms;      /* -1: the server did not say */
    bool wait;                   /* not ok, but only because something of ours has to go first */
    struct plan_problem problem; /* kind NONE unless a create was refused */
    char problem_name[64];
    char problem_message[256];
    bool status_written;
    bool job_missing; /* 404 for the status: the cache may show a job that is not there any more */
    char status_version[APPLY_VERSION_BYTES]; /* the job's resourceVersion after it */
    struct expectation *expected;
    int n_expected;
    const char **gone_uids; /* checks that found nothing */
    int n_gone_uids;
    bool checked_stale; /* a check found the pod: the cache is behind */
    int pods_created, pods_deleted;
};

struct apply;

struct apply *apply_new(const struct transport *t, struct recorder *r, const struct apply_target *target,
                        const struct plan *plan, struct arena *a,
                        void (*done)(void *ctx, const struct apply_result *result), void *ctx);
void apply_run(struct apply *ap); /* `done` may come from inside, and then *ap is gone */
void apply_cancel(struct apply *ap);

#endif
