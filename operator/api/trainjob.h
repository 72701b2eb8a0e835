/* trainjob.h - a decoded PyTorchTrainingJob: metadata, spec and status.
 *
 * Ownership: trainjob_decode takes the tree. The job owns it and an arena; all strings live in one of the
 *            two, and trainjob_free frees both. A decoded job does not change.
 * Units:     milliseconds since the Unix epoch; `_s` seconds.
 * Errors:    ERR_INVALID when the object has no usable metadata. An invalid spec is not an error:
 *            `spec_error` has the message with its path, and `spec` is empty except for the readable part of
 *            runPolicy. The status can still be written.
 */
#ifndef TK_OPERATOR_API_TRAINJOB_H
#define TK_OPERATOR_API_TRAINJOB_H

#include "operator/api/decode.h"
#include "operator/api/jobstatus.h"

#define TRAINJOB_GROUP "batch.tensorstack.dev"
#define TRAINJOB_VERSION "v1beta1"
#define TRAINJOB_API_VERSION TRAINJOB_GROUP "/" TRAINJOB_VERSION
#define TRAINJOB_KIND "PyTorchTrainingJob"
#define TRAINJOB_PLURAL "pytorchtrainingjobs"

/* Jobs whose spec.managedBy or spec.runPolicy.managedBy names another controller are ignored. */
#define TRAINJOB_MANAGED_BY "batch.tensorstack.dev/ptj-operator"
#define TRAINJOB_MULTIKUEUE "kueue.x-k8s.io/multikueue"

enum {
    TRAINJOB_TYPES_MAX = JOBSTATUS_TASKS_MAX,
    TRAINJOB_PODS_MAX = JOBSTATUS_REPLICAS_MAX,
    TRAINJOB_NAME_MAX = 63,
    TRAINJOB_TYPE_MAX = 60, /* as in the CRD's schema; the limit of pod names is lower */
    TRAINJOB_EXIT_CODES_MAX = 32,
    TRAINJOB_BACKOFF_LIMIT = 3,
    TRAINJOB_SIDECAR_GRACE_S = 30,
};

enum restart_policy { RESTART_ALWAYS, RESTART_ON_FAILURE, RESTART_NEVER, RESTART_EXIT_CODE };

struct replica_spec {
    const char *type;
    int32_t replicas;
    enum restart_policy restart_policy;
    const cJSON *template; /* the user's PodTemplateSpec; only container names and quantities are checked */
};

enum rdzv_backend { RDZV_C10D, RDZV_STATIC, RDZV_ETCD, RDZV_ETCD_V2 };

/* Which torchrun the training container runs: its image's, or the operator's own. */
enum launcher { LAUNCHER_IMAGE, LAUNCHER_TORCHKEEPER };

/* Names that the operator's own launcher uses in a pod: of its init container and volume, and its folder. */
#define TRAINJOB_LAUNCHER_NAME "torchkeeper-launcher"
#define TRAINJOB_LAUNCHER_FOLDER "/torchkeeper"
#define TRAINJOB_LAUNCHER_PROGRAM TRAINJOB_LAUNCHER_FOLDER "/torchrun"

struct torchrun_config {
    bool present; /* torchrunConfig is set in the spec */
    bool enabled;
    int32_t max_restarts;
    const char *proc_per_node; /* "4", "gpu", "auto", "cpu" */
    enum rdzv_backend rdzv_backend;
    enum launcher launcher;
    const char *const *extra_options;
    int n_extra_options;
    int32_t min_nodes; /* 0: not set */
};

enum cleanup_policy { CLEANUP_NONE, CLEANUP_UNFINISHED, CLEANUP_ALL };

/* SCOPE_DEFAULT: not set, which means Job, and Replica for elastic jobs. */
enum restart_scope { SCOPE_DEFAULT, SCOPE_JOB, SCOPE_REPLICA };

struct run_policy {
    struct opt_i64 active_deadline_s;
    struct opt_i64 ttl_after_finished_s;
    struct opt_i64 start_deadline_s;
    struct opt_i64 force_delete_after_s;
    int32_t sidecar_grace_s;
    struct opt_i64 progress_timeout_s; /* of the operator's launcher */
    int32_t backoff_limit;
    enum cleanup_policy cleanup_policy;
    enum restart_scope restart_scope;
    int32_t retryable_exit_codes[TRAINJOB_EXIT_CODES_MAX];
    int n_retryable_exit_codes;
    const cJSON *failure_rules; /* podFailurePolicy.rules, checked (plan/judge.c); NULL: none */
    const char *managed_by;     /* of the spec or of runPolicy; NULL: this operator */
    bool open_network;          /* networkPolicy: false */
    bool no_avoiding;           /* avoidNodes: false */
    bool no_last_words;         /* lastWords: false: statuses and events contain no output of programs */
};

/* spec.elastic: the number of pods may change while the job runs. `expected` is also the replicas of the one
 * type. */
struct elastic {
    bool enabled;
    int32_t min, max, expected;
};

/* runPolicy.schedulingPolicy and scheduler.t9kScheduler, which mean the same. */
struct scheduling {
    int32_t min_available; /* 0: all pods; of an elastic job minReplicas */
    const char *queue;
    const char *priority_class;
    struct opt_i64 timeout_s;
    bool t9k_queue;    /* `queue` is t9kScheduler's */
    bool has_priority; /* t9kScheduler.priority */
};

