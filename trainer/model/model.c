/* model.c - layers in a row: planning, forward, backward. */
#include "trainer/model/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_in(const char *name, const char *suffix)
{
    size_t len = strlen(name), n = strlen(suffix);

    return len >= n && strcmp(name + len - n, suffix) == 0 && (len == n || name[len - n - 1] == '.');
}

/* The row that a tied parameter is. */
static int tie(struct model *m, const struct layer_param *p, const char *to, int *ret, struct err *err)
{
    for (int i = 0; i < m->rows; i++) {
        const struct param_row *row = &m->row[i];
        if (!ends_in(row->name, to))
            continue;
        if (row->dims != p->dims || memcmp(row->dim, p->dim, sizeof(row->dim)) != 0)
            return err_set(err, ERR_INVALID, "is tied to %s of %lld x %lld, expected %lld x %lld", row->name,
                           (long long)row->dim[0], (long long)row->dim[1], (long long)p->dim[0],
                           (long long)p->dim[1]);
        m->row[i].tied = true;
        *ret = i;
        return 0;
    }
    return err_set(err, ERR_INVALID, "is tied to a layer's %s, but no layer before it (in its stage) has one",
                   to);
}

static int add_rows(struct model *m, int i, struct err *err)
{
    struct layer *l = &m->layer[i];

    for (int p = 0; p < l->params; p++) {
        if (l->tied[p]) {
            if (tie(m, &l->param[p], l->tied[p], &m->row_of[i][p], err))
                return -1;
            continue;
        }
        m->row_of[i][p] = m->rows;
        struct param_row *row = &m->row[m->rows++];
        model_name(l, l->param[p].suffix, row->name);
        row->dims = l->param[p].dims;
        memcpy(row->dim, l->param[p].dim, sizeof(row->dim));
        row->offset = m->len;
        row->len = layer_param_len(&l->param[p]);
        m->len += row->len;
    }
    return 0;
}

/* A ReLU behind a layer that can apply it is no layer of its own; behind a max-pool, whose backward pass
 * touches the values anyway, its gradient is taken there. */
static bool take_relu(struct model *m, const struct layer_spec *next)
{
    struct layer *last = m->layers ? &m->layer[m->layers - 1] : NULL;

    if (next->ops == &layer_relu && last && last->spec->ops->takes_relu && !last->relu) {
        last->relu = true;
        last->relu_grad = true;
        return true;
    }
    if (next->ops->masks_relu && last && last->relu_grad)
        last->relu_grad = false;
    return false;
}

/* Nothing stands behind a head. */
static int check_head(const struct model *m, struct err *err)
{
    const struct layer *last = m->layers ? &m->layer[m->layers - 1] : NULL;

    if (last && last->spec->ops->loss)
        return err_set(err, ERR_INVALID, "stands behind %s, expected that to be the last layer",
                       last->spec->ops->type);
    return 0;
}

static int plan_layers(struct model *m, const struct model_spec *spec, struct err *err)
{
    struct shape shape = spec->input;

    if (shape.sequence && (int64_t)shape.rows * m->batch_max > INT32_MAX)
        return err_set(err, ERR_INVALID,
                       "model: %d sequences of %d tokens at a time, expected at most %d tokens", m->batch_max,
                       shape.rows, INT32_MAX);
    for (int i = 0; i < spec->layers; i++) {
        const struct layer_spec *ls = &spec->layer[i];
        bool masked = m->layers && m->layer[m->layers - 1].relu_grad && ls->ops->masks_relu;
        if (take_relu(m, ls))
            continue;
        struct layer *l = &m->layer[m->layers];
        *l = (struct layer){.spec = ls, .in = shape, .out_masked = masked};
        if (check_head(m, err) || ls->ops->plan(l, m->batch_max, err) || add_rows(m, m->layers, err))
            return err_wrap(err, "model.layers[%d] (%s%s%s)", spec->first + i, ls->ops->type,
                            ls->name[0] ? " " : "", ls->name);
        if (l->workspace_bytes > m->workspace_bytes)
            m->workspace_bytes = l->workspace_bytes;
        if (l->thread_bytes > m->thread_bytes)
            m->thread_bytes = l->thread_bytes;
        shape = l->out;
        m->layers++;
    }
    if (!shape.flat && !shape.sequence && !spec->inner)
        return err_set(err, ERR_INVALID,
                       "model: the output is an image of %dx%dx%d, expected a vector: end with "
                       "flatten and linear",
                       shape.rows, shape.cols, shape.channels);
    if (!m->rows)
        return err_set(err, ERR_INVALID, "model: no layer has parameters: nothing to train");
    while (!m->layer[m->first_grad].params)
        m->first_grad++;
    return 0;
}

