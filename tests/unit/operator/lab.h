/* lab.h - test helper: the operator against the fake API server, a pretend kubelet and garbage collector, and
 * time that jumps.
 *
 * Time:  the lab raises the clock whenever nothing is going on, so that delays of minutes pass in no time and
 *        no test decides by absolute time. lab_start speaks real HTTP: the operator's clock is the machine's
 *        plus an offset. lab_start_direct has no socket and no thread: the clock is the offset alone, and a run
 *        repeats exactly.
 */
#ifndef TK_TESTS_OPERATOR_LAB_H
#define TK_TESTS_OPERATOR_LAB_H

#include "kube/elector.h"
#include "kube/http.h"
#include "operator/controller.h"
#include "tests/fakes/direct.h"
#include "tests/fakes/rules.h"

#define LAB_JOB "/apis/batch.tensorstack.dev/v1beta1/namespaces/ns/pytorchtrainingjobs/j"
#define LAB_PODS "/api/v1/namespaces/ns/pods"
#define LAB_SERVICES "/api/v1/namespaces/ns/services"
#define LAB_DEPLOYMENTS "/apis/apps/v1/namespaces/ns/deployments"

#define LAB_SECRETS "/api/v1/namespaces/ns/secrets"
#define LAB_POLICIES "/apis/networking.k8s.io/v1/namespaces/ns/networkpolicies"

#define LAB_LEASES "/leases"

#define LAB_KUEUE "/apis/kueue.x-k8s.io/v1beta2"
#define LAB_WORKLOADS LAB_KUEUE "/namespaces/ns/workloads"

/* A job of so many pods; `members` of its spec end with a comma. */
#define LAB_SPEC(members, replicas)                                                                          \
    "{'spec':{" members "'replicaSpecs':[{'type':'node','replicas':" replicas                                \
    ",'restartPolicy':'ExitCode','template':{'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}]}}"
#define LAB_TWO LAB_SPEC("", "2")

enum { LAB_PODS_MAX = 256, LAB_OPERATORS_MAX = 2, LAB_SETTLED_JUMPS = 45 };

enum lab_fate {
    LAB_RUNS = -1,
    LAB_PENDING = -2, /* never starts */
    LAB_STUCK = -3,   /* runs, and its node does not answer when it is deleted */
};

/* A pod as the kubelet met it. */
struct lab_pod {
    char name[64], uid[64];
    int index, attempt, restart;
    int age; /* kubelet rounds since it was seen */
    bool running, ended, gone;
    bool cut; /* what ran beside its training was ended, since the pod's deadline had passed */
};

/* One process. Alone it always leads; two of them settle it by a Lease. */
struct lab_operator {
    struct kube_loop *loop; /* NULL: not running */
    struct http *http;
    struct fake_direct *direct;
    struct kube_transport transport;
    struct elector *elector;
    char identity[16];
    struct kube_recorder *recorder;
    struct controller *controller;
};

struct lab {
    struct fake_apiserver *server;
    bool direct;
    int64_t offset_ms;
    int64_t node_ahead_ms, server_ahead_ms; /* of the operators' clock */
    int64_t slow_ms;                        /* so much passes between two looks at the clock */
    int64_t busy_us, used_us;               /* so much CPU time is used between two looks at that; in all */
    int64_t back_ms;                        /* by so much that was set back */
    struct kube_config config;
    struct log log;
    struct lab_operator operators[LAB_OPERATORS_MAX];
    int n_operators;
    int started; /* operators so far */
    struct fake_tamper tamper;
    bool
        bookmarks; /* each minute, as a real server sends them: no watch is silent for so long that it is given up */
    bool collects; /* garbage: what belongs to a job that is not there any more */
    struct lab_pod pods[LAB_PODS_MAX];
    int n_pods;
    long requests;             /* seen so far, and answers given */
    int works;                 /* those of them that are no list or watch */
    int quiet;                 /* turns without a request */
    int idle;                  /* jumps of the clock without work */
    int settle_jumps;          /* so many of them are the end; 0: LAB_SETTLED_JUMPS */
    int gang;                  /* no pod ends well before so many of its attempt run */
    uint64_t collected;        /* the version that had no garbage */
    int step;                  /* of a test's own story */
    bool hold_master;          /* pod 0 does not end yet */
    bool sidecar;              /* "shipper", which never ends, runs beside each pod's container */
    enum gang_scheduler gangs; /* of the operators started from now on */
    bool unguarded;            /* the operators started from now on make neither NetworkPolicies nor keys */
    enum queues_use kueue;     /* of the operators started from now on */
    struct lab_kueue {
        bool runs, full; /* Kueue is at work; it admits nothing */
        bool meddles;    /* a webhook sets another count in what waits */
        bool checks;     /* it reserves quota, and admits two rounds later */
        bool rewrites;   /* it adds a limit to the first container of what it admits */
        int admitted;    /* how often it admitted */
        const char *
            assignment; /* members of each podSetAssignment besides its name and flavors; NULL: the podSet's count */
    } queues;
    bool no_boards; /* the operators started from now on make no TensorBoards */
    bool mesh;      /* a proxy, which never ends, is put in front of each pod's container, "trainer" */
    /* Where the operators started from now on request progress; pods have addresses then. */
    bool (*progress_url)(const char *ip, char url[static PODADDRESS_URL_BYTES]);
    /* How the pod's container ends, once it has run: an exit code, or one of enum lab_fate. `attempt` continues
     * counting when a pod is replaced within an attempt. */
    int (*script)(int attempt, int index);
};

void lab_start(struct lab *l, int (*script)(int attempt, int index));
void lab_start_direct(struct lab *l, int (*script)(int attempt, int index), int n_operators);
void lab_stop(struct lab *l);

