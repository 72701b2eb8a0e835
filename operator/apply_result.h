/* apply_result.h - what one pass achieved, and what it ended with. Pure.
 *
 * Ownership: its arrays live in the arena given to apply_result_init, large enough for one entry for each action;
 *            UIDs of what is gone are the actions' own.
 */
#ifndef TK_OPERATOR_APPLY_RESULT_H
#define TK_OPERATOR_APPLY_RESULT_H

#include "operator/plan/plan.h"

enum { APPLY_UID_BYTES = 48, APPLY_VERSION_BYTES = 32 };

/* What the cache must show before the job is planned again. */
struct expectation {
    enum child_kind child;
    bool present; /* else: gone, or being deleted */
    bool removed; /* not present, and being deleted is not enough unless it is by force */
    char uid[APPLY_UID_BYTES];
};

struct apply_result {
    bool ok;                     /* nothing failed so far */
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

void apply_result_init(struct apply_result *r, int n_actions, struct arena *a);

/* The cache will show the child of this action with this UID, or that it is gone. */
void apply_result_expect(struct apply_result *r, const struct action *act, const char *uid, bool present);

/* True: it is the first failure, the one that the pass ends with; later ones change nothing. */
bool apply_result_fail(struct apply_result *r, const struct err *err, int64_t retry_after_ms);

/* A create that the API server will not have: not a failure of ours, but the job's problem. */
void apply_result_refuse(struct apply_result *r, const struct action *act, enum problem_kind kind,
                         const struct err *err);

#endif
