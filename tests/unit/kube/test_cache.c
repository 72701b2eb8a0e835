/* test_cache.c - the copy and what it says of each change, over real HTTP. */
#include "kube/cache.h"

#include "common/json.h"
#include "rig.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct watch {
    struct kube_cache *cache;
    char seen[400];
    char problem[100];
    int synced;
    const char *want;
    struct kube_cache *late;  /* an answer that arrives while it hears of the next change: */
    const cJSON *late_object; /* NULL: none */
    const char *late_uid;
};

static int decode(const cJSON *pod, struct kube_cache_item *ret, struct err *err)
{
    const char *phase = json_str(json_find(pod, (const char *[]){"status", NULL}), "phase");

    if (phase && strcmp(phase, "Broken") == 0)
        return err_set(err, ERR_INVALID, "status.phase: Broken");
    ret->group = json_str(json_find(pod, (const char *[]){"metadata", "labels", NULL}), "job");
    ret->value = strdup(phase ? phase : "-");
    return 0;
}

static void changed(void *ctx, const struct kube_store_entry *e)
{
    struct watch *w = ctx;
    size_t len = strlen(w->seen);

    snprintf(w->seen + len, sizeof(w->seen) - len, "%s/%s:%s ", e->group, e->name, (const char *)e->value);
    const cJSON *late = w->late_object;
    w->late_object = NULL;
    if (late)
        kube_cache_put(w->late, w->late_uid, late, NULL);
}

static void synced(void *ctx)
{
    ((struct watch *)ctx)->synced++;
}

static void gone(void *ctx, const struct kube_store_entry *e)
{
    struct watch *w = ctx;
    size_t len = strlen(w->seen);

    snprintf(w->seen + len, sizeof(w->seen) - len, "-%s ", e->name);
}

static void problem(void *ctx, const struct err *err)
{
    struct watch *w = ctx;

    snprintf(w->problem, sizeof(w->problem), "%s", err->msg);
}

static bool has_problem(void *ctx)
{
    return ((struct watch *)ctx)->problem[0];
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
#define NEW_A                                                                                                \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\",\"uid\":\"new\"},\"status\":{\"phase\":\"New\"}}"

static struct kube_cache *start(struct rig *r, struct watch *w)
{
    struct kube_cache_options o = {.watch = {.resource = KUBE_PODS},
                                   .decode = decode,
                                   .free_value = free,
                                   .changed = changed,
                                   .gone = gone,
                                   .synced = synced,
                                   .problem = problem,
                                   .ctx = w};

    return kube_cache_new(r->loop, &r->api, &o);
}

static void test_changes(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};

    assert_true(fake_put(r->server, POD "a", "{\"metadata\":{\"labels\":{\"job\":\"x\"}}}"));
    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    assert_false(kube_cache_stats(c).synced);
    expect(r, &w, "x/a:- ");
    assert_true(fake_put(r->server, POD "a", "{\"status\":{\"phase\":\"Running\"}}"));
    expect(r, &w, "x/a:Running ");
    assert_int_equal(w.synced, 1);
    /* into another group: both owners hear of it */
    assert_true(fake_put(r->server, POD "a", "{\"metadata\":{\"labels\":{\"job\":\"y\"}}}"));
    expect(r, &w, "x/a:Running y/a:Running ");
    assert_non_null(kube_store_group(kube_cache_store(c), "y"));
    assert_null(kube_store_group(kube_cache_store(c), "x"));
    assert_true(fake_remove(r->server, POD "a"));
    expect(r, &w, "-a y/a:Running ");
    assert_int_equal(kube_store_count(kube_cache_store(c)), 0);
    /* gone while nobody looked: found out by the next list */
    assert_true(fake_put(r->server, POD "b", "{}"));
    expect(r, &w, "/b:- ");
    fake_plan_fault(r->server,
                    &(struct fake_fault_plan){.request = 1, .method = "WATCH", .fault = FAKE_DROP_BEFORE});
    fake_close_watches(r->server);
    assert_true(fake_remove(r->server, POD "b"));
    fake_compact(r->server);
    expect(r, &w, "-b /b:- ");
    assert_int_equal(w.synced, 2);
}

/* Deleted and created again: read live before the watch tells of either, it stays when the old one's end arrives. */
static void test_another_object_under_the_name(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};
    struct err err;

    assert_true(fake_put(r->server, POD "a", "{}"));
    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    expect(r, &w, "/a:- ");
    cleanup_json cJSON *live = json_parse(NEW_A, strlen(NEW_A), &err);
    assert_non_null(live);
    cleanup_free char *uid = strdup(kube_store_get(kube_cache_store(c), "ns", "a")->uid);
    kube_cache_put(c, uid, live, NULL);
    expect(r, &w, "-a /a:- /a:New ");
    assert_true(fake_remove(r->server, POD "a"));
    assert_true(fake_put(r->server, POD "b", "{}"));
    expect(r, &w, "/b:- ");
    assert_string_equal(kube_store_get(kube_cache_store(c), "ns", "a")->uid, "new");
}

