/* test_ops.c - the GPU's operations on f32 beside the CPU's, over shapes even and odd. Those on elements: test_elements.c. */
#include "beside.h"
#include "kernels/cuda/cuda.h"
#include "kernels/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct beside *open_all(void)
{
    static struct beside s;

    beside_open(&s, PRECISION_F32, ELEMENT_F32);
    return &s;
}

struct conv_case {
    struct conv2d_shape s;
    bool relu, bias, din;
};

static void conv_forward_of(const struct beside_run *r)
{
    const struct conv_case *c = r->shape;
    r->ctx->ops->conv2d_forward(r->ctx, &c->s, r->p[0], r->p[1], r->p[2], c->bias ? r->p[3] : NULL, c->relu);
}

static void conv_backward_of(const struct beside_run *r)
{
    const struct conv_case *c = r->shape;
    r->ctx->ops->conv2d_backward(r->ctx, &c->s, c->din ? r->p[0] : NULL, r->p[1], c->bias ? r->p[2] : NULL,
                                 r->p[3], c->relu ? r->p[4] : NULL, r->p[5], r->p[6]);
}

static void check_conv(struct beside *s, const struct conv_case *c)
{
    const struct conv2d_shape *z = &c->s;
    size_t in = (size_t)z->batch * (size_t)z->in_h * (size_t)z->in_w * (size_t)z->in_c;
    size_t out = (size_t)z->batch * (size_t)conv2d_out_h(z) * (size_t)conv2d_out_w(z) * (size_t)z->out_c;
    size_t weight = (size_t)z->out_c * (size_t)z->in_c * (size_t)z->k_h * (size_t)z->k_w;
    size_t o = (size_t)z->out_c;
    struct err err = {0};
    char what[160];

    snprintf(what, sizeof(what), "conv2d %dx%dx%dx%d -> %d, %dx%d stride %d pad %d dilation %d%s%s", z->batch,
             z->in_h, z->in_w, z->in_c, z->out_c, z->k_h, z->k_w, z->stride, z->pad, z->dilation,
             c->relu ? " relu" : "", c->bias ? " bias" : "");
    assert_int_equal(conv2d_check(z, &err), 0);
    const size_t scratch = conv2d_workspace_bytes(z);
    beside_reserve(s, scratch, scratch);
    beside_out(s, BESIDE_F32, out * sizeof(float));
    beside_floats(s, BESIDE_IN, in);
    beside_floats(s, BESIDE_IN, weight);
    beside_floats(s, BESIDE_IN, o);
    beside_check(s, conv_forward_of, c, what);
    if (c->din)
        beside_out(s, BESIDE_F32, in * sizeof(float));
    else
        beside_floats(s, BESIDE_IN, 1);
    beside_out(s, BESIDE_F32, weight * sizeof(float));
    if (c->bias)
        beside_out(s, BESIDE_F32, o * sizeof(float));
    else
        beside_floats(s, BESIDE_IN, 1);
    beside_floats(s, BESIDE_IN, out);
    beside_floats(s, BESIDE_IN, out);
    beside_floats(s, BESIDE_IN, in);
    beside_floats(s, BESIDE_IN, weight);
    beside_check(s, conv_backward_of, c, what);
}

static const struct conv2d_shape CONVS[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 0, 1},    {2, 28, 28, 1, 32, 3, 3, 1, 0, 1}, {1, 13, 13, 32, 64, 3, 3, 1, 0, 1},
    {1, 12, 12, 3, 32, 5, 5, 1, 0, 1}, {3, 7, 9, 5, 6, 3, 2, 2, 1, 1},    {1, 9, 8, 2, 3, 3, 3, 3, 2, 2},
    {2, 5, 5, 17, 70, 3, 3, 1, 1, 1},  {4, 6, 6, 3, 4, 4, 4, 2, 0, 1},    {1, 3, 3, 4, 2, 5, 5, 1, 4, 1},
    {9, 17, 15, 4, 36, 3, 3, 1, 0, 1}, {3, 15, 14, 36, 8, 3, 2, 1, 1, 1},
};

