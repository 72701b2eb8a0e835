/* watch_server.c - the watch's thread: poll its connections, accept new ones, stop. */
#include "collectives/watch_server.h"
#include "collectives/watch_table.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/random.h"
#include "rendezvous/service.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNKNOWN_MAX = 256,    /* connections that have not registered yet */
    PER_ADDRESS_MAX = 64, /* of one address: more than the ranks of a pod that connect at the same time */
    EVICT_AGE_MS = 250, /* with UNKNOWN_MAX of them: the age at which a new connection displaces the oldest */
    SPEAK_MS = 5000,    /* how long a connection has to register */
    PARTING_MS = 500,   /* how long the last messages may take to send */
};

struct watch_server {
    struct service service;
    struct watch_table table;
    struct pollfd *pfds; /* [max_slots + 2] */
    _Atomic bool ended;  /* watch_server_end has set the next two */
    int exit_code;
    int64_t end_wait_ms;
};

static bool look_at_unknown(const void *arg, int at, struct service_conn *g)
{
    const struct watch_table *r = arg;
    const struct watch_slot *t = r->slots[at];

    *g = (struct service_conn){.came_ms = t->came_ms, .addr = t->addr};
    return watch_slot_unknown(t);
}

static void welcome(struct watch_server *s)
{
    const struct service_limits unknown = {.n = s->table.n_slots,
                                           .get = look_at_unknown,
                                           .arg = &s->table,
                                           .max = UNKNOWN_MAX,
                                           .per_address = PER_ADDRESS_MAX,
                                           .evict_age_ms = EVICT_AGE_MS};
    uint8_t addr[16];
    int evicted;
    const int fd = service_accept(&s->service, &unknown, addr, &evicted);

    if (fd < 0)
        return;
    if (evicted >= 0)
        watch_table_drop(&s->table, evicted);
    s->table.slots[s->table.n_slots++] = watch_slot_new(fd, addr);
}

/* Fill the slots' pfds. Returns when poll has to wake up. */
static int64_t prepare(struct watch_server *s, int64_t until_ms)
{
    for (int i = 0; i < s->table.n_slots; i++) {
        const struct watch_slot *t = s->table.slots[i];
        s->pfds[i + 2] = (struct pollfd){.fd = t->fd, .events = t->out.len ? POLLIN | POLLOUT : POLLIN};
        int64_t due = t->answer_ms ? t->answer_ms : watch_slot_unknown(t) ? t->came_ms + SPEAK_MS : until_ms;
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
        if (watch_slot_unknown(t) && now >= t->came_ms + SPEAK_MS)
            t->broken = true;
    }
    watch_table_go(r);
    for (int i = r->n_slots - 1; i >= 0; i--) {
        watch_slot_write(r->slots[i]);
        if (r->slots[i]->broken)
            watch_table_drop(r, i);
    }
}

/* One round of poll; 1: the watch is to be stopped. */
static int turn(struct watch_server *s, int64_t until_ms)
{
    const int n = s->table.n_slots;
    const int stop = service_poll(&s->service, s->pfds, n, prepare(s, until_ms));

    serve_slots(s, n);
    if (service_ready(s->pfds))
        welcome(s);
    return stop;
}

/* Before the end: read rank 0's last messages until its connection closes, send pending messages to the
 * others, and WATCH_END to the waiting ranks. */
static void finish(struct watch_server *s)
{
    const int64_t begin_ms = clock_mono_ms();

    for (int64_t passed_ms = 0;; passed_ms = clock_mono_ms() - begin_ms) {
        const bool busy = s->table.by_rank[0] || watch_table_owes(&s->table);
        const bool awaited = s->ended && s->table.n_awaiting > 0;
        if ((!busy || passed_ms >= PARTING_MS) && (!awaited || passed_ms >= s->end_wait_ms))
            return;
        if (s->ended)
            watch_table_end(&s->table, s->exit_code);
        (void)turn(s, 0);
        poll(NULL, 0, 1);
    }
}

static void *serve(void *arg)
{
    struct watch_server *s = arg;

    while (!turn(s, INT64_MAX))
        ;
    finish(s);
    return NULL;
}

static void release(struct watch_server *s)
{
    while (s->table.n_slots)
        watch_table_drop(&s->table, s->table.n_slots - 1);
    service_close(&s->service);
    free(s->table.go);
    free(s->table.by_rank);
    free(s->table.reported);
    free(s->table.slots);
    free(s->pfds);
    free(s);
}

/* With a world of 0 ranks, on which only waiting ranks connect, the lists have one unused entry. */
static struct watch_table make_table(const struct pass *pass, int restart_count, int world, int awaiting)
{
    const size_t n = world ? (size_t)world : 1, slots = (size_t)(world + awaiting + UNKNOWN_MAX);
    struct watch_table t = {.world = world,
                            .n_awaiting = awaiting,
                            .restart_count = restart_count,
                            .pass = *pass,
                            .max_slots = (int)slots};

    t.go = memory_must(calloc(1, sizeof(*t.go) + n * sizeof(*t.go->members)));
    t.by_rank = memory_must(calloc(n, sizeof(*t.by_rank)));
    t.reported = memory_must(calloc(n, sizeof(*t.reported)));
    t.slots = memory_must(calloc(slots, sizeof(*t.slots)));
    return t;
}

struct watch_server *watch_server_start(int port, const struct pass *pass, int restart_count, int world,
                                        int awaiting, struct err *err)
{
    struct watch_server *s = memory_must(calloc(1, sizeof(*s)));
    int rc = service_open(&s->service, port, err);

    s->table = make_table(pass, restart_count, world, awaiting);
    s->pfds = memory_must(calloc((size_t)s->table.max_slots + 2, sizeof(*s->pfds)));
    random_fill(s->table.go->token, WATCH_TOKEN_BYTES);
    if (rc == 0 && service_start(&s->service, serve, s, err) == 0)
        return s;
    err_wrap(err, "collectives: the watch");
    release(s);
    return NULL;
}

void watch_server_end(struct watch_server *s, int exit_code, int64_t wait_ms)
{
    s->exit_code = exit_code;
    s->end_wait_ms = wait_ms;
    s->ended = true;
}

void watch_server_stop(struct watch_server *s)
{
    if (!s)
        return;
    service_stop(&s->service);
    release(s);
}
