/* pods_meet.c - connect the ranks of several pods.
 *
 * Order: all ranks register with rank 0's watch at MASTER_PORT, which checks the run id and the proof of the
 *        job's key, if there is one. When the last rank has registered, the watch sends all addresses to all
 *        ranks. Then the ranks of each pod connect (host_meet.c), each rank connects to the pods before its
 *        own (pods_links.c), and a first collective call of all ranks completes the open. A rank that finds
 *        the watch of an earlier round tries again until the deadline.
 */
#include "collectives/pods.h"

static int join_watch(struct pods *p, const struct collectives_config *cfg, const struct rank_member *me,
                      int64_t deadline_ms, struct err *err)
{
    const char *host = cfg->rank == 0 ? "127.0.0.1" : cfg->master_addr;
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

static int set_layout(struct pods *p, const struct collectives_config *cfg, struct err *err)
{
    if (pod_layout_make(&p->layout, p->watch.members, p->world, err) < 0)
        return -1;
    p->pod = pod_layout_of(&p->layout, p->rank);
    struct collectives_config in_pod = *cfg;
    in_pod.local_rank = p->rank - p->layout.first[p->pod];
    in_pod.local_world = p->layout.first[p->pod + 1] - p->layout.first[p->pod];
    p->unshared = in_pod.local_world != cfg->local_world;
    if (p->unshared) {
        host_free(p->host);
        p->host = host_new(&in_pod);
    }
    return 0;
}

static int meet(struct pods *p, const struct collectives_config *cfg, int64_t deadline_ms, struct err *err)
{
    const struct host_call open = {.op = HOST_OPEN, .n = (uint64_t)cfg->world};

    p->host->others = (struct host_others){
        .watch = &p->watch, .look = look, .sum = pods_chain, .arg = p, .parts = p->layout.lanes};
    watch_enter(&p->watch, false);
    if (host_meet(p->host, cfg, deadline_ms, err) < 0 || pods_join(p, deadline_ms, err) < 0)
        return -1;
    return pods_agree(p, &open, deadline_ms, err);
}

int pods_meet(struct pods *p, const struct collectives_config *cfg, int64_t deadline_ms, struct err *err)
{
    struct err why = {0};

    if (service_open(&p->door, 0, err) < 0)
        return err_wrap(err, "collectives");
    const struct rank_member me = {.port = (uint32_t)p->door.port,
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
