/* test_watch.c - one rank and its watch, with a name server that takes its time. */
#include "collectives/watch.h"
#include "collectives/watch_server.h"
#include "common/clock.h"
#include "test.h"

#include <time.h>

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

/* Each try asks anew: one that gives up before the answer comes would never end. */
static void test_a_late_name_server_only_delays(void **state)
{
    static const uint8_t token[WATCH_TOKEN_BYTES] = {7};
    const struct member me = {.per_group = 1};
    struct err err = {0};
    struct watch w;

    (void)state;
    struct watch_server *server = watch_server_start(1, token, &err);
    assert_non_null(server);
    cleanup_resolver struct resolver *at =
        resolver_new_with("some.host", watch_server_port(server), look_late, NULL);
    assert_int_equal(watch_join(&w, at, 0, 1, token, &me, clock_mono_ms() + 60000, &err), WATCH_JOINED);
    watch_close(&w, true);
    watch_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_late_name_server_only_delays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
