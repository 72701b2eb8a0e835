/* test_watcher.c - a list in pages, then a watch: what is asked for, and what the sink sees. */
#include "talk.h"

#include "kube/gather.h"
#include "test.h"

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
    assert_int_equal(watcher_stats(t->w).watches, 2);
    assert_int_equal(watcher_stats(t->w).events, 4);
}

static void test_empty_list_is_a_list(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t, "limit=500");
    assert_int_equal(
        talk_feed(t, "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}"), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    talk_saw(t, "[ ] ");
    assert_true(watcher_stats(t->w).synced);
}

static void test_pages(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t, "limit=500");
    assert_int_equal(talk_feed(t, LIST("10", "tok=1", ITEM("a", "5"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    talk_saw(t, "[ +a ");
    assert_false(watcher_stats(t->w).synced);
    talk_asks(t, "continue=tok%3D1");
    assert_int_equal(talk_feed(t, LIST("10", "", ITEM("b", "6"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    talk_saw(t, "+b ] ");
    talk_asks(t, "watch=true");
    assert_int_equal(watcher_stats(t->w).lists, 1);
}

/* A list under way goes on, and another one follows it: else a busy server, which takes long, would never get to an end. */
static void test_a_list_is_wanted_while_one_comes(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t, "limit=500");
    assert_int_equal(talk_feed(t, LIST("10", "tok=1", ITEM("a", "5"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    assert_false(watcher_relist(t->w, false)); /* between two pages */
    talk_asks(t, "continue=tok%3D1");
    assert_false(watcher_relist(t->w, false));
    assert_int_equal(talk_feed(t, LIST("10", "", ITEM("b", "6"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    talk_saw(t, "[ +a +b ] ");
    assert_int_equal(watcher_stats(t->w).listed, 1);
    talk_asks(t, "limit=500");
    assert_int_equal(talk_feed(t, LIST("12", "tok=2", ITEM("a", "5"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    talk_asks(t, "continue=tok%3D2");
    assert_true(watcher_relist(t->w, true)); /* it was sent too early */
    talk_asks(t, "limit=500");
    assert_int_equal(talk_feed(t, LIST("13", "", ITEM("b", "6"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
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
    talk_asks(t, "limit=500");
    assert_int_equal(talk_feed(t, LIST("7", "tok", ITEM("a", "5"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    talk_asks(t, "continue=tok");
    assert_string_equal(watcher_version(t->w), "");
    assert_int_equal(talk_feed(t, LIST("7", "", ITEM("b", "6"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    assert_string_equal(watcher_version(t->w), "7");
    /* The orderly end of a watch in which the server named none tells no more. */
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

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, talk_setup, talk_teardown)
    const struct CMUnitTest tests[] = {
        T(test_list_then_watch),
        T(test_empty_list_is_a_list),
        T(test_pages),
        T(test_a_list_is_wanted_while_one_comes),
        T(test_which_version_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
