/* test_metrics.c - what /metrics says after jobs have come and gone, read as a scraper reads it. */
#include "exposition.h"
#include "kube/prometheus.h"
#include "lab.h"
#include "operator/metrics.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define OTHER "/apis/" TRAINJOB_API_VERSION "/namespaces/ns/pytorchtrainingjobs/other"
#define QUEUE "name=\"pytorchtrainingjob\""

static int killed_once(int attempt, int index)
{
    return attempt == 0 ? (index == 1 ? 137 : -1) : 0;
}

static int fails(int attempt, int index)
{
    (void)attempt;
    return index == 0 ? 1 : -1;
}

static bool other_failed(struct lab *l)
{
    return lab_status_is(l, OTHER, "phase", "Failed");
}

static bool one_job_left(struct lab *l)
{
    return controller_cached(l->operators[0].controller).jobs == 1;
}

static void scrape(const struct lab *l, struct exposition *e)
{
    const struct kube_reconciler *reconciler = controller_reconciler(l->operators[0].controller);
    const struct prometheus_sources common = {.reconcilers = &reconciler,
                                              .n_reconcilers = 1,
                                              .http = l->operators[0].http,
                                              .lease = "lease",
                                              .leads = true};
    const struct metrics_sources own = {l->operators[0].controller, l->operators[0].recorder, "1.2.3"};
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct err err;

    metrics_write(&own, &text);
    if (!l->direct) /* else there is no HTTP to count */
        prometheus_write(&common, &text);
    assert_int_equal(buf_check(&text, &err), 0);
    exposition_parse(e, buf_str(&text));
}

static void assert_count(const struct exposition *e, const char *family, int want)
{
    int got = (int)exposition_value(e, family, "");

    if (got != want)
        fail_msg("%s: expected %d, got %d", family, want, got);
}

/* Of all jobs: one that was killed once and then succeeded, one that failed. */
static void test_counts(void **state)
{
    struct lab *l = lab_begin(state, killed_once);
    struct exposition e;

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until_status(l, "phase", "Succeeded");
    lab_until(l, lab_settled);
    l->script = fails;
    assert_true(fake_put(l->server, OTHER, LAB_TWO));
    lab_until(l, other_failed);
    lab_until(l, lab_settled);
    assert_true(fake_remove(l->server, OTHER));
    lab_until(l, one_job_left);
    scrape(l, &e);
    assert_count(&e, "pytorchtrainingjob_first_pod_seconds_count", 2);
    assert_count(&e, "pytorchtrainingjob_running_seconds_count", 2);
    assert_count(&e, "pytorchtrainingjob_restart_seconds_count", 1);
    assert_count(&e, "pytorchtrainingjob_pass_bytes", 0);
    assert_true(exposition_value(&e, "pytorchtrainingjob_jobs", "namespace=\"ns\",phase=\"Succeeded\"") == 1);
    assert_count(&e, "pytorchtrainingjob_created_total", 2);
    assert_count(&e, "pytorchtrainingjob_succeeded_total", 1);
    assert_count(&e, "pytorchtrainingjob_failed_total", 1);
    assert_count(&e, "pytorchtrainingjob_restarted_total", 1);
    assert_count(&e, "pytorchtrainingjob_deleted_total", 1);
    assert_count(&e, "pytorchtrainingjob_pods_created_total", 6);
    assert_count(&e, "pytorchtrainingjob_cached_jobs", 1);
    assert_count(&e, "pytorchtrainingjob_caches_synced", 1);
    assert_count(&e, "pytorchtrainingjob_events_dropped_total", 0);
}

