/* test_watcher.c - every way in which a list or a watch can go, and what is asked next. No network, no clock. */
#include "kube/watcher.h"

#include "common/cleanup.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rig {
    struct watcher *w;
    struct arena a;
    struct http_request req;
    char seen[8192]; /* "[" replace_begin, "+name" upsert, "-name" removed, "]" replace_end, "!" problem */
    char problem[ERR_MSG_BYTES];
    int64_t now;
};

static void add(struct rig *r, const char *mark, const char *text)
{
    size_t len = strlen(r->seen);

    snprintf(r->seen + len, sizeof(r->seen) - len, "%s%s ", mark, text);
}

static const char *name_of(const cJSON *o)
{
    return cJSON_GetObjectItem(cJSON_GetObjectItem(o, "metadata"), "name")->valuestring;
}

static void on_begin(void *ctx)
{
    add(ctx, "[", "");
}

static void on_end(void *ctx)
{
    add(ctx, "]", "");
}

static void on_upsert(void *ctx, const cJSON *o)
{
    add(ctx, "+", name_of(o));
}

static void on_removed(void *ctx, const cJSON *o)
{
    add(ctx, "-", name_of(o));
}

static void on_problem(void *ctx, const struct err *err)
{
    struct rig *r = ctx;

    add(r, "!", "");
    snprintf(r->problem, sizeof(r->problem), "%s", err->msg);
}

static int setup_with(void **ctx, bool pages)
{
    struct rig *r = calloc(1, sizeof(*r));
    struct watcher_options o = {
        .resource = KUBE_PODS, .ns = "ns", .label_selector = "app=x", .seed = 42, .pages = pages};
    struct watcher_sink sink = {r, on_begin, on_end, on_upsert, on_removed, on_problem};

    assert_non_null(r);
    r->w = watcher_new(&o, &sink);
    r->now = 1000000;
    *ctx = r;
    return 0;
}

static int setup_stream(void **ctx)
{
    return setup_with(ctx, false);
}

static int setup_pages(void **ctx)
{
    return setup_with(ctx, true);
}

static int teardown(void **ctx)
{
    struct rig *r = *ctx;

    watcher_free(r->w);
    arena_release(&r->a);
    free(r);
    return 0;
}

/* The next request must have this in its path. */
static void asks(struct rig *r, const char *path_part)
{
    struct err err;

    watcher_begin(r->w, r->now);
    assert_int_equal(watcher_request(r->w, &r->a, &r->req, &err), 0);
    if (!strstr(r->req.path, path_part))
        fail_msg("expected \"%s\" in %s", path_part, r->req.path);
}

static int feed(struct rig *r, const char *bytes)
{
    return watcher_feed(r->w, sv_from(bytes), r->now);
}

static int64_t ends(struct rig *r, int status)
{
    return watcher_end(r->w, r->now, &(struct http_response){.status = status, .retry_after_ms = -1}, NULL);
}

static int64_t breaks(struct rig *r, enum err_kind kind)
{
    struct err err;

    err_set(&err, kind, "as asked");
    return watcher_end(r->w, r->now, NULL, &err);
}

static void saw(struct rig *r, const char *expected)
{
    assert_string_equal(r->seen, expected);
    r->seen[0] = '\0';
}

#define META(name, rv)                                                                                       \
    "\"metadata\":{\"name\":\"" name "\",\"uid\":\"u-" name "\",\"resourceVersion\":\"" rv "\"}"
#define ITEM(name, rv) "{" META(name, rv) "}"
#define LIST(rv, more, items)                                                                                \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv                    \
    "\",\"continue\":\"" more "\"},\"items\":[" items "]}\n"
#define EVENT(type, name, rv) "{\"type\":\"" type "\",\"object\":{\"kind\":\"Pod\"," META(name, rv) "}}\n"
#define BOOKMARK(rv)                                                                                         \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"" rv "\"}}}\n"
#define END(rv)                                                                                              \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"" rv            \
    "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"
