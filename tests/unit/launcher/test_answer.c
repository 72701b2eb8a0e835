/* test_answer.c - the two texts that report a training's progress, and the replies that contain them. */
#include "launcher/progress/answer.h"

#include "common/cleanup.h"
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct answer nothing(void)
{
    struct answer a = {.straggler_rank = -1, .straggler_ratio = NAN};

    progress_init(&a.progress);
    return a;
}

static struct answer much(void)
{
    return (struct answer){.job_uid = "1f0c9a8e-a1b2c3d4e5-f6A",
                           .attempt = 2,
                           .restarts = 3,
                           .progress = {.now = {.step = 1200,
                                                .total_steps = 5000,
                                                .epoch = 1,
                                                .total_epochs = 3,
                                                .percent = 24,
                                                .loss = 0.531,
                                                .samples_per_second = 812.5},
                                        .eta_ms = 532999,
                                        .wall_ms = INT64_C(1795514400000)},
                           .straggler_rank = 3,
                           .straggler_ratio = 1.42};
}

/* The longest text of each field. */
static struct answer longest(void)
{
    struct answer a = much();

    memset(a.job_uid, 'x', sizeof(a.job_uid) - 1);
    a.attempt = a.restarts = a.straggler_rank = INT64_MAX;
    a.straggler_ratio = -DBL_MIN / 3;
    a.progress = (struct progress){.now = {.step = PROGRESS_COUNT_MAX,
                                           .total_steps = PROGRESS_COUNT_MAX,
                                           .epoch = PROGRESS_COUNT_MAX,
                                           .total_epochs = PROGRESS_COUNT_MAX,
                                           .percent = 100.0 / 3,
                                           .loss = -DBL_MAX / 3,
                                           .samples_per_second = DBL_MAX},
                                   .eta_ms = INT64_MAX,
                                   .wall_ms = INT64_C(253402300799999)};
    return a;
}

static void test_progress(void **state)
{
    const struct {
        struct answer answer;
        const char *want;
    } rows[] = {
        {nothing(), "{\"job\": \"\", \"attempt\": 0, \"restarts\": 0, \"time\": \"\"}\n"},
        {much(),
         "{\"job\": \"b2c3d4e5-f6A\", \"attempt\": 2, \"restarts\": 3, \"time\": \"2026-11-24T10:00:00Z\", "
         "\"step\": 1200, \"totalSteps\": 5000, \"epoch\": 1, \"totalEpochs\": 3, \"percent\": 24, "
         "\"etaSeconds\": 532, \"loss\": 0.531, \"samplesPerSecond\": 812.5, "
         "\"straggler\": {\"rank\": 3, \"ratio\": 1.42}}\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf out = BUF_INIT(ANSWER_BYTES);
        answer_progress(&rows[i].answer, &out);
        assert_string_equal(buf_str(&out), rows[i].want);
    }
}

static void test_metrics(void **state)
{
    const struct answer none = nothing(), all = much();
    cleanup_buf struct buf out = BUF_INIT(ANSWER_BYTES);

    (void)state;
    answer_metrics(&none, &out);
    assert_string_equal(
        buf_str(&out), "# HELP torchkeeper_training_restarts_total Restarts of the ranks by their launcher.\n"
                       "# TYPE torchkeeper_training_restarts_total counter\n"
                       "torchkeeper_training_restarts_total 0\n"
                       "# HELP torchkeeper_training_attempt Number of the job's attempt.\n"
                       "# TYPE torchkeeper_training_attempt gauge\n"
                       "torchkeeper_training_attempt 0\n");
    buf_clear(&out);
    answer_metrics(&all, &out);
    static const char *const lines[] = {
        "step 1200",
        "total_steps 5000",
        "epoch 1",
        "total_epochs 3",
        "eta_seconds 532",
        "loss 0.531",
        "restarts_total 3",
        "samples_per_second 812.5",
        "attempt 2",
        "progress_ratio 0.24",
        "straggler_ratio{rank=\"3\"} 1.42",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        char line[80];
        snprintf(line, sizeof(line), "\ntorchkeeper_training_%s\n", lines[i]);
        if (!strstr(buf_str(&out), line))
            fail_msg("no line \"%s\" in:\n%s", lines[i], buf_str(&out));
    }
}

/* A number that no JSON has is absent, wherever it came from. */
static void test_no_number(void **state)
{
    const double none[] = {NAN, INFINITY, -INFINITY};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        struct answer a = much();
        cleanup_buf struct buf out = BUF_INIT(2 * ANSWER_BYTES);
        a.progress.now.percent = a.progress.now.loss = a.progress.now.samples_per_second = a.straggler_ratio =
            none[i];
        answer_progress(&a, &out);
        answer_metrics(&a, &out);
        assert_non_null(strstr(buf_str(&out), "\"step\": 1200"));
        assert_null(strstr(buf_str(&out), "nan"));
        assert_null(strstr(buf_str(&out), "inf"));
        assert_null(strstr(buf_str(&out), "straggler"));
        assert_null(strstr(buf_str(&out), "loss"));
        assert_null(strstr(buf_str(&out), "ratio"));
    }
}

