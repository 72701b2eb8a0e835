/* watch_server.c - the watch's thread: poll its connections, accept new ones, stop. */
#include "collectives/watch_server.h"
#include "collectives/net.h"
#include "collectives/watch_table.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

enum {
    UNKNOWN_MAX = 256, /* connections that have not registered yet */
    PATIENCE_MS = 250, /* with UNKNOWN_MAX of them: the age at which a new connection displaces the oldest */
    SPEAK_MS = 5000,   /* how long a connection has to register */
    SHUT_MS = 50,      /* how long to accept nothing after accept failed for lack of descriptors */
    PARTING_MS = 500,  /* how long the last messages may take */
};

struct watch_server {
    pthread_t thread;
    int listener, stop, port;
    int64_t shut_until_ms; /* accept nothing until then; 0: accept */
    struct watch_table table;
    struct pollfd *pfds; /* [max_slots + 2] */
};

/* The oldest connection that has not registered, when there are UNKNOWN_MAX of them; else -1. */
static int oldest_unknown(const struct watch_table *r)
{
    int n = 0, oldest = -1;

    for (int i = 0; i < r->n_slots; i++)
        if (r->slots[i]->rank < 0) {
            n++;
            oldest = oldest < 0 || r->slots[i]->came_ms < r->slots[oldest]->came_ms ? i : oldest;
        }
    return n >= UNKNOWN_MAX ? oldest : -1;
}

static void welcome(struct watch_server *s)
{
    const int64_t now = clock_mono_ms();
    const int oldest = oldest_unknown(&s->table);

    if (oldest >= 0 && now < s->table.slots[oldest]->came_ms + PATIENCE_MS) {
        s->shut_until_ms = s->table.slots[oldest]->came_ms + PATIENCE_MS;
        return;
    }
    int fd = net_accept(s->listener);
    if (fd < 0) {
        if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
            s->shut_until_ms = now + SHUT_MS;
        return;
    }
    if (oldest >= 0)
        watch_table_drop(&s->table, oldest);
    s->table.slots[s->table.n_slots++] = watch_slot_new(fd);
}

/* Fill pfds: the stop descriptor, the listener, then the slots. Returns when poll has to wake up. */
static int64_t prepare(struct watch_server *s, int64_t now, int64_t until_ms)
{
    if (s->shut_until_ms && now < s->shut_until_ms)
        until_ms = until_ms < s->shut_until_ms ? until_ms : s->shut_until_ms;
    else
        s->shut_until_ms = 0;
    s->pfds[0] = (struct pollfd){.fd = s->stop, .events = POLLIN};
    s->pfds[1] = (struct pollfd){.fd = s->shut_until_ms ? -1 : s->listener, .events = POLLIN};
    for (int i = 0; i < s->table.n_slots; i++) {
        const struct watch_slot *t = s->table.slots[i];
        s->pfds[i + 2] = (struct pollfd){.fd = t->fd, .events = t->out.len ? POLLIN | POLLOUT : POLLIN};
        int64_t due = t->answer_ms ? t->answer_ms : t->rank < 0 ? t->came_ms + SPEAK_MS : until_ms;
        until_ms = due < until_ms ? due : until_ms;
    }
    return until_ms;
}

static void serve_slots(struct watch_server *s, int n)
{
    struct watch_table *r = &s->table;
    const int64_t now = clock_mono_ms();

    for (int i = 0; i < n; i++) {
        struct watch_slot *t = r->slots[i];
        if (s->pfds[i + 2].revents & ~POLLOUT)
            watch_slot_read(r, t);
        if (t->answer_ms && now >= t->answer_ms)
            watch_table_answer(r, t);
        if (t->rank < 0 && now >= t->came_ms + SPEAK_MS)
            t->broken = true;
    }
    watch_table_go(r);
    for (int i = r->n_slots - 1; i >= 0; i--) {
        watch_slot_write(r->slots[i]);
        if (r->slots[i]->broken)
            watch_table_drop(r, i);
    }
}

