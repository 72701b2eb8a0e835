/* test_sequence_ops.c - the operations of models of sequences, a GPU's beside the CPU's, over shapes even and odd. */
#include "beside.h"
#include "kernels/cuda/attention.h"
#include "kernels/ops.h"
#include "sanitized.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a shape's arrangements; under sanitizers every third, so that each shape has one and each arrangement a shape. */
enum { STEP = SANITIZED ? 3 : 1 };

/* With addresses at any multiple of an element, and with those that allow 16 bytes at a time. Of bf16 what is rounded on the
 * way (weights, results) is some 2^-9 away; nothing else is. */
static struct beside *open_all(bool aligned, enum element element)
{
    static struct beside s;

    beside_open(&s, PRECISION_F32, element);
    s.aligned = aligned;
    if (element == ELEMENT_BF16)
        s.nmse = 2e-5;
    return &s;
}

/* ---- add, squares ---- */

static void add_of(const struct beside_run *r)
{
    r->ctx->ops->add(r->ctx, r->p[0], r->p[1], r->p[2], *(const size_t *)r->shape);
}

struct squares_case {
    size_t n;
    double sum; /* the CPU's */
};

static void squares_of(const struct beside_run *r)
{
    struct squares_case *c = (struct squares_case *)(uintptr_t)r->shape;
    double part[8];
    struct queued_norm got;
    struct err err = {0};

    if (device_is_host(r->ctx)) {
        assert_true(reduce_blocks(c->n) <= ARRAY_LEN(part));
        r->ctx->ops->reduce_squares(r->ctx, part, r->p[0], c->n);
        c->sum = 0;
        for (size_t i = 0; i < reduce_blocks(c->n); i++)
            c->sum += part[i];
        return;
    }
    struct queued_norm *at = device_alloc(r->ctx, sizeof(*at), &err);
    assert_non_null(at);
    r->ctx->ops->queue_squares(r->ctx, at, r->p[0], c->n);
    if (device_get(r->ctx, &got, at, sizeof(got), &err))
        fail_msg("%s", err.msg);
    device_free(r->ctx, at);
    if (fabs(got.squares - c->sum) > 1e-12 * c->sum)
        fail_msg("squares of %zu: %.17g, expected %.17g", c->n, got.squares, c->sum);
}

static void flat_ones_are_the_cpus(void **state)
{
    static const size_t sizes[] = {1, 3, 4, 17, 4096, 4097, 20001};

    (void)state;
    for (size_t i = 0; i < 4 * ARRAY_LEN(sizes); i += STEP) {
        struct beside *s = open_all(i % 2, i % 4 < 2 ? ELEMENT_F32 : ELEMENT_BF16);
        const size_t n = sizes[i / 4];
        struct squares_case squares = {.n = n};
        if (i % 4 < 2)
            s->nmse = 0;
        beside_out(s, BESIDE_ELEMENTS, n * sizeof(float));
        beside_elements(s, BESIDE_IN, n);
        beside_elements(s, BESIDE_IN, n);
        beside_check(s, add_of, &n, "add");
        beside_floats(s, BESIDE_IN, n);
        beside_check(s, squares_of, &squares, "squares");
        beside_close(s);
    }
}

/* ---- embedding ---- */

struct embedding_case {
    struct embedding_shape s;
    bool more;
};

static void embedding_forward_of(const struct beside_run *r)
{
    const struct embedding_case *c = r->shape;
    r->ctx->ops->embedding_forward(r->ctx, &c->s, r->p[0], r->p[1], r->p[2], r->p[3]);
}

static void embedding_backward_of(const struct beside_run *r)
{
    const struct embedding_case *c = r->shape;
    r->ctx->ops->embedding_backward(r->ctx, &c->s, c->more, r->p[0], r->p[1], r->p[2], r->p[3]);
}

/* Some tokens often, most of them once or never. */
static void add_tokens(struct beside *s, const struct embedding_shape *z)
{
    size_t n = (size_t)z->batch * (size_t)z->time;
    float *tokens = malloc(n * sizeof(*tokens));
    uint32_t x = 7;

    assert_non_null(tokens);
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        tokens[i] = (float)(x >> 31 ? (x >> 8) % (uint32_t)z->vocab : (x >> 16) % 3 % (uint32_t)z->vocab);
    }
    beside_copy(s, BESIDE_IN, BESIDE_F32, tokens, n * sizeof(*tokens));
    free(tokens);
}