static void test_bounds(void **state)
{
    const struct answer a = longest();
    cleanup_buf struct buf json = BUF_INIT(ANSWER_BYTES), text = BUF_INIT(ANSWER_BYTES);

    (void)state;
    answer_progress(&a, &json);
    assert_string_equal(json.data + json.len - 3, "}}\n");
    assert_non_null(strstr(json.data, "\"step\": 1000000000000000,"));
    assert_non_null(strstr(json.data, "\"percent\": 33.3333,"));
    answer_metrics(&a, &text);
    assert_non_null(strstr(text.data, "straggler_ratio{rank=\"9223372036854775807\"} -7.41"));
    assert_int_equal(text.data[text.len - 1], '\n');
    assert_true(text.len < ANSWER_BYTES - 256);
}

/* ---- replies */

static void test_replies(void **state)
{
    static const struct {
        const char *request, *begins, *ends;
    } rows[] = {
        {"GET /progress HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
         "\"ratio\": 1.42}}\n"},
        {"GET /progress?pretty HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "}}\n"},
        {"GET /metrics HTTP/1.1\r\n\r\nGET /none HTTP/1.1\r\n\r\n",
         "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4", "{rank=\"3\"} 1.42\n"},
        {"HEAD /progress HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\nConnection: close\r\n\r\n"},
        {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n", "\r\n404 Not Found\n"},
        {"GET /progress/ HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n", "\n"},
        {"GET /../etc/passwd HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n", "\n"},
        {"HEAD /x HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n", "close\r\n\r\n"},
        {"POST /progress HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 405 Method Not Allowed\r\n",
         "Allow: GET, HEAD\r\nConnection: close\r\n\r\n405 Method Not Allowed\n"},
        {"get /progress HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", "\n"},
        {"\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n", "\r\n400 Bad Request\n"},
        {"GET\r\n\r\n", "HTTP/1.1 400 ", "\n"},
        {"GET /progress\r\n\r\n", "HTTP/1.1 400 ", "\n"},
        {"GET  /progress HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "\n"},
        {"GET /progress SSH-2.0\r\n\r\n", "HTTP/1.1 400 ", "\n"},
        {"GET progress HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "\n"},
        {"\x16\x03\x01\r\n\r\n", "HTTP/1.1 400 ", "\n"},
    };
    const struct answer a = much();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf out = BUF_INIT(REPLY_BYTES);
        const struct sv request = sv_from(rows[i].request);
        assert_true(answer_reply(&a, request, &out));
        const struct sv reply = {out.data, out.len};
        if (!sv_starts(reply, rows[i].begins) || !sv_ends(reply, rows[i].ends))
            fail_msg("%s answered by:\n%s", rows[i].request, out.data);
        /* Without its end no request is complete, wherever it is cut. */
        buf_clear(&out);
        const char *end = strstr(rows[i].request, "\r\n\r\n");
        for (size_t len = 0; len < (size_t)(end - rows[i].request) + 4; len++)
            assert_false(answer_reply(&a, (struct sv){request.p, len}, &out));
        assert_int_equal(out.len, 0);
    }
}

/* Content-Length is the body's, and the longest reply fits. */
static void test_length(void **state)
{
    const struct answer a = longest();

    (void)state;
    for (int i = 0; i < 2; i++) {
        cleanup_buf struct buf out = BUF_INIT(REPLY_BYTES);
        assert_true(answer_reply(
            &a, sv_from(i ? "GET /metrics HTTP/1.1\r\n\r\n" : "GET /progress HTTP/1.1\r\n\r\n"), &out));
        const char *length = strstr(out.data, "\r\nContent-Length: "), *body = strstr(out.data, "\r\n\r\n");
        assert_non_null(length);
        assert_int_equal(atoi(length + strlen("\r\nContent-Length: ")), strlen(body + 4));
        assert_int_equal(out.data[out.len - 1], '\n');
    }
}

static void test_too_long(void **state)
{
    const struct answer a = nothing();
    cleanup_buf struct buf out = BUF_INIT(REPLY_BYTES);
    char bytes[REPLY_REQUEST_BYTES];

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    assert_false(answer_reply(&a, (struct sv){bytes, sizeof(bytes) - 1}, &out));
    assert_true(answer_reply(&a, (struct sv){bytes, sizeof(bytes)}, &out));
    assert_true(
        sv_starts((struct sv){out.data, out.len}, "HTTP/1.1 431 Request Header Fields Too Large\r\n"));
    /* One that ends with the last byte is read. */
    buf_clear(&out);
    memcpy(bytes, "GET /progress HTTP/1.1\r\nX: ", 27);
    memcpy(bytes + sizeof(bytes) - 4, "\r\n\r\n", 4);
    assert_true(answer_reply(&a, (struct sv){bytes, sizeof(bytes)}, &out));
    assert_true(sv_starts((struct sv){out.data, out.len}, "HTTP/1.1 200 OK\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress), cmocka_unit_test(test_metrics), cmocka_unit_test(test_no_number),
        cmocka_unit_test(test_bounds),   cmocka_unit_test(test_replies), cmocka_unit_test(test_length),
        cmocka_unit_test(test_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
