/* health.c - serve /healthz, /readyz and /metrics: one bounded request per connection, slow clients dropped. */
#include "kube/health.h"

#include "common/memory.h"
#include "common/sv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    REQUEST_MAX_BYTES = 4096,
    ANSWER_MAX_BYTES = 1 << 20,
    CLIENT_TIMEOUT_MS = 5000,
    /* When all slots are taken, a new client replaces the oldest, if that is at least this old. A probe sends its
     * request immediately; without this rule a few silent connections would block it until the kubelet kills us. */
    PATIENCE_MS = 100,
};

struct client {
    struct health *h;
    struct kube_loop_fd io; /* io.fd -1: this slot is free */
    struct kube_loop_timer deadline;
    int64_t came_ms;
    struct buf in, out;
    size_t sent;
};

struct health {
    struct kube_loop *loop;
    const struct health_page *pages;
    size_t n_pages;
    struct kube_loop_fd listener;
    struct kube_loop_timer reopen; /* resumes accepting when the oldest client is PATIENCE_MS old */
    int port;
    struct client clients[HEALTH_CLIENTS_MAX];
};

/* host: a numeric address; "::" accepts IPv4 as well. Returns -1 with errno; EINVAL: not an address. */
static int listen_at(const char *host, const char *port)
{
    static const struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    static const int on = 1, off = 0;
    struct addrinfo *at = NULL;

    if (getaddrinfo(host, port, &numeric, &at) != 0) {
        errno = EINVAL;
        return -1;
    }
    cleanup_close int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool ok =
        fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        (at->ai_family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0) &&
        bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
    freeaddrinfo(at);
    return ok ? TAKE_FD(fd) : -1;
}

/* "host:port" with the host empty, an address, or an IPv6 address in brackets. ":8081" means all addresses,
 * IPv6 included if the machine has it. */
static int listen_on(const char *address, struct err *err)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : 0;
    bool v6 = len >= 2 && address[0] == '[' && colon[-1] == ']';
    char host[64];
    int64_t port;

    if (!colon || len >= sizeof(host) || !sv_i64(sv_from(colon + 1), 0, 65535, &port))
        return err_set(err, ERR_INVALID, "listen address \"%.80s\": expected host:port or :port", address);
    snprintf(host, sizeof(host), "%.*s", (int)len - 2 * v6, address + v6);
    int fd = len ? listen_at(host, colon + 1) : listen_at("::", colon + 1);
    if (fd < 0 && !len)
        fd = listen_at("0.0.0.0", colon + 1);
    if (fd < 0 && errno == EINVAL)
        return err_set(err, ERR_INVALID, "listen address \"%.80s\": expected an IP address, not a name",
                       address);
    return fd < 0 ? err_errno(err, ERR_FATAL, errno, "listen on %s", address) : fd;
}

static void close_client(void *ctx)
{
    struct client *c = ctx;

    kube_loop_fd_remove(c->h->loop, &c->io);
    kube_loop_timer_cancel(c->h->loop, &c->deadline);
    close(c->io.fd);
    c->io.fd = -1;
    c->h->listener.events = POLLIN;
    buf_release(&c->in);
    buf_release(&c->out);
}

static void answer(struct client *c, int status, const char *type, const struct buf *body, bool head)
{
    const char *reason = status == 200 ? "OK" : status == 404 ? "Not Found" : "Error";

    /* The limit leaves room for head and body. */
    buf_printf(&c->out, NULL,
               "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
               status, reason, type, body->len);
    if (!head)
        buf_append(&c->out, buf_str(body), body->len, NULL);
    c->io.events = POLLOUT;
}

static void serve(struct client *c)
{
    static const char text[] = "text/plain; charset=utf-8";
    cleanup_buf struct buf body = BUF_INIT(ANSWER_MAX_BYTES);
    struct sv rest = {c->in.data, c->in.len};
    struct sv method = {0};
    struct sv target = {0};
    struct sv path = {0};

    sv_next(&rest, ' ', &method);
    sv_next(&rest, ' ', &target);
    sv_next(&target, '?', &path);
    bool head = sv_eq(method, "HEAD");
    if (!head && !sv_eq(method, "GET")) {
        buf_puts(&body, "only GET and HEAD\n", NULL);
        answer(c, 405, text, &body, false);
        return;
    }
    for (size_t i = 0; i < c->h->n_pages; i++) {
        const struct health_page *p = &c->h->pages[i];
        if (!sv_eq(path, p->path))
            continue;
        int status = p->get(p->ctx, &body);
        answer(c, status, p->content_type ? p->content_type : text, &body, head);
        return;
    }
    buf_puts(&body, "no such page\n", NULL);
    answer(c, 404, text, &body, head);
}

