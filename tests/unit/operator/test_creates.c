/* test_creates.c - creates that fail or meet a taken name, what of it outlives the lease, and what passes may hold. */
#include "lab.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTED(note)                                                                                          \
    "{'spec':{'replicaSpecs':[{'type':'node','replicas':4,'restartPolicy':'ExitCode','template':{'metadata'" \
    ":{'annotations':{'note':'" note "'}},'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}]}}"
#define JOB LAB_SPEC("", "4")

#define OWNED_BY_EARLIER                                                                                     \
    "'ownerReferences':[{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND                     \
    "','name':'j','uid':'earlier','controller':true}]"
#define TERMINATING "'deletionTimestamp':'2026-01-01T00:00:00Z','finalizers':['example.com/x']"

/* Pods without our labels stay until the test removes them. */
static int others_stay(int attempt, int index)
{
    (void)attempt;
    return index < 0 ? LAB_STUCK : LAB_RUNS;
}

/* How many requests had this text in their body. */
static int sent(struct lab *l, const char *method, const char *path_part, const char *text)
{
    struct fake_request r;
    int n = 0;

    for (int i = 0; fake_log_at(l->server, i, &r); i++)
        n += strcmp(r.method, method) == 0 && strstr(r.path, path_part) && strstr(r.body, text);
    return n;
}

/* Ten minutes: reported once, and tried less and less often with one request each. */
static void endure(const char *path_part, int status, const char *reason, const char *child,
                   const char *other)
{
    struct lab l;

    lab_start_direct(&l, lab_forever, 1);
    fake_refuse(l.server, "POST", path_part, status);
    lab_put(&l, LAB_JOB, JOB);
    lab_until_status(&l, "reason", reason);
    cleanup_json cJSON *job = lab_get(&l, LAB_JOB);
    cleanup_free char *text = cJSON_PrintUnformatted(json_child(job, "status"));
    assert_non_null(strstr(text, child));
    assert_non_null(strstr(text, "a fault was asked for"));
    int before = fake_log_count(l.server, "POST", path_part);
    int writes = fake_log_count(l.server, "PATCH", NULL);
    lab_pass_ms(&l, 600000);
    assert_in_range(fake_log_count(l.server, "POST", path_part) - before, 13,
                    16); /* 1 2 4 8 16 32 60 60 ... s */
    assert_int_equal(fake_log_count(l.server, "PATCH", NULL), writes);
    assert_int_equal(sent(&l, "POST", "/events", reason), 1);
    if (other)
        assert_int_equal(fake_log_count(l.server, "POST", other), 0);
    fake_plan_fault(l.server, NULL);
    assert_in_range(lab_until_status(&l, "phase", "Running"), 0, 75000);
    assert_true(lab_status_is(&l, LAB_JOB, "reason", NULL));
    lab_stop(&l);
}

static void test_a_create_that_fails_is_told(void **state)
{
    (void)state;
    endure("/pods", 403, "PodRefused", "", NULL);
    endure("/pods", 500, "CreateFailed", "Pod j-node-0", NULL);
    endure("/pods", 404, "CreateFailed", "Pod j-node-0", NULL);
    endure("/pods", 429, "CreateFailed", "Pod j-node-0", NULL);
    endure("/services", 503, "CreateFailed", "Service j-rdzv", "/pods");
}

static void wait_for_pod(const char *metadata)
{
    char pod[512];
    struct lab l;

    lab_start_direct(&l, others_stay, 1);
    snprintf(pod, sizeof(pod),
             "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'j-node-0','namespace':'ns',%s}}", metadata);
    lab_put(&l, LAB_PODS "/j-node-0", pod);
    lab_put(&l, LAB_JOB, JOB);
    lab_pass_ms(&l, 30000);
    assert_false(lab_status_is(&l, LAB_JOB, "reason", "NameConflict"));
    assert_in_range(fake_log_count(l.server, "POST", "/pods"), 14,
                    35); /* once a second, and the answers take turns of the lab */
    assert_int_equal(sent(&l, "POST", "/events", "Warning"), 0);
    assert_true(fake_remove(l.server, LAB_PODS "/j-node-0"));
    int64_t from_ms = l.offset_ms;
    LAB_UNTIL(&l, fake_count(l.server, LAB_PODS) >= 4);
    assert_in_range(l.offset_ms - from_ms, 0, 2000);
    lab_until_status(&l, "phase", "Running");
    lab_stop(&l);
}

