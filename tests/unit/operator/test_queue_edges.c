/* test_queue_edges.c - a job in a queue of Kueue: what happens between its usual stages, or is refused, or seldom there. */
#include "common/text.h"
#include "operator/api/workload.h"
#include "queuelab.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t number(struct lab *l, const char *key)
{
    cleanup_json cJSON *w = lab_workload(l);

    return json_i64(find(w, "spec", NULL), key, -1);
}

static int finalizers(struct lab *l)
{
    cleanup_json cJSON *w = lab_workload(l);

    return cJSON_GetArraySize(find(w, "metadata", "finalizers"));
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

/* ---- an invalid spec */

/* Quota that Kueue gives to a job without pods goes to others, and the job queues again when its spec is valid. */
static void test_invalid_while_waiting(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    lab_put(l, LAB_JOB, "{'spec':{'sparkles':true}}");
    LAB_UNTIL(l, has_reason(l, "InvalidSpec"));
    l->queues.full = false;
    LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 0);
    settle(l);
    assert_int_equal(fake_count(l->server, LAB_WORKLOADS) + pods(l), 0);
    lab_put(l, LAB_JOB, "{'spec':{'sparkles':null}}");
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    assert_int_equal(lab_status_number(l, "attempt"), 0);
    settle(l);
}

/* The same of a job that ran, when its last pod is gone. */
static void test_invalid_without_pods(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_JOB, "{'spec':{'sparkles':true}}");
    LAB_UNTIL(l, has_reason(l, "InvalidSpec"));
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-0"));
    settle(l);
    assert_true(lab_workload_is(l, "QuotaReserved", "True"));
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
    LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 0);
    settle(l);
    assert_true(lab_status_is(l, LAB_JOB, "phase", "Pending"));
    lab_put(l, LAB_JOB, "{'spec':{'sparkles':null}}");
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
}

/* Its pods have ended well: it needs no quota, and succeeds when its spec is valid. */
static void test_invalid_and_done(void **state)
{
    struct lab *l = begin(state, lab_well);

    l->hold_master = true;
    lab_put(l, LAB_JOB, QUEUED("", "1"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_JOB, "{'spec':{'sparkles':true}}");
    LAB_UNTIL(l, has_reason(l, "InvalidSpec"));
    l->hold_master = false;
    LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 0);
    settle(l);
    assert_int_equal(pods(l), 1);
    lab_put(l, LAB_JOB, "{'spec':{'sparkles':null}}");
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
    assert_int_equal(lab_status_number(l, "attempt"), 0);
    settle(l);
}

/* The label that leaves an invalid job ends no pod, and frees the quota. */
static void test_invalid_leaves_the_queue(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_JOB, "{'spec':{'sparkles':true}}");
    LAB_UNTIL(l, has_reason(l, "InvalidSpec"));
    lab_put(l, LAB_JOB, "{'metadata':{'labels':null}}");
    LAB_UNTIL(l, fake_count(l->server, LAB_WORKLOADS) == 0);
    lab_pass_ms(l, 60000);
    assert_int_equal(pods(l), 2);
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

/* A limit that is none is reported. */
static void test_bad_limit(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/max-exec-time-seconds':'1h'}}}");
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_events(l, "Ignored",
                            "max-exec-time-seconds: expected seconds from 1 to 2147483647, got \"1h\"") == 1);
    settle(l);
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

/* ---- Workloads that others made */

#define MADE_BY_OTHERS(meta)                                                                                 \
    "{'metadata':{" meta                                                                                     \
    "'ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p','uid':'p'}]},'spec':{'queueName':'"       \
    "team','podSets':[{'name':'node','count':2,'template':{'spec':{'containers':[{'name':'pytorch','image':" \
    "'i','resources':{'limits':{'nvidia.com/gpu':'1'}}}]}}}]}}"
#define SENT MADE_BY_OTHERS("'labels':{'kueue.x-k8s.io/multikueue-origin':'multikueue'},")
#define NAMES_IT "{'metadata':{'labels':{'kueue.x-k8s.io/prebuilt-workload-name':'theirs'}}}"

