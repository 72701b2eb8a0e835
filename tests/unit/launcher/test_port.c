/* test_port.c - a port that is held for rank 0. */
#include "launcher/agent_state.h"
#include "test.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT_RANGE = 51 }; /* IP_LOCAL_PORT_RANGE, which older headers lack */

/* A socket with these options, bound to `port` of any address; -1 with errno. */
static int bound_to(int port, bool reuse)
{
    const struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){reuse}, sizeof(int));
    if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* A connection to `to`, for which the kernel may choose no port but `from`. Returns 0 or an errno. */
static int connect_from(int from, int to)
{
    const struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)to), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const uint32_t range = (uint32_t)from << 16 | (uint32_t)from;

    if (setsockopt(fd, IPPROTO_IP, PORT_RANGE, &range, sizeof(range)) < 0)
        skip(); /* Linux before 6.3 */
    return connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 ? 0 : errno;
}

/* A port between its choice and rank 0 that listens at it belongs to rank 0: a connection that goes out took it once. */
static void test_a_port_is_held(void **state)
{
    cleanup_close int held = -1, other = -1;
    struct err err = {0};
    int port = 0, other_port = 0;

    (void)state;
    assert_int_equal(agent_hold_port(&port, &held, &err), 0);
    assert_int_equal(agent_hold_port(&other_port, &other, &err), 0);
    assert_true(port > 0 && port < 65536 && port != other_port);
    assert_int_equal(bound_to(port, false), -1);

    cleanup_close int rank0 = bound_to(port, true), elsewhere = bound_to(0, false);
    assert_true(rank0 >= 0 && listen(rank0, 1) == 0 && listen(elsewhere, 4) == 0);
    struct sockaddr_in addr;
    assert_int_equal(getsockname(elsewhere, (struct sockaddr *)&addr, &(socklen_t){sizeof(addr)}), 0);
    assert_int_equal(connect_from(other_port, ntohs(addr.sin_port)), EADDRNOTAVAIL);
    close(other);
    other = -1;
    assert_int_equal(connect_from(other_port, ntohs(addr.sin_port)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_port_is_held)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
