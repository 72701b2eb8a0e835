/* test_elements.c - the GPU's operations on elements (kctx.h), f32 and bf16, beside the CPU's on f32: a bf16 is rounded once,
 * when it is written. */
#include "beside.h"
#include "kernels/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = ELEMENT_BF16 + 1 };

static struct beside *open_all(enum element element)
{
    static struct beside s;

    beside_open(&s, PRECISION_F32, element);
    return &s;
}

static void add_out(struct beside *s, bool wanted, enum beside_type type, size_t n)
{
    if (wanted)
        beside_out(s, type, n * sizeof(float));
    else
        beside_floats(s, BESIDE_IN, 1);
}

struct linear_case {
    struct linear_shape s;
    bool relu, bias, din;
    bool nan; /* an element of inputs and gradients is none */
};

static void add_in(struct beside *s, const struct linear_case *c, size_t n)
{
    const int i = beside_elements(s, BESIDE_IN, n);

    if (c->nan)
        ((float *)s->b[i].start)[n / 2] = NAN;
}

static void linear_forward_of(const struct beside_run *r)
{
    const struct linear_case *c = r->shape;
    r->ctx->ops->linear_forward(r->ctx, &c->s, r->p[0], r->p[1], r->p[2], c->bias ? r->p[3] : NULL, c->relu);
}

static void linear_backward_of(const struct beside_run *r)
{
    const struct linear_case *c = r->shape;
    r->ctx->ops->linear_backward(r->ctx, &c->s, c->din ? r->p[0] : NULL, r->p[1], c->bias ? r->p[2] : NULL,
                                 r->p[3], c->relu ? r->p[4] : NULL, r->p[5], r->p[6]);
}

static void check_linear(struct beside *s, const struct linear_case *c)
{
    size_t rows = (size_t)c->s.rows, in = (size_t)c->s.in, out = (size_t)c->s.out;
    char what[120];

    snprintf(what, sizeof(what), "linear %zu x %zu -> %zu%s%s", rows, in, out, c->relu ? " relu" : "",
             c->bias ? " bias" : "");
    const size_t scratch = linear_workspace_bytes(&c->s);
    beside_reserve(s, scratch, scratch);
    beside_out(s, BESIDE_ELEMENTS, rows * out * sizeof(float));
    add_in(s, c, rows * in);
    beside_elements(s, BESIDE_IN, out * in);
    beside_elements(s, BESIDE_IN, out);
    beside_check(s, linear_forward_of, c, what);
    if (c->din)
        beside_out(s, BESIDE_ELEMENTS, rows * in * sizeof(float));
    else
        beside_floats(s, BESIDE_IN, 1);
    beside_out(s, BESIDE_F32, out * in * sizeof(float));
    if (c->bias)
        beside_out(s, BESIDE_F32, out * sizeof(float));
    else
        beside_floats(s, BESIDE_IN, 1);
    add_in(s, c, rows * out);
    beside_elements(s, BESIDE_IN, rows * out);
    beside_elements(s, BESIDE_IN, rows * in);
    beside_elements(s, BESIDE_IN, out * in);
    beside_check(s, linear_backward_of, c, what);
}

static void linear_gelu_forward_of(const struct beside_run *r)
{
    const struct linear_case *c = r->shape;
    r->ctx->ops->linear_gelu_forward(r->ctx, &c->s, r->p[0], r->p[1], r->p[2], r->p[3], r->p[4]);
}

static void gelu_linear_backward_of(const struct beside_run *r)
{
    const struct linear_case *c = r->shape;
    const size_t n = (size_t)c->s.rows * (size_t)c->s.in;
    void *room = r->p[4];

    r->ctx->ops->gelu_linear_backward(r->ctx, &c->s, r->p[0], room, r->p[1], r->p[2], r->p[3], r->p[5],
                                      r->p[6], r->p[7]);
    device_zero(r->ctx, room, n * element_bytes(device_element(r->ctx)));
}