struct tensorboard_log {
    const char *pvc;
    const char *path; /* normalised, relative to the volume's root; "" is the root */
};

struct tensorboard_spec {
    bool present;
    bool suspend;
    const char *image; /* NULL: the operator's default */
    const cJSON *resources;
    const struct tensorboard_log *logs;
    int n_logs;
    struct opt_i64 ttl_after_finished_s;
};

/* The command that the training container of one type runs instead of its template's. */
struct run_instead {
    const char *type;
    bool skip_init;
    bool has_command, has_args; /* set; an empty list means the image's own */
    const char *const *command;
    int n_command;
    const char *const *args;
    int n_args;
};

struct run_mode {
    bool enabled;
    struct run_instead *items; /* at most one per type */
    int n;
    const cJSON *tree; /* the list in the spec */
};

struct trainjob_spec {
    bool paused; /* suspend or runMode.pause.enabled */
    struct replica_spec replica_specs[TRAINJOB_TYPES_MAX];
    int n_replica_specs;
    int32_t pods; /* of all types */
    int64_t gpus; /* of the training containers of all pods */
    struct torchrun_config torchrun;
    struct elastic elastic;
    struct run_policy run_policy;
    struct scheduling scheduling;
    struct run_mode debug;
    struct run_mode resume; /* enabled: paused; the items apply after the pause */
    struct tensorboard_spec tensorboard;
    char hash[17]; /* of all fields that affect a pod */
    /* Set before decoding: accept unknown keys of a template, since the job has run with them. */
    bool lenient;
    const char *unknown; /* "PATH: unknown field": the first of these keys; NULL: none */
};

/* The labels of a job that is queued by Kueue, and its annotation admission-gated-by. */
struct job_queue {
    const char *name;           /* of the LocalQueue; NULL: the job is not queued */
    const char *priority_class; /* NULL: not set */
    const char *gated_by;       /* NULL: not set */
    const char *prebuilt;       /* name of the Workload, which others make; NULL: the operator makes it */
    int64_t max_time_s;         /* 0: not set */
    const char *bad_max_time;   /* the label, if it is no such number */
};

struct trainjob {
    const char *ns, *name, *uid, *resource_version;
    struct job_queue queue;
    int64_t generation;
    int64_t created_ms;
    bool deleting;
    const char *spec_error; /* NULL: the spec is valid */
    /* Why only names and perhaps status.reason are known; NULL: the job was read. */
    const char *unreadable;
    struct trainjob_spec spec;
    struct jobstatus status;
    const cJSON *status_tree; /* as received; NULL: none */
    cJSON *tree;
    struct arena arena;
};

struct trainjob *trainjob_decode(cJSON *tree, struct err *err) MUST_CHECK;
void trainjob_free(struct trainjob *job);

/* Parts of trainjob_decode, in separate files. Strings point into the tree or live in the arena. */
int trainjob_decode_spec(const struct json_at *root, struct arena *a, struct trainjob_spec *ret,
                         struct err *err) MUST_CHECK;
int trainjob_decode_torchrun(const struct json_at *spec, struct arena *a, struct torchrun_config *ret,
                             struct err *err) MUST_CHECK;
/* With the operator's launcher: check that no template uses its names and its folder. Call it after
 * torchrunConfig and replicaSpecs. */
int trainjob_check_launcher(const struct json_at *spec, const struct trainjob_spec *s,
                            struct err *err) MUST_CHECK;
/* s: has the replicaSpecs, whose containers podFailurePolicy may name; NULL: do not check that. */
int trainjob_decode_run_policy(const struct json_at *spec, const struct trainjob_spec *s,
                               struct run_policy *ret, struct err *err) MUST_CHECK;
int trainjob_decode_failure_policy(const struct json_at *run_policy, const struct trainjob_spec *s,
                                   const cJSON **ret, struct err *err) MUST_CHECK;
int trainjob_decode_run_mode(const struct json_at *spec, struct arena *a, struct trainjob_spec *ret,
                             struct err *err) MUST_CHECK; /* after replicaSpecs */
int trainjob_decode_scheduling(const struct json_at *spec, struct trainjob_spec *ret,
                               struct err *err) MUST_CHECK; /* after elastic */
int trainjob_decode_elastic(const struct json_at *spec, struct trainjob_spec *ret,
                            struct err *err) MUST_CHECK; /* after the fields that it changes */
int trainjob_decode_tensorboard(const struct json_at *spec, struct arena *a, struct tensorboard_spec *ret,
                                struct err *err) MUST_CHECK;

/* The training container, whose exit decides over the pod: the first one named "python" or "pytorch", else
 * the first; NULL without containers. */
const cJSON *trainjob_training_container(const cJSON *pod_spec);

/* The number of GPUs in a container's limits. *ret_some: it has GPUs, or a resource such as GPU memory, which
 * does not count. */
int64_t trainjob_gpus(const cJSON *container, bool *ret_some);

static inline void trainjob_freep(struct trainjob **j)
{
    trainjob_free(*j);
}
#define cleanup_trainjob __attribute__((cleanup(trainjob_freep)))

#endif
