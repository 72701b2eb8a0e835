/* test_lives.c - runs of several nodes from the first connection to the last exit, on simulated time: what is meant to happen, and
 * runs by the thousand to which faults happen by chance. */
#include "sanitized.h"
#include "seed.h"
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LIVES = 500, HARMLESS = 150, LIMIT_MS = 20000000 };

static const struct quorum_config usual = {.min = 2,
                                           .max = 2,
                                           .join_ms = 60000,
                                           .last_call_ms = 3000,
                                           .keep_alive_ms = 5000,
                                           .keep_alive_attempts = 3};

static struct world *world;

static int setup(void **state)
{
    (void)state;
    world = calloc(1, sizeof(*world));
    return world ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    world_release(world);
    free(world);
    return 0;
}

/* Launcher 0 hosts; all start within a second. */
static struct world *begin(int64_t min, int64_t max, int64_t restarts, int launchers)
{
    struct quorum_config q = usual;

    q.min = min;
    q.max = max;
    q.restarts = restarts;
    world_init(world, 7, &q, launchers);
    world->launchers[0].hosts = true;
    for (int i = 0; i < launchers; i++)
        world_add(world, WORLD_START, i, 100 * i, 0);
    return world;
}

static void run(struct world *w)
{
    if (!world_run(w, LIMIT_MS))
        fail_msg("at %lld ms: %s", (long long)w->now_ms, w->wrong);
}

static void expect_code(const struct world *w, int who, int code)
{
    if (w->launchers[who].exit_code != code)
        fail_msg("launcher %d ended with %d, not %d", who, w->launchers[who].exit_code, code);
}

static void expect_codes(const struct world *w, int n, int code)
{
    for (int i = 0; i < n; i++)
        expect_code(w, i, code);
}

static int starts(const struct world *w)
{
    int n = 0;

    for (int i = 0; i < w->n_launchers; i++)
        n += w->launchers[i].starts;
    return n;
}

static void join_and_end_well(void **state)
{
    struct world *w = begin(3, 3, 0, 3);

    (void)state;
    run(w);
    expect_codes(w, 3, 0);
    assert_int_equal(starts(w), 3);
    assert_in_range(w->now_ms, 1200, 3000);
}

/* A training that takes longer than every timeout, and whose second node came while it ran. */
static void train_past_every_timeout(void **state)
{
    struct world *w = begin(1, 2, 0, 1);

    (void)state;
    w->n_launchers = 2;
    w->work_ms = 10 * w->quorum.join_ms;
    world_add(w, WORLD_START, 1, 5000, 0);
    run(w);
    expect_codes(w, 2, 0);
    assert_int_equal(starts(w), 3); /* alone, then both */
}

/* A third node finds no place, and gives up by its own time; the run does not notice. */
static void no_place(void **state)
{
    struct world *w = begin(2, 2, 1, 2);

    (void)state;
    w->n_launchers = 3;
    w->work_ms = 10 * w->quorum.join_ms;
    world_add(w, WORLD_START, 2, 5000, 0);
    run(w);
    expect_codes(w, 2, 0);
    expect_code(w, 2, 138);
    assert_int_equal(starts(w), 2);
}

static const struct jobkey key = {.has = true, .bytes = "the key of this run"};

/* With a key all is as without; who has another one, or none, gets no place and does not wait for ever. */
static void a_key(void **state)
{
    struct world *w = begin(3, 3, 0, 3);

    (void)state;
    w->key = key;
    w->attack.most = WORLD_EACH;
    w->n_launchers = 5;
    w->launchers[3].key = KEY_OTHER;
    w->launchers[4].key = KEY_NONE;
    w->work_ms = 90000;
    world_add(w, WORLD_START, 3, 0, 0);
    world_add(w, WORLD_START, 4, 0, 0);
    run(w);
    expect_codes(w, 3, 0);
    assert_int_equal(starts(w), 3);
    assert_in_range(w->rounds[0].began_ms, 200, 1500);
    expect_code(w, 3, 138);
    assert_in_range(w->launchers[3].ended_ms, 60000, 62000);
    expect_code(w, 4, 1);
    assert_in_range(w->launchers[4].ended_ms, 0, 1500);
}

