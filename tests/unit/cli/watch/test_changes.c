/* test_changes.c - which changes of a job become a line in a pipe. */
#include "test.h"

#include "cli/watch/changes.h"
#include "common/json.h"

#include <stdio.h>
#include <string.h>

struct teller {
    struct board board;
    struct buf lines;
    int second;
};

static int begin(void **state)
{
    static struct teller t;

    t = (struct teller){.lines = BUF_INIT(1 << 16)};
    board_init(&t.board);
    *state = &t;
    return 0;
}

static int end(void **state)
{
    struct teller *t = *state;

    board_release(&t->board);
    buf_release(&t->lines);
    return 0;
}

/* The line about the job "a" with this status, ten seconds after the one before. "": none. */
static void expect(struct teller *t, const char *want, const char *status)
{
    char text[2048], line[600];
    struct err err;

    snprintf(text, sizeof(text),
             "{\"metadata\":{\"namespace\":\"team\",\"name\":\"a\",\"uid\":\"u\",\"creationTimestamp\":"
             "\"2026-01-01T00:00:00Z\"},\"status\":%s}",
             status);
    cleanup_json cJSON *object = json_parse(text, strlen(text), &err);
    assert_non_null(object);
    struct board_job *j = board_put(&t->board, object);
    assert_non_null(j);
    buf_clear(&t->lines);
    changes_of(j, false, INT64_C(1767225600000) + t->second * INT64_C(1000), &t->lines);
    snprintf(line, sizeof(line), "2026-01-01T00:%02d:%02dZ a: %s\n", t->second / 60, t->second % 60, want);
    assert_string_equal(buf_str(&t->lines), want[0] ? line : "");
    t->second += 10;
}

static void expect_percent(struct teller *t, const char *want, int percent)
{
    char status[512];

    snprintf(status, sizeof(status),
             "{\"phase\":\"Running\",\"ready\":\"2/2\",\"progress\":{\"time\":\"2026-01-01T00:%02d:%02dZ\","
             "\"step\":%d,\"totalSteps\":1000,\"percent\":%d,\"etaSeconds\":600,\"loss\":0.25}}",
             t->second / 60, t->second % 60, percent * 10, percent);
    expect(t, want, status);
}

static void test_life(void **state)
{
    struct teller *t = *state;

    expect(t, "no status yet", "{}");
    expect(t, "", "{}");
    expect(t, "Pending (PodsStarting 0/2)", "{\"phase\":\"Pending\",\"reason\":\"PodsStarting 0/2\"}");
    expect(t, "", "{\"phase\":\"Pending\",\"reason\":\"PodsStarting 1/2\"}");
    expect(t, "Pending (ImagePullBackOff: a-0)",
           "{\"phase\":\"Pending\",\"reason\":\"ImagePullBackOff: a-0\"}");
    expect(t, "Running, 2/2 pods", "{\"phase\":\"Running\",\"ready\":\"2/2\"}");
    expect_percent(t, "Running, 2/2 pods, 1%, step 10/1000, 10m left, loss 0.25", 1);
    expect_percent(t, "", 2);
    expect_percent(t, "", 9);
    expect_percent(t, "Running, 2/2 pods, 10%, step 100/1000, 10m left, loss 0.25", 10);
    expect_percent(t, "", 19);
    expect_percent(t, "Running, 2/2 pods, 38%, step 380/1000, 10m left, loss 0.25", 38);
    expect(t, "Running, 2/2 pods, restarts 1; rank 3: exit code 1: boom",
           "{\"phase\":\"Running\",\"ready\":\"2/2\",\"restarts\":1,\"lastFailure\":{\"rank\":3,\"message\":"
           "\"exit code 1: boom\"}}");
    expect(t, "Failed (BackoffLimitExceeded), restarts 1, after 3m; rank 3: exit code 1: boom",
           "{\"phase\":\"Failed\",\"restarts\":1,\"reason\":\"BackoffLimitExceeded\",\"completionTime\":"
           "\"2026-01-01T00:03:05Z\",\"lastFailure\":{\"rank\":3,\"message\":\"exit code 1: boom\"}}");
}

/* Slow progress is a line once a minute; progress that falls back, as after a restart, is a line at once. */
static void test_slow_progress(void **state)
{
    struct teller *t = *state;

    expect_percent(t, "Running, 2/2 pods, 50%, step 500/1000, 10m left, loss 0.25", 50);
    for (int i = 0; i < 5; i++)
        expect_percent(t, "", 51);
    expect_percent(t, "Running, 2/2 pods, 51%, step 510/1000, 10m left, loss 0.25", 51);
    expect_percent(t, "Running, 2/2 pods, 40%, step 400/1000, 10m left, loss 0.25", 40);
    expect(t, "Succeeded", "{\"phase\":\"Succeeded\"}");
}

static void test_deleted(void **state)
{
    struct teller *t = *state;

    expect(t, "no status yet", "{}");
    buf_clear(&t->lines);
    changes_deleted(board_find(&t->board, "team", "a"), true, 0, &t->lines);
    assert_string_equal(buf_str(&t->lines), "1970-01-01T00:00:00Z team/a: deleted\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_life, begin, end),
        cmocka_unit_test_setup_teardown(test_slow_progress, begin, end),
        cmocka_unit_test_setup_teardown(test_deleted, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
