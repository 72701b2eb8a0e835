/* test_lease.c - leader election's rules, with a server of one object and time as an argument. */
#include "kube/lease.h"

#include "common/json.h"
#include "jsontext.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* The API server as the lease sees it. */
struct server {
    cJSON *lease; /* NULL: not there */
    int version, writes;
};

static const struct kube_status NONE = {.retry_after_ms = -1};

static void store(struct server *s, const char *body)
{
    char version[16];

    cJSON_Delete(s->lease);
    s->lease = jsontext_parse(body);
    snprintf(version, sizeof(version), "%d", ++s->version);
    cJSON *meta = cJSON_GetObjectItem(s->lease, "metadata");
    cJSON_DeleteItemFromObject(meta, "resourceVersion");
    cJSON_AddStringToObject(meta, "resourceVersion", version);
    s->writes++;
}

static int refusal(const struct server *s, enum lease_step step, const char *body)
{
    static const char *const META[] = {"metadata", NULL};
    cleanup_json cJSON *sent = jsontext_parse(body);

    if (step == LEASE_CREATE)
        return s->lease ? 409 : 0;
    if (!s->lease)
        return 404;
    const char *have = json_str(json_find(s->lease, META), "resourceVersion");
    return strcmp(have, json_str(json_find(sent, META), "resourceVersion")) == 0 ? 0 : 409;
}

/* One request of l carried out, answered at once; LEASE_WAIT when there was none. */
static enum lease_step act(struct lease *l, struct server *s, int64_t now)
{
    cleanup_arena struct arena a = {0};
    struct kube_status status = NONE;
    enum lease_step step = lease_next(l, now);

    if (step == LEASE_WAIT)
        return step;
    const char *body = step == LEASE_READ ? NULL : lease_body(l, 1000000000000 + now, &a);
    lease_sent(l, now);
    assert_int_equal(lease_next(l, now), LEASE_WAIT);
    status.code = body ? refusal(s, step, body) : s->lease ? 0 : 404;
    if (body && !status.code)
        store(s, body);
    lease_answer(l, status.code ? NULL : s->lease, &status, now);
    return step;
}

static void settle(struct lease *l, struct server *s, int64_t now)
{
    for (int i = 0; act(l, s, now) != LEASE_WAIT; i++)
        assert_true(i < 5);
}

static struct lease *candidate(const char *identity)
{
    return lease_new(&(struct lease_options){
        .ns = "ns", .name = "op", .identity = identity, .duration_ms = LEASE_DURATION_MS, .seed = 7});
}

/* A server and two who may lead. */
struct world {
    struct server s;
    struct lease *a, *b;
};

static int setup(void **ctx)
{
    static struct world world;

    *ctx = &world;
    world = (struct world){.a = candidate("a"), .b = candidate("b")};
    return 0;
}

static int teardown(void **ctx)
{
    struct world *w = *ctx;

    lease_free(w->a);
    lease_free(w->b);
    cJSON_Delete(w->s.lease);
    return 0;
}

static const cJSON *spec(const struct server *s)
{
    return cJSON_GetObjectItem(s->lease, "spec");
}

static void answer(struct lease *l, int code, int64_t retry_after_ms, int64_t now)
{
    lease_sent(l, now);
    lease_answer(l, NULL, &(struct kube_status){.code = code, .retry_after_ms = retry_after_ms}, now);
}