static void read_client(struct client *c)
{
    char bytes[1024];
    ssize_t n = recv(c->io.fd, bytes, sizeof(bytes), 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || buf_append(&c->in, bytes, (size_t)n, NULL) < 0) {
        close_client(c);
        return;
    }
    if (strstr(c->in.data, "\r\n\r\n"))
        serve(c);
}

static void write_client(struct client *c)
{
    ssize_t n = send(c->io.fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        c->sent += (size_t)n;
    if (n < 0 || c->sent == c->out.len)
        close_client(c);
}

static void on_client(void *ctx, short revents)
{
    struct client *c = ctx;

    (void)revents;
    if (c->io.events == POLLIN)
        read_client(c);
    else
        write_client(c);
}

static void on_reopen(void *ctx)
{
    struct health *h = ctx;

    h->listener.events = POLLIN;
}

/* A free slot, or the oldest client's. NULL while that client is younger than PATIENCE_MS: new clients wait
 * in the backlog. */
static struct client *find_slot(struct health *h)
{
    struct client *oldest = &h->clients[0];

    for (size_t i = 0; i < HEALTH_CLIENTS_MAX; i++) {
        if (h->clients[i].io.fd < 0)
            return &h->clients[i];
        if (h->clients[i].came_ms < oldest->came_ms)
            oldest = &h->clients[i];
    }
    if (kube_loop_now_ms(h->loop) >= oldest->came_ms + PATIENCE_MS)
        return oldest;
    h->listener.events = 0;
    kube_loop_timer_set(h->loop, &h->reopen, oldest->came_ms + PATIENCE_MS);
    return NULL;
}

static void on_listener(void *ctx, short revents)
{
    struct health *h = ctx;
    struct err ignored;
    struct client *c = find_slot(h);

    (void)revents;
    if (!c)
        return;
    int fd = accept4(h->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (c->io.fd >= 0)
        close_client(c);
    *c = (struct client){.h = h,
                         .came_ms = kube_loop_now_ms(h->loop),
                         .in = BUF_INIT(REQUEST_MAX_BYTES),
                         .out = BUF_INIT(ANSWER_MAX_BYTES + 4096)};
    c->io = (struct kube_loop_fd){.ready = on_client, .ctx = c, .fd = fd, .events = POLLIN};
    c->deadline = (struct kube_loop_timer){.fire = close_client, .ctx = c};
    kube_loop_timer_set(h->loop, &c->deadline, kube_loop_now_ms(h->loop) + CLIENT_TIMEOUT_MS);
    if (kube_loop_fd_add(h->loop, &c->io, &ignored) < 0)
        close_client(c);
}

struct health *health_new(struct kube_loop *l, const char *address, const struct health_page *pages,
                          size_t n_pages, struct err *err)
{
    struct sockaddr_in6 sa;
    socklen_t len = sizeof(sa);
    int fd = listen_on(address, err);

    if (fd < 0)
        return NULL;
    (void)getsockname(fd, (struct sockaddr *)&sa, &len);
    struct health *h = memory_must(calloc(1, sizeof(*h)));
    *h = (struct health){.loop = l, .pages = pages, .n_pages = n_pages};
    h->port = ntohs(sa.sin6_port); /* sin_port has the same offset in both families */
    for (size_t i = 0; i < HEALTH_CLIENTS_MAX; i++)
        h->clients[i].io.fd = -1;
    h->reopen = (struct kube_loop_timer){.fire = on_reopen, .ctx = h};
    h->listener = (struct kube_loop_fd){.ready = on_listener, .ctx = h, .fd = fd, .events = POLLIN};
    if (kube_loop_fd_add(l, &h->listener, err) == 0)
        return h;
    health_free(h);
    return NULL;
}

void health_free(struct health *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < HEALTH_CLIENTS_MAX; i++)
        if (h->clients[i].io.fd >= 0)
            close_client(&h->clients[i]);
    kube_loop_timer_cancel(h->loop, &h->reopen);
    kube_loop_fd_remove(h->loop, &h->listener);
    close(h->listener.fd);
    free(h);
}

int health_port(const struct health *h)
{
    return h->port;
}
