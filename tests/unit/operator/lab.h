/* lab.h - test helper: the operator against the fake API server, a pretend kubelet, and time that jumps.
 *
 * Time:  the operator's clock is the machine's plus an offset that the lab raises whenever nothing is going
 *        on, so that delays of minutes pass in no time and no test decides by absolute time.
 */
#ifndef TK_TESTS_OPERATOR_LAB_H
#define TK_TESTS_OPERATOR_LAB_H

#include "kube/http.h"
#include "operator/controller.h"
#include "tests/fakes/apiserver.h"

#define LAB_JOB "/apis/batch.tensorstack.dev/v1beta1/namespaces/ns/pytorchtrainingjobs/j"
#define LAB_PODS "/api/v1/namespaces/ns/pods"
#define LAB_SERVICES "/api/v1/namespaces/ns/services"
#define LAB_DEPLOYMENTS "/apis/apps/v1/namespaces/ns/deployments"

enum { LAB_PODS_MAX = 256 };

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
};

struct lab {
    struct fake_apiserver *server;
    int64_t offset_ms;
    struct kube_config config;
    struct log log;
    struct loop *loop;
    struct http *http;
    struct transport transport;
    struct recorder *recorder;
    struct controller *controller;
    struct lab_pod pods[LAB_PODS_MAX];
    int n_pods;
    int requests;     /* seen so far */
    int works;        /* those of them that are no list or watch */
    int quiet;        /* turns without a request */
    int idle;         /* jumps of the clock without work */
    int step;         /* of a test's own story */
    bool hold_master; /* pod 0 does not end yet */
    /* How the pod's container ends, once it has run: an exit code, or one of enum lab_fate. `attempt` goes on
     * counting when a pod is replaced within an attempt. */
    int (*script)(int attempt, int index);
};

void lab_start(struct lab *l, int (*script)(int attempt, int index));
void lab_stop(struct lab *l);

/* The operator dies at once and a new one takes its place. */
void lab_crash(struct lab *l);

/* One turn of the loop, the kubelet and the clock. */
void lab_turn(struct lab *l);

/* Turns until `done`, or fails the test after too many. */
void lab_until(struct lab *l, bool (*done)(struct lab *l));

/* Nothing was asked for long enough (in the lab's time) that nothing will be. */
bool lab_settled(struct lab *l);

/* Requests that are no watches, since the start. */
int lab_requests(struct lab *l);

cJSON *lab_get(struct lab *l, const char *path); /* NULL: not there; cJSON_Delete */

/* "phase attempt backoff disruptions failures restarts" of the job's status. */
void lab_summary(struct lab *l, char *out, size_t size);

/* The last requests and the job, for a test that fails. */
void lab_explain(struct lab *l);

/* Each pod of each attempt was created exactly once: "j-node-0/0 j-node-0/1 ..." in order of name and
 * attempt; "/0.1" is the first replacement within attempt 0. */
void lab_pod_history(const struct lab *l, char *out, size_t size);

#endif
