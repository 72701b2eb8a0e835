/* test_cache.c - the cached copy, and its report of each change, over real HTTP. */
#include "kube/cache.h"

#include "common/json.h"
#include "jsontext.h"
#include "rig.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct watch {
    struct rig *rig;
    struct kube_cache *cache;
    char seen[400];
    char problem[ERR_MSG_BYTES]; /* the last of them */
    int synced, problems;
    const char *want;
};

static int decode(const cJSON *pod, const struct err *unreadable, struct kube_store_entry *ret,
                  struct err *err)
{
    const char *phase = json_str(json_child(pod, "status"), "phase");

    if (unreadable)
        return -1;
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

    w->problems++;
    snprintf(w->problem, sizeof(w->problem), "%s", err->msg);
}

static bool has_problem(void *ctx)
{
    return ((struct watch *)ctx)->problem[0];
}

static void expect(struct rig *r, struct watch *w, const char *want)
{
    w->want = want;
    RIG_UNTIL(r->loop, strcmp(w->seen, w->want) == 0);
    w->seen[0] = '\0';
}

#define POD "/api/v1/namespaces/ns/pods/"

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

    w->rig = r;
    return w->cache = kube_cache_new(r->loop, &r->api, &o);
}

static bool is_whole(void *ctx)
{
    struct watch *w = ctx;

    return kube_cache_stats(w->cache).synced &&
           (int)kube_store_count(kube_cache_store(w->cache)) == fake_count(w->rig->server, "/api/v1/pods");
}

static bool is_watching(void *ctx)
{
    return is_whole(ctx) && fake_open_watches(((struct watch *)ctx)->rig->server) == 1;
}

static void test_changes(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};

    rig_put(r, POD "a", "{'metadata':{'labels':{'job':'x'}}}");
    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    assert_false(kube_cache_stats(c).synced);
    expect(r, &w, "x/a:- ");
    rig_put(r, POD "a", "{'status':{'phase':'Running'}}");
    expect(r, &w, "x/a:Running ");
    assert_int_equal(w.synced, 1);
    /* into another group: both owners hear of it */
    rig_put(r, POD "a", "{'metadata':{'labels':{'job':'y'}}}");
    expect(r, &w, "x/a:Running y/a:Running ");
    assert_non_null(kube_store_group(kube_cache_store(c), "y"));
    assert_null(kube_store_group(kube_cache_store(c), "x"));
    assert_true(fake_remove(r->server, POD "a"));
    expect(r, &w, "-a y/a:Running ");
    assert_int_equal(kube_store_count(kube_cache_store(c)), 0);
    /* gone while nobody looked: found out by the next list */
    rig_put(r, POD "b", "{}");
    expect(r, &w, "/b:- ");
    fake_strike(r->server, "WATCH", NULL, FAKE_DROP_BEFORE);
    fake_close_watches(r->server);
    assert_true(fake_remove(r->server, POD "b"));
    fake_compact(r->server);
    expect(r, &w, "-b /b:- ");
    assert_int_equal(w.synced, 2);
}

/* An object that cannot be read is reported, and its last good entry stays. */
static void test_unreadable(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};

    rig_put(r, POD "a", "{}");
    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    expect(r, &w, "/a:- ");
    rig_put(r, POD "a", "{'status':{'phase':'Broken'}}");
    rig_until(r->loop, has_problem, &w);
    assert_string_equal(w.problem, "status.phase: Broken");
    assert_string_equal(kube_store_get(kube_cache_store(c), "ns", "a")->value, "-");
    /* and in a list it is there */
    rig_put(r, POD "b", "{}");
    expect(r, &w, "/b:- ");
    fake_strike(r->server, "WATCH", NULL, FAKE_DROP_BEFORE);
    fake_close_watches(r->server);
    assert_true(fake_remove(r->server, POD "b"));
    fake_compact(r->server);
    expect(r, &w, "-b /b:- ");
    assert_int_equal(w.synced, 2);
    assert_string_equal(kube_store_get(kube_cache_store(c), "ns", "a")->value, "-");
    rig_put(r, POD "a", "{'status':{'phase':'Running'}}");
    expect(r, &w, "/a:Running ");
}

/* What was written is there as soon as the watch is at its version, or with a list that was requested later. */
static void test_what_it_shows(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};
    char version[24];

    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    rig_put(r, POD "a", "{}");
    expect(r, &w, "/a:- ");
    uint64_t lists = kube_cache_lists(c);
    snprintf(version, sizeof(version), "%llu", (unsigned long long)fake_version(r->server));
    assert_true(kube_cache_shows(c, version, lists));
    snprintf(version, sizeof(version), "%llu", (unsigned long long)fake_version(r->server) + 1);
    assert_false(kube_cache_shows(c, version, lists));
    rig_put(r, POD "b", "{}"); /* any object's event */
    expect(r, &w, "/b:- ");
    assert_true(kube_cache_shows(c, version, lists));
    assert_false(kube_cache_shows(c, "9999", lists));
    assert_false(kube_cache_is_listed(c, lists));
    kube_cache_relist(c, false);
    expect(r, &w, "/a:- /b:- ");
    assert_true(kube_cache_is_listed(c, lists));
    assert_true(kube_cache_shows(c, "9999", lists)); /* etcd may have been restored */
    assert_false(kube_cache_shows(c, "9999", kube_cache_lists(c)));
    /* what a restored etcd answers meanwhile counts from a lower number, and the copy is from before */
    assert_true(kube_cache_shows(c, "1", kube_cache_lists(c)));
    kube_cache_relist(c, false);
    assert_false(kube_cache_shows(c, "1", kube_cache_lists(c)));
    expect(r, &w, "/a:- /b:- ");
}

