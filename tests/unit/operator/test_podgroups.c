/* test_podgroups.c - PodGroups of a job in a cluster: one with each attempt, gone with it, whatever the operator lives through. */
#include "lab.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define GROUPS "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups"
#define TORCHRUN(replicas) LAB_SPEC("'torchrunConfig':{'enabled':true},", replicas)

static int killed_once(int attempt, int index)
{
    return attempt > 0 ? 0 : index == 1 ? 137 : LAB_RUNS;
}

static void crash_as(struct lab *l, enum gang_scheduler gangs)
{
    l->gangs = gangs;
    lab_crash(l);
}

static void run_to(struct lab *l, const char *job, const char *phase)
{
    l->collects = true;
    crash_as(l, GANG_COSCHEDULING);
    lab_until(l, lab_settled);
    lab_put(l, LAB_JOB, job);
    lab_until_status(l, "phase", phase);
}

static int sent(struct lab *l, const char *method)
{
    return fake_log_count(l->server, method, GROUPS);
}

static bool has_none(struct lab *l)
{
    return fake_count(l->server, GROUPS) == 0;
}

/* A GET and a DELETE for each that ends, and nothing else. */
static void test_each_attempt(void **state)
{
    struct lab *l = lab_begin(state, killed_once);

    run_to(l, TORCHRUN("2"), "Succeeded");
    lab_until(l, has_none);
    assert_int_equal(sent(l, "POST"), 2);
    assert_int_equal(sent(l, "GET"), 2);
    assert_int_equal(sent(l, "DELETE"), 2);
    assert_int_equal(fake_log_count(l->server, "POST", LAB_PODS), 4);
}

static int replaced_once(int attempt, int index)
{
    return attempt == 0 && index == 1 ? 137 : 0;
}

static void test_replaced_alone(void **state)
{
    struct lab *l = lab_begin(state, replaced_once);

    l->hold_master = true;
    run_to(l, LAB_SPEC("'runPolicy':{'restartScope':'Replica'},", "2"), "Running");
    lab_until(l, lab_settled);
    l->hold_master = false;
    lab_until_status(l, "phase", "Succeeded");
    lab_until(l, has_none);
    assert_int_equal(fake_log_count(l->server, "POST", LAB_PODS), 3);
    assert_int_equal(sent(l, "POST"), 2); /* the second time it is there */
    assert_int_equal(sent(l, "DELETE"), 1);
}

/* A user deletes the PodGroup: the pod that is replaced would wait for it, and so would all that have no node yet. */
static void test_taken_away(void **state)
{
    static const char GONE[] = "{'status':{'phase':'Pending','containerStatuses':null,'conditions':[{'type':'"
                               "PodScheduled','status':'"
                               "False','reason':'Unschedulable','message':'PodGroup not found'}]}}";
    struct lab *l = lab_begin(state, lab_forever);

    run_to(l, LAB_SPEC("'runPolicy':{'restartScope':'Replica'},", "2"), "Running");
    lab_until(l, lab_settled);
    assert_true(fake_remove(l->server, GROUPS "/j-0"));
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
    LAB_UNTIL(l, fake_count(l->server, GROUPS) == 1);
    lab_until_status(l, "phase", "Running");
    assert_int_equal(lab_status_number(l, "attempt"), 0);
    (void)lab_end(state);

    l = lab_begin(state, lab_pending);
    crash_as(l, GANG_COSCHEDULING);
    lab_put(l, LAB_JOB, TORCHRUN("2"));
    LAB_UNTIL(l, fake_count(l->server, LAB_PODS) == 2);
    lab_until(l, lab_settled);
    assert_true(fake_remove(l->server, GROUPS "/j-0"));
    lab_put(l, LAB_PODS "/j-node-1", GONE);
    LAB_UNTIL(l, fake_count(l->server, GROUPS) == 1);
    int before = sent(l, "POST");
    lab_pass_ms(l, 600000); /* and the scheduler does not look again */
    assert_in_range(sent(l, "POST") - before, 0, 20);
}

/* The answer to the create is lost with the operator; the next one finds its PodGroup there. */
static void test_lost_answers(void **state)
{
    static const enum fake_fault FAULTS[] = {FAKE_DROP_BEFORE, FAKE_DROP_AFTER, FAKE_GARBAGE_BODY};

    for (size_t i = 0; i < ARRAY_LEN(FAULTS); i++) {
        if (i)
            (void)lab_end(state);
        struct lab *l = lab_begin(state, lab_well);
        fake_strike(l->server, "POST", "/podgroups", FAULTS[i]);
        run_to(l, TORCHRUN("2"), "Succeeded");
        lab_until(l, has_none);
        cleanup_json cJSON *job = lab_get(l, LAB_JOB);
        assert_int_equal(json_i64(json_child(job, "status"), "restarts", -1), 0);
    }
}

/* What began without a PodGroup goes on without; the next attempt has one, and after the way back none is left. */
static void test_the_option_changes(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    l->collects = true;
    lab_until(l, lab_settled);
    lab_put(l, LAB_JOB, TORCHRUN("2"));
    lab_until_status(l, "phase", "Running");
    crash_as(l, GANG_COSCHEDULING);
    lab_until(l, lab_settled);
    assert_int_equal(sent(l, "POST"), 0);
    lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
    lab_until_status(l, "phase", "Paused");
    lab_put(l, LAB_JOB, "{'spec':{'suspend':false}}");
    lab_until_status(l, "phase", "Running");
    assert_int_equal(fake_count(l->server, GROUPS), 1);
    crash_as(l, GANG_NONE);
    lab_until(l, lab_settled);
    assert_int_equal(fake_count(l->server, GROUPS), 1);
    lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
    lab_until_status(l, "phase", "Paused");
    assert_int_equal(fake_count(l->server, GROUPS), 0);
}

/* Without its feature gate the API server drops the pods' PodGroup. Each try is deleted, and counts nothing. */
static void test_native_dropped(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_add_kind(l->server, "/apis/scheduling.k8s.io/v1beta1", "podgroups", "PodGroup");
    l->collects = true;
    fake_drop_groups(l->server);
    crash_as(l, GANG_NATIVE);
    lab_put(l, LAB_JOB, TORCHRUN("2"));
    lab_pass_ms(l, 3600000);
    assert_true(lab_status_is(l, LAB_JOB, "reason", "PodRefused"));
    assert_int_equal(lab_status_number(l, "attempt"), 0);
    assert_int_equal(lab_status_number(l, "disruptionCount") + lab_status_number(l, "restarts"), 0);
    assert_in_range(fake_log_count(l->server, "POST", LAB_PODS), 30, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(test_each_attempt), LAB_TEST(test_replaced_alone),     LAB_TEST(test_taken_away),
        LAB_TEST(test_lost_answers), LAB_TEST(test_the_option_changes), LAB_TEST(test_native_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
