/* test_metrics.c - the values of /metrics after jobs were created and deleted, read as a scraper reads them. */
#include "exposition.h"
#include "kube/prometheus.h"
#include "lab.h"
#include "operator/metrics.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define OTHER "/apis/" TRAINJOB_API_VERSION "/namespaces/ns/pytorchtrainingjobs/other"
#define QUEUE "name=\"pytorchtrainingjob\""

static int fails(int attempt, int index)
{
    (void)attempt;
    return index == 0 ? 1 : -1;
}

static void scrape(const struct lab *l, struct exposition *e)
{
    const struct prometheus_sources common = {.reconciler = controller_reconciler(l->operators[0].controller),
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

/* When the answer to the last write is there. */
static void scrape_later(struct lab *l, struct exposition *e)
{
    lab_pass_ms(l, 5000);
    scrape(l, e);
}

static void assert_series(const struct exposition *e, const char *family, const char *labels, double want)
{
    double got = exposition_value(e, family, labels);

    if (got != want)
        fail_msg("%s{%s}: expected %g, got %g", family, labels, want, got);
}

static void assert_count(const struct exposition *e, const char *family, int want)
{
    assert_series(e, family, "", want);
}

/* Of all jobs: one that was killed once and then succeeded, one that failed. */
static void test_counts(void **state)
{
    struct lab *l = lab_begin(state, lab_killed_once);
    struct exposition e;

    lab_put(l, LAB_JOB, LAB_TWO);
    lab_until_status(l, "phase", "Succeeded");
    lab_until(l, lab_settled);
    l->script = fails;
    lab_put(l, OTHER, LAB_TWO);
    LAB_UNTIL(l, lab_status_is(l, OTHER, "phase", "Failed"));
    lab_until(l, lab_settled);
    assert_true(fake_remove(l->server, OTHER));
    LAB_UNTIL(l, lab_cached(l).jobs == 1);
    scrape(l, &e);
    assert_count(&e, "pytorchtrainingjob_first_pod_seconds_count", 2);
    assert_count(&e, "pytorchtrainingjob_running_seconds_count", 2);
    assert_count(&e, "pytorchtrainingjob_restart_seconds_count", 1);
    assert_count(&e, "pytorchtrainingjob_pass_bytes", 0);
    assert_series(&e, "pytorchtrainingjob_jobs", "namespace=\"ns\",phase=\"Succeeded\"", 1);
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
    static const char *const QUEUED[] = {"delayed",
                                         "processing",
                                         "retries_total",
                                         "queue_duration_seconds_sum",
                                         "work_duration_seconds_count",
                                         "work_duration_seconds_sum",
                                         "unfinished_work_seconds",
                                         "longest_running_processor_seconds"};
    char name[96];
    struct lab l;
    struct exposition e;

    (void)state;
    lab_start(&l, lab_killed_once);
    lab_put(&l, LAB_JOB, LAB_TWO);
    lab_until_status(&l, "phase", "Succeeded");
    scrape(&l, &e);
    (void)exposition_value(&e, "pytorchtrainingjob_pods_deleted_total", "");
    (void)exposition_value(&e, "process_cpu_seconds_total", "");
    for (size_t i = 0; i < ARRAY_LEN(QUEUED); i++)
        (void)exposition_value(&e, (snprintf(name, sizeof(name), "workqueue_%s", QUEUED[i]), name), QUEUE);
    assert_true(exposition_value(&e, "process_resident_memory_bytes", "") > 4096);
    assert_series(&e, "pytorchtrainingjob_build_info", "version=\"1.2.3\"", 1);
    assert_true(exposition_value(&e, "reflector_lists_total", QUEUE ",resource=\"pods\"") >= 1);
    assert_series(&e, "pytorchtrainingjob_progress_polls_total", "result=\"ok\"", 0);
    assert_true(exposition_value(&e, "workqueue_adds_total", QUEUE) > 0);
    /* every key that became due was taken, but for those that are due still */
    assert_true(exposition_value(&e, "workqueue_queue_duration_seconds_count", QUEUE) ==
                exposition_value(&e, "workqueue_adds_total", QUEUE) -
                    exposition_value(&e, "workqueue_depth", QUEUE));
    assert_true(exposition_value(&e, "workqueue_work_duration_seconds_bucket", QUEUE ",le=\"10\"") > 0);
    assert_series(&e, "leader_election_master_status", "name=\"lease\"", 1);
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

    lab_put(l, LAB_JOB, LAB_TWO);
    lab_pause(l);
    lab_pass_ms(l, 1000000);
    lab_resume(l);
    for (int again = 0; again < 2; again++) {
        scrape_later(l, &e);
        assert_waits(&e, "pytorchtrainingjob_first_pod_seconds", 1, 0, 60);
        assert_waits(&e, "pytorchtrainingjob_running_seconds", 1, 1, 60);
        assert_waits(&e, "pytorchtrainingjob_restart_seconds", 0, 0, 0);
        lab_pause(l);
        lab_resume(l);
    }
}

/* A quota gives no room for a while: that is a wait for the first pod. */
static void test_waits_of_a_refused_job(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    struct exposition e;

    fake_refuse(l->server, "POST", "/pods", 403);
    lab_put(l, LAB_JOB, LAB_TWO);
    lab_pass_ms(l, 200000);
    scrape(l, &e);
    assert_waits(&e, "pytorchtrainingjob_first_pod_seconds", 0, 0, 0);
    fake_plan_fault(l->server, NULL);
    lab_until_status(l, "phase", "Running");
    scrape_later(l, &e);
    assert_waits(&e, "pytorchtrainingjob_first_pod_seconds", 1, 200, 270);
    assert_waits(&e, "pytorchtrainingjob_running_seconds", 1, 200, 280);
    assert_series(&e, "pytorchtrainingjob_first_pod_seconds_bucket", "le=\"120\"", 0);
    assert_series(&e, "pytorchtrainingjob_first_pod_seconds_bucket", "le=\"300\"", 1);
}

static int starts_once_more(int attempt, int index)
{
    return attempt == 0 && index == 1 ? 137 : attempt == 1 ? LAB_PENDING : LAB_RUNS;
}

/* Paused while it restarts: what follows a day later is no restart. */
static void test_waits_of_a_restart_that_was_paused(void **state)
{
    struct lab *l = lab_begin(state, starts_once_more);
    struct exposition e;

    lab_put(l, LAB_JOB, LAB_TWO);
    LAB_UNTIL(l, lab_status_number(l, "attempt") == 1 && lab_status_is(l, LAB_JOB, "phase", "Pending") &&
                     fake_count(l->server, LAB_PODS) == 2);
    lab_pause(l);
    lab_pass_ms(l, 1000000);
    lab_resume(l);
    scrape_later(l, &e);
    assert_waits(&e, "pytorchtrainingjob_running_seconds", 1, 0, 60);
    assert_waits(&e, "pytorchtrainingjob_restart_seconds", 0, 0, 0);
}

/* A node that was away for a while: its pod ran all the time. */
static void test_waits_of_a_job_that_was_unknown(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    struct exposition e;

    lab_run(l, LAB_TWO);
    lab_put(l, LAB_PODS "/j-node-1", "{\"status\":{\"phase\":\"Unknown\"}}");
    lab_until_status(l, "phase", "Unknown");
    lab_pass_ms(l, 100000);
    lab_put(l, LAB_PODS "/j-node-1", "{\"status\":{\"phase\":\"Running\"}}");
    lab_until_status(l, "phase", "Running");
    scrape_later(l, &e);
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

    lab_run(l, LAB_TWO);
    scrape_later(l, &e);
    assert_series(&e, "pytorchtrainingjob_jobs", "namespace=\"ns\",phase=\"Running\"", 1);
    lab_lead(l, false);
    scrape(l, &e);
    assert_int_equal(series_of(&e, "pytorchtrainingjob_jobs"), 0);
    assert_count(&e, "pytorchtrainingjob_first_pod_seconds_count", 1); /* counters stand still */
}

enum { TENANTS = 130 };

static void put_tenants_job(struct lab *l, int tenant, int i)
{
    char ns[24], name[16];

    snprintf(ns, sizeof(ns), "tenant-%d", tenant);
    snprintf(name, sizeof(name), "j%d", i);
    lab_put_job(l, ns, name,
                i ? "{'spec':{'suspend':true},'status':{'phase':'Failed'}}"
                  : "{'spec':{'suspend':true},'status':{'phase':'Succeeded'}}");
}

/* Many namespaces: those with most jobs are named, and nothing is lost. */
static void test_namespaces_have_a_bound(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    struct exposition e;
    double sum = 0;

    lab_lead(l, false);
    for (int i = 0; i < TENANTS; i++)
        put_tenants_job(l, i, 0);
    for (int i = 90; i < TENANTS; i++)
        put_tenants_job(l, i, 1);
    LAB_UNTIL(l, lab_cached(l).jobs == TENANTS + 40);
    lab_lead(l, true);
    scrape(l, &e);
    assert_int_equal(series_of(&e, "pytorchtrainingjob_jobs"), 2 * 40 + 60 + 1);
    for (int i = 0; i < e.n; i++)
        if (strcmp(e.samples[i].family, "pytorchtrainingjob_jobs") == 0)
            sum += e.samples[i].value;
    assert_true(sum == TENANTS + 40);
    assert_series(&e, "pytorchtrainingjob_jobs", "namespace=\"\",phase=\"Succeeded\"", 30);
    assert_series(&e, "pytorchtrainingjob_jobs", "namespace=\"tenant-129\",phase=\"Failed\"", 1);
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
                                       "resource=\"deployments\"",
                                       "resource=\"workloads\""};

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
    lab_start(&l, lab_killed_once);
    lab_put(&l, LAB_JOB, LAB_TWO);
    lab_until_status(&l, "phase", "Succeeded");
    scrape(&l, &one);
    l.script = fails;
    lab_put(&l, OTHER, LAB_TWO);
    LAB_UNTIL(&l, lab_status_is(&l, OTHER, "phase", "Failed"));
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
    lab_start(&l, lab_killed_once);
    fake_strike(l.server, "POST", "/pods", FAKE_RESET_BODY);
    lab_put(&l, LAB_JOB, LAB_TWO);
    lab_until_status(&l, "phase", "Succeeded");
    scrape(&l, &e);
    assert_series(&e, "rest_client_requests_total", "code=\"<error>\",method=\"POST\"", 1);
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
