/* test_watch.c - one rank and its watch, with a name server that takes its time. */
#include "../patience.h"
#include "../ports.h"
#include "collectives/watch.h"
#include "collectives/watch_server.h"
#include "common/clock.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct pass pass = {.run_id = "job-1"};
static int port; /* of the watch */

/* The first name server of resolv.conf is dead: the answer is the second's, after the resolver's own timeout. */
static int look_late(void *arg, const char *host, const char *service, const struct addrinfo *hints,
                     struct addrinfo **ret)
{
    const struct timespec late = {.tv_sec = 4};

    (void)arg;
    (void)host;
    nanosleep(&late, NULL);
    return getaddrinfo("127.0.0.1", service, hints, ret);
}

/* Each try resolves the name again: a try that gives up before the answer comes would never end. */
static void test_a_late_name_server_only_delays(void **state)
{
    const struct rank_member me = {.per_group = 1};
    struct err err = {0};
    struct watch w;

    (void)state;
    struct watch_server *server = watch_server_start(port = ports_take(), &pass, 0, 1, 0, &err);
    assert_non_null(server);
    cleanup_resolver struct resolver *at = resolver_new_with("some.host", port, look_late, NULL);
    assert_int_equal(watch_join(&w, at, 0, 1, &pass, &me, clock_mono_ms() + 600000, &err), 0);
    watch_close(&w, true);
    watch_server_stop(server);
}

enum { ASKS, MOVES_DATA, ABSENT, LEAVES, IN_MESSAGE, N_RANKS };

struct looker {
    struct watch w;
    int rank;
    _Atomic bool ready, over;
};

static void join(struct looker *l)
{
    const struct rank_member me = {.per_group = N_RANKS, .local = l->rank};
    struct err err = {0};
    cleanup_resolver struct resolver *at = resolver_new("127.0.0.1", port);

    assert_int_equal(watch_join(&l->w, at, l->rank, N_RANKS, &pass, &me, clock_mono_ms() + 600000, &err), 0);
    if (l->rank != ABSENT)
        watch_enter(&l->w, false);
    if (l->rank == IN_MESSAGE)
        watch_enter(&l->w, true);
}

/* It looks, but never waits: whenever it looks there are data to move. */
static void *look_on(void *arg)
{
    struct looker *l = arg;
    struct err err;

    join(l);
    if (l->rank == LEAVES)
        watch_close(&l->w, true);
    l->ready = true;
    while (!l->over && l->rank != LEAVES && (l->rank == ABSENT || watch_look(&l->w, "all_reduce", &err) == 0))
        usleep(5000);
    if (l->rank != LEAVES)
        watch_close(&l->w, true);
    return NULL;
}

/* Nobody has reported: who is in the call, or past it, or has left after it, is not missing. */
static void test_only_the_absent_is_missing(void **state)
{
    static const char missing[] = "all_reduce: deadline passed while waiting for rank 2";
    struct err err = {0};
    struct looker l[N_RANKS];
    pthread_t threads[N_RANKS];

    (void)state;
    struct watch_server *server = watch_server_start(port = ports_take(), &pass, 0, N_RANKS, 0, &err);
    assert_non_null(server);
    for (int i = 0; i < N_RANKS; i++) {
        l[i] = (struct looker){.rank = i};
        if (i != ASKS)
            assert_int_equal(pthread_create(&threads[i], NULL, look_on, &l[i]), 0);
    }
    join(&l[ASKS]);
    for (int i = 1; i < N_RANKS; i++)
        while (!l[i].ready)
            usleep(1000);
    /* Who did not run while the watch waited for its report is missing, too: asked again, it has reported. */
    const int64_t limit_ms = clock_mono_ms() + PATIENCE_MOST_MS;
    do {
        assert_int_equal(watch_timed_out(&l[ASKS].w, "all_reduce", &err), -1);
    } while (strcmp(err.msg, missing) != 0 && strstr(err.msg, "waiting for rank ") && strstr(err.msg, ", ") &&
             strchr(err.msg, '2') && clock_mono_ms() < limit_ms);
    assert_string_equal(err.msg, missing);
    for (int i = 1; i < N_RANKS; i++) {
        l[i].over = true;
        pthread_join(threads[i], NULL);
    }
    watch_close(&l[ASKS].w, true);
    watch_server_stop(server);
}

/* It is of a later round, perhaps with another world: it is to look for that round's watch. */
static void test_who_comes_to_a_run_that_has_begun_looks_again(void **state)
{
    const struct rank_member me = {.per_group = 1};
    struct err err = {0};
    struct watch first, late;

    (void)state;
    struct watch_server *server = watch_server_start(port = ports_take(), &pass, 0, 1, 0, &err);
    assert_non_null(server);
    cleanup_resolver struct resolver *at = resolver_new("127.0.0.1", port);
    assert_int_equal(watch_join(&first, at, 0, 1, &pass, &me, clock_mono_ms() + 600000, &err), 0);
    for (int world = 1; world <= 2; world++) {
        for (int64_t ms = 300;; ms = patience_grow(ms)) {
            assert_int_equal(watch_join(&late, at, world - 1, world, &pass, &me, clock_mono_ms() + ms, &err),
                             1);
            if (strcmp(err.msg, "the run has begun without this process") == 0)
                break;
            if (!strstr(err.msg, "deadline passed")) /* it may, before the watch has answered */
                fail_msg("%s", err.msg);
        }
    }
    watch_close(&first, true);
    watch_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_late_name_server_only_delays),
        cmocka_unit_test(test_only_the_absent_is_missing),
        cmocka_unit_test(test_who_comes_to_a_run_that_has_begun_looks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