static void test_all_that_is_promised_is_there(void **state)
{
    static const char *const PLAIN[] = {"pytorchtrainingjob_created_total",
                                        "pytorchtrainingjob_succeeded_total",
                                        "pytorchtrainingjob_failed_total",
                                        "pytorchtrainingjob_restarted_total",
                                        "pytorchtrainingjob_deleted_total",
                                        "pytorchtrainingjob_pods_created_total",
                                        "pytorchtrainingjob_pods_deleted_total",
                                        "process_resident_memory_bytes",
                                        "process_cpu_seconds_total"};
    static const char *const QUEUED[] = {"workqueue_depth",
                                         "workqueue_delayed",
                                         "workqueue_processing",
                                         "workqueue_adds_total",
                                         "workqueue_retries_total",
                                         "workqueue_queue_duration_seconds_count",
                                         "workqueue_queue_duration_seconds_sum",
                                         "workqueue_work_duration_seconds_count",
                                         "workqueue_work_duration_seconds_sum",
                                         "workqueue_unfinished_work_seconds",
                                         "workqueue_longest_running_processor_seconds"};
    struct lab l;
    struct exposition e;

    (void)state;
    lab_start(&l, killed_once);
    assert_true(fake_put(l.server, LAB_JOB, LAB_TWO));
    lab_until_status(&l, "phase", "Succeeded");
    scrape(&l, &e);
    for (size_t i = 0; i < ARRAY_LEN(PLAIN); i++)
        (void)exposition_value(&e, PLAIN[i], "");
    for (size_t i = 0; i < ARRAY_LEN(QUEUED); i++)
        (void)exposition_value(&e, QUEUED[i], QUEUE);
    assert_true(exposition_value(&e, "process_resident_memory_bytes", "") > 4096);
    assert_true(exposition_value(&e, "pytorchtrainingjob_build_info", "version=\"1.2.3\"") == 1);
    assert_true(exposition_value(&e, "reflector_lists_total", QUEUE ",resource=\"pods\"") >= 1);
    assert_true(exposition_value(&e, "pytorchtrainingjob_progress_polls_total", "result=\"ok\"") == 0);
    assert_true(exposition_value(&e, "workqueue_adds_total", QUEUE) > 0);
    /* every key that became due was taken, but for those that are due still */
    assert_true(exposition_value(&e, "workqueue_queue_duration_seconds_count", QUEUE) ==
                exposition_value(&e, "workqueue_adds_total", QUEUE) -
                    exposition_value(&e, "workqueue_depth", QUEUE));
    assert_true(exposition_value(&e, "workqueue_work_duration_seconds_bucket", QUEUE ",le=\"10\"") > 0);
    assert_true(exposition_value(&e, "leader_election_master_status", "name=\"lease\"") == 1);
    /* Attempt 1 finds the NetworkPolicy of attempt 0: 409. */
    assert_int_equal((int)exposition_value(&e, "rest_client_requests_total", "code=\"201\",method=\"POST\""),
                     fake_log_count(l.server, "POST", NULL) - 1);
    lab_stop(&l);
}

/* How many waits of a kind, and their sum within bounds. */
static void assert_waits(const struct exposition *e, const char *family, int n, int min_s, int max_s)
{
    char name[96];

    snprintf(name, sizeof(name), "%s_count", family);
    assert_count(e, name, n);
    snprintf(name, sizeof(name), "%s_sum", family);
    double sum = exposition_value(e, name, "");
    if (sum < min_s || sum > max_s)
        fail_msg("%s: %.1f s", family, sum);
}

/* The time in which a job was suspended before it began is nobody's wait, and resuming is no start. */
static void test_waits_of_a_suspended_job(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    struct exposition e;

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":true}}"));
    lab_until_status(l, "phase", "Paused");
    lab_pass_ms(l, 1000000);
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":false}}"));
    lab_until_status(l, "phase", "Running");
    lab_pass_ms(l, 5000); /* until the answer is there */
    for (int again = 0; again < 2; again++) {
        scrape(l, &e);
        assert_waits(&e, "pytorchtrainingjob_first_pod_seconds", 1, 0, 60);
        assert_waits(&e, "pytorchtrainingjob_running_seconds", 1, 1, 60);
        assert_waits(&e, "pytorchtrainingjob_restart_seconds", 0, 0, 0);
        assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":true}}"));
        lab_until_status(l, "phase", "Paused");
        assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":false}}"));
        lab_until_status(l, "phase", "Running");
        lab_pass_ms(l, 5000); /* until the answer is there */
    }
}

/* A quota gives no room for a while: that is a wait for the first pod. */
static void test_waits_of_a_refused_job(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    struct exposition e;

    fake_plan_fault(l->server,
                    &(struct fake_fault_plan){.method = "POST", .path_part = "/pods", .status = 403});
    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_pass_ms(l, 200000);
    scrape(l, &e);
    assert_waits(&e, "pytorchtrainingjob_first_pod_seconds", 0, 0, 0);
    fake_plan_fault(l->server, NULL);
    lab_until_status(l, "phase", "Running");
    lab_pass_ms(l, 5000); /* until the answer is there */
    scrape(l, &e);
    assert_waits(&e, "pytorchtrainingjob_first_pod_seconds", 1, 200, 270);
    assert_waits(&e, "pytorchtrainingjob_running_seconds", 1, 200, 280);
    assert_true(exposition_value(&e, "pytorchtrainingjob_first_pod_seconds_bucket", "le=\"120\"") == 0);
    assert_true(exposition_value(&e, "pytorchtrainingjob_first_pod_seconds_bucket", "le=\"300\"") == 1);
}

