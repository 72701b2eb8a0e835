/* train_parts.c - sum what the ranks have computed in a step. */
#include "trainer/run/train_parts.h"

#include "collectives/noted.h"

int train_exchange(const struct train_parts *p, float *grad, uint32_t *flags, struct err *err)
{
    const size_t len = model_len(p->pipeline->model);

    return p->pipeline->at.stages == 1
               ? collectives_all_reduce(p->comm, grad, len + 1, flags, p->timeout_ms, err)
               : collectives_all_reduce(p->comm, grad + len, 1, flags, p->timeout_ms, err);
}