/* The leader has no key: who has one does not take part. */
static void a_key_too_many(void **state)
{
    struct world *w = begin(2, 2, 0, 2);

    (void)state;
    w->key = key;
    w->launchers[0].key = KEY_NONE;
    w->events[0].at_ms = 500; /* it ends later */
    run(w);
    expect_codes(w, 2, 138);
    assert_in_range(w->now_ms, 60000, 62000);
    assert_string_equal(w->launchers[1].node.line.why, "the launcher there rejects this one's key");
}

/* As many silent connections as the service lets in, others as soon as one ends, and forged greetings: the leader takes the others in.
 * Whom the service keeps out is in test_service.c and test_meet.c. */
static void a_flood(void **state)
{
    struct world *w = begin(3, 3, 0, 3);

    (void)state;
    w->key = key;
    w->attack.most = WORLD_STRANGERS + 40;
    w->events[1].at_ms = 30000; /* the second comes when they are all there */
    w->work_ms = 60000;
    run(w);
    expect_codes(w, 3, 0);
    assert_int_equal(starts(w), 3);
    assert_in_range(w->rounds[0].began_ms, 30000, 35000);
}

static void shrink(void **state)
{
    struct world *w = begin(1, 3, 0, 3);

    (void)state;
    w->work_ms = 30000;
    world_add(w, WORLD_KILL, 2, 10000, 0);
    run(w);
    expect_codes(w, 2, 0);
    assert_int_equal(starts(w), 5);
    assert_int_equal(w->rounds[1].n, 2);
    /* Half a second after its end, then the ranks are stopped, and a last call: somebody is missing. */
    assert_in_range(w->rounds[1].began_ms, 10500, 15000);
}

static void grow(void **state)
{
    struct world *w = begin(2, 3, 0, 2);

    (void)state;
    w->n_launchers = 3;
    w->work_ms = 30000;
    world_add(w, WORLD_START, 2, 10000, 0);
    run(w);
    expect_codes(w, 3, 0);
    assert_int_equal(starts(w), 5);
    assert_int_equal(w->rounds[1].n, 3);
}

/* Ranks take longer to stop than the last call lasts. A round that begins without them is over as soon as they have joined the
 * next one, and so on. */
static void grow_with_slow_ranks(void **state)
{
    struct world *w = begin(1, 3, 0, 2);

    (void)state;
    w->n_launchers = 3;
    w->work_ms = 60000;
    w->stop_ms = 20000;
    w->quorum.last_call_ms = 200;
    w->quorum.stop_ms = 25000;
    world_add(w, WORLD_START, 2, 10000, 0);
    run(w);
    expect_codes(w, 3, 0);
    assert_int_equal(starts(w), 5);
}

/* A connection ends, and the leader stands still just then. */
static void a_pause_after_a_reset(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct world *w = begin(3, 3, 0, 3);
        w->work_ms = 60000;
        world_add(w, WORLD_RESET, 1, 30000, 0);
        world_add(w, WORLD_STOP, 0, 30000 + 10 * i, 1000 + 100 * i);
        run(w);
        expect_codes(w, 3, 0);
        assert_int_equal(starts(w), 3);
        world_release(w);
    }
    begin(1, 1, 0, 1);
}

/* A node that has joined does not hear that its round runs: long packets to it are lost. */
static void a_narrow_network(void **state)
{
    struct world *w = begin(3, 3, 0, 3);

    (void)state;
    w->work_ms = 100000;
    for (int i = 0; i < w->n_events; i++)
        w->events[i].at_ms += w->events[i].who == 1 ? 10000 : 0;
    world_add(w, WORLD_NARROW, 2, 5000, WORLD_NEVER);
    run(w);
    expect_codes(w, 3, 140);
    assert_int_equal(w->launchers[0].node.state->end, END_LOST);
    assert_non_null(strstr(w->launchers[0].node.state->why, "receives nothing"));
    assert_in_range(w->now_ms, 20000, 40000);
}

static void too_few(void **state)
{
    struct world *w = begin(3, 3, 0, 2);

    (void)state;
    run(w);
    expect_codes(w, 2, 138);
    assert_in_range(w->now_ms, 60000, 62000);
}