static void test_first_one_creates_and_renews(void **ctx)
{
    struct world *w = *ctx;
    struct lease *l = w->a;

    assert_false(lease_is_held(l, 0));
    assert_int_equal(act(l, &w->s, 0), LEASE_READ);
    assert_int_equal(act(l, &w->s, 0), LEASE_CREATE);
    assert_true(lease_is_held(l, 0));
    assert_string_equal(json_str(spec(&w->s), "holderIdentity"), "a");
    assert_int_equal(json_i64(spec(&w->s), "leaseDurationSeconds", 0), 15);
    assert_int_equal(json_i64(spec(&w->s), "leaseTransitions", -1), 0);
    assert_string_equal(json_str(spec(&w->s), "renewTime"), "2001-09-09T01:46:40.000000Z");
    assert_int_equal(act(l, &w->s, 1999), LEASE_WAIT);
    assert_true(lease_due_ms(l) == 2000);
    assert_int_equal(act(l, &w->s, 2000), LEASE_WRITE); /* no read between renewals */
    assert_string_equal(json_str(spec(&w->s), "acquireTime"), "2001-09-09T01:46:40.000000Z");
    assert_string_equal(json_str(spec(&w->s), "renewTime"), "2001-09-09T01:46:42.000000Z");
    assert_true(lease_held_until_ms(l) == 12000);
    assert_true(lease_is_held(l, 11999));
    assert_false(lease_is_held(l, 12000));
}

static void test_takeover_only_after_the_whole_duration(void **ctx)
{
    struct world *w = *ctx;
    struct lease *a = w->a, *b = w->b;

    settle(a, &w->s, 0);
    settle(b, &w->s, 1000); /* sees a's lease for the first time; a dies */
    int64_t now = 1000;
    while (!lease_is_held(b, now)) {
        assert_true(lease_due_ms(b) >= now + 2000 && lease_due_ms(b) <= now + 2400);
        now = lease_due_ms(b);
        settle(b, &w->s, now);
        assert_true(now < 20000);
    }
    assert_true(now >= 16000);
    assert_int_equal(json_i64(spec(&w->s), "leaseTransitions", -1), 1);
    assert_string_equal(lease_holder(b), "b");
    assert_false(lease_is_held(a, now)); /* long before: it stopped at 10 s */
    settle(a, &w->s, now);               /* it was only stopped: finds out and waits */
    assert_false(lease_is_held(a, now));
    assert_string_equal(json_str(spec(&w->s), "holderIdentity"), "b");
}

/* At no moment do both hold it, whenever the first one stops and however long. */
static void test_never_two(void **ctx)
{
    (void)ctx;
    for (int64_t stop = 0; stop < 6000; stop += 500) {
        struct server s = {0};
        struct lease *a = candidate("a");
        struct lease *b = candidate("b");
        for (int64_t now = 0; now < 60000; now += 100) {
            bool stopped = now >= stop && now < stop + 9000 + stop * 3;
            if (!stopped)
                settle(a, &s, now);
            settle(b, &s, now);
            assert_false(lease_is_held(a, now) && lease_is_held(b, now));
        }
        assert_true(lease_is_held(a, 60000) || lease_is_held(b, 60000));
        lease_free(a);
        lease_free(b);
        cJSON_Delete(s.lease);
    }
}

static void test_graceful_hand_over(void **ctx)
{
    struct world *w = *ctx;
    struct lease *a = w->a, *b = w->b;

    settle(a, &w->s, 0);
    settle(b, &w->s, 100);
    lease_release(a, 500);
    assert_false(lease_is_held(a, 500));
    assert_false(lease_is_over(a));
    assert_int_equal(act(a, &w->s, 500), LEASE_WRITE);
    assert_true(lease_is_over(a));
    assert_string_equal(json_str(spec(&w->s), "holderIdentity"), "");
    assert_int_equal(json_i64(spec(&w->s), "leaseDurationSeconds", 0), 1);
    assert_int_equal(json_i64(spec(&w->s), "leaseTransitions", -1), 0);
    assert_int_equal(act(a, &w->s, 99999), LEASE_WAIT);
    int64_t now = lease_due_ms(b);
    settle(b, &w->s, now); /* at its next look, 2.4 s at most */
    assert_true(now <= 2500);
    assert_true(lease_is_held(b, now));
    assert_int_equal(json_i64(spec(&w->s), "leaseTransitions", -1), 1);
    assert_int_equal(json_i64(spec(&w->s), "leaseDurationSeconds", 0), 15);
}