static int starts_once_more(int attempt, int index)
{
    return attempt == 0 && index == 1 ? 137 : attempt == 1 ? LAB_PENDING : LAB_RUNS;
}

static bool second_attempt_waits(struct lab *l)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);

    return json_i64(json_find(job, (const char *[]){"status", NULL}), "attempt", 0) == 1 &&
           lab_status_is(l, LAB_JOB, "phase", "Pending") && fake_count(l->server, LAB_PODS) == 2;
}

/* Paused while it restarts: what follows a day later is no restart. */
static void test_waits_of_a_restart_that_was_paused(void **state)
{
    struct lab *l = lab_begin(state, starts_once_more);
    struct exposition e;

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until(l, second_attempt_waits);
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":true}}"));
    lab_until_status(l, "phase", "Paused");
    lab_pass_ms(l, 1000000);
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":false}}"));
    lab_until_status(l, "phase", "Running");
    lab_pass_ms(l, 5000); /* until the answer is there */
    scrape(l, &e);
    assert_waits(&e, "pytorchtrainingjob_running_seconds", 1, 0, 60);
    assert_waits(&e, "pytorchtrainingjob_restart_seconds", 0, 0, 0);
}

/* A node that was away for a while: its pod ran all the time. */
static void test_waits_of_a_job_that_was_unknown(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    struct exposition e;

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until_status(l, "phase", "Running");
    assert_true(fake_put(l->server, LAB_PODS "/j-node-1", "{\"status\":{\"phase\":\"Unknown\"}}"));
    lab_until_status(l, "phase", "Unknown");
    lab_pass_ms(l, 100000);
    assert_true(fake_put(l->server, LAB_PODS "/j-node-1", "{\"status\":{\"phase\":\"Running\"}}"));
    lab_until_status(l, "phase", "Running");
    lab_pass_ms(l, 5000); /* until the answer is there */
    scrape(l, &e);
    assert_waits(&e, "pytorchtrainingjob_running_seconds", 1, 0, 60);
}

static int series_of(const struct exposition *e, const char *family)
{
    int n = 0;

    for (int i = 0; i < e->n; i++)
        n += strcmp(e->samples[i].family, family) == 0;
    return n;
}

/* Both replicas of an operator know all jobs; a sum over them must not count each twice. */
static void test_jobs_are_counted_by_who_leads(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    struct exposition e;

    assert_true(fake_put(l->server, LAB_JOB, LAB_TWO));
    lab_until_status(l, "phase", "Running");
    lab_pass_ms(l, 5000); /* until the answer is there */
    scrape(l, &e);
    assert_true(exposition_value(&e, "pytorchtrainingjob_jobs", "namespace=\"ns\",phase=\"Running\"") == 1);
    kube_reconciler_lead(controller_reconciler(l->operators[0].controller), false);
    scrape(l, &e);
    assert_int_equal(series_of(&e, "pytorchtrainingjob_jobs"), 0);
    assert_count(&e, "pytorchtrainingjob_first_pod_seconds_count", 1); /* counters stand still */
}

enum { TENANTS = 130 };

static void put_tenants_job(struct lab *l, int tenant, int i)
{
    char path[160];
    char text[256];

    snprintf(path, sizeof(path),
             "/apis/" TRAINJOB_API_VERSION "/namespaces/tenant-%d/pytorchtrainingjobs/j%d", tenant, i);
    snprintf(text, sizeof(text),
             "{\"apiVersion\":\"" TRAINJOB_API_VERSION "\",\"kind\":\"" TRAINJOB_KIND
             "\",\"metadata\":{\"name\":\"j%d\",\"namespace\":\"tenant-%d\"},\"spec\":{\"suspend\":true},"
             "\"status\":{\"phase\":\"%s\"}}",
             i, tenant, i ? "Failed" : "Succeeded");
    assert_true(fake_put(l->server, path, text));
}

static bool all_tenants(struct lab *l)
{
    return controller_cached(l->operators[0].controller).jobs == TENANTS + 40;
}

