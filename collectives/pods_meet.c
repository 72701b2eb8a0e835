/* pods_meet.c - connect the ranks of several pods.
 *
 * Order: rank 0 serves the rendezvous store at MASTER_PORT, which accepts only clients that know the run id, and
 *        stores there its watch's port and token. All ranks register with the watch, which sends every rank's
 *        address to all when the last has registered. Then the ranks of each pod connect (host_meet.c), every
 *        leader connects to the pods before its own (pods_links.c), and a first collective call of all ranks
 *        completes the open. A rank that finds the watch of an earlier round tries again until the deadline.
 */
#include "collectives/pods.h"
#include "common/clock.h"
#include "rendezvous/net.h"
#include "rendezvous/store.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum { RETRY_MS = 50, PORT_MS = 10000, LOOK_MS = 1000 };

static const char *const WATCH_KEY = "collectives/watch";

/* The value of WATCH_KEY, which rank 0 stores. */
struct beacon {
    uint64_t magic;
    uint32_t port;
    uint8_t token[WATCH_TOKEN_BYTES];
};

static int64_t left_ms(int64_t deadline_ms)
{
    return host_left_ms(deadline_ms);
}

/* Try again while the port is taken: rank 0 of the previous round may still be exiting. */
static int serve_store(struct pods *p, const struct collectives_config *cfg, int64_t deadline_ms,
                       struct err *err)
{
    const int64_t end_ms =
        clock_mono_ms() + (left_ms(deadline_ms) < PORT_MS ? left_ms(deadline_ms) : PORT_MS);

    for (;;) {
        struct err why = {0};
        p->store = store_server_start(cfg->master_port, cfg->run_id ? cfg->run_id : "", NULL, &why);
        if (p->store)
            return 0;
        if (why.kind != ERR_CONFLICT || clock_mono_ms() >= end_ms) {
            *err = why;
            return -1;
        }
        net_wait(-1, 0, RETRY_MS);
    }
}

static int serve(struct pods *p, const struct collectives_config *cfg, int64_t deadline_ms, struct err *err)
{
    struct beacon b = {.magic = WATCH_MAGIC};

    if (getrandom(b.token, sizeof(b.token), 0) != (ssize_t)sizeof(b.token))
        return err_errno(err, ERR_FATAL, errno, "collectives: getrandom failed");
    p->server = watch_server_start(cfg->world, b.token, err);
    if (!p->server || serve_store(p, cfg, deadline_ms, err) < 0)
        return -1;
    b.port = (uint32_t)watch_server_port(p->server);
    cleanup_store struct store *s = store_connect("127.0.0.1", cfg->master_port,
                                                  cfg->run_id ? cfg->run_id : "", left_ms(deadline_ms), err);
    return s ? store_set(s, WATCH_KEY, &b, sizeof(b), left_ms(deadline_ms), err) : -1;
}

/* One try: 1 found, 0 look again, -1 failed. */
static int find_watch(const struct collectives_config *cfg, const char *host, struct beacon *b,
                      int64_t deadline_ms, struct err *err)
{
    cleanup_buf struct buf value = BUF_INIT(sizeof(*b));
    struct err why = {0};
    const int64_t look_ms = left_ms(deadline_ms) < LOOK_MS ? left_ms(deadline_ms) : LOOK_MS;
    cleanup_store struct store *s =
        store_connect(host, cfg->master_port, cfg->run_id ? cfg->run_id : "", left_ms(deadline_ms), &why);

    if (s && store_get(s, WATCH_KEY, &value, look_ms, &why) == 0) {
        if (value.len == sizeof(*b)) {
            memcpy(b, value.data, sizeof(*b));
            if (b->magic == WATCH_MAGIC && b->port <= UINT16_MAX)
                return 1;
        }
        return err_set(err, ERR_CONFLICT,
                       "collectives: rank 0 at %.100s:%d runs another version of this program", host,
                       cfg->master_port);
    }
    if (why.kind == ERR_PEER || why.kind == ERR_TRANSIENT || (s && why.kind == ERR_TIMEOUT))
        return 0;
    *err = why;
    return -1;
}

