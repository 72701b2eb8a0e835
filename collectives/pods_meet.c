/* pods_meet.c - connect the ranks of a run.
 *
 * Order: all ranks register with rank 0's watch at MASTER_PORT, which checks the run id and the proof of the
 *        job's key, if there is one. When the last rank has registered, the watch sends all addresses to all
 *        ranks. Then the ranks of each pod connect (host_meet.c), each rank connects to the pods before its
 *        own (pods_links.c), and a first collective call of all ranks completes the open. A rank that finds
 *        the watch of an earlier round tries again until the deadline. Ranks that are all in one pod need neither
 *        watch nor links.
 */
#include "collectives/pods.h"
#include "common/memory.h"

#include <stdlib.h>

static int join_watch(struct pods *p, const struct collectives_config *cfg, const struct rank_member *me,
                      int64_t deadline_ms, struct err *err)
{
    const bool near =
        cfg->rank == 0 || (cfg->local_world == cfg->world && (!cfg->master_addr || !*cfg->master_addr));
    const char *host = near ? "127.0.0.1" : cfg->master_addr;
    cleanup_resolver struct resolver *at = resolver_new(host, cfg->master_port);
    struct err why = {0};
    const int rc = watch_join(&p->watch, at, p->rank, p->world, &p->pass, me, deadline_ms, &why);

    if (rc > 0)
        return err_set(err, ERR_TIMEOUT, "open: deadline passed while looking for rank 0 at %.60s:%d: %.120s",
                       host, cfg->master_port, why.msg);
    if (rc < 0)
        *err = why;
    return rc;
}

static int look(void *arg, const char *what, struct err *err)
{
    struct pods *p = arg;

    watch_report(&p->watch);
    return pods_look(p, what, err);
}

/* Register, and learn from the watch in which pod each rank is. */
static int meet_pods(struct pods *p, const struct collectives_config *cfg, int64_t deadline_ms,
                     struct err *err)
{
    if (cfg->local_world < cfg->world && (!cfg->master_addr || !*cfg->master_addr))
        return err_set(
            err, ERR_INVALID,
            "MASTER_ADDR is not set: with WORLD_SIZE=%d and %d ranks in this pod, expected the address "
            "of rank 0",
            cfg->world, cfg->local_world);
    if (service_open(&p->door, 0, err) < 0)
        return err_wrap(err, "collectives");
    const struct rank_member me = {.port = (uint32_t)p->door.port,
                                   .group = cfg->group_rank,
                                   .local = cfg->local_rank,
                                   .per_group = cfg->local_world,
                                   .alone = !host_can_share(),
                                   .net = host_network()};
    if (join_watch(p, cfg, &me, deadline_ms, err) < 0)
        return -1;
    return pod_layout_make(&p->layout, p->watch.members, p->world, err);
}

/* The layout of a run whose ranks are all in one pod. */
static void set_one_pod(struct pods *p)
{
    p->layout = (struct pod_layout){.n_pods = 1, .first = memory_must(calloc(2, sizeof(*p->layout.first)))};
    p->layout.first[1] = p->world;
}

static int connect_ranks(struct pods *p, const struct collectives_config *cfg, int64_t deadline_ms,
                         struct err *err)
{
    const struct host_call open = {.op = HOST_OPEN, .n = (uint64_t)cfg->world};

    watch_enter(&p->watch, false);
    if (host_meet(p->host, cfg, deadline_ms, err) < 0 || pods_join(p, deadline_ms, err) < 0)
        return -1;
    return pods_agree(p, &open, deadline_ms, err);
}

int pods_meet(struct pods *p, const struct collectives_config *cfg, bool several, int64_t deadline_ms,
              struct err *err)
{
    if (several && meet_pods(p, cfg, deadline_ms, err) < 0)
        return -1;
    if (!several)
        set_one_pod(p);
    p->pod = pod_layout_of(&p->layout, p->rank);
    const int first = p->layout.first[p->pod], n = p->layout.first[p->pod + 1] - first;
    p->unshared = several && n != cfg->local_world;
    p->host = host_new(p->rank - first, n, first);
    if (several)
        p->host->others = (struct host_others){
            .watch = &p->watch, .look = look, .sum = pods_chain, .arg = p, .parts = p->layout.lanes};
    return connect_ranks(p, cfg, deadline_ms, err) < 0 ? host_fail(p->host, err) : 0;
}
