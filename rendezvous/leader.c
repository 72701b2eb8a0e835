/* leader.c - the leader's thread: read all nodes' keys, decide by quorum.h, write the meeting's state. */
#include "rendezvous/leader.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/sv.h"
#include "common/thread.h"
#include "rendezvous/server.h"
#include "rendezvous/store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* OWN_MS bounds a call to the store, which is in this process. SLICE_MS is how late a stop may be noticed.
 * Changes within GATHER_MS are read together, so that n joining nodes do not cost n * n reads. ABSENT_MS is the
 * wait for a key that may be absent. */
enum { OWN_MS = 10000, SLICE_MS = 200, GATHER_MS = 5, ABSENT_MS = 1 };

struct leader {
    pthread_t thread;
    struct store_server *server;
    struct store *store;
    struct quorum quorum;
    int port;
    char run_id[STORE_RUN_ID_BYTES + 1];
    int64_t posts;  /* value of "posts" at the last read */
    int64_t cuts;   /* value of "cuts" at the last read; -1: read all again */
    int64_t now_ms; /* the time of all changes found by one turn */
    struct buf text;
    pthread_mutex_t lock; /* of `steps` */
    struct steps steps;
    atomic_bool stop, over;
};

static int publish(struct leader *c, struct err *err)
{
    int64_t ignored;

    buf_clear(&c->text);
    if (meeting_put_state(&c->quorum.state, &c->text, err) < 0 ||
        store_set(c->store, "state", c->text.data, c->text.len, OWN_MS, err) < 0)
        return -1;
    return store_add(c->store, "version", 1, &ignored, OWN_MS, err);
}

/* Read one node's key. A node that has a ticket and has written nothing yet, or nothing valid, is ignored. */
static int hear(struct leader *c, int64_t ticket, struct err *err)
{
    struct meeting_node node;
    struct err why = {0};
    char key[40];

    snprintf(key, sizeof(key), "node/%" PRId64, ticket);
    buf_clear(&c->text);
    if (store_get(c->store, key, &c->text, ABSENT_MS, &why) == 0) {
        if (meeting_get_node(c->text.data, c->text.len, &node, &why) < 0)
            return 0;
        if (!quorum_knows(&c->quorum, ticket)) /* its connection may have ended before this read */
            c->cuts = -1;
        quorum_hear(&c->quorum, ticket, &node, c->now_ms);
        return 0;
    }
    if (why.kind == ERR_TIMEOUT && store_usable(c->store))
        return 0;
    *err = why;
    return -1;
}

/* Read which nodes' connections have ended. */
static int look_for_cuts(struct leader *c, int64_t tickets, struct err *err)
{
    const int64_t before = c->cuts;
    char key[40];
    int64_t tie;

    if (store_add(c->store, "cuts", 0, &c->cuts, OWN_MS, err) < 0)
        return -1;
    for (int64_t t = 1; c->cuts != before && t <= tickets && t <= MEETING_TICKETS_MAX; t++) {
        struct err why = {0};
        if (!quorum_knows(&c->quorum, t))
            continue;
        snprintf(key, sizeof(key), "cut/%" PRId64, t);
        buf_clear(&c->text);
        if (store_get(c->store, key, &c->text, ABSENT_MS, &why) == 0) {
            if (sv_i64(sv_from(buf_str(&c->text)), 1, INT64_MAX / 2, &tie))
                quorum_cut(&c->quorum, t, tie, c->now_ms);
        } else if (why.kind != ERR_TIMEOUT || !store_usable(c->store)) {
            *err = why;
            return -1;
        }
    }
    return 0;
}

static void take_steps(struct leader *c)
{
    pthread_mutex_lock(&c->lock);
    (void)quorum_steps(&c->quorum, &c->steps);
    pthread_mutex_unlock(&c->lock);
}

struct steps leader_steps(struct leader *c)
{
    pthread_mutex_lock(&c->lock);
    const struct steps now = c->steps;
    pthread_mutex_unlock(&c->lock);
    return now;
}

