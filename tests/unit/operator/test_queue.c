/* test_queue.c - a job in a queue of Kueue, from its Workload to the end of it. */
#include "operator/api/workload.h"
#include "queuelab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a job that runs goes on, whatever is edited; and what does not run gives its quota back */

/* An admission is compared with the template only when a pod is to be created. */
static void test_contradicted_while_running(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_JOB, EDIT("'nvidia.com/gpu':1", "'nodeSelector':{'pool':'v100'},"));
    lab_pass_ms(l, 20000);
    assert_int_equal(pods(l), 2);
    assert_int_equal(lab_status_number(l, "attempt"), 0);
    settle(l);
}

/* The same of a flavour that an admin edits or deletes, until a pod is missing. */
static void test_flavour_changes(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    lab_put(l, LAB_JOB, EDIT("'nvidia.com/gpu':1", "'nodeSelector':{'pool':'a100'},"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_KUEUE "/resourceflavors/gpu", "{'spec':{'nodeLabels':{'pool':'b200'}}}");
    lab_pass_ms(l, 20000);
    assert_int_equal(pods(l), 2);
    assert_int_equal(lab_status_number(l, "attempt"), 0);
    assert_true(fake_remove(l->server, LAB_KUEUE "/resourceflavors/gpu"));
    lab_pass_ms(l, 20000);
    assert_int_equal(pods(l), 2);
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
    LAB_UNTIL(l, has_reason(l, "Queued the ResourceFlavor gpu does not exist"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "False")); /* so Kueue may evict it */
}

/* An admin gives the flavour other labels while a job runs. It queues again when it loses a pod: only Kueue can tell which
 * flavour fits now. What contradicts an admission that never started has failed. */
static void test_flavour_contradicts(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    lab_put(l, LAB_JOB, EDIT("'nvidia.com/gpu':1", "'nodeSelector':{'pool':'a100'},"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_KUEUE "/resourceflavors/gpu", "{'spec':{'nodeLabels':{'pool':'b200'}}}");
    l->queues.full = true;
    lab_pass_ms(l, 20000);
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    assert_int_equal(lab_status_number(l, "disruptionCount"), 1);
    lab_put(l, LAB_KUEUE "/resourceflavors/gpu", "{'spec':{'nodeLabels':{'pool':'a100'}}}");
    l->queues.full = false;
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    assert_int_equal(lab_status_number(l, "disruptionCount"), 1);
    settle(l);
}

/* Kueue admits the Workload before the operator has seen the edit. */
static void test_changes_while_admitted(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    lab_pass_ms(l, 3000);
    l->queues.full = false;
    lab_put(l, LAB_JOB,
            "{'spec':{'replicaSpecs':[{'type':'node','replicas':2,'template':{'spec':{'containers':[{'name':"
            "'pytorch','image':'i'}]}}},{'type':'more','replicas':1,'template':{'spec':{'containers':[{"
            "'name':'pytorch','image':'i'}]}}}]}}");
    lab_kueue_round(l);
    assert_true(lab_workload_is(l, "Admitted", "True"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    assert_int_equal(pods(l), 3);
    settle(l);
}

/* A failure is judged before the job queues again. */
static void test_changed_and_failed(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_JOB, EDIT("'nvidia.com/gpu':4", ""));
    settle(l);
    lab_put(l, LAB_PODS "/j-node-1",
            "{'status':{'phase':'Failed','containerStatuses':[{'name':'pytorch','state':{'running':null,"
            "'terminated':{'exitCode':1,'reason':'Error','finishedAt':'2026-01-01T00:00:00Z'}}}]}}");
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Failed"));
    LAB_UNTIL(l, lab_workload_is(l, "Finished", "True"));
}

/* Kueue takes a lower count of an admitted Workload, and no other minimum. */
static void test_shrunk_to_the_minimum(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED(ELASTIC, "3"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
    lab_put(l, LAB_JOB, "{'spec':{'elastic':{'expectedReplicas':1}}}");
    LAB_UNTIL(l, count(l) == 1 && pods(l) == 1);
    settle(l);
    int puts = asked(l, "PUT", LAB_WORKLOADS);
    lab_pass_ms(l, 60000);
    assert_int_equal(asked(l, "PUT", LAB_WORKLOADS), puts);
}

/* A count below the admitted minimum is for the next admission. */
static void test_shrunk_below_the_minimum(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED(ELASTIC, "3"));
    lab_put(l, LAB_JOB, "{'spec':{'elastic':{'minReplicas':2}}}");
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_JOB, "{'spec':{'elastic':{'minReplicas':1,'expectedReplicas':1}}}");
    LAB_UNTIL(l, pods(l) == 1);
    settle(l);
    assert_int_equal(count(l), 3);
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-0"));
    LAB_UNTIL(l, count(l) == 1 && lab_workload_is(l, "PodsReady", "True"));
    settle(l);
}

/* A lost pod is created even if the Workload cannot be changed. */
static void test_count_refused(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED(ELASTIC, "3"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
    fake_refuse(l->server, "PUT", "/workloads", 403);
    lab_put(l, LAB_JOB, "{'spec':{'elastic':{'expectedReplicas':2}}}");
    LAB_UNTIL(l, pods(l) == 2);
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-0"));
    lab_pass_ms(l, 1200000);
    assert_int_equal(pods(l), 2);
}

/* No label on a pod lets it outlive the admission. */
static void test_evicted_with_odd_labels(void **state)
{
    static const char ODD[] = "{'metadata':{'labels':{'batch.tensorstack.dev/attempt':'1073741823'}}}";
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_PODS "/j-node-0", ODD);
    lab_put(l, LAB_PODS "/j-node-1", ODD);
    lab_pass_ms(l, 5000);
    l->queues.full = true;
    lab_evict(l, "Preempted");
    LAB_UNTIL(l, lab_workload_is(l, "QuotaReserved", "False"));
    assert_int_equal(pods(l), 0);
}

/* The finalizer of somebody else keeps the job for hours. */
static void test_evicted_while_deleted(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    l->collects = false;
    lab_put(l, LAB_JOB, "{'metadata':{'finalizers':['tenant.example/keep']}}");
    assert_true(fake_delete(l->server, LAB_JOB));
    lab_pass_ms(l, 20000);
    assert_int_equal(pods(l), 2);
    l->queues.full = true;
    lab_evict(l, "Preempted");
    LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 0);
    assert_int_equal(pods(l), 0);
    assert_null(lab_broken_queue_rule(l, true));
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
    LAB_UNTIL(l, has_reason(l, "Queued"));
    assert_true(lab_status_is(l, LAB_JOB, "startTime", NULL)); /* activeDeadlineSeconds do not run */
    l->queues.full = false;
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
    settle(l);
    assert_int_equal(l->queues.admitted, 2);
    assert_int_equal(lab_status_number(l, "attempt"), 1);
    assert_int_equal(lab_status_number(l, "restarts"), 0);
    assert_int_equal(lab_status_number(l, "disruptionCount"), 0);
}

static int64_t tensorboards(struct lab *l)
{
    cleanup_json cJSON *d = lab_get(l, LAB_DEPLOYMENTS "/j-tensorboard");

    return json_i64(json_child(d, "spec"), "replicas", -1);
}

/* Its TensorBoard stays while it waits without pods, also for an operator that starts: a user looks at the curves meanwhile.
 * Admitted again, the job gets its volume. */
static void test_evicted_with_tensorboard(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB,
            QUEUED("'tensorboardSpec':{'logDir':{'pvc':[{'name':'p','subPath':['./log']}]}},", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    LAB_UNTIL(l, tensorboards(l) == 1);
    l->queues.full = true;
    lab_evict(l, "Preempted");
    LAB_UNTIL(l, has_reason(l, "Queued"));
    lab_restart(l);
    lab_pass_ms(l, 20000);
    assert_int_equal(pods(l), 0);
    assert_int_equal(tensorboards(l), 1);
    int patches = asked(l, "PATCH", "/deployments"); /* 1, if it was created before pod 0 had a node */
    assert_true(patches <= 1);
    l->queues.full = false;
    LAB_UNTIL(l, asked(l, "PATCH", "/deployments") == patches + 2);
    assert_int_equal(tensorboards(l), 1);
    settle(l);
}

/* ---- where Kueue is, or is not */

/* The label has no effect. A request a minute while such a job exists, and nothing else; two for other jobs. */
static void test_absent(void **state)
{
    struct lab *l = lab_begin(state, lab_well);

    l->kueue = QUEUES_AUTO;
    lab_restart(l);
    lab_put_job(l, "ns", "free", LAB_TWO);
    lab_pass_ms(l, 600000);
    assert_int_equal(asked(l, NULL, "kueue"), 2);
    lab_run_settled(l, QUEUED("", "2"));
    assert_true(lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
    int before = asked(l, NULL, "kueue");
    lab_pass_ms(l, 600000);
    assert_in_range(asked(l, NULL, "kueue") - before, 9, 11);
    assert_int_equal(asked(l, "LIST", "workloads") + asked(l, NULL, "priorityclasses"), 0);
}

static void test_off(void **state)
{
    struct lab *l = lab_begin(state, lab_well);

    lab_kueue_serve(l);
    lab_run_settled(l, QUEUED("", "2"));
    assert_true(lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
    assert_int_equal(asked(l, NULL, "kueue"), 0);
}

/* Jobs without a label go on as ever. */
static void test_installed_later(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    l->kueue = QUEUES_AUTO;
    lab_restart(l);
    lab_run(l, QUEUED("", "2"));
    lab_put_job(l, "ns", "free", LAB_TWO);
    LAB_UNTIL(l, pods(l) == 4);
    lab_kueue_serve(l);
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    assert_int_equal(lab_status_number(l, "attempt"), 1);
    assert_int_equal(lab_status_number(l, "restarts"), 0);
    cleanup_json cJSON *pod = lab_get(l, LAB_PODS "/free-node-0");
    assert_string_equal(json_str(find(pod, "metadata", "labels"), "batch.tensorstack.dev/attempt"), "0");
}

/* An API server that starts may not know the kind yet: one such answer changes nothing. */
static void test_gone(void **state)
{
    struct lab *l = begin(state, lab_well);

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    int before = asked(l, "LIST", "v1beta2");
    fake_plan_fault(l->server,
                    &(struct fake_fault_plan){.method = "LIST", .path_part = "kueue", .status = 404});
    LAB_UNTIL(l, asked(l, "LIST", "v1beta2") > before);
    lab_pass_ms(l, 30000);
    assert_int_equal(pods(l), 0);
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
}

static void test_not_allowed(void **state)
{
    struct lab *l = lab_begin(state, lab_well);

    lab_kueue_serve(l);
    l->queues.runs = false;
    l->kueue = QUEUES_ON;
    fake_refuse(l->server, "LIST", "/workloads", 403);
    lab_restart(l);
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    lab_put_job(l, "ns", "free", LAB_TWO);
    LAB_UNTIL(l, has_reason(l, "Queued the operator has not listed Kueue's objects yet"));
    LAB_UNTIL(l, pods(l) == 2); /* of the other one */
    lab_pass_ms(l, 300000);
    assert_int_equal(asked(l, "POST", LAB_PODS), 2);
    fake_plan_fault(l->server, NULL);
    l->queues.runs = true;
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
}

/* A new operator that cannot list Workloads leaves the pods as they are. */
static void test_not_seen(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    fake_refuse(l->server, "LIST", "/workloads", 403);
    lab_restart(l);
    lab_pass_ms(l, 60000);
    assert_int_equal(pods(l), 2);
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
    lab_pass_ms(l, 60000);
    assert_true(has_reason(l, "Queued the operator has not listed"));
    fake_plan_fault(l->server, NULL);
    LAB_UNTIL(l, pods(l) == 2 && lab_status_is(l, LAB_JOB, "phase", "Running"));
    settle(l);
}

static const char DOWN[] =
    "Internal error occurred: failed calling webhook \"mpod.kb.io\": connection refused";

/* Nothing is counted, and it is tried each second for a minute. */
static void test_webhook_down(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "Admitted", "True"));
    fake_plan_fault(l->server, &(struct fake_fault_plan){
                                   .method = "POST", .path_part = "/pods", .status = 500, .message = DOWN});
    int before = asked(l, "POST", "/pods");
    lab_pass_ms(l, 50000);
    assert_in_range(asked(l, "POST", "/pods") - before, 24, 52); /* the lab looks every second second */
    assert_true(has_reason(l, "CreateFailed"));
    fake_plan_fault(l->server, NULL);
    int64_t began = l->offset_ms;
    LAB_UNTIL(l, pods(l) == 2);
    assert_in_range(l->offset_ms - began, 0, 3000);
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    assert_int_equal(lab_status_number(l, "attempt"), 0);
}

/* The same for the quota of an evicted job; and it is not asked each second for ever. */
static void test_webhook_down_at_release(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_evict(l, "Preempted");
    fake_plan_fault(l->server,
                    &(struct fake_fault_plan){
                        .method = "PUT", .path_part = "/workloads", .status = 500, .message = DOWN});
    LAB_UNTIL(l, pods(l) == 0);
    int before = asked(l, "PUT", "/workloads");
    lab_pass_ms(l, 50000);
    assert_in_range(asked(l, "PUT", "/workloads") - before, 24, 52);
    before = asked(l, "PUT", "/workloads");
    lab_pass_ms(l, 1200000);
    assert_in_range(asked(l, "PUT", "/workloads") - before, 10, 60);
    fake_plan_fault(l->server, NULL);
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
}

/* The next operator lists the classes late. No watch is silent for so long that its kind is listed again, which would add the
 * keys as well. */
static void restart_with_late_classes(struct lab *l)
{
    const struct fake_fault_plan late = {.method = "LIST", .path_part = "/priorityclasses", .status = 500};

    l->bookmarks = true;
    fake_plan_fault(l->server, &late);
    l->queues.runs = false;
    lab_restart(l);
    lab_pass_ms(l, 30000);
    assert_true(fake_faults_done(l->server) > 0);
    fake_plan_fault(l->server, NULL);
}

/* A job ends while Kueue's webhooks refuse writes. */
static void test_ended_before_the_lists(void **state)
{
    struct lab *l = begin(state, lab_well);
    const struct fake_fault_plan down = {
        .method = "PATCH", .path_part = "/workloads", .status = 500, .message = DOWN};

    fake_plan_fault(l->server, &down);
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
    restart_with_late_classes(l);
    assert_false(lab_workload_is(l, "Finished", "True"));
    LAB_UNTIL(l, lab_workload_is(l, "Finished", "True"));
}

/* A job leaves its queue while no operator is there. */
static void test_left_before_the_lists(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
    lab_put(l, LAB_JOB, "{'metadata':{'labels':null}}");
    restart_with_late_classes(l);
    LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 0);
    assert_int_equal(pods(l), 2);
}

/* ---- what the user changes */

static char *uid(struct lab *l)
{
    cleanup_json cJSON *w = lab_workload(l);
    const char *uid = json_str(find(w, "metadata", NULL), "uid");

    return uid ? strdup(uid) : NULL;
}

static bool spec_is(struct lab *l, const char *key, const char *want)
{
    cleanup_json cJSON *w = lab_workload(l);
    const char *have = json_str(find(w, "spec", NULL), key);

    return have && strcmp(have, want) == 0;
}

static int64_t priority(struct lab *l)
{
    cleanup_json cJSON *w = lab_workload(l);

    return json_i64(find(w, "spec", NULL), "priority", -1);
}

/* While it waits, the Workload follows the job and keeps its place. */
static void test_changes_while_waiting(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    cleanup_free char *first = uid(l);
    assert_int_equal(priority(l), 0);
    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'other'}}}");
    LAB_UNTIL(l, spec_is(l, "queueName", "other"));
    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/priority-class':'high'}}}");
    LAB_UNTIL(l, priority(l) == 1000);
    lab_put(l, LAB_JOB, EDIT("'nvidia.com/gpu':4", ""));
    lab_pass_ms(l, 5000);
    cleanup_json cJSON *w = lab_workload(l);
    const cJSON *c = json_find(cJSON_GetArrayItem(find(w, "spec", "podSets"), 0),
                               (const char *[]){"template", "spec", "containers", NULL});
    assert_string_equal(
        json_str(json_find(cJSON_GetArrayItem(c, 0), (const char *[]){"resources", "limits", NULL}),
                 "nvidia.com/gpu"),
        "4");
    cleanup_free char *last = uid(l);
    assert_string_equal(first, last);
    assert_int_equal(lab_status_number(l, "attempt"), 0);
    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/priority-class':'nowhere'}}}");
    LAB_UNTIL(l, has_reason(l, "Queued the WorkloadPriorityClass nowhere does not exist"));
}

