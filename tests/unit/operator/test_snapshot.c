/* test_snapshot.c - what a job's memory says, as the input of a plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "operator/snapshot.h"

#include <string.h>

#define JOB                                                                                                  \
    "{\"metadata\":{\"name\":\"j\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\","             \
    "\"generation\":3}}"

static struct kube_http_call *never(void *ctx, const struct kube_http_request *req,
                                    const struct kube_http_handler *handler, struct err *err)
{
    (void)ctx, (void)req, (void)handler;
    err_set(err, ERR_TRANSIENT, "nothing is sent here");
    return NULL;
}

static void no_work(void *ctx, struct kube_work *w)
{
    (void)ctx;
    kube_work_done(w);
}

static void no_problem(void *ctx, const char *what, const struct err *err)
{
    (void)ctx, (void)what, (void)err;
}

static void test_from_memory(void **state)
{
    const struct kube_transport t = {.start = never};
    struct keystate k = {.uid = "u", .live_version = "7", .status_written_ms = 5, .problem_generation = 3};
    char gone[][APPLY_UID_BYTES] = {"a", "b"};
    cleanup_arena struct arena a = {0};
    struct plan_input in;
    struct watches w;
    struct err err;
    struct kube_loop *loop = kube_loop_new(clock_system(), &err);
    struct kube_reconciler *r = kube_reconciler_new(
        loop, &t,
        &(struct kube_reconciler_options){.name = "r", .reconcile = no_work, .problem = no_problem});
    struct trainjob *job = trainjob_decode(json_parse(JOB, strlen(JOB), &err), &err);

    (void)state;
    k.gone_uids = gone;
    k.n_gone_uids = 2;
    k.unreadable_told = true;
    strcpy(k.status_version, "7");
    k.problem = (struct plan_problem){PROBLEM_FAILED, CHILD_POD, "j-node-0", "words", 9};
    watches_add(&w, r, NULL, NULL);
    snapshot_take(&in, &a, &w, job, &k);
    assert_true(in.job_is_live);
    assert_int_equal(in.n_gone_uids, 2);
    assert_string_equal(in.gone_uids[1], "b");
    assert_int_equal(in.problem.kind, PROBLEM_FAILED);
    assert_int_equal(in.status_written_ms, 5);
    assert_int_equal(in.n_pods, 0);
    assert_true(in.unreadable_told);
    assert_ptr_equal(in.progress, &k.progress);
    /* it has changed since it was read */
    strcpy(k.live_version, "6");
    strcpy(k.status_version, "6");
    k.problem_generation = 2;
    snapshot_take(&in, &a, &w, job, &k);
    assert_false(in.job_is_live);
    assert_false(in.unreadable_told);
    assert_int_equal(in.problem.kind, PROBLEM_NONE);
    /* it was never read */
    k.live_version[0] = '\0';
    snapshot_take(&in, &a, &w, job, &k);
    assert_false(in.job_is_live);
    trainjob_free(job);
    kube_reconciler_free(r);
    kube_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_from_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
