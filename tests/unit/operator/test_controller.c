/* test_controller.c - the operator against the fake API server where others interfere: names that are taken,
 * refusals, users that delete and pause, a status that is lost.
 */
#include "lab.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* Its containers are named as those that the lab's mesh goes with. */
#define MESHED                                                                                               \
    "{'spec':{'replicaSpecs':[{'type':'node','replicas':2,'restartPolicy':'ExitCode','template':{'spec':{'"  \
    "containers':[{'name':'trainer','image':'i'}]}}}]}}"

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

/* The first pod is refused. Returns after how many turns the server did that; after `stop_at` of them it ends sooner. */
static int until_refused(struct lab *l, int stop_at)
{
    int turns = 0;

    lab_start_direct(l, lab_forever, 1);
    fake_plan_fault(l->server, &(struct fake_fault_plan){
                                   .request = 1, .method = "POST", .path_part = "/pods", .status = 403});
    lab_put(l, LAB_JOB, LAB_TWO);
    for (; fake_faults_done(l->server) == 0 && turns < stop_at; turns++)
        lab_turn(l);
    return turns;
}

/* Refused while the user fixes the spec: the failure of the old spec says nothing about the new one. */
static void test_spec_changes_while_a_pod_is_refused(void **state)
{
    struct lab l;

    (void)state;
    int turns = until_refused(&l, 1000);
    lab_stop(&l);
    /* once more, to the turn before that: the create is on its way */
    assert_int_equal(until_refused(&l, turns - 1), turns - 1);
    lab_put(&l, LAB_JOB, "{'spec':{'runPolicy':{'backoffLimit':7}}}");
    lab_turn(&l);
    assert_int_equal(fake_faults_done(l.server), 1);
    int64_t from_ms = l.offset_ms;
    LAB_UNTIL(&l, fake_log_count(l.server, "POST", "/pods") >= 2);
    assert_true(l.offset_ms - from_ms < 1000); /* the first delay after a refusal */
    lab_until_status(&l, "phase", "Running");
    lab_stop(&l);
}

/* What stays of two pods, beside whose ended training something runs for ever. patch_status: how patches of pods are answered; 0:
 * they are taken. */
static void check_sidecars(int (*script)(int attempt, int index), bool mesh, int patch_status, int pods)
{
    struct lab l;

    lab_start_direct(&l, script, 1);
    *(mesh ? &l.mesh : &l.sidecar) = true;
    lab_put(&l, LAB_JOB, LAB_TWO);
    lab_put(&l, LAB_JOB, "{'spec':{'runPolicy':{'sidecarGraceSeconds':12}}}");
    if (mesh)
        lab_put(&l, LAB_JOB, MESHED);
    if (patch_status)
        fake_refuse(l.server, "PATCH", "/pods/", patch_status);
    LAB_UNTIL(&l, lab_status_is(&l, LAB_JOB, "phase", "Succeeded") ||
                      lab_status_is(&l, LAB_JOB, "phase", "Failed"));
    int64_t end_ms = l.offset_ms;
    LAB_UNTIL(&l, fake_log_count(l.server, "PATCH", "/pods/") > 0);
    assert_in_range(l.offset_ms - end_ms, 10000, 16000);
    lab_until(&l, lab_settled);
    assert_int_equal(fake_log_count(l.server, "PATCH", "/pods/"), 2);
    assert_int_equal(fake_log_count(l.server, "DELETE", "/pods/"), 2 - pods);
    assert_int_equal(fake_count(l.server, LAB_PODS), pods);
    for (int i = 0; i < pods; i++) {
        cleanup_json cJSON *pod = fake_nth_json(l.server, LAB_PODS, i);
        assert_string_equal(json_str(json_child(pod, "status"), "phase"), "Failed");
    }
    assert_int_equal(lab_events(&l, "SidecarEnded", mesh ? "mesh-proxy" : "shipper"), 2);
    lab_stop(&l);
}