/* A job that runs keeps its admission; it queues again when it loses a pod. */
static void test_changes_while_running(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    cleanup_free char *first = uid(l);
    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'other'}}}");
    lab_put(l, LAB_JOB, EDIT("'nvidia.com/gpu':4", ""));
    settle(l);
    assert_int_equal(lab_status_number(l, "attempt"), 0);
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True") && spec_is(l, "queueName", "other"));
    cleanup_free char *last = uid(l);
    assert_string_not_equal(first, last);
    settle(l);
}

static void test_suspended(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
    LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 0);
    assert_int_equal(pods(l), 0);
    lab_put(l, LAB_JOB, "{'spec':{'suspend':false}}");
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
}

/* The pods run on, and the quota is free. */
static void test_label_removed(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_JOB, "{'metadata':{'labels':null}}");
    LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 0);
    assert_int_equal(lab_status_number(l, "attempt"), 0);
    assert_int_equal(pods(l), 2);
}

/* Fewer pods than expected; a lower number is written in place, and a higher one waits for the next admission. */
static void test_elastic(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.assignment = "{'count':2}";
    lab_put(l, LAB_JOB, QUEUED(ELASTIC, "3"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
    assert_int_equal(pods(l), 2);
    assert_int_equal(count(l), 3);
    cleanup_free char *first = uid(l);
    lab_put(l, LAB_JOB, "{'spec':{'elastic':{'expectedReplicas':1}}}");
    LAB_UNTIL(l, count(l) == 1 && pods(l) == 1);
    lab_put(l, LAB_JOB, "{'spec':{'elastic':{'expectedReplicas':4}}}");
    settle(l);
    cleanup_free char *last = uid(l);
    assert_string_equal(first, last);
    assert_int_equal(pods(l), 1);
}

/* The template wants another node than the flavour: neither can be had, and the quota is not kept. */
static void test_contradiction(void **state)
{
    struct lab *l = begin(state, lab_well);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    lab_put(l, LAB_JOB, EDIT("'cpu':1", "'nodeSelector':{'pool':'v100'},"));
    LAB_UNTIL(l, has_reason(l, "FailedToStart"));
    LAB_UNTIL(l, lab_workload_is(l, "Finished", "True"));
    settle(l);
    assert_int_equal(pods(l), 0);
    lab_put(l, LAB_JOB, EDIT("'cpu':1", "'nodeSelector':null,"));
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
}

/* What it occupies goes to others all the same. */
static void test_invalid_and_evicted(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_JOB, "{'spec':{'sparkles':true}}");
    LAB_UNTIL(l, has_reason(l, "InvalidSpec"));
    settle(l);
    assert_int_equal(pods(l), 2);
    l->queues.full = true;
    lab_evict(l, "Preempted");
    LAB_UNTIL(l, lab_workload_is(l, "QuotaReserved", "False"));
    assert_int_equal(pods(l), 0);
    settle(l);
    lab_put(l, LAB_JOB, "{'spec':{'sparkles':null}}");
    l->queues.full = false;
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
}

/* The job waits in the foreground for its Workload, and that for us. */
static void test_deleted(void **state)
{
    static const char *const FINALIZERS[] = {"'foregroundDeletion'", ""};

    for (int i = 0; i < 2; i++) {
        struct lab *l = begin(state, lab_forever);
        char body[96];
        lab_put(l, LAB_JOB, QUEUED("", "2"));
        LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
        snprintf(body, sizeof(body), "{'metadata':{'finalizers':[%s]}}", FINALIZERS[i]);
        lab_put(l, LAB_JOB, body);
        assert_true(fake_delete(l->server, LAB_JOB));
        LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) + pods(l) == 0);
        LAB_UNTIL(l, fake_count(l->server, "/apis/" TRAINJOB_API_VERSION "/" TRAINJOB_PLURAL) == 0);
        assert_null(lab_broken_queue_rule(l, true));
        if (i == 0)
            (void)lab_end(state);
    }
}

