/* jobstatus.h - the status of a PyTorchTrainingJob: typed for the planner, JSON for the API server.
 *
 * Ownership: strings and arrays live in the arena given, or are literals.
 * Units:     milliseconds since the Unix epoch, in JSON with whole seconds; 0 means not set.
 * Errors:    decoding never fails: a value of a wrong type or out of bounds counts as absent, and the planner
 *            rebuilds the status from the pods.
 */
#ifndef TK_OPERATOR_API_JOBSTATUS_H
#define TK_OPERATOR_API_JOBSTATUS_H

#include "operator/api/jobprogress.h"

enum job_phase {
    JOB_NONE, /* no phase: the operator has not written a status yet */
    JOB_PENDING,
    JOB_RUNNING,
    JOB_PAUSED,
    JOB_RESUMING,
    JOB_SUCCEEDED,
    JOB_FAILED,
    JOB_UNKNOWN,
    JOB_PHASES,
};

enum condition_type {
    COND_INITIALIZED,
    COND_RUNNING,
    COND_REPLICA_FAILURE,
    COND_COMPLETED,
    COND_FAILED,
    COND_PAUSED,
    COND_INVALID_SPEC,
    COND_TYPES,
};

enum condition_state { COND_ABSENT, COND_FALSE, COND_TRUE, COND_UNKNOWN };

struct condition {
    enum condition_state state;
    const char *reason;
    const char *message;
    int64_t transition_ms;
    int64_t observed_generation;
};

enum replica_phase {
    REPLICA_CREATING, /* no pod yet */
    REPLICA_PENDING,
    REPLICA_RUNNING,
    REPLICA_SUCCEEDED,
    REPLICA_FAILED,
    REPLICA_UNKNOWN,
    REPLICA_DELETED,
    REPLICA_PHASES,
};

enum {
    JOBSTATUS_TASKS_MAX = 16, /* limits of a job's types, and of its pods */
    JOBSTATUS_REPLICAS_MAX = 1024,
    JOBSTATUS_FAILURES_MAX = 10,
    JOBSTATUS_AVOIDED_MAX = 8,
    JOBSTATUS_CONDITIONS_MAX = 32,     /* the CRD's maxItems */
    JOBSTATUS_OTHERS_BYTES = 64 << 10, /* text in conditions of other controllers */
    JOBSTATUS_MESSAGE_BYTES = 2048,
    JOBSTATUS_OLD_MESSAGE_BYTES = 256,
};

/* The highest count accepted in the status and in labels. Real counts never reach it, and incrementing it
 * does not overflow. */
enum { COUNT_MAX = INT32_MAX / 2 };

static inline int32_t count_up(int32_t n)
{
    return n < COUNT_MAX ? n + 1 : COUNT_MAX;
}

struct failure {
    const char *pod, *uid, *node, *reason, *message; /* node, message may be NULL */
    int32_t rank;                                    /* -1: not known */
    int32_t exit_code;                               /* -1: no container terminated */
    int32_t signal;                                  /* 0: none */
    int32_t attempt;
    int64_t time_ms;
};

/* A node that new pods avoid (plan/avoid.h). */
struct avoided_node {
    const char *node;
    int64_t since_ms;
    bool dropped; /* not avoided: no other node took the pods. since_ms is when that was found out */
};

struct replica_status {
    const char *name;
    const char *uid; /* NULL: no pod seen in this attempt */
    enum replica_phase phase;
    int32_t restarts;
    const char *container; /* name of the training container; NULL: not known */
    const char *state;     /* Waiting, Running, Terminated */
    int32_t exit_code;     /* -1: not terminated */
};

struct task_status {
    const char *type;
    int32_t restart_count;
    struct replica_status *replicas;
    int n_replicas;
};

struct tensorboard_status {
    bool present;
    bool ready;
    const char *reason, *service, *note;
};

struct jobstatus {
    enum job_phase phase;
    const char *reason;
    int64_t observed_generation;
    int64_t start_ms, completion_ms;
    int32_t attempt, backoff_count, disruption_count, admission_count, resume_count;
    /* backoff_count + disruption_count + admission_count + restarts for a changed template; never
     * decreases. */
    int32_t restarts;
    int32_t ran_attempt; /* the last attempt whose Running condition was True; -1: none */
    struct condition conditions[COND_TYPES];
    const cJSON *listed; /* all conditions as received, borrowed; others' keep their index. NULL: none */
    struct task_status *tasks;
    int n_tasks;
    const char *ready;
    int32_t replicas;
    const char *selector;
    int64_t gpus;
    const char *last_exit;
    struct failure *last_failure;
    struct failure *failures; /* oldest first */
    int n_failures;
    struct avoided_node *avoided; /* oldest first */
    int n_avoided;
    struct tensorboard_status tensorboard;
    struct jobprogress progress; /* the last progress of the newest attempt that reported one */
};

/* Decode the JSON of a status. `node` NULL gives an empty status. */
void jobstatus_decode(const cJSON *node, struct arena *a, struct jobstatus *ret);

/* Encode as JSON. Free with cJSON_Delete. */
cJSON *jobstatus_encode(const struct jobstatus *s);

const char *job_phase_name(enum job_phase p);
enum job_phase job_phase_of(const cJSON *status); /* JOB_NONE if absent or unknown */
int condition_type_of(const cJSON *condition);    /* -1: another controller's */
enum condition_state
condition_state_of(const cJSON *condition); /* COND_UNKNOWN if it is neither True nor False */
/* Whether another controller's condition fits into the status with ours and all newer ones of other
 * controllers. */
bool jobstatus_fits(const struct jobstatus *s, const cJSON *condition);

/* The sum of the restart counters; `restarts` also includes restarts for a changed template. */
static inline int64_t jobstatus_counted(const struct jobstatus *s)
{
    return (int64_t)s->backoff_count + s->disruption_count + s->admission_count;
}

/* The reason of the job and of condition Paused (still False) while its pods are being deleted for a pause. */
#define JOBSTATUS_PAUSING "Pausing"

/* Whether the job is paused or being paused by its status: its pods are not replaced, though they may still
 * exist. */
bool jobstatus_pause_begun(const struct jobstatus *s);

/* Succeeded or Failed: the job does not run again. */
static inline bool jobstatus_finished(const struct jobstatus *s)
{
    return s->phase == JOB_SUCCEEDED || s->phase == JOB_FAILED;
}

#endif
