/* actionbench.c - the transport of that bench, and what is done on it. */
#include "actionbench.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

struct bench B;

static struct kube_transfer *start(void *ctx, const struct kube_http_request *req,
                                   const struct kube_http_handler *handler, struct err *err)
{
    (void)ctx, (void)err;
    assert_in_range(B.n, 0, BENCH_CALLS_MAX - 1);
    struct kube_transfer *c = &B.calls[B.n++];
    *c = (struct kube_transfer){.handler = *handler, .open = true, .later = req->later};
    snprintf(c->ns, sizeof(c->ns), "%s", req->ns);
    snprintf(c->method, sizeof(c->method), "%s", req->method);
    snprintf(c->path, sizeof(c->path), "%s", req->path);
    snprintf(c->body, sizeof(c->body), "%.*s", (int)req->body.len, req->body.p ? req->body.p : "");
    return c;
}

static void cancel(void *ctx, struct kube_transfer *call)
{
    (void)ctx;
    assert_true(call->open);
    call->open = false;
    B.cancelled++;
}

static void on_done(void *ctx, const struct actions_result *r)
{
    (void)ctx;
    B.n_done++;
    B.result = *r;
    B.run = NULL;
}

int bench_n_open(void)
{
    int n = 0;

    for (int i = 0; i < B.n; i++)
        n += B.calls[i].open;
    return n;
}

int bench_count(const char *path_part)
{
    int n = 0;

    for (int i = 0; i < B.n; i++)
        n += strstr(B.calls[i].path, path_part) != NULL;
    return n;
}

void bench_answer(int i, int status, const char *body)
{
    struct kube_http_response r = {.status = status, .retry_after_ms = -1, .body = sv_from(body)};

    assert_true(i < B.n && B.calls[i].open);
    B.calls[i].open = false;
    B.calls[i].handler.done(B.calls[i].handler.ctx, &r, NULL);
}

void bench_created(int i)
{
    char body[64];

    snprintf(body, sizeof(body), "{\"metadata\":{\"resourceVersion\":\"%d\"}}", 100 + i);
    bench_answer(i, 201, body);
}

void bench_add(enum action_kind kind, enum child_kind child, const char *name)
{
    struct action *act = &B.actions[B.plan.n_actions++];

    *act = (struct action){.kind = kind, .child = child, .name = name, .body = "{}"};
    act->reason = act->message = name;
}

int bench_end(void **state)
{
    (void)state;
    actions_cancel(B.run);
    kube_recorder_free(B.recorder);
    kube_loop_free(B.loop);
    arena_release(&B.arena);
    return 0;
}

void bench_fresh(void)
{
    struct err err;

    if (B.loop)
        (void)bench_end(NULL);
    B = (struct bench){.transport = {.start = start, .cancel = cancel, .ctx = &B}};
    B.loop = kube_loop_new(clock_system(), &err);
    assert_non_null(B.loop);
    B.recorder = kube_recorder_new(B.loop, &B.transport, "test");
    B.plan.actions = B.actions;
}

void bench_run(bool (*may_go_on)(void *ctx))
{
    const struct actions_target target = {.ns = "ns",
                                          .job = "job",
                                          .uid = "job-uid",
                                          .may_go_on = may_go_on,
                                          .native_version = &B.native_version};

    B.run = actions_new(&B.transport, B.recorder, &target, &B.plan, &B.arena, on_done, &B);
    actions_run(B.run);
}

void bench_prepare(int pods)
{
    bench_fresh();
    bench_add(ACTION_CREATE, CHILD_SERVICE, "service");
    for (int i = 0; i < pods; i++)
        bench_add(ACTION_CREATE, CHILD_POD, "pod");
    bench_add(ACTION_EVENT, CHILD_JOB, "ReplicaCreated");
}

void bench_begin(int pods)
{
    bench_prepare(pods);
    bench_run(NULL);
}
