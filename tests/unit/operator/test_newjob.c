/* test_newjob.c - which jobs get pods before their first status, and what may wait while requests wait for each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#include <string.h>

#define NAMED(name, torchrun)                                                                                \
    "{\"apiVersion\":\"" TRAINJOB_API_VERSION "\",\"kind\":\"" TRAINJOB_KIND                                 \
    "\",\"metadata\":{\"name\":\"" name                                                                      \
    "\",\"namespace\":\"ns\"},\"spec\":{\"torchrunConfig\":{\"enabled\":" torchrun                           \
    "},\"replicaSpecs\":[{\"type\":\"node\","                                                                \
    "\"replicas\":4,\"restartPolicy\":\"ExitCode\",\"template\":{\"spec\":{\"containers\":[{"                \
    "\"name\":\"pytorch\",\"image\":\"i\"}]}}}]}}"
#define JOB NAMED("j", "true")
#define PLAIN_JOB NAMED("j", "false")
#define SECOND "/apis/batch.tensorstack.dev/v1beta1/namespaces/ns/pytorchtrainingjobs/second"
#define TERM_LIST "fieldSelector=metadata.name"

static int never_start(int attempt, int index)
{
    (void)attempt, (void)index;
    return LAB_PENDING;
}

static bool runs(struct lab *l)
{
    return lab_status_is(l, LAB_JOB, "phase", "Running");
}

static bool succeeded(struct lab *l)
{
    return lab_status_is(l, LAB_JOB, "phase", "Succeeded");
}

static bool pending(struct lab *l)
{
    return lab_status_is(l, LAB_JOB, "phase", "Pending");
}

/* The place in the log of the n-th such request, from 1; -1: none. */
static int nth(struct lab *l, int n, const char *method, const char *path_part)
{
    struct fake_request r;

    for (int i = 0; fake_log_at(l->server, i, &r); i++)
        if (strcmp(r.method, method) == 0 && strstr(r.path, path_part) && --n == 0)
            return i;
    return -1;
}

static int first(struct lab *l, const char *method, const char *path_part)
{
    return nth(l, 1, method, path_part);
}

static bool pods_came_first(struct lab *l)
{
    assert_true(first(l, "POST", "/services") < first(l, "POST", "/pods"));
    return first(l, "POST", "/pods") < first(l, "PATCH", "/j/status");
}

static void start_and_succeed(const char *job)
{
    struct lab l;

    lab_start_direct(&l, lab_well, 1);
    lab_until(&l, lab_settled);
    assert_true(fake_put(l.server, LAB_JOB, job));
    lab_until(&l, succeeded);
    assert_true(pods_came_first(&l));
    assert_in_range(fake_log_count(l.server, "PATCH", "/j/status"), 1, 2);
    assert_int_equal(fake_log_count(l.server, "GET", NULL), 0);
    lab_stop(&l);
}

static void test_pods_come_first(void **state)
{
    (void)state;
    start_and_succeed(JOB);
    start_and_succeed(PLAIN_JOB); /* its other pods wait for pod 0, and cost no status more */
}

/* Without torchrun the others come when pod 0 has had no address for ten seconds. */
static void test_others_wait_for_pod_0(void **state)
{
    struct lab l;

    (void)state;
    lab_start_direct(&l, never_start, 1);
    lab_until(&l, lab_settled);
    assert_true(fake_put(l.server, LAB_JOB, PLAIN_JOB));
    int64_t from_ms = l.offset_ms;
    lab_until(&l, pending);
    assert_int_equal(fake_count(l.server, LAB_PODS), 1);
    while (fake_count(l.server, LAB_PODS) < 4)
        lab_turn(&l);
    assert_in_range(l.offset_ms - from_ms, 9000, 12000);
    lab_until(&l, lab_settled);
    assert_int_equal(fake_log_count(l.server, "PATCH", "/j/status"), 2);
    lab_stop(&l);
}

/* It says that its pods do not start, a little later than it would. */
static void test_pods_that_do_not_start(void **state)
{
    struct lab l;

    (void)state;
    lab_start_direct(&l, never_start, 1);
    lab_until(&l, lab_settled);
    assert_true(fake_put(l.server, LAB_JOB, JOB));
    int64_t from_ms = l.offset_ms;
    lab_until(&l, pending);
    assert_in_range(l.offset_ms - from_ms, 0, 2000);
    assert_true(pods_came_first(&l));
    lab_stop(&l);
}

/* Another operator may have written its status. */
static void test_a_job_from_before(void **state)
{
    struct lab l;

    (void)state;
    lab_start_direct(&l, lab_forever, 1);
    assert_true(fake_put(l.server, LAB_JOB, JOB));
    lab_until(&l, runs);
    assert_false(pods_came_first(&l));
    lab_stop(&l);
}

static void test_no_list_no_new_job(void **state)
{
    struct lab l;

    (void)state;
    lab_start_direct(&l, lab_forever, 1);
    fake_plan_fault(l.server,
                    &(struct fake_fault_plan){.method = "LIST", .path_part = TERM_LIST, .status = 500});
    while (l.offset_ms < 35000)
        lab_turn(&l);
    assert_in_range(fake_log_count(l.server, "LIST", TERM_LIST), 3, 5);
    assert_true(fake_put(l.server, LAB_JOB, JOB));
    lab_until(&l, runs);
    assert_false(pods_came_first(&l));
    fake_plan_fault(l.server, NULL);
    lab_until(&l, lab_settled);
    assert_true(fake_put(l.server, SECOND, NAMED("second", "true")));
    while (first(&l, "PATCH", "/second/status") < 0)
        lab_turn(&l);
    assert_in_range(nth(&l, 5, "POST", "/pods"), 0, first(&l, "PATCH", "/second/status"));
    lab_stop(&l);
}

/* Pods are made while places are taken; what only tells waits, five seconds at most. */
static void test_what_tells_may_wait(void **state)
{
    struct lab l;

    (void)state;
    lab_start_direct(&l, lab_forever, 1);
    lab_until(&l, lab_settled);
    fake_direct_fill(l.operators[0].direct, true);
    assert_true(fake_put(l.server, LAB_JOB, JOB));
    int64_t from_ms = l.offset_ms;
    while (first(&l, "PATCH", "/j/status") < 0)
        lab_turn(&l);
    assert_in_range(l.offset_ms - from_ms, 5000, 7000);
    assert_true(runs(&l));
    assert_int_equal(fake_log_count(l.server, "POST", "/pods"), 4);
    assert_int_equal(fake_log_count(l.server, "PATCH", "/j/status"), 1);
    lab_stop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_come_first),        cmocka_unit_test(test_others_wait_for_pod_0),
        cmocka_unit_test(test_pods_that_do_not_start), cmocka_unit_test(test_a_job_from_before),
        cmocka_unit_test(test_no_list_no_new_job),     cmocka_unit_test(test_what_tells_may_wait),
    };

    json_memory_must();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