/* Many namespaces: those with most jobs are named, and nothing is lost. */
static void test_namespaces_have_a_bound(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    struct exposition e;
    double sum = 0;

    kube_reconciler_lead(controller_reconciler(l->operators[0].controller), false);
    for (int i = 0; i < TENANTS; i++)
        put_tenants_job(l, i, 0);
    for (int i = 90; i < TENANTS; i++)
        put_tenants_job(l, i, 1);
    lab_until(l, all_tenants);
    kube_reconciler_lead(controller_reconciler(l->operators[0].controller), true);
    scrape(l, &e);
    assert_int_equal(series_of(&e, "pytorchtrainingjob_jobs"), 2 * 40 + 60 + 1);
    for (int i = 0; i < e.n; i++)
        if (strcmp(e.samples[i].family, "pytorchtrainingjob_jobs") == 0)
            sum += e.samples[i].value;
    assert_true(sum == TENANTS + 40);
    assert_true(exposition_value(&e, "pytorchtrainingjob_jobs", "namespace=\"\",phase=\"Succeeded\"") == 30);
    assert_true(
        exposition_value(&e, "pytorchtrainingjob_jobs", "namespace=\"tenant-129\",phase=\"Failed\"") == 1);
}

static void test_labels_are_escaped(void **state)
{
    cleanup_buf struct buf b = BUF_INIT(100);

    (void)state;
    prometheus_label(&b, "a\"b\\c\nd");
    assert_string_equal(buf_str(&b), "a\\\"b\\\\c\\nd");
}

static void check_label(const struct sample *s)
{
    static const char *const OPEN[] = {"namespace=",
                                       "le=",
                                       "code=",
                                       "name=\"pytorchtrainingjob\"",
                                       "name=\"lease\"",
                                       "version=",
                                       "result=\"ok\"",
                                       "result=\"failed\"",
                                       "result=\"dropped\"",
                                       "resource=\"p",
                                       "resource=\"services\"",
                                       "resource=\"deployments\""};

    if (!s->labels[0])
        return;
    for (size_t i = 0; i < ARRAY_LEN(OPEN); i++)
        if (strncmp(s->labels, OPEN[i], strlen(OPEN[i])) == 0)
            return;
    fail_msg("%s has a label that may have any number of values: %s", s->family, s->labels);
}

static bool may_differ(const struct sample *s)
{
    return strcmp(s->family, "rest_client_requests_total") == 0 ||
           strcmp(s->family, "pytorchtrainingjob_jobs") == 0;
}

/* More jobs: the same series, but for kinds of answers of the API server, and phases in the jobs' one namespace. */
static void test_labels_do_not_grow_with_jobs(void **state)
{
    struct lab l;
    struct exposition one;
    struct exposition two;
    int left_out[2] = {0};

    (void)state;
    lab_start(&l, killed_once);
    assert_true(fake_put(l.server, LAB_JOB, LAB_TWO));
    lab_until_status(&l, "phase", "Succeeded");
    scrape(&l, &one);
    l.script = fails;
    assert_true(fake_put(l.server, OTHER, LAB_TWO));
    lab_until(&l, other_failed);
    scrape(&l, &two);
    for (int i = 0; i < one.n; i++) {
        check_label(&one.samples[i]);
        left_out[0] += may_differ(&one.samples[i]);
    }
    for (int i = 0; i < two.n; i++) {
        check_label(&two.samples[i]);
        left_out[1] += may_differ(&two.samples[i]);
    }
    assert_int_equal(one.n - left_out[0], two.n - left_out[1]);
    lab_stop(&l);
}

/* "<error>", as client-go counts a request that nobody answered. */
static void test_request_without_an_answer(void **state)
{
    struct lab l;
    struct exposition e;

    (void)state;
    lab_start(&l, killed_once);
    fake_plan_fault(l.server,
                    &(struct fake_fault_plan){
                        .request = 1, .method = "POST", .path_part = "/pods", .fault = FAKE_RESET_BODY});
    assert_true(fake_put(l.server, LAB_JOB, LAB_TWO));
    lab_until_status(&l, "phase", "Succeeded");
    scrape(&l, &e);
    assert_true(exposition_value(&e, "rest_client_requests_total", "code=\"<error>\",method=\"POST\"") == 1);
    assert_true(exposition_value(&e, "pytorchtrainingjob_pass_failures_total", "") >= 1);
    lab_stop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(test_counts),
        cmocka_unit_test(test_all_that_is_promised_is_there),
        cmocka_unit_test(test_labels_do_not_grow_with_jobs),
        cmocka_unit_test(test_request_without_an_answer),
        LAB_TEST(test_waits_of_a_suspended_job),
        LAB_TEST(test_waits_of_a_refused_job),
        LAB_TEST(test_waits_of_a_restart_that_was_paused),
        LAB_TEST(test_waits_of_a_job_that_was_unknown),
        LAB_TEST(test_jobs_are_counted_by_who_leads),
        LAB_TEST(test_namespaces_have_a_bound),
        cmocka_unit_test(test_labels_are_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