static int join_watch(struct pods *p, const struct collectives_config *cfg, const struct member *me,
                      int64_t deadline_ms, struct err *err)
{
    const char *host = cfg->rank == 0 ? "127.0.0.1" : cfg->master_addr;

    for (;;) {
        struct beacon b;
        struct err why = {0};
        int found = find_watch(cfg, host, &b, deadline_ms, err);
        if (found < 0)
            return -1;
        if (found > 0) {
            memcpy(p->token, b.token, sizeof(p->token));
            cleanup_resolver struct resolver *at = resolver_new(host, (int)b.port);
            switch (watch_join(&p->watch, at, p->rank, p->world, b.token, me, deadline_ms, &why)) {
            case WATCH_JOINED:
                return 0;
            case WATCH_FAILED:
                *err = why;
                return -1;
            case WATCH_AGAIN:
                break;
            }
        }
        if (left_ms(deadline_ms) == 0)
            return err_set(err, ERR_TIMEOUT,
                           "open: deadline passed while looking for rank 0 at %.60s:%d: %.120s", host,
                           cfg->master_port, why.kind ? why.msg : "it has not opened the run yet");
        net_wait(-1, 0, RETRY_MS);
    }
}

static int look(void *arg, const char *what, struct err *err)
{
    struct pods *p = arg;

    watch_report(&p->watch);
    return watch_look(&p->watch, what, err);
}

static int timed_out(void *arg, const char *what, struct err *err)
{
    struct pods *p = arg;

    return watch_timed_out(&p->watch, what, err);
}

static void lost(void *arg, const char *what, struct err *err)
{
    struct pods *p = arg;

    watch_lost(&p->watch, what, err);
}

static void failed(void *arg, const struct err *err)
{
    struct pods *p = arg;

    if (err->kind != ERR_PEER) /* the watch reports a lost peer itself */
        watch_fail(&p->watch, err);
}

static int set_layout(struct pods *p, const struct collectives_config *cfg, struct err *err)
{
    if (layout_make(&p->layout, p->watch.members, p->world, err) < 0)
        return -1;
    p->pod = layout_pod_of(&p->layout, p->rank);
    struct collectives_config own = *cfg;
    own.local_rank = p->rank - p->layout.first[p->pod];
    own.local_world = p->layout.first[p->pod + 1] - p->layout.first[p->pod];
    p->unshared = own.local_world != cfg->local_world;
    if (p->unshared) {
        host_free(p->host);
        p->host = host_new(&own);
    }
    return 0;
}

static int meet(struct pods *p, const struct collectives_config *cfg, int64_t deadline_ms, struct err *err)
{
    const struct host_call open = {.op = HOST_OPEN, .n = (uint64_t)cfg->world};

    p->host->outlook =
        (struct host_outlook){.look = look, .timed_out = timed_out, .lost = lost, .failed = failed, .arg = p};
    watch_enter(&p->watch, false);
    if (host_meet(p->host, cfg, deadline_ms, err) < 0 || pods_join_leaders(p, deadline_ms, err) < 0)
        return -1;
    return pods_agree(p, &open, deadline_ms, err);
}

int pods_meet(struct pods *p, const struct collectives_config *cfg, int64_t deadline_ms, struct err *err)
{
    struct err why = {0};

    if (service_open(&p->door, 0, err) < 0)
        return err_wrap(err, "collectives");
    if (cfg->rank == 0 && serve(p, cfg, deadline_ms, err) < 0)
        return -1;
    const struct member me = {.port = (uint32_t)p->door.port,
                              .group = cfg->group_rank,
                              .local = cfg->local_rank,
                              .per_group = cfg->local_world,
                              .alone = !host_can_share(),
                              .net = host_network()};
    if (join_watch(p, cfg, &me, deadline_ms, err) < 0 || set_layout(p, cfg, err) < 0)
        return -1;
    if (meet(p, cfg, deadline_ms, &why) == 0)
        return 0;
    *err = why;
    return host_fail(p->host, &why);
}
