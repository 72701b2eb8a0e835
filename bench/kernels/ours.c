/* ours.c - the presets' layers by this project's kernels. */
#include "peers.h"

#include "kernels/ops.h"

#include <stdlib.h>
#include <string.h>

struct ours {
    const struct bench_layer *l;
    const struct bench_data *data;
    struct linear_shape linear;
    struct kctx *ctx;
    float *out, *din, *dweight, *dbias;
};

static void ours_free(void *p)
{
    struct ours *o = p;

    if (!o)
        return;
    kctx_free(o->ctx);
    free(o->out);
    free(o->din);
    free(o->dweight);
    free(o->dbias);
    free(o);
}

static void *ours_make(const struct bench_layer *l, const struct bench_data *data, struct err *err)
{
    struct ours *o = calloc(1, sizeof(*o));
    struct kctx_options options = {.threads = 1};

    if (!o)
        abort();
    *o = (struct ours){.l = l, .data = data, .linear = {l->s.batch, l->s.in_c, l->s.out_c}};
    options.workspace_bytes = l->linear ? linear_workspace_bytes(&o->linear) : conv2d_workspace_bytes(&l->s);
    o->out = bench_floats(bench_out(&l->s));
    o->din = l->first ? NULL : bench_floats(bench_in(&l->s));
    o->dweight = bench_floats(bench_weight(&l->s));
    o->dbias = bench_floats((size_t)l->s.out_c);
    if ((o->ctx = kctx_make(&options, err)))
        return o;
    ours_free(o);
    return NULL;
}

static void ours_forward(void *p)
{
    struct ours *o = p;
    const struct bench_data *d = o->data;

    if (o->l->linear)
        o->ctx->ops->linear_forward(o->ctx, &o->linear, o->out, d->in, d->weight, d->bias, o->l->relu);
    else
        o->ctx->ops->conv2d_forward(o->ctx, &o->l->s, o->out, d->in, d->weight, d->bias, o->l->relu);
}

static void ours_backward(void *p)
{
    struct ours *o = p;
    const struct bench_data *d = o->data;

    if (o->l->linear)
        o->ctx->ops->linear_backward(o->ctx, &o->linear, o->din, o->dweight, o->dbias, d->dout, NULL, d->in,
                                     d->weight);
    else
        o->ctx->ops->conv2d_backward(o->ctx, &o->l->s, o->din, o->dweight, o->dbias, d->dout, NULL, d->in,
                                     d->weight);
}

static void ours_result(void *p, const struct bench_result *to)
{
    const struct ours *o = p;
    const struct conv2d_shape *s = &o->l->s;

    memcpy(to->out, o->out, bench_out(s) * sizeof(float));
    memcpy(to->dweight, o->dweight, bench_weight(s) * sizeof(float));
    if (o->din)
        memcpy(to->din, o->din, bench_in(s) * sizeof(float));
}

const struct bench_peer bench_ours = {"ours", ours_make, ours_forward, ours_backward, ours_result, ours_free};