/* The same without sockets, with one operator, for a test of its own: *state is the lab, and LAB_TEST stops it. */
struct lab *lab_begin(void **state, int (*script)(int attempt, int index));
int lab_end(void **state);
#define LAB_TEST(test) cmocka_unit_test_teardown(test, lab_end)

/* The i-th operator dies at once; what it had sent and the server had not carried out is lost. */
void lab_kill(struct lab *l, int i);

/* The only operator dies at once and a new one takes its place. */
void lab_crash(struct lab *l);

/* One turn of the loops, the kubelet, the garbage collector and the clock. True: the clock went on. */
bool lab_turn(struct lab *l);

/* Turns until the condition holds, or fails the test after too many; until `done`, which returns how long it took, by the lab's clock. */
#define LAB_UNTIL(l, condition)                                                                              \
    for (int lab_turns = 0; !(condition);)                                                                   \
    lab_turn_once_more(l, ++lab_turns)
void lab_turn_once_more(struct lab *l, int turns);
int64_t lab_until(struct lab *l, bool (*done)(struct lab *l));

/* Until this text stands in the status of LAB_JOB; NULL: none does. */
int64_t lab_until_status(struct lab *l, const char *key, const char *want);

/* fake_put, which has to succeed. */
void lab_put(struct lab *l, const char *path, const char *json);

/* LAB_JOB is created, and runs; then there is no more request. */
void lab_run(struct lab *l, const char *job);
void lab_run_settled(struct lab *l, const char *job);

/* The planned fault has struck. */
bool lab_struck(struct lab *l);

/* The log of the only operator, and whether it leads. */
struct controller_counts lab_counts(const struct lab *l);
struct watches_counts lab_cached(const struct lab *l);
void lab_lead(struct lab *l, bool leads);

/* By its user, until it is Paused, and until it runs. */
void lab_pause(struct lab *l);
void lab_resume(struct lab *l);

void lab_pass_ms(struct lab *l, int64_t ms);

/* No request for so long (in the lab's time) that none will come. */
bool lab_settled(struct lab *l);

/* Requests that are no watches, since the start. */
int lab_requests(struct lab *l);

cJSON *lab_get(struct lab *l, const char *path); /* NULL: not there; cJSON_Delete */

/* A job of any namespace and name. */
void lab_put_job(struct lab *l, const char *ns, const char *name, const char *json);

/* A number of LAB_JOB's status; 0: it is not there. */
int64_t lab_status_number(struct lab *l, const char *key);

/* How many Events there are for this reason, repeated ones counted, whose message has this; NULL: any. */
int lab_events(struct lab *l, const char *reason, const char *text);

/* Scripts: no pod ends; each ends well; none starts; each runs, and its node does not answer when it is deleted; each is killed. */
int lab_forever(int attempt, int index);
int lab_well(int attempt, int index);
int lab_pending(int attempt, int index);
int lab_stuck(int attempt, int index);
int lab_killed(int attempt, int index);
/* Pod 1 of the first attempt is killed, its others run; later ones end well. Pod 1 never starts. */
int lab_killed_once(int attempt, int index);
int lab_one_pending(int attempt, int index);
int lab_well_later(int attempt,
                   int index); /* the pods of the first attempt run for ever, later ones end well */

/* This text stands in the status of the job at `path`. want NULL: none does. */
bool lab_status_is(struct lab *l, const char *path, const char *key, const char *want);

/* "phase attempt backoff disruptions failures restarts" of the job's status. */
void lab_summary(struct lab *l, char *out, size_t size);

/* The last requests and the job, for a test that fails. */
void lab_explain(struct lab *l);

/* Each pod that was ever created: " j-node-0/0 j-node-0/1" in order of name and attempt; "/0.1" is the first replacement
 * within attempt 0. */
void lab_pod_history(struct lab *l, char *out, size_t size);

/* The summary (or "gone") and how many children there are; with history, how many were ever created and removed, and
 * each pod that was. */
void lab_ending(struct lab *l, bool history, char *out, size_t size);

/* What has to hold at every moment (tests/fakes/rules.h) did not: the rule's name; NULL: all well. */
const char *lab_broken_rule(struct lab *l, unsigned leave_out);

/* ---- Kueue (labqueue.c) */

/* The server serves its kinds from now on, it runs, and operators begin anew that look for it. There is one
 * ResourceFlavor, "gpu". */
void lab_kueue_install(struct lab *l);

/* The same without new operators. */
void lab_kueue_serve(struct lab *l);

/* The job's Workload; NULL: there is none. cJSON_Delete. */
cJSON *lab_workload(struct lab *l);

/* Set a condition of the job's Workload, as Kueue does. */
void lab_workload_condition(struct lab *l, const char *type, const char *status, const char *reason,
                            const char *message);
bool lab_workload_is(struct lab *l, const char *type, const char *status);

/* A merge patch of the job's Workload. */
void lab_workload_put(struct lab *l, const char *json);

/* Kueue evicts it for this reason. */
void lab_evict(struct lab *l, const char *reason);

/* One round of it. */
void lab_kueue_round(struct lab *l);

/* Of the whole history, with `strict`: each pod was created while its job's Workload was admitted, and no quota was given
 * back while a pod was active. At the end, a Workload that holds quota has a job that has not ended. NULL: so it was; else
 * what was not. */
const char *lab_broken_queue_rule(struct lab *l, bool strict);

/* All operators die, and new ones start. */
void lab_restart(struct lab *l);

/* ---- for lab.c: what happens in the cluster besides the operator */

int64_t lab_wall_ms(const struct lab *l);
void lab_cluster(struct lab *l); /* one round of kubelet and garbage collector */

#endif
