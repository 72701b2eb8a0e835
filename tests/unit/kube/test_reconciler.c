/* test_reconciler.c - keys, ends, back-off, leading and draining, over real HTTP. The controller under test wants an
 * object "c" in each namespace that has pods.
 */
#include "kube/reconciler.h"

#include "common/json.h"
#include "rig.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POD(ns) "/api/v1/namespaces/" ns "/pods/p"
#define MAP(ns) "/api/v1/namespaces/" ns "/configmaps/c"

struct lab {
    struct rig *rig;
    struct kube_reconciler *r;
    struct kube_cache *pods, *maps;
    char seen[400]; /* keys, in order */
    char problem[300];
    int works, drained, freed;
    void (*instead)(struct lab *l, struct kube_work *w);
    struct kube_work *held;
};

static void by_namespace(void *ctx, const struct kube_store_entry *e)
{
    struct lab *l = ctx;

    kube_reconciler_add(l->r, e->ns, e->ns);
}

static void problem(void *ctx, const char *what, const struct err *err)
{
    struct lab *l = ctx;

    snprintf(l->problem, sizeof(l->problem), "%s: %s", what, err->msg);
}

static void reconcile(void *ctx, struct kube_work *w)
{
    struct lab *l = ctx;
    const char *ns = kube_work_key(w);
    size_t len = strlen(l->seen);

    l->works++;
    snprintf(l->seen + len, sizeof(l->seen) - len, "%s ", ns);
    if (l->instead) {
        l->instead(l, w);
        return;
    }
    if (!kube_store_group(kube_cache_store(l->pods), ns) ||
        kube_store_get(kube_cache_store(l->maps), ns, "c")) {
        kube_work_done(w);
        return;
    }
    kube_work_send(w, &(struct kube_request){.verb = KUBE_CREATE,
                                             .resource = &KUBE_CONFIGMAPS,
                                             .ns = ns,
                                             .body = sv_from("{\"metadata\":{\"name\":\"c\"}}")});
}

static int setup(void **ctx)
{
    struct lab *l = calloc(1, sizeof(*l));

    assert_int_equal(rig_setup_fast((void **)&l->rig), 0);
    *ctx = l;
    return 0;
}

static void start(struct lab *l)
{
    struct kube_reconciler_options o = {.ctx = l, .reconcile = reconcile, .problem = problem};

    l->r = kube_reconciler_new(l->rig->loop, &l->rig->api, &o);
    l->pods = kube_reconciler_watch(
        l->r, &(struct kube_reconciler_source){.watch = {.resource = KUBE_PODS}, .map = by_namespace});
    l->maps =
        kube_reconciler_watch(l->r, &(struct kube_reconciler_source){.watch = {.resource = KUBE_CONFIGMAPS}});
    kube_reconciler_lead(l->r, true);
}

static void start_synced(struct lab *l)
{
    start(l);
    RIG_UNTIL(l->rig->loop, kube_reconciler_synced(l->r));
}

static int teardown(void **ctx)
{
    struct lab *l = *ctx;

    kube_reconciler_free(l->r);
    rig_teardown((void **)&l->rig);
    free(l);
    return 0;
}

static bool is_there(const struct lab *l, const char *path)
{
    cleanup_json cJSON *object = fake_json(l->rig->server, path);

    return object != NULL;
}

static void until_there(const struct lab *l, const char *path)
{
    RIG_UNTIL(l->rig->loop, is_there(l, path));
}

static void some_turns(struct lab *l)
{
    struct err err;

    for (int i = 0; i < 20; i++)
        assert_int_equal(kube_loop_turn(l->rig->loop, 1, &err), 0);
}

static bool is_idle(const struct lab *l)
{
    struct kube_workqueue_stats q = kube_reconciler_queue(l->r);

    return q.depth + q.delayed + q.processing == 0;
}

static void test_converges(void **ctx)
{
    struct lab *l = *ctx;

    rig_put(l->rig, POD("one"), "{}");
    rig_put(l->rig, POD("two"), "{}");
    start(l);
    until_there(l, MAP("one"));
    until_there(l, MAP("two"));
    RIG_UNTIL(l->rig->loop, is_idle(l));
    assert_true(fake_remove(l->rig->server, MAP("one")));
    until_there(l, MAP("one"));
    assert_string_equal(l->problem, "");
    assert_int_equal(fake_log_count(l->rig->server, "POST", NULL), 3);
}