/* Given up while a renewal is on its way: that one takes place, then is taken back. */
static void test_release_with_a_write_under_way(void **ctx)
{
    struct world *w = *ctx;
    struct lease *l = w->a;
    cleanup_arena struct arena a = {0};

    settle(l, &w->s, 0);
    assert_int_equal(lease_next(l, 2000), LEASE_WRITE);
    const char *body = lease_body(l, 0, &a);
    lease_sent(l, 2000);
    lease_release(l, 2001);
    assert_false(lease_is_over(l));
    store(&w->s, body);
    lease_answer(l, w->s.lease, &NONE, 2002);
    assert_false(lease_is_held(l, 2002));
    assert_int_equal(act(l, &w->s, 2002), LEASE_WRITE);
    assert_true(lease_is_over(l));
    assert_string_equal(json_str(spec(&w->s), "holderIdentity"), "");
}

static void test_release_without_it_writes_nothing(void **ctx)
{
    struct world *w = *ctx;
    struct lease *a = w->a, *b = w->b;

    settle(a, &w->s, 0);
    settle(b, &w->s, 0);
    lease_release(b, 1);
    assert_true(lease_is_over(b));
    assert_int_equal(w->s.writes, 1);
}

/* A gateway in maintenance answers "retry in an hour": the lease would be long gone, and a cluster without a leader for as long. */
static void test_patience_has_an_end(void **ctx)
{
    struct world *w = *ctx;
    struct lease *l = w->a;

    answer(l, 503, 3600000, 0);
    assert_int_equal(lease_due_ms(l), 5000);
    settle(l, &w->s, 5000);
    answer(l, 503, 3600000, 7000);
    assert_true(lease_due_ms(l) < lease_held_until_ms(l));
    settle(l, &w->s, lease_due_ms(l));
    assert_true(lease_is_held(l, 12000));
}

static void test_renewals_survive_429_and_5xx(void **ctx)
{
    struct world *w = *ctx;
    struct lease *l = w->a;

    settle(l, &w->s, 0);
    answer(l, 429, 5000, 2000);
    assert_true(lease_is_held(l, 2000));
    assert_true(lease_due_ms(l) == 7000); /* not sooner than the server's Retry-After */
    answer(l, 503, -1, 7000);
    assert_true(lease_is_held(l, 7000));
    settle(l, &w->s, 9400);
    assert_true(lease_held_until_ms(l) == 19400);
    /* Without an answer it ends at the deadline, and is won back without waiting for anybody. */
    for (int64_t now = 11400; now < 19400; now = lease_due_ms(l))
        answer(l, 0, -1, now);
    assert_false(lease_is_leader(l, 19400));
    settle(l, &w->s, lease_due_ms(l) > 19400 ? lease_due_ms(l) : 19400);
    assert_true(lease_is_held(l, 19500));
    assert_int_equal(json_i64(spec(&w->s), "leaseTransitions", -1), 0);
}

static void test_a_write_whose_answer_was_lost(void **ctx)
{
    struct world *w = *ctx;
    struct lease *l = w->a;
    cleanup_arena struct arena a = {0};

    settle(l, &w->s, 0);
    assert_int_equal(lease_next(l, 2000), LEASE_WRITE);
    store(&w->s, lease_body(l, 0, &a));
    answer(l, 0, -1, 2000);
    int64_t now = lease_due_ms(l);
    assert_int_equal(act(l, &w->s, now), LEASE_WRITE); /* conflicts with our own */
    assert_false(lease_is_held(l, now));               /* until it is known whose it is */
    assert_true(lease_is_leader(l, now));
    assert_int_equal(act(l, &w->s, now), LEASE_READ);
    assert_int_equal(act(l, &w->s, now), LEASE_WRITE);
    assert_true(lease_is_held(l, now));
}

