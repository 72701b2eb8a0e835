/* test_classifier.c - both ends of a language model: rows of an embedding and their gradients, and the matrix of classes
 * with its cross entropy, against plain f64 ones; sums of squares. */
#include "check.h"
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

static const struct linear_shape shapes[] = {
    {1, 1, 1}, {7, 5, 31}, {64, 16, 256}, {100, 33, 257}, {5, 3, 5000}, {30, 2, 1 << 19},
};

struct run {
    size_t n_in, n_weight;
    float *in, *weight; /* given */
    int32_t *labels;
    float *din, *dweight; /* computed */
    struct loss_result result;
};

static struct run make_run(struct guards *g, const struct linear_shape *s)
{
    struct run r = {.n_in = (size_t)(s->rows * s->in), .n_weight = (size_t)s->in * (size_t)s->out};

    r.in = guards_random(g, r.n_in);
    for (size_t i = 0; i < r.n_in; i++)
        r.in[i] *= 4;
    r.weight = guards_random(g, r.n_weight);
    r.labels = guards_bytes(g, (size_t)s->rows * sizeof(int32_t));
    for (int i = 0; i < s->rows; i++)
        r.labels[i] = (int32_t)((int64_t)i * 7919 % s->out);
    r.din = guards_floats(g, r.n_in);
    r.dweight = guards_floats(g, r.n_weight);
    return r;
}

static void compute(struct run *r, const struct linear_shape *s, enum kctx_isa isa, int threads)
{
    struct err err = {0};
    struct kctx *ctx = make_ctx(isa, threads, classifier_workspace_bytes(s));

    assert_int_equal(classifier_check(s, &err), 0);
    poison_scratch(ctx);
    assert_int_equal(ctx->ops->classifier(ctx, s, &r->result, r->din, r->dweight, r->in, r->weight, r->labels,
                                          0.5F / (float)s->rows, &err),
                     0);
    kctx_free(ctx);
}

struct wanted {
    double loss;
    int correct;
    double *din, *dweight, *logit;
};

static void row64(const struct run *r, const struct linear_shape *s, int row, struct wanted *w)
{
    const float *x = r->in + (ptrdiff_t)row * s->in;
    double most = -INFINITY, sum = 0;
    int top = 0;

    for (int o = 0; o < s->out; o++) {
        w->logit[o] = 0;
        for (int i = 0; i < s->in; i++)
            w->logit[o] += (double)x[i] * (double)r->weight[(ptrdiff_t)o * s->in + i];
        if (w->logit[o] > most) {
            most = w->logit[o];
            top = o;
        }
    }
    for (int o = 0; o < s->out; o++)
        sum += exp(w->logit[o] - most);
    w->loss += log(sum) + most - w->logit[r->labels[row]];
    w->correct += top == r->labels[row];
    for (int o = 0; o < s->out; o++) {
        double d = (exp(w->logit[o] - most) / sum - (o == r->labels[row])) * 0.5 / s->rows;
        for (int i = 0; i < s->in; i++) {
            w->din[(ptrdiff_t)row * s->in + i] += d * (double)r->weight[(ptrdiff_t)o * s->in + i];
            w->dweight[(ptrdiff_t)o * s->in + i] += d * (double)x[i];
        }
    }
}

static void test_against_f64(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct linear_shape *s = &shapes[i];
        struct guards g = {.seed = 6};
        struct run r = make_run(&g, s);
        struct wanted w = {
            .din = doubles(r.n_in), .dweight = doubles(r.n_weight), .logit = doubles((size_t)s->out)};
        for (int row = 0; row < s->rows; row++)
            row64(&r, s, row, &w);
        for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
            compute(&r, s, isa, 1 + (int)i % 3);
            assert_true(fabs(r.result.sum - w.loss) <= 1e-5 * fabs(w.loss) + 1e-6);
            assert_int_equal(r.result.correct, w.correct);
            if (s->out > 1) {
                assert_close(r.din, w.din, r.n_in);
                assert_close(r.dweight, w.dweight, r.n_weight);
            }
        }
        free(w.din);
        free(w.dweight);
        free(w.logit);
        guards_release(&g);
    }
}

