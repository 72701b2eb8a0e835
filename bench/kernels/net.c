/* net.c - build the benchmark's networks as lists of operations over one block of floats. */
#include "net.h"

#include "kernels/ops.h"

#include <stdio.h>
#include <string.h>

enum { LAYERS_MAX = 10, OPS_MAX = 2 * LAYERS_MAX + 2, CLASSES = 10 };

enum kind { CONV, POOL, FLATTEN, LINEAR, SOFTMAX };

struct layer {
    enum kind kind;
    bool relu;
    bool relu_by_pool; /* the pool behind takes the ReLU's gradient */
    struct conv2d_shape conv;
    struct pool2d_shape pool;
    struct flatten_shape flat;
    struct linear_shape lin;
    size_t n_out, n_param;
    float *out, *dout, *weight, *bias, *dweight, *dbias;
    uint8_t *argmax;
};

enum what { FORWARD, BACKWARD, LOSS, UPDATE };

struct op {
    char name[24];
    enum what what;
    int layer;
    double flop;
};

struct net {
    int batch, n_layers, n_ops;
    bool adam;
    struct layer layers[LAYERS_MAX];
    struct op ops[OPS_MAX];
    float *in, *param, *grad, *m, *v;
    int32_t *labels;
    size_t n_param;
    int64_t step;
};

static struct layer *add(struct net *n, enum kind kind, size_t n_out, size_t n_param, bool relu)
{
    struct layer *l = &n->layers[n->n_layers++];
    *l = (struct layer){.kind = kind, .relu = relu, .n_out = n_out * (size_t)n->batch, .n_param = n_param};
    n->n_param += n_param;
    return l;
}

static void add_conv(struct net *n, int side, int in_c, int out_c, bool pooled)
{
    int o = side - 2;
    struct layer *l = add(n, CONV, (size_t)(o * o * out_c), (size_t)(out_c * (in_c * 9 + 1)), true);
    l->relu_by_pool = pooled;
    l->conv = (struct conv2d_shape){n->batch, side, side, in_c, out_c, 3, 3, 1, 0, 1};
    if (!pooled)
        return;
    struct layer *p = add(n, POOL, (size_t)((o / 2) * (o / 2) * out_c), 0, false);
    p->pool = (struct pool2d_shape){n->batch, o, o, out_c, 2, 2, 0, false};
}

static void add_linear(struct net *n, int in, int out, bool relu)
{
    struct layer *l = add(n, LINEAR, (size_t)out, (size_t)(out * (in + 1)), relu);
    l->lin = (struct linear_shape){n->batch, in, out};
}

static int layout(struct net *n, const char *name)
{
    if (strcmp(name, "cnn") == 0) {
        n->adam = true;
        add_conv(n, 28, 1, 32, true);
        add_conv(n, 13, 32, 64, true);
        add_conv(n, 5, 64, 64, false);
        add(n, FLATTEN, 576, 0, false)->flat = (struct flatten_shape){n->batch, 3, 3, 64};
        add_linear(n, 576, 64, true);
        add_linear(n, 64, CLASSES, false);
        add(n, SOFTMAX, CLASSES, 0, false);
        return 0;
    }
    if (strcmp(name, "mlp") != 0)
        return -1;
    add_linear(n, 784, 512, true);
    add_linear(n, 512, 512, true);
    add_linear(n, 512, CLASSES, false);
    return 0;
}

static float *floats(size_t n, uint32_t *seed, float scale)
{
    float *p = aligned_alloc(64, (n * sizeof *p + 63) / 64 * 64);
    for (size_t i = 0; p && i < n; i++) {
        *seed = *seed * 1664525U + 1013904223U;
        p[i] = scale * ((float)(*seed >> 8) / 8388608.0F - 1);
    }
    return p;
}

static double layer_flop(const struct layer *l)
{
    if (l->kind == CONV)
        return 2.0 * (double)l->n_out * 9 * l->conv.in_c;
    return l->kind == LINEAR ? 2.0 * (double)l->n_out * l->lin.in : 0;
}

static void list_op(struct net *n, const char *name, enum what what, int layer, double flop)
{
    struct op *o = &n->ops[n->n_ops++];
    *o = (struct op){.what = what, .layer = layer, .flop = flop};
    snprintf(o->name, sizeof o->name, "%s", name);
}

static void list_ops(struct net *n)
{
    static const char *const names[] = {"conv2d", "maxpool2d", "flatten", "linear", "softmax"};
    char name[24];
    for (int i = 0; i < n->n_layers; i++) {
        snprintf(name, sizeof name, "%d %s", i, names[n->layers[i].kind]);
        list_op(n, name, FORWARD, i, layer_flop(&n->layers[i]));
    }
    list_op(n, "cross_entropy", LOSS, 0, 0);
    for (int i = n->n_layers - 1; i >= 0; i--) {
        snprintf(name, sizeof name, "%d %s backward", i, names[n->layers[i].kind]);
        list_op(n, name, BACKWARD, i, layer_flop(&n->layers[i]) * (i > 0 ? 2 : 1));
    }
    list_op(n, n->adam ? "adam" : "sgd", UPDATE, 0, 0);
}