#define ERROR(code, reason)                                                                                  \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":" #code ",\"reason\":\"" reason            \
    "\",\"message\":\"no\"}}\n"

/* Most of the tests are about lists in pages: a server that refuses the stream, once and for all. */
static int setup(void **ctx)
{
    setup_stream(ctx);
    struct rig *r = *ctx;
    asks(r, "sendInitialEvents=true");
    assert_int_equal(ends(r, 422), 0);
    saw(r, ""); /* no reason to worry anyone */
    assert_true(watcher_stats(r->w).no_streams);
    return 0;
}

static void synced(struct rig *r)
{
    asks(r, "/api/v1/namespaces/ns/pods?");
    assert_int_equal(feed(r, LIST("10", "", ITEM("a", "5") "," ITEM("b", "6"))), 0);
    assert_int_equal(ends(r, 200), 0);
    saw(r, "[ +a +b ] ");
    assert_true(watcher_stats(r->w).synced);
}

/* Liveness asks whether the server answers at all, not whether we like the answer. */
static void test_an_error_is_an_answer(void **ctx)
{
    static const int CODES[] = {404, 403, 503};
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        r->now += 100000;
        asks(r, "/pods?");
        ends(r, CODES[i]);
        assert_int_equal(watcher_stats(r->w).progress_ms, r->now);
    }
    int64_t heard = r->now;
    r->now += 100000;
    asks(r, "/pods?");
    breaks(r, ERR_TRANSIENT);
    assert_int_equal(watcher_stats(r->w).progress_ms, heard);
}

static void test_list_then_watch(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "/api/v1/namespaces/ns/pods?labelSelector=app%3Dx&limit=500");
    assert_null(strstr(r->req.path, "resourceVersion")); /* a quorum read */
    assert_int_equal(r->req.timeout_ms, 0);
    assert_true(r->req.idle_timeout_ms > 0);
    assert_false(watcher_stats(r->w).synced);
    assert_int_equal(feed(r, LIST("10", "", ITEM("a", "5"))), 0);
    assert_int_equal(ends(r, 200), 0);
    saw(r, "[ +a ] ");
    asks(r, "watch=true&labelSelector=app%3Dx&resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=");
    int seconds = atoi(strstr(r->req.path, "timeoutSeconds=") + 15);
    assert_in_range(seconds, 300, 599);
    assert_int_equal(r->req.idle_timeout_ms, WATCHER_IDLE_MS);
    assert_true(r->req.own_connection);
    assert_int_equal(
        feed(r, EVENT("ADDED", "b", "11") EVENT("MODIFIED", "a", "12") EVENT("DELETED", "a", "13")), 0);
    saw(r, "+b +a -a ");
    assert_int_equal(ends(r, 200), 0);
    asks(r, "resourceVersion=13");
    assert_int_equal(watcher_stats(r->w).lists, 2); /* with the stream that was refused */
    assert_int_equal(watcher_stats(r->w).syncs, 1);
    assert_int_equal(watcher_stats(r->w).watches, 2);
    assert_int_equal(watcher_stats(r->w).events, 4);
}

static void test_empty_list_is_a_list(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "limit=500");
    assert_int_equal(
        feed(r, "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}"), 0);
    assert_int_equal(ends(r, 200), 0);
    saw(r, "[ ] ");
    assert_true(watcher_stats(r->w).synced);
}

static void test_pages(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "limit=500");
    assert_int_equal(feed(r, LIST("10", "tok=1", ITEM("a", "5"))), 0);
    assert_int_equal(ends(r, 200), 0);
    saw(r, "[ +a ");
    assert_false(watcher_stats(r->w).synced);
    asks(r, "continue=tok%3D1");
    assert_int_equal(feed(r, LIST("10", "", ITEM("b", "6"))), 0);
    assert_int_equal(ends(r, 200), 0);
    saw(r, "+b ] ");
    asks(r, "watch=true");
    assert_int_equal(watcher_stats(r->w).lists, 2);
}