static void nobody_hosts(void **state)
{
    struct world *w = begin(2, 2, 0, 2);

    (void)state;
    w->launchers[0].hosts = false;
    run(w);
    expect_codes(w, 2, 138);
    assert_in_range(w->now_ms, 60000, 62000);
}

/* The leader's process ends, or its machine. */
static void lose_the_leader(void **state)
{
    static const struct {
        enum world_kind kind;
        int64_t least, most;
    } cases[] = {{WORLD_KILL, 500, 3500}, {WORLD_CRASH, 9000, 18500}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world *w = begin(3, 3, 5, 3);
        w->work_ms = 100000;
        world_add(w, cases[i].kind, 0, 30000, 0);
        run(w);
        expect_code(w, 1, 140);
        expect_code(w, 2, 140);
        assert_in_range(w->now_ms, 30000 + cases[i].least, 30000 + cases[i].most);
        world_release(w);
    }
    begin(1, 1, 0, 1);
}

/* A member's process ends, its machine loses its power, it is stopped for good: a run of fixed size ends. */
static void lose_a_member(void **state)
{
    static const struct {
        enum world_kind kind;
        int64_t ms, least, most;
    } cases[] = {
        {WORLD_KILL, 0, 500, 3500}, {WORLD_CRASH, 0, 9000, 18500}, {WORLD_STOP, WORLD_NEVER, 9000, 18500}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct world *w = begin(3, 3, 0, 3);
        w->work_ms = 100000;
        world_add(w, cases[i].kind, 2, 30000, cases[i].ms);
        run(w);
        expect_code(w, 0, 140);
        expect_code(w, 1, 140);
        assert_int_equal(starts(w), 3);
        assert_int_equal(w->launchers[0].node.state->end, END_LOST);
        assert_in_range(w->now_ms, 30000 + cases[i].least, 30000 + cases[i].most);
        world_release(w);
    }
    begin(1, 1, 0, 1);
}

/* What is no loss: a process that stands still, a network that is cut, connections that end or are forgotten. */
static void go_on(void **state)
{
    static const struct {
        enum world_kind kind;
        int64_t ms;
    } cases[] = {
        {WORLD_STOP, 9000}, {WORLD_CUT, 2000}, {WORLD_CUT, 8000}, {WORLD_RESET, 0}, {WORLD_FORGET, 0}};

    (void)state;
    for (size_t i = 0; i < 5; i++)
        for (int who = 0; who < 2; who++) {
            struct world *w = begin(3, 3, 0, 3);
            w->work_ms = 100000;
            world_add(w, cases[i].kind, who, 30000, cases[i].ms);
            run(w);
            expect_codes(w, 3, 0);
            assert_int_equal(starts(w), 3);
            world_release(w);
        }
    begin(1, 1, 0, 1);
}

/* One of three nodes stands still `times` times, for stop_ms each, and nobody is lost. */
static void stands_still(int node, int times, int64_t first_ms, int64_t every_ms, int64_t stop_ms)
{
    struct world *w = begin(3, 3, 0, 3);

    w->work_ms = 100000;
    for (int i = 0; i < times; i++)
        world_add(w, WORLD_STOP, node, first_ms + every_ms * i, stop_ms);
    run(w);
    expect_codes(w, 3, 0);
    assert_int_equal(starts(w), 3);
}

/* A leader that stood still gives all a new start, as long as they have patience. */
static void the_leader_stands_still(void **state)
{
    (void)state;
    stands_still(0, 3, 20000, 20000, 11000);
}

/* A node that stands still again and again speaks in between: the leader counts the time that the node does not. */
static void a_node_stands_still_again_and_again(void **state)
{
    (void)state;
    stands_still(1, 6, 30000, 9300, 9000);
}

static void a_rank_fails(void **state)
{
    struct world *w = begin(2, 2, 1, 2);

    (void)state;
    w->work_ms = 20000;
    world_add(w, WORLD_FAIL, 1, 10000, 0);
    run(w);
    expect_codes(w, 2, 0);
    assert_int_equal(starts(w), 4);
}

