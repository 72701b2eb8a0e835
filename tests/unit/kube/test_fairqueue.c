/* test_fairqueue.c - who goes next: by hand, and at random against the plainest model; with time as an argument. */
#include "kube/fairqueue.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those of http.c and of workqueue.c. */
static const struct fairqueue_limits REQUESTS = {.slots = 8,
                                                 .reserved = 2,
                                                 .share_max = 8,
                                                 .slow_ms = 1000,
                                                 .slow_share_max = 4,
                                                 .slow_max = 64,
                                                 .later_ms = 5000};
static const struct fairqueue_limits WORKS = {
    .slots = 48, .reserved = 16, .share_max = 16, .slow_ms = INT64_MAX};

enum { ITEMS = 600 };

struct rig {
    struct fairqueue *f;
    struct fairqueue_item items[ITEMS];
    int n;
};

static void setup_rig(struct rig *r, const struct fairqueue_limits *limits)
{
    *r = (struct rig){.f = fairqueue_new(limits)};
}

static void release_rig(struct rig *r)
{
    for (int i = 0; i < r->n; i++)
        if (r->items[i].share)
            fairqueue_leave(r->f, &r->items[i]);
    fairqueue_free(r->f);
}

static void add(struct rig *r, const char *share, int n, bool later, int64_t now_ms)
{
    for (; n > 0; n--) {
        assert_true(r->n < ITEMS);
        fairqueue_join(r->f, &r->items[r->n], share);
        fairqueue_wait(r->f, &r->items[r->n++], later, now_ms);
    }
}

/* All who may go, as a word of their shares' names. */
static const char *go(struct rig *r, int64_t now_ms)
{
    static char text[ITEMS + 1];
    size_t n = 0;

    for (struct fairqueue_item *it = fairqueue_next(r->f, now_ms); it; it = fairqueue_next(r->f, now_ms)) {
        text[n++] = fairqueue_share(it)[0];
        fairqueue_go(r->f, it, now_ms);
    }
    text[n] = '\0';
    return text;
}

/* The oldest of this share that is out is answered. */
static void end_one(struct rig *r, const char *share)
{
    for (int i = 0; i < r->n; i++) {
        if (!r->items[i].share || strcmp(fairqueue_share(&r->items[i]), share) != 0 ||
            (r->items[i].state != FAIRQUEUE_OUT && r->items[i].state != FAIRQUEUE_SLOW))
            continue;
        fairqueue_leave(r->f, &r->items[i]);
        return;
    }
    fail_msg("%s has nothing out", share);
}

static int count_out(const struct rig *r, const char *share)
{
    int n = 0;

    for (int i = 0; i < r->n; i++)
        n += r->items[i].share && strcmp(fairqueue_share(&r->items[i]), share) == 0 &&
             (r->items[i].state == FAIRQUEUE_OUT || r->items[i].state == FAIRQUEUE_SLOW);
    return n;
}

/* What keeps its place is never slow: no more than the places are out, whatever the time. */
static void test_what_keeps_its_place(void **ctx)
{
    struct rig r;
    char name[2] = "A";

    (void)ctx;
    setup_rig(&r, &REQUESTS);
    for (int i = 0; i < 20; i++, name[0]++)
        add(&r, name, 20, false, 0);
    for (int i = 0; i < r.n; i++)
        r.items[i].keeps_slot = true;
    int out = 0;
    for (int64_t now = 0; now < 60000; now += 100)
        (void)go(&r, now);
    for (name[0] = 'A'; name[0] < 'A' + 20; name[0]++)
        out += count_out(&r, name);
    assert_int_equal(out, 8 + 2);
    assert_true(fairqueue_due_ms(r.f) == INT64_MAX);
    release_rig(&r);
}

/* Nothing else may happen until then: the call returns the time. */
static void test_when_later_comes_of_age(void **ctx)
{
    struct rig r;

    (void)ctx;
    setup_rig(&r, &REQUESTS);
    add(&r, "a", 9, false, 0);
    for (int i = 0; i < r.n; i++)
        r.items[i].keeps_slot = true;
    assert_string_equal(go(&r, 0), "aaaaaaaa");
    assert_true(fairqueue_due_ms(r.f) == INT64_MAX);
    add(&r, "l", 1, true, 100);
    assert_string_equal(go(&r, 200), "");
    assert_true(fairqueue_due_ms(r.f) == 5100);
    assert_string_equal(go(&r, 5100), "l");
    assert_true(fairqueue_due_ms(r.f) == 5100 + 1000);
    release_rig(&r);
}