/* An event of nobody knows which object: the copy is not at its version, and is listed again. */
static void test_an_event_without_names(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};

    rig_put(r, POD "a", "{}");
    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    expect(r, &w, "/a:- ");
    while (!fake_open_watches(r->server))
        assert_int_equal(kube_loop_turn(r->loop, 1, &(struct err){0}), 0);
    fake_watch_raw(r->server, "{'type':'DELETED','object':{'metadata':{'namespace':'ns','name':'\\u0061','"
                              "uid':'u','resourceVersion':'9999'},'a':'\\u0000'}}\n");
    assert_true(fake_remove(r->server, POD "a"));
    rig_until(r->loop, has_problem, &w);
    assert_string_equal(w.problem,
                        "watch event: a Pod without a readable metadata.name, uid or resourceVersion");
    assert_false(kube_cache_shows(c, "9998", kube_cache_lists(c)));
    expect(r, &w, "-a /a:- ");
    assert_int_equal(w.synced, 2);
}

/* What a bookmark is for: nothing of ours changed, the past was forgotten, and still no list is needed. */
static void test_a_bookmark_saves_the_list(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};

    rig_put(r, POD "a", "{}");
    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    rig_until(r->loop, is_watching, &w);
    fake_compact(r->server);
    fake_bookmark(r->server);
    fake_close_watches(r->server);
    rig_put(r, POD "b", "{}");
    rig_until(r->loop, is_watching, &w);
    assert_int_equal(w.problems, 0);
    assert_int_equal(kube_cache_stats(c).lists, 1);
}

/* Accepted and never answered, or half of a list: given up after half a minute, not after a watch's two and a half. */
static void test_lists_that_stall(void **ctx)
{
    static const enum fake_fault HOW[] = {FAKE_HANG_BEFORE, FAKE_STALL_BODY};
    struct rig *r = *ctx;

    rig_put(r, POD "a", "{}");
    rig_put(r, POD "b", "{}");
    for (size_t i = 0; i < ARRAY_LEN(HOW); i++) {
        struct watch w = {0};
        fake_close_watches(r->server);
        fake_strike(r->server, "LIST", NULL, HOW[i]);
        cleanup_kube_cache struct kube_cache *c = start(r, &w);
        int64_t begin = kube_loop_now_ms(r->loop);
        rig_until(r->loop, is_watching, &w);
        assert_true(kube_loop_now_ms(r->loop) - begin >= KUBE_TRANSPORT_TIMEOUT_MS);
        assert_int_equal(w.problems, 1);
        assert_non_null(strstr(w.problem, "no data for 30000 ms"));
        assert_int_equal(kube_cache_stats(c).lists, 2);
    }
}

/* Half a line of a watch; then silence. */
static void test_a_watch_that_stalls(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};

    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    rig_until(r->loop, is_watching, &w);
    fake_watch_raw(r->server, "{'type':'MODIFIED','obj");
    rig_until(r->loop, has_problem, &w);
    assert_non_null(strstr(w.problem, "no data for 150000 ms"));
    rig_put(r, POD "c", "{}");
    expect(r, &w, "/c:- ");
    assert_int_equal(kube_store_count(kube_cache_store(c)), 1);
}

static int trims;
int __wrap_malloc_trim(size_t pad); /* see CMakeLists.txt */

int __wrap_malloc_trim(size_t pad)
{
    (void)pad;
    trims++;
    return 0;
}

static void put_many(struct rig *r, const char *word, int n, const char *json)
{
    char path[80];

    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), POD "%s-%d", word, i);
        rig_put(r, path, json);
    }
}

/* After a list, and after many small objects as after a large one. */
static void test_memory_is_given_back(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};
    char json[3000];
    int before = trims;

    cleanup_kube_cache struct kube_cache *c = start(r, &w);
    rig_until(r->loop, is_watching, &w);
    assert_int_equal(trims, before + 1);
    put_many(r, "few", 50, "{}");
    rig_until(r->loop, is_whole, &w);
    assert_int_equal(trims, before + 1);
    before = trims;
    snprintf(json, sizeof(json), "{'status':{'message':'%02500d'}}", 0);
    put_many(r, "many", 200, json);
    RIG_UNTIL(r->loop, trims > before);
    assert_true(kube_store_count(kube_cache_store(c)) > 50);
}

/* ---- a list whose text is the test's own */