static void test_same_bits_at_any_thread_count(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < ARRAY_LEN(shapes); i++) {
        struct guards g = {.seed = 6}, h = {.seed = 6};
        struct run a = make_run(&g, &shapes[i]);
        compute(&a, &shapes[i], KCTX_ISA_AUTO, 1);
        for (int threads = 2; threads <= 5; threads++) {
            struct run b = make_run(&h, &shapes[i]);
            compute(&b, &shapes[i], KCTX_ISA_AUTO, threads);
            assert_same_bits(a.din, b.din, a.n_in * sizeof(float));
            assert_same_bits(a.dweight, b.dweight, a.n_weight * sizeof(float));
            assert_true(a.result.sum == b.result.sum);
            guards_release(&h);
            h.seed = 6;
        }
        guards_release(&g);
    }
}

static void test_labels_are_checked_and_evaluations_write_nothing(void **state)
{
    const struct linear_shape s = {3, 4, 9};
    struct guards g = {.seed = 6};
    struct run r = make_run(&g, &s);
    struct loss_result plain;
    struct err err = {0};

    (void)state;
    compute(&r, &s, KCTX_ISA_AUTO, 1);
    struct kctx *ctx = make_ctx(KCTX_ISA_AUTO, 1, classifier_workspace_bytes(&s));
    assert_int_equal(ctx->ops->classifier(ctx, &s, &plain, NULL, NULL, r.in, r.weight, r.labels, 0, &err), 0);
    assert_true(plain.sum == r.result.sum);
    r.labels[2] = 9;
    assert_int_equal(ctx->ops->classifier(ctx, &s, &plain, NULL, NULL, r.in, r.weight, r.labels, 0, &err),
                     -1);
    assert_non_null(strstr(err.msg, "row 2 is 9, expected 0..8"));
    kctx_free(ctx);
    guards_release(&g);
}

static void test_embedding(void **state)
{
    const struct embedding_shape s = {3, 5, 7, 130};
    const size_t n = 3 * 5 * 130, n_table = 7 * 130, n_places = 5 * 130;

    (void)state;
    for (int add = 0; add < 2; add++) {
        struct guards g = {.seed = 3};
        float *table = guards_random(&g, n_table), *places = guards_random(&g, n_places);
        float *dout = guards_random(&g, n), *out = guards_floats(&g, n), *tokens = guards_floats(&g, 15);
        float *dtable = guards_random(&g, n_table), *dplaces = guards_floats(&g, n_places);
        double *want = doubles(n_table), *want_places = doubles(n_places);
        for (size_t i = 0; i < n_table && add; i++)
            want[i] = (double)dtable[i];
        for (size_t i = 0; i < 15; i++)
            tokens[i] = (float)(i * i % 7); /* some twice, some never */
        for (size_t i = 0; i < n; i++) {
            want[(size_t)tokens[i / 130] * 130 + i % 130] += (double)dout[i];
            want_places[i % n_places] += (double)dout[i];
        }
        struct kctx *ctx = make_ctx(KCTX_ISA_AUTO, 1 + add, 0);
        ctx->ops->embedding_forward(ctx, &s, out, tokens, table, places);
        ctx->ops->embedding_backward(ctx, &s, add, dtable, dplaces, dout, tokens);
        for (size_t i = 0; i < n; i++)
            assert_true(out[i] == table[(size_t)tokens[i / 130] * 130 + i % 130] + places[i % n_places]);
        assert_close(dtable, want, n_table);
        assert_close(dplaces, want_places, n_places);
        kctx_free(ctx);
        free(want);
        free(want_places);
        guards_release(&g);
    }
}

static void test_squares(void **state)
{
    const size_t n = 3 * REDUCE_BLOCK + 77;

    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        struct guards g = {.seed = 8};
        float *x = guards_random(&g, n);
        double *sums = guards_bytes(&g, reduce_blocks(n) * sizeof(*sums)), want = 0, got = 0;
        struct kctx *ctx = make_ctx(isa, 2, 0);
        for (size_t i = 0; i < n; i++)
            want += (double)x[i] * (double)x[i];
        ctx->ops->reduce_squares(ctx, sums, x, n);
        for (size_t i = 0; i < reduce_blocks(n); i++)
            got += sums[i];
        assert_true(fabs(got / want - 1) < 1e-12);
        float last = x[n - 1];
        ctx->ops->reduce_scale(ctx, x, 0.25F, n);
        assert_true(x[n - 1] == last / 4);
        kctx_free(ctx);
        guards_release(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_f64),
        cmocka_unit_test(test_same_bits_at_any_thread_count),
        cmocka_unit_test(test_labels_are_checked_and_evaluations_write_nothing),
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_squares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
