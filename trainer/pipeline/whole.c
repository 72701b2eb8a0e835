/* whole.c - draw the whole model's weights, and gather or distribute its parts. Stages are consecutive in the
 * whole model's flat buffers, as their layers are. */
#include "trainer/pipeline/pipeline.h"

#include "collectives/noted.h"

#include <string.h>

int pipeline_init(struct pipeline *p, struct torch_rng *g, struct err *err)
{
    if (p->at.stages == 1) {
        model_init(p->model, g);
        /* Broadcast, so that ranks on different machines start from the same bits. */
        return collectives_broadcast(p->o.comm, p->model->values, p->model->len * sizeof(float), 0,
                                     p->o.timeout_ms, err);
    }
    cleanup_model struct model *own = NULL; /* only while drawing */
    struct model *all = p->whole;
    if (!all && !(all = own = model_make(p->o.spec, 1, err)))
        return -1;
    model_init(all, g);
    memcpy(p->model->values, (char *)all->values + p->values_at[p->at.stage], p->model->len * sizeof(float));
    return 0;
}

/* Gather from the stages to rank 0's `whole`, or scatter; `at`: offsets of the stages. */
static int move(struct pipeline *p, void *part, void *whole, const size_t *at, bool gather, struct err *err)
{
    struct collectives *c = p->o.comm;
    const size_t mine = at[p->at.stage + 1] - at[p->at.stage];

    if (c->rank && !mine)
        return 0;
    if (c->rank)
        return gather ? collectives_send(c, part, mine, 0, p->o.timeout_ms, err)
                      : collectives_recv(c, part, mine, 0, p->o.timeout_ms, err);
    memcpy(gather ? whole : part, gather ? part : whole, mine);
    for (int s = 1; s < p->at.stages; s++) {
        char *its = (char *)whole + at[s];
        const size_t n = at[s + 1] - at[s];
        if (n && (gather ? collectives_recv(c, its, n, s, p->o.timeout_ms, err)
                         : collectives_send(c, its, n, s, p->o.timeout_ms, err)))
            return -1;
    }
    return 0;
}

int pipeline_gather(struct pipeline *p, float *part, float *whole, struct err *err)
{
    return move(p, part, whole, p->values_at, true, err);
}

static int broadcast(struct pipeline *p, void *bytes, size_t len, struct err *err)
{
    return len ? collectives_broadcast(p->o.comm, bytes, len, 0, p->o.timeout_ms, err) : 0;
}

int pipeline_scatter(struct pipeline *p, float *part, float *whole, struct err *err)
{
    return p->at.stages > 1 ? move(p, part, whole, p->values_at, false, err)
                            : broadcast(p, part, p->model->len * sizeof(float), err);
}

/* Gather parameters and buffers to rank 0's p->whole, or scatter them. */
static int move_model(struct pipeline *p, bool gather, struct err *err)
{
    struct model *m = p->model, *w = p->whole;

    return move(p, m->values, w ? w->values : NULL, p->values_at, gather, err) ||
                   move(p, m->buffers, w ? w->buffers : NULL, p->buffers_at, gather, err)
               ? -1
               : 0;
}

int pipeline_whole(struct pipeline *p, struct model **ret, struct err *err)
{
    *ret = NULL;
    if (p->at.stages == 1) {
        *ret = p->o.comm->rank == 0 ? p->model : NULL;
        return 0;
    }
    if (move_model(p, true, err) || collectives_barrier(p->o.comm, p->o.timeout_ms, err))
        return -1;
    *ret = p->whole;
    return 0;
}

int pipeline_spread(struct pipeline *p, struct err *err)
{
    struct model *m = p->model;

    if (p->at.stages > 1)
        return move_model(p, false, err);
    return broadcast(p, m->values, m->len * sizeof(float), err) ||
                   broadcast(p, m->buffers, m->buffers_bytes, err)
               ? -1
               : 0;
}