struct canned {
    struct kube_http_handler handler;
    const char *list; /* the next one */
    int asked;
};

static struct kube_transfer *ask_canned(void *ctx, const struct kube_http_request *req,
                                        const struct kube_http_handler *handler, struct err *err)
{
    struct canned *d = ctx;

    (void)req, (void)err;
    d->handler = *handler;
    d->asked++;
    return (struct kube_transfer *)ctx;
}

static void cancel_canned(void *ctx, struct kube_transfer *transfer)
{
    (void)ctx, (void)transfer;
}

static void give_list(struct rig *r, struct canned *d, struct kube_cache *c, const char *items)
{
    const struct kube_http_response ok = {.status = 200, .retry_after_ms = -1};
    char text[1024];
    struct err err;

    kube_cache_relist(c, true);
    for (int asked = d->asked; d->asked == asked;)
        assert_int_equal(kube_loop_turn(r->loop, 1, &err), 0);
    snprintf(text, sizeof(text),
             "{'kind':'PodList','apiVersion':'v1','metadata':{'resourceVersion':'9'},'items':[%s]}", items);
    cleanup_free char *json = jsontext(text);
    d->handler.chunk(d->handler.ctx, sv_from(json));
    d->handler.done(d->handler.ctx, &ok, NULL);
}

static void unsure(void *value)
{
    *(char *)value = '?';
}

#define ITEM(ns, name, uid)                                                                                  \
    "{'metadata':{'namespace':'" ns "','name':'" name "','uid':'" uid "','resourceVersion':'1'}}"
#define BAD(ns, name, uid)                                                                                   \
    "{'metadata':{'namespace':'" ns "','name':'" name "','uid':'" uid                                        \
    "','resourceVersion':'1'},'a':'\\u0000'}"

static const char *kept(const struct kube_cache *c, const char *ns, const char *name)
{
    const struct kube_store_entry *e = kube_store_get(kube_cache_store(c), ns, name);

    return e ? e->value : "gone";
}

/* An item removes nothing that it may be: of its UID or owner nothing is known, or of its name. Others go as ever. */
static void test_items_that_cannot_be_told(void **ctx)
{
    struct rig *r = *ctx;
    struct watch w = {0};
    struct canned d = {0};
    const struct kube_transport t = {.start = ask_canned, .cancel = cancel_canned, .ctx = &d};
    struct kube_cache_options o = {.watch = {.resource = KUBE_PODS},
                                   .decode = decode,
                                   .unsure = unsure,
                                   .free_value = free,
                                   .changed = changed,
                                   .synced = synced,
                                   .problem = problem,
                                   .ctx = &w};
    static const char ALL[] = ITEM("x", "a", "1") "," ITEM("x", "b", "2") "," ITEM("y", "c", "3");

    cleanup_kube_cache struct kube_cache *c = kube_cache_new(r->loop, &t, &o);
    give_list(r, &d, c, ALL);
    give_list(r, &d, c, BAD("x", "a", "\\u0031")); /* its UID cannot be read */
    assert_string_equal(kept(c, "x", "a"), "?");
    assert_string_equal(kept(c, "x", "b"), "gone");
    assert_string_equal(kept(c, "y", "c"), "gone");
    assert_non_null(strstr(w.seen, " /a:?"));
    give_list(r, &d, c, ALL);
    assert_string_equal(kept(c, "x", "a"), "-");
    give_list(r, &d, c, BAD("x", "\\u0061", "1")); /* its name cannot be read, its namespace can */
    assert_string_equal(kept(c, "x", "a"), "?");
    assert_string_equal(kept(c, "x", "b"), "?");
    assert_string_equal(kept(c, "y", "c"), "gone");
    give_list(r, &d, c, ALL);
    w.seen[0] = '\0';
    give_list(r, &d, c, BAD("\\u0078", "\\u0061", "1") "," ITEM("x", "b", "2"));
    assert_null(strstr(w.seen, "/b:?")); /* which one is unsure shows at the end of the list */
    assert_non_null(strstr(w.seen, "/a:?"));
    assert_string_equal(kept(c, "x", "a"), "?");
    assert_string_equal(kept(c, "x", "b"), "-");
    assert_string_equal(kept(c, "y", "c"), "?");
    give_list(r, &d, c, ALL);
    give_list(r, &d, c, BAD("\\u0078", "a", "1")); /* its name can be read, its namespace cannot */
    assert_string_equal(kept(c, "x", "a"), "?");
    assert_string_equal(kept(c, "y", "c"), "?");
    give_list(r, &d, c, ALL);
    give_list(r, &d, c, ITEM("x", "b", "2")); /* a complete list */
    assert_string_equal(kept(c, "x", "a"), "gone");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup_fast, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(test_changes),
        T(test_unreadable),
        T(test_what_it_shows),
        T(test_an_event_without_names),
        T(test_a_bookmark_saves_the_list),
        T(test_lists_that_stall),
        T(test_a_watch_that_stalls),
        T(test_memory_is_given_back),
        T(test_items_that_cannot_be_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
