/* test_recorder.c - Events reach the server, count up, survive its faults, and never hold anybody up. */
#include "kube/recorder.h"

#include "common/json.h"
#include "rig.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kube_recorder_object job = {
    .api_version = "batch.example.com/v1", .kind = "TrainJob", .ns = "ns", .name = "a", .uid = "u-1"};

#define EVENTS "/api/v1/namespaces/ns/events"

static void until(struct rig *r, struct kube_recorder *rec, uint64_t sent, uint64_t failed)
{
    RIG_UNTIL(r->loop, kube_recorder_stats(rec).sent >= sent && kube_recorder_stats(rec).failed >= failed);
}

static void test_one_event(void **ctx)
{
    struct rig *r = *ctx;
    cleanup_kube_recorder struct kube_recorder *rec = kube_recorder_new(r->loop, &r->api, "operator");

    kube_recorder_event(rec, &job, true, "Restarting", "attempt %d of %d", 1, 3);
    until(r, rec, 1, 0);
    cleanup_json cJSON *e = fake_nth_json(r->server, EVENTS, 0);
    assert_string_equal(json_str(e, "type"), "Warning");
    assert_string_equal(json_str(e, "reason"), "Restarting");
    assert_string_equal(json_str(e, "message"), "attempt 1 of 3");
    assert_int_equal(json_i64(e, "count", 0), 1);
    const cJSON *about = cJSON_GetObjectItem(e, "involvedObject");
    assert_string_equal(json_str(about, "uid"), "u-1");
    assert_string_equal(json_str(about, "apiVersion"), "batch.example.com/v1");
    assert_string_equal(json_str(cJSON_GetObjectItem(e, "source"), "component"), "operator");
    assert_string_equal(json_str(e, "firstTimestamp"), json_str(e, "lastTimestamp"));
}

static void test_again_counts_up(void **ctx)
{
    struct rig *r = *ctx;
    cleanup_kube_recorder struct kube_recorder *rec = kube_recorder_new(r->loop, &r->api, "operator");

    for (int i = 0; i < 3; i++) {
        kube_recorder_event(rec, &job, false, "Paused", "by request");
        until(r, rec, (uint64_t)i + 1, 0);
    }
    assert_int_equal(fake_count(r->server, "/api/v1/events"), 1);
    cleanup_json cJSON *e = fake_nth_json(r->server, EVENTS, 0);
    assert_int_equal(json_i64(e, "count", 0), 3);
    /* The server forgets Events after an hour: the next one makes it again. */
    fake_remove(r->server, "/api/v1/namespaces/ns/events/none");
    char path[400];
    snprintf(path, sizeof(path), "/api/v1/namespaces/ns/events/%s",
             json_str(cJSON_GetObjectItem(e, "metadata"), "name"));
    assert_true(fake_remove(r->server, path));
    kube_recorder_event(rec, &job, false, "Paused", "by request");
    until(r, rec, 4, 0);
    assert_int_equal(fake_count(r->server, "/api/v1/events"), 1);
}

static void test_waiting_ones_are_merged(void **ctx)
{
    struct rig *r = *ctx;
    cleanup_kube_recorder struct kube_recorder *rec = kube_recorder_new(r->loop, &r->api, "operator");

    for (int i = 0; i < 20; i++)
        kube_recorder_event(rec, &job, false, "Paused", "by request");
    until(r, rec, 2, 0); /* the first is on the wire, the others wait as one */
    cleanup_json cJSON *e = fake_nth_json(r->server, EVENTS, 0);
    assert_int_equal(json_i64(e, "count", 0), 20);
    assert_int_equal(fake_log_count(r->server, NULL, "/events"), 2);
}

static void test_too_many_are_dropped(void **ctx)
{
    struct rig *r = *ctx;
    cleanup_kube_recorder struct kube_recorder *rec = kube_recorder_new(r->loop, &r->api, "operator");

    for (int i = 0; i < 40; i++)
        kube_recorder_event(rec, &job, true, "ReplicaFailed", "replica %d", i);
    assert_int_equal(kube_recorder_stats(rec).dropped, 15);
    until(r, rec, 25, 0);
    assert_int_equal(fake_count(r->server, "/api/v1/events"), 25);
    cleanup_json cJSON *e = fake_nth_json(r->server, EVENTS, 24);
    assert_string_equal(json_str(e, "message"), "replica 24");
}

static void test_refused_is_dropped(void **ctx)
{
    struct rig *r = *ctx;
    cleanup_kube_recorder struct kube_recorder *rec = kube_recorder_new(r->loop, &r->api, "operator");

    fake_plan_fault(r->server, &(struct fake_fault_plan){.request = 1, .fault = FAKE_STATUS, .status = 403});
    kube_recorder_event(rec, &job, false, "First", "x");
    kube_recorder_event(rec, &job, false, "Second", "x");
    until(r, rec, 1, 1);
    cleanup_json cJSON *e = fake_nth_json(r->server, EVENTS, 0);
    assert_string_equal(json_str(e, "reason"), "Second");
}