static bool allocate(struct net *n)
{
    uint32_t seed = 1;
    size_t in = (size_t)n->batch * 784;
    n->in = floats(in, &seed, 1);
    n->param = floats(n->n_param, &seed, 0.05F);
    n->grad = floats(n->n_param, &seed, 0);
    n->m = floats(n->n_param, &seed, 0);
    n->v = floats(n->n_param, &seed, 0);
    n->labels = calloc((size_t)n->batch, sizeof *n->labels);
    if (!n->in || !n->param || !n->grad || !n->m || !n->v || !n->labels)
        return false;
    size_t at = 0;
    for (int i = 0; i < n->n_layers; i++) {
        struct layer *l = &n->layers[i];
        size_t outs = l->kind == CONV ? (size_t)l->conv.out_c : (size_t)l->lin.out;
        l->weight = n->param + at;
        l->dweight = n->grad + at;
        l->bias = l->weight + (l->n_param - outs);
        l->dbias = l->dweight + (l->n_param - outs);
        at += l->n_param;
        l->out = floats(l->n_out, &seed, 0);
        l->dout = floats(l->n_out, &seed, 0);
        l->argmax = l->kind == POOL ? calloc(l->n_out, 1) : NULL;
        if (!l->out || !l->dout || (l->kind == POOL && !l->argmax))
            return false;
    }
    for (int i = 0; i < n->batch; i++)
        n->labels[i] = i % CLASSES;
    return true;
}

struct net *net_make(const char *name, int batch, struct err *err)
{
    struct net *n = calloc(1, sizeof *n);
    if (!n) {
        err_memory(err, "out of memory");
        return NULL;
    }
    n->batch = batch;
    if (layout(n, name) < 0) {
        err_set(err, ERR_INVALID, "network is \"%s\", expected cnn or mlp", name);
        net_free(n);
        return NULL;
    }
    list_ops(n);
    if (!allocate(n)) {
        err_memory(err, "out of memory for a batch of %d", batch);
        net_free(n);
        return NULL;
    }
    return n;
}

void net_free(struct net *n)
{
    if (!n)
        return;
    for (int i = 0; i < n->n_layers; i++) {
        free(n->layers[i].out);
        free(n->layers[i].dout);
        free(n->layers[i].argmax);
    }
    free(n->in);
    free(n->param);
    free(n->grad);
    free(n->m);
    free(n->v);
    free(n->labels);
    free(n);
}

size_t net_workspace_bytes(const struct net *n)
{
    size_t most = 0;
    for (int i = 0; i < n->n_layers; i++) {
        const struct layer *l = &n->layers[i];
        size_t bytes = l->kind == CONV     ? conv2d_workspace_bytes(&l->conv)
                       : l->kind == LINEAR ? linear_workspace_bytes(&l->lin)
                                           : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

int net_ops(const struct net *n)
{
    return n->n_ops;
}

const char *net_op_name(const struct net *n, int op)
{
    return n->ops[op].name;
}

double net_op_flop(const struct net *n, int op)
{
    return n->ops[op].flop;
}

static void forward(struct net *n, struct kctx *ctx, int i)
{
    struct layer *l = &n->layers[i];
    const float *in = i > 0 ? n->layers[i - 1].out : n->in;
    switch (l->kind) {
    case CONV:
        ctx->ops->conv2d_forward(ctx, &l->conv, l->out, in, l->weight, l->bias, l->relu);
        break;
    case POOL:
        ctx->ops->maxpool2d_forward(ctx, &l->pool, l->out, l->argmax, in);
        break;
    case FLATTEN:
        ctx->ops->flatten_forward(ctx, &l->flat, l->out, in);
        break;
    case LINEAR:
        ctx->ops->linear_forward(ctx, &l->lin, l->out, in, l->weight, l->bias, l->relu);
        break;
    case SOFTMAX:
        ctx->ops->softmax_forward(ctx, l->out, in, n->batch, CLASSES);
        break;
    }
}

static void backward(struct net *n, struct kctx *ctx, int i)
{
    struct layer *l = &n->layers[i];
    const float *in = i > 0 ? n->layers[i - 1].out : n->in;
    float *din = i > 0 ? n->layers[i - 1].dout : NULL;
    switch (l->kind) {
    case CONV:
        ctx->ops->conv2d_backward(ctx, &l->conv, din, l->dweight, l->dbias, l->dout,
                                  l->relu_by_pool ? NULL : l->out, in, l->weight);
        break;
    case POOL:
        ctx->ops->maxpool2d_backward(ctx, &l->pool, din, l->dout, l->argmax, l->out);
        break;
    case FLATTEN:
        ctx->ops->flatten_backward(ctx, &l->flat, din, l->dout);
        break;
    case LINEAR:
        ctx->ops->linear_backward(ctx, &l->lin, din, l->dweight, l->dbias, l->dout, l->relu ? l->out : NULL,
                                  in, l->weight);
        break;
    case SOFTMAX:
        ctx->ops->softmax_backward(ctx, din, l->dout, l->out, n->batch, CLASSES);
        break;
    }
}

static void update(struct net *n, struct kctx *ctx)
{
    const struct adam_options adam = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    const struct sgd_options sgd = {.lr = 1e-3};
    const struct update_scalars s = n->adam ? adam_scalars_of(&adam, ++n->step) : sgd_scalars_of(&sgd);

    ctx->ops->update_step(ctx, &s, n->param, n->adam ? n->m : NULL, n->adam ? n->v : NULL, n->grad,
                          n->n_param);
}

void net_op_run(struct net *n, struct kctx *ctx, int op)
{
    const struct op *o = &n->ops[op];
    struct layer *last = &n->layers[n->n_layers - 1];
    struct loss_result loss;
    struct err err;
    switch (o->what) {
    case FORWARD:
        forward(n, ctx, o->layer);
        break;
    case BACKWARD:
        backward(n, ctx, o->layer);
        break;
    case LOSS:
        if (ctx->ops->cross_entropy(ctx, &loss, last->dout, last->out, n->labels, n->batch, CLASSES, 0,
                                    &err) < 0)
            abort();
        break;
    case UPDATE:
        update(n, ctx);
        break;
    }
}