static void test_names_are_forgotten(void **ctx)
{
    struct fairqueue_item it;
    char name[32];

    (void)ctx;
    cleanup_fairqueue struct fairqueue *f = fairqueue_new(&REQUESTS);
    for (int i = 0; i < 5000; i++) { /* ASan's leak check looks at what is left */
        snprintf(name, sizeof(name), "ns-%d", i);
        fairqueue_join(f, &it, name);
        assert_string_equal(fairqueue_share(&it), name);
        fairqueue_leave(f, &it);
    }
    fairqueue_join(f, &it, "left");
}

/* ---- the model: every item with its state, every share's turn, everything looked through each time */

enum { SHARES = 12, LIVE = 60 };

struct model {
    const struct fairqueue_limits *l;
    struct {
        int share; /* -1: free */
        enum fairqueue_state state;
        int64_t since;
        uint64_t order; /* in its line */
    } it[LIVE];
    uint64_t turn[SHARES][2]; /* whose is the least comes first; 0: not in the ring */
    uint64_t clock;
};

static int model_count(const struct model *m, int share, enum fairqueue_state state)
{
    int n = 0;

    for (int i = 0; i < LIVE; i++)
        n += m->it[i].share >= 0 && (share < 0 || m->it[i].share == share) && m->it[i].state == state;
    return n;
}

static int model_taken(const struct model *m)
{
    int excused = 0;

    for (int s = 0; s < SHARES; s++) {
        int slow = model_count(m, s, FAIRQUEUE_SLOW);
        excused += slow < m->l->slow_share_max ? slow : m->l->slow_share_max;
    }
    excused = excused < m->l->slow_max ? excused : m->l->slow_max;
    return model_count(m, -1, FAIRQUEUE_OUT) + model_count(m, -1, FAIRQUEUE_SLOW) - excused;
}

static bool model_may_go(const struct model *m, int s, bool later)
{
    int slow = model_count(m, s, FAIRQUEUE_SLOW);
    int out = model_count(m, s, FAIRQUEUE_OUT) + slow;
    int limit = m->l->slots;

    if (out == 0)
        limit += later ? 0 : m->l->reserved;
    else if (slow && out >= m->l->slow_share_max)
        limit /= 2;
    return (out == 0 || out < m->l->share_max) && model_taken(m) < limit;
}

/* A share that has none of this class in line any more loses its turn; one that has its first gets the last turn. */
static void model_turns(struct model *m)
{
    for (int s = 0; s < SHARES; s++) {
        for (int k = 0; k < 2; k++) {
            int n = model_count(m, s, k ? FAIRQUEUE_LATER : FAIRQUEUE_WAITING);
            if (n == 0)
                m->turn[s][k] = 0;
            else if (!m->turn[s][k])
                m->turn[s][k] = ++m->clock;
        }
    }
}

static int model_oldest(const struct model *m, enum fairqueue_state state, int64_t limit, int64_t now)
{
    int found = -1;

    for (int i = 0; i < LIVE; i++)
        if (m->it[i].share >= 0 && m->it[i].state == state && now - m->it[i].since >= limit &&
            (found < 0 || m->it[i].order < m->it[found].order))
            found = i;
    return found;
}

static void model_grow_old(struct model *m, int64_t now)
{
    for (int i = model_oldest(m, FAIRQUEUE_OUT, m->l->slow_ms, now); i >= 0;
         i = model_oldest(m, FAIRQUEUE_OUT, m->l->slow_ms, now))
        m->it[i].state = FAIRQUEUE_SLOW;
    for (int i = model_oldest(m, FAIRQUEUE_LATER, m->l->later_ms, now); i >= 0;
         i = model_oldest(m, FAIRQUEUE_LATER, m->l->later_ms, now)) {
        m->it[i].state = FAIRQUEUE_WAITING;
        m->it[i].order = ++m->clock;
        model_turns(m);
    }
}

