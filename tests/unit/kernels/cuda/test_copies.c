/* test_copies.c - bf16 copies of weights: rounded as files are, and written by the optimisers in passing. */
#include "beside.h"
#include "bf16.h"
#include "kernels/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3001, STEP = 41 };

struct device {
    struct kctx *ctx;
    float *p, *m, *v, *g, *scale, *loss;
    uint16_t *copy;
    struct step_state *state;
    struct queued_span *span;
};

static void *space(struct device *d, size_t bytes)
{
    struct err err = {0};
    void *p = device_alloc(d->ctx, bytes, &err);

    assert_non_null(p);
    return p;
}

static void get(struct device *d, void *to, const void *from, size_t bytes)
{
    struct err err = {0};

    if (device_get(d->ctx, to, from, bytes, &err))
        fail_msg("%s", err.msg);
}

static struct device open_device(size_t n)
{
    struct err err = {0};
    struct device d = {.ctx = device_open(PRECISION_F32, ELEMENT_BF16, &err)};

    assert_non_null(d.ctx);
    assert_int_equal(device_element(d.ctx), ELEMENT_BF16);
    d.p = space(&d, n * sizeof(float));
    d.m = space(&d, n * sizeof(float));
    d.v = space(&d, n * sizeof(float));
    d.g = space(&d, n * sizeof(float));
    d.copy = space(&d, n * sizeof(*d.copy));
    d.scale = space(&d, sizeof(float));
    d.loss = space(&d, sizeof(float));
    d.state = space(&d, sizeof(*d.state));
    d.span = space(&d, 2 * sizeof(*d.span));
    return d;
}

static void close_device(struct device *d)
{
    void *all[] = {d->p, d->m, d->v, d->g, d->copy, d->scale, d->loss, d->state, d->span};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        device_free(d->ctx, all[i]);
    kctx_free(d->ctx);
}

static void round_on(struct device *d, const struct queued_params *w, const float *x, uint16_t *ret)
{
    device_put(d->ctx, w->p, x, w->n * sizeof(float));
    d->ctx->ops->queue_round(d->ctx, w);
    get(d, ret, w->copy, w->n * sizeof(*ret));
}

static bool is_nan(uint16_t bf16)
{
    return (bf16 & 0x7fff) > 0x7f80;
}

/* Every upper half there is, numbers and not, with lower halves around a half. One NaN is as good as another. */
static void to_the_nearest_as_files_are(void **state)
{
    static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { ALL = 6 << 16 };
    struct device d = open_device(ALL);
    float *x = malloc(ALL * sizeof(*x));
    uint16_t *want = malloc(ALL * sizeof(*want)), *got = malloc(ALL * sizeof(*got));

    (void)state;
    assert_true(x && want && got);
    for (uint32_t i = 0; i < ALL; i++) {
        uint32_t bits = (i / 6) << 16 | lower[i % 6];
        memcpy(&x[i], &bits, sizeof(bits));
    }
    bf16_from_f32(x, ALL, want);
    round_on(&d, &(struct queued_params){.p = d.p, .copy = d.copy, .n = ALL}, x, got);
    for (int i = 0; i < ALL; i++)
        if (got[i] != want[i] && !(is_nan(got[i]) && is_nan(want[i])))
            fail_msg("%.9g becomes 0x%04x, expected 0x%04x", (double)x[i], got[i], want[i]);
    free(x);
    free(want);
    free(got);
    close_device(&d);
}

static const struct adam_options ADAM = {
    .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .decoupled = true};
static const struct sgd_options SGD = {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01};

