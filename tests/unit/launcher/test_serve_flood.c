/* test_serve_flood.c - a launcher answers requests for its progress during a flood from one address. */
#include "../flood.h"
#include "../ports.h"
#include "launcher/progress/serve.h"
#include "rendezvous/net.h"

#include <poll.h>
#include <string.h>

enum { GETS = 4 };

/* From 127.0.0.1, as long as it takes, but not for ever. */
static void get(int port)
{
    static const uint8_t home[16] = {[10] = 0xff, [11] = 0xff, 127, [15] = 1};
    static const char text[] = "GET /progress HTTP/1.1\r\n\r\n";
    const int64_t limit_ms = clock_mono_ms() + FLOOD_SERVED_MS;
    char got[4096] = "";

    while (!strstr(got, "\"job\": \"1f0c\"")) {
        cleanup_close int fd = net_connect(home, port);
        if (clock_mono_ms() > limit_ms)
            fail_msg("no answer within %d s, but \"%s\"", FLOOD_SERVED_MS / 1000, got);
        if (net_wait(fd, POLLOUT, 10000) != 1)
            continue;
        (void)send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
        if (net_wait(fd, POLLIN, 10000) == 1)
            (void)!recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);
    }
}

static void test_gets_beside_a_flood(void **state)
{
    struct answer a = {.job_uid = "1f0c", .straggler_rank = -1};
    struct err err = {0};
    const int port = ports_take();

    (void)state;
    progress_init(&a.progress);
    struct serve *s = serve_start(port, &a, &err);
    assert_non_null(s);
    struct flood f = flood_begin(&port, 1);
    const int64_t begin_ms = clock_mono_ms();
    for (int i = 0; i < GETS; i++)
        get(port);
    flood_end(&f, "four GETs were answered", GETS, begin_ms);
    serve_stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gets_beside_a_flood)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
