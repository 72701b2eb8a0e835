/* pair.c - all-reduce and optimizer update in one pass, for exactly two ranks of one host. */
#include "trainer/run/pair.h"

#include "collectives/noted.h"
#include "common/clock.h"
#include "kernels/device.h"

#include <math.h>

static bool can(const struct train_parts *p)
{
    const struct optim *o = p->optim;

    return p->comm->view && p->pipeline->at.stages == 1 && device_is_host(p->ctx) &&
           o->spec.type == OPTIMIZER_SGD && !o->square && model_len(p->pipeline->model) >= PAIR_FLOATS_MIN;
}

int pair_agree(const struct train_parts *p, bool *ret, struct err *err)
{
    struct collectives *c = p->comm;
    float can_too = can(p) ? 1 : 0;

    *ret = false;
    if (c->world != 2)
        return 0;
    if (collectives_all_reduce(c, &can_too, 1, NULL, p->timeout_ms, err))
        return -1;
    *ret = can_too == 2;
    return 0;
}

/* Parameters begin..end-1. With `sum` the gradient is sum + grad, and left there. */
static void update(const struct train_parts *p, double lr, float *sum, const float *grad, size_t begin,
                   size_t end)
{
    const struct optim *o = p->optim;
    float *values = model_values(p->pipeline->model);

    for (int i = 0; i < o->spans; i++) {
        const struct optim_span *s = &o->span[i];
        const struct sgd_options sgd = optim_sgd(o, lr, s->decay, o->step);
        size_t from = s->offset > begin ? s->offset : begin;
        size_t to = s->offset + s->len < end ? s->offset + s->len : end;
        if (from >= to)
            continue;
        float *m = o->m ? o->m + from : NULL;
        if (sum)
            sgd_add_step(p->ctx, &sgd, values + from, m, sum + from, grad + from, to - from);
        else
            sgd_step(p->ctx, &sgd, values + from, m, grad + from, to - from);
    }
}

int pair_step(const struct train_parts *p, double lr, float *grad, uint32_t *flags, struct err *err)
{
    struct collectives *c = p->comm;
    const size_t n = model_len(p->pipeline->model);
    const int other = !c->rank;
    const int64_t deadline_ms = clock_mono_ms() + p->timeout_ms; /* of both meetings */
    float *each[2];
    size_t begin, end;

    if (collectives_view(c, grad, n + 1, flags, each, p->timeout_ms, err))
        return -1;
    const float loss = each[0][n] + each[1][n];
    const bool updates = isfinite(loss) && !(*flags & COLLECTIVES_NONFINITE);
    if (updates) {
        p->optim->step++;
        collectives_part(n, c->rank, 2, &begin, &end);
        update(p, lr, each[other], grad, begin, end);
    }
    const int64_t left_ms = deadline_ms - clock_mono_ms();
    if (collectives_barrier(c, left_ms > 0 ? left_ms : 0, err))
        return -1;
    grad[n] = loss; /* the other has read this rank's */
    if (updates) {
        collectives_part(n, other, 2, &begin, &end);
        update(p, lr, NULL, grad, begin, end);
    }
    return 0;
}
