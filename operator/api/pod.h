/* pod.h - what plan needs to know of a pod, and of a Service or Deployment: a few hundred bytes each.
 *
 * Ownership: one block of memory, pod_free / child_free ends it. Strings are never NULL: "" when absent.
 * Units:     milliseconds since the Unix epoch, 0 when not set.
 * Errors:    ERR_INVALID when metadata is unusable; anything else that does not fit counts as absent. Every string has
 *            a bound (decode.h), so a pod takes 8 KiB at most.
 */
#ifndef TK_OPERATOR_API_POD_H
#define TK_OPERATOR_API_POD_H

#include "operator/api/jobstatus.h"

/* Labels of a job's pods; the first one selects what the operator watches. */
#define LABEL_JOB "batch.tensorstack.dev/job"
#define LABEL_TYPE "batch.tensorstack.dev/replica-type"
#define LABEL_INDEX "batch.tensorstack.dev/replica-index"
#define LABEL_ATTEMPT "batch.tensorstack.dev/attempt"
#define LABEL_RESTART "batch.tensorstack.dev/restart"
#define LABEL_TEMPLATE_HASH "batch.tensorstack.dev/template-hash"
#define LABEL_OWNER_NAME "tensorstack.dev/owner-name"

/* On the TensorBoard Deployment: what its spec was made from. */
#define ANNOTATION_SPEC_HASH "batch.tensorstack.dev/spec-hash"

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_PHASE_UNKNOWN };

enum container_state { CONTAINER_NONE, CONTAINER_WAITING, CONTAINER_RUNNING, CONTAINER_TERMINATED };

/* The training container, or an init container. */
struct pod_container {
    const char *name;
    const char *reason;  /* waiting or terminated */
    const char *message; /* its last 2 KiB */
    enum container_state state;
    int32_t exit_code;
    int32_t signal;
    int64_t finished_ms;
};

struct pod {
    const char *ns, *name, *uid, *owner_uid;
    const char *version;    /* resourceVersion */
    const char *unreadable; /* why nothing but the above is known of it; "": it could be read */
    const char *type;
    const char *hash;
    const char *node;
    const char *reason, *message;            /* of the pod's status */
    const char *disruption, *disruption_msg; /* reason and message of a true DisruptionTarget condition */
    const char *unschedulable;               /* message of PodScheduled=False with reason Unschedulable */
    int32_t index;                           /* -1: label missing or bad */
    int32_t attempt;                         /* -1 likewise */
    int32_t restart;
    enum pod_phase phase;
    bool forced; /* deleted with a grace period of 0 */
    int64_t created_ms;
    int64_t deletion_ms; /* deletionTimestamp, the end of the grace period; 0: not being deleted */
    struct pod_container training;
    struct pod_container
        init; /* the first one that failed, sidecars apart; while none did, the first that waits */
};

/* `object` is borrowed for the call. */
struct pod *pod_decode(const cJSON *object, struct err *err) MUST_CHECK;
struct pod *pod_decode_unreadable(const cJSON *names, const struct err *why, struct err *err) MUST_CHECK;
void pod_free(struct pod *p);

size_t pod_bytes(const struct pod *p); /* of heap */

/* The training container's part is over: it ended, or it can never start. */
bool pod_ended(const struct pod *p);

/* Its training container runs, and nobody takes the pod away. */
bool pod_is_running(const struct pod *p);

/* The UID of the controlling owner, "" without one, and when that is no PyTorchTrainingJob or its UID is too long to be one;
 * borrowed. */
const char *api_controller_uid(const cJSON *metadata);

/* A Service or Deployment. */
struct child {
    const char *ns, *name, *uid, *owner_uid;
    const char *unreadable; /* as a pod's */
    const char *spec_hash;
    /* Deployments */
    int64_t replicas, available;
    const char
        *trouble; /* what its controller says is wrong: of ReplicaFailure, else Progressing, else Available */
    bool refused; /* its pod cannot even be created (ReplicaFailure) */
    int64_t unavailable_ms; /* since when too few pods are available; 0: enough are, or it is not said */
    bool deleting;
};

struct child *child_decode(const cJSON *object, struct err *err) MUST_CHECK;
struct child *child_decode_unreadable(const cJSON *names, const struct err *why, struct err *err) MUST_CHECK;
void child_free(struct child *c);

#endif