static void test_expired_continue_falls_back_to_one_list(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "limit=500");
    assert_int_equal(feed(r, LIST("10", "tok", ITEM("a", "5"))), 0);
    assert_int_equal(ends(r, 200), 0);
    asks(r, "continue=tok");
    assert_int_equal(ends(r, 410), 0);
    saw(r, "[ +a ! ");
    asks(r, "/pods?labelSelector");
    assert_null(strstr(r->req.path, "limit="));
    assert_null(strstr(r->req.path, "continue="));
    /* begun again: what was seen before the failure proves nothing */
    assert_int_equal(feed(r, LIST("20", "", ITEM("b", "6"))), 0);
    assert_int_equal(ends(r, 200), 0);
    saw(r, "[ +b ] ");
}

static void test_bookmarks_move_the_start(void **ctx)
{
    struct rig *r = *ctx;

    synced(r);
    asks(r, "resourceVersion=10");
    assert_int_equal(feed(r, BOOKMARK("77")), 0);
    saw(r, "");
    assert_true(breaks(r, ERR_TRANSIENT) >= WATCHER_BACKOFF_MIN_MS);
    asks(r, "resourceVersion=77");
}

static void test_gone_as_http_status(void **ctx)
{
    struct rig *r = *ctx;

    synced(r);
    asks(r, "watch=true");
    assert_int_equal(ends(r, 410), 0); /* at once */
    saw(r, "! ");
    asks(r, "limit=500");
    assert_int_equal(feed(r, LIST("30", "", ITEM("b", "6"))), 0);
    assert_int_equal(ends(r, 200), 0);
    saw(r, "[ +b ] "); /* a replace: whoever keeps a store drops "a" now */
    asks(r, "resourceVersion=30");
    assert_true(ends(r, 410) >= WATCHER_BACKOFF_MIN_MS); /* but not for ever at once */
}

static void test_gone_inside_the_stream(void **ctx)
{
    static const char *const shapes[] = {ERROR(410, "Expired"), ERROR(410, "Gone")};
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        synced(r);
        asks(r, "watch=true");
        assert_int_equal(feed(r, EVENT("MODIFIED", "a", "12")), 0);
        assert_int_equal(feed(r, shapes[i]), -1);
        assert_int_equal(watcher_end(r->w, r->now, NULL, NULL), 0);
        saw(r, "+a ! ");
        asks(r, "limit=500");
        r->now += WATCHER_QUIET_MS;
    }
}

static void test_stream_errors_resume_then_relist(void **ctx)
{
    struct rig *r = *ctx;

    synced(r);
    for (int i = 1; i < WATCHER_RESUMES; i++) {
        asks(r, "resourceVersion=10");
        assert_int_equal(feed(r, ERROR(500, "InternalError")), -1);
        assert_true(watcher_end(r->w, r->now, NULL, NULL) >= WATCHER_BACKOFF_MIN_MS);
    }
    asks(r, "resourceVersion=10");
    assert_int_equal(feed(r, ERROR(500, "InternalError")), -1);
    watcher_end(r->w, r->now, NULL, NULL);
    asks(r, "limit=500");
}

/* Whoever was away for long may have come back as he was earlier. */
static void test_long_outages_relist(void **ctx)
{
    struct rig *r = *ctx;

    synced(r);
    asks(r, "resourceVersion=10");
    assert_true(breaks(r, ERR_TRANSIENT) > 0);
    r->now += WATCHER_AWAY_MS - 1;
    asks(r, "resourceVersion=10");
    assert_true(breaks(r, ERR_TRANSIENT) > 0);
    r->now += 1; /* since the first one failed */
    asks(r, "limit=500");
}