/* The GELU as well. */
static void check_linear_gelu(struct beside *s, const struct linear_case *c)
{
    size_t rows = (size_t)c->s.rows, in = (size_t)c->s.in, out = (size_t)c->s.out;
    char what[120];

    snprintf(what, sizeof(what), "linear %zu x %zu -> %zu, GELU", rows, in, out);
    beside_reserve(s, linear_workspace_bytes(&c->s), linear_workspace_bytes(&c->s));
    beside_out(s, BESIDE_ELEMENTS, rows * out * sizeof(float));
    beside_out(s, BESIDE_ELEMENTS, rows * out * sizeof(float));
    add_in(s, c, rows * in);
    beside_elements(s, BESIDE_IN, out * in);
    beside_elements(s, BESIDE_IN, out);
    beside_check(s, linear_gelu_forward_of, c, what);
    beside_out(s, BESIDE_ELEMENTS, rows * in * sizeof(float));
    beside_out(s, BESIDE_F32, out * in * sizeof(float));
    beside_out(s, BESIDE_F32, out * sizeof(float));
    add_in(s, c, rows * out);
    beside_out(s, BESIDE_ELEMENTS, rows * in * sizeof(float));
    beside_elements(s, BESIDE_IN, rows * in);
    add_in(s, c, rows * in);
    beside_elements(s, BESIDE_IN, out * in);
    beside_check(s, gelu_linear_backward_of, c, what);
}

static const struct linear_shape LINEARS[] = {{1, 1, 1},     {32, 20, 1},   {3, 7, 5},
                                              {64, 64, 64},  {65, 63, 66},  {2, 129, 10},
                                              {100, 17, 33}, {150, 9, 264}, {102, 100, 108}};

static void check_linears(enum element element)
{
    struct beside *s = open_all(element);

    for (size_t i = 0; i < ARRAY_LEN(LINEARS); i++)
        for (int how = 0; how < 4; how++) {
            s->aligned = element == ELEMENT_BF16 || (how & 1) == 0; /* packs of gradients; f32 both ways */
            check_linear(s, &(struct linear_case){
                                .s = LINEARS[i], .relu = how >= 2, .bias = (how + 1) & 2, .din = how != 3});
        }
    s->aligned = element == ELEMENT_BF16;
    if (element == ELEMENT_BF16)
        s->rounds_inside = true; /* where there are two operations */
    for (size_t i = 0; i < ARRAY_LEN(LINEARS); i++) {
        const bool few = LINEARS[i].rows * LINEARS[i].out < 100; /* whose errors are no average */
        if (element == ELEMENT_BF16)
            s->nmse = few ? 1e-4 : 1e-5;
        check_linear_gelu(s, &(struct linear_case){.s = LINEARS[i]});
    }
    beside_close(s);
}

static void linear_is_the_cpus(void **state)
{
    (void)state;
    for (int e = 0; e < ELEMENTS; e++)
        check_linears((enum element)e);
}

/* Weights' gradients are queued on a second stream. The emulator runs what is queued there as early as events allow; without
 * FAKE_STREAMS, in the other tests, as late. */
static void streams_wait_for_each_other(void **state)
{
    struct beside *s;

    (void)state;
    setenv("FAKE_STREAMS", "early", 1);
    s = open_all(ELEMENT_F32);
    for (int relu = 0; relu < 2; relu++)
        check_linear(s, &(struct linear_case){{32, 20, 10}, relu, .bias = true, .din = true});
    beside_close(s);
    unsetenv("FAKE_STREAMS");
}

/* Also without cuBLAS. */
static void own_products_are_the_cpus(void **state)
{
    setenv("TK_CUBLAS", "off", 1);
    linear_is_the_cpus(state);
    unsetenv("TK_CUBLAS");
}

/* What is no number reaches the loss, and the gradients, whatever is made of a product beside it. With PRECISION_TF32 small
 * products of f32 are cuBLAS's, too. */
static void what_is_no_number_stays_none(void **state)
{
    static const struct {
        enum precision precision;
        enum element element;
        double nmse;
    } ROWS[] = {{PRECISION_F32, ELEMENT_F32, 0},
                {PRECISION_TF32, ELEMENT_F32, 1e-5},
                {PRECISION_F32, ELEMENT_BF16, 1e-4}};
    struct linear_case c = {{24, 16, 8}, .relu = true, .din = true, .nan = true};
    struct beside s;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        beside_open(&s, ROWS[i].precision, ROWS[i].element);
        s.aligned = true; /* as cuBLAS's epilogues want it */
        if (ROWS[i].precision == PRECISION_TF32)
            s.nmse = ROWS[i].nmse;
        for (int bias = 0; bias < 2; bias++) {
            c.bias = bias;
            check_linear(&s, &c);
        }
        s.rounds_inside = true;
        s.nmse = ROWS[i].nmse > 0 ? ROWS[i].nmse : s.nmse;
        check_linear_gelu(&s, &c);
        beside_close(&s);
    }
}

