/* test_memory_apply.c - out of memory at each allocation in turn while a plan is carried out over HTTP, in our own code, in
 * cJSON and in libcurl: the process ends as common/arena.h promises, or the pass fails, or nothing is noticed. Nothing is
 * lost by it, nothing is left half done or done twice: after the next passes the cluster is as if it had not been. What is
 * not ended by it leaks nothing.
 *
 * In the short form every STRIDE-th allocation; all of them with FAULTS=full.
 *
 * usage: test_memory_apply [test]
 */
#include "failing.h"
#include "faults.h"
#include "lab.h"
#include "operator/actions.h"
#include "operator/plan/plan.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STRIDE = 3,
    FEWEST_ALLOCATIONS = 300,
    PASSES_MAX = 8,
    PODS_MAX = 8,
    FLUSH_MS = 5000,
    TEXT_BYTES = 1024
};

static const char JOB[] =
    "{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
    "','metadata':{'name':'j','namespace':'ns'},'spec':{'replicaSpecs':[{'type':'node','replicas':2,'"
    "restartPolicy':'OnFailure','template':{'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}]}}";

/* What a pass goes by, and what it decided. */
struct pass {
    struct fake_apiserver *server;
    struct arena arena;
    struct trainjob *job;
    struct pod *pods[PODS_MAX];
    struct child *service;
    struct plan_input in;
    struct plan plan;
};

static void look(struct pass *p)
{
    struct err err;

    p->job = trainjob_decode(fake_json(p->server, LAB_JOB), &err);
    assert_non_null(p->job);
    p->in = (struct plan_input){.job = p->job,
                                .pods = (const struct pod *const *)p->pods,
                                .n_pods = fake_count(p->server, LAB_PODS),
                                .now_ms = INT64_C(1795219200000),
                                .tensorboard_image = "tb",
                                .launcher_image = "launcher"};
    assert_in_range(p->in.n_pods, 0, PODS_MAX);
    for (int i = 0; i < p->in.n_pods; i++) {
        cleanup_json cJSON *object = fake_nth_json(p->server, LAB_PODS, i);
        p->pods[i] = pod_decode(object, NULL, &err);
        assert_non_null(p->pods[i]);
    }
    cleanup_json cJSON *service = fake_nth_json(p->server, LAB_SERVICES, 0);
    p->service = service ? child_decode(service, NULL, &err) : NULL;
    p->in.service = p->service;
    plan_trainjob(&p->in, &p->arena, &p->plan);
}

static void forget(struct pass *p)
{
    for (int i = 0; i < p->in.n_pods; i++)
        free(p->pods[i]);
    free(p->service);
    trainjob_free(p->job);
    arena_release(&p->arena);
    *p = (struct pass){.server = p->server};
}

/* ---- in the child ---- */

struct run {
    bool done, ok, flushed;
};

static void on_done(void *ctx, const struct actions_result *r)
{
    struct run *run = ctx;

    run->done = true;
    run->ok = r->ok;
}

static void on_flushed(void *ctx)
{
    ((struct run *)ctx)->flushed = true;
}

/* False: the loop does not turn any more, and the operator would end. */
static bool turn_until(struct kube_loop *loop, const bool *done)
{
    struct err err;

    while (!*done)
        if (kube_loop_turn(loop, 1000, &err) < 0)
            return false;
    return true;
}

/* The pass over HTTP, its events too. 1: it went well. */
static int64_t carry_out(void *ctx)
{
    struct pass *p = ctx;
    struct kube_config config = {.server = strdup(fake_apiserver_url(p->server)),
                                 .namespace_name = strdup("ns")};
    const struct actions_target target = {.ns = "ns", .job = p->job->name, .uid = p->job->uid};
    struct arena arena = {0};
    struct run run = {0};
    struct err err;

    config.token.bytes = (struct buf)BUF_INIT(16);
    assert_int_equal(buf_puts(&config.token.bytes, "token", &err), 0);
    struct kube_loop *loop = kube_loop_new(clock_system(), &err);
    assert_non_null(loop);
    struct http *http = http_new(loop, &config, "test", &err);
    assert_non_null(http);
    struct kube_transport t = http_transport(http);
    struct kube_recorder *recorder = kube_recorder_new(loop, &t, "test");
    failing_begin();
    struct actions *apply = actions_new(&t, recorder, &target, &p->plan, &arena, on_done, &run);
    actions_run(apply);
    if (turn_until(loop, &run.done)) {
        kube_recorder_flush(recorder, kube_loop_now_ms(loop) + FLUSH_MS, on_flushed, &run);
        (void)turn_until(loop, &run.flushed);
    } else {
        actions_cancel(apply);
    }
    kube_recorder_free(recorder);
    http_free(http);
    kube_loop_free(loop);
    kube_config_release(&config);
    arena_release(&arena);
    return run.ok;
}

