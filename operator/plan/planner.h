/* planner.h - the state of one planning pass; shared by the files of plan/ only.
 *
 * Ownership: everything lives in the pass's arena or is borrowed from the input.
 */
#ifndef TK_OPERATOR_PLAN_PLANNER_H
#define TK_OPERATOR_PLAN_PLANNER_H

#include "operator/plan/plan.h"

/* One place in the gang. */
struct slot {
    const struct replica_spec *spec;
    int type;  /* place in replicaSpecs */
    int index; /* within the type */
    int order; /* within the job: the node rank; 0 is the master */
    const char *name;
    const struct pod *pod;             /* of the current attempt and restart; NULL: none */
    bool leaving;                      /* the pod that the next one replaces is still there */
    const struct replica_status *seen; /* what the status says of it in this attempt; NULL: nothing */
};

struct action_list {
    struct action *items;
    int n, cap;
};

struct planner {
    const struct plan_input *in;
    const struct trainjob *job;
    const struct trainjob_spec *spec;
    struct arena *a;
    int64_t now_ms;
    struct jobstatus st; /* the new status, grown from the old one */
    struct slot *slots;
    int n_slots;
    int n_old_pods; /* of earlier attempts, Terminating ones included */
    const char *reason_message;
    /* In the order in which they run; the status goes before all of them. */
    struct action_list events, checks, deletes, creates, tensorboard;
    int64_t requeue_ms;
    bool pods_first; /* as in struct plan, if there are pods to create */
};

/* The slots of the spec with the pods of the status's attempt in them. Again after the attempt changed. */
void planner_fill_slots(struct planner *p);

/* The slot's pod did its part and must not run again in this attempt. */
bool planner_slot_done(const struct slot *s);

/* All pods run or did their part, of an elastic job as many as it needs. */
bool planner_gang_runs(const struct planner *p);

struct action *planner_add(struct planner *p, struct action_list *list, enum action_kind kind);
void planner_event(struct planner *p, bool warning, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void planner_delete(struct planner *p, struct action_list *list, enum child_kind child, const char *name,
                    const char *uid);
void planner_delete_pod(struct planner *p, const struct pod *pod);

/* Plan again at `at_ms` or sooner. */
void planner_requeue(struct planner *p, int64_t at_ms);

/* State, reason and message; the transition time moves only with the state. */
void planner_condition(struct planner *p, enum condition_type type, bool on, const char *reason,
                       const char *message);

/* The word for the REASON column and what a person should know with it. The first of a pass wins. */
void planner_reason(struct planner *p, const char *reason, const char *message);

/* The same where the column also says what it is about, behind the word: "ClaimNotFound data". NULL: nothing. */
void planner_reason_about(struct planner *p, const char *reason, const char *subject, const char *message);

char *planner_json(struct planner *p, const cJSON *node);

#endif
