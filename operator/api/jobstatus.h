/* jobstatus.h - the status of a PyTorchTrainingJob: typed for plan, JSON for the API server.
 *
 * Ownership: strings and arrays live in the arena given, or are literals.
 * Units:     milliseconds since the Unix epoch, kept to the second in JSON; 0 means not set.
 * Errors:    reading never fails: what does not fit its type or its bound counts as lost, and the status is
 *            rebuilt from the pods.
 */
#ifndef TK_OPERATOR_API_JOBSTATUS_H
#define TK_OPERATOR_API_JOBSTATUS_H

#include "common/json.h"

enum job_phase {
    JOB_NONE, /* never seen by us */
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
    JOBSTATUS_TASKS_MAX = 16, /* as many as a job may have types, and pods */
    JOBSTATUS_REPLICAS_MAX = 1024,
    JOBSTATUS_FAILURES_MAX = 10,
    JOBSTATUS_MESSAGE_BYTES = 2048,
    JOBSTATUS_OLD_MESSAGE_BYTES = 256,
};

/* The highest count that is believed, in the status and in labels: nobody gets there by counting, and counting on from
 * there still fits. */
enum { COUNT_MAX = INT32_MAX / 2 };

static inline int32_t count_up(int32_t n)
{
    return n < COUNT_MAX ? n + 1 : COUNT_MAX;
}

struct failure {
    const char *pod, *uid, *node, *reason, *message; /* node, message may be NULL */
    int32_t rank;                                    /* -1: not known */
    int32_t exit_code;                               /* -1: no container ended */
    int32_t signal;                                  /* 0: none */
    int32_t attempt;
    int64_t time_ms;
};

struct replica_status {
    const char *name;
    const char *uid; /* NULL: no pod of this attempt was seen */
    enum replica_phase phase;
    int32_t restarts;
    const char *container; /* the training container's; NULL: not known */
    const char *state;     /* Waiting, Running, Terminated */
    int32_t exit_code;     /* -1: not ended */
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
    int32_t
        restarts; /* backoff_count + disruption_count + admission_count + changed templates; never falls */
    int32_t ran_attempt; /* the last attempt whose Running condition was True; -1: none */
    struct condition conditions[COND_TYPES];
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
    struct tensorboard_status tensorboard;
};

/* `node` NULL gives an empty status. */
void jobstatus_decode(const cJSON *node, struct arena *a, struct jobstatus *ret);

/* Free with cJSON_Delete. */
cJSON *jobstatus_encode(const struct jobstatus *s);

const char *job_phase_name(enum job_phase p);
enum job_phase job_phase_of(const cJSON *status); /* JOB_NONE where it has none, or no word of ours */
const char *condition_type_name(enum condition_type t);
const char *replica_phase_name(enum replica_phase p);

/* The restarts that have a counter of their own; `restarts` has also those for a changed template. */
static inline int64_t jobstatus_counted(const struct jobstatus *s)
{
    return (int64_t)s->backoff_count + s->disruption_count + s->admission_count;
}

/* The reason of a job whose pods are on their way out because it is to be paused: its condition Paused is still False. */
#define JOBSTATUS_PAUSING "Pausing"

/* It stands written that the job is to be paused: what ran before does not come back, though it may not be gone yet. */
bool jobstatus_pause_begun(const struct jobstatus *s);

/* Succeeded or Failed: nothing changes it any more. */
static inline bool jobstatus_finished(const struct jobstatus *s)
{
    return s->phase == JOB_SUCCEEDED || s->phase == JOB_FAILED;
}

#endif