static void test_progress_resets_the_resumes(void **ctx)
{
    struct rig *r = *ctx;

    synced(r);
    for (int i = 0; i < 3 * WATCHER_RESUMES; i++) {
        char event[200];
        snprintf(event, sizeof(event), "%s%d\"}}}\n",
                 "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\",\"uid\":\"u\","
                 "\"resourceVersion\":\"",
                 100 + i);
        asks(r, "watch=true");
        assert_int_equal(feed(r, event), 0);
        assert_true(breaks(r, ERR_TRANSIENT) > 0);
    }
    asks(r, "resourceVersion=108");
    assert_int_equal(watcher_stats(r->w).lists, 2);
}

static void test_useless_streams_relist(void **ctx)
{
    static const char *const bad[] = {
        "this is not JSON\n",
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"meta\n",
        "{\"type\":\"ADDED\"}\n",
        "[]\n",
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Service\"," META("a", "12") "}}\n",
        "{\"type\":\"RENAMED\",\"object\":{\"kind\":\"Pod\"," META("a", "12") "}}\n",
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}}\n",
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"uid\":\"u\",\"resourceVersion\":"
        "\"1\"}}}\n",
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":"
        "\"1\"}}}\n",
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{}}}\n",
        ERROR(403, "Forbidden"),
        ERROR(400, "BadRequest"),
    };
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        synced(r);
        asks(r, "watch=true");
        if (feed(r, bad[i]) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_true(watcher_end(r->w, r->now, NULL, NULL) >= WATCHER_BACKOFF_MIN_MS);
        saw(r, "! ");
        asks(r, "limit=500");
    }
}

static void test_useless_lists_are_asked_again(void **ctx)
{
    static const struct {
        const char *body;
        bool refused_early;
    } bad[] = {
        {"{\"kind\":\"ServiceList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}", false},
        {"{\"kind\":\"PodListX\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}", false},
        {"{\"kind\":\"PodList\",\"metadata\":{},\"items\":[]}", false},
        {"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"\"},\"items\":[]}", false},
        {"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[" ITEM("a", "5"), false},
        {"{\"items\":[{\"metadata\":{\"name\":\"a\"}}]}", true},
        {"{\"items\":[{\"kind\":\"Node\"," META("a", "5") "}]}", true},
        {"{\"items\":[{]}]}", true},
        {"<html>", true},
        {"", false},
    };
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        asks(r, "limit=500");
        assert_int_equal(feed(r, bad[i].body), bad[i].refused_early ? -1 : 0);
        int64_t delay = bad[i].refused_early ? watcher_end(r->w, r->now, NULL, NULL) : ends(r, 200);
        assert_true(delay >= WATCHER_BACKOFF_MIN_MS);
        assert_null(strchr(r->seen, ']'));
        assert_non_null(strchr(r->seen, '!'));
        r->seen[0] = '\0';
    }
    assert_false(watcher_stats(r->w).synced);
    synced(r);
}

static void test_short_watch_backs_off(void **ctx)
{
    struct rig *r = *ctx;

    synced(r);
    asks(r, "watch=true");
    r->now += WATCHER_SHORT_MS - 1;
    assert_true(ends(r, 200) >= WATCHER_BACKOFF_MIN_MS);
    assert_non_null(strstr(r->problem, "without an event"));
    asks(r, "resourceVersion=10");
    r->now += WATCHER_SHORT_MS;
    assert_int_equal(ends(r, 200), 0);
    /* One that says only what is known already is no better. */
    asks(r, "resourceVersion=10");
    assert_int_equal(feed(r, BOOKMARK("10")), 0);
    assert_true(ends(r, 200) >= WATCHER_BACKOFF_MIN_MS);
}