/* Who may create jobs takes no Workload of somebody else by naming it. What MultiKueue sent keeps its other owners. */
static void test_not_ours(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->collects = false; /* the pod that owns it is not made here */
    lab_put(l, LAB_WORKLOADS "/theirs", MADE_BY_OTHERS(""));
    lab_put(l, LAB_JOB, NAMES_IT);
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    lab_pass_ms(l, 300000);
    assert_true(has_reason(l, "Queued the Workload theirs is not there, or belongs to another job"));
    assert_int_equal(asked(l, "PUT", "/workloads") + asked(l, "PATCH", "/workloads") + pods(l), 0);
    lab_put(l, LAB_WORKLOADS "/theirs", SENT);
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    cleanup_json cJSON *w = lab_workload(l);
    assert_int_equal(cJSON_GetArraySize(find(w, "metadata", "ownerReferences")), 2);
}

/* A job in a worker cluster loses the name of its Workload: the quota stays until its pods have ended. */
static void test_name_lost(void **state)
{
    struct lab *l = begin(state, lab_stuck);

    l->collects = false;
    lab_put(l, LAB_WORKLOADS "/theirs", SENT);
    lab_put(l, LAB_JOB, NAMES_IT);
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/prebuilt-workload-name':null}}}");
    lab_pass_ms(l, 60000);
    assert_int_equal(pods(l), 2);
    cleanup_json cJSON *w = lab_get(l, LAB_WORKLOADS "/theirs");
    assert_true(w && !json_str(find(w, "metadata", NULL), "deletionTimestamp"));
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-0") && fake_remove(l->server, LAB_PODS "/j-node-1"));
    LAB_UNTIL(l, pods(l) == 2 && lab_workload_is(l, "PodsReady", "True"));
    cleanup_json cJSON *gone = lab_get(l, LAB_WORKLOADS "/theirs");
    assert_null(gone);
}

/* ---- what the API server refuses */

/* It waits in the old queue, its status names what was refused, and it is not tried each second. */
static void test_edit_refused(void **state)
{
    struct lab *l = begin(state, lab_forever);
    const struct fake_fault_plan bad = {.method = "PUT",
                                        .path_part = "/workloads",
                                        .status = 422,
                                        .message =
                                            "Workload.kueue.x-k8s.io \"w\" is invalid: spec.queueName: bad"};

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    fake_plan_fault(l->server, &bad);
    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'other'}}}");
    LAB_UNTIL(l, has_reason(l, "WorkloadRefused"));
    LAB_UNTIL(l, lab_events(l, "WorkloadRefused", "spec.queueName: bad") == 1);
    int before = asked(l, "PUT", "/workloads");
    lab_pass_ms(l, 600000);
    assert_in_range(asked(l, "PUT", "/workloads") - before, 9, 30);
    assert_true(has_reason(l, "WorkloadRefused"));
    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'team'}}}");
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'other'}}}");
    LAB_UNTIL(l, has_reason(l, "WorkloadRefused"));
    fake_plan_fault(l->server, NULL);
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    l->queues.full = false;
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    settle(l);
}

/* A Kueue that is installed while nothing needed it: one answer without its kinds is not enough then, either. */
static void test_missing_after_a_rest(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    l->kueue = QUEUES_AUTO;
    lab_restart(l);
    lab_pass_ms(l, 300000);
    lab_kueue_serve(l);
    fake_plan_fault(
        l->server, &(struct fake_fault_plan){
                       .request = 1, .method = "LIST", .path_part = "kueue.x-k8s.io/v1beta2", .status = 404});
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_struck(l));
    lab_pass_ms(l, 1000);
    assert_int_equal(asked(l, "POST", LAB_PODS), 0);
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
}

/* Whether discovery shows Kueue. No event of a job or a Workload comes with the change. */
static void serve(struct lab *l, bool served)
{
    const struct fake_fault_plan gone = {.method = "LIST", .path_part = "kueue", .status = 404};

    fake_plan_fault(l->server, served ? NULL : &gone);
    lab_pass_ms(l, 180000);
}

