/* fuzz_health.c - any bytes sent to the operator's port of probes and metrics: it sends a valid answer or none, reads no file,
 * and serves the next client. Byte 0: how many bytes are sent first. */
#include "fuzz.h"

#include "kube/health.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static int get_ok(void *ctx, struct buf *body)
{
    struct err err;

    (void)ctx;
    MUST(buf_puts(body, "ok\n", &err) == 0);
    return 200;
}

static struct kube_loop *loop;
static int port;

static void begin(void)
{
    static const struct health_page pages[] = {{.path = "/healthz", .get = get_ok}};
    struct err err;

    loop = kube_loop_new(clock_system(), &err);
    MUST(loop);
    struct health *h = health_new(loop, "127.0.0.1:0", pages, 1, &err);
    MUST(h);
    port = health_port(h);
}

static int dial(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct linger gone = {.l_onoff = 1}; /* no ports in TIME_WAIT: there are only so many */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_LINGER, &gone, sizeof(gone)) == 0);
    MUST(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    return fd;
}

/* The answer's bytes; turns of the loop until it hangs up. */
static size_t hear(int fd, char *out, size_t size)
{
    struct err err;
    size_t len = 0;

    for (int turns = 0; turns < 100; turns++) {
        MUST(kube_loop_turn(loop, 0, &err) == 0);
        ssize_t n = recv(fd, out + len, size - 1 - len, MSG_DONTWAIT);
        if (n > 0)
            len += (size_t)n;
        else if (n == 0 || len)
            break;
    }
    out[len] = '\0';
    return len;
}

static void say(int fd, const uint8_t *data, size_t size)
{
    struct err err;

    if (size)
        (void)send(fd, data, size, MSG_NOSIGNAL);
    MUST(kube_loop_turn(loop, 0, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char USUAL[] = "GET /healthz HTTP/1.1\r\n\r\n";
    char text[4096];

    if (!loop)
        begin();
    if (size < 1 || size > 8192)
        return 0;
    const size_t first = data[0] < size - 1 ? data[0] : size - 1;
    int fd = dial();
    say(fd, data + 1, first);
    say(fd, data + 1 + first, size - 1 - first);
    (void)shutdown(fd, SHUT_WR);
    if (hear(fd, text, sizeof(text))) {
        MUST(strncmp(text, "HTTP/1.1 ", 9) == 0 && strstr(text, "\r\n\r\n"));
        const int status = atoi(text + 9);
        MUST(status == 200 || status == 404 || status == 405);
        MUST(status != 200 || memmem(data, size, "/healthz", 8));
    }
    close(fd);
    fd = dial();
    say(fd, (const uint8_t *)USUAL, sizeof(USUAL) - 1);
    MUST(hear(fd, text, sizeof(text)) && strncmp(text, "HTTP/1.1 200 ", 13) == 0);
    close(fd);
    return 0;
}