static void check_embedding(struct beside *s, const struct embedding_case *c)
{
    const struct embedding_shape *z = &c->s;
    size_t wide = (size_t)z->channels;
    size_t out = (size_t)z->batch * (size_t)z->time * wide;
    size_t table = (size_t)z->vocab * wide;
    char what[120];

    snprintf(what, sizeof(what), "embedding %dx%d of %d, %d wide%s", z->batch, z->time, z->vocab, z->channels,
             c->more ? ", more" : "");
    beside_out(s, BESIDE_ELEMENTS, out * sizeof(float));
    add_tokens(s, z);
    beside_elements(s, BESIDE_IN, table);
    beside_elements(s, BESIDE_IN, (size_t)z->time * wide);
    beside_check(s, embedding_forward_of, c, what);
    if (c->more)
        beside_floats(s, BESIDE_INOUT, table);
    else
        beside_out(s, BESIDE_F32, table * sizeof(float));
    beside_out(s, BESIDE_F32, (size_t)z->time * wide * sizeof(float));
    beside_elements(s, BESIDE_IN, out);
    add_tokens(s, z);
    beside_check(s, embedding_backward_of, c, what);
}

/* To the bit: a token's gradients are added in the order of its places, as on the CPU. */
static void embedding_is_the_cpus_to_the_bit(void **state)
{
    static const struct embedding_shape shapes[] = {{1, 1, 1, 1},      {2, 3, 5, 7},       {3, 64, 256, 32},
                                                    {1, 1030, 300, 4}, {5, 411, 70000, 3}, {2, 9, 11, 260}};

    (void)state;
    for (size_t i = 0; i < 4 * ARRAY_LEN(shapes); i += STEP) {
        struct beside *s = open_all(i % 2, i % 4 < 2 ? ELEMENT_F32 : ELEMENT_BF16);
        if (i % 4 < 2)
            s->nmse = 0;
        check_embedding(s, &(struct embedding_case){shapes[i / 4], false});
        check_embedding(s, &(struct embedding_case){shapes[i / 4], true});
        beside_close(s);
    }
}

/* ---- attention ---- */

static void attention_forward_of(const struct beside_run *r)
{
    r->ctx->ops->attention_forward(r->ctx, r->shape, r->p[0], r->p[2], r->p[1]);
}

static void attention_backward_of(const struct beside_run *r)
{
    r->ctx->ops->attention_backward(r->ctx, r->shape, r->p[0], r->p[1], r->p[2], r->p[3], r->p[4]);
}

/* What the forward pass leaves for the other: the CPU's. */
static void forward_results(struct beside *s, const struct attention_shape *z, const float *qkv, float *out,
                            float *lse)
{
    s->cpu->ops->attention_forward(s->cpu, z, out, lse, qkv);
}

static void check_attention(struct beside *s, const struct attention_shape *z)
{
    size_t rows = (size_t)z->batch * (size_t)z->time;
    size_t out = rows * (size_t)z->heads * (size_t)z->size;
    float *made = malloc((out + rows * (size_t)z->heads) * sizeof(*made));
    char what[120];

    assert_non_null(made);
    snprintf(what, sizeof(what), "attention %dx%d, %d heads of %d", z->batch, z->time, z->heads, z->size);
    beside_reserve(s, attention_thread_bytes(z), 0);
    beside_out(s, BESIDE_ELEMENTS, out * sizeof(float));
    int qkv = beside_elements(s, BESIDE_IN, 3 * out); /* the second: at odd addresses, as dout is below */
    beside_out(s, BESIDE_F32, rows * (size_t)z->heads * sizeof(float));
    forward_results(s, z, s->b[qkv].start, made, made + out);
    float *same = malloc(3 * out * sizeof(*same));
    assert_non_null(same);
    memcpy(same, s->b[qkv].start, 3 * out * sizeof(*same));
    beside_check(s, attention_forward_of, z, what);
    beside_out(s, BESIDE_ELEMENTS, 3 * out * sizeof(float));
    beside_elements(s, BESIDE_IN, out);
    beside_copy(s, BESIDE_IN, BESIDE_ELEMENTS, made, out * sizeof(float));
    beside_copy(s, BESIDE_IN, BESIDE_F32, made + out, rows * (size_t)z->heads * sizeof(float));
    beside_copy(s, BESIDE_IN, BESIDE_ELEMENTS, same, 3 * out * sizeof(float));
    beside_check(s, attention_backward_of, z, what);
    free(made);
    free(same);
}

