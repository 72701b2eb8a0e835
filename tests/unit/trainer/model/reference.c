/* reference.c - one function per kind, and the table of them. */
#include "reference_parts.h"

#include "test.h"

#include "common/cleanup.h"
#include "kernels/dropout.h"

#include <math.h>
#include <string.h>

double reference_option(const struct layer_spec *l, const char *key)
{
    for (int i = 0; l->ops->options[i].key; i++)
        if (strcmp(l->ops->options[i].key, key) == 0)
            return l->ops->options[i].type == SPEC_NUMBER ? l->number[i] : (double)l->option[i];
    fail_msg("%s has no option %s", l->ops->type, key);
    return 0;
}

int reference_integer(const struct layer_spec *l, const char *key)
{
    return (int)reference_option(l, key);
}

static size_t len_of(const struct reference *r)
{
    return (size_t)r->batch * shape_len(&r->shape);
}

void reference_reshape(struct reference *r, struct shape s)
{
    r->shape = s;
    assert_true(len_of(r) <= REFERENCE_CELLS);
}

static bool lies_in(const struct reference *r, int y, int x)
{
    return y >= 0 && y < r->shape.rows && x >= 0 && x < r->shape.cols;
}

static size_t conv2d(struct reference *r, const struct layer_spec *l, const double *w)
{
    static struct reference in;
    const int out = reference_integer(l, "out"), k = reference_integer(l, "kernel"),
              stride = reference_integer(l, "stride");
    const int pad = reference_integer(l, "padding"), dilation = reference_integer(l, "dilation"),
              reach = dilation * (k - 1) + 1;
    const bool bias = reference_integer(l, "bias");

    in = *r;
    const int n = in.shape.channels;
    reference_reshape(r, (struct shape){.rows = (in.shape.rows + 2 * pad - reach) / stride + 1,
                                        .cols = (in.shape.cols + 2 * pad - reach) / stride + 1,
                                        .channels = out});
    EACH(r, b, y, x, o)
    {
        double sum = bias ? w[out * n * k * k + o] : 0;
        for (int c = 0; c < n; c++)
            for (int i = 0; i < k * k; i++) {
                int row = y * stride - pad + i / k * dilation, col = x * stride - pad + i % k * dilation;
                if (lies_in(&in, row, col))
                    sum += w[(o * n + c) * k * k + i] * *cell(&in, b, row, col, c);
            }
        *cell(r, b, y, x, o) = sum;
    }
    return (size_t)(out * n * k * k + (bias ? out : 0));
}

void reference_product(double *to, const double *in, size_t rows, int n, int out, const double *w,
                       const double *bias)
{
    for (size_t i = 0; i < rows; i++)
        for (int o = 0; o < out; o++) {
            double sum = bias ? bias[o] : 0;
            for (int k = 0; k < n; k++)
                sum += w[o * n + k] * in[i * (size_t)n + (size_t)k];
            to[i * (size_t)out + (size_t)o] = sum;
        }
}

static size_t linear(struct reference *r, const struct layer_spec *l, const double *w)
{
    static struct reference in;
    const int out = reference_integer(l, "out"), n = r->shape.channels;
    const bool bias = reference_integer(l, "bias");

    in = *r;
    reference_reshape(r, (struct shape){1, 1, out, true, false});
    reference_product(r->value, in.value, (size_t)r->batch, n, out, w, bias ? w + out * n : NULL);
    return (size_t)(out * n + (bias ? out : 0));
}

static size_t flatten(struct reference *r, const struct layer_spec *l, const double *w)
{
    static struct reference in;
    const struct shape s = r->shape;

    (void)l, (void)w;
    in = *r;
    reference_reshape(r, (struct shape){1, 1, s.rows * s.cols * s.channels, true, false});
    EACH(&in, b, y, x, c)
    *cell(r, b, 0, 0, (c * s.rows + y) * s.cols + x) = *cell(&in, b, y, x, c);
    return 0;
}

static void pool(struct reference *r, const struct layer_spec *l, bool mean)
{
    static struct reference in;
    const int k = reference_integer(l, "size"), pad = reference_integer(l, "padding");
    const int stride = reference_integer(l, "stride") ? reference_integer(l, "stride") : k;

    in = *r;
    reference_reshape(r, (struct shape){.rows = (in.shape.rows + 2 * pad - k) / stride + 1,
                                        .cols = (in.shape.cols + 2 * pad - k) / stride + 1,
                                        .channels = in.shape.channels});
    EACH(r, b, y, x, c)
    {
        double best = -INFINITY, sum = 0;
        int n = 0;
        for (int i = 0; i < k * k; i++) {
            int row = y * stride - pad + i / k, col = x * stride - pad + i % k;
            if (!lies_in(&in, row, col))
                continue;
            best = fmax(best, *cell(&in, b, row, col, c));
            sum += *cell(&in, b, row, col, c);
            n++;
        }
        if (mean && reference_integer(l, "count_include_pad"))
            n = k * k;
        *cell(r, b, y, x, c) = mean ? sum / n : best;
    }
}

static size_t maxpool2d(struct reference *r, const struct layer_spec *l, const double *w)
{
    (void)w;
    pool(r, l, false);
    return 0;
}

static size_t avgpool2d(struct reference *r, const struct layer_spec *l, const double *w)
{
    (void)w;
    pool(r, l, true);
    return 0;
}

