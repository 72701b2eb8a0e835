/* test_controller.c - the operator against the fake API server where others interfere: names that are taken,
 * refusals, users that delete and pause, a status that is lost.
 */
#include "lab.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* Its containers are named as those that the lab's mesh goes with. */
#define MESHED                                                                                               \
    "{\"spec\":{\"replicaSpecs\":[{\"type\":\"node\",\"replicas\":2,\"restartPolicy\":\"ExitCode\","         \
    "\"template\":{"                                                                                         \
    "\"spec\":{\"containers\":[{\"name\":\"trainer\",\"image\":\"i\"}]}}}]}}"

#define LAB_EVENTS "/api/v1/namespaces/ns/events"

static int second_attempt_succeeds(int attempt, int index)
{
    (void)index;
    return attempt == 0 ? -1 : 0;
}

static bool paused(struct lab *l)
{
    return lab_status_is(l, LAB_JOB, "phase", "Paused") && fake_count(l->server, LAB_PODS) == 0;
}

static void assert_summary(struct lab *l, const char *want)
{
    char got[256];

    lab_summary(l, got, sizeof(got));
    assert_string_equal(got, want);
}

static void test_name_taken(void **state)
{
    struct lab *l = lab_begin(state, second_attempt_succeeds);

    assert_true(fake_put(
        l->server, LAB_PODS "/j-node-1",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"j-node-1\",\"namespace\":\"ns\","
        "\"labels\":{\"batch.tensorstack.dev/attempt\":\"0\",\"batch.tensorstack.dev/"
        "replica-index\":\"1\"}}}"));
    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until_status(l, "reason", "NameConflict");
    lab_until(l, lab_settled);
    cleanup_json cJSON *theirs = lab_get(l, LAB_PODS "/j-node-1");
    assert_non_null(theirs);
    assert_null(json_find(theirs, (const char *[]){"metadata", "deletionTimestamp", NULL}));
    assert_int_equal(fake_log_count(l->server, "DELETE", NULL), 0);
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
    lab_until_status(l, "phase", "Running");
}

/* The first pod is refused. Returns after how many turns the server did that; after `stop_at` of them it ends sooner. */
static int until_refused(struct lab *l, int stop_at)
{
    int turns = 0;

    lab_start_direct(l, lab_forever, 1);
    fake_plan_fault(l->server, &(struct fake_fault_plan){
                                   .request = 1, .method = "POST", .path_part = "/pods", .status = 403});
    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    for (; fake_faults_done(l->server) == 0 && turns < stop_at; turns++)
        lab_turn(l);
    return turns;
}

/* Refused while the user mends the spec: that a try of the old one failed says nothing of the new one. */
static void test_spec_changes_while_a_pod_is_refused(void **state)
{
    struct lab l;

    (void)state;
    int turns = until_refused(&l, 1000);
    lab_stop(&l);
    /* once more, to the turn before that: the create is on its way */
    assert_int_equal(until_refused(&l, turns - 1), turns - 1);
    assert_true(fake_put(l.server, LAB_JOB, "{\"spec\":{\"runPolicy\":{\"backoffLimit\":7}}}"));
    lab_turn(&l);
    assert_int_equal(fake_faults_done(l.server), 1);
    int64_t from_ms = l.offset_ms;
    while (fake_log_count(l.server, "POST", "/pods") < 2)
        lab_turn(&l);
    assert_true(l.offset_ms - from_ms < 1000); /* the first delay after a refusal */
    lab_until_status(&l, "phase", "Running");
    lab_stop(&l);
}

static void test_invalid_pod(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_plan_fault(l->server,
                    &(struct fake_fault_plan){.method = "POST",
                                              .path_part = "/pods",
                                              .status = 422,
                                              .message = "Pod \"j-node-0\" is invalid: spec.containers: no"});
    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until_status(l, "reason", "InvalidSpec");
    fake_plan_fault(l->server, NULL);
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"runPolicy\":{\"backoffLimit\":1}}}"));
    lab_until_status(l, "phase", "Running");
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const cJSON *c;
    cJSON_ArrayForEach(c, json_find(job, (const char *[]){"status", "conditions", NULL}))
    {
        if (strcmp(json_str(c, "type"), "InvalidSpec") == 0)
            assert_string_equal(json_str(c, "status"), "False");
    }
}

