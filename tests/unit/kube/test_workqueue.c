/* test_workqueue.c - one at a time, none lost, later and later; with time as an argument. */
#include "kube/workqueue.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define K(key) ((struct workqueue_key){"", key})

static void test_first_in_first_out_without_doubles(void **ctx)
{
    cleanup_workqueue struct workqueue *q = workqueue_new();

    (void)ctx;
    assert_null(workqueue_take(q, 0).name);
    assert_true(workqueue_next_ms(q) == INT64_MAX);
    workqueue_add(q, K("a"), 0);
    workqueue_add(q, K("b"), 0);
    workqueue_add(q, K("a"), 0);
    assert_true(workqueue_next_ms(q) == INT64_MIN);
    assert_int_equal(workqueue_stats(q).depth, 2);
    assert_string_equal(workqueue_take(q, 0).name, "a");
    assert_string_equal(workqueue_take(q, 0).name, "b");
    assert_null(workqueue_take(q, 0).name);
    assert_int_equal(workqueue_stats(q).processing, 2);
    workqueue_done(q, K("a"), 0);
    workqueue_done(q, K("b"), 0);
    assert_null(workqueue_take(q, 0).name);
    assert_int_equal(workqueue_stats(q).processing, 0);
    assert_int_equal(workqueue_stats(q).adds, 2); /* the third found its key due already */
}

static void assert_histogram(const struct histogram *h, size_t bucket, uint64_t want, uint64_t n,
                             uint64_t sum_ms)
{
    assert_int_equal(h->counts[bucket], want);
    assert_int_equal(h->n, n);
    assert_int_equal(h->sum_ms, sum_ms);
}

static void test_how_long_keys_wait_and_work_takes(void **ctx)
{
    cleanup_workqueue struct workqueue *q = workqueue_new();

    (void)ctx;
    workqueue_add(q, K("a"), 100);
    assert_string_equal(workqueue_take(q, 100).name, "a"); /* at once */
    struct kube_workqueue_stats s = workqueue_stats(q);
    assert_histogram(&s.queued, 0, 1, 1, 0);
    workqueue_add(q, K("a"), 110); /* waits from here on, though it is taken */
    workqueue_add_at(q, K("b"), 120);
    assert_true(workqueue_unfinished(q, 130).sum_ms == 30);
    workqueue_done(q, K("a"), 150);
    assert_string_equal(workqueue_take(q, 160).name, "a");
    assert_string_equal(workqueue_take(q, 220).name, "b"); /* due from 120 on */
    s = workqueue_stats(q);
    assert_histogram(&s.worked, 7, 1, 1, 50);
    assert_histogram(&s.queued, 7, 2, 3, 150);
    assert_int_equal(s.adds, 3);
    struct kube_workqueue_unfinished u = workqueue_unfinished(q, 230);
    assert_true(u.sum_ms == 80 && u.longest_ms == 70);
    workqueue_done(q, K("a"), 230);
    workqueue_done(q, K("b"), 20220);
    s = workqueue_stats(q);
    assert_histogram(&s.worked, ARRAY_LEN(WORKQUEUE_BOUNDS) - 1, 1, 3, 20120); /* over every bound */
    assert_true(workqueue_unfinished(q, 30000).sum_ms == 0);
}

/* Bounds belong to their bucket. */
static void test_histogram_bounds(void **ctx)
{
    static const struct {
        int64_t ms;
        size_t bucket;
    } rows[] = {{-5, 0},  {0, 0},   {1, 5},    {2, 6},    {10, 6},    {11, 7},
                {100, 7}, {101, 8}, {1000, 8}, {1001, 9}, {10000, 9}, {10001, 10}};

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct histogram h = {0};
        histogram_add(&h, WORKQUEUE_BOUNDS, rows[i].ms);
        assert_histogram(&h, rows[i].bucket, 1, 1, rows[i].ms > 0 ? (uint64_t)rows[i].ms : 0);
    }
}