static void conv2d_is_the_cpus(void **state)
{
    struct beside *s = open_all();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CONVS); i++)
        for (int how = 0; how < 6; how++) {
            s->aligned = how >= 3;
            check_conv(s, &(struct conv_case){CONVS[i], how & 1, how % 3 != 2, how % 3 != 1});
        }
    beside_close(s);
}

/* More of them cut k into more parts: so many that parts of parts are added up. */
static void conv2d_on_many_multiprocessors(void **state)
{
    struct beside *s = open_all();

    (void)state;
    cuda_of(s->device)->sms = 132;
    for (size_t i = 0; i < ARRAY_LEN(CONVS); i++) {
        s->aligned = i & 1;
        check_conv(s, &(struct conv_case){CONVS[i], i & 2, true, true});
    }
    beside_close(s);
}

struct pool_case {
    struct pool2d_shape s;
    bool out;
};

static void max_forward_of(const struct beside_run *r)
{
    r->ctx->ops->maxpool2d_forward(r->ctx, r->shape, r->p[0], r->p[1], r->p[2]);
}

static void max_backward_of(const struct beside_run *r)
{
    const struct pool_case *c = r->shape;
    r->ctx->ops->maxpool2d_backward(r->ctx, &c->s, r->p[0], r->p[1], r->p[2], c->out ? r->p[3] : NULL);
}

static void avg_forward_of(const struct beside_run *r)
{
    r->ctx->ops->avgpool2d_forward(r->ctx, r->shape, r->p[0], r->p[1]);
}

static void avg_backward_of(const struct beside_run *r)
{
    r->ctx->ops->avgpool2d_backward(r->ctx, r->shape, r->p[0], r->p[1]);
}

static void check_pool(struct beside *s, const struct pool2d_shape *z)
{
    size_t in = (size_t)z->batch * (size_t)z->in_h * (size_t)z->in_w * (size_t)z->in_c;
    size_t out = (size_t)z->batch * (size_t)pool2d_out_h(z) * (size_t)pool2d_out_w(z) * (size_t)z->in_c;
    float *x = malloc(in * sizeof(float));
    uint8_t *argmax = malloc(out);
    float *y = malloc(out * sizeof(float));
    char what[120];

    assert_true(x && argmax && y);
    snprintf(what, sizeof(what), "pool2d %dx%dx%dx%d, %d stride %d pad %d", z->batch, z->in_h, z->in_w,
             z->in_c, z->window, z->stride, z->pad);
    /* Few different values, so that the first of equals counts; and NaN. */
    for (size_t i = 0; i < in; i++)
        x[i] = i % 37 == 5 ? (float)NAN : (float)(i * 2654435761U >> 7 & 7) - 3;
    beside_out(s, BESIDE_BITS, out * sizeof(float));
    beside_out(s, BESIDE_BITS, out);
    beside_copy(s, BESIDE_IN, BESIDE_F32, x, in * sizeof(float));
    beside_check(s, max_forward_of, z, what);
    s->cpu->ops->maxpool2d_forward(s->cpu, z, y, argmax, x);
    for (int masked = 0; masked < 2; masked++) {
        beside_out(s, BESIDE_F32, in * sizeof(float));
        beside_floats(s, BESIDE_IN, out);
        beside_copy(s, BESIDE_IN, BESIDE_F32, argmax, out);
        beside_copy(s, BESIDE_IN, BESIDE_F32, y, out * sizeof(float));
        beside_check(s, max_backward_of, &(struct pool_case){*z, masked}, what);
    }
    beside_out(s, BESIDE_F32, out * sizeof(float));
    beside_floats(s, BESIDE_IN, in);
    beside_check(s, avg_forward_of, z, what);
    beside_out(s, BESIDE_F32, in * sizeof(float));
    beside_floats(s, BESIDE_IN, out);
    beside_check(s, avg_backward_of, z, what);
    free(x);
    free(argmax);
    free(y);
}

