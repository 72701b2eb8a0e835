/* part.c - a device that keeps its own part of the weights, and of the others what passes read: copies of all, and those few
 * that they read in f32 (the parameters of norms).
 */
#include "trainer/model/memory.h"

#include "kernels/device.h"

static void plan_exact(struct model *m)
{
    m->exact_len = 0;
    for (int row = 0; row < m->rows; row++)
        m->exact_at[row] = SIZE_MAX;
    for (int i = 0; i < m->layers; i++)
        for (int k = 0; k < m->layer[i].params; k++) {
            const int row = m->row_of[i][k];
            if (!m->layer[i].f32[k] || m->exact_at[row] != SIZE_MAX)
                continue;
            m->exact_at[row] = m->exact_len;
            m->exact_len += m->row[row].len;
        }
}

int model_make_part(struct model *m, struct err *err)
{
    plan_exact(m);
    m->here.exact = device_alloc(m->device, m->exact_len * sizeof(float), err);
    return m->here.exact ? 0 : -1;
}

/* Weights on their way to being copies lie where a backward pass keeps what it forgets. */
void model_push_part(struct model *m, int64_t steps)
{
    const struct queued_params own = model_trained(m);
    const size_t each = m->grad_bytes / sizeof(float), element = element_bytes(m->numbers.element);

    device_put(m->device, own.p, m->values + own.first, own.n * sizeof(float));
    for (size_t at = 0; at < m->len; at += each) {
        struct queued_params some = own;
        some.p = m->grad[0];
        some.copy = (uint8_t *)m->here.copies + at * element;
        some.first = (uint32_t)at;
        some.n = m->len - at < each ? m->len - at : each;
        device_put(m->device, some.p, m->values + at, some.n * sizeof(float));
        queue_round(m->device, &some, steps);
    }
    for (int row = 0; row < m->rows; row++)
        if (m->exact_at[row] != SIZE_MAX)
            device_put(m->device, m->here.exact + m->exact_at[row], m->values + m->row[row].offset,
                       m->row[row].len * sizeof(float));
}

struct model_weights model_weights(const struct model *m)
{
    return (struct model_weights){.all = m->here.copies ? m->here.copies : m->here.values,
                                  .exact = m->here.exact,
                                  .exact_len = m->in_part ? m->exact_len : 0,
                                  .part = m->in_part};
}

void model_put_exact(struct model *m)
{
    const struct model_part *own = &m->own;

    device_zero(m->device, m->here.exact, m->exact_len * sizeof(float));
    for (int i = 0; i < m->rows; i++) {
        const struct param_row *row = &m->row[i];
        const size_t from = row->offset > own->begin ? row->offset : own->begin;
        const size_t to = row->offset + row->len < own->end ? row->offset + row->len : own->end;
        if (m->exact_at[i] != SIZE_MAX && from < to)
            device_copy(m->device, m->here.exact + m->exact_at[i] + (from - row->offset),
                        m->here.values + (from - own->begin), (to - from) * sizeof(float));
    }
}
