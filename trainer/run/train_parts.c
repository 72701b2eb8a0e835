/* train_parts.c - sum what the ranks have computed in a step. */
#include "trainer/run/train_parts.h"

#include "collectives/noted.h"

int train_exchange(const struct train_parts *p, float *grad, uint32_t *flags, struct err *err)
{
    const struct pipeline_options *o = &p->pipeline->o;
    const size_t len = model_len(p->pipeline->model), first = p->pipeline->at.stages == 1 ? 0 : len;

    return collectives_all_reduce(o->comm, grad + first, len + 1 - first, flags, o->timeout_ms, err);
}