static int turn(struct leader *c, struct err *err)
{
    int64_t now = clock_mono_ms(), left = quorum_next_ms(&c->quorum, now) - now, tickets;
    struct err why = {0};
    const struct timespec gather = {.tv_nsec = GATHER_MS * 1000000L};

    left = left < 1 ? 1 : left > SLICE_MS ? SLICE_MS : left;
    if (store_wait_count(c->store, "posts", c->posts + 1, left, &why) == 0)
        nanosleep(&gather, NULL);
    else if (!store_usable(c->store)) {
        *err = why;
        return -1;
    }
    if (store_add(c->store, "posts", 0, &c->posts, OWN_MS, err) < 0 ||
        store_add(c->store, "tickets", 0, &tickets, OWN_MS, err) < 0)
        return -1;
    c->now_ms = clock_mono_ms();
    for (int64_t t = 1; t <= tickets && t <= MEETING_TICKETS_MAX; t++)
        if (hear(c, t, err) < 0)
            return -1;
    if (look_for_cuts(c, tickets, err) < 0)
        return -1;
    /* Use the time at which reading began: what nodes wrote since has not been read, so it is not silence. */
    while (quorum_step(&c->quorum, c->now_ms))
        if (publish(c, err) < 0)
            return -1;
    if (quorum_tell(&c->quorum, c->now_ms) && publish(c, err) < 0)
        return -1;
    take_steps(c);
    if (quorum_over(&c->quorum))
        atomic_store(&c->over, true);
    return 0;
}

static int reach(struct leader *c, struct err *err)
{
    c->store = store_connect("127.0.0.1", c->port, c->run_id, OWN_MS, err);
    return c->store ? 0 : -1;
}

/* Reconnect to the store, which is in this process and still runs: when the process was stopped for a second, a
 * request's time has passed before its answer arrived. Publish again, because the last decision may not have been
 * stored. */
static int mend(struct leader *c, struct err *err)
{
    store_close(TAKE(c->store));
    c->cuts = -1;
    return reach(c, err) < 0 || publish(c, err) < 0 ? -1 : 0;
}

/* Whether to go on after a failure: yes when a broken connection could be replaced. An error from a working
 * connection is the store's answer, which a retry would get again. */
static bool goes_on(struct leader *c, struct err *err)
{
    return !store_usable(c->store) && mend(c, err) == 0;
}

/* Nodes wait for the leader's state without a time limit. So when the leader fails, stop the store, which they
 * notice. */
static void *work(void *arg)
{
    struct leader *c = arg;
    struct err err = {0};

    while (!atomic_load(&c->stop) && !atomic_load(&c->over))
        if (turn(c, &err) < 0 && !goes_on(c, &err)) {
            store_server_stop(TAKE(c->server));
            break;
        }
    atomic_store(&c->over, true);
    return NULL;
}

static int open_store(struct leader *c, struct err *err)
{
    unsigned long long id = 0;
    char text[20];

    if (reach(c, err) < 0)
        return -1;
    if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id))
        id = (unsigned long long)clock_mono_ms();
    snprintf(text, sizeof(text), "%016llx", id);
    if (store_set(c->store, "leader", text, 16, OWN_MS, err) < 0)
        return -1;
    return publish(c, err);
}

static int start_thread(struct leader *c, struct err *err)
{
    int code = thread_start(&c->thread, work, c);

    return code ? err_errno(err, ERR_FATAL, code, "rendezvous: cannot start a thread") : 0;
}

static void release(struct leader *c)
{
    store_close(c->store);
    store_server_stop(c->server);
    quorum_release(&c->quorum);
    buf_release(&c->text);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

struct leader *leader_start(int port, const char *run_id, const struct quorum_config *config, struct err *err)
{
    /* Two connections per node, the leader's own, and those of lost nodes that have not been noticed yet. */
    const struct store_server_limits limits = {.clients = 4 * MEETING_NODES_MAX};
    struct leader *c = memory_must(calloc(1, sizeof(*c)));

    c->text = (struct buf)BUF_INIT(STORE_VALUE_BYTES);
    pthread_mutex_init(&c->lock, NULL);
    quorum_init(&c->quorum, config, clock_mono_ms());
    snprintf(c->run_id, sizeof(c->run_id), "%s", run_id);
    c->server = store_server_start(port, run_id, &limits, err);
    c->port = c->server ? store_server_port(c->server) : 0;
    if (c->server && open_store(c, err) == 0 && start_thread(c, err) == 0)
        return c;
    release(c);
    return NULL;
}

int leader_port(const struct leader *c)
{
    return c->port;
}

bool leader_over(const struct leader *c)
{
    return atomic_load(&c->over);
}

void leader_stop(struct leader *c)
{
    if (!c)
        return;
    atomic_store(&c->stop, true);
    pthread_join(c->thread, NULL);
    release(c);
}