/* Silently, in steps of a second: it goes by itself. */
static void test_what_goes_soon_is_waited_for(void **state)
{
    (void)state;
    wait_for_pod(OWNED_BY_EARLIER);
    wait_for_pod(TERMINATING);
    wait_for_pod(OWNED_BY_EARLIER "," TERMINATING);
}

#define TWO_TYPES                                                                                            \
    "{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND                                        \
    "','metadata':{'name':'j','namespace':'ns'},'spec':{'replicaSpecs':[{'type':'a','replicas':2,'"          \
    "restartPolicy':'ExitCode','template':{'spec':{'containers':[{'name':'pytorch'}]}}},{'type':'b','"       \
    "replicas':2,'restartPolicy':'ExitCode','template':{'spec':{'containers':[{'name':'pytorch','resource':" \
    "{}}]}}}]}}"

/* In the words of Kubernetes 1.34. */
static const char UNKNOWN[] = "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: "
                              "unknown field \"spec.containers[0].resource\"";
static const struct fake_fault_plan MISSPELT = {
    .method = "POST", .path_part = "fieldValidation=Strict", .status = 400, .message = UNKNOWN};

/* Nothing of it runs until it is corrected, also when the first replicaSpec is well. */
static void test_a_misspelt_template_runs_in_no_part(void **state)
{
    struct fake_fault_plan second = MISSPELT;
    struct lab *l = lab_begin(state, lab_forever);

    second.request = 2;
    fake_plan_fault(l->server, &second);
    lab_put(l, LAB_JOB, TWO_TYPES);
    lab_until_status(l, "reason", "InvalidSpec");
    assert_int_equal(sent(l, "POST", "/pods", "\"name\":\"j-a-1\""), 0);
    fake_plan_fault(l->server, &MISSPELT);
    lab_pass_ms(l, 300000);
    assert_true(lab_status_is(l, LAB_JOB, "reason", "InvalidSpec"));
    assert_int_equal(fake_count(l->server, LAB_PODS), 0);
    assert_int_equal(sent(l, "POST", "/pods", "\"name\":\"j-a-0\""), 1);
    assert_int_equal(sent(l, "POST", "/events", "InvalidSpec"), 1);
    assert_int_equal(
        sent(l, "POST", "/events", "spec.replicaSpecs[b].template.spec.containers[pytorch].resource"), 1);
    fake_plan_fault(l->server, NULL);
    lab_until_status(l, "phase", "Running");
    assert_true(lab_status_is(l, LAB_JOB, "reason", NULL));
    assert_null(lab_broken_rule(l, FAKE_RULES_ALL));
}

static int killed_once(int attempt, int index)
{
    return attempt == 0 && index == 1 ? 137 : LAB_RUNS;
}

/* It was begun with the field, by an older operator or before the server was exchanged. */
static void test_a_misspelt_job_that_ran_runs_on(void **state)
{
    struct lab *l = lab_begin(state, killed_once);

    l->gang = 4;
    lab_run(l, TWO_TYPES);
    fake_plan_fault(l->server, &MISSPELT);
    LAB_UNTIL(l, lab_status_number(l, "attempt") == 1 && lab_status_is(l, LAB_JOB, "phase", "Running"));
    assert_int_equal(fake_faults_done(l->server), 1);
    assert_int_equal(sent(l, "POST", "/events", "Ignored"), 1);
    assert_int_equal(sent(l, "PATCH", "/status", "InvalidSpec\",\"status\":\"True"), 0);
}

/* Others worked meanwhile: what was refused a while ago may be granted now. */
static void test_belief_ends_with_the_lease(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_refuse(l->server, "POST", "/pods", 403);
    lab_put(l, LAB_JOB, JOB);
    lab_pass_ms(l, 200000); /* tried once a minute by now */
    int before = fake_log_count(l->server, "POST", "/pods");
    LAB_UNTIL(l, fake_log_count(l->server, "POST", "/pods") != before);
    fake_plan_fault(l->server, NULL);
    lab_pass_ms(l, 5000);
    assert_int_equal(fake_count(l->server, LAB_PODS), 0);
    lab_lead(l, false);
    lab_turn(l);
    lab_lead(l, true);
    assert_in_range(lab_until_status(l, "phase", "Running"), 0, 20000);
}