/* One of the two lists does not come: nothing is decided on half the truth. */
static void test_waits_for_every_cache(void **ctx)
{
    struct lab *l = *ctx;
    struct err err;

    rig_put(l->rig, POD("one"), "{}");
    fake_plan_fault(
        l->rig->server,
        &(struct fake_fault_plan){
            .request = 1, .method = "LIST", .path_part = "/configmaps", .fault = FAKE_STATUS, .status = 500});
    start(l);
    bool half = false;
    while (!kube_cache_stats(l->maps).synced) {
        half = half || kube_cache_stats(l->pods).synced;
        assert_int_equal(l->works, 0);
        assert_int_equal(kube_loop_turn(l->rig->loop, 1, &err), 0);
    }
    assert_true(half);
    assert_non_null(strstr(l->problem, "configmaps: "));
    until_there(l, MAP("one"));
    assert_true(kube_reconciler_synced(l->r));
}

static void test_every_fault_is_retried(void **ctx)
{
    static const enum fake_fault faults[] = {FAKE_STATUS, FAKE_DROP_BEFORE, FAKE_DROP_AFTER, FAKE_RESET_BODY};
    struct lab *l = *ctx;

    start_synced(l);
    for (size_t f = 0; f < ARRAY_LEN(faults); f++) {
        char pod[80], map[80], key[16];
        snprintf(pod, sizeof(pod), "/api/v1/namespaces/f%zu/pods/p", f);
        snprintf(map, sizeof(map), "/api/v1/namespaces/f%zu/configmaps/c", f);
        snprintf(key, sizeof(key), "f%zu: ", f);
        fake_plan_fault(
            l->rig->server,
            &(struct fake_fault_plan){.request = 1, .method = "POST", .fault = faults[f], .status = 503});
        rig_put(l->rig, pod, "{}");
        until_there(l, map);
        RIG_UNTIL(l->rig->loop, is_idle(l));
        /* a kept connection that closes without a word is libcurl's to replace: nobody needs to hear of it */
        if (faults[f] == FAKE_STATUS || faults[f] == FAKE_RESET_BODY)
            assert_non_null(strstr(l->problem, key));
    }
    assert_int_equal(fake_count(l->rig->server, "/api/v1/configmaps"), ARRAY_LEN(faults));
    assert_true(kube_reconciler_queue(l->r).retries >= 2);
}

/* A request that breaks the rules never leaves; its key goes the way of other failures, in a later turn. */
static void send_nonsense(struct lab *l, struct kube_work *w)
{
    (void)l;
    kube_work_send(w, &(struct kube_request){.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "one"});
}

static void test_unsendable(void **ctx)
{
    struct lab *l = *ctx;

    l->instead = send_nonsense;
    rig_put(l->rig, POD("one"), "{}");
    start(l);
    while (kube_reconciler_queue(l->r).retries < 3)
        some_turns(l);
    assert_non_null(strstr(l->problem, "one: "));
    assert_int_equal(fake_log_count(l->rig->server, "GET", NULL), 0);
}

static void come_again(struct lab *l, struct kube_work *w)
{
    if (l->works < 3)
        kube_work_after(w, 40);
    else
        kube_work_done(w);
}

static void test_after(void **ctx)
{
    struct lab *l = *ctx;

    l->instead = come_again;
    start_synced(l);
    int64_t from = kube_loop_now_ms(l->rig->loop);
    kube_reconciler_add(l->r, "ns", "x");
    kube_reconciler_add(l->r, "ns", ""); /* a change that concerns nobody */
    RIG_UNTIL(l->rig->loop, l->works > 0);
    RIG_UNTIL(l->rig->loop, is_idle(l));
    assert_string_equal(l->seen, "x x x ");
    assert_true(kube_loop_now_ms(l->rig->loop) - from >= 80);
    assert_int_equal(kube_reconciler_queue(l->r).retries, 0);
}

static void fail_or_wait(struct lab *l, struct kube_work *w)
{
    if (l->works == 13)
        kube_work_done(w);
    else if (l->works % 2)
        kube_work_retry(w, -1);
    else
        kube_work_put_back(w, 1);
}

/* A key that cannot be worked on between two failures: the back-off goes on all the same, 5 to 160 ms. */
static void test_put_back_keeps_the_back_off(void **ctx)
{
    struct lab *l = *ctx;

    l->instead = fail_or_wait;
    start_synced(l);
    int64_t from = kube_loop_now_ms(l->rig->loop);
    kube_reconciler_add(l->r, "ns", "x");
    RIG_UNTIL(l->rig->loop, l->works == 13);
    assert_int_equal(kube_reconciler_queue(l->r).retries, 6);
    assert_true(kube_loop_now_ms(l->rig->loop) - from >= 315);
}

static void on_freed(void *data)
{
    (*(int *)data)++;
}

static void hold(struct lab *l, struct kube_work *w)
{
    kube_work_attach(w, &l->freed, on_freed);
    l->held = w;
}

static void on_drained(void *ctx)
{
    ((struct lab *)ctx)->drained++;
}