/* A label of the template would have Kueue queue each pod for itself. */
static void test_no_queue_of_pods(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "1"));
    lab_put(l, LAB_JOB,
            "{'spec':{'replicaSpecs':[{'type':'node','replicas':1,'template':{'metadata':{'labels':{'kueue.x-"
            "k8s.io/queue-name':"
            "'team','mine':'x'}},'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}]}}");
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    cleanup_json cJSON *pod = lab_get(l, LAB_PODS "/j-node-0");
    assert_string_equal(json_str(find(pod, "metadata", "labels"), "mine"), "x");
    assert_null(json_str(find(pod, "metadata", "labels"), "kueue.x-k8s.io/queue-name"));
}

/* Anybody may make Workloads that name the job as their controller. */
static void test_other_workloads(void **state)
{
    struct lab *l = begin(state, lab_forever);
    char body[512];

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    snprintf(body, sizeof(body),
             "{'metadata':{'finalizers':['kueue.x-k8s.io/"
             "resource-in-use'],'ownerReferences':[{'apiVersion':'" TRAINJOB_API_VERSION
             "','kind':'PyTorchTrainingJob','name':'j','uid':'%s','controller':true}]},'spec':{'podSets':[{'"
             "name':'x','count':900}]}}",
             json_str(find(job, "metadata", NULL), "uid"));
    lab_put(l, LAB_WORKLOADS "/another", body);
    LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 1);
    settle(l);
    assert_int_equal(lab_status_number(l, "attempt"), 0);
}