/* A label that was removed or added while Kueue was away has its effect when Kueue is there again. */
static void test_label_changes_while_kueue_is_away(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    serve(l, false);
    lab_put(l, LAB_JOB, "{'metadata':{'labels':null}}");
    lab_pass_ms(l, 10000);
    assert_int_equal(fake_count(l->server, LAB_WORKLOADS), 1);
    serve(l, true);
    assert_int_equal(fake_count(l->server, LAB_WORKLOADS), 0);
    serve(l, false);
    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'team'}}}");
    lab_pass_ms(l, 10000);
    assert_int_equal(fake_count(l->server, LAB_WORKLOADS), 0);
    assert_int_equal(lab_status_number(l, "attempt"), 0);
    serve(l, true);
    assert_true(lab_workload_is(l, "PodsReady", "True"));
    assert_int_equal(lab_status_number(l, "attempt"), 1);
    assert_int_equal(pods(l), 2);
}

/* The rest of the job's objects follow it all the same. */
static void test_edit_refused_with_tensorboard(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    fake_plan_fault(l->server,
                    &(struct fake_fault_plan){.method = "PUT", .path_part = "/workloads", .status = 403});
    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'other'}}}");
    LAB_UNTIL(l, has_reason(l, "WorkloadRefused"));
    lab_put(l, LAB_JOB, "{'spec':{'tensorboardSpec':{'logDir':{'pvc':[{'name':'p','subPath':['./log']}]}}}}");
    LAB_UNTIL(l, fake_count(l->server, LAB_DEPLOYMENTS) == 1);
}

/* ---- requests and plans that are not needed */

/* A finalizer of somebody else stays. */
static void test_other_finalizer(void **state)
{
    struct lab *l = begin(state, lab_well);

    l->hold_master = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    lab_workload_put(
        l,
        "{'metadata':{'finalizers':['a.example/keep','kueue.x-k8s.io/resource-in-use','b.example/keep']}}");
    l->hold_master = false;
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
    LAB_UNTIL(l, finalizers(l) == 2);
    cleanup_json cJSON *w = lab_workload(l);
    const cJSON *list = find(w, "metadata", "finalizers");
    assert_string_equal(cJSON_GetArrayItem(list, 0)->valuestring, "a.example/keep");
    assert_string_equal(cJSON_GetArrayItem(list, 1)->valuestring, "b.example/keep");
    assert_int_equal(asked(l, "GET", "/workloads"), 0);
}

static uint64_t passes_in(struct lab *l, int64_t ms)
{
    uint64_t before = lab_counts(l).passes;

    lab_pass_ms(l, ms);
    return lab_counts(l).passes - before;
}

/* What waits for an object of Kueue is planned when that appears, and not before. */
static void test_waits_quietly(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    lab_put(l, LAB_JOB, "{'metadata':{'labels':{'kueue.x-k8s.io/priority-class':'nowhere'}}}");
    LAB_UNTIL(l, has_reason(l, "Queued the WorkloadPriorityClass nowhere does not exist"));
    settle(l);
    assert_in_range(passes_in(l, 120000), 0, 5);
    lab_put(l, LAB_KUEUE "/workloadpriorityclasses/nowhere", "{'value':3}");
    LAB_UNTIL(l, number(l, "priority") == 3);
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    assert_true(fake_remove(l->server, LAB_KUEUE "/resourceflavors/gpu"));
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
    LAB_UNTIL(l, has_reason(l, "Queued the ResourceFlavor gpu does not exist"));
    settle(l);
    assert_in_range(passes_in(l, 120000), 0, 5);
    lab_put(l, LAB_KUEUE "/resourceflavors/gpu", "{'spec':{'nodeLabels':{'pool':'a100'}}}");
    LAB_UNTIL(l, pods(l) == 2);
}

/* The same of the lists. */
static void test_waits_quietly_for_lists(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_kueue_serve(l);
    l->bookmarks = true;
    l->kueue = QUEUES_ON;
    fake_refuse(l->server, "LIST", "/priorityclasses", 403);
    lab_restart(l);
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued the operator has not listed"));
    lab_pass_ms(l, 30000);
    assert_in_range(passes_in(l, 120000), 0, 10);
    fake_plan_fault(l->server, NULL);
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
}

