/* fakepods.c - the server: one descriptor of the loop for each connection. */
#include "fakepods.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static unsigned served_port;

bool fakepods_url(const char *ip, char url[static PODADDRESS_URL_BYTES])
{
    int n = snprintf(url, PODADDRESS_URL_BYTES, "http://127.0.0.1:%u/%s", served_port, ip);

    assert_in_range(n, 1, PODADDRESS_URL_BYTES - 1);
    return true;
}

void fakepods_say(struct fakepods_reply *ret, const char *body)
{
    ret->end = FAKEPODS_CLOSES;
    snprintf(ret->first, sizeof(ret->first),
             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
             strlen(body));
    snprintf(ret->rest, sizeof(ret->rest), "%s", body);
}

static void hang_up(struct fakepods_connection *c)
{
    kube_loop_fd_remove(c->of->loop, &c->fd);
    close(c->fd.fd);
    c->fd.fd = -1;
    c->of->open--;
}

/* What is to be sent next; 0: nothing more. */
static size_t next_bytes(struct fakepods_connection *c, const char **ret)
{
    size_t first = strlen(c->reply.first);
    size_t rest = strlen(c->reply.rest);

    if (c->sent == first + rest && c->reply.end == FAKEPODS_REPEATS)
        c->sent = first;
    *ret = c->sent < first ? c->reply.first + c->sent : c->reply.rest + (c->sent - first);
    return strlen(*ret);
}

static void answer(struct fakepods_connection *c)
{
    const char *bytes;
    size_t n = next_bytes(c, &bytes);

    if (n) {
        ssize_t sent = send(c->fd.fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0)
            hang_up(c);
        else
            c->sent += (size_t)sent, c->of->sent += (size_t)sent;
    } else if (c->reply.end == FAKEPODS_CLOSES) {
        hang_up(c);
    } else {
        c->fd.events = POLLIN; /* for its end */
    }
}

static void read_request(struct fakepods_connection *c)
{
    struct fakepods *f = c->of;
    ssize_t n = recv(c->fd.fd, c->request + c->len, sizeof(c->request) - 1 - c->len, 0);

    if (n <= 0) {
        hang_up(c);
        return;
    }
    c->len += (size_t)n;
    c->request[c->len] = '\0';
    if (c->answering || !strstr(c->request, "\r\n\r\n"))
        return;
    char path[1024] = "";
    memcpy(f->last, c->request, sizeof(f->last));
    (void)sscanf(c->request, "GET /%1000s", path);
    f->requests++;
    c->answering = true;
    c->fd.events = POLLIN | POLLOUT;
    f->answer(f->ctx, path, &c->reply);
}

static void on_connection(void *ctx, short revents)
{
    struct fakepods_connection *c = ctx;

    if (c->answering && (revents & POLLOUT))
        answer(c);
    else
        read_request(c);
}

static void on_listener(void *ctx, short revents)
{
    struct fakepods *f = ctx;
    struct fakepods_connection *c = f->connections;
    struct err err;

    (void)revents;
    int fd = accept4(f->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    while (c->fd.fd >= 0)
        c++;
    assert_true(c < f->connections + FAKEPODS_CONNECTIONS);
    *c = (struct fakepods_connection){.of = f,
                                      .fd = {.ready = on_connection, .ctx = c, .fd = fd, .events = POLLIN}};
    assert_int_equal(kube_loop_fd_add(f->loop, &c->fd, &err), 0);
    f->open++;
    f->open_max = f->open > f->open_max ? f->open : f->open_max;
}

void fakepods_start(struct fakepods *f)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    struct err err;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, FAKEPODS_CONNECTIONS), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    served_port = ntohs(at.sin_port);
    for (int i = 0; i < FAKEPODS_CONNECTIONS; i++)
        f->connections[i].fd.fd = -1;
    f->listener = (struct kube_loop_fd){.ready = on_listener, .ctx = f, .fd = fd, .events = POLLIN};
    assert_int_equal(kube_loop_fd_add(f->loop, &f->listener, &err), 0);
}

void fakepods_stop(struct fakepods *f)
{
    for (int i = 0; i < FAKEPODS_CONNECTIONS; i++)
        if (f->connections[i].fd.fd >= 0)
            hang_up(&f->connections[i]);
    kube_loop_fd_remove(f->loop, &f->listener);
    close(f->listener.fd);
}
