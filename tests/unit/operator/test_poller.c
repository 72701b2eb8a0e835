/* test_poller.c - which pod is polled when: spread, bounded, fair among namespaces, with back-off. The clock is the test's own; what
 * is silent stays so, for libcurl's timeout takes real seconds.
 */
#include "fakepods.h"
#include "operator/poller.h"
#include "test.h"
#include "tests/fakes/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rig {
    struct fake_clock clock;
    struct kube_loop *loop;
    struct fakepods pods;
    struct poller *poller;
    bool ill; /* the pod answers with garbage */
    int n_answered;
    int64_t step;
    char last_uid[64];
};

/* Addresses are words here: KIND-UID, which selects the answer of the pod. */
static void answer(void *ctx, const char *path, struct fakepods_reply *ret)
{
    struct rig *r = ctx;
    char body[512];
    const char *uid = strchr(path, '-') + 1;
    bool other = strncmp(path, "other-", 6) == 0;

    if (strncmp(path, "silent-", 7) == 0) {
        ret->end = FAKEPODS_WAITS;
        return;
    }
    snprintf(body, sizeof(body),
             "{\"job\":\"%s\",\"attempt\":%d,\"time\":\"2026-01-01T00:00:00Z\",\"step\":%lld}",
             other ? "someone" : uid, strncmp(path, "late-", 5) == 0 ? 1 : 2, (long long)r->step);
    fakepods_say(ret, r->ill || strncmp(path, "garbage-", 8) == 0 ? "{\"job\":" : body);
}

static void on_answered(void *ctx, const struct poller_target *target,
                        const struct jobprogress_answer *answer)
{
    struct rig *r = ctx;

    r->n_answered++;
    snprintf(r->last_uid, sizeof(r->last_uid), "%s", target->job_uid);
    assert_int_equal(answer->progress.step, r->step);
}

static int rig_start(void **state)
{
    static struct rig rig;
    struct rig *r = *state = &rig;
    struct err err;

    *r = (struct rig){.clock = {1, 1000}, .step = 7};
    r->loop = kube_loop_new(fake_clock(&r->clock), &err);
    assert_non_null(r->loop);
    r->pods.loop = r->loop;
    r->pods.answer = answer;
    r->pods.ctx = r;
    fakepods_start(&r->pods);
    r->poller = poller_new(
        r->loop, &(struct poller_options){.ctx = r, .seed = 3, .answered = on_answered, .url = fakepods_url});
    return 0;
}

static int rig_stop(void **state)
{
    struct rig *r = *state;

    poller_free(r->poller);
    fakepods_stop(&r->pods);
    kube_loop_free(r->loop);
    return 0;
}

static uint64_t ended(const struct rig *r)
{
    struct poller_counts c = poller_counts(r->poller);

    return c.ok + c.failed + c.dropped;
}

static int silent(const struct rig *r)
{
    int n = 0;

    for (int i = 0; i < FAKEPODS_CONNECTIONS; i++) {
        const struct fakepods_connection *c = &r->pods.connections[i];
        n += c->fd.fd >= 0 && c->answering && c->reply.end == FAKEPODS_WAITS;
    }
    return n;
}

/* Turn until only the silent pods are being polled. */
static void settle(struct rig *r)
{
    struct err err;
    int wait_ms = 0;

    do {
        assert_int_equal(kube_loop_turn(r->loop, wait_ms, &err), 0);
        wait_ms = 1;
    } while (poller_counts(r->poller).out != silent(r) || r->pods.open != silent(r));
}

static void pass(struct rig *r, int64_t ms)
{
    fake_clock_pass(&r->clock, ms);
    settle(r);
}

static void ask_attempt(struct rig *r, const char *ns, const char *uid, const char *kind, int attempt)
{
    char ip[64];

    snprintf(ip, sizeof(ip), "%s-%s", kind, uid);
    poller_add(r->poller, &(struct poller_target){ns, uid, "pod", ip, attempt});
}

static void ask(struct rig *r, const char *ns, const char *uid, const char *kind)
{
    ask_attempt(r, ns, uid, kind, 2);
}

static void ask_many(struct rig *r, const char *ns, const char *kind, int n)
{
    char uid[64];

    for (int i = 0; i < n; i++) {
        snprintf(uid, sizeof(uid), "%s%d", ns, i);
        ask(r, ns, uid, kind);
    }
}

static void test_every_interval(void **state)
{
    struct rig *r = *state;

    ask(r, "ns", "u", "good");
    pass(r, POLLER_INTERVAL_MS);
    assert_int_equal(r->n_answered, 1);
    assert_string_equal(r->last_uid, "u");
    for (int i = 0; i < 5; i++) {
        pass(r, POLLER_INTERVAL_MS - 1);
        assert_int_equal(r->n_answered, 1 + i);
        ask(r, "ns", "u", "good"); /* as each pass of the planner does */
        pass(r, 1);
        assert_int_equal(r->n_answered, 2 + i);
    }
    poller_forget(r->poller, "u");
    pass(r, 3 * POLLER_INTERVAL_MS);
    assert_int_equal(r->n_answered, 6);
}