static void test_pod_vanishes_while_the_operator_is_down(void **state)
{
    struct lab *l = lab_begin(state, second_attempt_succeeds);

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until_status(l, "phase", "Running");
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-0"));
    lab_crash(l);
    lab_until_status(l, "phase", "Succeeded");
    assert_summary(l, "Succeeded attempt=1 backoff=0 disruptions=1 failures=1 restarts=1");
}

/* The first "args" of a pod as the API server has it, NULL when there is none. */
static bool runs_with(struct lab *l, const char *pod, const char *arg)
{
    cleanup_json cJSON *object = lab_get(l, pod);
    const cJSON *c = cJSON_GetArrayItem(json_find(object, (const char *[]){"spec", "containers", NULL}), 0);
    const cJSON *a = cJSON_GetArrayItem(json_find(c, (const char *[]){"args", NULL}), 0);

    return object && (arg ? cJSON_IsString(a) && strcmp(a->valuestring, arg) == 0 : a == NULL);
}

/* Created suspended, as a queueing system does it: the first start runs the template, later ones resumeSpecs. */
static void test_resume_specs(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    assert_true(
        fake_put(l->server, LAB_JOB,
                 "{\"spec\":{\"suspend\":true,\"runMode\":{\"pause\":{\"resumeSpecs\":[{\"type\":\"node\","
                 "\"args\":[\"--resume\"]}]}}}}"));
    lab_until(l, paused);
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":false}}"));
    lab_until_status(l, "phase", "Running");
    assert_true(runs_with(l, LAB_PODS "/j-node-0", NULL));
    assert_summary(l, "Running attempt=0 backoff=0 disruptions=0 failures=0 restarts=0");
    for (int i = 1; i <= 2; i++) {
        assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":true}}"));
        lab_until(l, paused);
        assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":false}}"));
        lab_until_status(l, "phase", "Running");
        assert_true(runs_with(l, LAB_PODS "/j-node-0", "--resume"));
        cleanup_json cJSON *job = lab_get(l, LAB_JOB);
        assert_int_equal(json_i64(json_find(job, (const char *[]){"status", NULL}), "resumeCount", -1), i);
    }
    assert_int_equal(l->n_pods, 6);
}

/* Scope Replica: someone deletes a pod, it alone comes back, and the others never notice. */
static void test_replica_scope(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"runPolicy\":{\"restartScope\":\"Replica\"}}}"));
    for (int i = 1; i <= 3; i++) {
        lab_until_status(l, "phase", "Running");
        assert_int_equal(l->n_pods, i + 1);
        assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
        while (!(l->n_pods == i + 2 && lab_status_is(l, LAB_JOB, "phase", "Running")))
            lab_turn(l);
    }
    assert_summary(l, "Running attempt=0 backoff=0 disruptions=3 failures=3 restarts=3");
    char history[256];
    lab_pod_history(l, history, sizeof(history));
    assert_string_equal(history, " j-node-0/0 j-node-1/0 j-node-1/0.1 j-node-1/0.2 j-node-1/0.3");
    assert_true(
        fake_put(l->server, LAB_JOB, "{\"status\":null}")); /* the pods' labels tell which restart it is */
    lab_until_status(l, "phase", "Running");
    lab_until(l, lab_settled);
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
    while (!(l->n_pods == 6 && lab_status_is(l, LAB_JOB, "phase", "Running")))
        lab_turn(l);
    lab_pod_history(l, history, sizeof(history));
    assert_string_equal(history,
                        " j-node-0/0 j-node-1/0 j-node-1/0.1 j-node-1/0.2 j-node-1/0.3 j-node-1/0.4");
}