static void test_http_errors(void **ctx)
{
    static const struct {
        int status;
        bool resume;
    } rows[] = {{429, true}, {500, true}, {503, true}, {401, true}, {403, false}, {404, false}, {400, false}};
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        synced(r);
        asks(r, "watch=true");
        assert_true(ends(r, rows[i].status) >= WATCHER_BACKOFF_MIN_MS);
        asks(r, rows[i].resume ? "watch=true" : "limit=500");
        ends(r, rows[i].resume ? 410 : 500); /* back to a list for the next row */
        r->seen[0] = '\0';
        r->now += WATCHER_QUIET_MS;
    }
}

static void test_retry_after_is_honoured(void **ctx)
{
    struct rig *r = *ctx;

    synced(r);
    asks(r, "watch=true");
    struct http_response busy = {.status = 429, .retry_after_ms = 45000};
    assert_int_equal(watcher_end(r->w, r->now, &busy, NULL), 45000);
    /* Also when everything is asked for: the first page, and one after. */
    asks(r, "resourceVersion=10");
    ends(r, 410);
    asks(r, "limit=500");
    assert_int_equal(watcher_end(r->w, r->now, &busy, NULL), 45000);
    asks(r, "limit=500");
    assert_int_equal(feed(r, LIST("10", "tok", ITEM("a", "5"))), 0);
    assert_int_equal(ends(r, 200), 0);
    asks(r, "continue=tok");
    busy.retry_after_ms = 100000;
    assert_int_equal(watcher_end(r->w, r->now, &busy, NULL), 100000);
}

static void test_back_off_grows_to_its_cap_and_rests(void **ctx)
{
    struct rig *r = *ctx;
    int64_t base = WATCHER_BACKOFF_MIN_MS;

    for (int i = 0; i < 12; i++) {
        asks(r, "limit=500");
        int64_t delay = breaks(r, ERR_TRANSIENT);
        assert_true(delay >= base && delay < 2 * base);
        base = 2 * base < WATCHER_BACKOFF_MAX_MS ? 2 * base : WATCHER_BACKOFF_MAX_MS;
        r->now += delay;
    }
    r->now += WATCHER_QUIET_MS;
    asks(r, "limit=500");
    assert_true(breaks(r, ERR_TRANSIENT) < 2 * WATCHER_BACKOFF_MIN_MS);
}

/* A truth told in random pieces, broken off at random places, still ends in the same copy. */
static void test_random_pieces(void **ctx)
{
    static const char stream[] =
        EVENT("ADDED", "c", "11") BOOKMARK("12") EVENT("MODIFIED", "a", "13") EVENT("DELETED", "b", "14");
    struct rig *r = *ctx;
    uint32_t seed = 3;

    synced(r);
    for (int round = 0; round < 300; round++) {
        asks(r, "watch=true");
        for (size_t at = 0; at < sizeof(stream) - 1;) {
            seed = seed * 1664525U + 1013904223U;
            size_t n = 1 + (seed >> 8) % 40;
            n = n < sizeof(stream) - 1 - at ? n : sizeof(stream) - 1 - at;
            assert_int_equal(watcher_feed(r->w, (struct sv){stream + at, n}, r->now), 0);
            at += n;
        }
        assert_int_equal(ends(r, 200), 0);
        saw(r, "+c +a -b ");
        asks(r, "resourceVersion=14");
        r->now += WATCHER_QUIET_MS;
        ends(r, 200);
    }
}

static void test_a_line_without_end_is_refused(void **ctx)
{
    static char piece[100001];
    struct rig *r = *ctx;
    int rc = 0;
    int n = 0;

    synced(r);
    asks(r, "watch=true");
    memset(piece, 'x', sizeof(piece) - 1);
    for (; rc == 0 && n < 100; n++)
        rc = feed(r, piece);
    assert_int_equal(rc, -1);
    assert_int_equal(n, WATCHER_OBJECT_MAX_BYTES / 100000 + 1);
}

/* --- the list as a stream ------------------------------------------------------------------------------ */

