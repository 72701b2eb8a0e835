/* plan.h - decide what one job needs next. Pure: no I/O, clock, log, globals.
 *
 * Ownership: *in is borrowed for the call. All of *out lives in `a` and points into nothing else, so the
 *            cache may change at once.
 * Units:     times are milliseconds since the Unix epoch; 0 is "not set".
 * Errors:    none: a bad spec is a status, not an error.
 * Order:     actions run first to last and the first failure ends the pass: what is written to status stands
 *            there before anything follows from it (restarts are counted exactly once).
 */
#ifndef TK_OPERATOR_PLAN_PLAN_H
#define TK_OPERATOR_PLAN_PLAN_H

#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

enum child_kind { CHILD_POD, CHILD_SERVICE, CHILD_DEPLOYMENT, CHILD_JOB };

enum action_kind {
    ACTION_STATUS, /* merge patch of the job's status; body carries the resourceVersion it was planned from */
    ACTION_EVENT,
    ACTION_CHECK,  /* GET the pod: is this very object still there? The next input brings the answer */
    ACTION_DELETE, /* with the UID, and the version where one is given, as precondition */
    ACTION_CREATE,
    ACTION_PATCH, /* merge patch; body carries the UID */
};

struct action {
    enum action_kind kind;
    enum child_kind child;
    const char *name;
    const char *uid;
    const char *version; /* delete: only while it is as we know it; NULL: whatever became of it */
    const char *body;    /* JSON: status, create, patch */
    bool force;          /* delete: without waiting for the node */
    bool warning;        /* event */
    const char *reason;  /* event */
    const char *message; /* event */
};

/* Why the last pass could not create something. */
enum problem_kind {
    PROBLEM_NONE,
    PROBLEM_NAME_CONFLICT, /* someone else's object has the name */
    PROBLEM_REFUSED,       /* 403: quota, Pod Security, rights */
    PROBLEM_INVALID,       /* 422 */
};

struct plan_problem {
    enum problem_kind kind;
    enum child_kind child;
    const char *name;
    const char *message;
    int64_t retry_ms; /* nothing of this kind is created before */
};

struct plan_input {
    const struct trainjob *job;
    bool job_is_live;              /* read from the API server just now, not from the cache */
    const struct pod *const *pods; /* those whose controller is this job */
    int n_pods;
    const struct child *service; /* NULL: not there, or not ours */
    const struct child *tb_deployment;
    const struct child *tb_service;
    const char *const *gone_uids; /* pods that a live GET did not find any more */
    int n_gone_uids;
    struct plan_problem problem;
    int64_t now_ms;
    int64_t status_written_ms;     /* when we last wrote this job's status */
    const char *tensorboard_image; /* where the spec names none */
};

struct plan {
    const struct action *actions;
    int n_actions;
    int64_t requeue_ms; /* plan again then, even if nothing happens; 0: no need */
    bool refetch;       /* the cached job is older than its pods: read it live, then plan again */
    /* What the status action tells, for counting once it is written. */
    bool started, succeeded, failed, restarted;
};

void plan_trainjob(const struct plan_input *in, struct arena *a, struct plan *out);

#endif