static int model_next(const struct model *m)
{
    for (int k = 0; k < 2; k++) {
        int found = -1;
        for (int s = 0; s < SHARES; s++)
            if (m->turn[s][k] && model_may_go(m, s, k) && (found < 0 || m->turn[s][k] < m->turn[found][k]))
                found = s;
        int first = -1;
        for (int i = 0; found >= 0 && i < LIVE; i++)
            if (m->it[i].share == found && m->it[i].state == (k ? FAIRQUEUE_LATER : FAIRQUEUE_WAITING) &&
                (first < 0 || m->it[i].order < m->it[first].order))
                first = i;
        if (found >= 0)
            return first;
    }
    return -1;
}

static uint32_t dice(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (*seed >> 8) % n;
}

static void model_step(struct model *m, struct fairqueue *f, struct fairqueue_item *items, uint32_t *seed,
                       int64_t now)
{
    int i = (int)dice(seed, LIVE);
    char name[8];

    if (m->it[i].share < 0) {
        m->it[i].share = (int)(dice(seed, 2) ? dice(seed, 2) : dice(seed, SHARES)); /* some are busy */
        m->it[i].state = dice(seed, 3) ? FAIRQUEUE_WAITING : FAIRQUEUE_LATER;
        m->it[i].since = now;
        m->it[i].order = ++m->clock;
        snprintf(name, sizeof(name), "%d", m->it[i].share);
        fairqueue_join(f, &items[i], name);
        fairqueue_wait(f, &items[i], m->it[i].state == FAIRQUEUE_LATER, now);
    } else if (dice(seed, 6) == 0) { /* answered, or cancelled */
        m->it[i].share = -1;
        fairqueue_leave(f, &items[i]);
    }
    model_turns(m);
}

static void random_run(const struct fairqueue_limits *limits, uint32_t seed)
{
    static struct fairqueue_item items[LIVE];
    cleanup_fairqueue struct fairqueue *f = fairqueue_new(limits);
    struct model m = {.l = limits};
    int64_t now = 1;

    for (int i = 0; i < LIVE; i++)
        m.it[i].share = -1;
    for (int step = 0; step < 4000; step++, now += dice(&seed, 4) ? 0 : dice(&seed, 300)) {
        model_step(&m, f, items, &seed, now);
        model_grow_old(&m, now);
        int want = model_next(&m);
        struct fairqueue_item *it = fairqueue_next(f, now);
        if (it != (want < 0 ? NULL : &items[want]))
            fail_msg("step %d: item %d is next, not %d", step, it ? (int)(it - items) : -1, want);
        if (!it)
            continue;
        int k = m.it[want].state == FAIRQUEUE_LATER;
        m.it[want].state = FAIRQUEUE_OUT;
        m.it[want].since = now;
        m.it[want].order = ++m.clock;
        m.turn[m.it[want].share][k] = 0; /* to the end, if any is left */
        model_turns(&m);
        fairqueue_go(f, it, now);
    }
}

static void test_random_against_a_model(void **ctx)
{
    static const struct fairqueue_limits SMALL = {.slots = 4,
                                                  .reserved = 1,
                                                  .share_max = 3,
                                                  .slow_ms = 300,
                                                  .slow_share_max = 2,
                                                  .slow_max = 5,
                                                  .later_ms = 500};

    (void)ctx;
    for (uint32_t seed = 1; seed <= 10; seed++) {
        random_run(&SMALL, seed);
        random_run(&REQUESTS, seed);
        random_run(&WORKS, seed);
    }
}

static void test_full(void **state)
{
    struct rig r;

    (void)state;
    setup_rig(&r, &REQUESTS);
    assert_false(fairqueue_is_full(r.f, "a"));
    add(&r, "a", 9, false, 0);
    assert_string_equal(go(&r, 0), "aaaaaaaa");
    assert_true(fairqueue_is_full(r.f, "a"));
    assert_false(fairqueue_is_full(r.f, "b")); /* the reserved places are for it */
    add(&r, "b", 2, false, 0);
    assert_string_equal(go(&r, 0), "b");
    assert_true(fairqueue_is_full(r.f, "b"));
    add(&r, "c", 1, false, 0);
    assert_string_equal(go(&r, 0), "c");
    assert_true(fairqueue_is_full(r.f, "d"));
    end_one(&r, "c");
    assert_false(fairqueue_is_full(r.f, "d"));
    release_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_what_keeps_its_place),
        cmocka_unit_test(test_when_later_comes_of_age),
        cmocka_unit_test(test_names_are_forgotten),
        cmocka_unit_test(test_random_against_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