static void ranks_stand_still(void **state)
{
    struct world *w = begin(3, 3, 3, 3);

    (void)state;
    w->work_ms = 100000;
    w->progress_ms = 30000;
    world_add(w, WORLD_HANG, 1, 10000, 0);
    run(w);
    assert_int_equal(w->launchers[2].node.state->end, END_FAILED);
    assert_true(w->launchers[2].node.state->hung);
    assert_int_equal(starts(w), 3);
}

static void drawn_faults(struct world *w, int faults, int64_t span_ms)
{
    static const enum world_kind kinds[] = {WORLD_KILL, WORLD_CRASH, WORLD_TERM, WORLD_STOP,
                                            WORLD_STOP, WORLD_CUT,   WORLD_CUT,  WORLD_FORGET,
                                            WORLD_FAIL, WORLD_RESET, WORLD_HANG, WORLD_NARROW};

    for (int i = 0; i < faults; i++) {
        enum world_kind kind = kinds[world_draw(w, sizeof(kinds) / sizeof(kinds[0]))];
        const int who = (int)world_draw(w, (uint64_t)w->n_launchers);
        const int64_t at = (int64_t)world_draw(w, (uint64_t)span_ms);
        if (kind == WORLD_HANG && !w->progress_ms) /* it would hang for ever, as it should */
            kind = WORLD_FAIL;
        int64_t ms = (int64_t)world_draw(w, world_draw(w, 2) ? 3000 : 40000) + 100;
        if (kind == WORLD_STOP && world_draw(w, 6) == 0)
            ms = WORLD_NEVER;
        world_add(w, kind, who, at, kind == WORLD_STOP || kind == WORLD_CUT || kind == WORLD_NARROW ? ms : 0);
        if ((kind == WORLD_KILL || kind == WORLD_CRASH || kind == WORLD_TERM) && world_draw(w, 2) &&
            w->n_launchers < WORLD_LAUNCHERS) { /* another pod takes its place */
            w->launchers[w->n_launchers].hosts = w->launchers[who].hosts;
            world_add(w, WORLD_START, w->n_launchers++, at + 500 + (int64_t)world_draw(w, 20000), 0);
        }
    }
}

static void draw_life(struct world *w, uint64_t seed)
{
    static const int64_t joins[] = {5000, 20000, 60000, 300000}, works[] = {500, 20000, 90000, 400000};
    struct quorum_config q = usual;

    world_init(w, seed, &q, 0);
    q.max = 1 + (int64_t)world_draw(w, 5);
    q.min = world_draw(w, 2) ? q.max : 1 + (int64_t)world_draw(w, (uint64_t)q.max);
    q.fixed_ranks = q.min == q.max && world_draw(w, 3) == 0;
    q.restarts = (int64_t)world_draw(w, 4);
    q.join_ms = joins[world_draw(w, 4)];
    q.last_call_ms = world_draw(w, 2) ? 3000 : 10000;
    q.keep_alive_ms = world_draw(w, 3) ? 5000 : 1000;
    w->quorum = q;
    w->key = world_draw(w, 2) ? key : (struct jobkey){0};
    if (w->key.has && world_draw(w, 2)) {
        w->attack.most = world_draw(w, 3) ? WORLD_EACH : WORLD_STRANGERS + 40;
        w->attack.at_endpoint = world_draw(w, 2);
    }
    w->work_ms = works[world_draw(w, 4)];
    w->progress_ms = world_draw(w, 3) ? 45000 : 0;
    w->n_launchers = (int)q.max + (int)world_draw(w, 3);
    w->launchers[0].hosts = true;
    for (int i = 0; i < w->n_launchers; i++) {
        w->launchers[i].late = world_draw(w, 8) == 0;
        if (w->key.has && i >= q.max && world_draw(w, 2))
            w->launchers[i].key = world_draw(w, 2) ? KEY_OTHER : KEY_NONE;
        world_add(w, WORLD_START, i,
                  (int64_t)world_draw(w, world_draw(w, 4) ? 3000 : (uint64_t)w->work_ms + 5000), 0);
    }
    drawn_faults(w, (int)world_draw(w, 6), w->work_ms * 2 + 10000);
}

