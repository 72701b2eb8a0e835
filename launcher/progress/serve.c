/* serve.c - the thread that serves the launcher's progress: its connections, one short request each. */
#include "launcher/progress/serve.h"
#include "common/clock.h"
#include "common/memory.h"
#include "rendezvous/net.h"
#include "rendezvous/service.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* EVICT_AGE_MS: a slot is reused only when it is this old, even if it is free. This limits all clients to
 * CONNS_MAX, and one address to PER_ADDRESS_MAX, connections per EVICT_AGE_MS. PAUSE_MS: pause between two
 * reads, so that bytes sent one at a time are read together. REST_BYTES: how much is read and dropped after a
 * request: close() with unread bytes would discard the reply. */
enum {
    CONNS_MAX = 32,
    PER_ADDRESS_MAX = 16,
    EVICT_AGE_MS = 100,
    DEADLINE_MS = 2000,
    PAUSE_MS = 1,
    REST_BYTES = 256 * 1024
};

struct conn {
    int fd; /* -1: free */
    uint8_t addr[16];
    int64_t came_ms;
    size_t len;    /* bytes in `in` */
    bool answered; /* the reply has been sent */
    size_t rest;   /* bytes read after the request */
    char in[REPLY_REQUEST_BYTES];
};

struct serve {
    struct service service;
    pthread_mutex_t lock; /* protects `answer` */
    struct answer answer;
    struct conn conns[CONNS_MAX];
    struct pollfd pfds[CONNS_MAX + 2];
};

static bool would_block(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Reply once the request is complete. False: the socket does not accept the whole reply, although its buffer
 * is larger. */
static bool reply(struct serve *s, struct conn *p)
{
    cleanup_buf struct buf out = BUF_INIT(REPLY_BYTES);

    pthread_mutex_lock(&s->lock);
    const struct answer now = s->answer;
    pthread_mutex_unlock(&s->lock);
    p->answered = answer_reply(&now, (struct sv){p->in, p->len}, &out);
    return !p->answered || (send(p->fd, out.data, out.len, MSG_NOSIGNAL) == (ssize_t)out.len &&
                            shutdown(p->fd, SHUT_WR) == 0);
}

/* Read the request, or drop bytes after it. False: close the connection. */
static bool turn(struct serve *s, struct conn *p)
{
    char bytes[4096];
    const ssize_t n = p->answered ? recv(p->fd, bytes, sizeof(bytes), 0)
                                  : recv(p->fd, p->in + p->len, sizeof(p->in) - p->len, 0);

    if (n <= 0)
        return would_block(n);
    *(p->answered ? &p->rest : &p->len) += (size_t)n;
    return p->answered ? p->rest < REST_BYTES : reply(s, p);
}

/* Every slot may be reused, a free one too (EVICT_AGE_MS). */
static bool get_conn(const void *arg, int at, struct service_conn *g)
{
    const struct conn *p = &((const struct serve *)arg)->conns[at];

    *g = (struct service_conn){.came_ms = p->came_ms, .addr = p->addr};
    return true;
}

static void welcome(struct serve *s)
{
    const struct service_limits conns = {.n = CONNS_MAX,
                                         .get = get_conn,
                                         .arg = s,
                                         .max = CONNS_MAX,
                                         .per_address = PER_ADDRESS_MAX,
                                         .evict_age_ms = EVICT_AGE_MS};
    uint8_t addr[16];
    int at;
    const int fd = service_accept(&s->service, &conns, addr, &at);

    if (fd < 0)
        return;
    struct conn *p = &s->conns[at];
    close_fd(&p->fd);
    p->fd = fd;
    memcpy(p->addr, addr, sizeof(addr));
    p->came_ms = clock_mono_ms();
    p->len = p->rest = 0;
    p->answered = false;
}

/* Fill the connections' pfds. Returns when poll has to wake up. */
static int64_t prepare(struct serve *s)
{
    int64_t due_ms = INT64_MAX;

    for (int i = 0; i < CONNS_MAX; i++) {
        const struct conn *p = &s->conns[i];
        s->pfds[i + 2] = (struct pollfd){.fd = p->fd, .events = POLLIN};
        if (p->fd >= 0 && p->came_ms + DEADLINE_MS < due_ms)
            due_ms = p->came_ms + DEADLINE_MS;
    }
    return due_ms;
}

static void *run(void *arg)
{
    struct serve *s = arg;

    while (!service_poll(&s->service, s->pfds, CONNS_MAX, prepare(s))) {
        const int64_t now_ms = clock_mono_ms();
        for (int i = 0; i < CONNS_MAX; i++) {
            struct conn *p = &s->conns[i];
            if (p->fd >= 0 && ((s->pfds[i + 2].revents && !turn(s, p)) || now_ms >= p->came_ms + DEADLINE_MS))
                close_fd(&p->fd);
        }
        if (service_ready(s->pfds))
            welcome(s);
        (void)net_wait(-1, 0, PAUSE_MS);
    }
    return NULL;
}

static void release(struct serve *s)
{
    for (int i = 0; i < CONNS_MAX; i++)
        close_fd(&s->conns[i].fd);
    service_close(&s->service);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

struct serve *serve_start(int port, const struct answer *a, struct err *err)
{
    struct serve *s = memory_must(calloc(1, sizeof(*s)));

    s->answer = *a;
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < CONNS_MAX; i++)
        s->conns[i].fd = -1;
    if (service_open(&s->service, port, err) == 0 && service_start(&s->service, run, s, err) == 0)
        return s;
    release(s);
    return NULL;
}

void serve_stop(struct serve *s)
{
    if (!s)
        return;
    service_stop(&s->service);
    release(s);
}

void serve_set(struct serve *s, const struct answer *a)
{
    pthread_mutex_lock(&s->lock);
    s->answer = *a;
    pthread_mutex_unlock(&s->lock);
}