static void pools_are_the_cpus(void **state)
{
    static const struct pool2d_shape pools[] = {{2, 26, 26, 3, 2, 2, 0, false}, {1, 7, 5, 33, 3, 2, 1, false},
                                                {1, 7, 5, 33, 3, 2, 1, true},   {3, 5, 5, 1, 2, 1, 0, false},
                                                {1, 9, 9, 2, 2, 3, 1, false},   {2, 9, 9, 2, 4, 3, 2, true},
                                                {1, 6, 6, 4, 6, 6, 0, false},   {2, 4, 4, 5, 1, 1, 0, true}};
    struct beside *s = open_all();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pools); i++)
        check_pool(s, &pools[i]);
    beside_close(s);
}

static void relu_forward_of(const struct beside_run *r)
{
    r->ctx->ops->relu_forward(r->ctx, r->p[0], r->p[1], *(const size_t *)r->shape);
}

static void relu_backward_of(const struct beside_run *r)
{
    r->ctx->ops->relu_backward(r->ctx, r->p[0], r->p[1], r->p[2], *(const size_t *)r->shape);
}

static void activations_are_the_cpus(void **state)
{
    static const size_t sizes[] = {1, 255, 256, 257, 5000};
    struct beside *s = open_all();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t n = sizes[i];
        beside_out(s, BESIDE_BITS, n * sizeof(float));
        beside_floats(s, BESIDE_IN, n);
        beside_check(s, relu_forward_of, &n, "relu");
        beside_out(s, BESIDE_BITS, n * sizeof(float));
        beside_floats(s, BESIDE_IN, n);
        beside_floats(s, BESIDE_IN, n);
        beside_check(s, relu_backward_of, &n, "relu, back");
    }
    beside_close(s);
}

struct rows_case {
    int rows, cols;
};

static void softmax_forward_of(const struct beside_run *r)
{
    const struct rows_case *c = r->shape;
    r->ctx->ops->softmax_forward(r->ctx, r->p[0], r->p[1], c->rows, c->cols);
}

static void softmax_backward_of(const struct beside_run *r)
{
    const struct rows_case *c = r->shape;
    r->ctx->ops->softmax_backward(r->ctx, r->p[0], r->p[1], r->p[2], c->rows, c->cols);
}

static const struct rows_case ROWS[] = {{1, 1}, {32, 10}, {5, 31}, {3, 32}, {7, 33}, {130, 100}, {1, 700}};

static void softmax_is_the_cpus(void **state)
{
    struct beside *s = open_all();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        size_t n = (size_t)ROWS[i].rows * (size_t)ROWS[i].cols;
        beside_out(s, BESIDE_F32, n * sizeof(float));
        beside_floats(s, BESIDE_IN, n);
        beside_check(s, softmax_forward_of, &ROWS[i], "softmax");
        beside_out(s, BESIDE_F32, n * sizeof(float));
        beside_floats(s, BESIDE_IN, n);
        beside_floats(s, BESIDE_IN, n);
        beside_check(s, softmax_backward_of, &ROWS[i], "softmax, back");
    }
    beside_close(s);
}

struct loss_case {
    struct rows_case z;
    double smoothing;
    bool gradient;
    double sum; /* both devices write the results here, one after the other */
    int correct;
};

static void cross_entropy_of(const struct beside_run *r)
{
    struct loss_case *c = (struct loss_case *)(uintptr_t)r->shape;
    float *dlogits = c->gradient ? r->p[0] : NULL;
    struct loss_result cpu;
    struct err err = {0};

    if (device_is_host(r->ctx)) {
        if (r->ctx->ops->cross_entropy(r->ctx, &cpu, dlogits, r->p[1], r->p[2], c->z.rows, c->z.cols,
                                       c->smoothing, &err))
            fail_msg("%s", err.msg);
        c->sum = cpu.sum;
        c->correct = cpu.correct;
        return;
    }
    struct queued_loss *at = device_alloc(r->ctx, sizeof(*at), &err);
    assert_non_null(at);
    r->ctx->ops->queue_cross_entropy(r->ctx, at, NULL, dlogits, r->p[1], r->p[2], c->z.rows, c->z.cols,
                                     c->smoothing, 1, false);
    const struct queued_loss got = beside_loss(r->ctx, at);
    if (fabs(got.sum - c->sum) > 1e-6 * fabs(c->sum) + 1e-6)
        fail_msg("cross_entropy %d x %d: %.9g, expected %.9g", c->z.rows, c->z.cols, got.sum, c->sum);
    assert_int_equal(got.correct, c->correct);
}