/* One create, one write for each of PodsReady and Finished, and one for the finalizer. */
static void test_requests(void **state)
{
    struct lab *l = begin(state, lab_well);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
    settle(l);
    assert_int_equal(asked(l, "POST", LAB_WORKLOADS), 1);
    assert_int_equal(asked(l, "PATCH", LAB_WORKLOADS), 3);
    assert_int_equal(asked(l, "PUT", LAB_WORKLOADS), 0);
    assert_int_equal(asked(l, "GET", LAB_WORKLOADS), 0);
}

/* A Workload that never is what the job wants is made anew, but not without end. */
static void test_never_the_same(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.rewrites = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, asked(l, "POST", LAB_WORKLOADS) == 2); /* the first time at once */
    lab_pass_ms(l, 300000);
    assert_in_range(asked(l, "POST", LAB_WORKLOADS), 9, 13);
    assert_int_equal(asked(l, "POST", LAB_PODS), 0);
    lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
    lab_pass_ms(l, 3000); /* its quota goes back at once */
    assert_int_equal(fake_count(l->server, LAB_WORKLOADS), 0);
    lab_put(l, LAB_JOB, "{'spec':{'suspend':false}}");
    l->queues.rewrites = false;
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
}

/* The same of one that waits: a webhook changes what was written. */
static void test_never_the_same_while_waiting(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.full = l->queues.meddles = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, asked(l, "PUT", LAB_WORKLOADS) > 0);
    int before = asked(l, "PUT", LAB_WORKLOADS);
    lab_pass_ms(l, 300000);
    assert_in_range(asked(l, "PUT", LAB_WORKLOADS) - before, 8, 16);
    l->queues.full = l->queues.meddles = false;
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    assert_int_equal(pods(l), 2);
}

