/* workload.h - the parts of Kueue's objects that the planner reads: a Workload, a ResourceFlavor, and the two
 * kinds of priority classes.
 *
 * Ownership: one block of memory each, freed by free(). Strings are never NULL: ""
 *            when absent.
 * Units:     milliseconds since the Unix epoch, 0 when not set.
 * Errors:    ERR_INVALID when metadata is unusable, or when the admission is larger than Kueue writes it. Any
 *            other value that does not fit counts as absent. A Workload takes WORKLOAD_ADMISSION_BYTES and 9 KiB
 *            at most, a setting 32 KiB.
 */
#ifndef TK_OPERATOR_API_WORKLOAD_H
#define TK_OPERATOR_API_WORKLOAD_H

#include "operator/api/jobstatus.h"

#define WORKLOAD_GROUP "kueue.x-k8s.io"
#define WORKLOAD_VERSION "v1beta2"
#define WORKLOAD_API_VERSION WORKLOAD_GROUP "/" WORKLOAD_VERSION

/* While it is there, the Workload keeps its quota, also while it is being deleted. */
#define WORKLOAD_FINALIZER WORKLOAD_GROUP "/resource-in-use"

/* Labels of a job. */
#define LABEL_QUEUE WORKLOAD_GROUP "/queue-name"
#define LABEL_QUEUE_PRIORITY WORKLOAD_GROUP "/priority-class"
#define LABEL_QUEUE_MAX_TIME WORKLOAD_GROUP "/max-exec-time-seconds"

/* Annotation, or label, of a job in a worker cluster of MultiKueue: the name of its Workload, which exists already. */
#define QUEUE_PREBUILT WORKLOAD_GROUP "/prebuilt-workload-name"

/* Label of a Workload that MultiKueue sent: who may write jobs cannot set it. */
#define QUEUE_ORIGIN WORKLOAD_GROUP "/multikueue-origin"

/* Annotation of a job, copied to its Workload: Kueue does not admit it before the annotation is removed. */
#define ANNOTATION_QUEUE_GATE WORKLOAD_GROUP "/admission-gated-by"

/* Annotations of a pod template: requests of a topology. The last one is also set on pods whose template requests
 * none. */
#define ANNOTATION_TOPOLOGY_REQUIRED WORKLOAD_GROUP "/podset-required-topology"
#define ANNOTATION_TOPOLOGY_PREFERRED WORKLOAD_GROUP "/podset-preferred-topology"
#define ANNOTATION_TOPOLOGY_ANY WORKLOAD_GROUP "/podset-unconstrained-topology"

enum {
    WORKLOAD_PODSETS_MAX = 18,
    WORKLOAD_MESSAGE_BYTES = 512,
    WORKLOAD_GATES_BYTES = 1024,
    WORKLOAD_FINALIZERS_BYTES = 4096,
    WORKLOAD_ADMISSION_BYTES = 64 << 10,
    QUEUE_SETTING_BYTES = 16 << 10, /* of labels, and of tolerations */
};

enum workload_condition_type {
    WORKLOAD_QUOTA_RESERVED,
    WORKLOAD_ADMITTED,
    WORKLOAD_EVICTED,
    WORKLOAD_PODS_READY,
    WORKLOAD_FINISHED,
    WORKLOAD_CONDITIONS,
};

struct workload_condition {
    enum condition_state state;
    const char *reason, *message;
};

struct workload {
    const char *unreadable; /* as in struct pod */
    const char *ns, *name, *uid, *owner_uid, *version;
    size_t bytes; /* of the object's JSON, as far as it was read */
    bool deleting;
    bool finalizer;               /* WORKLOAD_FINALIZER is there, and can be removed */
    const char *other_finalizers; /* those of others, as a JSON array */
    bool has_admission;
    const char *queue;
    const char *gated_by;                        /* the annotation */
    const char *priority_group, *priority_class; /* "": none */
    int64_t priority, max_time_s;                /* 0: not set */
    const char *content;                         /* what Kueue decides from, see workload_content */
    const char *sizes;                           /* see workload_sizes */
    struct workload_condition conditions[WORKLOAD_CONDITIONS];
    int64_t requeue_ms; /* Kueue does not try it before this time */
    const char *cluster_queue;
    /* The admission as a JSON array, by podSet: [{"name", "count", "flavors": {resource: name}, "topology": bool,
     * "updates": [{labels, annotations, nodeSelector, tolerations}]}]. "": none. */
    const char *assignments;
};

/* As pod_decode. */
struct workload *workload_decode(const cJSON *object, const struct err *unreadable,
                                 struct err *err) MUST_CHECK;

static inline bool workload_is(const struct workload *w, enum workload_condition_type type)
{
    return w->conditions[type].state == COND_TRUE;
}

static inline bool workload_is_reserved(const struct workload *w)
{
    return w->has_admission || workload_is(w, WORKLOAD_QUOTA_RESERVED);
}

/* Its quota has to be given back. */
static inline bool workload_is_evicted(const struct workload *w)
{
    return workload_is(w, WORKLOAD_EVICTED) && workload_is_reserved(w) && !workload_is(w, WORKLOAD_FINISHED);
}

const char *workload_condition_name(enum workload_condition_type type);

/* One podSet of a Workload. */
struct workload_podset {
    const char *name;
    const cJSON *template;
    int64_t count, min; /* min 0: not set */
};

/* A hash, as hex digits, of what Kueue decides from except counts: names, resources, tolerations, node selectors,
 * topology. It is the same for a job's templates and for the Workload made of them, whatever the API server adds. */
void workload_content(const struct workload_podset *sets, int n, char out[static 17]);

enum { WORKLOAD_SIZES_BYTES = WORKLOAD_PODSETS_MAX * 24 };

/* The counts as text: "1,4", with a minimum "4/2". */
void workload_sizes(const struct workload_podset *sets, int n, char out[static WORKLOAD_SIZES_BYTES]);

/* A copy of resources (requests or limits) with all quantities as strings: a Workload's schema refuses 0.5. */
cJSON *workload_quantities(const cJSON *resources);

/* ---- changes of a whole Workload, as the API server returned it; false: there is nothing to change */

/* Give the quota back after an eviction. */
bool workload_release(cJSON *object, int64_t now_ms);

/* Add the owner, a controller, and the labels of `meta`. False also if there is another controller, or if MultiKueue has
 * not sent it: other Workloads of the namespace are not a job's to take. */
bool workload_adopt(cJSON *object, const cJSON *meta);

/* Set the members of `spec` and of the annotations that `patch` has; null removes one. Of podSets without a template,
 * only what they name. */
bool workload_set_spec(cJSON *object, const cJSON *patch);

/* ---- cluster-wide objects that a Workload refers to */

enum queue_setting_kind { QUEUE_FLAVOR, QUEUE_PRIORITY, QUEUE_POD_PRIORITY, QUEUE_SETTINGS };

struct queue_setting {
    const char *name, *uid;
    const char *unreadable;                /* as in struct pod */
    int64_t value;                         /* a priority */
    bool is_default;                       /* globalDefault of a PriorityClass */
    const char *node_labels, *tolerations; /* of a ResourceFlavor, as JSON; "": none */
};

struct queue_setting *queue_setting_decode(const cJSON *object, struct err *err) MUST_CHECK;

#endif