static size_t relu(struct reference *r, const struct layer_spec *l, const double *w)
{
    (void)l, (void)w;
    for (size_t i = 0; i < len_of(r); i++)
        r->value[i] = fmax(r->value[i], 0);
    return 0;
}

double reference_gelu(double x, bool tanh_form)
{
    if (tanh_form)
        return x / 2 * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    return x / 2 * (1 + erf(x / sqrt(2)));
}

static size_t gelu(struct reference *r, const struct layer_spec *l, const double *w)
{
    (void)w;
    for (size_t i = 0; i < len_of(r); i++)
        r->value[i] = reference_gelu(r->value[i], reference_integer(l, "approximate") == 1);
    return 0;
}

static size_t softmax(struct reference *r, const struct layer_spec *l, const double *w)
{
    const int n = r->shape.channels;

    (void)l, (void)w;
    for (int b = 0; b < r->batch; b++) {
        double *v = r->value + b * n, sum = 0;
        for (int i = 0; i < n; i++)
            sum += v[i] = exp(v[i]);
        for (int i = 0; i < n; i++)
            v[i] /= sum;
    }
    return 0;
}

void reference_normalise(double *v, size_t n, size_t step, double eps)
{
    double mean = 0, variance = 0;

    for (size_t i = 0; i < n; i++)
        mean += v[i * step] / (double)n;
    for (size_t i = 0; i < n; i++)
        variance += (v[i * step] - mean) * (v[i * step] - mean) / (double)n;
    for (size_t i = 0; i < n; i++)
        v[i * step] = (v[i * step] - mean) / sqrt(variance + eps);
}

static size_t batchnorm(struct reference *r, const struct layer_spec *l, const double *w)
{
    const size_t n = (size_t)r->shape.channels;

    for (size_t c = 0; c < n; c++) {
        reference_normalise(r->value + c, len_of(r) / n, n, reference_option(l, "eps"));
        for (size_t i = c; i < len_of(r); i += n)
            r->value[i] = r->value[i] * w[c] + w[n + c];
    }
    return 2 * n;
}

/* Parameters lie channels first, (channels, rows, cols); of a vector that is the same, and a sequence has one set for all
 * its places. */
static size_t layernorm(struct reference *r, const struct layer_spec *l, const double *w)
{
    const struct shape s = r->shape;
    const size_t n = s.sequence ? (size_t)s.channels : shape_len(&s);
    const bool bias = reference_integer(l, "bias");

    for (size_t at = 0; at < len_of(r); at += n)
        reference_normalise(r->value + at, n, 1, reference_option(l, "eps"));
    EACH(r, b, y, x, c)
    {
        int i = s.sequence ? c : (c * s.rows + y) * s.cols + x;
        *cell(r, b, y, x, c) = *cell(r, b, y, x, c) * w[i] + (bias ? w[(int)n + i] : 0);
    }
    return bias ? 2 * n : n;
}

/* Which elements stay is the kernel's to draw; what becomes of them is not. */
static size_t dropout(struct reference *r, const struct layer_spec *l, const double *w)
{
    const double p = reference_option(l, "p");
    const struct dropout_shape s = {.batch = r->batch, .len = shape_len(&r->shape), .p = p};
    const struct dropout_draw draw = {.seed = r->step->seed,
                                      .step = (uint64_t)r->step->step,
                                      .layer = (uint32_t)l->place,
                                      .samples = r->step->samples};
    static float ones[REFERENCE_CELLS], drawn[REFERENCE_CELLS];
    static uint8_t keep[REFERENCE_CELLS];

    (void)w;
    dropout_forward(r->ctx, &s, &draw, drawn, keep, ones);
    for (size_t i = 0; i < len_of(r); i++)
        r->value[i] = keep[i] ? r->value[i] / (1 - p) : 0;
    return 0;
}

double reference_cross_entropy(const double *row, int n, int label, double smooth)
{
    double sum = 0, loss = 0;

    for (int i = 0; i < n; i++)
        sum += exp(row[i]);
    for (int i = 0; i < n; i++)
        loss += (smooth / n + (i == label ? 1 - smooth : 0)) * (log(sum) - row[i]);
    return loss;
}

static const struct {
    const char *type;
    size_t (*forward)(struct reference *r, const struct layer_spec *l, const double *w);
} KINDS[] = {
    {"conv2d", conv2d},
    {"linear", linear},
    {"flatten", flatten},
    {"maxpool2d", maxpool2d},
    {"avgpool2d", avgpool2d},
    {"relu", relu},
    {"gelu", gelu},
    {"softmax", softmax},
    {"batchnorm1d", batchnorm},
    {"batchnorm2d", batchnorm},
    {"layernorm", layernorm},
    {"dropout", dropout},
    {"embedding", reference_embedding},
    {"gpt2_block", reference_gpt2_block},
    {"lm_head", reference_lm_head},
};

bool reference_has(const char *type)
{
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        if (strcmp(KINDS[i].type, type) == 0)
            return true;
    return false;
}

size_t reference_layer(struct reference *r, const struct layer_spec *l, const double *w)
{
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        if (strcmp(KINDS[i].type, l->ops->type) == 0)
            return KINDS[i].forward(r, l, w);
    fail_msg("no reference for %s", l->ops->type);
    return 0;
}