static void streamed(struct rig *r)
{
    asks(r, "sendInitialEvents=true");
    assert_int_equal(feed(r, EVENT("ADDED", "b", "6") EVENT("ADDED", "a", "5") END("10")), 0);
    saw(r, "[ +b +a ] ");
}

static void test_stream_then_watch(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "/api/v1/namespaces/ns/pods?watch=true&labelSelector=app%3Dx&resourceVersionMatch=NotOlderThan"
            "&sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=");
    assert_null(strstr(r->req.path, "resourceVersion=")); /* as fresh as etcd */
    assert_true(r->req.own_connection);
    assert_int_equal(r->req.idle_timeout_ms, WATCHER_IDLE_MS);
    assert_int_equal(feed(r, EVENT("ADDED", "b", "6") EVENT("ADDED", "a", "5")), 0);
    assert_false(watcher_stats(r->w).synced);
    assert_int_equal(feed(r, END("10")), 0);
    saw(r, "[ +b +a ] ");
    assert_true(watcher_stats(r->w).synced);
    assert_int_equal(feed(r, EVENT("MODIFIED", "a", "12") BOOKMARK("13") EVENT("DELETED", "b", "14")), 0);
    saw(r, "+a -b ");
    assert_int_equal(ends(r, 200), 0);
    asks(r, "resourceVersion=14&allow");
    assert_null(strstr(r->req.path, "sendInitialEvents"));
    assert_int_equal(watcher_stats(r->w).lists, 1);
    assert_int_equal(watcher_stats(r->w).syncs, 1);
    assert_int_equal(watcher_stats(r->w).watches, 1);
    assert_false(watcher_stats(r->w).no_streams);
}

static void test_streams_not_wanted(void **ctx)
{
    struct rig *r = *ctx;

    for (int i = 0; i < 2; i++) {
        asks(r, "limit=500");
        assert_null(strstr(r->req.path, "sendInitialEvents"));
        assert_int_equal(feed(r, LIST("10", "", ITEM("a", "5"))), 0);
        assert_int_equal(ends(r, 200), 0);
        saw(r, "[ +a ] ");
        asks(r, "watch=true");
        assert_null(strstr(r->req.path, "sendInitialEvents"));
        ends(r, 410);
        r->seen[0] = '\0';
    }
}

/* One that ends at once after its first part has done its work: no failure, and on from the bookmark. */
static void test_stream_of_nothing(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "sendInitialEvents=true");
    assert_int_equal(feed(r, END("10")), 0);
    saw(r, "[ ] ");
    assert_int_equal(ends(r, 200), 0);
    asks(r, "resourceVersion=10");
}

/* Servers may mix what happens meanwhile into the first part. */
static void test_changes_within_the_first_part(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "sendInitialEvents=true");
    assert_int_equal(feed(r, EVENT("ADDED", "a", "5") EVENT("ADDED", "b", "6") EVENT("MODIFIED", "b", "11")
                                 EVENT("DELETED", "a", "12") END("12")),
                     0);
    saw(r, "[ +a +b +b -a ] ");
}

static void test_broken_streams_start_over(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "sendInitialEvents=true");
    assert_int_equal(feed(r, EVENT("ADDED", "a", "5")), 0);
    assert_true(breaks(r, ERR_TRANSIENT) >= WATCHER_BACKOFF_MIN_MS);
    saw(r, "[ +a ! "); /* no end: nothing is gone yet, and "a" proves nothing */
    asks(r, "sendInitialEvents=true");
    assert_null(strstr(r->req.path, "resourceVersion=")); /* 5 was no place to go on from */
    assert_int_equal(feed(r, EVENT("ADDED", "b", "6")), 0);
    assert_true(ends(r, 200) >= WATCHER_BACKOFF_MIN_MS); /* orderly, but not all of it */
    saw(r, "[ +b ! ");
    assert_non_null(strstr(r->problem, "within the initial events"));
    assert_false(watcher_stats(r->w).synced);
    streamed(r);
}