/* Numbers to begin a step from. Half of the parameters are decayed. */
static void begin(struct device *d, bool adam, float loss, float scale, float gradients)
{
    float x[N];
    struct step_state state = {.now = {.step = STEP}};
    const struct queued_span span[] = {{N / 2, 0}, {N, 1}};

    for (int decay = 0; decay < 2; decay++) {
        struct adam_options a = ADAM;
        struct sgd_options s = SGD;
        a.weight_decay *= decay;
        s.weight_decay *= decay;
        state.now.update[decay] = adam ? adam_scalars_of(&a, STEP + 1) : sgd_scalars_of(&s);
    }
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 101) / 64 - 0.7F;
    device_put(d->ctx, d->p, x, sizeof(x));
    for (int i = 0; i < N; i++)
        x[i] = gradients * ((float)(i % 37) / 32 - 0.5F);
    device_put(d->ctx, d->g, x, sizeof(x));
    device_zero(d->ctx, d->m, sizeof(x));
    device_zero(d->ctx, d->v, sizeof(x));
    device_zero(d->ctx, d->copy, N * sizeof(*d->copy));
    device_put(d->ctx, d->state, &state, sizeof(state));
    device_put(d->ctx, d->span, span, sizeof(span));
    device_put(d->ctx, d->loss, &loss, sizeof(loss));
    device_put(d->ctx, d->scale, &scale, sizeof(scale));
}

struct after {
    float p[N], m[N], v[N];
    uint16_t copy[N];
};

static void step(struct device *d, bool adam, const float *scale, const struct queued_params *w,
                 struct after *ret)
{
    d->ctx->ops->queue_update(d->ctx, adam ? UPDATE_ADAM : UPDATE_SGD, d->state, d->loss, scale, d->span, 2,
                              w, d->m, adam ? d->v : NULL, d->g);
    get(d, ret->p, d->p, sizeof(ret->p));
    get(d, ret->m, d->m, sizeof(ret->m));
    get(d, ret->v, d->v, sizeof(ret->v));
    get(d, ret->copy, d->copy, sizeof(ret->copy));
}

/* The step's own numbers are those without copies, and the copies are those of queue_round. */
static void optimisers_write_copies_in_passing(void **state)
{
    static struct after plain, with;
    struct device d = open_device(N);
    uint16_t want[N];

    (void)state;
    for (int adam = 0; adam < 2; adam++) {
        const struct queued_params bare = {.p = d.p, .n = N};
        const struct queued_params w = {.p = d.p, .copy = d.copy, .n = N};
        begin(&d, adam, 1, 1, 1);
        step(&d, adam, NULL, &bare, &plain);
        begin(&d, adam, 1, 1, 1);
        step(&d, adam, NULL, &w, &with);
        assert_memory_equal(plain.p, with.p, sizeof(plain.p));
        assert_memory_equal(plain.m, with.m, sizeof(plain.m));
        assert_memory_equal(plain.v, with.v, sizeof(plain.v));
        round_on(&d, &w, with.p, want);
        assert_memory_equal(with.copy, want, sizeof(want));
    }
    close_device(&d);
}

/* A power of two, so that both ways round alike. */
static void gradients_are_scaled_on_the_device(void **state)
{
    static struct after want, got;
    struct device d = open_device(N);
    const struct queued_params w = {.p = d.p, .copy = d.copy, .n = N};

    (void)state;
    for (int adam = 0; adam < 2; adam++) {
        begin(&d, adam, 1, 1, 0.25F);
        step(&d, adam, NULL, &w, &want);
        begin(&d, adam, 1, 0.25F, 1);
        step(&d, adam, d.scale, &w, &got);
        assert_memory_equal(&want, &got, sizeof(got));
    }
    close_device(&d);
}

static void a_loss_that_is_no_number_changes_no_copy(void **state)
{
    static struct after got;
    static const uint16_t zeros[N];
    struct device d = open_device(N);
    const struct queued_params w = {.p = d.p, .copy = d.copy, .n = N};

    (void)state;
    for (int adam = 0; adam < 2; adam++) {
        begin(&d, adam, NAN, 1, 1);
        step(&d, adam, NULL, &w, &got);
        assert_memory_equal(got.copy, zeros, sizeof(zeros));
    }
    close_device(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_the_nearest_as_files_are),
        cmocka_unit_test(optimisers_write_copies_in_passing),
        cmocka_unit_test(gradients_are_scaled_on_the_device),
        cmocka_unit_test(a_loss_that_is_no_number_changes_no_copy),
    };
    int none = beside_none();

    return none ? none : cmocka_run_group_tests(tests, NULL, NULL);
}