static int stuck(int attempt, int index)
{
    (void)attempt;
    (void)index;
    return LAB_STUCK;
}

static bool two_forced(struct lab *l)
{
    return fake_log_count(l->server, "DELETE", NULL) == 4;
}

/* Pods that a finalizer holds are deleted once, once more by force, and then left in peace. */
static void test_forced_and_held(void **state)
{
    struct lab *l = lab_begin(state, stuck);

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"runPolicy\":{\"forceDeleteAfterSeconds\":5}}}"));
    lab_until_status(l, "phase", "Running");
    assert_true(fake_put(l->server, LAB_PODS "/j-node-0", "{\"metadata\":{\"finalizers\":[\"a/b\"]}}"));
    assert_true(fake_put(l->server, LAB_PODS "/j-node-1", "{\"metadata\":{\"finalizers\":[\"a/b\"]}}"));
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":true}}"));
    lab_until(l, two_forced);
    lab_until(l, lab_settled);
    lab_pass_ms(l, 600000);
    assert_true(two_forced(l));
    assert_int_equal(fake_count(l->server, LAB_PODS), 2);
}

static bool ended(struct lab *l)
{
    return lab_status_is(l, LAB_JOB, "phase", "Succeeded") || lab_status_is(l, LAB_JOB, "phase", "Failed");
}

static bool pod_patched(struct lab *l)
{
    return fake_log_count(l->server, "PATCH", "/pods/") > 0;
}

/* What stays of two pods, beside whose ended training something runs for ever. patch_status: how patches of pods are answered; 0:
 * they are taken. */
static void check_sidecars(int (*script)(int attempt, int index), bool mesh, int patch_status, int pods)
{
    struct lab l;
    int told = 0;

    lab_start_direct(&l, script, 1);
    *(mesh ? &l.mesh : &l.sidecar) = true;
    assert_true(fake_put(l.server, LAB_JOB, LAB_TWO));
    assert_true(fake_put(l.server, LAB_JOB, "{\"spec\":{\"runPolicy\":{\"sidecarGraceSeconds\":12}}}"));
    if (mesh)
        assert_true(fake_put(l.server, LAB_JOB, MESHED));
    if (patch_status)
        fake_plan_fault(l.server, &(struct fake_fault_plan){
                                      .method = "PATCH", .path_part = "/pods/", .status = patch_status});
    lab_until(&l, ended);
    int64_t end_ms = l.offset_ms;
    lab_until(&l, pod_patched);
    assert_in_range(l.offset_ms - end_ms, 10000, 16000);
    lab_until(&l, lab_settled);
    assert_int_equal(fake_log_count(l.server, "PATCH", "/pods/"), 2);
    assert_int_equal(fake_log_count(l.server, "DELETE", "/pods/"), 2 - pods);
    assert_int_equal(fake_count(l.server, LAB_PODS), pods);
    for (int i = 0; i < pods; i++) {
        cleanup_json cJSON *pod = fake_nth_json(l.server, LAB_PODS, i);
        assert_string_equal(json_str(json_find(pod, (const char *[]){"status", NULL}), "phase"), "Failed");
    }
    for (int i = 0; i < fake_count(l.server, LAB_EVENTS); i++) {
        cleanup_json cJSON *e = fake_nth_json(l.server, LAB_EVENTS, i);
        told += strcmp(json_str(e, "reason"), "SidecarEnded") == 0 &&
                strstr(json_str(e, "message"), mesh ? "mesh-proxy" : "shipper");
    }
    assert_int_equal(told, 2);
    lab_stop(&l);
}

static int fails(int attempt, int index)
{
    (void)attempt;
    (void)index;
    return 1;
}