/* ---- in the parent ---- */

/* Passes until there is nothing to do, in this process: most of a child's time goes into pages that it copies. */
static void converge(struct fake_apiserver *server)
{
    struct pass p = {.server = server};
    int passes = 0;

    for (look(&p); p.plan.n_actions; look(&p)) {
        assert_true(++passes < PASSES_MAX);
        (void)carry_out(&p);
        forget(&p);
    }
    forget(&p);
}

static struct fake_apiserver *begin(void (*prepare)(struct fake_apiserver *server))
{
    struct fake_apiserver *server = fake_apiserver_start();

    fake_add_kind(server, "/apis/" TRAINJOB_GROUP "/" TRAINJOB_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND);
    assert_true(fake_put(server, LAB_JOB, JOB));
    prepare(server);
    return server;
}

/* How many children there are and ever were, and the status. */
static void ending(struct fake_apiserver *server, char *text)
{
    struct lab lab = {.server = server};

    lab_ending(&lab, true, text, TEXT_BYTES);
}

/* One pass whose n-th allocation fails, then others. */
static void try_without(long n, void (*prepare)(struct fake_apiserver *server), struct failing_end *end,
                        char *text)
{
    struct fake_apiserver *server = begin(prepare);
    struct pass p = {.server = server};

    look(&p);
    assert_true(p.plan.n_actions > 0);
    failing_try(n, carry_out, &p, end);
    forget(&p);
    fake_settle(server); /* what it had sent when it ended */
    converge(server);
    ending(server, text);
    fake_apiserver_stop(server);
}

static void sweep(const char *name, void (*prepare)(struct fake_apiserver *server))
{
    const int stride = faults_in_full() ? 1 : STRIDE;
    char want[TEXT_BYTES], text[TEXT_BYTES];
    struct failing_end untroubled, end = {.struck = true};
    long n = 0, exhausted = 0, failed = 0;

    try_without(0, prepare, &untroubled, want);
    assert_int_equal(untroubled.value, 1);
    for (n = 1; end.struck; n += stride) {
        try_without(n, prepare, &end, text);
        exhausted += end.exhausted;
        failed += !end.exhausted && !end.value;
        if (strcmp(text, want) != 0)
            fail_msg("%s, without allocation %ld: %s, expected %s", name, n, text, want);
        if (!end.exhausted && end.kept > untroubled.kept)
            fail_msg("%s, without allocation %ld: %lld blocks are left, expected at most %lld", name, n,
                     (long long)end.kept, (long long)untroubled.kept);
    }
    print_message(
        "%s: of about %ld allocations; without one: %ld ended the process, %ld the pass; each time: %s\n",
        name, n - stride - 1, exhausted, failed, want);
    assert_true(n > FEWEST_ALLOCATIONS && exhausted > 0 && failed > 0);
}

static void fresh(struct fake_apiserver *server)
{
    (void)server;
}

/* One of its pods was killed: the gang goes, and comes again. */
static void killed(struct fake_apiserver *server)
{
    converge(server);
    assert_true(fake_put(server, LAB_PODS "/j-node-1",
                         "{'status':{'phase':'Failed','containerStatuses':[{'name':'pytorch','state':{'"
                         "terminated':{'exitCode':137,'reason':'Error'}}}]}}"));
}

static void test_children_are_created(void **state)
{
    (void)state;
    sweep("fresh", fresh);
}

static void test_a_gang_restarts(void **state)
{
    (void)state;
    sweep("killed", killed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_are_created),
        cmocka_unit_test(test_a_gang_restarts),
    };
    const int skip = failing_skip();

    json_memory_must();
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return skip ? skip : cmocka_run_group_tests(tests, NULL, NULL);
}