static void attention_is_the_cpus(void **state)
{
    static const struct attention_shape shapes[] = {
        {1, 1, 1, 1},   {2, 5, 3, 7},    {1, 64, 2, 64}, {1, 65, 1, 32}, {1, 130, 2, 64},
        {2, 63, 1, 33}, {1, 70, 1, 130}, {2, 9, 2, 63},  {1, 66, 1, 65}, {2, 17, 2, 128}};

    (void)state;
    for (size_t i = 0; i < 4 * ARRAY_LEN(shapes); i += STEP) {
        struct beside *s = open_all(i % 2, i % 4 < 2 ? ELEMENT_F32 : ELEMENT_BF16);
        s->rounds_inside = true; /* weights */
        check_attention(s, &shapes[i / 4]);
        beside_close(s);
    }
}

/* The border between the two paths of attention: what either cannot do, it is not given. Bytes behind a multiple of 16. */
static void attention_is_fast_where_it_can_be(void **state)
{
    static const struct {
        enum element element;
        int size;
        uintptr_t qkv, dout;
        bool fast;
    } cases[] = {
        {ELEMENT_BF16, 64, 0, 0, true},  {ELEMENT_F32, 64, 0, 0, false},  {ELEMENT_BF16, 63, 0, 0, false},
        {ELEMENT_BF16, 65, 0, 0, false}, {ELEMENT_BF16, 32, 0, 0, false}, {ELEMENT_BF16, 128, 0, 0, false},
        {ELEMENT_BF16, 64, 2, 0, false}, {ELEMENT_BF16, 64, 8, 0, false}, {ELEMENT_BF16, 64, 0, 4, false},
        {ELEMENT_BF16, 64, 0, 8, false},
    };
    char at[32];
    const char *even = at + (16 - (uintptr_t)at % 16);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct attention_shape s = {2, 3, 5, cases[i].size};
        const void *qkv = even + cases[i].qkv;
        if (attention_fast(cases[i].element, &s, qkv, even + cases[i].dout) != cases[i].fast)
            fail_msg("case %zu: the %s path", i, cases[i].fast ? "plain" : "fast");
        if (cases[i].dout == 0 && attention_fast(cases[i].element, &s, qkv, NULL) != cases[i].fast)
            fail_msg("case %zu, forwards: the %s path", i, cases[i].fast ? "plain" : "fast");
    }
}

/* ---- classifier ---- */

struct head_case {
    struct linear_shape s;
    bool gradient;
    double far; /* how far sums may be apart */
    double sum; /* both devices write the results here, one after the other */
    int correct;
};

static void head_of(const struct beside_run *r)
{
    struct head_case *c = (struct head_case *)(uintptr_t)r->shape;
    void *din = c->gradient ? r->p[0] : NULL;
    float *dweight = c->gradient ? r->p[1] : NULL;
    struct loss_result cpu;
    struct err err = {0};

    if (device_is_host(r->ctx)) {
        if (r->ctx->ops->classifier(r->ctx, &c->s, &cpu, din, dweight, r->p[2], r->p[3], r->p[4], 0.125F,
                                    &err))
            fail_msg("%s", err.msg);
        c->sum = cpu.sum;
        c->correct = cpu.correct;
        return;
    }
    struct queued_loss *at = device_alloc(r->ctx, sizeof(*at), &err);
    assert_non_null(at);
    r->ctx->ops->queue_classifier(r->ctx, &c->s, at, NULL, din, dweight, r->p[2], r->p[3], r->p[4], 0.125F,
                                  false);
    const struct queued_loss got = beside_loss(r->ctx, at);
    if (fabs(got.sum - c->sum) > c->far * fabs(c->sum) + 1e-6)
        fail_msg("classifier %d x %d -> %d: %.9g, expected %.9g", c->s.rows, c->s.in, c->s.out, got.sum,
                 c->sum);
    assert_int_equal(got.correct, c->correct);
}