/* Its event says to delete it, so that has to help. */
static void test_unreadable_and_deleted(void **state)
{
    struct lab *l = begin(state, lab_forever);
    static char body[WORKLOAD_ADMISSION_BYTES + 256];

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
    cleanup_json cJSON *w = lab_workload(l);
    snprintf(body, sizeof(body),
             "{'status':{'admission':{'podSetAssignments':[{'name':'node','flavors':{'cpu':'%0*d'}}]}}}",
             WORKLOAD_ADMISSION_BYTES, 0);
    lab_workload_put(l, body);
    LAB_UNTIL(l, has_reason(l, "Unreadable"));
    assert_int_equal(pods(l), 2);
    snprintf(body, sizeof(body), LAB_WORKLOADS "/%s", json_str(find(w, "metadata", NULL), "name"));
    assert_true(fake_delete(l->server, body));
    LAB_UNTIL(l, asked(l, "POST", LAB_WORKLOADS) == 2);
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    assert_false(has_reason(l, "Unreadable"));
    settle(l);
}

/* Others wait for its quota. */
static void test_invalid_and_deleted(void **state)
{
    struct lab *l = begin(state, lab_forever);
    char path[256];

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_JOB, "{'spec':{'sparkles':true}}");
    LAB_UNTIL(l, has_reason(l, "InvalidSpec"));
    settle(l);
    cleanup_json cJSON *w = lab_workload(l);
    snprintf(path, sizeof(path), LAB_WORKLOADS "/%s", json_str(find(w, "metadata", NULL), "name"));
    assert_true(fake_delete(l->server, path));
    LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 0);
    assert_int_equal(pods(l), 0);
    settle(l);
    assert_int_equal(fake_count(l->server, LAB_WORKLOADS), 0);
    lab_put(l, LAB_JOB, "{'spec':{'sparkles':null}}");
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
}

static bool gates_are(struct lab *l, const char *gates)
{
    cleanup_json cJSON *w = lab_workload(l);
    const char *have = json_str(find(w, "metadata", "annotations"), "kueue.x-k8s.io/admission-gated-by");

    return w && (have && gates ? strcmp(have, gates) == 0 : have == gates);
}

/* Kueue lets nobody add gates to a Workload. */
static void test_gates(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.runs = false;
    lab_put(l, LAB_JOB, "{'metadata':{'annotations':{'kueue.x-k8s.io/admission-gated-by':'x/a,x/b'}}}");
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, gates_are(l, "x/a,x/b"));
    lab_put(l, LAB_JOB, "{'metadata':{'annotations':{'kueue.x-k8s.io/admission-gated-by':'x/c, x/b'}}}");
    LAB_UNTIL(l, gates_are(l, "x/b"));
    settle(l);
    lab_put(l, LAB_JOB, "{'metadata':{'annotations':null}}");
    LAB_UNTIL(l, gates_are(l, NULL));
    lab_put(l, LAB_JOB, "{'metadata':{'annotations':{'kueue.x-k8s.io/admission-gated-by':'x/a'}}}");
    settle(l);
    assert_true(gates_are(l, NULL));
    assert_int_equal(asked(l, "PUT", LAB_WORKLOADS), 2);
}

