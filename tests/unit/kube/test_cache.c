/* test_cache.c - the copy and what it says of each change, over real HTTP. */
#include "kube/cache.h"

#include "common/json.h"
#include "rig.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct watch {
    struct cache *cache;
    char seen[400];
    int synced;
    const char *want;
};

static void *decode(void *ctx, const cJSON *pod, const char **ret_group)
{
    (void)ctx;
    *ret_group = json_str(json_find(pod, (const char *[]){"metadata", "labels", NULL}), "job");
    const char *phase = json_str(json_find(pod, (const char *[]){"status", NULL}), "phase");
    return strdup(phase ? phase : "-");
}

static void changed(void *ctx, const struct store_entry *e)
{
    struct watch *w = ctx;
    size_t len = strlen(w->seen);

    snprintf(w->seen + len, sizeof(w->seen) - len, "%s/%s:%s ", e->group, e->name, (const char *)e->value);
}

static void synced(void *ctx)
{
    ((struct watch *)ctx)->synced++;
}

static void problem(void *ctx, const struct err *err)
{
    (void)ctx;
    (void)err;
}

static bool saw(void *ctx)
{
    struct watch *w = ctx;

    return strcmp(w->seen, w->want) == 0;
}

static void expect(struct rig *r, struct watch *w, const char *want)
{
    w->want = want;
    rig_until(r->loop, saw, w);
    w->seen[0] = '\0';
}

#define POD "/api/v1/namespaces/ns/pods/"

static void test_changes(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};
    struct cache_options o = {.watch = {.resource = KUBE_PODS},
                              .decode = decode,
                              .free_value = free,
                              .changed = changed,
                              .synced = synced,
                              .problem = problem,
                              .ctx = &w};

    assert_true(fake_put(r->server, POD "a", "{\"metadata\":{\"labels\":{\"job\":\"x\"}}}"));
    cleanup_cache struct cache *c = cache_new(r->loop, &r->api, &o);
    assert_false(cache_stats(c).synced);
    expect(r, &w, "x/a:- ");
    assert_true(fake_put(r->server, POD "a", "{\"status\":{\"phase\":\"Running\"}}"));
    expect(r, &w, "x/a:Running ");
    assert_int_equal(w.synced, 1);
    /* into another group: both owners hear of it */
    assert_true(fake_put(r->server, POD "a", "{\"metadata\":{\"labels\":{\"job\":\"y\"}}}"));
    expect(r, &w, "x/a:Running y/a:Running ");
    assert_non_null(store_group(cache_store(c), "y"));
    assert_null(store_group(cache_store(c), "x"));
    assert_true(fake_remove(r->server, POD "a"));
    expect(r, &w, "y/a:Running ");
    assert_int_equal(store_count(cache_store(c)), 0);
    /* gone while nobody looked: found out by the next list */
    assert_true(fake_put(r->server, POD "b", "{}"));
    expect(r, &w, "/b:- ");
    fake_plan_fault(r->server,
                    &(struct fake_fault_plan){.request = 1, .method = "WATCH", .fault = FAKE_DROP_BEFORE});
    fake_close_watches(r->server);
    assert_true(fake_remove(r->server, POD "b"));
    fake_compact(r->server);
    expect(r, &w, "/b:- ");
    assert_int_equal(w.synced, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changes, rig_setup_fast, rig_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
