/* test_fairness.c - namespaces whose API server's webhook does not answer, and a job in another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#include <stdio.h>
#include <string.h>

#define SPEC                                                                                                 \
    "{\"apiVersion\":\"" TRAINJOB_API_VERSION "\",\"kind\":\"" TRAINJOB_KIND                                 \
    "\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"},\"spec\":{\"replicaSpecs\":[{\"type\":\"node\"," \
    "\"replicas\":2,\"restartPolicy\":\"ExitCode\",\"template\":{\"spec\":{\"containers\":[{\"name\":"       \
    "\"pytorch\","                                                                                           \
    "\"image\":\"i\"}]}}}]}}"

enum { NAMESPACES = 8, JOBS_EACH = 30 };

static int ends_well(int attempt, int index)
{
    (void)attempt;
    (void)index;
    return 0;
}

static void put_job(struct lab *l, const char *ns, const char *name)
{
    char path[160];
    char job[700];

    snprintf(path, sizeof(path), "/apis/%s/namespaces/%s/%s/%s", TRAINJOB_API_VERSION, ns, TRAINJOB_PLURAL,
             name);
    snprintf(job, sizeof(job), SPEC, name, ns);
    assert_true(fake_put(l->server, path, job));
}

static bool all_are_slow(struct lab *l)
{
    return fake_faults_done(l->server) >= NAMESPACES * HTTP_SLOW_SHARE_MAX;
}

/* A request that hangs ends after 30 s of the machine's time. */
static bool any_gave_up(struct lab *l)
{
    size_t n = 0;
    const struct http_count *counts = http_counts(l->operators[0].http, &n);

    for (size_t i = 0; i < n; i++)
        if (counts[i].status == 0)
            return true;
    return false;
}

static bool succeeded(struct lab *l)
{
    return lab_status_is(l, LAB_JOB, "phase", "Succeeded");
}

/* More jobs than there are works and requests, in eight namespaces where no create is ever answered. */
static void test_eight_namespaces_that_do_not_answer(void **state)
{
    struct lab l;
    char ns[16];
    char name[16];

    (void)state;
    lab_start(&l, ends_well);
    fake_plan_fault(l.server, &(struct fake_fault_plan){
                                  .method = "POST", .path_part = "/slow-", .fault = FAKE_HANG_BEFORE});
    for (int i = 0; i < NAMESPACES * JOBS_EACH; i++) {
        snprintf(ns, sizeof(ns), "slow-%d", i / JOBS_EACH);
        snprintf(name, sizeof(name), "j-%d", i % JOBS_EACH);
        put_job(&l, ns, name);
    }
    lab_until(&l, all_are_slow);
    put_job(&l, "ns", "j");
    lab_until(&l, succeeded);
    assert_false(any_gave_up(&l));
    fake_plan_fault(l.server, NULL);
    lab_stop(&l);
}

/* It says that it belongs to a job elsewhere. That job is none of its namespace's business, nor the other way round. */
static void test_a_child_in_another_namespace(void **state)
{
    struct lab l;
    char pod[400];

    (void)state;
    lab_start_direct(&l, ends_well, 1);
    put_job(&l, "ns", "j");
    lab_until(&l, succeeded);
    lab_until(&l, lab_settled);
    cleanup_json cJSON *job = lab_get(&l, LAB_JOB);
    snprintf(pod, sizeof(pod),
             "{\"metadata\":{\"labels\":{\"" LABEL_JOB
             "\":\"j\"},\"ownerReferences\":[{\"apiVersion\":\"" TRAINJOB_API_VERSION
             "\",\"kind\":\"" TRAINJOB_KIND "\",\"name\":\"j\",\"uid\":\"%s\",\"controller\":true}]}}",
             json_str(json_find(job, (const char *[]){"metadata", NULL}), "uid"));
    uint64_t before = controller_counts(l.operators[0].controller).passes;
    uint64_t adds = kube_reconciler_queue(controller_reconciler(l.operators[0].controller)).adds;
    assert_true(fake_put(l.server, "/api/v1/namespaces/other/pods/p", pod));
    l.idle = 0;
    lab_until(&l, lab_settled);
    assert_int_equal(kube_reconciler_queue(controller_reconciler(l.operators[0].controller)).adds, adds + 1);
    assert_int_equal(controller_counts(l.operators[0].controller).passes, before);
    lab_stop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eight_namespaces_that_do_not_answer),
        cmocka_unit_test(test_a_child_in_another_namespace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
