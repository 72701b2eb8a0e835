/* test_queue.c - a job in a queue of Kueue, from its Workload to the end of it. */
#include "lab.h"
#include "test.h"

#include <string.h>

#define QUEUED(members, replicas)                                                                            \
    "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'team'}},'spec':{" members                           \
    "'replicaSpecs':[{'type':'node','replicas':" replicas                                                    \
    ",'restartPolicy':'ExitCode','template':{'spec':{'containers':[{'name':'pytorch','image':'i','"          \
    "resources':"                                                                                            \
    "{'limits':{'nvidia.com/gpu':1}}}]}}}]}}"

static struct lab *begin(void **state, int (*script)(int attempt, int index))
{
    struct lab *l = lab_begin(state, script);

    lab_kueue_install(l);
    l->collects = true;
    return l;
}

static int pods(struct lab *l)
{
    return fake_count(l->server, LAB_PODS);
}

static bool has_reason(struct lab *l, const char *part)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const char *reason = json_str(json_find(job, (const char *[]){"status", NULL}), "reason");

    return reason && strstr(reason, part);
}

static void settle(struct lab *l)
{
    l->idle = 0;
    LAB_UNTIL(l, lab_settled(l));
    const char *broken = lab_broken_queue_rule(l, true);
    if (!broken)
        broken = lab_broken_rule(l, FAKE_RULES_ALL);
    if (broken)
        lab_explain(l);
    assert_null(broken);
}

static const cJSON *find(const cJSON *node, const char *a, const char *b)
{
    return json_find(node, (const char *[]){a, b, NULL});
}

static void test_life(void **state)
{
    struct lab *l = begin(state, lab_well);

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient unused quota for nvidia.com/gpu"));
    assert_int_equal(pods(l), 0);
    l->queues.full = false;
    l->hold_master = true;
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    cleanup_json cJSON *pod = fake_nth_json(l->server, LAB_PODS, 0);
    assert_string_equal(json_str(find(pod, "spec", "nodeSelector"), "pool"), "a100");
    assert_int_equal(cJSON_GetArraySize(find(pod, "spec", "tolerations")), 1);
    const cJSON *labels = find(pod, "metadata", "labels");
    assert_string_equal(json_str(labels, "kueue.x-k8s.io/podset"), "node");
    assert_null(json_str(labels, "kueue.x-k8s.io/queue-name"));
    l->hold_master = false;
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
    settle(l);
    cleanup_json cJSON *w = lab_workload(l);
    assert_true(lab_workload_is(l, "Finished", "True"));
    assert_int_equal(cJSON_GetArraySize(find(w, "metadata", "finalizers")), 0);
}

static void test_evicted(void **state)
{
    struct lab *l = begin(state, lab_well_later);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    l->queues.full = true;
    lab_evict(l, "Preempted");
    LAB_UNTIL(l, lab_workload_is(l, "QuotaReserved", "False"));
    assert_int_equal(pods(l), 0);
    assert_true(lab_workload_is(l, "Requeued", "True"));
    assert_true(lab_workload_is(l, "PodsReady", "False"));
    l->queues.full = false;
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
    settle(l);
    assert_int_equal(l->queues.admitted, 2);
    assert_int_equal(lab_status_number(l, "attempt"), 1);
    assert_int_equal(lab_status_number(l, "restarts"), 0);
    assert_int_equal(lab_status_number(l, "disruptionCount"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(test_life),
        LAB_TEST(test_evicted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
