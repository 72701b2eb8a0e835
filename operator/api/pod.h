/* pod.h - the parts of a Pod, Service or Deployment that the planner reads: a few hundred bytes each.
 *
 * Ownership: one block of memory, freed by free(). Strings are never NULL: "" when absent.
 * Units:     milliseconds since the Unix epoch, 0 when not set.
 * Errors:    ERR_INVALID when metadata is unusable; any other value that does not fit counts as absent. Every
 *            string has a limit (decode.h), so a pod takes 9 KiB at most.
 */
#ifndef TK_OPERATOR_API_POD_H
#define TK_OPERATOR_API_POD_H

#include "operator/api/jobstatus.h"

/* Labels of a job's pods. The operator watches objects that have the first one. */
#define LABEL_JOB "batch.tensorstack.dev/job"
#define LABEL_TYPE "batch.tensorstack.dev/replica-type"
#define LABEL_INDEX "batch.tensorstack.dev/replica-index"
#define LABEL_ATTEMPT "batch.tensorstack.dev/attempt"
#define LABEL_RESTART "batch.tensorstack.dev/restart"
#define LABEL_TEMPLATE_HASH "batch.tensorstack.dev/template-hash"
#define LABEL_OWNER_NAME "tensorstack.dev/owner-name"

/* Annotation of a job's pod: the name of its training container. */
#define ANNOTATION_TRAINING_CONTAINER "batch.tensorstack.dev/training-container"

/* Annotation of a job's pod: the nodes that it avoids, if it avoids any. */
#define ANNOTATION_AVOIDED_NODES "batch.tensorstack.dev/avoided-nodes"

/* Annotation of the TensorBoard Deployment: a hash of its spec's inputs. */
#define ANNOTATION_SPEC_HASH "batch.tensorstack.dev/spec-hash"

/* Label of a job's pod in a PodGroup: the word of its scheduler. */
#define LABEL_GANG "batch.tensorstack.dev/gang"

/* Who starts all pods of an attempt together, through a PodGroup (plan/gang.h). */
enum gang_scheduler { GANG_NONE, GANG_COSCHEDULING, GANG_VOLCANO, GANG_NATIVE };

extern const char *const gang_schedulers[]; /* words; ends with NULL */

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_PHASE_UNKNOWN };

/* Why the pod has no node. */
enum pod_unplaced {
    UNPLACED_NO,            /* it has a node, or the reason is unknown */
    UNPLACED_GATE,          /* unplaced_by: the first of its scheduling gates */
    UNPLACED_UNSCHEDULABLE, /* the message of PodScheduled=False with reason Unschedulable */
    UNPLACED_CLAIM,         /* unplaced_by: the ResourceClaimTemplate without a ResourceClaim so far */
    UNPLACED_SCHEDULER,     /* unplaced_by: the scheduler, which has written no condition yet */
};

enum container_state { CONTAINER_NONE, CONTAINER_WAITING, CONTAINER_RUNNING, CONTAINER_TERMINATED };

/* The training container, or an init container. */
struct pod_container {
    const char *name;
    const char *reason;  /* waiting or terminated */
    const char *message; /* the last 2 KiB, or 512 bytes while waiting */
    enum container_state state;
    int32_t exit_code;
    int32_t signal;
    int64_t finished_ms;
};