static void test_sidecars(void **state)
{
    (void)state;
    check_sidecars(lab_well, false, 0, 2);
    check_sidecars(lab_well, true, 0, 2);
    check_sidecars(fails, false, 0, 2);
    check_sidecars(lab_well, false, 403, 0); /* an older role: nothing holds the node */
    check_sidecars(lab_well, false, 422, 0);
}

static int never_starts(int attempt, int index)
{
    (void)attempt;
    return index == 0 ? LAB_RUNS : LAB_PENDING;
}

static void test_never_starts(void **state)
{
    struct lab *l = lab_begin(state, never_starts);

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"runPolicy\":{\"startDeadlineSeconds\":5}}}"));
    lab_until_status(l, "phase", "Failed");
    assert_true(lab_status_is(l, LAB_JOB, "reason", "AdmissionLimitExceeded"));
    assert_summary(l, "Failed attempt=10 backoff=0 disruptions=0 failures=10 restarts=10");
}

static void test_steady_job_costs_nothing(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until_status(l, "phase", "Running");
    lab_until(l, lab_settled);
    int before = l->works;
    lab_pass_ms(l, 3600000);
    assert_int_equal(l->works, before); /* an hour: lists and watches only */
}

/* The write of a status hangs while the job is deleted: what the garbage collector takes away is not made again and again. */
static void test_deletion_is_not_seen(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    l->collects = true;
    /* The status that knows the pods is written, but nobody hears of it. */
    fake_plan_fault(l->server,
                    &(struct fake_fault_plan){
                        .request = 1, .method = "PATCH", .path_part = "/status", .fault = FAKE_HANG_AFTER});
    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    while (fake_faults_done(l->server) == 0)
        lab_turn(l);
    assert_true(fake_remove(l->server, LAB_JOB));
    int before = fake_log_count(l->server, "POST", "/pods");
    lab_pass_ms(l, 300000);
    assert_in_range(fake_log_count(l->server, "POST", "/pods") - before, 0, 2);
    assert_int_equal(fake_count(l->server, LAB_PODS), 0);
    assert_int_equal(fake_count(l->server, LAB_SERVICES), 0);
    assert_int_equal(controller_counts(l->operators[0].controller).deleted, 1);
    assert_int_equal(kube_reconciler_queue(controller_reconciler(l->operators[0].controller)).depth, 0);
}

/* A pod in another namespace that names the job as its owner: the cache holds both, the job has one. */
static void test_copy_in_another_namespace(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    char pod[1024];

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until_status(l, "phase", "Running");
    lab_until(l, lab_settled);
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    snprintf(
        pod, sizeof(pod),
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"j-node-0\",\"namespace\":\"other\","
        "\"labels\":{\"" LABEL_JOB "\":\"j\",\"" LABEL_ATTEMPT "\":\"0\",\"" LABEL_TYPE
        "\":\"node\",\"" LABEL_INDEX "\":\"0\"},\"ownerReferences\":[{\"apiVersion\":\"" TRAINJOB_API_VERSION
        "\",\"kind\":\"" TRAINJOB_KIND "\",\"uid\":\"%s\",\"controller\":true,"
        "\"name\":\"j\"}]},\"spec\":{\"containers\":[{\"name\":\"pytorch\"}]},\"status\":{\"phase\":"
        "\"Succeeded\",\"containerStatuses\":[{\"name\":\"pytorch\",\"state\":{\"terminated\":{\"exitCode\":"
        "0}}}]}}",
        json_str(json_find(job, (const char *[]){"metadata", NULL}), "uid"));
    uint64_t before = controller_counts(l->operators[0].controller).passes;
    assert_true(fake_put(l->server, "/api/v1/namespaces/other/pods/j-node-0", pod));
    lab_pass_ms(l, 120000);
    assert_int_equal(fake_log_count(l->server, "DELETE", NULL), 0);
    assert_int_equal(fake_count(l->server, LAB_PODS), 2);
    assert_summary(l, "Running attempt=0 backoff=0 disruptions=0 failures=0 restarts=0");
    assert_int_equal(controller_counts(l->operators[0].controller).passes, before);
}

