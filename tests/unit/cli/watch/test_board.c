/* test_board.c - what is kept of jobs and their events, whatever others wrote into them. */
#include "test.h"

#include "cli/watch/board.h"
#include "common/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct board_job *put(struct board *b, const char *name, const char *uid, const char *status)
{
    char text[2048];
    struct err err;

    snprintf(text, sizeof(text),
             "{\"metadata\":{\"namespace\":\"team\",\"name\":\"%s\",\"uid\":\"%s\"},\"status\":%s}", name,
             uid, status);
    cleanup_json cJSON *object = json_parse(text, strlen(text), &err);
    assert_non_null(object);
    return board_put(b, object);
}

static void put_event(struct board *b, const char *name, const char *uid, const char *time,
                      const char *reason)
{
    char text[1024];
    struct err err;

    snprintf(text, sizeof(text),
             "{\"reason\":\"%s\",\"message\":\"m\",\"lastTimestamp\":\"%s\",\"involvedObject\":{\"kind\":"
             "\"PyTorchTrainingJob\",\"namespace\":\"team\",\"name\":\"%s\",\"uid\":\"%s\"}}",
             reason, time, name, uid);
    cleanup_json cJSON *event = json_parse(text, strlen(text), &err);
    board_event(b, event);
}

static int begin(void **state)
{
    static struct board b;

    board_init(&b);
    *state = &b;
    return 0;
}

static int end(void **state)
{
    board_release(*state);
    return 0;
}

static void put_loss(struct board *b, int second, double loss)
{
    char status[256];

    snprintf(status, sizeof(status),
             "{\"phase\":\"Running\",\"progress\":{\"time\":\"2026-01-01T00:%02d:%02dZ\",\"loss\":%g}}",
             second / 60, second % 60, loss);
    assert_non_null(put(b, "a", "u", status));
}

static void test_losses(void **state)
{
    struct board *b = *state;

    put_loss(b, 1, 5);
    put_loss(b, 1, 5); /* the same observation again */
    put_loss(b, 2, 5); /* another one of the same value */
    const struct board_job *j = board_find(b, "team", "a");
    assert_int_equal(j->n_losses, 2);
    for (int i = 0; i < 100; i++)
        put_loss(b, 3 + i, i);
    assert_int_equal(j->n_losses, BOARD_LOSSES);
    assert_true(j->losses[BOARD_LOSSES - 1] == 99 && j->losses[0] == 100 - BOARD_LOSSES);
    assert_non_null(put(b, "a", "u", "{\"phase\":\"Running\"}"));
    assert_int_equal(board_find(b, "team", "a")->n_losses, BOARD_LOSSES);
    assert_non_null(put(b, "a", "another", "{}"));
    assert_int_equal(board_find(b, "team", "a")->n_losses, 0);
}

static void count(void *ctx, const struct board_job *j)
{
    assert_string_equal(j->name, "gone");
    ++*(int *)ctx;
}

static void test_lists(void **state)
{
    struct board *b = *state;
    size_t n;
    int gone = 0;

    assert_non_null(put(b, "gone", "u", "{}"));
    put_event(b, "unlisted", "u", "2026-01-01T00:00:00Z", "Early");
    put_loss(b, 1, 5);
    board_list_begin(b);
    put_loss(b, 2, 6);
    assert_int_equal(board_list_end(b, count, &gone), 2);
    assert_int_equal(gone, 1);
    assert_null(board_find(b, "team", "gone"));
    assert_int_equal(board_find(b, "team", "a")->n_losses, 2);
    struct board_job **all = board_sorted(b, &n);
    assert_int_equal(n, 1);
    free(all);
}

static void test_events(void **state)
{
    struct board *b = *state;

    put_event(b, "a", "u", "2026-01-01T00:00:02Z", "Before");
    assert_non_null(put(b, "a", "u", "{}"));
    const struct board_job *j = board_find(b, "team", "a");
    assert_string_equal(j->event.text, "Before: m");
    put_event(b, "a", "u", "2026-01-01T00:00:01Z", "Older");
    put_event(b, "a", "other", "2026-01-01T00:00:03Z", "Foreign");
    put_event(b, "a", "u", "no time", "Timeless");
    assert_string_equal(j->event.text, "Before: m");
    put_event(b, "a", "u", "2026-01-01T00:00:02Z", "Same\\u001b[31m");
    assert_string_equal(j->event.text, "Same: m");
}

/* Go's zero time, which some clients write, is none. */
static void test_zero_time(void **state)
{
    struct board *b = *state;
    const struct board_job *j = put(b, "a", "u", "{\"completionTime\":\"0001-01-01T00:00:00Z\"}");

    put_event(b, "a", "u", "0001-01-01T00:00:00Z", "Timeless");
    assert_string_equal(j->event.text, "Timeless: m");
    assert_int_equal(j->completion_ms, 0);
}

