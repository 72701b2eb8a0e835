/* test_elector.c - candidates against the fake API server: two processes' worth of loops, one clock that jumps. */
#include "kube/elector.h"

#include "rig.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE "/apis/coordination.k8s.io/v1/namespaces/ns/leases/op"

struct world {
    struct fake_apiserver *server;
    int64_t offset_ms, asleep_ms, wall_step_ms;
};

/* One process. */
struct node {
    struct kube_config config;
    struct kube_loop *loop;
    struct http *http;
    struct kube_transport api;
    struct elector *elector;
    int won, lost, problems;
    char waits_for[64];
};

static int64_t mono_ms(void *ctx)
{
    return clock_mono_ms() + ((struct world *)ctx)->offset_ms;
}

static int64_t boot_ms(void *ctx)
{
    return mono_ms(ctx) + ((struct world *)ctx)->asleep_ms;
}

static int64_t wall_ms(void *ctx)
{
    struct clock c = clock_system();

    return c.wall_ms(c.ctx) + ((struct world *)ctx)->wall_step_ms;
}

static void on_changed(void *ctx, bool leads)
{
    struct node *n = ctx;

    n->won += leads;
    n->lost += !leads;
}

static void on_waiting(void *ctx, const char *holder)
{
    struct node *n = ctx;

    snprintf(n->waits_for, sizeof(n->waits_for), "%s", holder);
}

static void on_problem(void *ctx, const struct err *err)
{
    (void)err;
    ((struct node *)ctx)->problems++;
}

static void node_start(struct node *n, struct world *w, const char *identity)
{
    struct err err;
    struct lease_options options = {
        .ns = "ns", .name = "op", .identity = identity, .duration_ms = LEASE_DURATION_MS, .seed = 3};
    struct elector_sink sink = {n, on_changed, on_waiting, on_problem};

    *n = (struct node){0};
    rig_config(&n->config, fake_apiserver_url(w->server));
    n->loop = kube_loop_new((struct clock){wall_ms, mono_ms, boot_ms, NULL, w}, &err);
    assert_non_null(n->loop);
    n->http = http_new(n->loop, &n->config, identity, &err);
    assert_non_null(n->http);
    n->api = http_transport(n->http);
    n->elector = elector_new(n->loop, &n->api, &options, &sink);
    elector_start(n->elector);
}

/* As if killed: the lease stays as it is. */
static void node_kill(struct node *n)
{
    elector_free(n->elector);
    http_free(n->http);
    kube_loop_free(n->loop);
    kube_config_release(&n->config);
}

/* As part of a condition that is waited for: meanwhile time passes in steps. */
static bool jumped(struct world *w)
{
    w->offset_ms += 500;
    return true;
}

static int world_setup(void **ctx)
{
    struct world *w = calloc(1, sizeof(*w));

    w->server = fake_apiserver_start();
    *ctx = w;
    return 0;
}

static int world_teardown(void **ctx)
{
    struct world *w = *ctx;

    fake_apiserver_stop(w->server);
    free(w);
    return 0;
}

static void assert_lease(struct world *w, const char *part)
{
    cleanup_free char *text = fake_get(w->server, LEASE);

    assert_non_null(text);
    if (!strstr(text, part))
        fail_msg("expected %s in %s", part, text);
}

static struct kube_request create_pod(void)
{
    return (struct kube_request){.verb = KUBE_CREATE,
                                 .resource = &KUBE_PODS,
                                 .ns = "ns",
                                 .body = sv_from("{\"metadata\":{\"generateName\":\"p-\",\"name\":\"p\"}}")};
}

static void test_takeover_after_a_crash(void **ctx)
{
    struct world *w = *ctx;
    struct node a, b;

    node_start(&a, w, "a");
    RIG_UNTIL(a.loop, elector_is_held(a.elector));
    assert_int_equal(a.won, 1);
    node_start(&b, w, "b");
    RIG_UNTIL(b.loop, b.waits_for[0]);
    assert_string_equal(b.waits_for, "a");
    node_kill(&a);
    w->wall_step_ms = 3600000; /* no one's business */
    RIG_UNTIL(b.loop, jumped(w) && elector_is_held(b.elector));
    assert_lease(w, "\"holderIdentity\":\"b\"");
    assert_lease(w, "\"leaseTransitions\":1");
    node_kill(&b);
}

