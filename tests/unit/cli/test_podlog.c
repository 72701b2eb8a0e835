/* test_podlog.c - how long a container's log is waited for. */
#include "test.h"

#include "cli/podlog.h"

#include "common/memory.h"

#include <stdlib.h>

/* A transport that keeps the request and answers with "text". */
struct asked {
    struct kube_loop *loop;
    struct kube_http_request request;
    struct kube_http_handler handler;
    struct kube_loop_task answering;
};

static void answer(void *ctx)
{
    struct asked *a = ctx;
    const struct kube_http_response r = {.status = 200, .retry_after_ms = -1, .body = sv_from("text")};

    a->handler.done(a->handler.ctx, &r, NULL);
}

static struct kube_transfer *start(void *ctx, const struct kube_http_request *request,
                                   const struct kube_http_handler *handler, struct err *err)
{
    struct asked *a = ctx;

    (void)err;
    a->request = *request;
    a->handler = *handler;
    a->answering = (struct kube_loop_task){.run = answer, .ctx = a};
    kube_loop_task_add(a->loop, &a->answering);
    return (struct kube_transfer *)(void *)a;
}

/* A server that sends a byte now and then for ever does not keep `why` waiting. */
static void test_read_has_an_end(void **state)
{
    const struct podlog log = {.pod = "p", .container = "c", .tail = 80, .limit = 1000};
    cleanup_buf struct buf text = BUF_INIT(1000);
    struct asked asked = {0};
    struct session s = {.ns = "team", .api = {.start = start, .ctx = &asked}};
    struct err err;

    (void)state;
    s.loop = asked.loop = kube_loop_new(clock_system(), &err);
    assert_non_null(s.loop);
    assert_int_equal(podlog_read(&s, &log, &text, &err), 0);
    assert_string_equal(buf_str(&text), "text");
    assert_in_range(asked.request.timeout_ms, 1, KUBE_TRANSPORT_TIMEOUT_MS);
    assert_in_range(asked.request.idle_timeout_ms, 1, KUBE_TRANSPORT_TIMEOUT_MS);
    kube_loop_free(s.loop);
}

/* What a person reads slowly takes its time; a follow may be silent for hours. */
static void test_requests_of_logs(void **state)
{
    const struct session s = {.ns = "team"};
    struct podlog log = {.pod = "p", .container = "c", .tail = -1, .times = true};
    cleanup_arena struct arena a = {0};
    struct kube_http_request r;
    struct err err;

    (void)state;
    assert_int_equal(podlog_request(&s, &log, &a, &r, &err), 0);
    assert_int_equal(r.timeout_ms, 0);
    assert_true(r.idle_timeout_ms > 0);
    log.follow = true;
    assert_int_equal(podlog_request(&s, &log, &a, &r, &err), 0);
    assert_int_equal(r.timeout_ms, 0);
    assert_int_equal(r.idle_timeout_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read_has_an_end),
                                       cmocka_unit_test(test_requests_of_logs)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
