/* serve.c - the thread that serves the launcher's progress: its connections, one short request each. */
#include "launcher/progress/serve.h"
#include "common/clock.h"
#include "common/memory.h"
#include "rendezvous/net.h"
#include "rendezvous/service.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* PATIENCE_MS: a place is given away at most so often, also one that is free again. This bounds the connections per second; those of
 * one address, which has EACH_MAX places, to half of that.
 * PAUSE_MS: between two looks at the connections, so that bytes sent one by one are read together.
 * REST_BYTES: read and dropped behind a request: closing with unread bytes would take back the reply. */
enum {
    PLACES = 32,
    EACH_MAX = 16,
    PATIENCE_MS = 100,
    DEADLINE_MS = 2000,
    PAUSE_MS = 1,
    REST_BYTES = 256 * 1024
};

struct place {
    int fd; /* -1: free */
    uint8_t addr[16];
    int64_t came_ms;
    size_t len;    /* bytes in `in` */
    bool answered; /* what comes now is behind the request: */
    size_t rest;   /* so many bytes */
    char in[REPLY_REQUEST_BYTES];
};

struct serve {
    struct service service;
    pthread_mutex_t lock; /* of `answer` */
    struct answer answer;
    struct place places[PLACES];
    struct pollfd pfds[PLACES + 2];
};

static void leave(struct place *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

static bool would_block(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Answer once the request is complete. False: the connection takes no reply; a new one has room for more than the longest. */
static bool reply(struct serve *s, struct place *p)
{
    cleanup_buf struct buf out = BUF_INIT(REPLY_BYTES);

    pthread_mutex_lock(&s->lock);
    const struct answer now = s->answer;
    pthread_mutex_unlock(&s->lock);
    p->answered = answer_reply(&now, (struct sv){p->in, p->len}, &out);
    return !p->answered || (send(p->fd, out.data, out.len, MSG_NOSIGNAL) == (ssize_t)out.len &&
                            shutdown(p->fd, SHUT_WR) == 0);
}

/* Read the request, or drop what comes behind it. False: the connection is to be closed. */
static bool turn(struct serve *s, struct place *p)
{
    char bytes[4096];
    const ssize_t n = p->answered ? recv(p->fd, bytes, sizeof(bytes), 0)
                                  : recv(p->fd, p->in + p->len, sizeof(p->in) - p->len, 0);

    if (n <= 0)
        return would_block(n);
    *(p->answered ? &p->rest : &p->len) += (size_t)n;
    return p->answered ? p->rest < REST_BYTES : reply(s, p);
}

/* A place is given away whoever has it, also one that is free again. */
static bool look_at_place(const void *arg, int at, struct service_guest *g)
{
    const struct place *p = &((const struct serve *)arg)->places[at];

    *g = (struct service_guest){.came_ms = p->came_ms, .addr = p->addr};
    return true;
}

static void welcome(struct serve *s)
{
    const struct service_crowd places = {.places = PLACES,
                                         .look = look_at_place,
                                         .arg = s,
                                         .max = PLACES,
                                         .each = EACH_MAX,
                                         .patience_ms = PATIENCE_MS};
    uint8_t addr[16];
    int at;
    const int fd = service_admit(&s->service, &places, addr, &at);

    if (fd < 0)
        return;
    struct place *p = &s->places[at];
    leave(p);
    p->fd = fd;
    memcpy(p->addr, addr, sizeof(addr));
    p->came_ms = clock_mono_ms();
    p->len = p->rest = 0;
    p->answered = false;
}

/* Fill the places' pfds. Returns when poll has to wake up. */
static int64_t prepare(struct serve *s)
{
    int64_t due_ms = INT64_MAX;

    for (int i = 0; i < PLACES; i++) {
        const struct place *p = &s->places[i];
        s->pfds[i + 2] = (struct pollfd){.fd = p->fd, .events = POLLIN};
        if (p->fd >= 0 && p->came_ms + DEADLINE_MS < due_ms)
            due_ms = p->came_ms + DEADLINE_MS;
    }
    return due_ms;
}

static void *run(void *arg)
{
    struct serve *s = arg;

    while (!service_poll(&s->service, s->pfds, PLACES, prepare(s))) {
        const int64_t now_ms = clock_mono_ms();
        for (int i = 0; i < PLACES; i++) {
            struct place *p = &s->places[i];
            if (p->fd >= 0 && ((s->pfds[i + 2].revents && !turn(s, p)) || now_ms >= p->came_ms + DEADLINE_MS))
                leave(p);
        }
        if (service_ready(s->pfds))
            welcome(s);
        (void)net_wait(-1, 0, PAUSE_MS);
    }
    return NULL;
}

static void release(struct serve *s)
{
    for (int i = 0; i < PLACES; i++)
        leave(&s->places[i]);
    service_close(&s->service);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

struct serve *serve_start(int port, const struct answer *a, struct err *err)
{
    struct serve *s = memory_must(calloc(1, sizeof(*s)));

    s->answer = *a;
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < PLACES; i++)
        s->places[i].fd = -1;
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

void serve_tell(struct serve *s, const struct answer *a)
{
    pthread_mutex_lock(&s->lock);
    s->answer = *a;
    pthread_mutex_unlock(&s->lock);
}