/* The whole Workload is read, and written back when its status or spec changes. */
static void test_large(void **state)
{
    enum { BYTES = 1 << 20 };
    struct lab *l = begin(state, lab_forever);
    cleanup_free char *body = malloc(BYTES + 64);

    assert_non_null(body);
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    snprintf(body, BYTES + 64, "{'metadata':{'annotations':{'mine':'%0*d'}}}", BYTES, 0);
    lab_workload_put(l, body);
    settle(l);
    lab_evict(l, "Preempted");
    LAB_UNTIL(l, lab_counts(l).pass_bytes > 2 * BYTES);
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True") && l->queues.admitted == 2);
    settle(l);
    assert_true(lab_counts(l).pass_bytes == 0);
}

/* ---- the place in the queue */

#define VISIBILITY "/apis/visibility.kueue.x-k8s.io/v1beta2"
#define TEAM VISIBILITY "/namespaces/ns/localqueues/team"

static void place(struct lab *l, int position)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    char body[512];

    snprintf(
        body, sizeof(body),
        "{'items':[{'metadata':{'ownerReferences':[{'uid':'other'}]},'positionInClusterQueue':0},{'metadata':"
        "{'ownerReferences':[{'uid':'%s'}]},'positionInClusterQueue':%d}]}",
        json_str(find(job, "metadata", NULL), "uid"), position);
    lab_put(l, TEAM, body);
}

/* One request for all jobs of a queue, every half minute while one waits. A place that is not confirmed goes. */
static void test_place(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    lab_pass_ms(l, 5000);
    assert_true(has_reason(l, "Queued insufficient"));
    lab_pass_ms(l, 600000);
    assert_in_range(asked(l, "GET", "pendingworkloads"), 9, 12);
    fake_add_kind(l->server, VISIBILITY, "localqueues", "LocalQueue");
    place(l, 2);
    LAB_UNTIL(l, has_reason(l, "Queued place 3: insufficient unused quota for nvidia.com/gpu"));
    place(l, 137);
    LAB_UNTIL(l, has_reason(l, "Queued place over 100: insufficient"));
    place(l, 57);
    LAB_UNTIL(l, has_reason(l, "Queued place over 10: insufficient"));
    place(l, 0);
    LAB_UNTIL(l, has_reason(l, "Queued place 1: insufficient"));
    int before = asked(l, "GET", "pendingworkloads");
    int writes = asked(l, "PATCH", "pytorchtrainingjobs");
    lab_pass_ms(l, 600000);
    assert_in_range(asked(l, "GET", "pendingworkloads") - before, 18, 22);
    assert_int_equal(asked(l, "PATCH", "pytorchtrainingjobs"), writes);
    fake_refuse(l->server, "GET", "pendingworkloads", 503);
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    before = asked(l, "GET", "pendingworkloads");
    lab_pass_ms(l, 600000);
    assert_in_range(asked(l, "GET", "pendingworkloads") - before, 9, 12);
    fake_plan_fault(l->server, NULL);
    LAB_UNTIL(l, has_reason(l, "Queued place 1: insufficient"));
    l->queues.full = false;
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_pass_ms(l, 120000);
    before = asked(l, "GET", "pendingworkloads");
    lab_pass_ms(l, 600000);
    assert_int_equal(asked(l, "GET", "pendingworkloads"), before);
    l->queues.full = true;
    lab_evict(l, "Preempted");
    LAB_UNTIL(l, lab_workload_is(l, "QuotaReserved", "False"));
    assert_false(has_reason(l, "place")); /* that was an earlier one */
}

/* Nobody's many queues cost the others theirs. */
static void test_many_places(void **state)
{
    struct lab *l = begin(state, lab_forever);
    char name[32], body[512];

    l->queues.full = true;
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "j-%d", i);
        snprintf(body, sizeof(body), "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'team-%d'}}}", i);
        lab_put_job(l, "hostile", name, QUEUED("", "1"));
        lab_put_job(l, "hostile", name, body);
    }
    lab_pass_ms(l, 5000);
    assert_int_equal(asked(l, "GET", "pendingworkloads"), 16);
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, asked(l, "GET", TEAM) == 1);
}

/* ---- MultiKueue */

#define REMOTE_JOB "'managedBy':'kueue.x-k8s.io/multikueue',"

/* What MultiKueue copies from the worker cluster. */
static void show(struct lab *l, const char *phase, const char *reason, const char *replica)
{
    char status[512];

    snprintf(
        status, sizeof(status),
        "{'status':{'phase':'%s','reason':'%s','conditions':[{'type':'Running','status':'%s','reason':'x'}],"
        "'tasks':[{'type':'node','replicas':[{'name':'j-node-0','phase':'%s'}]}]}}",
        phase, reason, strcmp(phase, "Running") == 0 ? "True" : "False", replica);
    lab_put(l, LAB_JOB, status);
}

static struct lab *begin_remote(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED(REMOTE_JOB, "2"));
    LAB_UNTIL(l, lab_workload_is(l, "Admitted", "True"));
    show(l, "Running", "", "Running");
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    return l;
}

