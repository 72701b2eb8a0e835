/* test_watcher_stream.c - the list as a stream: its first part, its end, and when a list in pages takes its place. */
#include "talk.h"

#include "common/cleanup.h"
#include "test.h"

#include <string.h>

static void streamed(struct talk *t)
{
    talk_asks(t, "sendInitialEvents=true");
    assert_int_equal(talk_feed(t, EVENT("ADDED", "b", "6") EVENT("ADDED", "a", "5") END("10")), 0);
    talk_saw(t, "[ +b +a ] ");
}

static void test_stream_then_watch(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t,
              "/api/v1/namespaces/ns/pods?watch=true&labelSelector=app%3Dx&resourceVersionMatch=NotOlderThan"
              "&sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=");
    assert_null(strstr(t->req.path, "resourceVersion=")); /* as fresh as etcd */
    assert_true(t->req.own_connection);
    assert_int_equal(t->req.idle_timeout_ms, WATCHER_IDLE_MS);
    assert_int_equal(talk_feed(t, EVENT("ADDED", "b", "6") EVENT("ADDED", "a", "5")), 0);
    assert_false(watcher_stats(t->w).synced);
    assert_int_equal(talk_feed(t, END("10")), 0);
    talk_saw(t, "[ +b +a ] ");
    assert_true(watcher_stats(t->w).synced);
    assert_int_equal(talk_feed(t, EVENT("MODIFIED", "a", "12") BOOKMARK("13") EVENT("DELETED", "b", "14")),
                     0);
    talk_saw(t, "+a -b ");
    assert_int_equal(talk_ends(t, 200), 0);
    talk_asks(t, "resourceVersion=14&allow");
    assert_null(strstr(t->req.path, "sendInitialEvents"));
    assert_int_equal(watcher_stats(t->w).lists, 1);
    assert_int_equal(watcher_stats(t->w).syncs, 1);
    assert_int_equal(watcher_stats(t->w).watches, 1);
    assert_false(watcher_stats(t->w).no_streams);
}

static void test_streams_not_wanted(void **ctx)
{
    struct talk *t = *ctx;

    for (int i = 0; i < 2; i++) {
        talk_asks(t, "limit=500");
        assert_null(strstr(t->req.path, "sendInitialEvents"));
        assert_int_equal(talk_feed(t, LIST("10", "", ITEM("a", "5"))), 0);
        assert_int_equal(talk_ends(t, 200), 0);
        talk_saw(t, "[ +a ] ");
        talk_asks(t, "watch=true");
        assert_null(strstr(t->req.path, "sendInitialEvents"));
        talk_ends(t, 410);
        t->seen[0] = '\0';
    }
}

/* One that ends at once after its first part has done its work: no failure, and on from the bookmark. */
static void test_stream_of_nothing(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t, "sendInitialEvents=true");
    assert_int_equal(talk_feed(t, END("10")), 0);
    talk_saw(t, "[ ] ");
    assert_int_equal(talk_ends(t, 200), 0);
    talk_asks(t, "resourceVersion=10");
}

/* Servers may mix what happens meanwhile into the first part. */
static void test_changes_within_the_first_part(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t, "sendInitialEvents=true");
    assert_int_equal(talk_feed(t, EVENT("ADDED", "a", "5") EVENT("ADDED", "b", "6")
                                      EVENT("MODIFIED", "b", "11") EVENT("DELETED", "a", "12") END("12")),
                     0);
    talk_saw(t, "[ +a +b +b -a ] ");
}

static void test_broken_streams_start_over(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t, "sendInitialEvents=true");
    assert_int_equal(talk_feed(t, EVENT("ADDED", "a", "5")), 0);
    assert_true(talk_breaks(t, ERR_TRANSIENT) >= WATCHER_BACKOFF_MIN_MS);
    talk_saw(t, "[ +a ! "); /* no end: nothing is gone yet, and "a" proves nothing */
    talk_asks(t, "sendInitialEvents=true");
    assert_null(strstr(t->req.path, "resourceVersion=")); /* 5 was no place to go on from */
    assert_int_equal(talk_feed(t, EVENT("ADDED", "b", "6")), 0);
    assert_true(talk_ends(t, 200) >= WATCHER_BACKOFF_MIN_MS); /* orderly, but not all of it */
    talk_saw(t, "[ +b ! ");
    assert_non_null(strstr(t->problem, "within the initial events"));
    assert_false(watcher_stats(t->w).synced);
    streamed(t);
}

