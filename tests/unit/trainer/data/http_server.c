/* http_server.c - serve one connection at a time; the path selects the behaviour. */
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

enum { BODY = HTTP_SERVER_BODY, CUT = 40000 };

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

/* `len` bytes of the body, however many were promised. */
static void answer(int fd, size_t len)
{
    char head[128];

    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", BODY);
    say(fd, head);
    (void)!fs_write_all(fd, http_server_body(), len);
}

static void moved(int fd, const char *where)
{
    char head[256];

    snprintf(head, sizeof(head),
             "HTTP/1.1 302 Found\r\nLocation: %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", where);
    say(fd, head);
}

static bool is(const char *asked, const char *place)
{
    return strncmp(asked, place, strlen(place)) == 0;
}

static void serve_one(int fd, struct http_seen *seen)
{
    char request[4096];
    ssize_t n = read(fd, request, sizeof(request) - 1);

    if (n <= 4)
        return;
    request[n] = '\0';
    seen->requests++;
    const char *asked = is(request + 4, "http://") ? seen->proxied : request + 4;
    if (is(asked, "/good")) {
        answer(fd, BODY);
    } else if (is(asked, "/cut")) {
        answer(fd, CUT);
    } else if (is(asked, "/wrong")) {
        say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwrong");
    } else if (is(asked, "/503")) {
        say(fd, "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    } else if (is(asked, "/loop")) {
        moved(fd, "/loop");
    } else if (is(asked, "/file")) {
        moved(fd, "file:///etc/passwd");
    } else if (is(asked, "/moved")) {
        moved(fd, "/good");
    } else if (is(asked, "/endless")) {
        say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        while (!fs_write_all(fd, http_server_body(), BODY))
            ;
    } else if (is(asked, "/stall")) {
        answer(fd, CUT);
        (void)!read(fd, request, 1); /* until the other side has had enough */
    } else {
        say(fd, "HTTP/1.1 404 None\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    }
}

static void serve(int listener, struct http_seen *seen)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        cleanup_close int fd = accept(listener, NULL, NULL);
        if (fd >= 0)
            serve_one(fd, seen);
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
        serve(listener, s->seen);
    close(listener);
}

void http_server_stop(struct http_server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    munmap(s->seen, sizeof(*s->seen));
}
