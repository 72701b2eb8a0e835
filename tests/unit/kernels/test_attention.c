/* test_attention.c - causal attention and its gradients against plain f64 ones, over lengths that fill no block and
 * several, in every instruction set and at several thread counts. */
#include "check.h"
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

static const struct attention_shape shapes[] = {
    {1, 1, 1, 1},    {2, 5, 3, 4},    {1, 96, 1, 32}, {3, 97, 2, 7},
    {1, 256, 2, 64}, {1, 257, 1, 33}, {2, 300, 1, 8}, {1, 620, 1, 40},
};

/* One head of one sequence in f64: out, lse and, with dout, the gradients. */
struct head {
    int time, size;
    double *q, *k, *v, *dout, *out, *lse, *dq, *dk, *dv;
};

static void weights_of(const struct head *h, int t, double *w)
{
    double most = -INFINITY, sum = 0;

    for (int j = 0; j <= t; j++) {
        w[j] = 0;
        for (int c = 0; c < h->size; c++)
            w[j] += h->q[t * h->size + c] * h->k[j * h->size + c];
        w[j] /= sqrt(h->size);
        most = w[j] > most ? w[j] : most;
    }
    for (int j = 0; j <= t; j++)
        sum += exp(w[j] - most);
    h->lse[t] = most + log(sum);
    for (int j = 0; j <= t; j++)
        w[j] = exp(w[j] - h->lse[t]);
}

static void row64(struct head *h, int t, double *w)
{
    double dot = 0;

    weights_of(h, t, w);
    for (int c = 0; c < h->size; c++) {
        for (int j = 0; j <= t; j++)
            h->out[t * h->size + c] += w[j] * h->v[j * h->size + c];
        dot += h->out[t * h->size + c] * h->dout[t * h->size + c];
    }
    for (int j = 0; j <= t; j++) {
        double dw = 0;
        for (int c = 0; c < h->size; c++) {
            dw += h->dout[t * h->size + c] * h->v[j * h->size + c];
            h->dv[j * h->size + c] += w[j] * h->dout[t * h->size + c];
        }
        double ds = w[j] * (dw - dot) / sqrt(h->size);
        for (int c = 0; c < h->size; c++) {
            h->dq[t * h->size + c] += ds * h->k[j * h->size + c];
            h->dk[j * h->size + c] += ds * h->q[t * h->size + c];
        }
    }
}

static struct head make_head(int time, int size)
{
    struct head h = {.time = time, .size = size, .lse = doubles((size_t)time)};
    double **all[] = {&h.q, &h.k, &h.v, &h.dout, &h.out, &h.dq, &h.dk, &h.dv};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        *all[i] = doubles((size_t)(time * size));
    return h;
}

static void free_head(struct head *h)
{
    double *all[] = {h->q, h->k, h->v, h->dout, h->out, h->dq, h->dk, h->dv, h->lse};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        free(all[i]);
}

struct run {
    size_t n_out, n_lse;
    float *qkv, *dout;       /* given */
    float *out, *lse, *dqkv; /* computed */
    double *out64, *lse64, *dqkv64;
};

/* Where number c of a head lies: part 0..2 of qkv. */
static size_t at_qkv(const struct attention_shape *s, int b, int t, int part, int h, int c)
{
    return (size_t)((((b * s->time + t) * 3 + part) * s->heads + h) * s->size + c);
}

static void reference(const struct attention_shape *s, struct run *r)
{
    double *w = doubles((size_t)s->time);

    r->out64 = doubles(r->n_out);
    r->lse64 = doubles(r->n_lse);
    r->dqkv64 = doubles(3 * r->n_out);
    for (int n = 0; n < s->batch * s->heads; n++) {
        int b = n / s->heads, h = n % s->heads;
        struct head one = make_head(s->time, s->size);
        double *given[] = {one.q, one.k, one.v}, *made[] = {one.dq, one.dk, one.dv};
        for (int i = 0; i < s->time * s->size; i++) {
            int t = i / s->size, c = i % s->size;
            for (int part = 0; part < 3; part++)
                given[part][i] = (double)r->qkv[at_qkv(s, b, t, part, h, c)];
            one.dout[i] = (double)r->dout[((b * s->time + t) * s->heads + h) * s->size + c];
        }
        for (int t = 0; t < s->time; t++)
            row64(&one, t, w);
        memcpy(r->lse64 + (size_t)n * (size_t)s->time, one.lse, (size_t)s->time * sizeof(double));
        for (int i = 0; i < s->time * s->size; i++) {
            int t = i / s->size, c = i % s->size;
            for (int part = 0; part < 3; part++)
                r->dqkv64[at_qkv(s, b, t, part, h, c)] = made[part][i];
            r->out64[((b * s->time + t) * s->heads + h) * s->size + c] = one.out[i];
        }
        free_head(&one);
    }
    free(w);
}

