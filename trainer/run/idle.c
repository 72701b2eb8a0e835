/* idle.c - choose how many ranks train; the others wait for the end of the run. */
#include "trainer/run/idle.h"

#include <stdio.h>

int idle_choose(struct idle *i, const struct config *cfg, struct collectives_config *ranks, struct err *err)
{
    struct err why = {0}, ignored;
    const int all = ranks->world, world = config_world(cfg, all, &why);
    const int here =
        world - (ranks->rank - ranks->local_rank); /* training ranks on this host and later ones */

    *i = (struct idle){.ranks = world ? all - world : 0, .self = world && ranks->rank >= world};
    if (!world && config_world(cfg, COLLECTIVES_RANKS_MAX, &ignored))
        return err_set(err, ERR_TRANSIENT, "more ranks than %d are needed: %s", all, why.msg);
    if (!i->ranks || i->self)
        return 0;
    snprintf(i->why, sizeof(i->why), "%d of %d ranks train and %d wait%s for the end: %.160s", world, all,
             i->ranks, i->ranks == 1 ? "s" : "", why.msg);
    ranks->world = world;
    ranks->awaiting = i->ranks;
    if (ranks->local_world > here)
        ranks->local_world = here;
    return 0;
}

int idle_wait(struct idle *i, const struct collectives_config *ranks, int64_t timeout_ms, struct err *err)
{
    return collectives_await_end(ranks, timeout_ms, &i->exit_code, err)
               ? err_wrap(err, "idle until rank 0 ends the run")
               : 0;
}