static void mse_of(const struct beside_run *r)
{
    struct loss_case *c = (struct loss_case *)(uintptr_t)r->shape;
    float *dout = c->gradient ? r->p[0] : NULL;
    struct err err = {0};

    if (device_is_host(r->ctx)) {
        c->sum = r->ctx->ops->mse(r->ctx, dout, r->p[1], r->p[2], c->z.rows, c->z.cols);
        return;
    }
    struct queued_loss *at = device_alloc(r->ctx, sizeof(*at), &err);
    assert_non_null(at);
    r->ctx->ops->queue_mse(r->ctx, at, NULL, dout, r->p[1], r->p[2], c->z.rows, c->z.cols, 1, false);
    assert_true(fabs(beside_loss(r->ctx, at).sum - c->sum) <= 1e-12 * fabs(c->sum));
}

static void add_dout(struct beside *s, bool wanted, size_t n)
{
    if (wanted)
        beside_out(s, BESIDE_F32, n * sizeof(float));
    else
        beside_floats(s, BESIDE_IN, 1);
}

static void losses_are_the_cpus(void **state)
{
    struct beside *s = open_all();

    (void)state;
    for (size_t i = 0; i < 3 * ARRAY_LEN(ROWS); i++) {
        struct loss_case c = {.z = ROWS[i / 3], .gradient = i % 3 < 2, .smoothing = i % 3 == 1 ? 0.1 : 0};
        size_t n = (size_t)c.z.rows * (size_t)c.z.cols;
        int32_t labels[130];
        for (int r = 0; r < c.z.rows; r++)
            labels[r] = r * 7 % c.z.cols;
        add_dout(s, c.gradient, n);
        beside_floats(s, BESIDE_IN, n);
        beside_copy(s, BESIDE_IN, BESIDE_BITS, labels, (size_t)c.z.rows * sizeof(*labels));
        beside_check(s, cross_entropy_of, &c, "cross_entropy");
        add_dout(s, c.gradient, n);
        beside_floats(s, BESIDE_IN, n);
        beside_floats(s, BESIDE_IN, n);
        beside_check(s, mse_of, &c, "mse");
    }
    beside_close(s);
}

static void a_label_that_is_no_class_is_told(void **state)
{
    struct beside *s = open_all();
    const float logits[6] = {0};
    const int32_t labels[3] = {0, 2, -1};
    struct err err = {0};

    (void)state;
    float *x = device_alloc(s->device, sizeof(logits), &err);
    int32_t *l = device_alloc(s->device, sizeof(labels), &err);
    struct queued_loss *at = device_alloc(s->device, sizeof(*at), &err);
    assert_true(x && l && at);
    device_put(s->device, x, logits, sizeof(logits));
    device_put(s->device, l, labels, sizeof(labels));
    s->device->ops->queue_cross_entropy(s->device, at, NULL, NULL, x, l, 3, 2, 0, 1, false);
    const struct queued_loss got = beside_loss(s->device, at);
    assert_int_equal(got.bad_row, 1);
    assert_true(isnan(got.sum));
    device_free(s->device, x);
    device_free(s->device, l);
    beside_close(s);
}

struct norm_case {
    int rows, cols;
    bool train, din, bias;
};

static struct batchnorm_shape batch_shape(const struct norm_case *c)
{
    return (struct batchnorm_shape){c->rows, c->cols, 1e-5, 0.1};
}

static void batch_forward_of(const struct beside_run *r)
{
    const struct norm_case *c = r->shape;
    struct batchnorm_shape z = batch_shape(c);

    r->ctx->ops->batchnorm_forward(r->ctx, &z, c->train, r->p[0], r->p[1], r->p[2], r->p[3], r->p[4], r->p[5],
                                   r->p[6], r->p[7]);
}