static void test_the_earlier_time_wins(void **ctx)
{
    cleanup_workqueue struct workqueue *q = workqueue_new();

    (void)ctx;
    workqueue_add_at(q, K("a"), 100);
    workqueue_add_at(q, K("a"), 50);
    workqueue_add_at(q, K("a"), 200);
    assert_true(workqueue_next_ms(q) == 50);
    assert_null(workqueue_take(q, 49).name);
    assert_string_equal(workqueue_take(q, 50).name, "a");
    /* and so it is while the key is being worked on */
    workqueue_add_at(q, K("a"), 300);
    workqueue_add_at(q, K("a"), 250);
    workqueue_add_at(q, K("a"), 400);
    workqueue_done(q, K("a"), 60);
    assert_true(workqueue_next_ms(q) == 250);
    workqueue_add(q, K("a"), 60); /* now beats later */
    assert_string_equal(workqueue_take(q, 60).name, "a");
    workqueue_done(q, K("a"), 61);
    assert_null(workqueue_take(q, 10000).name);
}

static void test_back_off_doubles_and_forgets(void **ctx)
{
    cleanup_workqueue struct workqueue *q = workqueue_new();
    int64_t now = 1000;
    int64_t expected = WORKQUEUE_BACKOFF_MIN_MS;

    (void)ctx;
    for (int i = 0; i < 40; i++) {
        workqueue_add(q, K("a"), now);
        assert_string_equal(workqueue_take(q, now).name, "a");
        workqueue_retry(q, K("a"), now, 0);
        workqueue_done(q, K("a"), now);
        assert_true(workqueue_next_ms(q) == now + expected);
        assert_null(workqueue_take(q, now + expected - 1).name);
        now += expected;
        expected = expected * 2 < WORKQUEUE_BACKOFF_MAX_MS ? expected * 2 : WORKQUEUE_BACKOFF_MAX_MS;
    }
    assert_string_equal(workqueue_take(q, now).name, "a");
    workqueue_forget(q, K("a"));
    workqueue_done(q, K("a"), now);
    workqueue_retry(q, K("a"), now, 0);
    assert_true(workqueue_next_ms(q) == now + WORKQUEUE_BACKOFF_MIN_MS);
    assert_int_equal(workqueue_stats(q).retries, 41);
}

/* As long as the server requested, whatever is added before the failure, with it or after it. */
static void test_retry_after_holds_against_adds(void **ctx)
{
    cleanup_workqueue struct workqueue *q = workqueue_new();

    (void)ctx;
    workqueue_add(q, K("a"), 0);
    assert_string_equal(workqueue_take(q, 0).name, "a");
    workqueue_add(q, K("a"), 1);
    workqueue_retry(q, K("a"), 2, 5000);
    workqueue_add(q, K("a"), 3);
    workqueue_done(q, K("a"), 4);
    workqueue_add(q, K("a"), 5);
    workqueue_add_at(q, K("a"), 300);
    workqueue_forget(q, K("a"));
    workqueue_add(q, K("a"), 4998);
    assert_null(workqueue_take(q, 4999).name);
    assert_true(workqueue_next_ms(q) == 5000);
    assert_string_equal(workqueue_take(q, 5000).name, "a");
    workqueue_add(q, K("a"), 5001); /* and no longer */
    workqueue_done(q, K("a"), 5002);
    assert_string_equal(workqueue_take(q, 5002).name, "a");
    workqueue_done(q, K("a"), 5003);
    assert_null(workqueue_take(q, 100000).name);
}

static void test_done_or_forget_of_strangers(void **ctx)
{
    cleanup_workqueue struct workqueue *q = workqueue_new();

    (void)ctx;
    workqueue_done(q, K("nobody"), 0);
    workqueue_forget(q, K("nobody"));
    workqueue_add(q, K("a"), 0);
    workqueue_done(q, K("a"), 0); /* not taken: still due */
    assert_string_equal(workqueue_take(q, 0).name, "a");
}

