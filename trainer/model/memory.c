/* memory.c - allocate a model's memory: weights and buffers on the host, for files and other ranks, and the
 * passes' memory, which on a device is a separate copy. */
#include "trainer/model/build.h"

#include "common/memory.h"
#include "kernels/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN_BYTES = 64 };

static void *taken(struct model *m, size_t bytes, struct err *err)
{
    return m->device ? device_alloc(m->device, bytes, err) : host_zeroed(bytes, err);
}

static void give(const struct model *m, void *p)
{
    if (m->device)
        device_free(m->device, p);
    else
        free(p);
}

void model_name(const struct layer *l, const char *suffix, char name[static PARAM_NAME_BYTES])
{
    snprintf(name, PARAM_NAME_BYTES, "%s%s%s", l->spec->name, l->spec->name[0] ? "." : "", suffix);
}

static void fill_buffer(const struct layer_buffer *b, size_t bytes, void *data)
{
    if (b->type == STATE_I64)
        for (size_t i = 0; i < bytes / sizeof(int64_t); i++)
            ((int64_t *)data)[i] = (int64_t)b->start;
    else
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            ((float *)data)[i] = (float)b->start;
}

static void add_layer_state(struct model *m, int i, size_t *at)
{
    const struct layer *l = &m->layer[i];

    for (int p = 0; p < l->params; p++) {
        const struct param_row *row = &m->row[m->row_of[i][p]];
        struct state_row *s = &m->state[m->states++];
        *s = (struct state_row){.dims = row->dims,
                                .data = m->values + row->offset,
                                .tied = l->tied[p],
                                .transposed = l->transposed[p]};
        s->bytes = row->len * sizeof(float);
        if (s->tied)
            model_name(l, l->param[p].suffix, s->name);
        else
            memcpy(s->name, row->name, sizeof(s->name));
        memcpy(s->dim, row->dim, sizeof(s->dim));
    }
    for (int b = 0; b < l->buffers; b++) {
        const struct layer_buffer *from = &l->buffer[b];
        struct state_row *s = &m->state[m->states++];
        *s = (struct state_row){.type = from->type, .buffer = true, .dims = from->dims};
        model_name(l, from->suffix, s->name);
        memcpy(s->dim, from->dim, sizeof(s->dim));
        s->bytes = layer_buffer_bytes(from);
        s->data = m->buffer[i][b] = m->buffers + *at;
        fill_buffer(from, s->bytes, s->data);
        *at += (s->bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    }
}

int model_make_state(struct model *m, struct err *err)
{
    size_t at = 0;

    for (int i = 0; i < m->layers; i++)
        for (int b = 0; b < m->layer[i].buffers; b++)
            m->buffers_bytes +=
                (layer_buffer_bytes(&m->layer[i].buffer[b]) + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    if (!(m->values = host_zeroed(m->len * sizeof(float), err)) ||
        !(m->buffers = host_zeroed(m->buffers_bytes, err)))
        return -1;
    m->here.values = m->values;
    m->here.buffers = m->buffers;
    for (int i = 0; i < m->layers; i++)
        add_layer_state(m, i, &at);
    return 0;
}

/* Bytes for the largest batch; 0 for a head, whose outputs are never stored. */
static size_t output_bytes(const struct model *m, const struct layer *l)
{
    const size_t len = l->spec->ops->loss ? 0 : shape_len(&l->out);

    return len * (size_t)m->batch_max * element_bytes(m->numbers.element);
}

/* The most memory that one layer needs: for a gradient of activations, and for scratch. */
static void most_of_a_layer(const struct model *m, size_t *ret_grad, size_t *ret_scratch)
{
    *ret_grad = sizeof(float); /* at least one float */
    *ret_scratch = 0;
    for (int i = 0; i < m->layers; i++) {
        const size_t out = output_bytes(m, &m->layer[i]);
        const size_t scratch = m->layer[i].scratch_bytes * (size_t)m->batch_max;
        *ret_grad = out > *ret_grad ? out : *ret_grad;
        *ret_scratch = scratch > *ret_scratch ? scratch : *ret_scratch;
    }
}

int model_make_activations(struct model *m, struct err *err)
{
    size_t grad, scratch;

    if (m->numbers.on_device && !m->device)
        return 0;
    for (int i = 0; i < m->layers; i++) {
        const struct layer *l = &m->layer[i];
        const size_t out = output_bytes(m, l);
        if (out && !l->alias && !(m->out[i] = taken(m, out, err)))
            return -1;
        if (l->saved_bytes && !(m->saved[i] = taken(m, l->saved_bytes * (size_t)m->batch_max, err)))
            return -1;
        if (l->kept_bytes && !(m->kept[i] = taken(m, l->kept_bytes, err)))
            return -1;
    }
    if (m->twin)
        return 0;
    most_of_a_layer(m, &grad, &scratch);
    if (!(m->grad[0] = taken(m, grad, err)) || !(m->grad[1] = taken(m, grad, err)) ||
        !(m->scratch = taken(m, scratch, err)))
        return -1;
    return 0;
}

/* Bytes of a head's logits (kernels/queued.h). */
static size_t head_bytes(const struct model *m)
{
    const struct shape *out = &m->layer[m->layers - 1].out;
    const struct linear_shape head = {.rows = m->batch_max * out->rows, .out = out->channels};

    return model_has_head(m) ? queued_classifier_bytes(&head) : 0;
}

int model_needs(const struct model_spec *spec, int batch, struct model_needs *ret, struct err *err)
{
    cleanup_free struct model *m = memory_must(calloc(1, sizeof(*m))); /* planned, but without memory */
    size_t grad, scratch;

    m->batch_max = batch;
    m->numbers = spec->numbers;
    if (model_plan(m, spec, err))
        return -1;
    most_of_a_layer(m, &grad, &scratch);
    const size_t reserved = model_workspace_bytes(m, 1), head = head_bytes(m);
    *ret = (struct model_needs){.len = m->len,
                                .forward_len = model_forward_len(m),
                                .bytes = 2 * grad + scratch + (reserved > head ? reserved : head)};
    for (int i = 0; i < m->layers; i++) {
        const struct layer *l = &m->layer[i];
        ret->bytes += (l->alias ? 0 : output_bytes(m, l)) + l->saved_bytes * (size_t)batch + l->kept_bytes;
        for (int b = 0; b < l->buffers; b++)
            ret->bytes += layer_buffer_bytes(&l->buffer[b]);
    }
    return 0;
}

static void release_activations(struct model *m)
{
    for (int i = 0; i < m->layers; i++) {
        give(m, m->out[i]);
        give(m, m->saved[i]);
        give(m, m->kept[i]);
    }
    if (!m->twin) {
        give(m, m->grad[0]);
        give(m, m->grad[1]);
        give(m, m->scratch);
    }
    memset(m->out, 0, sizeof(m->out));
    memset(m->saved, 0, sizeof(m->saved));
    memset(m->kept, 0, sizeof(m->kept));
    memset(m->grad, 0, sizeof(m->grad));
    m->scratch = NULL;
}

struct model *model_twin(const struct model *m, struct err *err)
{
    cleanup_model struct model *t = memory_must(malloc(sizeof(*t)));

    *t = *m;
    t->twin = true;
    memset(t->out, 0, sizeof(t->out));
    memset(t->saved, 0, sizeof(t->saved));
    memset(t->kept, 0, sizeof(t->kept));
    return model_make_activations(t, err) ? NULL : TAKE(t);
}

static void release_here(struct model *m)
{
    if (!m->device || m->twin)
        return;
    device_free(m->device, m->here.values);
    device_free(m->device, m->here.copies);
    device_free(m->device, m->here.buffers);
    memset(&m->here, 0, sizeof(m->here));
}

void model_free(struct model *m)
{
    if (!m)
        return;
    release_activations(m);
    release_here(m);
    if (!m->twin) {
        free(m->values);
        free(m->buffers);
    }
    free(m);
}

int model_to_device(struct model *m, struct kctx *ctx, struct err *err)
{
    if (device_is_host(ctx))
        return 0;
    release_activations(m);
    release_here(m);
    m->device = ctx;
    memset(&m->here, 0, sizeof(m->here));
    if (model_make_activations(m, err) ||
        !(m->here.values = device_alloc(ctx, m->len * sizeof(float), err)) ||
        !(m->here.buffers = device_alloc(ctx, m->buffers_bytes, err)) ||
        (m->numbers.element != ELEMENT_F32 &&
         !(m->here.copies = device_alloc(ctx, m->len * element_bytes(m->numbers.element), err))))
        return -1;
    model_push(m);
    return 0;
}

struct queued_params model_trained(const struct model *m)
{
    return (struct queued_params){.p = m->here.values, .copy = m->here.copies, .n = m->len};
}

void model_push_buffers(struct model *m)
{
    if (m->device)
        device_put(m->device, m->here.buffers, m->buffers, m->buffers_bytes);
}

void model_push(struct model *m)
{
    const struct queued_params w = model_trained(m);

    if (!m->device)
        return;
    model_push_buffers(m);
    device_put(m->device, m->here.values, m->values, m->len * sizeof(float));
    if (w.copy)
        m->device->ops->queue_round(m->device, &w);
}

int model_pull(struct model *m, struct err *err)
{
    if (!m->device)
        return 0;
    return device_get(m->device, m->values, m->here.values, m->len * sizeof(float), err) ||
                   device_get(m->device, m->buffers, m->here.buffers, m->buffers_bytes, err)
               ? -1
               : 0;
}
