/* plan.h - decide what one job needs next, from a snapshot of the caches. Pure: no I/O, clock, log or
 * globals.
 *
 * Ownership: *in is borrowed for the call. All of *out lives in `a` and points to nothing else, so the caches
 *            may change afterwards.
 * Units:     times are milliseconds since the Unix epoch; 0 is "not set".
 * Errors:    none: an invalid spec leads to a status, not to an error. A job that is being deleted, or whose
 *            managedBy names another controller, gets no actions.
 * Order:     actions run first to last, and the first failure ends the pass. The status is written before the
 *            actions that follow from it, so that restarts are counted exactly once. Only guards, the Service
 *            and the first pods of a new job are created before its first status: nothing is counted yet, and a plan
 *            that finds pods without a status starts from them.
 */
#ifndef TK_OPERATOR_PLAN_PLAN_H
#define TK_OPERATOR_PLAN_PLAN_H

#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

/* The first CHILD_KINDS are watched. The rest, guards.h, is created only: that the name is taken means that it is
 * there. CHILD_JOB is no child: the PyTorchTrainingJob itself, as target of a write and as a cache. */
enum child_kind { CHILD_POD, CHILD_SERVICE, CHILD_DEPLOYMENT, CHILD_JOB, CHILD_POLICY, CHILD_KEY };
enum { CHILD_KINDS = CHILD_JOB + 1 };

enum action_kind {
    ACTION_STATUS, /* merge patch of the job's status; body has the resourceVersion that it was planned from */
    ACTION_EVENT,
    ACTION_DELETE, /* with the UID, and the version if set, as preconditions */
    ACTION_CREATE,
    ACTION_PATCH, /* merge patch; body has the UID, of a pod the version too. A pod whose patch is refused is deleted */
};

struct action {
    enum action_kind kind;
    enum child_kind child;
    const char *name;
    const char *uid;
    const char *version; /* delete, patch of a pod: only at this version; NULL: at any */
    const char *body;    /* JSON: status, create, patch */
    bool lenient;        /* create: what the API server does not know is left out and told, not refused */
    bool first;         /* create: the first pod of a replicaSpec that has none; nothing is begun beside it */
    bool force;         /* delete: with a grace period of 0, without waiting for the node */
    bool warning;       /* event */
    const char *reason; /* event */
    const char *message; /* event */
};

/* Why the last pass could not create an object. */
enum problem_kind {
    PROBLEM_NONE,
    PROBLEM_NAME_CONFLICT, /* another owner's object has the name */
    PROBLEM_REFUSED,       /* quota, Pod Security, a policy, RBAC: it may be taken later as it is */
    PROBLEM_INVALID,       /* the API server does not know a field, or does not take a value */
    PROBLEM_FAILED,        /* anything else: 404, 429, 5xx, timeout, no connection */
};

struct plan_problem {
    enum problem_kind kind;
    enum child_kind child;
    const char *name;
    const char *message;
    int64_t retry_ms; /* creates are held back until then */
};

/* Limits of the bodies of pods in one pass, which are all in memory at once. One pod is always created.
 * PLAN_FIRST_BYTES applies to a replicaSpec without any pod, and while there is a problem: the first pod may
 * be refused. */
enum { PLAN_CREATE_BYTES = 512 << 10, PLAN_FIRST_BYTES = 32 << 10 };

/* What the launcher in pod 0 said last, and what this process made of it. */
struct plan_progress {
    bool answered; /* `answer` and `attempt` are set */
    struct jobprogress_answer answer;
    int32_t attempt;      /* that it is of */
    int64_t written_ms;   /* when this process last wrote a progress; 0: never */
    bool in_vain;         /* of that write nothing stayed: an older CRD drops it */
    int64_t slow_told_ms; /* when it last told of a slow rank; 0: never */
};

/* When this process first saw what other machines' clocks tell the time of, which may be ahead of ours. 0: not seen. */
struct plan_seen {
    int64_t failure_ms; /* a failed pod of the attempt */
    int64_t waiting_ms; /* a pod of the attempt, not all of which run */
};

/* For the NetworkPolicy and the key of a job. */
struct plan_guards {
    bool isolate;            /* jobs get a policy */
    const char *operator_ns; /* in which namespace the operator's pods are, which ask for progress */
    const char *scraper_ns;  /* all of whose pods may ask; NULL: none */
    const char *new_key;     /* 64 random hex digits; NULL: jobs get no key */
};

struct plan_input {
    const struct trainjob *job;
    /* An earlier pass of this term did not get an answer, or found an object in its way, or wrote something that no
     * cache can show: the status is the next write. */
    bool status_first;
    const struct pod *const *pods; /* pods whose controller is this job */
    int n_pods;
    const char *unreadable;      /* which of these objects cannot be read, and why; NULL: none */
    bool unreadable_told;        /* this process reported that, and the job is the result of that write */
    const struct child *service; /* NULL: it does not exist, or is not this job's */
    /* TensorBoard's Deployment cannot be seen now: that part waits, and is planned again at this time. 0: it can be seen.
     * This time is as far ahead as the Deployment has been unseen, a second to a minute. */
    int64_t tb_look_ms;
    const struct child *tb_deployment;
    const struct child *tb_service;
    struct plan_problem problem;
    const struct plan_progress *progress; /* NULL: nobody was asked */
    int64_t now_ms;
    struct plan_seen seen; /* by the last plan */
    /* When this process last wrote the status, or created the first pods; 5 minutes later after a write that changed
     * nothing. */
    int64_t status_written_ms;
    size_t create_bytes; /* limit of the bodies of pods; 0: PLAN_CREATE_BYTES */
    const char *
        tensorboard_image; /* used where the spec names none; NULL: no TensorBoard is made, changed or deleted */
    const char *launcher_image; /* of torchrunConfig.launcher: Torchkeeper */
    struct plan_guards guards;
};

/* For latency metrics: since when the user has waited for what the plan achieves; 0: it does not achieve
 * that. */
struct plan_waits {
    int64_t first_pod_ms;     /* the job's first pod, once it is created */
    int64_t running_ms;       /* all pods run for the first time, once that is written */
    int64_t running_again_ms; /* all pods run again after a failure, once that is written */
};

struct plan {
    const struct action *actions;
    int n_actions;
    int64_t requeue_ms; /* plan again at this time, even without a change; 0: no need */
    bool unreadable;    /* the status action reports that something cannot be read */
    bool pods_first;    /* before a status: the first pods of a new job, or those that waited for pod 0 */
    bool may_wait;      /* it only reports (status, events): creates of all jobs go first */
    /* What the status action reports, for counters once it is written. */
    bool started, succeeded, failed, restarted;
    bool progressed;    /* the status action changes what it says of the progress */
    bool progress_only; /* and, but for details, nothing else */
    bool creates_wait;  /* pods are missing and wait for something else than the problem */
    bool slow_rank;     /* an event tells of a slow rank */
    struct plan_waits waits;
    struct plan_seen seen; /* for the next input */
};

void plan_trainjob(const struct plan_input *in, struct arena *a, struct plan *out);

#endif
