/* plan.h - decide what one job needs next. Pure: no I/O, clock, log, globals.
 *
 * Ownership: *in is borrowed for the call. All of *out lives in `a` and points into nothing else, so the
 *            cache may change at once.
 * Units:     times are milliseconds since the Unix epoch; 0 is "not set".
 * Errors:    none: a bad spec is a status, not an error.
 * Order:     actions run first to last and the first failure ends the pass: what is written to status stands
 *            there before anything follows from it (restarts are counted exactly once). Only the Service and the first pods of
 *            a new job come before its first status: nothing is counted yet, and who finds pods without a status begins
 *            with them.
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
    bool first;          /* create: of a replicaSpec of which there is no pod; nothing is begun beside it */
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
    PROBLEM_FAILED,        /* anything else: 404, 429, 5xx, a time-out, no connection */
};

struct plan_problem {
    enum problem_kind kind;
    enum child_kind child;
    const char *name;
    const char *message;
    int64_t retry_ms; /* nothing of this kind is created before */
};

/* A pass holds the bodies of all that it creates. One pod's is always made. Of a replicaSpec without any pod, and while
 * there is a problem, less is made: the first pod may be refused. */
enum { PLAN_CREATE_BYTES = 512 << 10, PLAN_FIRST_BYTES = 32 << 10 };

struct plan_input {
    const struct trainjob *job;
    bool job_is_live; /* read from the API server just now, not from the cache */
    bool job_is_new;  /* if it has no status here then nobody has written one, however old the cache is */
    const struct pod *const *pods; /* those whose controller is this job */
    int n_pods;
    const char *unreadable;      /* which of these objects cannot be read, and why; NULL: none */
    bool unreadable_told;        /* this process wrote so, and the job is what came of it */
    const struct child *service; /* NULL: not there, or not ours */
    const struct child *tb_deployment;
    const struct child *tb_service;
    const char *const *gone_uids; /* pods that a live GET did not find any more */
    int n_gone_uids;
    struct plan_problem problem;
    int64_t now_ms;
    int64_t status_written_ms;     /* when we last wrote this job's status, or made its first pods */
    size_t create_bytes;           /* of bodies of pods, after which no more are made; 0: PLAN_CREATE_BYTES */
    const char *tensorboard_image; /* where the spec names none */
};

/* Since when the user has waited for what the plan brings about; 0: it does not bring that about. */
struct plan_waits {
    int64_t first_pod_ms;     /* the job's first pod, once one is created */
    int64_t running_ms;       /* all of its pods run for the first time, once that is written */
    int64_t running_again_ms; /* all run after a failure, once that is written */
};

struct plan {
    const struct action *actions;
    int n_actions;
    int64_t requeue_ms; /* plan again then, even if nothing happens; 0: no need */
    bool refetch;       /* the cached job is older than its pods: read it live, then plan again */
    bool unreadable;    /* what the status action tells is that something cannot be read */
    bool pods_first;    /* the Service and the first pods of a new job, without a status */
    bool may_wait;      /* it only tells: creates of all jobs go first */
    /* What the status action tells, for counting once it is written. */
    bool started, succeeded, failed, restarted;
    struct plan_waits waits;
};

void plan_trainjob(const struct plan_input *in, struct arena *a, struct plan *out);

#endif