static void test_a_stopped_leader_writes_nothing_when_it_goes_on(void **ctx)
{
    struct world *w = *ctx;
    struct node a, b;
    struct kube_request create = create_pod();
    struct rig_reply reply = {0};
    struct err err;

    node_start(&a, w, "a");
    RIG_UNTIL(a.loop, elector_is_held(a.elector));
    struct kube_transport fenced = elector_transport(a.elector);
    /* From here on a does not run, but a write of it waits for its turn behind eight that get no answer. */
    fake_plan_fault(w->server, &(struct fake_fault_plan){.method = "GET", .fault = FAKE_HANG_BEFORE});
    struct kube_request get = {.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "ns", .name = "x"};
    struct kube_request_run *hanging[8];
    struct rig_reply ignored[8] = {0};
    for (int i = 0; i < 8; i++)
        hanging[i] = kube_request_start(&fenced, &get, rig_on_reply, &ignored[i], &err);
    assert_non_null(kube_request_start(&fenced, &create, rig_on_reply, &reply, &err));
    fake_plan_fault(w->server, NULL);
    node_start(&b, w, "b");
    RIG_UNTIL(b.loop, jumped(w) && elector_is_held(b.elector));
    /* It continues: its loop has not turned since. */
    assert_false(elector_is_held(a.elector));
    assert_null(kube_request_start(&fenced, &create, rig_on_reply, &reply, &err));
    assert_int_equal(err.kind, ERR_TRANSIENT);
    for (int i = 0; i < 8; i++)
        kube_request_cancel(hanging[i]);
    rig_until(a.loop, rig_is_over, &reply);
    assert_int_equal(reply.err.kind, ERR_TRANSIENT);
    assert_non_null(strstr(reply.err.msg, "does not hold the lease"));
    RIG_UNTIL(a.loop, a.lost > 0);
    RIG_UNTIL(a.loop, a.waits_for[0]);
    assert_string_equal(a.waits_for, "b");
    assert_int_equal(fake_log_count(w->server, "POST", "/pods"), 0);
    assert_lease(w, "\"holderIdentity\":\"b\"");
    node_kill(&a);
    node_kill(&b);
}

/* Its monotonic clock stood still meanwhile. */
static void test_a_suspended_leader_holds_nothing(void **ctx)
{
    struct world *w = *ctx;
    struct node a;
    struct kube_request create = create_pod();
    struct rig_reply reply = {0};
    struct err err;

    node_start(&a, w, "a");
    RIG_UNTIL(a.loop, elector_is_held(a.elector));
    w->asleep_ms += LEASE_RENEW_DEADLINE_MS + 1;
    assert_false(elector_is_held(a.elector));
    struct kube_transport fenced = elector_transport(a.elector);
    assert_null(kube_request_start(&fenced, &create, rig_on_reply, &reply, &err));
    assert_int_equal(err.kind, ERR_TRANSIENT);
    RIG_UNTIL(a.loop, a.lost > 0);
    RIG_UNTIL(a.loop, elector_is_held(a.elector)); /* nobody else wanted it */
    assert_int_equal(fake_log_count(w->server, "POST", "/pods"), 0);
    node_kill(&a);
}

static void test_429_and_silence(void **ctx)
{
    struct world *w = *ctx;
    struct node a;

    node_start(&a, w, "a");
    RIG_UNTIL(a.loop, elector_is_held(a.elector));
    fake_plan_fault(
        w->server,
        &(struct fake_fault_plan){
            .request = 1, .method = "PUT", .fault = FAKE_STATUS, .status = 429, .retry_after_s = 1});
    w->offset_ms += 2000;
    RIG_UNTIL(a.loop, fake_log_count(w->server, "PUT", "/leases/op") > 0);
    w->offset_ms += 2400;
    fake_log_clear(w->server);
    RIG_UNTIL(a.loop, fake_log_count(w->server, "PUT", "/leases/op") > 0);
    assert_int_equal(a.lost, 0);
    assert_int_equal(a.problems, 1);
    /* An API server that does not answer: it stops leading in time, and leads again when it is back. */
    fake_plan_fault(w->server, &(struct fake_fault_plan){.method = "PUT", .fault = FAKE_HANG_BEFORE});
    RIG_UNTIL(a.loop, jumped(w) && a.lost > 0);
    assert_false(elector_is_held(a.elector));
    fake_plan_fault(w->server, NULL);
    RIG_UNTIL(a.loop, jumped(w) && elector_is_held(a.elector));
    assert_int_equal(a.won, 2);
    node_kill(&a);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        T(test_takeover_after_a_crash),
        T(test_a_stopped_leader_writes_nothing_when_it_goes_on),
        T(test_a_suspended_leader_holds_nothing),
        T(test_429_and_silence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