struct pod {
    const char *unreadable; /* why only the five next members are known; "": the pod was read */
    const char *ns, *name, *uid, *owner_uid;
    const char *version; /* resourceVersion */
    const char *type;
    const char *hash;
    const char *node;
    const char *ip;                          /* from its status, so not trusted */
    const char *reason, *message;            /* of the pod's status */
    const char *disruption, *disruption_msg; /* reason and message of a true DisruptionTarget condition */
    const char *unplaced_by;                 /* see enum pod_unplaced */
    const char *finalizer;                   /* the first one */
    /* Names of other containers still running after the training ended. "": none, the training has not ended,
     * or the phase is final. */
    const char *working;
    /* Of a pod that failed or is being deleted, one entry per line, 1 KiB at most: "c NAME CODE" for each
     * container, then for each init container, that ended with another code than 0; then "p TYPE STATUS" for
     * each condition. Tabs separate the words. */
    const char *evidence;
    int32_t index;   /* -1: label missing or bad */
    int32_t attempt; /* -1: the same, or it starts without its native PodGroup */
    int32_t restart;
    int32_t deadline_s;       /* activeDeadlineSeconds; 0: none */
    enum pod_phase phase : 8; /* bit-fields to save memory: there are many pods */
    enum pod_unplaced unplaced : 8;
    enum gang_scheduler gang : 8;
    bool forced : 1;       /* deleted with a grace period of 0 */
    bool host_network : 1; /* its ports are the node's */
    bool beside : 1;       /* `init` is not an init container but one beside the training */
    bool sidecar : 1;      /* `init` is an init container with restartPolicy Always */
    bool avoids : 1;       /* it has ANNOTATION_AVOIDED_NODES */
    bool node_lost : 1; /* the control plane, not its kubelet, made it not ready: its node does not report */
    bool keyed : 1;     /* its training container's env has CONTRACT_ENV_JOB_KEY */
    bool crashed : 1;   /* `init` is being restarted: exit_code and message are of its last end */
    int64_t created_ms;
    int64_t since_ms;    /* when `init` started, if it runs; else when the pod got a node; 0: unknown */
    int64_t deletion_ms; /* deletionTimestamp, the end of the grace period; 0: not being deleted */
    struct pod_container training;
    /* The first init container that failed (not a sidecar); if none did, the first that the training waits
     * for. If the training runs: a container beside it that has not started. */
    struct pod_container init;
};

/* The training container in the spec of a pod, borrowed: the one that its annotation names, since a mesh's
 * webhook may add containers anywhere in the list. Without the annotation, or without such a container, the
 * rule for templates (trainjob_training_container) applies. */
const cJSON *pod_training_container(const cJSON *object);

/* Whether an init container runs beside the training: its end does not count. */
bool pod_is_sidecar(const cJSON *init_container);

/* Whether the pod is a member of a native PodGroup. Without its feature gate the API server drops that field. */
bool pod_has_native_group(const cJSON *object);

/* Whether the container's env sets the variable. The env of an existing pod cannot change. */
bool pod_has_env(const cJSON *container, const char *name);

/* `object` is borrowed for the call. unreadable: NULL, or why it has only names. */
struct pod *pod_decode(const cJSON *object, const struct err *unreadable, struct err *err) MUST_CHECK;

/* Whether the training container has terminated or can never start. */
bool pod_ended(const struct pod *p);

/* Whether the training container runs and the pod is not being deleted. */
bool pod_is_running(const struct pod *p);

/* The controller in ownerReferences, borrowed; NULL: none, or it is no PyTorchTrainingJob. Its UID; "": the same, or
 * the UID is too long. */
const cJSON *api_controller(const cJSON *metadata);
const char *api_controller_uid(const cJSON *metadata);

/* The number in a label, 0..max; else the fallback. */
int32_t api_label_number(const cJSON *labels, const char *key, int32_t max, int32_t fallback);

/* A Service or Deployment. */
struct child {
    const char *unreadable; /* as in struct pod */
    const char *ns, *name, *uid, *owner_uid;
    const char *spec_hash;
    /* Only for Deployments: */
    int64_t replicas, available;
    /* Message of the most important condition with a problem: ReplicaFailure, else Progressing, else
     * Available. */
    const char *trouble;
    bool refused; /* its pod cannot be created (ReplicaFailure) */
    /* Since when too few pods are available; 0: enough are available, or unknown. */
    int64_t unavailable_ms;
    bool deleting;
};

/* As pod_decode. */
struct child *child_decode(const cJSON *object, const struct err *unreadable, struct err *err) MUST_CHECK;

#endif