/* Not all in one moment, neither the first time nor later. */
static void test_spread(void **state)
{
    struct rig *r = *state;
    enum { JOBS = 100, PARTS = 10 };

    for (int i = 0; i < JOBS; i++) {
        char ns[16];
        snprintf(ns, sizeof(ns), "n%d-", i);
        ask_many(r, ns, "good", 1);
    }
    for (int part = 0; part < 2 * PARTS; part++) {
        int before = r->pods.requests;
        pass(r, POLLER_INTERVAL_MS / PARTS);
        assert_in_range(r->pods.requests - before, 1, JOBS / 3);
    }
    assert_int_equal(r->n_answered, 2 * JOBS);
}

static void test_places(void **state)
{
    struct rig *r = *state;
    char ns[16];

    ask_many(r, "one", "silent", 30);
    pass(r, POLLER_INTERVAL_MS);
    assert_int_equal(r->pods.open, POLLER_NS_MAX);
    for (int i = 0; i < 30; i++) {
        snprintf(ns, sizeof(ns), "more%d-", i);
        ask_many(r, ns, "silent", 3);
    }
    pass(r, POLLER_INTERVAL_MS);
    assert_int_equal(r->pods.open_max, POLLER_SLOTS);
    assert_int_equal(ended(r), 0);
}

/* A namespace whose pods are silent holds its own places only. */
static void test_others_are_asked(void **state)
{
    struct rig *r = *state;
    char ns[16];

    for (int i = 0; i < 7; i++) { /* as many as leave the last places */
        snprintf(ns, sizeof(ns), "bad%d-", i);
        ask_many(r, ns, "silent", 20);
    }
    ask_many(r, "well", "good", 20);
    pass(r, POLLER_INTERVAL_MS);
    assert_int_equal(r->n_answered, 20);
    pass(r, POLLER_INTERVAL_MS);
    assert_int_equal(r->n_answered, 40);
    assert_int_equal(r->pods.open, 14);
}

/* How long after the last request the next one comes, to the second. */
static int64_t next_in_s(struct rig *r)
{
    int before = r->pods.requests;
    int64_t s = 0;

    while (r->pods.requests == before) {
        pass(r, 1000);
        s++;
        assert_true(s <= 1000);
    }
    return s;
}

static void test_back_off(void **state)
{
    static const int64_t DELAYS_S[] = {20, 40, 80, 160, 300, 300, 300};
    static const char *const KINDS[] = {"garbage", "other", "late"};

    for (size_t k = 0; k < ARRAY_LEN(KINDS); k++) {
        rig_start(state);
        struct rig *r = *state;
        ask(r, "ns", "u", KINDS[k]);
        (void)next_in_s(r);
        for (size_t i = 0; i < ARRAY_LEN(DELAYS_S); i++)
            assert_int_equal(next_in_s(r), DELAYS_S[i]);
        struct poller_counts c = poller_counts(r->poller);
        assert_int_equal(c.ok, 0);
        assert_int_equal(c.failed, k == 0 ? 8 : 0);
        assert_int_equal(c.dropped, k == 0 ? 0 : 8);
        assert_int_equal(r->n_answered, 0);
        rig_stop(state);
    }
}

/* Another attempt begins again, too. */
static void test_good_answer_ends_back_off(void **state)
{
    struct rig *r = *state;

    ask(r, "ns", "u", "good");
    (void)next_in_s(r);
    r->ill = true;
    assert_int_equal(next_in_s(r), 10);
    assert_int_equal(next_in_s(r), 20);
    r->ill = false;
    assert_int_equal(next_in_s(r), 40);
    assert_int_equal(r->n_answered, 2);
    assert_int_equal(next_in_s(r), 10);
    r->ill = true;
    assert_int_equal(next_in_s(r), 10);
    assert_int_equal(next_in_s(r), 20);
    assert_int_equal(next_in_s(r), 40);
    ask_attempt(r, "ns", "u", "good", 1);
    assert_in_range(next_in_s(r), 1, 10);
}

/* The job ends while it is being polled: its connection is closed, its slot is free. */
static void test_forgotten_while_asked(void **state)
{
    struct rig *r = *state;
    char uid[64];

    ask_many(r, "ns", "silent", 2);
    pass(r, POLLER_INTERVAL_MS);
    assert_int_equal(r->pods.open, 2);
    ask(r, "ns", "u", "good");
    pass(r, POLLER_INTERVAL_MS);
    assert_int_equal(r->n_answered, 0);
    for (int i = 0; i < 2; i++) {
        snprintf(uid, sizeof(uid), "ns%d", i);
        poller_forget(r->poller, uid);
    }
    pass(r, POLLER_INTERVAL_MS);
    assert_true(r->n_answered >= 1);
    assert_int_equal(r->pods.open, 0);
}

static void test_addresses_that_are_not_asked(void **state)
{
    struct rig *r = *state;

    poller_free(r->poller);
    r->poller = poller_new(
        r->loop, &(struct poller_options){.ctx = r, .answered = on_answered, .url = podaddress_url});
    poller_add(r->poller, &(struct poller_target){"ns", "u", "pod", "127.0.0.1", 2});
    poller_add(r->poller, &(struct poller_target){"ns", "v", "pod", "169.254.169.254", 2});
    pass(r, 10 * POLLER_INTERVAL_MS);
    assert_int_equal(ended(r), 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, rig_start, rig_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_every_interval),
        T(test_spread),
        T(test_places),
        T(test_others_are_asked),
        cmocka_unit_test(test_back_off),
        T(test_good_answer_ends_back_off),
        T(test_forgotten_while_asked),
        T(test_addresses_that_are_not_asked),
    };

    return cmocka_run_group_tests_name("poller", tests, NULL, NULL);
}
