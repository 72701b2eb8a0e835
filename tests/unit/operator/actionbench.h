/* actionbench.h - test helper: the actions of one reconcile over a transport that answers when the test calls for it.
 *
 * Ownership: there is one bench. What a test leaves in it goes with the next bench_fresh or with bench_end.
 */
#ifndef TK_TESTS_OPERATOR_ACTIONBENCH_H
#define TK_TESTS_OPERATOR_ACTIONBENCH_H

#include "kube/loop.h"
#include "operator/actions.h"

enum { BENCH_CALLS_MAX = 64, BENCH_PODS = 20 };

/* The n-th request ever made is calls[n]. */
struct kube_transfer {
    struct kube_http_handler handler;
    char method[8];
    char path[160];
    char ns[16];
    char body[256];
    bool open, later;
};

extern struct bench {
    struct kube_transfer calls[BENCH_CALLS_MAX];
    int n, cancelled;
    struct kube_loop *loop;
    struct kube_transport transport;
    struct kube_recorder *recorder;
    struct arena arena;
    struct action actions[BENCH_PODS + 4];
    struct plan plan;
    struct actions *run;
    struct actions_result result;
    int n_done;
    int native_version;
} B;

/* Nothing to do, and nothing done. */
void bench_fresh(void);

/* One action more. */
void bench_add(enum action_kind kind, enum child_kind child, const char *name);

/* Run what was added, for ns/job. may_go_on: as in struct actions_target. */
void bench_run(bool (*may_go_on)(void *ctx));

/* A fresh bench with a Service, then the pods, then the event that reports them. */
void bench_prepare(int pods);

/* The same, and run. */
void bench_begin(int pods);

/* Answer the request calls[i]; created: 201 with the version 100 + i. */
void bench_answer(int i, int status, const char *body);
void bench_created(int i);

int bench_n_open(void);                 /* requests that have no answer yet */
int bench_count(const char *path_part); /* requests so far */

/* The teardown of a group of tests. */
int bench_end(void **state);

#endif
