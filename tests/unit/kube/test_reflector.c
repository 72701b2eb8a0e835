/* test_reflector.c - list, watch and every trouble over real HTTP: the copy always ends up equal to the server. */
#include "rig.h"

#include "common/json.h"
#include "kube/reflector.h"
#include "kube/store.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct copy {
    struct rig *rig;
    struct reflector *reflector;
    struct kube_store *store;
    int problems;
    char problem[ERR_MSG_BYTES];
};

static void on_begin(void *ctx)
{
    kube_store_mark(((struct copy *)ctx)->store);
}

static void on_end(void *ctx)
{
    kube_store_sweep(((struct copy *)ctx)->store, NULL, NULL);
}

static const cJSON *meta(const cJSON *o)
{
    return cJSON_GetObjectItemCaseSensitive(o, "metadata");
}

static void on_upsert(void *ctx, const cJSON *o)
{
    struct copy *c = ctx;

    kube_store_put(c->store, json_str(meta(o), "namespace"), json_str(meta(o), "name"),
                   json_str(meta(o), "uid"), NULL, strdup(json_str(meta(o), "resourceVersion")));
}

static void on_removed(void *ctx, const cJSON *o)
{
    kube_store_remove(((struct copy *)ctx)->store, json_str(meta(o), "namespace"), json_str(meta(o), "name"),
                      NULL);
}

static void on_unreadable(void *ctx, const cJSON *names, const struct err *why)
{
    (void)ctx, (void)names;
    fail_msg("unreadable: %s", why->msg);
}

static void on_problem(void *ctx, const struct err *err)
{
    struct copy *c = ctx;

    c->problems++;
    snprintf(c->problem, sizeof(c->problem), "%s", err->msg);
}

static void start(struct copy *c, struct rig *r, const char *labels)
{
    struct kube_watcher_options o = {.resource = KUBE_PODS, .label_selector = labels, .seed = 1};

    *c = (struct copy){.rig = r, .store = kube_store_new(free)};
    c->reflector = reflector_new(
        r->loop, &r->api, &o,
        &(struct watcher_sink){c, on_begin, on_end, on_upsert, on_removed, on_unreadable, on_problem});
    reflector_start(c->reflector);
}

static void stop(struct copy *c)
{
    reflector_free(c->reflector);
    kube_store_free(c->store);
}

/* Every object of the server is in the copy with its resourceVersion, and no other. */
static bool is_equal(void *ctx)
{
    struct copy *c = ctx;
    int n = fake_count(c->rig->server, "/api/v1/pods");
    struct err err;

    if (!reflector_stats(c->reflector).synced || (int)kube_store_count(c->store) != n)
        return false;
    for (int i = 0; i < n; i++) {
        char *text = fake_nth(c->rig->server, "/api/v1/pods", i);
        cleanup_json cJSON *o = json_parse(text, strlen(text), &err);
        const struct kube_store_entry *e =
            kube_store_get(c->store, json_str(meta(o), "namespace"), json_str(meta(o), "name"));
        bool same = e && strcmp(e->value, json_str(meta(o), "resourceVersion")) == 0 &&
                    strcmp(e->uid, json_str(meta(o), "uid")) == 0;
        free(text);
        if (!same)
            return false;
    }
    return true;
}

static bool is_watching(void *ctx)
{
    return is_equal(ctx) && fake_open_watches(((struct copy *)ctx)->rig->server) == 1;
}

static int lists(struct rig *r)
{
    return fake_log_count(r->server, "LIST", NULL);
}

static void put(struct rig *r, const char *name, const char *json)
{
    char path[128];

    snprintf(path, sizeof(path), "/api/v1/namespaces/ns/pods/%s", name);
    assert_true(fake_put(r->server, path, json));
}

static void drop(struct rig *r, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "/api/v1/namespaces/ns/pods/%s", name);
    assert_true(fake_remove(r->server, path));
}

