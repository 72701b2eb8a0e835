/* epilogue.c - run a plan of cuBLAS's on known numbers and compare what its epilogue makes of them. */
#include "kernels/cuda/epilogue.h"

#include <math.h>
#include <string.h>

enum { PROBES = 64 };

/* Far above what gradients are: their sum does not show beside it. */
#define LARGE 0x1p60F

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

static bool all_near(const float *got, const float *want, int n, float far)
{
    for (int i = 0; i < n; i++)
        if (isnan(want[i]) ? !isnan(got[i]) : !(fabsf(got[i] - want[i]) <= far * (1 + fabsf(want[i]))))
            return false;
    return true;
}

/* A run that has diverged must show: where activations are no numbers, a ReLU that makes 0 of them leaves a loss that is
 * one. Times NaN, every element is none. */
static bool relu_holds(struct cuda *c, struct plan *plan, const struct product *p, epilogue_run *run)
{
    float first;

    return run(c, plan, p, NAN, 0) && read_first(c, p->to, &first, p->c, 1) && isnan(first);
}

/* All but nothing: a product so many times is no number's equal. 0 might be a case of its own. */
#define LITTLE 0x1p-100F

/* Left and right of 0, where GELUs differ from ReLU and from each other; one is none. */
static void points(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = i && i == n - 1 ? NAN : (float)(i % 32 * 2 - 31) / 8;
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
static bool gelu_holds(struct cuda *c, struct plan *plan, const struct product *p, epilogue_run *run)
{
    const int n = fewer(p->m);
    struct lent bias;
    float x[PROBES], y[PROBES], got_x[PROBES], got_y[PROBES];

    points(x, n);
    for (int i = 0; i < n; i++)
        y[i] = x[i] * gelu_gate(x[i]);
    if (!lend(c, &bias, p->to, p->bias, x, n))
        return false;
    const bool ran = run(c, plan, p, LITTLE, 0) && read_first(c, p->to, got_x, p->aux, n) &&
                     read_first(c, p->to, got_y, p->c, n);
    take_back(c, &bias);
    return ran && all_near(got_x, x, n, 1e-5F) && all_near(got_y, y, n, far_of(p->to));
}

/* Of what C holds, 1 and 2 in turn, and a product of all but nothing. */
static bool gelu_gradient_holds(struct cuda *c, struct plan *plan, const struct product *p, epilogue_run *run)
{
    const int n = fewer(p->m);
    struct lent sum, before;
    float x[PROBES], y[PROBES], dx[PROBES], got[PROBES];

    points(x, n);
    for (int i = 0; i < n; i++) {
        y[i] = (float)(1 + i % 2);
        dx[i] = y[i] * gelu_slope(x[i]);
    }
    if (!lend(c, &sum, p->to, p->c, y, n) || !lend(c, &before, p->to, p->aux, x, n))
        return false;
    const bool ran = run(c, plan, p, LITTLE, 1) && read_first(c, p->to, got, p->c, n);
    take_back(c, &before);
    return ran && all_near(got, dx, n, far_of(p->to));
}

/* op(B)'s first and last row hold numbers beside which nothing else counts; one of them is none. */
static bool column_sums_hold(struct cuda *c, struct plan *plan, const struct product *p, epilogue_run *run)
{
    const int n = fewer(p->n);
    const char *last = (const char *)p->b + (size_t)(p->k - 1) * (size_t)p->ldb * element_bytes(p->of);
    struct lent first_row, last_row;
    float x[PROBES], sums[PROBES], got[PROBES] = {0};

    for (int i = 0; i < n; i++) {
        const float v = i && i == n - 1 ? NAN : (float)(i % 8 + 1);
        x[i] = v * LARGE;
        sums[i] = p->k > 1 ? 2 * v : v;
    }
    if (!lend(c, &first_row, p->of, p->b, x, n))
        return false;
    const bool both = lend(c, &last_row, p->of, last, x, n); /* of one row: twice the same */
    bool holds = both && run(c, plan, p, 1, 0) && read_first(c, p->to, got, p->aux, n);
    if (both)
        take_back(c, &last_row);
    take_back(c, &first_row);
    for (int i = 0; i < n; i++)
        got[i] /= LARGE;
    return holds && all_near(got, sums, n, 1e-5F);
}

bool epilogue_holds(struct cuda *c, struct plan *plan, const struct product *p, epilogue_run *run)
{
    switch (p->extra) {
    case EXTRA_RELU:
        return relu_holds(c, plan, p, run);
    case EXTRA_GELU:
        return gelu_holds(c, plan, p, run);
    case EXTRA_GELU_GRADIENT:
        return gelu_gradient_holds(c, plan, p, run);
    case EXTRA_COLUMN_SUMS:
        return column_sums_hold(c, plan, p, run);
    case EXTRA_NONE:
        break;
    }
    return true;
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