static void test_streams_in_vain_become_a_list_once(void **ctx)
{
    struct rig *r = *ctx;

    for (int i = 0; i < WATCHER_RESUMES; i++) {
        asks(r, "sendInitialEvents=true");
        assert_true(breaks(r, ERR_TIMEOUT) >= WATCHER_BACKOFF_MIN_MS);
    }
    asks(r, "limit=500");
    assert_int_equal(feed(r, LIST("10", "", ITEM("a", "5"))), 0);
    assert_int_equal(ends(r, 200), 0);
    r->now += WATCHER_QUIET_MS;
    asks(r, "resourceVersion=10");
    assert_int_equal(ends(r, 410), 0);
    r->seen[0] = '\0';
    streamed(r); /* the stream may work again by now */
}

static void test_refused_streams_are_not_asked_again(void **ctx)
{
    static const int CODES[] = {400, 422};
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        teardown(ctx);
        setup_stream(ctx);
        r = *ctx;
        asks(r, "sendInitialEvents=true");
        assert_int_equal(ends(r, CODES[i]), 0);
        assert_int_equal(watcher_stats(r->w).failures, 0);
        for (int k = 0; k < 3; k++) {
            synced(r);
            asks(r, "resourceVersion=10");
            ends(r, 410);
            r->seen[0] = '\0';
        }
    }
}

/* The refusal may come as an event, too: the etcd storage and the cacher refuse after the head was sent. */
static void test_refused_inside_the_stream(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "sendInitialEvents=true");
    assert_int_equal(feed(r, ERROR(422, "Invalid")), -1);
    assert_int_equal(watcher_end(r->w, r->now, NULL, NULL), 0);
    synced(r);
}

/* An old server gives the same events as an ordinary watch would, and no end of them: its first bookmark tells. */
static void test_ignored_parameter(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "sendInitialEvents=true");
    assert_int_equal(feed(r, EVENT("ADDED", "a", "5") EVENT("ADDED", "x", "6")), 0);
    assert_int_equal(feed(r, BOOKMARK("9")), -1);
    assert_int_equal(watcher_end(r->w, r->now, NULL, NULL), 0);
    saw(r, "[ +a +x ");
    assert_true(watcher_stats(r->w).no_streams);
    assert_false(watcher_stats(r->w).synced);
    synced(r); /* its "[" comes again: "x", which the list does not have, goes with its "]" */
}

/* Not the stream's fault: nothing is remembered. */
static void test_other_errors_of_a_stream(void **ctx)
{
    static const int CODES[] = {401, 403, 404, 429, 500, 503, 504};
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        asks(r, "sendInitialEvents=true");
        assert_true(ends(r, CODES[i]) >= WATCHER_BACKOFF_MIN_MS);
        r->seen[0] = '\0';
        r->now += WATCHER_QUIET_MS;
        streamed(r);
        assert_int_equal(ends(r, 410), 0); /* a relist, again as a stream */
        r->seen[0] = '\0';
        r->now += WATCHER_QUIET_MS;
    }
    assert_false(watcher_stats(r->w).no_streams);
}

static void test_retry_after_of_a_stream(void **ctx)
{
    struct rig *r = *ctx;
    struct http_response busy = {.status = 429, .retry_after_ms = 45000};

    asks(r, "sendInitialEvents=true");
    assert_int_equal(watcher_end(r->w, r->now, &busy, NULL), 45000);
    /* In an event it stands in the details. */
    asks(r, "sendInitialEvents=true");
    assert_int_equal(feed(r, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":429,\"reason\":"
                             "\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":70}}}\n"),
                     -1);
    assert_int_equal(watcher_end(r->w, r->now, NULL, NULL), 70000);
}