static void draw_harmless(struct world *w, uint64_t seed)
{
    static const enum world_kind kinds[] = {WORLD_STOP, WORLD_CUT, WORLD_CUT, WORLD_RESET, WORLD_FORGET};
    struct quorum_config q = usual;

    q.min = q.max = 3;
    world_init(w, seed, &q, 3);
    w->launchers[0].hosts = true;
    w->work_ms = 200000;
    w->key = key;
    w->attack.most = WORLD_EACH;
    for (int i = 0; i < 3; i++)
        world_add(w, WORLD_START, i, (int64_t)world_draw(w, 3000), 0);
    for (int i = 0; i < 6; i++) {
        const enum world_kind kind = kinds[world_draw(w, 5)];
        const int64_t ms = 100 + (int64_t)world_draw(w, 7900);
        world_add(w, kind, (int)world_draw(w, 3), 10000 + 28000 * i + (int64_t)world_draw(w, 5000),
                  kind == WORLD_STOP || kind == WORLD_CUT ? ms : 0);
    }
}

/* How many lives, under a sanitizer fewer; the environment variable TK_LIVES changes that. */
static int lives(int usual_number)
{
    const char *text = getenv("TK_LIVES");

    return text ? atoi(text) : SANITIZED ? usual_number / 4 : usual_number;
}

/* What is shorter than the silence costs nothing: no restart, no node. */
static void harmless_faults_by_chance(void **state)
{
    const uint64_t seed = seed_of_run();
    const int n = lives(5 * HARMLESS) / 5;

    (void)state;
    for (int i = 0; i < n; i++) {
        draw_harmless(world, seed + (uint64_t)i);
        const bool good = world_run(world, LIMIT_MS);
        if (!good || starts(world) != 3 || world->launchers[0].node.state->end != END_SUCCESS)
            fail_msg("TK_SEED=%llu: %s; %d starts", (unsigned long long)(seed + (uint64_t)i),
                     good ? world->launchers[0].node.state->why : world->wrong, starts(world));
        expect_codes(world, 3, 0);
        if (i + 1 < n)
            world_release(world);
    }
}

static void by_chance(void **state)
{
    const int n = lives(LIVES);
    const uint64_t seed = seed_of_run();
    int ends[6] = {0};

    (void)state;
    for (int i = 0; i < n; i++) {
        draw_life(world, seed + (uint64_t)i);
        if (!world_run(world, LIMIT_MS))
            fail_msg("TK_SEED=%llu TK_LIVES=1, at %lld ms: %s", (unsigned long long)(seed + (uint64_t)i),
                     (long long)world->now_ms, world->wrong);
        ends[world->launchers[0].leads ? world->launchers[0].leader.quorum.state.end : 0]++;
        if (i + 1 < n)
            world_release(world);
    }
    printf("%d lives: %d without an end, %d well, %d failed, %d by signal, %d lost, %d too few\n", n, ends[0],
           ends[1], ends[2], ends[3], ends[4], ends[5]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(join_and_end_well, setup, teardown),
        cmocka_unit_test_setup_teardown(train_past_every_timeout, setup, teardown),
        cmocka_unit_test_setup_teardown(no_place, setup, teardown),
        cmocka_unit_test_setup_teardown(a_key, setup, teardown),
        cmocka_unit_test_setup_teardown(a_key_too_many, setup, teardown),
        cmocka_unit_test_setup_teardown(a_flood, setup, teardown),
        cmocka_unit_test_setup_teardown(shrink, setup, teardown),
        cmocka_unit_test_setup_teardown(grow, setup, teardown),
        cmocka_unit_test_setup_teardown(grow_with_slow_ranks, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pause_after_a_reset, setup, teardown),
        cmocka_unit_test_setup_teardown(a_narrow_network, setup, teardown),
        cmocka_unit_test_setup_teardown(too_few, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_hosts, setup, teardown),
        cmocka_unit_test_setup_teardown(lose_the_leader, setup, teardown),
        cmocka_unit_test_setup_teardown(lose_a_member, setup, teardown),
        cmocka_unit_test_setup_teardown(go_on, setup, teardown),
        cmocka_unit_test_setup_teardown(the_leader_stands_still, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_stands_still_again_and_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rank_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(ranks_stand_still, setup, teardown),
        cmocka_unit_test_setup_teardown(harmless_faults_by_chance, setup, teardown),
        cmocka_unit_test_setup_teardown(by_chance, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
