/* test_queue_edges.c - a job in a queue of Kueue: what happens between its usual stages, or is refused, or seldom there. */
#include "common/text.h"
#include "operator/api/workload.h"
#include "queuelab.h"

#include <stdio.h>
#include <string.h>

static int64_t number(struct lab *l, const char *key)
{
    cleanup_json cJSON *w = lab_workload(l);

    return json_i64(find(w, "spec", NULL), key, -1);
}

/* ---- while the Workloads cannot be listed */

/* A job that was never admitted has not begun: its deadline does not count. */
static void test_deadline_while_held(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_kueue_serve(l);
    l->queues.runs = false;
    l->kueue = QUEUES_ON;
    fake_refuse(l->server, "LIST", "/workloads", 403);
    lab_restart(l);
    lab_put(l, LAB_JOB, QUEUED("'runPolicy':{'activeDeadlineSeconds':600},", "2"));
    lab_pass_ms(l, 700000);
    assert_true(has_reason(l, "Queued the operator has not listed"));
    assert_true(lab_status_is(l, LAB_JOB, "startTime", NULL));
    fake_plan_fault(l->server, NULL);
    l->queues.runs = true;
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Running"));
    assert_false(lab_status_is(l, LAB_JOB, "startTime", NULL));
    lab_pass_ms(l, 500000);
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "reason", "DeadlineExceeded"));
}

/* A job that waits costs the next operator no write. */
static void test_failover(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    settle(l);
    int before = asked(l, "PATCH", "/status");
    lab_restart(l);
    lab_pass_ms(l, 60000);
    assert_int_equal(asked(l, "PATCH", "/status"), before);
}

/* The API server may not know Kueue's kinds yet when the operator starts. */
static void test_missing_at_the_start(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    fake_plan_fault(
        l->server, &(struct fake_fault_plan){
                       .request = 1, .method = "LIST", .path_part = "kueue.x-k8s.io/v1beta2", .status = 404});
    lab_restart(l);
    lab_pass_ms(l, 80000);
    assert_true(lab_struck(l));
    assert_int_equal(asked(l, "POST", LAB_PODS), 0);
    assert_true(has_reason(l, "Queued insufficient"));
}

/* ---- what the job says */

/* Kueue's own limit is none: all gates count, or the job is refused. */
static void test_long_gates(void **state)
{
    struct lab *l = begin(state, lab_forever);
    char gates[WORKLOAD_GATES_BYTES + 2] = "", body[2 * WORKLOAD_GATES_BYTES];

    l->queues.runs = false;
    for (int i = 0; strlen(gates) + 12 <= WORKLOAD_GATES_BYTES; i++)
        text_add(gates, sizeof(gates), "%sx.org/g-%03d", i ? "," : "", i);
    assert_true(strlen(gates) > 1000);
    snprintf(body, sizeof(body), "{'metadata':{'annotations':{'" ANNOTATION_QUEUE_GATE "':'%s'}}}", gates);
    lab_put(l, LAB_JOB, body);
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    settle(l);
    cleanup_json cJSON *w = lab_workload(l);
    const char *have = json_str(find(w, "metadata", "annotations"), ANNOTATION_QUEUE_GATE);
    assert_string_equal(have, gates);

    snprintf(body, sizeof(body), "{'metadata':{'annotations':{'" ANNOTATION_QUEUE_GATE "':'x.org/%0*d'}}}",
             WORKLOAD_GATES_BYTES, 0);
    lab_put(l, LAB_JOB, body);
    LAB_UNTIL(l, has_reason(l, "InvalidSpec"));
    assert_int_equal(asked(l, "POST", LAB_PODS), 0);
}

/* The priority of the Workload is the one that its pods will have. */
static void test_scheduling_policy(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, "/apis/scheduling.k8s.io/v1/priorityclasses/top", "{'value':5000}");
    lab_put(l, "/apis/scheduling.k8s.io/v1/priorityclasses/low", "{'value':7}");
    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("'runPolicy':{'schedulingPolicy':{'priorityClass':'top'}},", "2"));
    LAB_UNTIL(l, number(l, "priority") == 5000);
    lab_put(l, LAB_JOB, EDIT("'nvidia.com/gpu':1", "'priorityClassName':'low',"));
    LAB_UNTIL(l, number(l, "priority") == 7);
    l->queues.full = false;
    LAB_UNTIL(l, pods(l) == 2);
    cleanup_json cJSON *pod = fake_nth_json(l->server, LAB_PODS, 0);
    assert_string_equal(json_str(find(pod, "spec", NULL), "priorityClassName"), "low");
}

/* The column GPUS has those of the pods that were admitted. */
static void test_partly_admitted(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.assignment = "{'count':2}";
    lab_put(l, LAB_JOB, QUEUED(ELASTIC, "3"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
    assert_int_equal(pods(l), 2);
    assert_int_equal(lab_status_number(l, "gpus"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(test_deadline_while_held),
        LAB_TEST(test_failover),
        LAB_TEST(test_missing_at_the_start),
        LAB_TEST(test_long_gates),
        LAB_TEST(test_scheduling_policy),
        LAB_TEST(test_partly_admitted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