/* Events about jobs that do not exist leave room for those that do. */
static void test_many_events(void **state)
{
    struct board *b = *state;
    char name[32];

    for (int i = 0; i < BOARD_JOBS_MAX; i++) {
        snprintf(name, sizeof(name), "none-%d", i);
        put_event(b, name, "u", "2026-01-01T00:00:02Z", "Made");
    }
    assert_non_null(put(b, "a", "u", "{}"));
}

static void test_order(void **state)
{
    static const char *const WANT[] = {"b", "c", "none", "pending", "paused", "failed2", "failed1", "ok"};
    struct board *b = *state;
    size_t n;

    (void)put(b, "ok", "u", "{\"phase\":\"Succeeded\"}");
    (void)put(b, "failed1", "u", "{\"phase\":\"Failed\",\"completionTime\":\"2026-01-01T00:00:00Z\"}");
    (void)put(b, "failed2", "u", "{\"phase\":\"Failed\",\"completionTime\":\"2026-01-02T00:00:00Z\"}");
    (void)put(b, "paused", "u", "{\"phase\":\"Paused\"}");
    (void)put(b, "pending", "u", "{\"phase\":\"Pending\"}");
    (void)put(b, "none", "u", "{}");
    (void)put(b, "c", "u", "{\"phase\":\"Running\"}");
    (void)put(b, "b", "u", "{\"phase\":\"Running\"}");
    struct board_job **all = board_sorted(b, &n);
    assert_int_equal(n, ARRAY_LEN(WANT));
    for (size_t i = 0; i < n; i++)
        assert_string_equal(all[i]->name, WANT[i]);
    free(all);
}

static void test_strange(void **state)
{
    struct board *b = *state;
    char long_reason[1200];
    struct err err;

    cleanup_json cJSON *nameless = json_parse("{\"metadata\":{}}", 15, &err);
    assert_null(board_put(b, nameless));
    assert_null(board_put(b, NULL));
    board_event(b, nameless);
    board_remove(b, NULL, NULL);
    const struct board_job *j =
        put(b, "a", "u", "{\"restarts\":-5,\"ready\":7,\"lastFailure\":{\"exitCode\":4711,\"rank\":\"x\"}}");
    assert_int_equal(j->restarts, 0);
    assert_int_equal(j->exit_code, -1);
    assert_string_equal(j->ready, "");
    snprintf(long_reason, sizeof(long_reason),
             "{\"reason\":\"%01000d\",\"ready\":\"\\u001b[2J9999999999999999999\"}", 0);
    j = put(b, "a", "u", long_reason);
    assert_int_equal(strlen(j->reason), BOARD_REASON_BYTES - 1);
    assert_string_equal(j->ready, "999999999999999");
    j = put(b, "a", "u", "{\"lastFailure\":{\"pod\":\"a-0\",\"exitCode\":137}}");
    assert_string_equal(j->failure, "a-0: exit code 137");
    j = put(b, "a", "u", "{\"lastFailure\":{\"rank\":2,\"reason\":\"OOMKilled\"}}");
    assert_string_equal(j->failure, "rank 2: OOMKilled");
    j = put(
        b, "a", "u",
        "{\"lastFailure\":{\"rank\":2,\"reason\":\"OOMKilled\",\"message\":\"step 1\\nallocated 20 MiB\"}}");
    assert_string_equal(j->failure, "rank 2: OOMKilled: allocated 20 MiB");
    j = put(b, "a", "u",
            "{\"lastFailure\":{\"rank\":1,\"reason\":\"PermanentExitCode\",\"exitCode\":1,\"message\":"
            "\"Traceback (most recent "
            "call last):\\n  File \\\"a.py\\\", line 2, in f\\nValueError: shapes\\nmore\"}}");
    assert_string_equal(j->failure, "rank 1: ValueError: shapes");
    j = put(b, "a", "u",
            "{\"lastFailure\":{\"rank\":0,\"reason\":\"NoProgress\",\"exitCode\":138,\"message\":"
            "\"no progress for 30 s: rank 0 is in train.py:14 step()\"}}");
    assert_string_equal(j->failure, "no progress for 30 s: rank 0 is in train.py:14 step()");
    j = put(b, "a", "u",
            "{\"lastFailure\":{\"rank\":2,\"reason\":\"NoProgress\",\"exitCode\":138,\"message\":"
            "\"no progress for 30 s: all ranks wait in all_reduce 3: a connection between them is lost?\"}}");
    assert_string_equal(j->failure,
                        "rank 2: no progress for 30 s: all ranks wait in all_reduce 3: a connection "
                        "between them is lost?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_losses, begin, end),
        cmocka_unit_test_setup_teardown(test_lists, begin, end),
        cmocka_unit_test_setup_teardown(test_events, begin, end),
        cmocka_unit_test_setup_teardown(test_zero_time, begin, end),
        cmocka_unit_test_setup_teardown(test_many_events, begin, end),
        cmocka_unit_test_setup_teardown(test_order, begin, end),
        cmocka_unit_test_setup_teardown(test_strange, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
