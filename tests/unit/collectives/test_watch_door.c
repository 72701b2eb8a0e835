/* test_watch_door.c - the watch's house is full of strangers, and a rank comes. Its clock stands unless the test moves it. */
#include "../ports.h"
#include "collectives/watch.h"
#include "collectives/watch_server.h"
#include "test.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HOUSE = 256, PATIENCE_MS = 250 }; /* as in watch_server.c */

static const struct pass pass = {.run_id = "job-1"};
static int port; /* of the watch */

static _Atomic int64_t now_ms = 1000;
static _Atomic int asked; /* how often for the time */

/* The linker puts it instead of clock_mono_ms (CMakeLists.txt). */
int64_t __wrap_clock_mono_ms(void);

int64_t __wrap_clock_mono_ms(void)
{
    atomic_fetch_add(&asked, 1);
    return atomic_load(&now_ms);
}

static void a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* The watch has gone round a few times more. */
static void wait_for_turns(void)
{
    const int begin = atomic_load(&asked);

    while (atomic_load(&asked) < begin + 20)
        a_moment();
}

/* From one of eight neighbours of 127.0.0.1: an address has places for some. */
static int knock(void)
{
    static uint32_t at;
    const struct sockaddr_in from = {.sin_family = AF_INET,
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + at++ % 8)};
    const struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && bind(fd, (const struct sockaddr *)&from, sizeof(from)) == 0);
    assert_true(connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0);
    return fd;
}

/* All but one place is taken at this moment: they are let in in their order, and the last of them is thrown out. */
static void fill(int fds[static HOUSE - 1])
{
    char noise[WATCH_SAID_BYTES];

    for (int i = 0; i < HOUSE - 1; i++)
        fds[i] = knock();
    int rude = knock();
    memset(noise, 'x', sizeof(noise));
    assert_int_equal(send(rude, noise, sizeof(noise), MSG_NOSIGNAL), sizeof(noise));
    assert_int_equal(recv(rude, noise, 1, 0), 0);
    close(rude);
}

static int count_closed(const int fds[static HOUSE + 1])
{
    char byte;
    int closed = 0;

    for (int i = 0; i <= HOUSE; i++)
        closed += recv(fds[i], &byte, 1, MSG_DONTWAIT) >= 0;
    return closed;
}

/* One who comes waits outside until the oldest has had its time; then the oldest goes, and no other. */
static void test_a_full_house_keeps_no_rank_out(void **state)
{
    const struct rank_member me = {.per_group = 1};
    int fds[HOUSE + 1];
    struct err err = {0};
    struct watch w;
    char byte;

    (void)state;
    struct watch_server *server = watch_server_start(port = ports_take(), &pass, 0, 1, 0, &err);
    assert_non_null(server);
    fill(fds);
    atomic_fetch_add(&now_ms, PATIENCE_MS - 1);
    fds[HOUSE - 1] = knock();
    fds[HOUSE] = knock();
    wait_for_turns();
    assert_int_equal(count_closed(fds), 0);

    atomic_fetch_add(&now_ms, 1);
    assert_int_equal(recv(fds[0], &byte, 1, 0), 0); /* waits for it */
    cleanup_resolver struct resolver *at = resolver_new("127.0.0.1", port);
    assert_int_equal(watch_join(&w, at, 0, 1, &pass, &me, INT64_MAX, &err), 0);
    assert_int_equal(count_closed(fds), 2);
    watch_close(&w, true);
    watch_server_stop(server);
    for (int i = 0; i <= HOUSE; i++)
        close(fds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_full_house_keeps_no_rank_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