/* A create of the earlier term ends in a time-out: nothing follows from that now. */
static void test_a_pass_of_an_earlier_term_teaches_nothing(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_strike(l->server, "POST", "/pods", FAKE_HANG_BEFORE);
    lab_put(l, LAB_JOB, JOB);
    lab_until(l, lab_struck);
    lab_lead(l, false);
    lab_turn(l);
    lab_lead(l, true);
    lab_until_status(l, "phase", "Running");
    assert_int_equal(sent(l, "PATCH", "/status", "CreateFailed"), 0);
    assert_int_equal(lab_counts(l).failures, 0);
    assert_int_equal(lab_counts(l).pods_created, 4);
}

static void test_who_waits_counts_nothing(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_run_settled(l, JOB);
    lab_lead(l, false);
    assert_true(fake_remove(l->server, LAB_JOB));
    lab_pass_ms(l, 5000);
    assert_int_equal(lab_cached(l).jobs, 0);
    assert_int_equal(lab_counts(l).deleted, 0);
    lab_lead(l, true);
    lab_put(l, LAB_JOB, JOB);
    lab_pass_ms(l, 5000);
    assert_true(fake_remove(l->server, LAB_JOB));
    lab_pass_ms(l, 5000);
    assert_int_equal(lab_counts(l).deleted, 1);
}

enum { NOTE_BYTES = 200000, SLOW_JOBS = 60, NAMESPACES = 8, WORST_BYTES = 22 << 20 };

static void put_slow_job(struct lab *l, int i)
{
    char name[32], ns[32];
    char *text = NULL;

    snprintf(ns, sizeof(ns), "slow-%d", i % NAMESPACES);
    snprintf(name, sizeof(name), "s%d", i);
    assert_true(asprintf(&text, NOTED("%0*d"), NOTE_BYTES, 0) > 0);
    lab_put_job(l, ns, name, text);
    free(text);
}

/* Large jobs in eight namespaces whose admission does not answer: memory stays within the figure of budget.h, and a small
 * job elsewhere does not wait for them. */
static void test_large_passes_have_a_bound(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    size_t most = 0;

    fake_plan_fault(l->server, &(struct fake_fault_plan){.method = "POST",
                                                         .path_part = "/namespaces/slow-",
                                                         .fault = FAKE_HANG_BEFORE});
    for (int i = 0; i < SLOW_JOBS; i++)
        put_slow_job(l, i);
    lab_pass_ms(l, 5000);
    lab_put(l, LAB_JOB, JOB);
    int64_t from_ms = l->offset_ms;
    uint64_t passes = 0;
    while (l->offset_ms < from_ms + 100000) {
        lab_turn(l);
        if (l->offset_ms < from_ms + 6000)
            passes = lab_counts(l).passes;
        if (l->offset_ms < from_ms + 20000) /* who has no room is not decoded again and again */
            assert_in_range(lab_counts(l).passes, 0, passes + 10);
        size_t held = lab_counts(l).pass_bytes;
        most = held > most ? held : most;
        if (l->offset_ms > from_ms + 5000)
            assert_int_equal(fake_count(l->server, LAB_PODS), 4);
    }
    assert_in_range(most, WORST_BYTES / 2, WORST_BYTES);
    fake_plan_fault(l->server, NULL);
    lab_pass_ms(l, 120000);
    assert_int_equal(fake_count(l->server, "/api/v1/pods"), 4 * (SLOW_JOBS + 1));
    assert_int_equal(lab_counts(l).pass_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_create_that_fails_is_told),
        cmocka_unit_test(test_what_goes_soon_is_waited_for),
        LAB_TEST(test_a_misspelt_template_runs_in_no_part),
        LAB_TEST(test_a_misspelt_job_that_ran_runs_on),
        LAB_TEST(test_belief_ends_with_the_lease),
        LAB_TEST(test_a_pass_of_an_earlier_term_teaches_nothing),
        LAB_TEST(test_who_waits_counts_nothing),
        LAB_TEST(test_large_passes_have_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
