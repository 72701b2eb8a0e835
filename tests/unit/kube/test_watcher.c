/* test_watcher.c - a list in pages, then a watch: its requests, what the sink receives, and for every way in which either can fail:
 * where the watcher continues, and when.
 */
#include "common/cleanup.h"
#include "kube/gather.h"
#include "talk.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_list_then_watch(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t, "/api/v1/namespaces/ns/pods?labelSelector=app%3Dx&limit=500");
    assert_null(strstr(t->req.path, "resourceVersion")); /* a quorum read */
    assert_int_equal(t->req.timeout_ms, 0);
    assert_true(t->req.idle_timeout_ms > 0);
    assert_false(watcher_stats(t->w).synced);
    assert_int_equal(talk_feed(t, LIST("10", "", ITEM("a", "5"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    talk_saw(t, "[ +a ] ");
    talk_asks(t,
              "watch=true&labelSelector=app%3Dx&resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=");
    int seconds = atoi(strstr(t->req.path, "timeoutSeconds=") + 15);
    assert_in_range(seconds, 300, 599);
    assert_int_equal(t->req.idle_timeout_ms, WATCHER_IDLE_MS);
    assert_true(t->req.own_connection);
    assert_int_equal(
        talk_feed(t, EVENT("ADDED", "b", "11") EVENT("MODIFIED", "a", "12") EVENT("DELETED", "a", "13")), 0);
    talk_saw(t, "+b +a -a ");
    assert_int_equal(talk_ends(t, 200), 0);
    talk_asks(t, "resourceVersion=13");
    assert_int_equal(watcher_stats(t->w).lists, 1);
    assert_int_equal(watcher_stats(t->w).syncs, 1);
}

static void test_empty_list_is_a_list(void **ctx)
{
    struct talk *t = *ctx;

    talk_answers(t, "limit=500", "{'kind':'PodList','metadata':{'resourceVersion':'1'},'items':null}");
    talk_saw(t, "[ ] ");
    assert_true(watcher_stats(t->w).synced);
}

static void test_pages(void **ctx)
{
    struct talk *t = *ctx;

    talk_answers(t, "limit=500", LIST("10", "tok=1", ITEM("a", "5")));
    talk_saw(t, "[ +a ");
    assert_false(watcher_stats(t->w).synced);
    talk_answers(t, "continue=tok%3D1", LIST("10", "", ITEM("b", "6")));
    talk_saw(t, "+b ] ");
    talk_asks(t, "watch=true");
    assert_int_equal(watcher_stats(t->w).lists, 1);
}

/* A list under way continues, and another one follows it: else a busy server, which takes long, would never get to an end. */
static void test_a_list_is_wanted_while_one_comes(void **ctx)
{
    struct talk *t = *ctx;

    talk_answers(t, "limit=500", LIST("10", "tok=1", ITEM("a", "5")));
    assert_false(watcher_relist(t->w, false)); /* between two pages */
    talk_asks(t, "continue=tok%3D1");
    assert_false(watcher_relist(t->w, false));
    assert_int_equal(talk_feed(t, LIST("10", "", ITEM("b", "6"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    talk_saw(t, "[ +a +b ] ");
    assert_int_equal(watcher_stats(t->w).listed, 1);
    talk_answers(t, "limit=500", LIST("12", "tok=2", ITEM("a", "5")));
    talk_asks(t, "continue=tok%3D2");
    assert_true(watcher_relist(t->w, true)); /* it was sent too early */
    talk_answers(t, "limit=500", LIST("13", "", ITEM("b", "6")));
    assert_int_equal(watcher_stats(t->w).listed, 3);
    talk_asks(t, "watch=true");
    assert_true(watcher_relist(t->w, false)); /* a watch ends for it */
    talk_asks(t, "limit=500");
}

/* The versions of a restored etcd may be lower: after a failure the server names one before any counts. */
static void test_which_version_is_known(void **ctx)
{
    struct talk *t = *ctx;

    assert_string_equal(watcher_version(t->w), "");
    talk_synced(t);
    assert_string_equal(watcher_version(t->w), "10");
    talk_asks(t, "resourceVersion=10");
    assert_string_equal(watcher_version(t->w), "10");
    talk_breaks(t, ERR_TRANSIENT);
    assert_string_equal(watcher_version(t->w), "");
    talk_asks(t, "resourceVersion=10");
    assert_string_equal(watcher_version(t->w), "");
    assert_int_equal(talk_feed(t, BOOKMARK("10")), 0); /* nothing new, and the server is there */
    assert_string_equal(watcher_version(t->w), "10");
    talk_ends(t, 410);
    assert_string_equal(watcher_version(t->w), "");
    talk_answers(t, "limit=500", LIST("7", "tok", ITEM("a", "5")));
    talk_asks(t, "continue=tok");
    assert_string_equal(watcher_version(t->w), "");
    assert_int_equal(talk_feed(t, LIST("7", "", ITEM("b", "6"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    assert_string_equal(watcher_version(t->w), "7");
    /* The orderly end of a watch without any version brings none, either. */
    talk_asks(t, "resourceVersion=7");
    talk_breaks(t, ERR_TRANSIENT);
    talk_asks(t, "resourceVersion=7");
    t->now += WATCHER_SHORT_MS;
    assert_int_equal(talk_ends(t, 200), 0);
    assert_string_equal(watcher_version(t->w), "");
    talk_asks(t, "resourceVersion=7");
    assert_int_equal(talk_feed(t, BOOKMARK("7")), 0);
    t->now += WATCHER_SHORT_MS;
    assert_int_equal(talk_ends(t, 200), 0);
    assert_string_equal(watcher_version(t->w), "7");
}

static void test_expired_continue_falls_back_to_one_list(void **ctx)
{
    struct talk *t = *ctx;

    talk_answers(t, "limit=500", LIST("10", "tok", ITEM("a", "5")));
    talk_asks(t, "continue=tok");
    assert_int_equal(talk_ends(t, 410), 0);
    talk_saw(t, "[ +a ! ");
    talk_asks(t, "/pods?labelSelector");
    assert_null(strstr(t->req.path, "limit="));
    assert_null(strstr(t->req.path, "continue="));
    /* begun again: what was seen before the failure proves nothing */
    assert_int_equal(talk_feed(t, LIST("20", "", ITEM("b", "6"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    talk_saw(t, "[ +b ] ");
}

static void test_gone_as_http_status(void **ctx)
{
    struct talk *t = *ctx;

    talk_synced(t);
    talk_asks(t, "watch=true");
    assert_int_equal(talk_ends(t, 410), 0); /* at once */
    talk_saw(t, "! ");
    talk_answers(t, "limit=500", LIST("30", "", ITEM("b", "6")));
    talk_saw(t, "[ +b ] "); /* a replace: whoever keeps a store drops "a" now */
    talk_asks(t, "resourceVersion=30");
    assert_true(talk_ends(t, 410) >= BACKOFF_MIN_MS); /* but not for ever at once */
}

static void test_gone_inside_the_stream(void **ctx)
{
    static const char *const shapes[] = {ERROR(410, "Expired"), ERROR(410, "Gone")};
    struct talk *t = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        talk_synced(t);
        talk_asks(t, "watch=true");
        assert_int_equal(talk_feed(t, EVENT("MODIFIED", "a", "12")), 0);
        assert_int_equal(talk_feed(t, shapes[i]), -1);
        assert_int_equal(watcher_end(t->w, t->now, NULL, NULL), 0);
        talk_saw(t, "+a ! ");
        talk_asks(t, "limit=500");
        t->now += WATCHER_QUIET_MS;
    }
}

static void test_stream_errors_resume_then_relist(void **ctx)
{
    struct talk *t = *ctx;

    talk_synced(t);
    for (int i = 1; i < WATCHER_RESUMES; i++) {
        talk_asks(t, "resourceVersion=10");
        assert_int_equal(talk_feed(t, ERROR(500, "InternalError")), -1);
        assert_true(watcher_end(t->w, t->now, NULL, NULL) >= BACKOFF_MIN_MS);
    }
    talk_asks(t, "resourceVersion=10");
    assert_int_equal(talk_feed(t, ERROR(500, "InternalError")), -1);
    watcher_end(t->w, t->now, NULL, NULL);
    talk_asks(t, "limit=500");
}

/* Whoever was away for long may have come back as he was earlier. */
static void test_long_outages_relist(void **ctx)
{
    struct talk *t = *ctx;

    talk_synced(t);
    talk_asks(t, "resourceVersion=10");
    assert_true(talk_breaks(t, ERR_TRANSIENT) > 0);
    t->now += WATCHER_AWAY_MS - 1;
    talk_asks(t, "resourceVersion=10");
    assert_true(talk_breaks(t, ERR_TRANSIENT) > 0);
    t->now += 1; /* since the first one failed */
    talk_asks(t, "limit=500");
}

/* An old state of an object is ignored, from a server that fell behind and from one whose store was restored. */
static void test_a_version_that_falls_relists(void **ctx)
{
    static const char *const lower[] = {EVENT("MODIFIED", "b", "11"), EVENT("DELETED", "b", "9"),
                                        EVENT("ADDED", "c", "0"), BOOKMARK("11")};
    struct talk *t = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(lower); i++) {
        talk_synced(t);
        talk_asks(t, "watch=true");
        assert_int_equal(talk_feed(t, EVENT("MODIFIED", "a", "12") EVENT("MODIFIED", "a", "12")), 0);
        assert_int_equal(talk_feed(t, BOOKMARK("12")), 0);
        assert_int_equal(talk_feed(t, lower[i]), -1);
        assert_true(watcher_end(t->w, t->now, NULL, NULL) >= BACKOFF_MIN_MS);
        talk_saw(t, "+a +a ! ");
        assert_non_null(strstr(t->problem, "after 12: expected none that is lower"));
        talk_asks(t, "limit=500");
    }
}

/* A list replaces the cache, however low its version; versions that are no numbers have no order. */
static void test_versions_begin_anew_with_a_list(void **ctx)
{
    struct talk *t = *ctx;

    talk_answers(t, "limit=500", LIST("10", "", ITEM("a", "5")));
    talk_asks(t, "resourceVersion=10");
    assert_int_equal(talk_ends(t, 410), 0);
    talk_answers(t, "limit=500", LIST("7", "", ITEM("a", "5")));
    talk_asks(t, "resourceVersion=7");
    assert_int_equal(talk_feed(t, EVENT("MODIFIED", "a", "8")), 0);
    assert_int_equal(talk_feed(t, EVENT("MODIFIED", "a", "eight")), 0);
    assert_int_equal(talk_feed(t, EVENT("MODIFIED", "a", "7")), 0);
    talk_saw(t, "[ +a ] ! [ +a ] +a +a +a ");
}

static void test_progress_resets_the_resumes(void **ctx)
{
    struct talk *t = *ctx;

    talk_synced(t);
    for (int i = 0; i < 3 * WATCHER_RESUMES; i++) {
        char event[200];
        snprintf(event, sizeof(event), "%s%d'}}}\n",
                 "{'type':'MODIFIED','object':{'metadata':{'name':'a','uid':'u','resourceVersion':'",
                 100 + i);
        talk_asks(t, "watch=true");
        assert_int_equal(talk_feed(t, event), 0);
        assert_true(talk_breaks(t, ERR_TRANSIENT) > 0);
    }
    talk_asks(t, "resourceVersion=108");
    assert_int_equal(watcher_stats(t->w).lists, 1);
}

#define OBJECT(type, object) "{'type':'" type "','object':" object "}\n"

static void test_useless_streams_relist(void **ctx)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"this is not JSON\n", "an incomplete event"},
        {"{'type':'ADDED','object':{'kind':'Pod','meta\n", "an incomplete event"},
        {"[]\n", "expected \"type\" and \"object\""},
        {"7\n", "expected \"type\" and \"object\""},
        {"{'type':'ADDED'}\n", "expected \"type\" and \"object\""},
        {"{'type':1,'object':{}}\n", "expected \"type\" and \"object\""},
        {OBJECT("ERROR", "[]"), "expected \"type\" and \"object\""},
        {OBJECT("added", ITEM("a", "12")), "unknown event type \"added\""},
        {OBJECT("RENAMED", ITEM("a", "12")), "unknown event type \"RENAMED\""},
        {OBJECT("ADDED", "{'kind':'Service'," META("a", "12") "}"), "expected a Pod, got a Service"},
        {OBJECT("ADDED", "{'metadata':{'name':'a','uid':'u'}}"), "or resourceVersion"},
        {OBJECT("ADDED", "{'metadata':{'uid':'u','resourceVersion':'12'}}"),
         "a Pod without a readable metadata.name"},
        {OBJECT("DELETED", "{'metadata':{'name':'a','resourceVersion':'12'}}"),
         "a Pod without a readable metadata.name, uid"},
        {OBJECT("MODIFIED", "{'metadata':7}"), "a Pod without"},
        {OBJECT("BOOKMARK", "{'metadata':{}}"), "a bookmark without metadata.resourceVersion"},
        {OBJECT("BOOKMARK", "{}"), "a bookmark without metadata.resourceVersion"},
        {ERROR(403, "Forbidden"), "HTTP 403"},
        {ERROR(400, "BadRequest"), "HTTP 400"},
    };
    struct talk *t = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        talk_synced(t);
        talk_asks(t, "watch=true");
        if (talk_feed(t, bad[i].text) == 0)
            fail_msg("accepted: %s", bad[i].text);
        assert_true(watcher_end(t->w, t->now, NULL, NULL) >= BACKOFF_MIN_MS);
        talk_saw(t, "! ");
        if (!strstr(t->problem, bad[i].says))
            fail_msg("row %zu: %s", i, t->problem);
        talk_asks(t, "limit=500");
    }
}

static void test_useless_lists_are_asked_again(void **ctx)
{
    static const char HEAD[] = "expected a PodList with metadata.resourceVersion, got \"";
    static const struct {
        const char *body, *says;
        bool refused_early;
    } bad[] = {
        {"{'kind':'ServiceList','metadata':{'resourceVersion':'1'},'items':[]}", HEAD, false},
        {"{'kind':'PodListX','metadata':{'resourceVersion':'1'},'items':[]}", HEAD, false},
        {"{'kind':'Pod','metadata':{'resourceVersion':'1'},'items':[]}", HEAD, false},
        {"{'metadata':{'resourceVersion':'1'},'items':[]}", HEAD, false},
        {"{'kind':'PodList','metadata':{},'items':[]}", HEAD, false},
        {"{'kind':'PodList','metadata':{'resourceVersion':''},'items':[]}", HEAD, false},
        {"{'kind':'PodList','metadata':{'resourceVersion':'1'},'items':[" ITEM("a", "5"), "broke off", false},
        {"{'items':[{'metadata':{'name':'a'}}]}", "a Pod without", true},
        {"{'items':[{'kind':'Node'," META("a", "5") "}]}", "expected a Pod, got a Node", true},
        {"{'items':[{]}]}", "", true},
        {"<html>", "expected a JSON object", true},
        {"[]", "expected a JSON object", true},
        {"", "broke off", false},
    };
    struct talk *t = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        talk_asks(t, "limit=500");
        assert_int_equal(talk_feed(t, bad[i].body), bad[i].refused_early ? -1 : 0);
        int64_t delay = bad[i].refused_early ? watcher_end(t->w, t->now, NULL, NULL) : talk_ends(t, 200);
        assert_true(delay >= BACKOFF_MIN_MS);
        assert_null(strchr(t->seen, ']'));
        assert_non_null(strchr(t->seen, '!'));
        if (!strstr(t->problem, bad[i].says))
            fail_msg("row %zu: %s", i, t->problem);
        t->seen[0] = '\0';
    }
    assert_false(watcher_stats(t->w).synced);
    talk_synced(t);
}

static void test_short_watch_backs_off(void **ctx)
{
    struct talk *t = *ctx;

    talk_synced(t);
    talk_asks(t, "watch=true");
    t->now += WATCHER_SHORT_MS - 1;
    assert_true(talk_ends(t, 200) >= BACKOFF_MIN_MS);
    assert_non_null(strstr(t->problem, "without an event"));
    talk_asks(t, "resourceVersion=10");
    t->now += WATCHER_SHORT_MS;
    assert_int_equal(talk_ends(t, 200), 0);
    /* A list without anything new is no better. */
    talk_asks(t, "resourceVersion=10");
    assert_int_equal(talk_feed(t, BOOKMARK("10")), 0);
    assert_true(talk_ends(t, 200) >= BACKOFF_MIN_MS);
}

static void test_http_errors(void **ctx)
{
    static const struct {
        int status;
        bool resume;
    } rows[] = {{429, true}, {500, true}, {503, true}, {401, true}, {403, false}, {404, false}, {400, false}};
    struct talk *t = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        talk_synced(t);
        talk_asks(t, "watch=true");
        assert_true(talk_ends(t, rows[i].status) >= BACKOFF_MIN_MS);
        talk_asks(t, rows[i].resume ? "watch=true" : "limit=500");
        talk_ends(t, rows[i].resume ? 410 : 500); /* back to a list for the next row */
        t->seen[0] = '\0';
        t->now += WATCHER_QUIET_MS;
    }
}

static void test_retry_after_is_honoured(void **ctx)
{
    struct talk *t = *ctx;

    talk_synced(t);
    talk_asks(t, "watch=true");
    struct kube_http_response busy = {.status = 429, .retry_after_ms = 45000};
    assert_int_equal(watcher_end(t->w, t->now, &busy, NULL), 45000);
    /* In an event it stands in the details. */
    talk_asks(t, "resourceVersion=10");
    assert_int_equal(talk_feed(t, "{'type':'ERROR','object':{'kind':'Status','code':429,'reason':'"
                                  "TooManyRequests','details':{'retryAfterSeconds':50}}}\n"),
                     -1);
    assert_int_equal(watcher_end(t->w, t->now, NULL, NULL), 50000);
    /* Also when everything is requested: the first page, and one after. */
    talk_asks(t, "resourceVersion=10");
    talk_ends(t, 410);
    talk_asks(t, "limit=500");
    assert_int_equal(watcher_end(t->w, t->now, &busy, NULL), 45000);
    talk_answers(t, "limit=500", LIST("10", "tok", ITEM("a", "5")));
    talk_asks(t, "continue=tok");
    busy.retry_after_ms = 58000;
    assert_int_equal(watcher_end(t->w, t->now, &busy, NULL), 58000);
    /* A page for maintenance, of a proxy: the server may be back long before. */
    talk_asks(t, "limit=500");
    busy = (struct kube_http_response){.status = 503, .retry_after_ms = 86400000};
    assert_in_range(watcher_end(t->w, t->now, &busy, NULL), 0, 60000);
}

static void test_back_off_grows_to_its_cap_and_rests(void **ctx)
{
    struct talk *t = *ctx;
    int64_t base = BACKOFF_MIN_MS;

    for (int i = 0; i < 12; i++) {
        talk_asks(t, "limit=500");
        int64_t delay = talk_breaks(t, ERR_TRANSIENT);
        assert_true(delay >= base && delay < 2 * base);
        base = 2 * base < BACKOFF_MAX_MS ? 2 * base : BACKOFF_MAX_MS;
        t->now += delay;
    }
    t->now += WATCHER_QUIET_MS;
    talk_asks(t, "limit=500");
    assert_true(talk_breaks(t, ERR_TRANSIENT) < 2 * BACKOFF_MIN_MS);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, talk_setup, talk_teardown)
    const struct CMUnitTest tests[] = {
        T(test_list_then_watch),
        T(test_empty_list_is_a_list),
        T(test_pages),
        T(test_a_list_is_wanted_while_one_comes),
        T(test_which_version_is_known),
        T(test_expired_continue_falls_back_to_one_list),
        T(test_gone_as_http_status),
        T(test_gone_inside_the_stream),
        T(test_stream_errors_resume_then_relist),
        T(test_long_outages_relist),
        T(test_a_version_that_falls_relists),
        T(test_versions_begin_anew_with_a_list),
        T(test_progress_resets_the_resumes),
        T(test_useless_streams_relist),
        T(test_useless_lists_are_asked_again),
        T(test_short_watch_backs_off),
        T(test_http_errors),
        T(test_retry_after_is_honoured),
        T(test_back_off_grows_to_its_cap_and_rests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
