/* planner.h - the state of one plan under construction; only for the files of plan/.
 *
 * Ownership: everything lives in the plan's arena or is borrowed from the input.
 */
#ifndef TK_OPERATOR_PLAN_PLANNER_H
#define TK_OPERATOR_PLAN_PLANNER_H

#include "operator/plan/plan.h"
#include "operator/plan/podwaiting.h"

/* One pod of the gang, as specified. */
struct slot {
    const struct replica_spec *spec;
    int type;  /* index in replicaSpecs */
    int index; /* index within the type */
    int order; /* index within the job: the node rank; 0 is the master */
    const char *name;
    const struct pod *pod;             /* of the current attempt and restart; NULL: none */
    bool leaving;                      /* the pod of an earlier restart still exists */
    const struct replica_status *seen; /* the slot's entry in the status of this attempt; NULL: none */
};

struct action_list {
    struct action *items;
    int n, cap;
};

/* What a queued job may do now; see queue.h. */
struct queue_state {
    enum {
        QUEUE_FREE, /* the job is not queued: its pods may run */
        QUEUE_RUN,  /* it is admitted: its pods may run, as `assignments` says */
        QUEUE_HOLD, /* not known, or not to be decided now: pods stay, and none is created */
        QUEUE_WAIT, /* no pods */
    } verdict;
    const struct workload *workload; /* the job's; NULL: none */
    const char *reason, *message;    /* while HOLD or WAIT: for status.reason */
    bool silent;                     /* Kueue has not said anything yet: the reason is one word */
    bool remote;                     /* see planner_is_remote */
    bool pending;                    /* Kueue has it in a queue */
    int step;                        /* enum queue_step */
    bool changed;       /* it runs, but the job is another one now than the admitted one: see queue_settle */
    cJSON *assignments; /* freed by queue_end */
    const char *patch;  /* what EDIT_SPEC sets; NULL: nothing */
};

struct planner {
    const struct plan_input *in;
    struct plan *out;
    const struct trainjob *job;
    const struct trainjob_spec *spec;
    struct arena *a;
    int64_t now_ms;
    struct jobstatus st; /* the new status; initially a copy of the old one */
    struct queue_state queue;
    struct slot *slots;
    int n_slots;
    int n_old_pods; /* of earlier attempts, Terminating ones included */
    const char *reason_message;
    /* In the order of execution, after the status. */
    struct action_list events, gangs, deletes, workloads, creates, tensorboard, ready;
    bool pods_first;    /* as in struct plan, if there are pods to create */
    bool others_follow; /* only pod 0 exists, and the other pods follow */
};

/* Create the slots of the spec and assign the pods of the status's attempt to them. Call it again when the
 * attempt has changed. */
void planner_fill_slots(struct planner *p);

/* Whether spec.runPolicy.managedBy leaves the job to this operator. */
bool planner_is_ours(const struct trainjob *job);

/* Whether MultiKueue runs the job in another cluster and copies its status: only its Workload is this operator's. */
bool planner_is_remote(const struct trainjob *job);

/* Whether the slot's pod has succeeded and must not run again in this attempt. */
bool planner_slot_done(const struct slot *s);

/* Whether a pod of the attempt was created from another template. */
bool planner_has_other_template(const struct planner *p);

/* Whether all pods (of an elastic job: at least minReplicas) run or have succeeded. */
bool planner_gang_runs(const struct planner *p);

/* Whether the actions create an object of this kind. */
bool planner_creates(const struct action *items, int n, enum child_kind child);

/* Whether a slot of the attempt has a pod. Other pods with the job's labels may be anybody's. */
bool planner_has_pods(const struct planner *p);

/* When the oldest pod in a slot was created; INT64_MAX: there is none. */
int64_t planner_oldest_ms(const struct planner *p);

/* The entry of this type in the new status; NULL: none. */
struct task_status *planner_task(const struct planner *p, const char *type);

/* Why the slot's pod waits; with lastWords: false without output of programs. */
struct waiting planner_waiting(const struct planner *p, const struct slot *s);

/* The caller fills in the returned action before it adds another one to the list. */
struct action *planner_add(struct planner *p, struct action_list *list, enum action_kind kind);

/* An event that follows the status; or, in a list of actions, the actions before it, if these succeed. */
#define planner_event(p, ...) planner_event_in((p), &(p)->events, __VA_ARGS__)
void planner_event_in(struct planner *p, struct action_list *list, bool warning, const char *reason,
                      const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* An action on an existing object. planner_create: frees `body`. */
struct action *planner_create(struct planner *p, struct action_list *list, enum child_kind child,
                              const char *name, cJSON *body);
struct action *planner_on(struct planner *p, struct action_list *list, enum action_kind kind,
                          enum child_kind child, const char *name, const char *uid);

/* NULL: the pod is Terminating already. */
struct action *planner_delete_pod(struct planner *p, const struct pod *pod);

/* seen_ms, a time of struct plan_seen (0: now), or `ms`, a time of another machine's clock, if that is
 * earlier. */
int64_t planner_first_seen(const struct planner *p, int64_t seen_ms, int64_t ms);

/* Plan again at `at_ms` or sooner. */
void planner_requeue(struct planner *p, int64_t at_ms);

/* Whether this time has come; if not, plan again then. */
bool planner_is_due(struct planner *p, int64_t at_ms);

/* Set a condition; its transition time changes only with its state. */
void planner_condition(struct planner *p, enum condition_type type, bool on, const char *reason,
                       const char *message);

/* Set status.reason (the REASON column), with a subject after it ("ClaimNotFound data") unless that is NULL, and
 * its message. Only the first call in a plan has an effect. */
void planner_reason(struct planner *p, const char *reason, const char *subject, const char *message);

#endif
