/* http_server.c - one connection at a time; the path says how it behaves. */
#include "trainer/data/http_server.h"

#include "test.h"

#include "common/fsutil.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BODY = HTTP_SERVER_BODY, CUT = HTTP_SERVER_CUT };

const uint8_t *http_server_body(void)
{
    static uint8_t body[BODY];

    for (int i = 0; i < BODY; i++)
        body[i] = (uint8_t)(i * 7 + i / 256);
    return body;
}

static void say(int fd, const char *text)
{
    (void)!fs_write_all(fd, text, strlen(text));
}

/* The body from `from` on, `len` bytes of it, however many were promised. */
static void answer(int fd, const char *status, int64_t from, int64_t len, const char *more)
{
    char head[256];

    snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %lld\r\n%s\r\n", status,
             (long long)(BODY - from), more);
    say(fd, head);
    (void)!fs_write_all(fd, http_server_body() + from, (size_t)len);
}

static void serve_one(int fd, struct http_seen *seen, int port)
{
    char request[4096];
    char head[256];
    ssize_t n = read(fd, request, sizeof(request) - 1);
    int64_t from = 0;

    if (n <= 0)
        return;
    request[n] = '\0';
    seen->requests++;
    const char *range = strstr(request, "Range: bytes=");
    if (range) {
        from = atoll(range + 13);
        seen->ranges++;
        seen->from = from;
    }
    const char *path = request + 4;
    if (strncmp(path, "/busy", 5) == 0)
        path = seen->requests <= 2 ? "/503" : "/good";
    snprintf(head, sizeof(head), "Content-Range: bytes %lld-%d/%d\r\n", (long long)from, BODY - 1, BODY);
    if (strncmp(path, "/good", 5) == 0 && from >= BODY)
        say(fd, "HTTP/1.1 416 Range\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    else if (strncmp(path, "/good", 5) == 0 && range)
        answer(fd, "206 Partial", from, BODY - from, head);
    else if (strncmp(path, "/good", 5) == 0 || strncmp(path, "/whole", 6) == 0)
        answer(fd, "200 OK", 0, BODY, "");
    else if (strncmp(path, "/cut", 4) == 0)
        answer(fd, "200 OK", 0, CUT, "");
    else if (strncmp(path, "/wrong", 6) == 0)
        say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwrong");
    else if (strncmp(path, "/503", 4) == 0)
        say(fd, "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    else if (strncmp(path, "/loop", 5) == 0)
        say(fd, "HTTP/1.1 302 Found\r\nLocation: /loop\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    else if (strncmp(path, "/file", 5) == 0)
        say(fd, "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nConnection: close\r\nContent-Length: "
                "0\r\n\r\n");
    else if (strncmp(path, "/moved", 6) == 0) {
        snprintf(head, sizeof(head),
                 "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:%d/good\r\nConnection: "
                 "close\r\nContent-Length: "
                 "0\r\n\r\n",
                 port);
        say(fd, head);
    } else if (strncmp(path, "/endless", 8) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        while (!fs_write_all(fd, http_server_body(), BODY))
            ;
    } else if (strncmp(path, "/stall", 6) == 0) {
        answer(fd, "200 OK", 0, CUT, "");
        (void)!read(fd, request, 1); /* until the other side has had enough */
    } else {
        say(fd, "HTTP/1.1 404 None\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    }
}

static void serve(int listener, struct http_seen *seen, int port)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        cleanup_close int fd = accept(listener, NULL, NULL);
        if (fd >= 0)
            serve_one(fd, seen, port);
    }
}

void http_server_start(struct http_server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    s->seen = mmap(NULL, sizeof(*s->seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s->seen != MAP_FAILED);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (!s->pid)
        serve(listener, s->seen, s->port);
    close(listener);
}

void http_server_stop(struct http_server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    munmap(s->seen, sizeof(*s->seen));
}
