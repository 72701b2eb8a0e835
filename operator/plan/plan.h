/* plan.h - decide the next actions for one job from a snapshot of the caches. Pure: no I/O, clock, log or
 * globals.
 *
 * Ownership: *in is borrowed for the call. All of *out lives in `a` and points to nothing else, so the caches
 *            may change afterwards.
 * Units:     times are milliseconds since the Unix epoch; 0 is "not set".
 * Errors:    none: an invalid spec leads to a status, not to an error. A job that is being deleted, or whose
 *            managedBy names another controller, gets no actions; one of MultiKueue only those on its Workload.
 * Order:     actions run first to last, and the first failure ends the reconcile. The status is written
 *            before the actions that follow from it, so that restarts are counted exactly once. Only guards,
 *            the Service and the first pods of a new job are created before its first status: no count exists
 *            yet, and a plan that finds pods without a status starts from them.
 */
#ifndef TK_OPERATOR_PLAN_PLAN_H
#define TK_OPERATOR_PLAN_PLAN_H

#include "operator/api/pod.h"
#include "operator/api/trainjob.h"
#include "operator/api/workload.h"

/* The first CHILD_KINDS are watched. CHILD_POLICY and CHILD_KEY (guards.h) are only created: AlreadyExists means
 * that they exist. CHILD_GROUP (gang.h) is created and deleted. CHILD_JOB is the PyTorchTrainingJob itself, as the
 * target of a write and as a cache. */
enum child_kind {
    CHILD_POD,
    CHILD_SERVICE,
    CHILD_DEPLOYMENT,
    CHILD_WORKLOAD, /* only where Kueue is used */
    CHILD_JOB,
    CHILD_POLICY,
    CHILD_KEY,
    CHILD_GROUP
};
enum { CHILD_KINDS = CHILD_JOB + 1 };

enum action_kind {
    ACTION_STATUS, /* merge patch of the job's status; body has the resourceVersion that it was planned from */
    ACTION_EVENT,
    ACTION_DELETE, /* with the UID, and the version if set, as preconditions */
    ACTION_CREATE,
    /* Merge patch; body has the UID, for a pod or a Workload also the version. A pod whose patch is refused is deleted. */
    ACTION_PATCH,
    /* Server-side apply of a status by `manager`, which owns no other field; body has the UID. */
    ACTION_APPLY,
    /* GET the object, change it (`edit`), and PUT it, if it is still at this version. */
    ACTION_EDIT,
};

enum action_edit {
    EDIT_RELEASE, /* give the quota back: writes the status */
    EDIT_SPEC,    /* set the members of body.spec, and annotations */
    EDIT_ADOPT,   /* make the job its controller, at any version, unless it has one */
};

struct action {
    enum action_kind kind;
    enum child_kind child;
    const char *name;
    const char *uid;
    const char *version; /* delete, patch of a pod: only at this version; NULL: at any version */
    /* Of a PodGroup: its scheduler. A PodGroup is deleted without a UID, if its owner is the job. Create of a
     * pod: GANG_NATIVE if the answer must show that the pod is in its PodGroup. */
    enum gang_scheduler gang;
    const char *body;    /* JSON: status, create, patch, apply, EDIT_SPEC */
    const char *manager; /* apply */
    enum action_edit edit;
    size_t bytes; /* of the object that an edit reads */
    bool lenient; /* create: the API server drops fields that it does not know, and the plan reports them */
    bool first;   /* create: the first pod of a replicaSpec that has none; no request in parallel to it */
    bool keep; /* it may be refused: create of a PodGroup that pods name; EDIT_SPEC of an admitted Workload */
    bool force;          /* delete: with a grace period of 0, without waiting for the node */
    bool warning;        /* event */
    const char *reason;  /* event */
    const char *message; /* event */
};

/* Why the last reconcile could not create an object. */
enum problem_kind {
    PROBLEM_NONE,
    PROBLEM_NAME_CONFLICT, /* another owner's object has the name */
    PROBLEM_REFUSED,       /* quota, Pod Security, a policy, RBAC: the same object may be accepted later */
    PROBLEM_INVALID,       /* the API server does not know a field, or refuses a value */
    PROBLEM_FAILED,        /* anything else: 404, 429, 5xx, timeout, no connection */
};

struct plan_problem {
    enum problem_kind kind;
    enum child_kind child;
    const char *name;
    const char *message;
    int64_t retry_ms; /* no creates before this time */
};

/* Limits of the bodies of pods in one plan, which are all in memory at once. One pod is always created.
 * PLAN_FIRST_BYTES applies to a replicaSpec without any pod, and while there is a problem: the first pod may
 * be refused. */
enum { PLAN_CREATE_BYTES = 512 << 10, PLAN_FIRST_BYTES = 32 << 10 };

/* The last answer of the launcher in pod 0, and what this process did with it. */
struct plan_progress {
    bool answered; /* `answer` and `attempt` are set */
    struct jobprogress_answer answer;
    int32_t attempt;          /* of the answer */
    int64_t written_ms;       /* when this process last wrote a progress; 0: never */
    bool write_dropped;       /* the API server dropped that write: an older CRD lacks the field */
    int64_t slow_reported_ms; /* when this process last reported a slow rank; 0: never */
};