static void test_follows(void **ctx)
{
    struct rig *r = *ctx;
    struct copy c;

    put(r, "a", "{}");
    put(r, "b", "{}");
    start(&c, r, NULL);
    rig_until(r->loop, is_watching, &c);
    put(r, "c", "{}");
    put(r, "a", "{\"status\":{\"phase\":\"Running\"}}");
    drop(r, "b");
    rig_until(r->loop, is_equal, &c);
    assert_int_equal(c.problems, 0);
    assert_int_equal(lists(r), 1);
    assert_int_equal(fake_log_count(r->server, NULL, NULL), 2);
    stop(&c);
}

static int trims;
int __wrap_malloc_trim(size_t pad); /* see CMakeLists.txt */

int __wrap_malloc_trim(size_t pad)
{
    (void)pad;
    trims++;
    return 0;
}

static bool is_trimmed(void *ctx)
{
    return trims > *(const int *)ctx;
}

/* After a list, and after many small objects as after a large one. */
static void test_memory_is_given_back(void **ctx)
{
    struct rig *r = *ctx;
    struct copy c;
    char json[3000], name[32];
    int before = trims;

    put(r, "a", "{}");
    start(&c, r, NULL);
    rig_until(r->loop, is_watching, &c);
    assert_int_equal(trims, before + 1);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "few-%d", i);
        put(r, name, "{}");
    }
    rig_until(r->loop, is_equal, &c);
    assert_int_equal(trims, before + 1);

    before = trims;
    snprintf(json, sizeof(json), "{\"status\":{\"message\":\"%02500d\"}}", 0);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "many-%d", i);
        put(r, name, json);
    }
    rig_until(r->loop, is_trimmed, &before);
    stop(&c);
}

static void test_deleted_while_away(void **ctx)
{
    struct rig *r = *ctx;
    struct copy c;

    put(r, "a", "{}");
    put(r, "b", "{}");
    start(&c, r, NULL);
    rig_until(r->loop, is_watching, &c);
    /* While no watch can be had: one goes, one comes, one is replaced; and the past is forgotten. */
    fake_plan_fault(r->server,
                    &(struct fake_fault_plan){.request = 1, .method = "WATCH", .fault = FAKE_DROP_BEFORE});
    fake_close_watches(r->server);
    drop(r, "a");
    drop(r, "b");
    put(r, "b", "{}");
    put(r, "z", "{}");
    fake_compact(r->server);
    rig_until(r->loop, is_watching, &c);
    assert_null(kube_store_get(c.store, "ns", "a"));
    assert_int_equal(lists(r), 2);
    stop(&c);
}

/* What a bookmark is for: nothing of ours changed, the past was forgotten, and still no list is needed. */
static void test_a_bookmark_saves_the_list(void **ctx)
{
    struct rig *r = *ctx;
    struct copy c;

    put(r, "a", "{}");
    start(&c, r, NULL);
    rig_until(r->loop, is_watching, &c);
    fake_compact(r->server);
    fake_bookmark(r->server);
    fake_close_watches(r->server);
    put(r, "b", "{}");
    rig_until(r->loop, is_watching, &c);
    assert_int_equal(c.problems, 0);
    assert_int_equal(lists(r), 1);
    stop(&c);
}

static bool has_a_problem(void *ctx)
{
    return ((struct copy *)ctx)->problems > 0;
}

static bool has_half(void *ctx)
{
    struct copy *c = ctx;

    return c->problems == 2 && fake_faults_done(c->rig->server) == 1; /* 410, half */
}

/* A relist that breaks off half way: what the copy had stays until a whole one came. */
static void test_half_a_list_takes_nothing_away(void **ctx)
{
    static const enum fake_fault HOW[] = {FAKE_RESET_BODY, FAKE_GARBAGE_BODY};
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(HOW); i++) {
        struct copy c;
        put(r, "a", "{}");
        put(r, "b", "{}");
        put(r, "c", "{}");
        start(&c, r, NULL);
        rig_until(r->loop, is_watching, &c);
        put(r, "a", "{\"status\":{\"phase\":\"Running\"}}"); /* a watch that brought something may end */
        rig_until(r->loop, is_equal, &c);
        fake_plan_fault(r->server,
                        &(struct fake_fault_plan){.request = 1, .method = "LIST", .fault = HOW[i]});
        fake_compact(r->server);
        fake_close_watches(r->server);
        rig_until(r->loop, has_half, &c);
        assert_int_equal(kube_store_count(c.store), 3);
        assert_true(reflector_stats(c.reflector).synced);
        drop(r, "b");
        rig_until(r->loop, is_watching, &c);
        assert_null(kube_store_get(c.store, "ns", "b"));
        stop(&c);
        drop(r, "a");
        drop(r, "c");
    }
}