static int fails(int attempt, int index)
{
    (void)attempt, (void)index;
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

static void test_steady_job_costs_nothing(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_run_settled(l, LAB_TWO);
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
    fake_strike(l->server, "PATCH", "/status", FAKE_HANG_AFTER);
    lab_put(l, LAB_JOB, LAB_TWO);
    lab_until(l, lab_struck);
    assert_true(fake_remove(l->server, LAB_JOB));
    int before = fake_log_count(l->server, "POST", "/pods");
    lab_pass_ms(l, 300000);
    assert_in_range(fake_log_count(l->server, "POST", "/pods") - before, 0, 2);
    assert_int_equal(fake_count(l->server, LAB_PODS), 0);
    assert_int_equal(fake_count(l->server, LAB_SERVICES), 0);
    assert_int_equal(lab_counts(l).deleted, 1);
    assert_int_equal(kube_reconciler_queue(controller_reconciler(l->operators[0].controller)).depth, 0);
}

/* A pod in another namespace that names the job as its owner: the cache holds both, the job has one. */
static void test_copy_in_another_namespace(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    char pod[1024];

    lab_run_settled(l, LAB_TWO);
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    snprintf(
        pod, sizeof(pod),
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'j-node-0','namespace':'other','labels':{"
        "'" LABEL_JOB "':'j','" LABEL_ATTEMPT "':'0','" LABEL_TYPE "':'node','" LABEL_INDEX
        "':'0'},'ownerReferences':[{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
        "','uid':'%s','controller':true,'name':'j'}]},'spec':{'containers':[{'name':'pytorch'}]},'status':{'"
        "phase':'Succeeded','containerStatuses':[{'name':'pytorch','state':{'terminated':{'exitCode':0}}}]}}",
        json_meta(job, "uid"));
    uint64_t before = lab_counts(l).passes;
    lab_put(l, "/api/v1/namespaces/other/pods/j-node-0", pod);
    lab_pass_ms(l, 120000);
    assert_int_equal(fake_log_count(l->server, "DELETE", NULL), 0);
    assert_int_equal(fake_count(l->server, LAB_PODS), 2);
    assert_summary(l, "Running attempt=0 backoff=0 disruptions=0 failures=0 restarts=0");
    assert_int_equal(lab_counts(l).passes, before);
}

#define FOREIGN_SERVICE(name)                                                                                \
    "{'apiVersion':'v1','kind':'Service','metadata':{'name':'" name "','namespace':'ns'}}"

/* The gang's name and TensorBoard's are both taken: each try waits as if there were one. */
static void test_two_names_taken(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    int turns = 0;

    lab_put(l, LAB_SERVICES "/j-rdzv", FOREIGN_SERVICE("j-rdzv"));
    lab_put(l, LAB_SERVICES "/j-tensorboard", FOREIGN_SERVICE("j-tensorboard"));
    lab_put(l, LAB_JOB, LAB_TWO);
    lab_put(l, LAB_JOB, "{'spec':{'tensorboardSpec':{'logDir':{'pvc':[{'name':'p'}]}}}}");
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
    LAB_UNTIL(l, fake_count(l->server, LAB_DEPLOYMENTS) != 0);
}

/* The watch of jobs is up and sends nothing: what the API server refuses at the cached version is looked at there. */
static void test_a_refused_status_leads_to_a_fresh_look(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_run_settled(l, LAB_TWO);
    fake_freeze(l->server, TRAINJOB_PLURAL, 0);
    lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
    assert_true(fake_delete(l->server, LAB_PODS "/j-node-1"));
    assert_in_range(lab_until(l, paused), 0, 180000); /* listed again twice, a minute apart */
}

static int refusals(struct lab *l)
{
    struct fake_request r;
    int n = 0;

    for (int i = 0; fake_log_at(l->server, i, &r); i++)
        n += r.status == 409;
    return n;
}

/* The answer to a status comes after the watch sent an edit: what the watch sent stays, and nothing is sent from an older
 * version. */
static void test_an_answer_changes_no_cache(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    l->bookmarks = true;
    fake_strike(l->server, "PATCH", "/status", FAKE_LATE_BODY);
    lab_put(l, LAB_JOB, LAB_TWO);
    lab_until(l, lab_struck);
    lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
    assert_in_range(lab_until(l, paused), 0, 60000);
    assert_int_equal(refusals(l), 0);
}

/* It is being deleted in the foreground while the answer to its first pod is on its way: no second pod is sent for, and no status. */
static void test_a_job_that_is_being_deleted(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_strike(l->server, "POST", "/pods", FAKE_LATE_BODY);
    lab_put(l, LAB_JOB, LAB_TWO);
    lab_put(l, LAB_JOB, "{'metadata':{'finalizers':['foregroundDeletion']}}");
    lab_until(l, lab_struck);
    int writes = fake_log_count(l->server, "PATCH", NULL);
    assert_true(fake_delete(l->server, LAB_JOB));
    lab_until(l, lab_settled);
    assert_int_equal(fake_log_count(l->server, "POST", "/pods"), 1);
    assert_int_equal(fake_log_count(l->server, "PATCH", NULL), writes);
}

/* Events of one pod come faster than its job can be planned, which takes so much CPU time. */
static uint64_t flood(struct lab *l, int64_t busy_us, int64_t *ret_took_ms)
{
    char body[64];

    lab_run_settled(l, LAB_TWO);
    l->slow_ms = 5;
    l->busy_us = busy_us;
    int64_t from_ms = l->offset_ms;
    uint64_t before = lab_counts(l).passes;
    for (int n = 0; n < 2000; n++) {
        snprintf(body, sizeof(body), "{'metadata':{'annotations':{'n':'%d'}}}", n);
        lab_put(l, LAB_PODS "/j-node-1", body);
        lab_turn(l);
    }
    *ret_took_ms = l->offset_ms - from_ms;
    return lab_counts(l).passes - before;
}

/* It is planned after ten times the CPU time that the last plan took. */
static void test_a_flood_of_events(void **state)
{
    int64_t took_ms;
    uint64_t passes = flood(lab_begin(state, lab_forever), 5000, &took_ms);

    assert_in_range(passes, took_ms / 200, took_ms / 50 + 1);
}

/* Other programs have the CPU during most of a plan: that is no reason to rest. A short plan is. */
static void test_a_flood_on_a_busy_node(void **state)
{
    int64_t took_ms;
    uint64_t passes = flood(lab_begin(state, lab_forever), 0, &took_ms);

    assert_in_range(passes, 1900, 2100);
    (void)lab_end(state);
    assert_in_range(flood(lab_begin(state, lab_forever), 900, &took_ms), took_ms / 50, took_ms / 9 + 1);
}

/* Fewer replicas of a job that runs: its ranks expect all of their peers, so they all begin again. */
static void test_fewer_replicas(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    char summary[128];

    lab_run_settled(l, LAB_SPEC("", "3"));
    lab_put(l, LAB_JOB, LAB_TWO);
    LAB_UNTIL(l, fake_count(l->server, LAB_PODS) < 3);
    lab_until(l, lab_settled);
    assert_int_equal(fake_count(l->server, LAB_PODS), 2);
    lab_summary(l, summary, sizeof(summary));
    assert_non_null(strstr(summary, "Running attempt=1 backoff=0 disruptions=0 failures=0"));
    assert_int_equal(lab_events(l, "TemplateChanged", NULL), 1);
}

/* The pods of a large job may not be deleted. Its plans take so much CPU time that it rests between them; nevertheless it tries
 * less and less often. */
static void test_a_refused_delete_of_a_large_job(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_run_settled(l, LAB_TWO);
    l->slow_ms = 5;
    l->busy_us = 20000;
    fake_refuse(l->server, "DELETE", "/pods/", 403);
    lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
    lab_pass_ms(l, 600000);
    assert_in_range(fake_log_count(l->server, "DELETE", "/pods/"), 4, 60);
    assert_true(lab_events(l, "WriteRefused", "deleting Pod j-node-") > 0);
    fake_plan_fault(l->server, NULL);
    lab_until_status(l, "phase", "Paused");
}

/* One event in ten minutes, and another one when the answer or the spec has changed: the job's other events have room. */
static void test_a_lasting_refusal_is_one_event(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_run_settled(l, LAB_TWO);
    fake_refuse(l->server, "DELETE", "/pods/", 403);
    lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
    lab_pass_ms(l, 300000);
    assert_int_equal(lab_events(l, "WriteRefused", NULL), 1);
    fake_refuse(l->server, "DELETE", "/pods/", 422);
    lab_pass_ms(l, 300000);
    assert_int_equal(lab_events(l, "WriteRefused", NULL), 2);
    lab_put(l, LAB_JOB, "{'spec':{'runPolicy':{'backoffLimit':7}}}");
    lab_pass_ms(l, 100000);
    assert_int_equal(lab_events(l, "WriteRefused", NULL), 3);
    lab_pass_ms(l, 700000);
    assert_int_equal(lab_events(l, "WriteRefused", NULL), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_changes_while_a_pod_is_refused),
        cmocka_unit_test(test_sidecars),
        LAB_TEST(test_steady_job_costs_nothing),
        LAB_TEST(test_deletion_is_not_seen),
        LAB_TEST(test_copy_in_another_namespace),
        LAB_TEST(test_two_names_taken),
        LAB_TEST(test_a_refused_status_leads_to_a_fresh_look),
        LAB_TEST(test_an_answer_changes_no_cache),
        LAB_TEST(test_a_job_that_is_being_deleted),
        LAB_TEST(test_a_flood_of_events),
        LAB_TEST(test_a_flood_on_a_busy_node),
        LAB_TEST(test_fewer_replicas),
        LAB_TEST(test_a_refused_delete_of_a_large_job),
        LAB_TEST(test_a_lasting_refusal_is_one_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