static int writes_to_job(struct lab *l)
{
    return asked(l, "PATCH", "pytorchtrainingjobs") + asked(l, "PUT", "pytorchtrainingjobs");
}

static void test_remote(void **state)
{
    struct lab *l = begin_remote(state);

    show(l, "Pending", "Restarting", "Pending");
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "False"));
    show(l, "Succeeded", "", "Succeeded");
    LAB_UNTIL(l, lab_workload_is(l, "Finished", "True"));
    settle(l);
    assert_int_equal(writes_to_job(l), 0);
    assert_int_equal(asked(l, "POST", "/pods") + asked(l, "POST", "/services"), 0);
}

/* MultiKueue finishes the Workload before this operator sees the end of the job. */
static void test_remote_finished(void **state)
{
    struct lab *l = begin_remote(state);

    lab_workload_condition(l, "Finished", "True", "Succeeded", "");
    lab_pass_ms(l, 5000);
    cleanup_json cJSON *w = lab_workload(l);
    assert_int_equal(cJSON_GetArraySize(find(w, "metadata", "finalizers")), 0);
    lab_put(l, LAB_JOB, EDIT("'nvidia.com/gpu':4", ""));
    lab_pass_ms(l, 60000);
    assert_int_equal(asked(l, "POST", LAB_WORKLOADS), 1);
    assert_int_equal(writes_to_job(l), 0);
}

/* Quota goes back when the pods in the worker cluster have ended. */
static void test_remote_evicted(void **state)
{
    struct lab *l = begin_remote(state);

    l->queues.full = true;
    lab_evict(l, "Preempted");
    lab_pass_ms(l, 20000);
    assert_true(lab_workload_is(l, "QuotaReserved", "True"));
    show(l, "Pending", "Evicted DeactivatedDueToEvictedOnManagerCluster", "Creating");
    lab_pass_ms(l, 20000);
    assert_true(lab_workload_is(l, "QuotaReserved", "True"));
    show(l, "Pending", "Queued", "Creating");
    LAB_UNTIL(l, lab_workload_is(l, "QuotaReserved", "False"));
    assert_int_equal(writes_to_job(l), 0);
}

/* Nothing comes from a worker cluster that is lost. */
static void test_remote_lost(void **state)
{
    for (int over = 0; over < 2; over++) {
        struct lab *l = begin_remote(state);
        if (over)
            show(l, "Succeeded", "", "Running");
        l->queues.full = true;
        lab_evict(l, "AdmissionCheck");
        lab_pass_ms(l, 80000);
        assert_true(lab_workload_is(l, "QuotaReserved", "True"));
        assert_false(lab_workload_is(l, "Finished", "True"));
        LAB_UNTIL(l, lab_workload_is(l, over ? "Finished" : "QuotaReserved", over ? "True" : "False"));
        if (over == 0)
            (void)lab_end(state);
    }
}

/* Whatever the status shows: MultiKueue ends the pods when the Workload is gone. */
static void test_remote_leaves(void **state)
{
    static const char *const EDITS[] = {"{'spec':{'suspend':true}}",
                                        "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':null}}}"};

    for (size_t i = 0; i < 2; i++) {
        struct lab *l = begin_remote(state);
        lab_put(l, LAB_JOB, EDITS[i]);
        LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 0);
        lab_put(l, LAB_JOB,
                "{'spec':{'suspend':false},'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'team'}}}");
        LAB_UNTIL(l, lab_workload_is(l, "Admitted", "True"));
        assert_true(fake_delete(l->server, LAB_JOB));
        LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 0);
        assert_int_equal(writes_to_job(l), 0);
        if (i == 0)
            (void)lab_end(state);
    }
}

/* MultiKueue passes no count on: it would send the job anew. */
static void test_remote_elastic(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED(REMOTE_JOB ELASTIC, "3"));
    LAB_UNTIL(l, lab_workload_is(l, "Admitted", "True"));
    show(l, "Running", "", "Running");
    lab_put(l, LAB_JOB, "{'spec':{'elastic':{'expectedReplicas':2}}}");
    lab_pass_ms(l, 60000);
    assert_int_equal(count(l), 3);
    assert_int_equal(asked(l, "PUT", LAB_WORKLOADS), 0);
}

#define SENT "/pytorchtrainingjob-of-manager"
#define SENT_LABELS                                                                                          \
    "{'metadata':{'labels':{'kueue.x-k8s.io/multikueue-origin':'multikueue','kueue.x-k8s.io/"                \
    "prebuilt-workload-name':'old'},'annotations':{'kueue.x-k8s.io/"                                         \
    "prebuilt-workload-name':'pytorchtrainingjob-of-manager'}}}"

static void send_workload(struct lab *l, const char *gpus, const char *meta)
{
    char body[512];

    snprintf(
        body, sizeof(body),
        "{'metadata':{%s'labels':{'kueue.x-k8s.io/multikueue-origin':'multikueue'}},'spec':{'queueName':"
        "'team','priority':7,'podSets':[{'name':'node','count':2,'template':{'spec':{'containers':[{'name':"
        "'pytorch','image':'i','resources':{'limits':{'nvidia.com/gpu':'%s'}}}]}}}]}}",
        meta, gpus);
    lab_put(l, LAB_WORKLOADS SENT, body);
}