/* A busy namespace has its share of the places; the others come in turn, and a name may stand in two. */
static void test_namespaces_take_turns(void **ctx)
{
    cleanup_workqueue struct workqueue *q = workqueue_new();
    char name[8];

    (void)ctx;
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "%d", i);
        workqueue_add(q, (struct workqueue_key){"busy", name}, 0);
    }
    workqueue_add(q, (struct workqueue_key){"other", "0"}, 0);
    workqueue_add(q, (struct workqueue_key){"other", "1"}, 0);
    for (int i = 0; i < WORKQUEUE_NAMESPACE + 2; i++) {
        struct workqueue_key key = workqueue_take(q, 0);
        assert_string_equal(key.ns, i == 1 || i == 3 ? "other" : "busy");
        snprintf(name, sizeof(name), "%d", i == 1 || i == 3 ? i / 2 : i - (i > 1) - (i > 3));
        assert_string_equal(key.name, name);
    }
    assert_null(workqueue_take(q, 0).name);
    assert_true(workqueue_next_ms(q) == INT64_MAX); /* until one is done */
    assert_int_equal(workqueue_stats(q).depth, 100 - WORKQUEUE_NAMESPACE);
    workqueue_done(q, (struct workqueue_key){"other", "0"}, 0);
    assert_true(workqueue_next_ms(q) == INT64_MAX);
    workqueue_done(q, (struct workqueue_key){"busy", "3"}, 0);
    assert_true(workqueue_next_ms(q) == INT64_MIN);
    assert_string_equal(workqueue_take(q, 0).name, "16");
    workqueue_add_at(q, (struct workqueue_key){"late", "0"}, 50);
    assert_true(workqueue_next_ms(q) == 50);
    assert_string_equal(workqueue_take(q, 50).ns, "late");
}

/* Against the plainest model: for each key the time it is due, and whether it is being worked on. */
enum { KEYS = 90 };

/* A third of them is in one namespace each. */
static const char *model_ns(int k)
{
    static const char *const NS[] = {"", "a", "b"};

    return NS[k % 3];
}

static bool model_may_take(int k, const int64_t *due, const bool *busy, int64_t now)
{
    int n = 0;

    for (int i = 0; i < KEYS; i++)
        n += busy[i] && i % 3 == k % 3;
    return !busy[k] && due[k] <= now && n < WORKQUEUE_NAMESPACE;
}

static void test_random_against_a_model(void **ctx)
{
    cleanup_workqueue struct workqueue *q = workqueue_new();
    int64_t due[KEYS];
    bool busy[KEYS] = {0};
    uint32_t seed = 1;
    int held_up = 0;
    char name[8];

    (void)ctx;
    for (int i = 0; i < KEYS; i++)
        due[i] = INT64_MAX;
    for (int64_t now = 0; now < 20000; now++) {
        seed = seed * 1664525U + 1013904223U;
        int k = (int)((seed >> 8) % KEYS);
        int64_t at = now + (int64_t)((seed >> 20) % 50);
        snprintf(name, sizeof(name), "k%d", k);
        struct workqueue_key key = {model_ns(k), name};
        switch (seed >> 30) {
        case 0:
            workqueue_add(q, key, now);
            due[k] = due[k] < now ? due[k] : now;
            break;
        case 1:
            workqueue_add_at(q, key, at);
            due[k] = due[k] < at ? due[k] : at;
            break;
        case 2:
            if (busy[k])
                workqueue_done(q, key, now);
            busy[k] = false;
            break;
        default: {
            struct workqueue_key taken = workqueue_take(q, now);
            bool any = false;
            for (int i = 0; i < KEYS; i++) {
                any = any || model_may_take(i, due, busy, now);
                held_up += !busy[i] && due[i] <= now && !model_may_take(i, due, busy, now);
            }
            assert_int_equal(taken.name != NULL, any);
            if (!taken.name)
                break;
            int t = atoi(taken.name + 1);
            assert_true(model_may_take(t, due, busy, now));
            assert_string_equal(taken.ns, model_ns(t));
            busy[t] = true;
            due[t] = INT64_MAX;
        }
        }
    }
    assert_true(held_up > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_in_first_out_without_doubles),
        cmocka_unit_test(test_how_long_keys_wait_and_work_takes),
        cmocka_unit_test(test_histogram_bounds),
        cmocka_unit_test(test_the_earlier_time_wins),
        cmocka_unit_test(test_back_off_doubles_and_forgets),
        cmocka_unit_test(test_retry_after_holds_against_adds),
        cmocka_unit_test(test_done_or_forget_of_strangers),
        cmocka_unit_test(test_namespaces_take_turns),
        cmocka_unit_test(test_random_against_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
