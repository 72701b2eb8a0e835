/* test_service.c - which clients a full service admits, and which connections it closes for them: from 127.0.0.1 and its neighbours. */
#include "rendezvous/service.h"
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX = 6, EACH = 3, PLACES = 32, EVICT_AGE_MS = 250 };

static _Atomic int64_t now_ms = 1000;

/* The linker puts it instead of clock_mono_ms (CMakeLists.txt). */
int64_t __wrap_clock_mono_ms(void);

int64_t __wrap_clock_mono_ms(void)
{
    return now_ms;
}

static struct service service;
static struct {
    int fd;
    bool friend, greeted;
    int64_t came_ms;
    uint8_t addr[16];
} places[PLACES];
static int n;

static bool look(const void *arg, int at, struct service_conn *g)
{
    (void)arg;
    *g = (struct service_conn){places[at].greeted, places[at].came_ms, places[at].addr};
    return places[at].fd >= 0 && !places[at].friend;
}

static int each = EACH;

/* Who is let in gets the next place: its number; -1: nobody. *evicted: who is closed. */
static int admit(int *evicted)
{
    const struct service_limits c = {
        .n = n, .get = look, .max = MAX, .per_address = each, .evict_age_ms = EVICT_AGE_MS};
    int ignored;

    evicted = evicted ? evicted : &ignored;
    *evicted = -1;
    const int fd = service_accept(&service, &c, places[n].addr, evicted);
    if (fd < 0)
        return -1;
    if (*evicted >= 0) {
        close(places[*evicted].fd);
        places[*evicted].fd = -1;
    }
    places[n].fd = fd;
    places[n].came_ms = now_ms;
    places[n].greeted = places[n].friend = false;
    return n++;
}

/* Connect from 127.0.0.`host`; the kernel completes it. */
static int knock(int host)
{
    const struct sockaddr_in from = {.sin_family = AF_INET,
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)host - 1)},
                             to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)service.port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && bind(fd, (const struct sockaddr *)&from, sizeof(from)) == 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static bool is_reset(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == ECONNRESET;
}

static int setup(void **state)
{
    struct err err;

    (void)state;
    n = 0;
    return service_open(&service, 0, &err);
}

static int teardown(void **state)
{
    (void)state;
    while (n--)
        if (places[n].fd >= 0)
            close(places[n].fd);
    service_close(&service);
    return 0;
}

/* One address gets its share; what it sends beyond is reset in one go, and the next address comes in behind it. */
static void test_a_flood_from_one_address(void **state)
{
    int fds[20], evicted;

    (void)state;
    for (int i = 0; i < 20; i++)
        fds[i] = knock(2);
    const int other = knock(3);
    for (int i = 0; i < EACH; i++)
        assert_int_equal(admit(&evicted), i);
    assert_int_equal(admit(&evicted), EACH);
    assert_int_equal(evicted, -1);
    assert_int_equal(places[EACH].addr[15], 3);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(is_reset(fds[i]), i >= EACH);
        close(fds[i]);
    }
    assert_false(is_reset(other));
    close(other);
}

/* Its oldest gives way to its newest, once it has had its time; other addresses' do not. */
static void test_one_address_gives_way_to_itself(void **state)
{
    int evicted;

    (void)state;
    close(knock(3));
    assert_int_equal(admit(NULL), 0); /* the oldest of all */
    now_ms += 10;
    for (int i = 0; i < EACH; i++, now_ms += 10) {
        close(knock(2));
        assert_int_equal(admit(NULL), 1 + i);
    }
    close(knock(2));
    assert_int_equal(admit(NULL), -1);
    now_ms = places[1].came_ms + EVICT_AGE_MS - 1;
    close(knock(2));
    assert_int_equal(admit(NULL), -1);
    now_ms++;
    places[1].greeted = true; /* who has spoken stays */
    close(knock(2));
    assert_int_equal(admit(NULL), -1);
    now_ms = places[2].came_ms + EVICT_AGE_MS;
    close(knock(2));
    assert_int_equal(admit(&evicted), 1 + EACH);
    assert_int_equal(evicted, 2);
    /* A friend takes no share. */
    places[3].friend = true;
    close(knock(2));
    assert_int_equal(admit(&evicted), 2 + EACH);
    assert_int_equal(evicted, -1);
}

/* A service that gives addresses no share. */
static void test_no_share(void **state)
{
    (void)state;
    each = 0;
    for (int i = 0; i < MAX; i++) {
        close(knock(4));
        assert_int_equal(admit(NULL), i);
    }
    each = EACH;
}

/* Many addresses: all wait until the oldest has had its time. */
static void test_a_full_house(void **state)
{
    int evicted;

    (void)state;
    for (int i = 0; i < MAX; i++, now_ms++) {
        close(knock(2 + i));
        assert_int_equal(admit(NULL), i);
    }
    const int fd = knock(20);
    assert_int_equal(admit(NULL), -1);
    assert_int_equal(service_listener(&service), -1);
    assert_false(is_reset(fd));
    now_ms = places[0].came_ms + EVICT_AGE_MS;
    assert_int_not_equal(service_listener(&service), -1);
    assert_int_equal(admit(&evicted), MAX);
    assert_int_equal(evicted, 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_flood_from_one_address, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_address_gives_way_to_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_share, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_house, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