static const char *uid_of(const cJSON *object)
{
    return json_str(json_find(object, (const char *[]){"metadata", NULL}), "uid");
}

/* Pod "a", as a GET would answer now. */
static cJSON *read_a(struct rig *r)
{
    cleanup_free char *text = fake_get(r->server, POD "a");
    struct err err;
    cJSON *live = json_parse(text, strlen(text), &err);

    assert_non_null(live);
    return live;
}

/* Asked for before it was deleted, and answered after the watch told of that: no other event would ever end it. */
static void test_answer_after_the_end(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};

    assert_true(fake_put(r->server, POD "a", "{}"));
    cleanup_json cJSON *live = read_a(r);
    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    expect(r, &w, "/a:- ");
    kube_cache_put(c, uid_of(live), live, NULL);
    expect(r, &w, "/a:- ");
    assert_true(fake_remove(r->server, POD "a"));
    expect(r, &w, "-a /a:- ");
    kube_cache_put(c, uid_of(live), live, NULL);
    assert_int_equal(kube_store_count(kube_cache_store(c)), 0);
    /* and not over the one that has the name now */
    assert_true(fake_put(r->server, POD "a", "{}"));
    expect(r, &w, "/a:- ");
    kube_cache_put(c, uid_of(live), live, NULL);
    assert_string_not_equal(kube_store_get(kube_cache_store(c), "ns", "a")->uid, uid_of(live));
    assert_string_equal(w.seen, "");
}

/* Found missing by a live read before the watch tells of it: told once, at the first of the two. */
static void test_forgotten(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};

    assert_true(fake_put(r->server, POD "a", "{}"));
    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    expect(r, &w, "/a:- ");
    kube_cache_forget(c, "ns", "a", "another");
    assert_string_equal(w.seen, "");
    const struct kube_store_entry *e = kube_store_get(kube_cache_store(c), "ns", "a");
    kube_cache_forget(c, e->ns, e->name, e->uid);
    assert_string_equal(w.seen, "-a /a:- ");
    assert_null(kube_store_get(kube_cache_store(c), "ns", "a"));
    w.seen[0] = '\0';
    assert_true(fake_remove(r->server, POD "a"));
    assert_true(fake_put(r->server, POD "b", "{}"));
    expect(r, &w, "/b:- ");
}

/* An answer while a list comes that does not have the object any more. */
static void test_answer_within_a_list(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};

    assert_true(fake_put(r->server, POD "a", "{}"));
    assert_true(fake_put(r->server, POD "b", "{}"));
    cleanup_json cJSON *live = read_a(r);
    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    expect(r, &w, "/a:- /b:- ");
    w.late = c;
    w.late_uid = uid_of(live);
    w.late_object = live;
    fake_plan_fault(r->server,
                    &(struct fake_fault_plan){.request = 1, .method = "WATCH", .fault = FAKE_DROP_BEFORE});
    fake_close_watches(r->server);
    assert_true(fake_remove(r->server, POD "a"));
    fake_compact(r->server);
    expect(r, &w, "/b:- /a:- -a /a:- ");
    assert_int_equal(kube_store_count(kube_cache_store(c)), 1);
}

/* One object that cannot be read: said, and neither it nor what was known of it is lost. */
static void test_unreadable(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};

    assert_true(fake_put(r->server, POD "a", "{}"));
    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    expect(r, &w, "/a:- ");
    assert_true(fake_put(r->server, POD "a", "{\"status\":{\"phase\":\"Broken\"}}"));
    rig_until(r->loop, has_problem, &w);
    assert_string_equal(w.problem, "status.phase: Broken");
    assert_string_equal(kube_store_get(kube_cache_store(c), "ns", "a")->value, "-");
    /* and in a list it is there */
    assert_true(fake_put(r->server, POD "b", "{}"));
    expect(r, &w, "/b:- ");
    fake_plan_fault(r->server,
                    &(struct fake_fault_plan){.request = 1, .method = "WATCH", .fault = FAKE_DROP_BEFORE});
    fake_close_watches(r->server);
    assert_true(fake_remove(r->server, POD "b"));
    fake_compact(r->server);
    expect(r, &w, "-b /b:- ");
    assert_int_equal(w.synced, 2);
    assert_string_equal(kube_store_get(kube_cache_store(c), "ns", "a")->value, "-");
    assert_true(fake_put(r->server, POD "a", "{\"status\":{\"phase\":\"Running\"}}"));
    expect(r, &w, "/a:Running ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changes, rig_setup_fast, rig_teardown),
        cmocka_unit_test_setup_teardown(test_another_object_under_the_name, rig_setup_fast, rig_teardown),
        cmocka_unit_test_setup_teardown(test_answer_after_the_end, rig_setup_fast, rig_teardown),
        cmocka_unit_test_setup_teardown(test_forgotten, rig_setup_fast, rig_teardown),
        cmocka_unit_test_setup_teardown(test_answer_within_a_list, rig_setup_fast, rig_teardown),
        cmocka_unit_test_setup_teardown(test_unreadable, rig_setup_fast, rig_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
