/* model.c - run a model's layers: forward, backward and the loss's head. */
#include "trainer/model/build.h"

#include "common/memory.h"

#include <stdlib.h>

struct model *model_make(const struct model_spec *spec, int batch_max, struct err *err)
{
    cleanup_model struct model *m = memory_must(calloc(1, sizeof(*m)));

    m->batch_max = batch_max;
    m->numbers = spec->numbers;
    m->spec = spec;
    if (model_plan(m, spec, err) || model_make_state(m, err) || model_make_activations(m, err))
        return NULL;
    return TAKE(m);
}

void model_init(struct model *m, struct torch_rng *g)
{
    for (int i = 0; i < m->layers; i++) {
        const struct layer *l = &m->layer[i];
        for (uint64_t n = l->spec->ops->draws ? l->spec->ops->draws(l) : 0; n; n--)
            torch_rng_u32(g);
    }
    for (int i = 0; i < m->layers; i++) {
        const struct layer *l = &m->layer[i];
        float *param[LAYER_PARAMS_MAX] = {NULL};
        for (int p = 0; p < l->params; p++)
            param[p] = m->values + m->row[m->row_of[i][p]].offset;
        if (l->params)
            l->spec->ops->init(l, g, param);
    }
}

struct shape model_output(const struct model *m)
{
    return m->layer[m->layers - 1].out;
}

size_t model_workspace_bytes(const struct model *m, int threads)
{
    size_t all = m->thread_bytes * (size_t)threads;

    return m->workspace_bytes > all ? m->workspace_bytes : all;
}

static const struct layer *head_of(const struct model *m)
{
    const struct layer *last = &m->layer[m->layers - 1];

    return last->spec->ops->loss ? last : NULL;
}

bool model_has_head(const struct model *m)
{
    return head_of(m);
}

size_t model_forward_len(const struct model *m)
{
    const struct layer *last = &m->layer[m->layers - 1];

    return shape_len(head_of(m) ? &last->in : &last->out);
}

/* The memory of a parameter that a pass reads. */
static const void *param_of(const struct model *m, int i, int k)
{
    const struct layer *l = &m->layer[i];
    const int row = m->row_of[i][k];
    const size_t offset = m->row[row].offset;

    if (m->here.copies && !l->f32[k])
        return layer_at(l, m->here.copies, offset);
    return m->here.values + offset;
}

static struct layer_pass pass_of(struct model *m, int i)
{
    struct layer_pass p = {.batch = m->batch,
                           .train = m->train,
                           .in = m->in[i],
                           .out = m->out[i],
                           .saved = m->saved[i],
                           .kept = m->kept[i],
                           .scratch = m->scratch};

    for (int k = 0; k < m->layer[i].params; k++)
        p.param[k] = param_of(m, i, k);
    for (int k = 0; k < m->layer[i].buffers; k++)
        p.buffer[k] = m->here.buffers + ((uint8_t *)m->buffer[i][k] - m->buffers);
    return p;
}

const void *model_forward(struct model *m, struct kctx *ctx, const float *x, int batch,
                          const struct model_step *step)
{
    const void *at = x;

    m->batch = batch;
    m->train = step;
    for (int i = 0; i < m->layers; i++) {
        const struct layer *l = &m->layer[i];
        m->in[i] = at;
        if (l->alias || l->spec->ops->loss)
            continue;
        struct layer_pass p = pass_of(m, i);
        p.step = step;
        l->spec->ops->forward(l, ctx, &p);
        at = m->out[i];
    }
    return at;
}

static bool has_backward(const struct model *m, int i)
{
    return !m->layer[i].alias && !m->layer[i].spec->ops->loss;
}

struct model_pass model_backward_begin(const struct model *m, const void *doutput, float *grad, void *dinput)
{
    struct model_pass pass = {.dout = doutput,
                              .grad = grad,
                              .dinput = dinput,
                              .layer = m->layers - 1,
                              .last = dinput ? 0 : m->first_grad};

    while (m->layer[pass.last].alias)
        pass.last++;
    return pass;
}

static void backward_layer(struct model *m, struct kctx *ctx, struct model_pass *pass, int i)
{
    const struct layer *l = &m->layer[i];
    struct layer_pass p = pass_of(m, i);

    p.dout = pass->dout;
    p.din = i > pass->last ? m->grad[pass->spare] : pass->dinput;
    for (int k = 0; k < l->params; k++) {
        p.grad[k] = pass->grad + m->row[m->row_of[i][k]].offset;
        p.add[k] = m->row[m->row_of[i][k]].tied;
    }
    l->spec->ops->backward(l, ctx, &p);
    pass->dout = p.din;
    pass->spare = !pass->spare;
}

/* The end of the parameters of layers before i. With a tied parameter, its gradient is final only after the
 * first layer that uses it. */
static size_t params_end(const struct model *m, int i)
{
    size_t end = 0;

    while (i-- > 0)
        for (int k = 0; k < m->layer[i].params; k++) {
            const struct param_row *row = &m->row[m->row_of[i][k]];
            if (row->offset + row->len > end)
                end = row->offset + row->len;
        }
    return end;
}

bool model_backward_next(struct model *m, struct kctx *ctx, struct model_pass *pass, size_t *ret_from)
{
    while (pass->layer > pass->last && !has_backward(m, pass->layer))
        pass->layer--;
    const bool more = pass->layer > pass->last;

    if (pass->layer >= pass->last && has_backward(m, pass->layer))
        backward_layer(m, ctx, pass, pass->layer);
    *ret_from = more ? params_end(m, pass->layer) : 0;
    pass->layer--;
    return more;
}

void model_backward(struct model *m, struct kctx *ctx, const void *doutput, float *grad, void *dinput)
{
    struct model_pass pass = model_backward_begin(m, doutput, grad, dinput);
    size_t ignored;

    while (model_backward_next(m, ctx, &pass, &ignored))
        continue;
}

int model_head_loss(struct model *m, struct kctx *ctx, const struct head_target *t, void *dforward,
                    float *grad, struct loss_result *ret, struct err *err)
{
    int i = m->layers - 1;
    struct layer_pass p = pass_of(m, i);

    p.din = dforward;
    for (int k = 0; k < m->layer[i].params && grad; k++)
        p.grad[k] = grad + m->row[m->row_of[i][k]].offset;
    return m->layer[i].spec->ops->loss(&m->layer[i], ctx, &p, t, ret, err);
}