/* Accepted and never answered: given up after half a minute, not after a watch's two and a half. */
static void test_a_list_that_never_begins(void **ctx)
{
    struct rig *r = *ctx;
    struct copy c;

    put(r, "a", "{}");
    fake_plan_fault(r->server, &(struct fake_fault_plan){.request = 1, .fault = FAKE_HANG_BEFORE});
    start(&c, r, NULL);
    int64_t begin = kube_loop_now_ms(r->loop);
    rig_until(r->loop, is_watching, &c);
    assert_true(kube_loop_now_ms(r->loop) - begin >= KUBE_TRANSPORT_TIMEOUT_MS);
    assert_int_equal(c.problems, 1);
    assert_non_null(strstr(c.problem, "no data for 30000 ms"));
    assert_int_equal(lists(r), 2);
    stop(&c);
}

/* Half of a list, half a line of a watch; then silence. */
static void test_bodies_that_stall(void **ctx)
{
    struct rig *r = *ctx;
    struct copy c;

    put(r, "a", "{}");
    put(r, "b", "{}");
    fake_plan_fault(r->server,
                    &(struct fake_fault_plan){.request = 1, .method = "LIST", .fault = FAKE_STALL_BODY});
    start(&c, r, NULL);
    rig_until(r->loop, is_watching, &c);
    assert_int_equal(c.problems, 1);
    assert_non_null(strstr(c.problem, "no data for 30000 ms"));
    stop(&c);
    fake_plan_fault(r->server, NULL);
    fake_close_watches(r->server);
    start(&c, r, NULL);
    rig_until(r->loop, is_watching, &c);
    fake_watch_raw(r->server, "{\"type\":\"MODIFIED\",\"obj");
    rig_until(r->loop, has_a_problem, &c);
    assert_non_null(strstr(c.problem, "no data for 150000 ms"));
    put(r, "c", "{}");
    rig_until(r->loop, is_equal, &c);
    stop(&c);
}

/* One fault at each of the first requests, of each kind: it always gets there. */
static void test_every_fault_at_every_request(void **ctx)
{
    static const struct fake_fault_plan faults[] = {
        {.fault = FAKE_STATUS, .status = 500}, {.fault = FAKE_STATUS, .status = 410},
        {.fault = FAKE_STATUS, .status = 403}, {.fault = FAKE_STATUS, .status = 429, .retry_after_s = 1},
        {.fault = FAKE_DROP_BEFORE},           {.fault = FAKE_RESET_BODY},
        {.fault = FAKE_GARBAGE_BODY},
    };
    struct rig *r = *ctx;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        for (int n = 1; n <= 2; n++) {
            struct copy c;
            struct fake_fault_plan plan = faults[i];
            plan.request = n;
            put(r, "a", "{}");
            fake_plan_fault(r->server, &plan);
            start(&c, r, NULL);
            rig_until(r->loop, is_watching, &c);
            put(r, "b", "{}");
            rig_until(r->loop, is_equal, &c);
            drop(r, "b");
            rig_until(r->loop, is_equal, &c);
            stop(&c);
        }
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup_fast, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(test_follows),
        T(test_memory_is_given_back),
        T(test_deleted_while_away),
        T(test_half_a_list_takes_nothing_away),
        T(test_a_list_that_never_begins),
        T(test_a_bookmark_saves_the_list),
        T(test_bodies_that_stall),
        T(test_every_fault_at_every_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
