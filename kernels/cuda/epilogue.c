/* epilogue.c - run a plan of cuBLAS's on known numbers and compare what its epilogue makes of them. */
#include "kernels/cuda/epilogue.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PROBES = 64 };

/* Far above what gradients are: their sum does not show beside it. */
#define LARGE 0x1p60F

/* A plan that is asked, and what comes of it. */
struct asked {
    struct cuda *c;
    struct plan *plan;
    const struct product *p;
    epilogue_run *run;
    enum epilogue_verdict verdict;
    char *why;
};

/* The first elements of an operand, which others stand for until they are given back. */
struct lent {
    void *at;
    size_t bytes;
    float own[PROBES];
};

/* bf16 is the upper half of f32; all numbers that are put are exact in it. */
static size_t pack(enum element element, const float *x, int n, float *to)
{
    uint16_t half[PROBES];

    if (element == ELEMENT_F32) {
        memcpy(to, x, (size_t)n * sizeof(*x));
        return (size_t)n * sizeof(*x);
    }
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        half[i] = (uint16_t)(bits >> 16);
    }
    memcpy(to, half, (size_t)n * sizeof(*half));
    return (size_t)n * sizeof(*half);
}

static void unpack(enum element element, float *x, int n)
{
    uint16_t half[PROBES];

    if (element == ELEMENT_F32)
        return;
    memcpy(half, x, (size_t)n * sizeof(*half));
    for (int i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)half[i] << 16;
        memcpy(&x[i], &bits, sizeof(bits));
    }
}

static bool get(struct cuda *c, float *x, const void *from, size_t bytes)
{
    struct err late; /* kept in the context as well */

    return c->ctx.ops->get(&c->ctx, x, from, bytes, &late) == 0;
}

static bool read_first(struct cuda *c, enum element element, float *x, const void *from, int n)
{
    if (!get(c, x, from, (size_t)n * element_bytes(element)))
        return false;
    unpack(element, x, n);
    return true;
}

static bool lend(struct cuda *c, struct lent *l, enum element element, const void *at, const float *x, int n)
{
    float packed[PROBES];

    l->at = (void *)(uintptr_t)at;
    l->bytes = pack(element, x, n, packed);
    if (!get(c, l->own, at, l->bytes))
        return false;
    c->ctx.ops->put(&c->ctx, l->at, packed, l->bytes);
    return true;
}

static void take_back(struct cuda *c, const struct lent *l)
{
    c->ctx.ops->put(&c->ctx, l->at, l->own, l->bytes);
}

static int fewer(int n)
{
    return n < PROBES ? n : PROBES;
}

static bool runs(struct asked *q, float by, float kept)
{
    if (q->run(q->c, q->plan, q->p, by, kept))
        return true;
    snprintf(q->why, EPILOGUE_WHY_BYTES, "refused when it was asked, beta %g", (double)kept);
    return false;
}

static bool reads(struct asked *q, enum element element, float *x, const void *from, int n)
{
    if (read_first(q->c, element, x, from, n))
        return true;
    snprintf(q->why, EPILOGUE_WHY_BYTES, "the GPU failed when it was asked");
    return false;
}

/* The verdict, by what was got of numbers that are known. What is not finite where that was not put comes of an operand. */
static void judge(struct asked *q, const char *what, const float *got, const float *want, int n, float far)
{
    q->verdict = EPILOGUE_HOLDS;
    for (int i = 0; i < n; i++) {
        if (isnan(want[i]) ? isnan(got[i]) : fabsf(got[i] - want[i]) <= far * (1 + fabsf(want[i])))
            continue;
        q->verdict = isnan(want[i]) || isfinite(got[i]) ? EPILOGUE_WRONG : EPILOGUE_UNSURE;
        snprintf(q->why, EPILOGUE_WHY_BYTES, "%s: element %d of %s is %.9g, expected %.9g",
                 q->verdict == EPILOGUE_UNSURE ? "operands that are not finite"
                 : isnan(want[i])              ? "NaN lost"
                                               : "wrong numbers",
                 i, what, (double)got[i], (double)want[i]);
        return;
    }
}

/* A run that has diverged must show: where activations are no numbers, a ReLU that makes 0 of them leaves a loss that is
 * one. Times NaN, every element is none. */
static void ask_relu(struct asked *q)
{
    const float none = NAN;
    float first;

    if (runs(q, NAN, 0) && reads(q, q->p->to, &first, q->p->c, 1))
        judge(q, "C", &first, &none, 1, 0);
}

/* All but nothing: a product so many times is no number's equal. 0 might be a case of its own. */
#define LITTLE 0x1p-100F

/* Left and right of 0, where GELUs differ from ReLU and from each other, and a tanh that is nearly one from it by less than
 * is allowed; one is none. */