static void test_gone_during_and_after_the_first_part(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "sendInitialEvents=true");
    assert_int_equal(feed(r, EVENT("ADDED", "a", "5") ERROR(410, "Expired")), -1);
    assert_int_equal(watcher_end(r->w, r->now, NULL, NULL), 0); /* at once */
    saw(r, "[ +a ! ");
    asks(r, "sendInitialEvents=true");
    assert_true(ends(r, 410) >= WATCHER_BACKOFF_MIN_MS); /* but not for ever at once */
    saw(r, "! ");
    r->now += WATCHER_QUIET_MS;
    streamed(r);
    assert_int_equal(feed(r, ERROR(410, "Gone")), -1);
    assert_int_equal(watcher_end(r->w, r->now, NULL, NULL), 0);
    saw(r, "! ");
    asks(r, "sendInitialEvents=true");
    /* As often as it likes: expiry alone never makes it a list. */
    for (int i = 0; i < 3 * WATCHER_RESUMES; i++) {
        ends(r, 410);
        asks(r, "sendInitialEvents=true");
    }
}

static void test_deadline(void **ctx)
{
    struct rig *r = *ctx;

    asks(r, "sendInitialEvents=true");
    assert_int_equal(watcher_deadline_ms(r->w), r->now + TRANSPORT_TIMEOUT_MS);
    r->now += 20000;
    assert_int_equal(feed(r, "{\"type\":\"ADD"), 0); /* any byte moves it */
    assert_int_equal(watcher_deadline_ms(r->w), r->now + TRANSPORT_TIMEOUT_MS);
    breaks(r, ERR_TIMEOUT);
    saw(r, "! ");
    streamed(r);
    assert_true(watcher_deadline_ms(r->w) == INT64_MAX); /* a watch may be quiet */
    ends(r, 200);
    asks(r, "resourceVersion=10");
    assert_true(watcher_deadline_ms(r->w) == INT64_MAX);
}

static void test_useless_streams_start_over(void **ctx)
{
    static const char *const bad[] = {
        "this is not JSON\n",
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Service\"," META("a", "12") "}}\n",
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{}}}\n",
        EVENT("RENAMED", "a", "12"),
    };
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        asks(r, "sendInitialEvents=true");
        if (feed(r, bad[i]) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_true(watcher_end(r->w, r->now, NULL, NULL) >= WATCHER_BACKOFF_MIN_MS);
        saw(r, "! ");
        streamed(r);
        ends(r, 410);
        r->seen[0] = '\0';
        r->now += WATCHER_QUIET_MS;
    }
}

int main(void)
{
#define S(f) cmocka_unit_test_setup_teardown(f, setup_stream, teardown)
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_an_error_is_an_answer),
        T(test_list_then_watch),
        T(test_empty_list_is_a_list),
        T(test_pages),
        T(test_expired_continue_falls_back_to_one_list),
        T(test_bookmarks_move_the_start),
        T(test_gone_as_http_status),
        T(test_gone_inside_the_stream),
        T(test_stream_errors_resume_then_relist),
        T(test_long_outages_relist),
        T(test_progress_resets_the_resumes),
        T(test_useless_streams_relist),
        T(test_useless_lists_are_asked_again),
        T(test_short_watch_backs_off),
        T(test_http_errors),
        T(test_retry_after_is_honoured),
        T(test_back_off_grows_to_its_cap_and_rests),
        T(test_random_pieces),
        T(test_a_line_without_end_is_refused),
        cmocka_unit_test_setup_teardown(test_streams_not_wanted, setup_pages, teardown),
        S(test_stream_then_watch),
        S(test_stream_of_nothing),
        S(test_changes_within_the_first_part),
        S(test_broken_streams_start_over),
        S(test_streams_in_vain_become_a_list_once),
        S(test_refused_streams_are_not_asked_again),
        S(test_refused_inside_the_stream),
        S(test_ignored_parameter),
        S(test_other_errors_of_a_stream),
        S(test_retry_after_of_a_stream),
        S(test_gone_during_and_after_the_first_part),
        S(test_deadline),
        S(test_useless_streams_start_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
