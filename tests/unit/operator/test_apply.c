/* test_apply.c - what is begun when, over a transport that answers when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/loop.h"
#include "operator/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 64, PODS = 20 };

/* The n-th request ever made is calls[n]. */
struct http_call {
    struct http_handler handler;
    char method[8];
    char path[160];
    bool open;
};

struct bench {
    struct http_call calls[CALLS_MAX];
    int n, cancelled;
    struct loop *loop;
    struct transport transport;
    struct recorder *recorder;
    struct arena arena;
    struct action actions[PODS + 4];
    struct plan plan;
    struct apply *apply;
    struct apply_result result;
    int n_done;
};

static struct http_call *start(void *ctx, const struct http_request *req, const struct http_handler *handler,
                               struct err *err)
{
    struct bench *b = ctx;

    (void)err;
    assert_in_range(b->n, 0, CALLS_MAX - 1);
    struct http_call *c = &b->calls[b->n++];
    *c = (struct http_call){.handler = *handler, .open = true};
    snprintf(c->method, sizeof(c->method), "%s", req->method);
    snprintf(c->path, sizeof(c->path), "%s", req->path);
    return c;
}

static void cancel(void *ctx, struct http_call *call)
{
    struct bench *b = ctx;

    assert_true(call->open);
    call->open = false;
    b->cancelled++;
}

static void on_done(void *ctx, const struct apply_result *r)
{
    struct bench *b = ctx;

    b->n_done++;
    b->result = *r;
    b->apply = NULL;
}

static int open_calls(const struct bench *b)
{
    int n = 0;

    for (int i = 0; i < b->n; i++)
        n += b->calls[i].open;
    return n;
}

static int count(const struct bench *b, const char *path_part)
{
    int n = 0;

    for (int i = 0; i < b->n; i++)
        n += strstr(b->calls[i].path, path_part) != NULL;
    return n;
}

static void answer(struct bench *b, int i, int status, const char *body)
{
    struct http_response r = {.status = status, .retry_after_ms = -1, .body = sv_from(body)};

    assert_true(i < b->n && b->calls[i].open);
    b->calls[i].open = false;
    b->calls[i].handler.done(b->calls[i].handler.ctx, &r, NULL);
}

static void created(struct bench *b, int i)
{
    char body[64];

    snprintf(body, sizeof(body), "{\"metadata\":{\"uid\":\"uid-%d\"}}", i);
    answer(b, i, 201, body);
}

static void add(struct bench *b, enum action_kind kind, enum child_kind child, const char *name)
{
    struct action *act = &b->actions[b->plan.n_actions++];

    *act = (struct action){.kind = kind, .child = child, .name = name, .body = "{}"};
    act->reason = act->message = name;
}

/* A Service, then the pods, then the event that tells of them. */
static void begin(struct bench *b, int pods)
{
    struct err err;
    static const struct apply_target target = {"ns", "job", "job-uid"};

    *b = (struct bench){.transport = {start, cancel, b}};
    b->loop = loop_new(clock_system(), &err);
    assert_non_null(b->loop);
    b->recorder = recorder_new(b->loop, &b->transport, "test", NULL);
    b->plan.actions = b->actions;
    add(b, ACTION_CREATE, CHILD_SERVICE, "service");
    for (int i = 0; i < pods; i++)
        add(b, ACTION_CREATE, CHILD_POD, "pod");
    add(b, ACTION_EVENT, CHILD_JOB, "ReplicaCreated");
    b->apply = apply_new(&b->transport, b->recorder, &target, &b->plan, &b->arena, on_done, b);
    apply_run(b->apply);
}

static void end(struct bench *b)
{
    apply_cancel(b->apply);
    recorder_free(b->recorder);
    loop_free(b->loop);
    arena_release(&b->arena);
}

static void test_pods_beside_each_other(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, PODS);
    assert_int_equal(open_calls(&b), 1); /* the Service, alone */
    created(&b, 0);
    assert_int_equal(open_calls(&b), 1); /* the first pod, alone */
    created(&b, 1);
    assert_int_equal(open_calls(&b), 2);
    created(&b, 3); /* in any order */
    assert_int_equal(open_calls(&b), 3);
    for (int i = 4; i < 12; i++)
        created(&b, i);
    assert_int_equal(open_calls(&b), 8); /* and no more */
    created(&b, 2);
    for (int i = 12; i < PODS; i++)
        created(&b, i);
    assert_int_equal(count(&b, "/pods"), PODS);
    assert_int_equal(count(&b, "/events"), 0); /* one pod is still under way */
    assert_int_equal(b.n_done, 0);
    created(&b, PODS);
    assert_int_equal(count(&b, "/events"), 1);
    assert_int_equal(b.n_done, 1);
    assert_true(b.result.ok);
    assert_int_equal(b.result.pods_created, PODS);
    assert_int_equal(b.result.n_expected, PODS + 1);
    end(&b);
}

static void test_a_failure_begins_nothing_more(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, PODS);
    for (int i = 0; i < 4; i++)
        created(&b, i);
    assert_int_equal(open_calls(&b), 4);
    int before = b.n;
    answer(&b, 5, 503, "{}");
    answer(&b, 7, 500, "{}");
    created(&b, 4); /* what went well counts, and is awaited in the cache */
    assert_int_equal(b.n, before);
    assert_int_equal(b.n_done, 0);
    created(&b, 6);
    assert_int_equal(b.n_done, 1);
    assert_false(b.result.ok);
    assert_non_null(strstr(b.result.err.msg, "503")); /* the first one */
    assert_int_equal(b.result.pods_created, 5);
    assert_int_equal(b.result.n_expected, 6);
    assert_int_equal(count(&b, "/events"), 0);
    end(&b);
}

/* A quota that is used up answers once, not eight times. */
static void test_a_spent_quota_is_asked_once(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, PODS);
    created(&b, 0);
    answer(&b, 1, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"exceeded quota\"}");
    assert_int_equal(b.n, 2);
    assert_int_equal(b.n_done, 1);
    assert_int_equal(b.result.problem.kind, PROBLEM_REFUSED);
    end(&b);
}

/* Each looks at what has its name by itself, while the others go on. */
static void test_a_taken_name_beside_others(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, 3);
    created(&b, 0);
    created(&b, 1);
    assert_int_equal(open_calls(&b), 2);
    answer(&b, 2, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"exists\"}");
    assert_int_equal(b.n, 5);
    assert_string_equal(b.calls[4].method, "GET");
    created(&b, 3);
    assert_int_equal(b.n_done, 0);
    answer(&b, 4, 200, "{\"metadata\":{\"uid\":\"other\"}}");
    assert_int_equal(b.n_done, 1);
    assert_int_equal(b.result.problem.kind, PROBLEM_NAME_CONFLICT);
    assert_int_equal(b.result.pods_created, 2);
    end(&b);
}

static void test_cancel(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, PODS);
    for (int i = 0; i < 5; i++)
        created(&b, i);
    int under_way = open_calls(&b);
    assert_in_range(under_way, 2, 8);
    apply_cancel(TAKE(b.apply));
    assert_int_equal(b.cancelled, under_way);
    assert_int_equal(b.n_done, 0);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_beside_each_other),
        cmocka_unit_test(test_a_failure_begins_nothing_more),
        cmocka_unit_test(test_a_spent_quota_is_asked_once),
        cmocka_unit_test(test_a_taken_name_beside_others),
        cmocka_unit_test(test_cancel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
