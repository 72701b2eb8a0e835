/* test_metrics.c - what /metrics says after jobs have come and gone, read as a scraper reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exposition.h"
#include "kube/prometheus.h"
#include "lab.h"
#include "operator/metrics.h"

#include <stdio.h>
#include <string.h>

#define OTHER "/apis/" TRAINJOB_API_VERSION "/namespaces/ns/pytorchtrainingjobs/other"
#define QUEUE "name=\"pytorchtrainingjob\""

static void put_job(struct lab *l, const char *path, const char *name)
{
    char text[1024];

    snprintf(
        text, sizeof(text),
        "{\"apiVersion\":\"" TRAINJOB_API_VERSION "\",\"kind\":\"" TRAINJOB_KIND
        "\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\"},\"spec\":{\"replicaSpecs\":[{\"type\":"
        "\"node\","
        "\"replicas\":2,\"restartPolicy\":\"ExitCode\",\"template\":{\"spec\":{\"containers\":[{\"name\":"
        "\"pytorch\",\"image\":\"i\"}]}}}]}}",
        name);
    assert_true(fake_put(l->server, path, text));
}

static int killed_once(int attempt, int index)
{
    return attempt == 0 ? (index == 1 ? 137 : -1) : 0;
}

static int fails(int attempt, int index)
{
    (void)attempt;
    return index == 0 ? 1 : -1;
}

static bool phase_is(struct lab *l, const char *path, const char *phase)
{
    cleanup_json cJSON *job = lab_get(l, path);
    const char *p = json_str(json_find(job, (const char *[]){"status", NULL}), "phase");

    return p && strcmp(p, phase) == 0;
}

static bool succeeded(struct lab *l)
{
    return phase_is(l, LAB_JOB, "Succeeded");
}

static bool other_failed(struct lab *l)
{
    return phase_is(l, OTHER, "Failed");
}

static bool one_job_left(struct lab *l)
{
    return controller_cached(l->operators[0].controller).jobs == 1;
}

static void scrape(const struct lab *l, struct exposition *e)
{
    const struct reconciler *reconciler = controller_reconciler(l->operators[0].controller);
    const struct prometheus_sources common = {.reconcilers = &reconciler,
                                              .n_reconcilers = 1,
                                              .http = l->operators[0].http,
                                              .lease = "lease",
                                              .leads = true};
    const struct metrics_sources own = {l->operators[0].controller, l->operators[0].recorder, "1.2.3"};
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct err err;

    assert_int_equal(metrics_write(&own, &text, &err), 0);
    assert_int_equal(prometheus_write(&common, &text, &err), 0);
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
    struct lab l;
    struct exposition e;

    (void)state;
    lab_start(&l, killed_once);
    put_job(&l, LAB_JOB, "j");
    lab_until(&l, succeeded);
    lab_until(&l, lab_settled);
    l.script = fails;
    put_job(&l, OTHER, "other");
    lab_until(&l, other_failed);
    lab_until(&l, lab_settled);
    assert_true(fake_remove(l.server, OTHER));
    lab_until(&l, one_job_left);
    scrape(&l, &e);
    assert_count(&e, "pytorchtrainingjob_created_total", 2);
    assert_count(&e, "pytorchtrainingjob_succeeded_total", 1);
    assert_count(&e, "pytorchtrainingjob_failed_total", 1);
    assert_count(&e, "pytorchtrainingjob_restarted_total", 1);
    assert_count(&e, "pytorchtrainingjob_deleted_total", 1);
    assert_count(&e, "pytorchtrainingjob_pods_created_total", 6);
    assert_count(&e, "pytorchtrainingjob_cached_jobs", 1);
    assert_count(&e, "pytorchtrainingjob_caches_synced", 1);
    assert_count(&e, "pytorchtrainingjob_events_dropped_total", 0);
    lab_stop(&l);
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
    put_job(&l, LAB_JOB, "j");
    lab_until(&l, succeeded);
    scrape(&l, &e);
    for (size_t i = 0; i < ARRAY_LEN(PLAIN); i++)
        (void)exposition_value(&e, PLAIN[i], "");
    for (size_t i = 0; i < ARRAY_LEN(QUEUED); i++)
        (void)exposition_value(&e, QUEUED[i], QUEUE);
    assert_true(exposition_value(&e, "process_resident_memory_bytes", "") > 4096);
    assert_true(exposition_value(&e, "pytorchtrainingjob_build_info", "version=\"1.2.3\"") == 1);
    assert_true(exposition_value(&e, "reflector_lists_total", QUEUE ",resource=\"pods\"") >= 1);
    assert_true(exposition_value(&e, "workqueue_adds_total", QUEUE) > 0);
    /* every key that became due was taken, but for those that are due still */
    assert_true(exposition_value(&e, "workqueue_queue_duration_seconds_count", QUEUE) ==
                exposition_value(&e, "workqueue_adds_total", QUEUE) -
                    exposition_value(&e, "workqueue_depth", QUEUE));
    assert_true(exposition_value(&e, "workqueue_work_duration_seconds_bucket", QUEUE ",le=\"10\"") > 0);
    assert_true(exposition_value(&e, "leader_election_master_status", "name=\"lease\"") == 1);
    assert_int_equal((int)exposition_value(&e, "rest_client_requests_total", "code=\"201\",method=\"POST\""),
                     fake_log_count(l.server, "POST", NULL));
    lab_stop(&l);
}

static void check_label(const struct sample *s)
{
    static const char *const OPEN[] = {"code=", "name=\"pytorchtrainingjob\"", "name=\"lease\"", "version="};

    if (!s->labels[0])
        return;
    for (size_t i = 0; i < ARRAY_LEN(OPEN); i++)
        if (strncmp(s->labels, OPEN[i], strlen(OPEN[i])) == 0)
            return;
    fail_msg("%s has a label that may have any number of values: %s", s->family, s->labels);
}

/* More jobs: the same series, but for kinds of answers of the API server. */
static void test_labels_do_not_grow_with_jobs(void **state)
{
    struct lab l;
    struct exposition one;
    struct exposition two;
    int requests[2] = {0};

    (void)state;
    lab_start(&l, killed_once);
    put_job(&l, LAB_JOB, "j");
    lab_until(&l, succeeded);
    scrape(&l, &one);
    l.script = fails;
    put_job(&l, OTHER, "other");
    lab_until(&l, other_failed);
    scrape(&l, &two);
    for (int i = 0; i < one.n; i++) {
        check_label(&one.samples[i]);
        requests[0] += strcmp(one.samples[i].family, "rest_client_requests_total") == 0;
    }
    for (int i = 0; i < two.n; i++) {
        check_label(&two.samples[i]);
        requests[1] += strcmp(two.samples[i].family, "rest_client_requests_total") == 0;
    }
    assert_int_equal(one.n - requests[0], two.n - requests[1]);
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
    put_job(&l, LAB_JOB, "j");
    lab_until(&l, succeeded);
    scrape(&l, &e);
    assert_true(exposition_value(&e, "rest_client_requests_total", "code=\"<error>\",method=\"POST\"") == 1);
    assert_true(exposition_value(&e, "pytorchtrainingjob_pass_failures_total", "") >= 1);
    lab_stop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_all_that_is_promised_is_there),
        cmocka_unit_test(test_labels_do_not_grow_with_jobs),
        cmocka_unit_test(test_request_without_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
