/* simcluster.h - test helper: what an API server and its kubelets do to one job, in memory and by dice.
 *
 * Ownership: a sim owns its trees; a pass owns a decoded snapshot of them and the plan made of it.
 * Units:     milliseconds since the Unix epoch.
 * Errors:    what an API server would not take from a sound controller fails the test.
 */
#ifndef TK_TESTS_OPERATOR_SIMCLUSTER_H
#define TK_TESTS_OPERATOR_SIMCLUSTER_H

#include "operator/plan/plan.h"

enum { SIM_PODS_MAX = 32 };

/* The last pod of a name that the status knew. */
struct sim_life {
    char name[16];
    int64_t attempt, restart;
    bool repeats; /* Always brings it back as it was */
};

struct sim {
    uint64_t dice;
    uint64_t seed; /* for messages */
    int64_t now_ms;
    int64_t status_written_ms;
    int64_t due_ms; /* when the last plan wanted to be made again; 0: never */
    int last_uid;
    int n_seen;
    int n_nodes;
    cJSON *job;        /* NULL: deleted */
    cJSON *pods;       /* by name */
    cJSON *service;    /* NULL: none */
    cJSON *tb_service; /* likewise */
    cJSON *deployment;
    struct sim_life lives[SIM_PODS_MAX];
    bool status_was_lost; /* since the last write someone cleared it */
};

/* How a pass sees the cluster: as it is now, or an older job or older pods. */
struct sim_view {
    const cJSON *job, *pods;
};

struct sim_pass {
    struct arena arena;
    struct trainjob *job;
    struct pod *pods[SIM_PODS_MAX];
    struct child *children[3];
    struct plan_input in;
    struct plan plan;
};

/* 0..n-1; true in one of n cases. */
int sim_pick(struct sim *s, int n);
bool sim_one_in(struct sim *s, int n);

/* A random job, not yet seen by the operator. */
void sim_init(struct sim *s, uint64_t seed);
void sim_free(struct sim *s);

struct sim_view sim_now(const struct sim *s);
struct sim_pass *sim_plan(struct sim *s, struct sim_view view);
void sim_pass_free(struct sim_pass *p);

/* Run the actions; at most `n` of them, and none behind the first that the API server refuses. */
void sim_apply(struct sim *s, const struct sim_pass *p, int n);

/* Each pod continues as nodes let it: at random, or without any trouble. */
void sim_kubelets(struct sim *s, bool trouble);

/* Someone changes the job, or takes something away. */
void sim_people(struct sim *s);

/* Nobody pauses, debugs or scales any more. */
void sim_people_rest(struct sim *s);

/* Pod 0 ends with code 0. */
void sim_end_master(struct sim *s);

/* The life of that name; attempt -1 when there was none. */
struct sim_life *sim_life_of(struct sim *s, const char *name);

/* Whether pods of the type come again when they end well. */
bool sim_repeats(const struct sim *s, const char *type);

/* The job as text, for comparing. Lives in the arena. */
const char *sim_print(const struct sim *s, struct arena *a);

cJSON *sim_status(const struct sim *s); /* NULL: none */

#endif