static void check_head(struct beside *s, struct head_case *c)
{
    const size_t rows = (size_t)c->s.rows, in = (size_t)c->s.in, out = (size_t)c->s.out;
    int32_t *labels = calloc(rows, sizeof(*labels));
    char what[120];

    assert_non_null(labels);
    for (size_t r = 0; r < rows; r++)
        labels[r] = (int32_t)(r * 7 % out);
    snprintf(what, sizeof(what), "classifier %zu x %zu -> %zu%s", rows, in, out,
             c->gradient ? "" : ", loss alone");
    if (c->gradient) {
        beside_out(s, BESIDE_ELEMENTS, rows * in * sizeof(float));
        beside_out(s, BESIDE_F32, out * in * sizeof(float));
    } else {
        beside_floats(s, BESIDE_IN, 1);
        beside_floats(s, BESIDE_IN, 1);
    }
    beside_elements(s, BESIDE_IN, rows * in);
    beside_elements(s, BESIDE_IN, out * in);
    beside_copy(s, BESIDE_IN, BESIDE_BITS, labels, rows * sizeof(*labels));
    beside_check(s, head_of, c, what);
    free(labels);
}

/* Also of numbers of classes, and of inputs, that fill packs of 16 bytes, and that do not. */
static const struct linear_shape HEADS[] = {{1, 1, 1},     {5, 3, 2},    {64, 32, 256}, {33, 7, 1000},
                                            {37, 40, 257}, {9, 300, 71}, {3, 5, 70}};

/* Scratch memory for all rows at once, and for three at a time. */
static void classifier_is_the_cpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8 * ARRAY_LEN(HEADS); i += STEP) {
        struct head_case c = {.s = HEADS[i / 8], .gradient = i % 2, .far = i % 8 < 4 ? 1e-6 : 4e-3};
        struct linear_shape three = c.s;
        struct beside *s = open_all(i % 2, i % 8 < 4 ? ELEMENT_F32 : ELEMENT_BF16);
        s->rounds_inside = true; /* logits */
        if (i % 4 < 2)
            three.rows = 3;
        beside_reserve(s, classifier_workspace_bytes(&c.s), queued_classifier_bytes(&three));
        check_head(s, &c);
        beside_close(s);
    }
}

static void own_products_make_the_same_classifier(void **state)
{
    setenv("TK_CUBLAS", "off", 1);
    classifier_is_the_cpus(state);
    unsetenv("TK_CUBLAS");
}

static void a_label_that_is_no_class_is_told(void **state)
{
    const struct linear_shape shape = {3, 2, 2};
    const float zeros[6] = {0};
    const int32_t labels[3] = {0, 2, -1};
    struct beside *s = open_all(true, ELEMENT_F32);
    struct err err = {0};

    (void)state;
    beside_reserve(s, 0, queued_classifier_bytes(&shape));
    float *x = device_alloc(s->device, sizeof(zeros), &err);
    int32_t *l = device_alloc(s->device, sizeof(labels), &err);
    struct queued_loss *at = device_alloc(s->device, sizeof(*at), &err);
    assert_true(x && l && at);
    device_put(s->device, l, labels, sizeof(labels));
    s->device->ops->queue_classifier(s->device, &shape, at, NULL, NULL, NULL, x, x, l, 1, false);
    const struct queued_loss got = beside_loss(s->device, at);
    assert_int_equal(got.bad_row, 1);
    assert_true(isnan(got.sum));
    device_free(s->device, x);
    device_free(s->device, l);
    beside_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_ones_are_the_cpus),
        cmocka_unit_test(embedding_is_the_cpus_to_the_bit),
        cmocka_unit_test(attention_is_fast_where_it_can_be),
        cmocka_unit_test(attention_is_the_cpus),
        cmocka_unit_test(classifier_is_the_cpus),
        cmocka_unit_test(own_products_make_the_same_classifier),
        cmocka_unit_test(a_label_that_is_no_class_is_told),
    };
    int none = beside_none();

    return none ? none : cmocka_run_group_tests(tests, NULL, NULL);
}