struct model *model_make(const struct model_spec *spec, int batch_max, struct err *err)
{
    cleanup_model struct model *m = calloc(1, sizeof(*m));

    if (!m) {
        err_set(err, ERR_FATAL, "no memory for the model");
        return NULL;
    }
    m->batch_max = batch_max;
    if (plan_layers(m, spec, err) || model_make_state(m, err) || model_make_activations(m, err))
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

size_t model_len(const struct model *m)
{
    return m->len;
}

float *model_values(struct model *m)
{
    return m->values;
}

const struct param_row *model_params(const struct model *m, int *ret_count)
{
    *ret_count = m->rows;
    return m->row;
}

const struct state_row *model_state(const struct model *m, int *ret_count)
{
    *ret_count = m->states;
    return m->state;
}

void *model_buffers(struct model *m)
{
    return m->buffers;
}

size_t model_buffers_bytes(const struct model *m)
{
    return m->buffers_bytes;
}

struct shape model_output(const struct model *m)
{
    return m->layer[m->layers - 1].out;
}

int model_batch_max(const struct model *m)
{
    return m->batch_max;
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
        p.param[k] = m->here.values + m->row[m->row_of[i][k]].offset;
    for (int k = 0; k < m->layer[i].buffers; k++)
        p.buffer[k] = m->here.buffers + ((uint8_t *)m->buffer[i][k] - m->buffers);
    return p;
}

const float *model_forward(struct model *m, struct kctx *ctx, const float *x, int batch,
                           const struct model_step *step)
{
    const float *at = x;

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

void model_backward(struct model *m, struct kctx *ctx, const float *doutput, float *grad)
{
    model_backward_input(m, ctx, doutput, grad, NULL);
}

void model_backward_input(struct model *m, struct kctx *ctx, const float *doutput, float *grad, float *dinput)
{
    const float *dout = doutput;
    int spare = 0;
    int last = dinput ? 0 : m->first_grad; /* the layer with which the pass ends */

    while (m->layer[last].alias)
        last++;
    for (int i = m->layers - 1; i >= last; i--) {
        const struct layer *l = &m->layer[i];
        if (l->alias || l->spec->ops->loss)
            continue;
        struct layer_pass p = pass_of(m, i);
        p.dout = dout;
        p.din = i > last ? m->grad[spare] : dinput;
        for (int k = 0; k < l->params; k++) {
            p.grad[k] = grad + m->row[m->row_of[i][k]].offset;
            p.add[k] = m->row[m->row_of[i][k]].tied;
        }
        l->spec->ops->backward(l, ctx, &p);
        dout = p.din;
        spare = !spare;
    }
}

int model_head_loss(struct model *m, struct kctx *ctx, const struct head_target *t, float *dforward,
                    float *grad, struct loss_result *ret, struct err *err)
{
    int i = m->layers - 1;
    struct layer_pass p = pass_of(m, i);

    p.din = dforward;
    for (int k = 0; k < m->layer[i].params && grad; k++)
        p.grad[k] = grad + m->row[m->row_of[i][k]].offset;
    return m->layer[i].spec->ops->loss(&m->layer[i], ctx, &p, t, ret, err);
}

void model_head_outputs(struct model *m, struct kctx *ctx, float *out)
{
    int i = m->layers - 1;
    struct layer_pass p = pass_of(m, i);

    p.out = out;
    m->layer[i].spec->ops->forward(&m->layer[i], ctx, &p);
}