static void points(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = i && i == n - 1 ? NAN : (float)(i % 32 * 2 - 31) / 16;
}

/* How far an activation in bf16, or cuBLAS's own in f32, may be from the definition. */
static float far_of(enum element element)
{
    return element == ELEMENT_BF16 ? 0x1p-8F : 1e-5F;
}

static float gelu_gate(float x)
{
    return 0.5F * (1 + tanhf(0.797884561F * (x + 0.044715F * x * x * x)));
}

static float gelu_slope(float x)
{
    const float gate = gelu_gate(x);

    return gate + x * 2 * gate * (1 - gate) * 0.797884561F * (1 + 3 * 0.044715F * x * x);
}

/* Of a product of all but nothing, and a bias that is known. */
static void ask_gelu(struct asked *q)
{
    const struct product *p = q->p;
    const int n = fewer(p->m);
    struct lent bias;
    float x[PROBES], y[PROBES], got_x[PROBES], got_y[PROBES];

    points(x, n);
    for (int i = 0; i < n; i++)
        y[i] = x[i] * gelu_gate(x[i]);
    if (!lend(q->c, &bias, p->to, p->bias, x, n))
        return;
    const bool ran =
        runs(q, LITTLE, 0) && reads(q, p->to, got_x, p->aux, n) && reads(q, p->to, got_y, p->c, n);
    take_back(q->c, &bias);
    if (ran)
        judge(q, "aux", got_x, x, n, 1e-5F);
    if (q->verdict == EPILOGUE_HOLDS)
        judge(q, "C", got_y, y, n, far_of(p->to));
}

/* Of what C holds, 1 and 2 in turn, and a product of all but nothing. */
static void ask_gelu_gradient(struct asked *q)
{
    const struct product *p = q->p;
    const int n = fewer(p->m);
    struct lent sum, before;
    float x[PROBES], y[PROBES], dx[PROBES], got[PROBES];

    points(x, n);
    for (int i = 0; i < n; i++) {
        y[i] = (float)(1 + i % 2);
        dx[i] = y[i] * gelu_slope(x[i]);
    }
    if (!lend(q->c, &sum, p->to, p->c, y, n) || !lend(q->c, &before, p->to, p->aux, x, n))
        return;
    const bool ran = runs(q, LITTLE, 1) && reads(q, p->to, got, p->c, n);
    take_back(q->c, &before);
    if (ran)
        judge(q, "C", got, dx, n, far_of(p->to));
}

/* op(B)'s first and last row hold numbers beside which nothing else counts; one of them is none. */
static void ask_column_sums(struct asked *q)
{
    const struct product *p = q->p;
    const int n = fewer(p->n);
    const char *last = (const char *)p->b + (size_t)(p->k - 1) * (size_t)p->ldb * element_bytes(p->of);
    struct lent first_row, last_row;
    float x[PROBES], sums[PROBES], got[PROBES] = {0};

    for (int i = 0; i < n; i++) {
        const float v = i && i == n - 1 ? NAN : (float)(i % 8 + 1);
        x[i] = v * LARGE;
        sums[i] = p->k > 1 ? 2 * v : v;
    }
    if (!lend(q->c, &first_row, p->of, p->b, x, n))
        return;
    const bool both = lend(q->c, &last_row, p->of, last, x, n); /* of one row: twice the same */
    const bool ran = both && runs(q, 1, 0) && reads(q, p->to, got, p->aux, n);
    if (both)
        take_back(q->c, &last_row);
    take_back(q->c, &first_row);
    for (int i = 0; i < n; i++)
        got[i] /= LARGE;
    if (ran)
        judge(q, "the sums", got, sums, n, 1e-5F);
}

enum epilogue_verdict epilogue_ask(struct cuda *c, struct plan *plan, const struct product *p,
                                   epilogue_run *run, char why[EPILOGUE_WHY_BYTES])
{
    static void (*const ASK[])(struct asked *) = {[EXTRA_RELU] = ask_relu,
                                                  [EXTRA_GELU] = ask_gelu,
                                                  [EXTRA_GELU_GRADIENT] = ask_gelu_gradient,
                                                  [EXTRA_COLUMN_SUMS] = ask_column_sums};
    struct asked q = {c, plan, p, run, EPILOGUE_WRONG, why};

    snprintf(why, EPILOGUE_WHY_BYTES, "the GPU failed when it was asked");
    ASK[p->extra](&q);
    return q.verdict;
}

const char *epilogue_name(enum extra extra)
{
    static const char *const NAME[] = {[EXTRA_NONE] = "nothing",
                                       [EXTRA_RELU] = "ReLU",
                                       [EXTRA_GELU] = "GELU",
                                       [EXTRA_GELU_GRADIENT] = "slope of GELU",
                                       [EXTRA_COLUMN_SUMS] = "sums of columns"};

    return NAME[extra];
}