/* CUDA takes 65,535 blocks along y, a matrix may have more tiles side by side. */
static void matrices_are_as_wide_as_they_like(void **state)
{
    struct beside *s;

    (void)state;
    setenv("TK_CUBLAS", "off", 1);
    device_grid_y(8); /* as many parts as sums of columns have */
    s = open_all(ELEMENT_F32);
    check_linear(s, &(struct linear_case){{3, 2, 10 * 64}, .bias = true, .din = true});
    check_linear(s, &(struct linear_case){{2, 10 * 64, 3}, .bias = true, .din = true});
    beside_close(s);
    device_grid_y(0);
    unsetenv("TK_CUBLAS");
}

struct gelu_case {
    enum gelu_form form;
    size_t n;
};

static void gelu_forward_of(const struct beside_run *r)
{
    const struct gelu_case *c = r->shape;
    r->ctx->ops->gelu_forward(r->ctx, c->form, r->p[0], r->p[1], c->n);
}

static void gelu_backward_of(const struct beside_run *r)
{
    const struct gelu_case *c = r->shape;
    r->ctx->ops->gelu_backward(r->ctx, c->form, r->p[0], r->p[1], r->p[2], c->n);
}

static void check_gelus(enum element element, bool aligned)
{
    static const size_t sizes[] = {1, 255, 256, 257, 5000};
    struct beside *s = open_all(element);

    s->aligned = aligned;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t n = sizes[i];
        for (int form = 0; form < 2; form++) {
            struct gelu_case c = {form ? GELU_TANH : GELU_EXACT, n};
            float *wide = malloc(n * sizeof(float));
            assert_non_null(wide);
            for (size_t k = 0; k < n; k++)
                wide[k] = (float)k / (float)n * 30 - 15;
            beside_out(s, BESIDE_ELEMENTS, n * sizeof(float));
            beside_copy(s, BESIDE_IN, BESIDE_ELEMENTS, wide, n * sizeof(float));
            beside_check(s, gelu_forward_of, &c, "gelu");
            beside_out(s, BESIDE_ELEMENTS, n * sizeof(float));
            beside_elements(s, BESIDE_IN, n);
            beside_copy(s, BESIDE_IN, BESIDE_ELEMENTS, wide, n * sizeof(float));
            beside_check(s, gelu_backward_of, &c, "gelu, back");
            free(wide);
        }
    }
    beside_close(s);
}

static void gelu_is_the_cpus(void **state)
{
    (void)state;
    for (int e = 0; e < 2 * ELEMENTS; e++)
        check_gelus((enum element)(e / 2), e % 2);
}

struct dropout_case {
    struct dropout_shape s;
    uint64_t step;
};

static void dropout_forward_of(const struct beside_run *r)
{
    const struct dropout_case *c = r->shape;
    struct dropout_draw d = {.seed = 1234567, .step = c->step, .layer = 3, .samples = r->p[3]};

    r->ctx->ops->dropout_forward(r->ctx, &c->s, &d, r->p[0], r->p[1], r->p[2]);
}

static void dropout_backward_of(const struct beside_run *r)
{
    const struct dropout_case *c = r->shape;
    r->ctx->ops->dropout_backward(r->ctx, &c->s, r->p[0], r->p[1], r->p[2]);
}

static void check_dropouts(enum element element)
{
    static const struct dropout_case cases[] = {
        {{1, 1, 0.5}, 0}, {{7, 301, 0.25}, 1U << 31}, {{32, 64, 0.9}, 5}};
    const uint32_t samples[32] = {9, 1, 77777, 3};
    struct beside *s = open_all(element);

    if (element == ELEMENT_F32)
        s->nmse = 0; /* to the bit */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct dropout_shape *z = &cases[i].s;
        size_t n = (size_t)z->batch * z->len;
        uint8_t *keep = malloc(n);
        assert_non_null(keep);
        for (size_t k = 0; k < n; k++)
            keep[k] = k % 3 == 0;
        beside_out(s, BESIDE_ELEMENTS, n * sizeof(float));
        beside_out(s, BESIDE_BITS, n);
        beside_elements(s, BESIDE_IN, n);
        beside_copy(s, BESIDE_IN, BESIDE_BITS, samples, (size_t)z->batch * sizeof(*samples));
        beside_check(s, dropout_forward_of, &cases[i], "dropout");
        beside_out(s, BESIDE_ELEMENTS, n * sizeof(float));
        beside_elements(s, BESIDE_IN, n);
        beside_copy(s, BESIDE_IN, BESIDE_BITS, keep, n);
        beside_check(s, dropout_backward_of, &cases[i], "dropout, back");
        free(keep);
    }
    beside_close(s);
}