static void test_streams_in_vain_become_a_list_once(void **ctx)
{
    struct talk *t = *ctx;

    for (int i = 0; i < WATCHER_RESUMES; i++) {
        talk_asks(t, "sendInitialEvents=true");
        assert_true(talk_breaks(t, ERR_TIMEOUT) >= WATCHER_BACKOFF_MIN_MS);
    }
    talk_asks(t, "limit=500");
    assert_int_equal(talk_feed(t, LIST("10", "", ITEM("a", "5"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    t->now += WATCHER_QUIET_MS;
    talk_asks(t, "resourceVersion=10");
    assert_int_equal(talk_ends(t, 410), 0);
    t->seen[0] = '\0';
    streamed(t); /* the stream may work again by now */
}

static void test_refused_streams_are_not_asked_again(void **ctx)
{
    static const int CODES[] = {400, 422};
    struct talk *t = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        talk_teardown(ctx);
        talk_setup_stream(ctx);
        t = *ctx;
        talk_asks(t, "sendInitialEvents=true");
        assert_int_equal(talk_ends(t, CODES[i]), 0);
        assert_int_equal(watcher_stats(t->w).failures, 0);
        for (int k = 0; k < 3; k++) {
            talk_synced(t);
            talk_asks(t, "resourceVersion=10");
            talk_ends(t, 410);
            t->seen[0] = '\0';
        }
    }
}

/* The refusal may come as an event, too: the etcd storage and the cacher refuse after the head was sent. */
static void test_refused_inside_the_stream(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t, "sendInitialEvents=true");
    assert_int_equal(talk_feed(t, ERROR(422, "Invalid")), -1);
    assert_int_equal(watcher_end(t->w, t->now, NULL, NULL), 0);
    talk_synced(t);
}

/* An old server gives the same events as an ordinary watch would, and no end of them: its first bookmark tells. */
static void test_ignored_parameter(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t, "sendInitialEvents=true");
    assert_int_equal(talk_feed(t, EVENT("ADDED", "a", "5") EVENT("ADDED", "x", "6")), 0);
    assert_int_equal(talk_feed(t, BOOKMARK("9")), -1);
    assert_int_equal(watcher_end(t->w, t->now, NULL, NULL), 0);
    talk_saw(t, "[ +a +x ");
    assert_true(watcher_stats(t->w).no_streams);
    assert_false(watcher_stats(t->w).synced);
    talk_synced(t); /* its "[" comes again: "x", which the list does not have, goes with its "]" */
}

/* Not the stream's fault: nothing is remembered. */
static void test_other_errors_of_a_stream(void **ctx)
{
    static const int CODES[] = {401, 403, 404, 429, 500, 503, 504};
    struct talk *t = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        talk_asks(t, "sendInitialEvents=true");
        assert_true(talk_ends(t, CODES[i]) >= WATCHER_BACKOFF_MIN_MS);
        t->seen[0] = '\0';
        t->now += WATCHER_QUIET_MS;
        streamed(t);
        assert_int_equal(talk_ends(t, 410), 0); /* a relist, again as a stream */
        t->seen[0] = '\0';
        t->now += WATCHER_QUIET_MS;
    }
    assert_false(watcher_stats(t->w).no_streams);
}

static void test_retry_after_of_a_stream(void **ctx)
{
    struct talk *t = *ctx;
    struct kube_http_response busy = {.status = 429, .retry_after_ms = 45000};

    talk_asks(t, "sendInitialEvents=true");
    assert_int_equal(watcher_end(t->w, t->now, &busy, NULL), 45000);
    /* In an event it stands in the details. */
    talk_asks(t, "sendInitialEvents=true");
    assert_int_equal(talk_feed(t,
                               "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":429,\"reason\":"
                               "\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":70}}}\n"),
                     -1);
    assert_int_equal(watcher_end(t->w, t->now, NULL, NULL), 70000);
}

static void test_gone_during_and_after_the_first_part(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t, "sendInitialEvents=true");
    assert_int_equal(talk_feed(t, EVENT("ADDED", "a", "5") ERROR(410, "Expired")), -1);
    assert_int_equal(watcher_end(t->w, t->now, NULL, NULL), 0); /* at once */
    talk_saw(t, "[ +a ! ");
    talk_asks(t, "sendInitialEvents=true");
    assert_true(talk_ends(t, 410) >= WATCHER_BACKOFF_MIN_MS); /* but not for ever at once */
    talk_saw(t, "! ");
    t->now += WATCHER_QUIET_MS;
    streamed(t);
    assert_int_equal(talk_feed(t, ERROR(410, "Gone")), -1);
    assert_int_equal(watcher_end(t->w, t->now, NULL, NULL), 0);
    talk_saw(t, "! ");
    talk_asks(t, "sendInitialEvents=true");
    /* As often as it likes: expiry alone never makes it a list. */
    for (int i = 0; i < 3 * WATCHER_RESUMES; i++) {
        talk_ends(t, 410);
        talk_asks(t, "sendInitialEvents=true");
    }
}

static void test_deadline(void **ctx)
{
    struct talk *t = *ctx;

    talk_asks(t, "sendInitialEvents=true");
    assert_int_equal(watcher_deadline_ms(t->w), t->now + KUBE_TRANSPORT_TIMEOUT_MS);
    t->now += 20000;
    assert_int_equal(talk_feed(t, "{\"type\":\"ADD"), 0); /* any byte moves it */
    assert_int_equal(watcher_deadline_ms(t->w), t->now + KUBE_TRANSPORT_TIMEOUT_MS);
    talk_breaks(t, ERR_TIMEOUT);
    talk_saw(t, "! ");
    streamed(t);
    assert_true(watcher_deadline_ms(t->w) == INT64_MAX); /* a watch may be quiet */
    talk_ends(t, 200);
    talk_asks(t, "resourceVersion=10");
    assert_true(watcher_deadline_ms(t->w) == INT64_MAX);
}

static void test_useless_streams_start_over(void **ctx)
{
    static const char *const bad[] = {
        "this is not JSON\n",
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Service\"," META("a", "12") "}}\n",
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{}}}\n",
        EVENT("RENAMED", "a", "12"),
    };
    struct talk *t = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        talk_asks(t, "sendInitialEvents=true");
        if (talk_feed(t, bad[i]) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_true(watcher_end(t->w, t->now, NULL, NULL) >= WATCHER_BACKOFF_MIN_MS);
        talk_saw(t, "! ");
        streamed(t);
        talk_ends(t, 410);
        t->seen[0] = '\0';
        t->now += WATCHER_QUIET_MS;
    }
}

int main(void)
{
#define S(f) cmocka_unit_test_setup_teardown(f, talk_setup_stream, talk_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_streams_not_wanted, talk_setup_pages, talk_teardown),
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
