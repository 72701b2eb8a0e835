/* idle.c - choose how many ranks train, and let the others wait for the end of the run. */
#include "trainer/run/idle.h"

#include "rendezvous/server.h"
#include "rendezvous/store.h"

#include <stdio.h>
#include <string.h>

enum { STOPPED_MS = 1000 }; /* idle ranks that were signalled as well have gone */

static const char *const ENDED = "trainer/ended", *const HEARD = "trainer/heard";

int idle_choose(struct idle *i, const struct config *cfg, struct collectives_config *ranks, struct err *err)
{
    struct err why = {0}, ignored;
    const int all = ranks->world, world = config_world(cfg, all, &why);
    const int here =
        world - (ranks->rank - ranks->local_rank); /* that train on this host and those behind it */

    *i = (struct idle){.ranks = world ? all - world : 0, .self = world && ranks->rank >= world};
    if (!world && config_world(cfg, COLLECTIVES_RANKS_MAX, &ignored))
        return err_set(err, ERR_TRANSIENT, "more ranks than %d are needed: %s", all, why.msg);
    if (!i->ranks || i->self)
        return 0;
    snprintf(i->why, sizeof(i->why), "%d of %d ranks train and %d wait%s for the end: %.160s", world, all,
             i->ranks, i->ranks == 1 ? "s" : "", why.msg);
    ranks->world = world;
    if (ranks->local_world > here)
        ranks->local_world = here;
    return 0;
}

static const char *run_id(const struct collectives_config *r)
{
    return r->run_id ? r->run_id : "";
}

static struct store *join(const struct collectives_config *r, int64_t timeout_ms, struct err *err)
{
    const bool far = r->rank && r->master_addr && *r->master_addr;

    return store_connect(far ? r->master_addr : "127.0.0.1", r->master_port, run_id(r), timeout_ms, err);
}

int idle_wait(struct idle *i, const struct collectives_config *ranks, int64_t timeout_ms, struct err *err)
{
    cleanup_store struct store *s = join(ranks, timeout_ms, err);
    cleanup_buf struct buf code = BUF_INIT(sizeof(i->exit_code));
    int64_t heard;
    int rc = s ? 1 : -1;

    while (rc > 0) {
        struct err why;
        rc = store_get(s, ENDED, &code, timeout_ms, &why);
        if (rc && why.kind == ERR_TIMEOUT && store_usable(s))
            rc = 1;
        else if (rc)
            *err = why;
    }
    if (!rc && code.len != sizeof(i->exit_code))
        rc = err_set(err, ERR_CONFLICT, "rank 0 runs another version of this program");
    if (rc)
        return err_wrap(err, "idle until rank 0 ends the run");
    memcpy(&i->exit_code, code.data, sizeof(i->exit_code));
    (void)!store_add(s, HEARD, 1, &heard, timeout_ms, err); /* rank 0 may be content before it answers */
    return 0;
}

int idle_serve(struct idle *i, const struct collectives *c, const struct collectives_config *ranks,
               struct err *err)
{
    if (!i->ranks || ranks->rank || strncmp(c->transport, "pods", 4) == 0)
        return 0;
    i->server = store_server_start(ranks->master_port, run_id(ranks), NULL, err);
    return i->server ? 0 : err_wrap(err, "MASTER_PORT");
}

void idle_end(const struct idle *i, const struct collectives_config *ranks, int64_t timeout_ms, int exit_code)
{
    struct err ignored;

    if (!i->ranks || ranks->rank)
        return;
    cleanup_store struct store *s = join(ranks, timeout_ms, &ignored);
    if (s && !store_set(s, ENDED, &exit_code, sizeof(exit_code), timeout_ms, &ignored))
        (void)!store_wait_count(s, HEARD, i->ranks, exit_code ? STOPPED_MS : timeout_ms, &ignored);
}

void idle_close(struct idle *i)
{
    store_server_stop(i->server);
    i->server = NULL;
}