static void dropout_is_the_cpus(void **state)
{
    (void)state;
    for (int e = 0; e < ELEMENTS; e++)
        check_dropouts((enum element)e);
}

struct norm_case {
    int rows, cols;
    bool din, bias, more;
};

static void layer_forward_of(const struct beside_run *r)
{
    const struct norm_case *c = r->shape;
    struct layernorm_shape z = {c->rows, c->cols, 1e-5};

    r->ctx->ops->layernorm_forward(r->ctx, &z, r->p[0], r->p[1], r->p[2], r->p[3], r->p[4],
                                   c->bias ? r->p[5] : NULL);
}

static void layer_backward_of(const struct beside_run *r)
{
    const struct norm_case *c = r->shape;
    struct layernorm_shape z = {c->rows, c->cols, 1e-5};

    r->ctx->ops->layernorm_backward(r->ctx, &z, c->din ? r->p[0] : NULL, r->p[1], c->bias ? r->p[2] : NULL,
                                    r->p[3], c->more ? r->p[8] : NULL, r->p[4], r->p[5], r->p[6], r->p[7]);
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

static void check_layernorm(struct beside *s, const struct norm_case *c)
{
    size_t rows = (size_t)c->rows, cols = (size_t)c->cols;

    beside_out(s, BESIDE_ELEMENTS, rows * cols * sizeof(float));
    beside_out(s, BESIDE_F32, rows * sizeof(float));
    beside_out(s, BESIDE_F32, rows * sizeof(float));
    beside_elements(s, BESIDE_IN, rows * cols);
    beside_floats(s, BESIDE_IN, cols);
    beside_floats(s, BESIDE_IN, cols);
    beside_check(s, layer_forward_of, c, "layernorm");
    add_out(s, c->din, BESIDE_ELEMENTS, rows * cols);
    beside_out(s, BESIDE_F32, cols * sizeof(float));
    add_out(s, c->bias, BESIDE_F32, cols);
    beside_elements(s, BESIDE_IN, rows * cols);
    beside_elements(s, BESIDE_IN, rows * cols);
    beside_floats(s, BESIDE_IN, rows);
    add_positive(s, BESIDE_IN, rows);
    beside_floats(s, BESIDE_IN, cols);
    beside_elements(s, BESIDE_IN, rows * cols);
    beside_check(s, layer_backward_of, c, "layernorm, back");
}

static void check_layernorms(enum element element, bool aligned)
{
    static const struct norm_case cases[] = {{2, 3, true, true, true},      {32, 10, true, false, false},
                                             {500, 33, false, true, false}, {3, 64, true, false, false},
                                             {37, 100, false, true, false}, {150, 264, true, true, true}};
    struct beside *s = open_all(element);

    s->aligned = aligned;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_layernorm(s, &cases[i]);
    beside_close(s);
}

static void layernorm_is_the_cpus(void **state)
{
    (void)state;
    for (int e = 0; e < 2 * ELEMENTS; e++)
        check_layernorms((enum element)(e / 2), e % 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_is_the_cpus),
        cmocka_unit_test(streams_wait_for_each_other),
        cmocka_unit_test(own_products_are_the_cpus),
        cmocka_unit_test(what_is_no_number_stays_none),
        cmocka_unit_test(matrices_are_as_wide_as_they_like),
        cmocka_unit_test(gelu_is_the_cpus),
        cmocka_unit_test(dropout_is_the_cpus),
        cmocka_unit_test(layernorm_is_the_cpus),
    };
    int none = beside_none();

    return none ? none : cmocka_run_group_tests(tests, NULL, NULL);
}
