/* init_from.c - rank 0 reads weights from a file and broadcasts them. */
#include "trainer/state/init_from.h"

#include "collectives/noted.h"
#include "trainer/state/weights/fill.h"
#include "trainer/state/weights/weights.h"

static int read_weights(const char *path, struct model *m, struct err *err)
{
    cleanup_weights struct weights w = {0};
    struct fill_source *from;

    if (weights_open(&w, path, err))
        return -1;
    if (fill_find(&w.list, m, &w.arena, &from, err))
        return err_wrap(err, "%.100s", path);
    fill_copy(from, m);
    return 0;
}

int init_from(const char *path, struct pipeline *p, struct err *err)
{
    struct collectives *c = p->o.comm;
    struct err own = {0};
    int64_t read = 1;

    if (c->rank == 0)
        read = !read_weights(path, p->at.stages > 1 ? p->whole : p->model, &own);
    if (collectives_broadcast(c, &read, sizeof(read), 0, p->o.timeout_ms, err) || own.kind) {
        if (own.kind)
            *err = own;
        return -1;
    }
    if (!read)
        return err_set(err, ERR_PEER, "rank 0 could not read the weights to begin with");
    return pipeline_spread(p, err);
}