/* The Workload of the manager is adopted, and never changed. */
static void test_worker(void **state)
{
    struct lab *l = begin(state, lab_well_later);

    lab_put(l, LAB_JOB, SENT_LABELS);
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued the Workload pytorchtrainingjob-of-manager is not there"));
    send_workload(l, "1", "");
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    cleanup_json cJSON *w = lab_workload(l);
    assert_string_equal(json_str(find(w, "metadata", "labels"), "kueue.x-k8s.io/job-uid"),
                        json_str(find(job, "metadata", NULL), "uid"));
    assert_string_equal(json_str(find(w, "metadata", "labels"), "kueue.x-k8s.io/multikueue-origin"),
                        "multikueue");
    l->queues.full = true;
    lab_evict(l, "Preempted");
    LAB_UNTIL(l, lab_workload_is(l, "QuotaReserved", "False"));
    assert_int_equal(pods(l), 0);
    l->queues.full = false;
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
    settle(l);
    assert_true(lab_workload_is(l, "Finished", "True"));
    assert_int_equal(asked(l, "POST", LAB_WORKLOADS), 0);
    assert_int_equal(asked(l, "PUT", LAB_WORKLOADS), 2); /* adopted, released */
}

static void test_worker_foreign(void **state)
{
    struct lab *l = begin(state, lab_forever);

    send_workload(
        l, "1", "'ownerReferences':[{'apiVersion':'v1','kind':'X','name':'x','uid':'x','controller':true}],");
    lab_put(l, LAB_JOB, SENT_LABELS);
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued the Workload pytorchtrainingjob-of-manager"));
    lab_pass_ms(l, 600000);
    assert_int_equal(asked(l, "PUT", LAB_WORKLOADS) + asked(l, "POST", LAB_WORKLOADS) + pods(l), 0);
    assert_in_range(asked(l, "GET", LAB_WORKLOADS), 10, 20);
}

/* A running job goes on until it loses a pod. */
static void test_worker_out_of_sync(void **state)
{
    for (int runs = 0; runs < 2; runs++) {
        struct lab *l = begin(state, lab_forever);
        send_workload(l, runs ? "1" : "4", "");
        lab_put(l, LAB_JOB, SENT_LABELS);
        l->queues.runs = runs;
        lab_put(l, LAB_JOB, QUEUED("", "2"));
        if (runs) {
            LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
            lab_put(l, LAB_JOB, EDIT("'nvidia.com/gpu':4", ""));
            settle(l);
            assert_int_equal(pods(l), 2);
            assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
        }
        LAB_UNTIL(l, lab_workload_is(l, "Finished", "True"));
        assert_int_equal(pods(l), 0);
        cleanup_json cJSON *w = lab_workload(l);
        assert_string_equal(
            json_str(json_item_with(find(w, "status", "conditions"), "type", "Finished"), "reason"),
            "OutOfSync");
        lab_pass_ms(l, 60000);
        assert_int_equal(fake_count(l->server, LAB_WORKLOADS), 1);
        if (!runs)
            (void)lab_end(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(test_contradicted_while_running),
        LAB_TEST(test_flavour_changes),
        LAB_TEST(test_flavour_contradicts),
        LAB_TEST(test_changes_while_admitted),
        LAB_TEST(test_changed_and_failed),
        LAB_TEST(test_shrunk_to_the_minimum),
        LAB_TEST(test_shrunk_below_the_minimum),
        LAB_TEST(test_count_refused),
        LAB_TEST(test_evicted_with_odd_labels),
        LAB_TEST(test_evicted_while_deleted),
        LAB_TEST(test_life),
        LAB_TEST(test_evicted),
        LAB_TEST(test_evicted_with_tensorboard),
        LAB_TEST(test_absent),
        LAB_TEST(test_off),
        LAB_TEST(test_installed_later),
        LAB_TEST(test_gone),
        LAB_TEST(test_not_allowed),
        LAB_TEST(test_not_seen),
        LAB_TEST(test_webhook_down),
        LAB_TEST(test_webhook_down_at_release),
        LAB_TEST(test_ended_before_the_lists),
        LAB_TEST(test_left_before_the_lists),
        LAB_TEST(test_changes_while_waiting),
        LAB_TEST(test_changes_while_running),
        LAB_TEST(test_suspended),
        LAB_TEST(test_label_removed),
        LAB_TEST(test_elastic),
        LAB_TEST(test_contradiction),
        LAB_TEST(test_deleted),
        LAB_TEST(test_no_queue_of_pods),
        LAB_TEST(test_invalid_and_evicted),
        LAB_TEST(test_other_workloads),
        LAB_TEST(test_requests),
        LAB_TEST(test_never_the_same),
        LAB_TEST(test_never_the_same_while_waiting),
        LAB_TEST(test_unreadable_and_deleted),
        LAB_TEST(test_invalid_and_deleted),
        LAB_TEST(test_gates),
        LAB_TEST(test_large),
        LAB_TEST(test_place),
        LAB_TEST(test_many_places),
        LAB_TEST(test_remote),
        LAB_TEST(test_remote_finished),
        LAB_TEST(test_remote_evicted),
        LAB_TEST(test_remote_lost),
        LAB_TEST(test_remote_leaves),
        LAB_TEST(test_remote_elastic),
        LAB_TEST(test_worker),
        LAB_TEST(test_worker_foreign),
        LAB_TEST(test_worker_out_of_sync),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