static struct run make_run(struct guards *g, const struct attention_shape *s)
{
    struct run r = {.n_out = (size_t)(s->batch * s->time * s->heads * s->size),
                    .n_lse = (size_t)(s->batch * s->time * s->heads)};

    r.qkv = guards_random(g, 3 * r.n_out);
    for (size_t i = 0; i < 3 * r.n_out; i++)
        r.qkv[i] *= 3; /* weights far from equal */
    r.dout = guards_random(g, r.n_out);
    r.out = guards_floats(g, r.n_out);
    r.lse = guards_floats(g, r.n_lse);
    r.dqkv = guards_floats(g, 3 * r.n_out);
    return r;
}

static void compute(struct run *r, const struct attention_shape *s, enum kctx_isa isa, int threads)
{
    struct err err = {0};
    struct kctx *ctx = make_ctx(isa, threads, (size_t)threads * attention_thread_bytes(s));

    assert_int_equal(attention_check(s, &err), 0);
    ctx->ops->attention_forward(ctx, s, r->out, r->lse, r->qkv);
    poison_scratch(ctx);
    ctx->ops->attention_backward(ctx, s, r->dqkv, r->dout, r->out, r->lse, r->qkv);
    kctx_free(ctx);
}

static void test_against_f64(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct guards g = {.seed = 9};
        struct run want = make_run(&g, &shapes[i]);
        reference(&shapes[i], &want);
        for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
            struct guards own = {.seed = 9};
            struct run r = make_run(&own, &shapes[i]);
            compute(&r, &shapes[i], isa, 1 + (int)i % 3);
            assert_close(r.out, want.out64, r.n_out);
            assert_close(r.lse, want.lse64, r.n_lse);
            assert_close(r.dqkv, want.dqkv64, 3 * r.n_out);
            guards_release(&own);
        }
        free(want.out64);
        free(want.lse64);
        free(want.dqkv64);
        guards_release(&g);
    }
}

static void test_same_bits_at_any_thread_count(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct guards g = {.seed = 9}, h = {.seed = 9};
        struct run a = make_run(&g, &shapes[i]);
        compute(&a, &shapes[i], KCTX_ISA_AUTO, 1);
        for (int threads = 2; threads <= 5; threads++) {
            struct run b = make_run(&h, &shapes[i]);
            compute(&b, &shapes[i], KCTX_ISA_AUTO, threads);
            assert_same_bits(a.out, b.out, a.n_out * sizeof(float));
            assert_same_bits(a.dqkv, b.dqkv, 3 * a.n_out * sizeof(float));
            guards_release(&h);
            h.seed = 9;
        }
        guards_release(&g);
    }
}

/* A position never learns of a later one. */
static void test_nothing_comes_from_later(void **state)
{
    const struct attention_shape s = {1, 300, 2, 16};
    struct guards g = {.seed = 4}, h = {.seed = 4};
    struct run a = make_run(&g, &s), b = make_run(&h, &s);

    (void)state;
    for (size_t i = at_qkv(&s, 0, 270, 0, 0, 0); i < 3 * b.n_out; i++)
        b.qkv[i] += 1;
    compute(&a, &s, KCTX_ISA_AUTO, 1);
    compute(&b, &s, KCTX_ISA_AUTO, 1);
    assert_same_bits(a.out, b.out, 270 * 32 * sizeof(float));
    assert_true(a.out[270 * 32] != b.out[270 * 32]);
    guards_release(&g);
    guards_release(&h);
}

static void test_shapes_are_checked(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(attention_check(&(struct attention_shape){1, 4, 2, ATTENTION_SIZE_MAX + 1}, &err), -1);
    assert_non_null(strstr(err.msg, "size of a head"));
    assert_int_equal(attention_check(&(struct attention_shape){1, 0, 2, 4}, &err), -1);
    assert_int_equal(attention_check(&(struct attention_shape){1 << 15, 1 << 14, 2, 4}, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_f64),
        cmocka_unit_test(test_same_bits_at_any_thread_count),
        cmocka_unit_test(test_nothing_comes_from_later),
        cmocka_unit_test(test_shapes_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
