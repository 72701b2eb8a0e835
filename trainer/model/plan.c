/* plan.c - compute each layer's shapes, parameters and memory from a model's spec. */
#include "trainer/model/build.h"

#include <string.h>

/* Whether `suffix` is the last part, or the last parts, of a dotted name. */
static bool is_last_part(const char *name, const char *suffix)
{
    size_t len = strlen(name), n = strlen(suffix);

    return len >= n && strcmp(name + len - n, suffix) == 0 && (len == n || name[len - n - 1] == '.');
}

/* Find the row that a tied parameter shares. */
static int tie(struct model *m, const struct layer_param *p, const char *to, int *ret, struct err *err)
{
    for (int i = 0; i < m->rows; i++) {
        const struct param_row *row = &m->row[i];
        if (!is_last_part(row->name, to))
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

/* Merge a ReLU into the layer before it, if that can apply it. If a max-pool follows, its backward pass,
 * which visits the values anyway, also computes the ReLU's gradient. */
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

/* Check that no layer follows a head. */
static int check_head(const struct model *m, struct err *err)
{
    const struct layer *last = m->layers ? &m->layer[m->layers - 1] : NULL;

    if (last && last->spec->ops->loss)
        return err_set(err, ERR_INVALID, "comes after %s, expected that to be the last layer",
                       last->spec->ops->type);
    return 0;
}

/* Check the planned layer's element type. A model's input is always f32, which the embedding handles. */
static int check_element(const struct model *m, struct err *err)
{
    const struct layer *l = &m->layer[m->layers];

    if (l->element == ELEMENT_F32 ||
        (l->spec->ops->elements && (m->layers || l->spec->ops == &layer_embedding)))
        return 0;
    return err_set(err, ERR_INVALID, "computes in f32 alone: expected --precision f32 or tf32");
}

/* Check the whole model: its output must be a vector or a sequence, unless more stages follow, and f32,
 * unless a head computes the loss. */
static int check_output(const struct model *m, struct shape out, bool inner, struct err *err)
{
    if (!out.flat && !out.sequence && !inner)
        return err_set(err, ERR_INVALID,
                       "model: the output is an image of %dx%dx%d, expected a vector: end with "
                       "flatten and linear",
                       out.rows, out.cols, out.channels);
    if (m->numbers.element != ELEMENT_F32 && !model_has_head(m))
        return err_set(err, ERR_INVALID,
                       "model: without an lm_head at its end: expected --precision f32 or tf32");
    return 0;
}

int model_plan(struct model *m, const struct model_spec *spec, struct err *err)
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
        *l = (struct layer){
            .spec = ls, .in = shape, .out = shape, .element = m->numbers.element, .out_masked = masked};
        if (check_head(m, err) || check_element(m, err) ||
            (ls->ops->plan && ls->ops->plan(l, m->batch_max, err)) || add_rows(m, m->layers, err))
            return err_wrap(err, "model.layers[%d] (%s%s%s)", spec->first + i, ls->ops->type,
                            ls->name[0] ? " " : "", ls->name);
        if (l->workspace_bytes > m->workspace_bytes)
            m->workspace_bytes = l->workspace_bytes;
        if (l->thread_bytes > m->thread_bytes)
            m->thread_bytes = l->thread_bytes;
        shape = l->out;
        m->layers++;
    }
    if (check_output(m, shape, spec->inner, err))
        return -1;
    if (!m->rows)
        return err_set(err, ERR_INVALID, "model: no layer has parameters: nothing to train");
    while (!m->layer[m->first_grad].params)
        m->first_grad++;
    return 0;
}