static void batch_backward_of(const struct beside_run *r)
{
    const struct norm_case *c = r->shape;
    struct batchnorm_shape z = batch_shape(c);

    r->ctx->ops->batchnorm_backward(r->ctx, &z, c->train, c->din ? r->p[0] : NULL, r->p[1], r->p[2], r->p[3],
                                    r->p[4], r->p[5], r->p[6], r->p[7]);
}

static void add_positive(struct beside *s, enum beside_kind kind, size_t n)
{
    float *x = malloc(n * sizeof(float));

    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = 0.5F + (float)(i % 7) / 4;
    beside_copy(s, kind, BESIDE_F32, x, n * sizeof(float));
    free(x);
}

static void check_batchnorm(struct beside *s, const struct norm_case *c)
{
    size_t cols = (size_t)c->cols, n = (size_t)c->rows * cols;
    struct batchnorm_shape z = batch_shape(c);

    const size_t scratch = batchnorm_workspace_bytes(&z);
    beside_reserve(s, scratch, scratch);
    beside_out(s, BESIDE_F32, n * sizeof(float));
    beside_out(s, BESIDE_F32, cols * sizeof(float));
    beside_out(s, BESIDE_F32, cols * sizeof(float));
    beside_floats(s, BESIDE_INOUT, cols);
    add_positive(s, BESIDE_INOUT, cols);
    beside_floats(s, BESIDE_IN, n);
    beside_floats(s, BESIDE_IN, cols);
    beside_floats(s, BESIDE_IN, cols);
    beside_check(s, batch_forward_of, c, "batchnorm");
    add_dout(s, c->din, n);
    beside_out(s, BESIDE_F32, cols * sizeof(float));
    beside_out(s, BESIDE_F32, cols * sizeof(float));
    beside_floats(s, BESIDE_IN, n);
    beside_floats(s, BESIDE_IN, n);
    beside_floats(s, BESIDE_IN, cols);
    add_positive(s, BESIDE_IN, cols);
    beside_floats(s, BESIDE_IN, cols);
    beside_check(s, batch_backward_of, c, "batchnorm, back");
}

static void batchnorm_is_the_cpus(void **state)
{
    static const struct norm_case cases[] = {{2, 3, true, true, true},      {32, 10, false, true, false},
                                             {500, 33, true, false, true},  {3, 64, true, true, false},
                                             {37, 100, false, false, true}, {1000, 1, true, true, true}};
    struct beside *s = open_all();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_batchnorm(s, &cases[i]);
    beside_close(s);
}

static void flatten_forward_of(const struct beside_run *r)
{
    r->ctx->ops->flatten_forward(r->ctx, r->shape, r->p[0], r->p[1]);
}

static void flatten_backward_of(const struct beside_run *r)
{
    r->ctx->ops->flatten_backward(r->ctx, r->shape, r->p[0], r->p[1]);
}

static void flatten_is_the_cpus_to_the_bit(void **state)
{
    static const struct flatten_shape shapes[] = {{1, 1, 1, 1}, {3, 4, 5, 7}, {2, 3, 3, 64}};
    struct beside *s = open_all();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct flatten_shape *z = &shapes[i];
        size_t n = (size_t)z->batch * (size_t)z->h * (size_t)z->w * (size_t)z->c;
        beside_out(s, BESIDE_BITS, n * sizeof(float));
        beside_floats(s, BESIDE_IN, n);
        beside_check(s, flatten_forward_of, z, "flatten");
        beside_out(s, BESIDE_BITS, n * sizeof(float));
        beside_floats(s, BESIDE_IN, n);
        beside_check(s, flatten_backward_of, z, "flatten, back");
    }
    beside_close(s);
}

struct optim_case {
    size_t n;
    struct adam_options adam;
    struct sgd_options sgd;
    int64_t step;
};