#define FOREIGN_SERVICE(name)                                                                                \
    "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\"}}"

/* The gang's name and TensorBoard's are both taken: each try waits as if there were one. */
static void test_two_names_taken(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    int turns = 0;

    assert_true(fake_put(l->server, LAB_SERVICES "/j-rdzv", FOREIGN_SERVICE("j-rdzv")));
    assert_true(fake_put(l->server, LAB_SERVICES "/j-tensorboard", FOREIGN_SERVICE("j-tensorboard")));
    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    assert_true(fake_put(l->server, LAB_JOB,
                         "{\"spec\":{\"tensorboardSpec\":{\"logDir\":{\"pvc\":[{\"name\":\"p\"}]}}}}"));
    lab_until_status(l, "reason", "NameConflict");
    int64_t from_ms = l->offset_ms;
    while (l->offset_ms < from_ms + 600000 && turns++ < 20000)
        lab_turn(l);
    int tries = fake_log_count(l->server, "POST", "/services");
    if (tries < 8 || tries > 25)
        fail_msg("%d creates of a service within %d turns", tries, turns);
    assert_true(fake_remove(l->server, LAB_SERVICES "/j-rdzv"));
    lab_until_status(l, "phase", "Running");
    assert_true(fake_remove(l->server, LAB_SERVICES "/j-tensorboard"));
    while (fake_count(l->server, LAB_DEPLOYMENTS) == 0)
        lab_turn(l);
}

/* The watch of jobs is up and says nothing: what the API server refuses at the cached version is looked at there. */
static void test_a_refused_status_leads_to_a_fresh_look(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until_status(l, "phase", "Running");
    lab_until(l, lab_settled);
    fake_freeze(l->server, TRAINJOB_PLURAL, 0);
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":true}}"));
    assert_true(fake_delete(l->server, LAB_PODS "/j-node-1"));
    int64_t from_ms = l->offset_ms;
    while (!paused(l) && l->offset_ms < from_ms + 180000) /* listed anew twice, a minute apart */
        lab_turn(l);
    assert_true(paused(l));
}

static int refusals(struct lab *l)
{
    struct fake_request r;
    int n = 0;

    for (int i = 0; fake_log_at(l->server, i, &r); i++)
        n += r.status == 409;
    return n;
}

/* The answer to a status comes after the watch told of an edit: what the watch told stays, and nothing is sent from an older
 * version. */
static void test_an_answer_changes_no_cache(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    l->bookmarks = true;
    fake_plan_fault(l->server,
                    &(struct fake_fault_plan){
                        .request = 1, .method = "PATCH", .path_part = "/status", .fault = FAKE_LATE_BODY});
    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    while (fake_faults_done(l->server) == 0)
        lab_turn(l);
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":true}}"));
    int64_t until_ms = l->offset_ms + 60000;
    while (!paused(l) && l->offset_ms < until_ms)
        lab_turn(l);
    assert_true(paused(l));
    assert_int_equal(refusals(l), 0);
}

static bool has_condition(struct lab *l, const char *type)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const cJSON *c;

    cJSON_ArrayForEach(c, json_find(job, (const char *[]){"status", "conditions", NULL}))
    {
        if (strcmp(json_str(c, "type"), type) == 0)
            return true;
    }
    return false;
}

/* As a merge patch of all that it read; `n` more of them, the first as the list's first. */
static void write_others(struct lab *l, int n)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    cJSON *patch = cJSON_CreateObject();
    cJSON *list = cJSON_Duplicate(json_find(job, (const char *[]){"status", "conditions", NULL}), true);

    cJSON_AddItemToObject(cJSON_AddObjectToObject(patch, "status"), "conditions", list);
    for (int i = 0; i < n; i++) {
        char type[32];
        snprintf(type, sizeof(type), "example.com/Billed%d", i);
        cJSON *c = cJSON_CreateObject();
        cJSON_AddStringToObject(c, "type", type);
        cJSON_AddStringToObject(c, "status", "True");
        cJSON_InsertItemInArray(list, i, c);
    }
    cleanup_free char *text = cJSON_PrintUnformatted(patch);
    assert_true(fake_put(l->server, LAB_JOB, text));
    cJSON_Delete(patch);
}