/* The operator's clock is set back by an hour: a job that has just queued again may do so after 30 s, not after an hour. */
static void test_queued_again_and_a_step_back(void **state)
{
    static const char *const EDITS[] = {EDIT("'nvidia.com/gpu':4", ""), EDIT("'nvidia.com/gpu':2", "")};
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    for (int i = 0; i < 2; i++) {
        lab_pass_ms(l, 60000);
        l->back_ms = i * INT64_C(3600000);
        lab_put(l, LAB_JOB, EDITS[i]);
        lab_pass_ms(l, 5000);
        assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
        int64_t from_ms = l->offset_ms;
        LAB_UNTIL(l, l->queues.admitted == i + 2);
        assert_in_range(l->offset_ms - from_ms, 0, 120000);
    }
}

/* A role without the status of Workloads: the quota stays taken, and an event reports why. */
static void test_release_refused(void **state)
{
    struct lab *l = begin(state, lab_forever);

    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    fake_refuse(l->server, "PUT", "/status", 403);
    l->queues.full = true;
    lab_evict(l, "Preempted");
    LAB_UNTIL(l, lab_events(l, "WriteRefused", "changing Workload pytorchtrainingjob-j-") > 0);
    fake_plan_fault(l->server, NULL);
    LAB_UNTIL(l, lab_workload_is(l, "QuotaReserved", "False"));
}

/* ---- a job that is being deleted, and is kept by the finalizer of somebody else */

static void delete_held(struct lab *l)
{
    l->collects = false;
    lab_put(l, LAB_JOB, "{'metadata':{'finalizers':['tenant.example/keep']}}");
    assert_true(fake_delete(l->server, LAB_JOB));
}

/* It will never have pods again: Kueue gives it no quota. */
static void test_deleted_while_waiting(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    delete_held(l);
    lab_pass_ms(l, 20000);
    l->queues.full = false;
    lab_pass_ms(l, 20000);
    assert_int_equal(fake_count(l->server, LAB_WORKLOADS), 0);
    assert_int_equal(l->queues.admitted, 0);
}

/* A job of one pod, which runs until l->hold_master is false, is being deleted for 20 s. */
static struct lab *begin_running_and_delete(void **state)
{
    struct lab *l = begin(state, lab_well);