static void update(struct kctx *ctx, const struct update_scalars *s, float *p, float *m, float *v,
                   const float *g, size_t n)
{
    struct {
        struct step_state state;
        struct queued_span span;
        float loss;
    } own = {.state.now.update[0] = *s, .span.end = (int64_t)n}, *at;
    struct err err = {0};

    if (device_is_host(ctx)) {
        ctx->ops->update_step(ctx, s, p, m, v, g, n);
        return;
    }
    at = device_alloc(ctx, sizeof(own), &err);
    assert_non_null(at);
    device_put(ctx, at, &own, sizeof(own));
    ctx->ops->queue_update(ctx, s->rule, &at->state, &at->loss, NULL, &at->span, 1,
                           &(struct queued_params){.p = p, .n = n}, m, v, g);
    device_free(ctx, at);
}

static void adam_of(const struct beside_run *r)
{
    const struct optim_case *c = r->shape;
    const struct update_scalars adam = adam_scalars_of(&c->adam, c->step);

    update(r->ctx, &adam, r->p[0], r->p[1], r->p[2], r->p[3], c->n);
}

static void sgd_of(const struct beside_run *r)
{
    const struct optim_case *c = r->shape;
    const struct update_scalars sgd = sgd_scalars_of(&c->sgd);

    update(r->ctx, &sgd, r->p[0], c->sgd.momentum != 0 ? r->p[1] : NULL, NULL, r->p[2], c->n);
}

/* n floats of which the device must make the CPU's bits. */
static void add_exact(struct beside *s, size_t n)
{
    int at = beside_floats(s, BESIDE_INOUT, n);

    s->b[at].type = BESIDE_BITS;
}

static void optimisers_are_the_cpus_to_the_bit(void **state)
{
    static const struct optim_case cases[] = {
        {1, {1e-3, 0.9, 0.999, 1e-8, 0, false}, {0.1, 0, 0, 0, false}, 1},
        {1000, {1e-2, 0.8, 0.99, 1e-6, 0.1, false}, {0.1, 0.9, 0.1, 0.01, false}, 7},
        {3001, {6e-4, 0.9, 0.95, 1e-8, 0.1, true}, {0.01, 0.9, 0, 0.01, true}, 1000},
    };
    struct beside *s = open_all();
    struct err err = {0};

    (void)state;
    /* Plain code has no fused products on some machines: compare with a set that has. */
    if (kctx_isa(s->cpu) == KCTX_ISA_PLAIN)
        skip();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t n = cases[i].n;
        add_exact(s, n);
        add_exact(s, n);
        float *v = calloc(n, sizeof(float));
        assert_non_null(v);
        for (size_t k = 0; k < n; k++)
            v[k] = (float)k / (float)n;
        beside_copy(s, BESIDE_INOUT, BESIDE_BITS, v, n * sizeof(float));
        free(v);
        beside_floats(s, BESIDE_IN, n);
        beside_check(s, adam_of, &cases[i], "adam");
        add_exact(s, n);
        if (cases[i].sgd.momentum != 0)
            add_exact(s, n);
        else
            beside_floats(s, BESIDE_IN, 1);
        beside_floats(s, BESIDE_IN, n);
        beside_check(s, sgd_of, &cases[i], "sgd");
    }
    assert_int_equal(device_sync(s->device, &err), 0);
    beside_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv2d_is_the_cpus),
        cmocka_unit_test(conv2d_on_many_multiprocessors),
        cmocka_unit_test(pools_are_the_cpus),
        cmocka_unit_test(activations_are_the_cpus),
        cmocka_unit_test(softmax_is_the_cpus),
        cmocka_unit_test(losses_are_the_cpus),
        cmocka_unit_test(a_label_that_is_no_class_is_told),
        cmocka_unit_test(batchnorm_is_the_cpus),
        cmocka_unit_test(flatten_is_the_cpus_to_the_bit),
        cmocka_unit_test(optimisers_are_the_cpus_to_the_bit),
    };
    int none = beside_none();

    return none ? none : cmocka_run_group_tests(tests, NULL, NULL);
}