/* Someone who keeps a condition of his own in the status writes it once, and nobody answers that. */
static void test_others_conditions(void **state)
{
    struct lab *l = lab_begin(state, second_attempt_succeeds);

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until_status(l, "phase", "Running");
    lab_until(l, lab_settled);
    write_others(l, 1);
    int writes = fake_log_count(l->server, "PATCH", "/status");
    lab_until(l, lab_settled);
    assert_int_equal(fake_log_count(l->server, "PATCH", "/status"), writes);
    assert_true(fake_delete(l->server, LAB_PODS "/j-node-1"));
    lab_until_status(l, "phase", "Succeeded");
    assert_true(has_condition(l, "example.com/Billed0"));
    write_others(l, 0);
    lab_until(l, lab_settled);
    assert_true(has_condition(l, "Running") && has_condition(l, "example.com/Billed0"));
}

/* It is being deleted in the foreground while the answer to its first pod is on its way: no second pod is sent for, and no status. */
static void test_a_job_that_is_being_deleted(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_plan_fault(l->server,
                    &(struct fake_fault_plan){
                        .request = 1, .method = "POST", .path_part = "/pods", .fault = FAKE_LATE_BODY});
    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    assert_true(fake_put(l->server, LAB_JOB, "{\"metadata\":{\"finalizers\":[\"foregroundDeletion\"]}}"));
    while (fake_faults_done(l->server) == 0)
        lab_turn(l);
    int writes = fake_log_count(l->server, "PATCH", NULL);
    assert_true(fake_delete(l->server, LAB_JOB));
    lab_until(l, lab_settled);
    assert_int_equal(fake_log_count(l->server, "POST", "/pods"), 1);
    assert_int_equal(fake_log_count(l->server, "PATCH", NULL), writes);
}

/* Events of one pod come faster than its job can be planned, for which 5 ms pass here: it is planned after ten times that. */
static void test_a_flood_of_events(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    char body[64];

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until_status(l, "phase", "Running");
    lab_until(l, lab_settled);
    l->slow_ms = 5;
    int64_t from_ms = l->offset_ms;
    uint64_t before = controller_counts(l->operators[0].controller).passes;
    for (int n = 0; n < 2000; n++) {
        snprintf(body, sizeof(body), "{\"metadata\":{\"annotations\":{\"n\":\"%d\"}}}", n);
        assert_true(fake_put(l->server, LAB_PODS "/j-node-1", body));
        lab_turn(l);
    }
    uint64_t passes = controller_counts(l->operators[0].controller).passes - before;
    assert_in_range(passes, (l->offset_ms - from_ms) / 200, (l->offset_ms - from_ms) / 50 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(test_name_taken),
        cmocka_unit_test(test_spec_changes_while_a_pod_is_refused),
        LAB_TEST(test_invalid_pod),
        LAB_TEST(test_pod_vanishes_while_the_operator_is_down),
        LAB_TEST(test_resume_specs),
        LAB_TEST(test_replica_scope),
        LAB_TEST(test_forced_and_held),
        cmocka_unit_test(test_sidecars),
        LAB_TEST(test_never_starts),
        LAB_TEST(test_steady_job_costs_nothing),
        LAB_TEST(test_deletion_is_not_seen),
        LAB_TEST(test_copy_in_another_namespace),
        LAB_TEST(test_two_names_taken),
        LAB_TEST(test_a_refused_status_leads_to_a_fresh_look),
        LAB_TEST(test_an_answer_changes_no_cache),
        LAB_TEST(test_others_conditions),
        LAB_TEST(test_a_job_that_is_being_deleted),
        LAB_TEST(test_a_flood_of_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