/* "In a day", for one Event: the others do not wait for it so long. */
static void test_a_long_retry_after(void **ctx)
{
    struct rig *r = *ctx;
    cleanup_kube_recorder struct kube_recorder *rec = kube_recorder_new(r->loop, &r->api, "operator");

    fake_plan_fault(
        r->server,
        &(struct fake_fault_plan){.request = 1, .fault = FAKE_STATUS, .status = 503, .retry_after_s = 86400});
    kube_recorder_event(rec, &job, false, "First", "x");
    kube_recorder_event(rec, &job, false, "Second", "x");
    until(r, rec, 2, 0);
}

static void in_namespace(struct kube_recorder *rec, const char *ns, int n)
{
    struct kube_recorder_object o = job;
    char name[16];

    o.ns = ns;
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "job-%d", i);
        o.name = o.uid = name;
        kube_recorder_event(rec, &o, false, "Paused", "x");
    }
}

/* Two namespaces from which no answer comes: neither their silence nor their number costs a third one an Event. */
static void test_other_namespaces_do_not_wait(void **ctx)
{
    struct rig *r = *ctx;
    cleanup_kube_recorder struct kube_recorder *rec = kube_recorder_new(r->loop, &r->api, "operator");

    fake_plan_fault(r->server, &(struct fake_fault_plan){.path_part = "/slow-", .fault = FAKE_HANG_BEFORE});
    in_namespace(rec, "slow-1", 300);
    in_namespace(rec, "slow-2", 300);
    assert_int_equal(kube_recorder_stats(rec).dropped, 300 - 256 + 300 - 128);
    in_namespace(rec, "ns", 60);
    until(r, rec, 60, 0);
    assert_int_equal(fake_count(r->server, EVENTS), 60);
    assert_int_equal(fake_faults_done(r->server), 2);
    assert_int_equal(kube_recorder_stats(rec).failed, 0);
    fake_plan_fault(r->server, NULL);
}

static void test_long_messages_are_cut_between_characters(void **ctx)
{
    struct rig *r = *ctx;
    cleanup_kube_recorder struct kube_recorder *rec = kube_recorder_new(r->loop, &r->api, "operator");
    char text[3001];

    for (size_t i = 0; i < 3000; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    text[3000] = '\0';
    kube_recorder_event(rec, &job, false, "Long", "%s", text);
    until(r, rec, 1, 0);
    cleanup_json cJSON *e = fake_nth_json(r->server, EVENTS, 0);
    assert_int_equal(strlen(json_str(e, "message")), 1023);
    assert_memory_equal(json_str(e, "message") + 1017, "\xe2\x82\xac…", 6);
}

struct flush {
    struct kube_recorder *recorder;
    int done;
    uint64_t sent; /* when it was done */
};

static void on_flushed(void *ctx)
{
    struct flush *f = ctx;

    f->done++;
    f->sent = kube_recorder_stats(f->recorder).sent;
}

/* One event waits for its next try in ten seconds, others behind it: nobody has that time at the end. */
static void test_flush_waits_for_no_back_off(void **ctx)
{
    struct rig *r = *ctx;
    cleanup_kube_recorder struct kube_recorder *rec = kube_recorder_new(r->loop, &r->api, "operator");
    struct flush f = {rec, 0, 0};

    fake_plan_fault(r->server, &(struct fake_fault_plan){.request = 1, .fault = FAKE_STATUS, .status = 500});
    kube_recorder_event(rec, &job, false, "First", "x");
    kube_recorder_event(rec, &job, false, "Second", "x");
    RIG_UNTIL(r->loop, fake_faults_done(r->server) > 0);
    int64_t from = kube_loop_now_ms(r->loop);
    kube_recorder_flush(rec, from + 60000, on_flushed, &f);
    RIG_UNTIL(r->loop, f.done > 0);
    assert_int_equal(f.done, 1);
    assert_int_equal(f.sent, 2);
    assert_true(kube_loop_now_ms(r->loop) - from < 10000);
}

static void test_flush_is_bounded(void **ctx)
{
    struct rig *r = *ctx;
    cleanup_kube_recorder struct kube_recorder *rec = kube_recorder_new(r->loop, &r->api, "operator");
    struct flush f = {rec, 0, 0};

    fake_plan_fault(r->server, &(struct fake_fault_plan){.fault = FAKE_HANG_BEFORE});
    kube_recorder_event(rec, &job, false, "First", "x"); /* its request is under way when all is freed */
    kube_recorder_event(rec, &job, false, "Second", "x");
    int64_t until_ms = kube_loop_now_ms(r->loop) + 100;
    kube_recorder_flush(rec, until_ms, on_flushed, &f);
    assert_int_equal(f.done, 0);
    RIG_UNTIL(r->loop, f.done > 0);
    assert_true(kube_loop_now_ms(r->loop) >= until_ms);
    assert_int_equal(f.sent, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(test_one_event),
        T(test_again_counts_up),
        T(test_waiting_ones_are_merged),
        T(test_too_many_are_dropped),
        T(test_refused_is_dropped),
        cmocka_unit_test_setup_teardown(test_a_long_retry_after, rig_setup_fast, rig_teardown),
        cmocka_unit_test_setup_teardown(test_other_namespaces_do_not_wait, rig_setup_fast, rig_teardown),
        T(test_long_messages_are_cut_between_characters),
        T(test_flush_waits_for_no_back_off),
        T(test_flush_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
