/* proxy.c - one thread, poll, and a handshake for each new connection. */
#include "tests/fakes/proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TUNNELS_MAX = 32 };

struct tunnel {
    int client, server;
};

struct fake_proxy {
    pthread_t thread;
    pthread_mutex_t lock;
    bool socks5, refuse;
    int listener, port;
    int adopt[2]; /* descriptors to serve come through this pipe; its end means stop */
    struct tunnel tunnels[TUNNELS_MAX];
    size_t n;
    struct fake_proxy_log log;
};

static bool read_all(int fd, void *to, size_t n)
{
    return recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

static void put(int fd, const void *bytes, size_t n)
{
    (void)!send(fd, bytes, n, MSG_NOSIGNAL);
}

static int dial(const char *target)
{
    const char *colon = strrchr(target, ':');
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_port = htons((uint16_t)(colon ? atoi(colon + 1) : 0));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The target that the client names, or false. */
static bool ask_connect(int fd, char head[static 2000], char target[static 300])
{
    size_t n = 0;

    while (n < 1999 && !strstr(head, "\r\n\r\n")) {
        if (!read_all(fd, head + n, 1))
            return false;
        head[++n] = '\0';
    }
    return sscanf(head, "CONNECT %299s HTTP/1.", target) == 1;
}

static bool ask_socks(int fd, char target[static 300])
{
    unsigned char head[4], methods[255], name[256] = "";
    unsigned char length = 4, port[2];

    if (!read_all(fd, head, 2) || head[0] != 5 || !read_all(fd, methods, head[1]))
        return false;
    put(fd, "\5\0", 2);
    if (!read_all(fd, head, 4) || head[1] != 1)
        return false;
    bool named = head[3] == 3;
    if ((named && !read_all(fd, &length, 1)) || !read_all(fd, name, length) || !read_all(fd, port, 2))
        return false;
    if (named)
        snprintf(target, 300, "%.*s:%d", length, (char *)name, port[0] << 8 | port[1]);
    else
        snprintf(target, 300, "%d.%d.%d.%d:%d", name[0], name[1], name[2], name[3], port[0] << 8 | port[1]);
    return true;
}

static void answer(struct fake_proxy *p, int fd, bool granted)
{
    const char *text = granted ? "HTTP/1.1 200 Connection established\r\n\r\n"
                               : "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";

    if (p->socks5)
        put(fd, granted ? "\5\0\0\1\0\0\0\0\0\0" : "\5\2\0\1\0\0\0\0\0\0", 10);
    else
        put(fd, text, strlen(text));
}

static void open_tunnel(struct fake_proxy *p, int client)
{
    char head[2000] = "";
    char target[300] = "";
    bool asked = p->socks5 ? ask_socks(client, target) : ask_connect(client, head, target);

    pthread_mutex_lock(&p->lock);
    bool granted = asked && !p->refuse && p->n < TUNNELS_MAX;
    if (asked) {
        p->log.tunnels++;
        memcpy(p->log.head, head, sizeof(head));
        memcpy(p->log.target, target, sizeof(target));
        p->log.sent[0] = '\0';
    }
    pthread_mutex_unlock(&p->lock);
    int server = granted ? dial(target) : -1;
    if (asked)
        answer(p, client, server >= 0);
    if (server < 0) {
        close(client);
        return;
    }
    p->tunnels[p->n++] = (struct tunnel){client, server};
}

static void note_sent(struct fake_proxy *p, const char *bytes, size_t n)
{
    pthread_mutex_lock(&p->lock);
    size_t have = strlen(p->log.sent);
    size_t room = sizeof(p->log.sent) - 1 - have;
    memcpy(p->log.sent + have, bytes, n < room ? n : room);
    p->log.sent[have + (n < room ? n : room)] = '\0';
    pthread_mutex_unlock(&p->lock);
}

/* False at the end of either side. */
static bool relay(struct fake_proxy *p, int from, int to, bool from_client)
{
    char bytes[4096];
    ssize_t n = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n <= 0)
        return n < 0;
    if (from_client)
        note_sent(p, bytes, (size_t)n);
    put(to, bytes, (size_t)n);
    return true;
}

static void close_tunnel(struct fake_proxy *p, size_t i)
{
    close(p->tunnels[i].client);
    close(p->tunnels[i].server);
    p->tunnels[i] = p->tunnels[--p->n];
}

static void *serve(void *ctx)
{
    struct fake_proxy *p = ctx;
    struct pollfd fds[2 + 2 * TUNNELS_MAX];
    int fd = -1;

    for (;;) {
        size_t n = p->n;
        fds[0] = (struct pollfd){p->adopt[0], POLLIN, 0};
        fds[1] = (struct pollfd){p->listener, POLLIN, 0};
        for (size_t i = 0; i < n; i++) {
            fds[2 + 2 * i] = (struct pollfd){p->tunnels[i].client, POLLIN, 0};
            fds[3 + 2 * i] = (struct pollfd){p->tunnels[i].server, POLLIN, 0};
        }
        poll(fds, (nfds_t)(2 + 2 * n), -1);
        for (size_t i = n; i-- > 0;) { /* downwards: closing one moves the last here */
            struct tunnel t = p->tunnels[i];
            bool alive = !fds[2 + 2 * i].revents || relay(p, t.client, t.server, true);
            if (!alive || (fds[3 + 2 * i].revents && !relay(p, t.server, t.client, false)))
                close_tunnel(p, i);
        }
        if (fds[0].revents && read(p->adopt[0], &fd, sizeof(fd)) != sizeof(fd))
            return NULL;
        if (fds[0].revents)
            open_tunnel(p, fd);
        if (fds[1].revents)
            open_tunnel(p, accept4(p->listener, NULL, NULL, SOCK_CLOEXEC));
    }
}

struct fake_proxy *fake_proxy_start(bool socks5)
{
    struct fake_proxy *p = calloc(1, sizeof(*p));
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    p->socks5 = socks5;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (pipe2(p->adopt, O_CLOEXEC) < 0 || bind(p->listener, (struct sockaddr *)&at, len) < 0 ||
        listen(p->listener, 16) < 0 || getsockname(p->listener, (struct sockaddr *)&at, &len) < 0)
        abort();
    p->port = ntohs(at.sin_port);
    pthread_mutex_init(&p->lock, NULL);
    if (pthread_create(&p->thread, NULL, serve, p) != 0)
        abort();
    return p;
}

void fake_proxy_stop(struct fake_proxy *p)
{
    close(p->adopt[1]);
    pthread_join(p->thread, NULL);
    while (p->n)
        close_tunnel(p, 0);
    close(p->adopt[0]);
    close(p->listener);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

int fake_proxy_port(const struct fake_proxy *p)
{
    return p->port;
}

void fake_proxy_adopt(struct fake_proxy *p, int fd)
{
    if (write(p->adopt[1], &fd, sizeof(fd)) != sizeof(fd))
        abort();
}

void fake_proxy_refuse(struct fake_proxy *p, bool refuse)
{
    pthread_mutex_lock(&p->lock);
    p->refuse = refuse;
    pthread_mutex_unlock(&p->lock);
}

void fake_proxy_look(struct fake_proxy *p, struct fake_proxy_log *ret)
{
    pthread_mutex_lock(&p->lock);
    *ret = p->log;
    pthread_mutex_unlock(&p->lock);
}