static void test_one_at_a_time_and_drained(void **ctx)
{
    struct lab *l = *ctx;

    l->instead = hold;
    start_synced(l);
    kube_reconciler_add(l->r, "ns", "x");
    some_turns(l);
    kube_reconciler_add(l->r, "ns", "x"); /* meanwhile */
    some_turns(l);
    assert_string_equal(l->seen, "x ");
    kube_work_done(l->held);
    assert_int_equal(l->freed, 1);
    some_turns(l);
    assert_string_equal(l->seen, "x x ");
    kube_reconciler_add(l->r, "ns", "y");
    kube_reconciler_drain(l->r, on_drained, l);
    some_turns(l);
    assert_int_equal(l->drained, 0);
    kube_work_retry(l->held, 0);
    assert_int_equal(l->drained, 0); /* not from inside a work's end */
    some_turns(l);
    assert_int_equal(l->drained, 1);
    assert_string_equal(l->seen, "x x "); /* x and y have to be looked at by the next process */
}

/* Works that do not end: a namespace has its share of them, and keys of others are worked on all the same. Nothing turns in
 * circles meanwhile. */
static void test_a_namespace_that_does_not_end(void **ctx)
{
    struct lab *l = *ctx;
    char name[8];

    l->instead = hold;
    start_synced(l);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "%d", i);
        kube_reconciler_add(l->r, "stuck", name);
    }
    some_turns(l);
    assert_int_equal(l->works, WORKQUEUE_NAMESPACE);
    kube_reconciler_add(l->r, "ns", "x");
    some_turns(l);
    assert_int_equal(l->works, WORKQUEUE_NAMESPACE + 1);
    assert_string_equal(kube_work_key(l->held), "x");
    assert_string_equal(kube_work_ns(l->held), "ns");
    kube_work_done(l->held);
    some_turns(l);
    assert_int_equal(l->works, WORKQUEUE_NAMESPACE + 1);
    assert_int_equal(kube_reconciler_queue(l->r).depth, 100 - WORKQUEUE_NAMESPACE);
}

static void test_freed_with_works_under_way(void **ctx)
{
    struct lab *l = *ctx;

    fake_plan_fault(l->rig->server, &(struct fake_fault_plan){.method = "POST", .fault = FAKE_HANG_BEFORE});
    rig_put(l->rig, POD("one"), "{}");
    start(l);
    while (fake_faults_done(l->rig->server) == 0)
        some_turns(l);
    l->instead = hold;
    kube_reconciler_add(l->r, "ns", "x");
    while (!l->held)
        some_turns(l);
    kube_reconciler_free(l->r);
    l->r = NULL;
    assert_int_equal(l->freed, 1);
    some_turns(l);
}

/* Its watch is behind: what an earlier leader wrote is in the list that begins the term. */
static void test_a_term_begins_with_lists(void **ctx)
{
    struct lab *l = *ctx;

    start_synced(l);
    kube_reconciler_lead(l->r, false);
    fake_freeze(l->rig->server, "pods", 0);
    rig_put(l->rig, POD("one"), "{}");
    some_turns(l);
    assert_int_equal(l->works, 0);
    kube_reconciler_lead(l->r, true);
    until_there(l, MAP("one"));
}

/* Who waits for months sees many come and go: none of them is kept in mind. */
static void test_waiting_remembers_no_keys(void **ctx)
{
    struct lab *l = *ctx;

    start(l);
    kube_reconciler_lead(l->r, false);
    RIG_UNTIL(l->rig->loop, kube_reconciler_synced(l->r));
    rig_put(l->rig, POD("gone"), "{}");
    rig_put(l->rig, POD("there"), "{}");
    while (!kube_store_group(kube_cache_store(l->pods), "there"))
        some_turns(l);
    assert_true(fake_remove(l->rig->server, POD("gone")));
    while (kube_store_group(kube_cache_store(l->pods), "gone"))
        some_turns(l);
    assert_true(is_idle(l));
    kube_reconciler_lead(l->r, true);
    until_there(l, MAP("there"));
    RIG_UNTIL(l->rig->loop, is_idle(l));
    assert_null(strstr(l->seen, "gone"));
    kube_reconciler_lead(l->r, true); /* that is no news */
    assert_true(is_idle(l));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_converges),
        T(test_waits_for_every_cache),
        T(test_every_fault_is_retried),
        T(test_unsendable),
        T(test_after),
        T(test_put_back_keeps_the_back_off),
        T(test_one_at_a_time_and_drained),
        T(test_a_namespace_that_does_not_end),
        T(test_freed_with_works_under_way),
        T(test_a_term_begins_with_lists),
        T(test_waiting_remembers_no_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