    l->hold_master = true;
    lab_put(l, LAB_JOB, QUEUED("", "1"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    delete_held(l);
    lab_pass_ms(l, 20000);
    return l;
}

/* Its pod ends by itself. */
static void test_deleted_while_running(void **state)
{
    struct lab *l = begin_running_and_delete(state);

    assert_true(lab_workload_is(l, "QuotaReserved", "True"));
    l->hold_master = false;
    lab_pass_ms(l, 60000);
    assert_int_equal(fake_count(l->server, LAB_WORKLOADS), 0);
}

/* The watch of pods is late: a pod that the cache lacks uses the quota. */
static void test_deleted_before_its_pod_is_seen(void **state)
{
    struct lab *l = begin(state, lab_forever);

    fake_freeze(l->server, "pods", 0);
    lab_put(l, LAB_JOB, QUEUED("", "1"));
    LAB_UNTIL(l, pods(l) == 1);
    delete_held(l);
    lab_pass_ms(l, 3000);
    assert_int_equal(asked(l, "DELETE", "/workloads/"), 0);
    fake_freeze(l->server, NULL, 0);
    lab_pass_ms(l, 20000);
    assert_true(lab_workload_is(l, "QuotaReserved", "True"));
    lab_evict(l, "Preempted");
    LAB_UNTIL(l, pods(l) == 0 && fake_count(l->server, LAB_WORKLOADS) == 0);
}

/* Somebody deletes the Workload, too. An eviction ends the pods all the same. */
static void test_deleted_with_its_workload(void **state)
{
    struct lab *l = begin(state, lab_forever);
    char path[256];

    lab_put(l, LAB_JOB, QUEUED("", "1"));
    LAB_UNTIL(l, lab_workload_is(l, "PodsReady", "True"));
    delete_held(l);
    cleanup_json cJSON *w = lab_workload(l);
    snprintf(path, sizeof(path), LAB_WORKLOADS "/%s", json_meta(w, "name"));
    assert_true(fake_delete(l->server, path));
    lab_pass_ms(l, 20000);
    assert_int_equal(pods(l), 1);
    assert_int_equal(fake_count(l->server, LAB_WORKLOADS), 1);
    lab_evict(l, "Preempted");
    LAB_UNTIL(l, pods(l) == 0 && fake_count(l->server, LAB_WORKLOADS) == 0);
}

/* Another controller runs it, and has a Workload for it. */
static void test_deleted_of_another_controller(void **state)
{
    struct lab *l = begin(state, lab_forever);
    char body[900];

    lab_put(l, LAB_JOB, QUEUED("'managedBy':'tenant.example/controller',", "2"));
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    snprintf(body, sizeof(body),
             "{'metadata':{'ownerReferences':[{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
             "','name':'j','uid':'%s','controller':true}]},'spec':{'active':true},'status':{'admission':{'"
             "clusterQueue':'q'},'conditions':[{'type':'QuotaReserved','status':'True','reason':'r'},{'type':"
             "'Evicted','status':'True','reason':'Preempted','message':'m'}]}}",
             json_str(json_child(job, "metadata"), "uid"));
    l->queues.runs = false;
    lab_put(l, LAB_WORKLOADS "/theirs", body);
    delete_held(l);
    lab_pass_ms(l, 20000);
    assert_int_equal(asked(l, "PUT", "/workloads") + asked(l, "DELETE", "/workloads"), 0);
}

/* An API server that starts does not know the Workloads yet. */
static void test_deleted_and_not_found(void **state)
{
    struct lab *l = begin_running_and_delete(state);

    fake_plan_fault(l->server,
                    &(struct fake_fault_plan){
                        .request = 1, .method = "DELETE", .path_part = "/workloads/", .status = 404});
    l->hold_master = false;
    lab_pass_ms(l, 120000);
    assert_true(lab_struck(l));
    assert_int_equal(fake_count(l->server, LAB_WORKLOADS), 0);
}

/* Nobody sees an event of a job that is gone: the log has why its Workload stays. */
static void test_deleted_and_refused(void **state)
{
    struct lab *l = begin(state, lab_forever);
    char text[4096] = "";

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    l->collects = false;
    l->log.fd = memfd_create("log", MFD_CLOEXEC);
    l->log.level = LOG_WARN;
    fake_refuse(l->server, "DELETE", "/workloads/", 403);
    assert_true(fake_delete(l->server, LAB_JOB));
    lab_pass_ms(l, 20000);
    assert_true(pread(l->log.fd, text, sizeof(text) - 1, 0) > 0);
    close(l->log.fd);
    l->log.fd = STDERR_FILENO;
    assert_non_null(strstr(text, "deleting Workload pytorchtrainingjob-j-"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(test_deadline_while_held),
        LAB_TEST(test_failover),
        LAB_TEST(test_missing_at_the_start),
        LAB_TEST(test_invalid_while_waiting),
        LAB_TEST(test_invalid_without_pods),
        LAB_TEST(test_invalid_and_done),
        LAB_TEST(test_invalid_leaves_the_queue),
        LAB_TEST(test_long_gates),
        LAB_TEST(test_scheduling_policy),
        LAB_TEST(test_partly_admitted),
        LAB_TEST(test_bad_limit),
        LAB_TEST(test_not_ours),
        LAB_TEST(test_name_lost),
        LAB_TEST(test_edit_refused),
        LAB_TEST(test_edit_refused_with_tensorboard),
        LAB_TEST(test_missing_after_a_rest),
        LAB_TEST(test_label_changes_while_kueue_is_away),
        LAB_TEST(test_other_finalizer),
        LAB_TEST(test_waits_quietly),
        LAB_TEST(test_waits_quietly_for_lists),
        LAB_TEST(test_queued_again_and_a_step_back),
        LAB_TEST(test_release_refused),
        LAB_TEST(test_deleted_while_waiting),
        LAB_TEST(test_deleted_while_running),
        LAB_TEST(test_deleted_before_its_pod_is_seen),
        LAB_TEST(test_deleted_with_its_workload),
        LAB_TEST(test_deleted_of_another_controller),
        LAB_TEST(test_deleted_and_not_found),
        LAB_TEST(test_deleted_and_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