/* When this process first saw, or did, things whose times come from other machines' clocks, which may be ahead of
 * ours. 0: not seen. */
struct plan_seen {
    int64_t failure_ms;      /* a failed pod of the attempt */
    int64_t waiting_ms;      /* a pod of the attempt, not all of which run */
    int64_t held_ms;         /* a pod that waits for a node and avoids some */
    int64_t queued_again_ms; /* the last deletion of a Workload that was not what the job wants */
    char queued_again[DECODE_UID_BYTES + 1]; /* its UID */
    int64_t evicted_ms;                      /* the eviction of a job that runs in another cluster */
    uint64_t edit;                           /* a hash of the last patch of a Workload's spec */
    int64_t edit_ms;
    int edits; /* how often it was planned */
};

/* Inputs for the NetworkPolicy and the key of a job. */
struct plan_guards {
    bool isolate;            /* jobs get a policy */
    const char *operator_ns; /* the namespace of the operator's pods, which poll progress */
    const char *scraper_ns;  /* the namespace whose pods may scrape /metrics; NULL: none */
    const char *new_key;     /* 64 random hex digits; NULL: jobs get no key */
};

enum plan_queue_mode {
    QUEUE_OFF,    /* Kueue is not used, or not there: the labels of a job have no effect */
    QUEUE_UNSEEN, /* not known yet, or Kueue's objects are not listed: queued jobs wait */
    QUEUE_ON,
};

/* What Kueue's objects say: the Workloads whose controller is this job, and the cluster's settings. The settings
 * are only gathered for a queued job. */
struct plan_queue {
    enum plan_queue_mode mode;
    const struct workload *const *workloads;
    int n_workloads;
    const struct queue_setting *const *settings[QUEUE_SETTINGS];
    int n_settings[QUEUE_SETTINGS];
    int place; /* queue_shown_place of that among all that wait in the ClusterQueue; 0: not known */
};

/* Inputs for PodGroups. */
struct plan_gangs {
    enum gang_scheduler scheduler;
    const char *scheduler_name; /* schedulerName of the pods; NULL: the template's */
    int64_t start_deadline_s;   /* of jobs without a gang scheduler; 0: none */
};

struct plan_input {
    const struct trainjob *job;
    struct plan_queue queue;
    /* An earlier reconcile of this term got no answer, or found an object under a name it wanted, or made a
     * write that no cache can show: the next write must be a status. */
    bool status_first;
    const struct pod *const *pods; /* pods whose controller is this job */
    int n_pods;
    const char *unreadable;      /* names the object that cannot be read, and why; NULL: none */
    bool unreadable_reported;    /* this process reported that, and the job is at the version of that write */
    const struct child *service; /* NULL: it does not exist, or is not this job's */
    /* For so long TensorBoard's Deployment cannot be seen: that part waits. 0: it can be seen. */
    int64_t tb_unseen_for_ms;
    const struct child *tb_deployment;
    const struct child *tb_service;
    struct plan_problem problem;
    const struct plan_progress *progress; /* NULL: not polled */
    int64_t now_ms;
    struct plan_seen seen; /* by the last plan */
    /* When this process last wrote the status, created the first pods, or began to lead; plus 5 minutes after a write that
     * changed nothing. */
    int64_t status_written_ms;
    size_t create_bytes;           /* limit of the bodies of pods; 0: PLAN_CREATE_BYTES */
    const char *tensorboard_image; /* where the spec names none; NULL: no TensorBoard is made or changed */
    const char *launcher_image;    /* of torchrunConfig.launcher: Torchkeeper */
    struct plan_guards guards;
    struct plan_gangs gangs;
};

/* For latency metrics: the begin of a wait that this plan ends; 0: it does not end it. */
struct plan_waits {
    int64_t first_pod_ms;     /* the job's first pod, once it is created */
    int64_t running_ms;       /* all pods run for the first time, once that is written */
    int64_t running_again_ms; /* all pods run again after a failure, once that is written */
};

struct plan {
    const struct action *actions;
    int n_actions;
    int64_t requeue_ms; /* plan again at this time, even without a change; 0: only after a change */
    bool unreadable;    /* the status action reports an unreadable object */
    bool queued;        /* Kueue has the job in a queue: its place would be reported */
    /* Creates precede the status: the first pods of a new job, or pods that waited for pod 0. */
    bool pods_first;
    bool may_wait; /* the plan only reports (status, events): creates of all jobs go first */
    /* Reported by the status action; counted once it is written. */
    bool started, succeeded, failed, restarted;
    bool progressed;    /* the status action changes the progress */
    bool progress_only; /* and nothing else except details */
    bool creates_wait;  /* pods are missing, but not because of the problem */
    bool slow_rank;     /* an event reports a slow rank */
    struct plan_waits waits;
    struct plan_seen seen; /* for the next input */
};

void plan_trainjob(const struct plan_input *in, struct arena *a, struct plan *out);

/* Plan the end of the Workloads of a job that is gone (in->job NULL) or being deleted: they are deleted and lose
 * their finalizer when no pod of the job is left. If Kueue evicts a job that is being deleted, its pods end. */
void plan_orphans(const struct plan_input *in, struct arena *a, struct plan *out);

#endif