static int turn(struct watch_server *s, int64_t until_ms)
{
    const int64_t now = clock_mono_ms(), due = prepare(s, now, until_ms);
    const int n = s->table.n_slots;

    if (poll(s->pfds, (nfds_t)n + 2, due <= now ? 0 : (int)(due - now)) < 0)
        return errno == EINTR ? 0 : -1;
    serve_slots(s, n);
    if (s->pfds[1].revents)
        welcome(s);
    return s->pfds[0].revents ? 1 : 0;
}

/* Before the end: read rank 0's last messages, up to the end of its connection, and send what is pending to the
 * others. */
static void part(struct watch_server *s)
{
    const int64_t end_ms = clock_mono_ms() + PARTING_MS;

    while ((s->table.by_rank[0] || watch_table_owes(&s->table)) && clock_mono_ms() < end_ms) {
        (void)turn(s, 0);
        poll(NULL, 0, 1);
    }
}

static void *serve(void *arg)
{
    struct watch_server *s = arg;
    int rc = 0;

    while (rc == 0)
        rc = turn(s, clock_mono_ms() + 60000);
    part(s);
    return NULL;
}

static void release(struct watch_server *s)
{
    while (s->table.n_slots)
        watch_table_drop(&s->table, s->table.n_slots - 1);
    if (s->listener >= 0)
        close(s->listener);
    if (s->stop >= 0)
        close(s->stop);
    free(s->table.members);
    free(s->table.by_rank);
    free(s->table.reported);
    free(s->table.slots);
    free(s->pfds);
    free(s);
}

/* thread_start blocks signals, so that they go to the rank's own thread. */
static int start_thread(struct watch_server *s, struct err *err)
{
    int code = thread_start(&s->thread, serve, s);

    return code ? err_errno(err, ERR_FATAL, code, "collectives: cannot start the watch's thread") : 0;
}

static void make_room(struct watch_table *r, int world, const uint8_t token[WATCH_TOKEN_BYTES])
{
    const size_t n = (size_t)world;

    r->world = world;
    r->max_slots = world + UNKNOWN_MAX;
    r->members = calloc(n, sizeof(*r->members));
    r->by_rank = calloc(n, sizeof(*r->by_rank));
    r->reported = calloc(n, sizeof(*r->reported));
    r->slots = calloc((size_t)r->max_slots, sizeof(*r->slots));
    if (!r->members || !r->by_rank || !r->reported || !r->slots)
        memory_exhausted();
    memcpy(r->token, token, WATCH_TOKEN_BYTES);
}

struct watch_server *watch_server_start(int world, const uint8_t token[WATCH_TOKEN_BYTES], struct err *err)
{
    struct watch_server *s = memory_must(calloc(1, sizeof(*s)));

    make_room(&s->table, world, token);
    s->pfds = memory_must(calloc((size_t)s->table.max_slots + 2, sizeof(*s->pfds)));
    s->stop = -1;
    s->listener = net_listen(&s->port, err);
    if (s->listener >= 0 && (s->stop = eventfd(0, EFD_CLOEXEC)) < 0)
        err_errno(err, ERR_FATAL, errno, "collectives: eventfd");
    if (s->stop >= 0 && start_thread(s, err) == 0)
        return s;
    release(s);
    return NULL;
}

int watch_server_port(const struct watch_server *s)
{
    return s->port;
}

uint32_t watch_server_unauthenticated(const struct watch_server *s)
{
    return atomic_load(&s->table.unauthenticated);
}

void watch_server_stop(struct watch_server *s)
{
    const uint64_t one = 1;

    if (!s)
        return;
    if (write(s->stop, &one, sizeof(one)) != (ssize_t)sizeof(one))
        abort(); /* an eventfd that holds 0 takes 1 */
    pthread_join(s->thread, NULL);
    release(s);
}
