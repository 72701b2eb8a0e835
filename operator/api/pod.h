/* pod.h - the parts of a Pod, Service or Deployment that the planner reads: a few hundred bytes each.
 *
 * Ownership: one block of memory, freed by pod_free or child_free. Strings are never NULL: "" when absent.
 * Units:     milliseconds since the Unix epoch, 0 when not set.
 * Errors:    ERR_INVALID when metadata is unusable; any other value that does not fit counts as absent. Every
 *            string has a limit (decode.h), so a pod takes 8 KiB at most.
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

/* Annotation of the TensorBoard Deployment: a hash of what its spec was made from. */
#define ANNOTATION_SPEC_HASH "batch.tensorstack.dev/spec-hash"

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_PHASE_UNKNOWN };

/* Why it has no node. */
enum pod_unplaced {
    UNPLACED_NO,            /* it has one, or nothing is known */
    UNPLACED_GATE,          /* unplaced_by: the first of its scheduling gates */
    UNPLACED_UNSCHEDULABLE, /* the message of PodScheduled=False with reason Unschedulable */
    UNPLACED_CLAIM,         /* the ResourceClaimTemplate from which no claim has been made */
    UNPLACED_SCHEDULER,     /* the scheduler that has written no condition yet */
};

enum container_state { CONTAINER_NONE, CONTAINER_WAITING, CONTAINER_RUNNING, CONTAINER_TERMINATED };

/* The training container, or an init container. */
struct pod_container {
    const char *name;
    const char *reason;  /* waiting or terminated */
    const char *message; /* its last 2 KiB, or 512 bytes while waiting */
    enum container_state state;
    int32_t exit_code;
    int32_t signal;
    int64_t finished_ms;
};

struct pod {
    const char *ns, *name, *uid, *owner_uid;
    const char *version;    /* resourceVersion */
    const char *unreadable; /* why only the members above are known; "": it was read */
    const char *type;
    const char *hash;
    const char *node;
    const char *ip;               /* of its status: anyone who may write that may have written it */
    const char *reason, *message; /* of the pod's status */
    const char *disruption, *disruption_msg; /* reason and message of a true DisruptionTarget condition */
    const char *unplaced_by;                 /* of what `unplaced` says */
    const char *finalizer;                   /* the first one */
    /* Names of the other containers that have not ended. "": there are none, the training has not ended, or the phase is final. */
    const char *working;
    int32_t index;   /* -1: label missing or bad */
    int32_t attempt; /* -1 likewise */
    int32_t restart;
    int32_t deadline_s;       /* activeDeadlineSeconds; 0: none */
    enum pod_phase phase : 8; /* a byte, as what follows: there are many pods */
    enum pod_unplaced unplaced : 8;
    bool forced;       /* deleted with a grace period of 0 */
    bool host_network; /* its ports are the node's */
    bool beside;       /* `init` is no init container */
    bool sidecar;      /* it is one with restartPolicy Always */
    bool keyed;        /* its training container's env has CONTRACT_ENV_JOB_KEY */
    bool crashed;      /* it ended and is started again: its exit_code and message are of its last end */
    int64_t created_ms;
    int64_t since_ms;    /* since when `init` runs, if it does, else since when it has a node; 0: not known */
    int64_t deletion_ms; /* deletionTimestamp, the end of the grace period; 0: not being deleted */
    struct pod_container training;
    /* The first init container that failed, sidecars excepted; if none did, the first that the training waits for. Of a pod whose
     * training runs: one beside it that has not started. */
    struct pod_container init;
};

/* The training container in the spec of a pod, borrowed: the one that its annotation names. A pod without the annotation, or
 * without such a container: as in a template. A mesh's webhook may have put its own container before, between or behind. */
const cJSON *pod_training_container(const cJSON *object);

/* Whether the container's env, which nobody can change in a pod that exists, sets the variable. */
bool pod_has_env(const cJSON *container, const char *name);

/* `object` is borrowed for the call. */
struct pod *pod_decode(const cJSON *object, struct err *err) MUST_CHECK;
struct pod *pod_decode_unreadable(const cJSON *names, const struct err *why, struct err *err) MUST_CHECK;
void pod_free(struct pod *p);

size_t pod_bytes(const struct pod *p); /* heap memory of p */

/* Whether the training container's part is over: it has terminated, or can never start. */
bool pod_ended(const struct pod *p);

/* Whether its training container runs and the pod is not being deleted. */
bool pod_is_running(const struct pod *p);

/* The UID of the controller in ownerReferences, borrowed. "": there is none, it is not a PyTorchTrainingJob,
 * or the UID is too long. */
const char *api_controller_uid(const cJSON *metadata);

/* A Service or Deployment. */
struct child {
    const char *ns, *name, *uid, *owner_uid;
    const char *unreadable; /* as in struct pod */
    const char *spec_hash;
    /* Of Deployments only. */
    int64_t replicas, available;
    /* Message of the most important condition that reports a problem: ReplicaFailure, else Progressing, else
     * Available. */
    const char *trouble;
    bool refused; /* its pod cannot be created (ReplicaFailure) */
    /* Since when too few pods are available; 0: enough are, or it is not known. */
    int64_t unavailable_ms;
    bool deleting;
};

struct child *child_decode(const cJSON *object, struct err *err) MUST_CHECK;
struct child *child_decode_unreadable(const cJSON *names, const struct err *why, struct err *err) MUST_CHECK;
void child_free(struct child *c);

#endif