static void test_deleted(void **ctx)
{
    struct world *w = *ctx;
    struct lease *a = w->a, *b = w->b;

    settle(a, &w->s, 0);
    settle(b, &w->s, 0);
    cJSON_Delete(w->s.lease);
    w->s.lease = NULL;
    settle(a, &w->s, 2000); /* nobody was faster */
    assert_true(lease_is_held(a, 2000));
    cJSON_Delete(w->s.lease);
    w->s.lease = NULL;
    settle(b, &w->s, 2500); /* b was faster: a notices at its next renewal */
    assert_true(lease_is_held(b, 2500));
    settle(a, &w->s, 4000);
    assert_false(lease_is_leader(a, 4000));
    assert_string_equal(lease_holder(a), "b");
}

static void test_what_others_write_is_not_trusted(void **ctx)
{
    static const struct {
        const char *spec;
        int64_t free_at; /* -1: not within a minute */
    } rows[] = {
        {"{}", 0},
        {"null", 0},
        {"{'holderIdentity':'','leaseDurationSeconds':1000}", 0},
        {"{'holderIdentity':'x'}", 0},
        {"{'holderIdentity':'x','leaseDurationSeconds':-5}", 0},
        {"{'holderIdentity':'x','leaseDurationSeconds':'15'}", 0},
        {"{'holderIdentity':'x','leaseDurationSeconds':30}", 30000},
        {"{'holderIdentity':'x','leaseDurationSeconds':9007199254740991}", -1},
        /* Its times do not count: neither those of long ago nor those to come. */
        {"{'holderIdentity':'x','leaseDurationSeconds':15,'renewTime':'1970-01-01T00:00:00.000000Z'}", 15000},
        {"{'holderIdentity':'x','leaseDurationSeconds':15,'renewTime':'2970-01-01T00:00:00.000000Z'}", 15000},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct server s = {0};
        struct lease *l = candidate("a");
        char text[512];
        int64_t now = 0;
        snprintf(text, sizeof(text), "{'metadata':{'name':'op'},'spec':%s}", rows[i].spec);
        store(&s, text);
        settle(l, &s, 0);
        while (!lease_is_held(l, now) && now < 60000) {
            now = lease_due_ms(l);
            settle(l, &s, now);
        }
        if (rows[i].free_at < 0)
            assert_false(lease_is_held(l, now));
        else
            assert_true(lease_is_held(l, now) && now >= rows[i].free_at && now <= rows[i].free_at + 2400);
        lease_free(l);
        cJSON_Delete(s.lease);
    }
}

/* A server that answers with what is no object is not sent that back. */
static void test_no_object(void **ctx)
{
    cleanup_arena struct arena a = {0};
    struct world *w = *ctx;
    struct lease *l = w->a;
    cleanup_json cJSON *nine = jsontext_parse("[9]");

    lease_sent(l, 0);
    lease_answer(l, nine, &NONE, 0);
    assert_int_equal(lease_next(l, 0), LEASE_WRITE);
    store(&w->s, lease_body(l, 1000000000000, &a));
    assert_string_equal(json_str(spec(&w->s), "holderIdentity"), "a");
}

static void test_foreign_members_stay(void **ctx)
{
    struct world *w = *ctx;
    struct lease *l = w->a;

    store(&w->s, "{'metadata':{'name':'op','labels':{'team':'x'}},'spec':{'strategy':'Oldest'}}");
    settle(l, &w->s, 0);
    assert_true(lease_is_held(l, 0));
    assert_string_equal(json_str(json_find(w->s.lease, (const char *[]){"metadata", "labels", NULL}), "team"),
                        "x");
    assert_string_equal(json_str(spec(&w->s), "strategy"), "Oldest");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_first_one_creates_and_renews),
        T(test_takeover_only_after_the_whole_duration),
        T(test_never_two),
        T(test_graceful_hand_over),
        T(test_release_with_a_write_under_way),
        T(test_release_without_it_writes_nothing),
        T(test_patience_has_an_end),
        T(test_renewals_survive_429_and_5xx),
        T(test_a_write_whose_answer_was_lost),
        T(test_deleted),
        T(test_what_others_write_is_not_trusted),
        T(test_no_object),
        T(test_foreign_members_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
