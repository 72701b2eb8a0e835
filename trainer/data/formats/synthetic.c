/* synthetic.c - {format: synthetic, items, outputs, targets, generator}: numbers from a seed, bit for bit as
 * PyTorch draws them (pure).
 *
 * Uniform:  each row is torch.rand(inputs), then torch.rand(outputs): only their means can be learned. For
 *           presets that replace programs with such data.
 * Teacher:  x = torch.rand(items, channels, rows, cols); w = torch.rand(outputs, channels * rows * cols) * 2
 *           - 1; the answers are w (x - 1/2), added in f64. The label is the index of the largest answer;
 *           values are the answers, rounded to f32.
 *
 * Shapes:   x is drawn channels first, as in PyTorch, and stored channels last. */
#include "trainer/data/source.h"

#include "common/memory.h"
#include "trainer/rng/torch_rng.h"

#include <stdlib.h>

enum { ITEMS, OUTPUTS, TARGETS, GENERATOR };
enum { TEACHER, UNIFORM };
enum { OUTPUTS_MAX = 4096 };

static const char *const RULES[] = {[TEACHER] = "teacher", [UNIFORM] = "uniform", NULL};
static const char *const GENERATORS[] = {"own", "before_weights", NULL};

static const struct spec_option OPTIONS[] = {
    [ITEMS] = {"items", SPEC_INTEGER, 1, INT32_MAX / 2, .required = true},
    [OUTPUTS] = {"outputs", SPEC_INTEGER, 1, OUTPUTS_MAX, .required = true},
    [TARGETS] = {"targets", SPEC_CHOICE, .choices = RULES, .fallback = TEACHER},
    [GENERATOR] = {"generator", SPEC_CHOICE, .choices = GENERATORS},
    {0},
};

static int accept(struct data_spec *d, const char **ret_key, struct err *err)
{
    *ret_key = OPTIONS[TARGETS].key;
    if (d->option[TARGETS] == UNIFORM && !d->values)
        return err_set(err, ERR_INVALID, "expected teacher, as this loss takes labels");
    return 0;
}

static int open(struct source *s, struct err *err)
{
    const struct data_spec *d = s->o.spec;

    (void)err;
    s->layout = (struct data_layout){.train_items = d->option[ITEMS],
                                     .rows = d->rows,
                                     .cols = d->cols,
                                     .channels = d->channels,
                                     .floats = 1,
                                     .values = d->values ? (int32_t)d->option[OUTPUTS] : 0};
    return 0;
}

/* Draw one sample, and reorder it from (channels, pixels) to (pixels, channels). */
static void draw(struct torch_rng *g, const struct data_layout *l, double from, float *sample, float *x)
{
    const size_t channels = (size_t)l->channels, pixels = (size_t)l->rows * (size_t)l->cols;

    torch_rng_uniform(g, from, 1, sample, layout_input_len(l));
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < pixels; p++)
            x[p * channels + c] = sample[c * pixels + p];
}

static void uniform(struct torch_rng *g, struct dataset *d, float *sample)
{
    const struct data_layout *l = &d->layout;

    for (int64_t i = 0; i < l->train_items; i++) {
        draw(g, l, 0, sample, (float *)d->train.x + (size_t)i * layout_input_len(l));
        torch_rng_uniform(g, 0, 1, d->train.values + i * l->values, (size_t)l->values);
    }
}

/* answer[o] = sum over inputs k of weight[k][o] * (x[k] - 1/2), in the order of k. */
static void ask(const double *weight, const float *x, size_t inputs, size_t outputs, double *answer)
{
    for (size_t o = 0; o < outputs; o++)
        answer[o] = 0;
    for (size_t k = 0; k < inputs; k++) {
        double v = (double)x[k] - 0.5;
        for (size_t o = 0; o < outputs; o++)
            answer[o] += weight[k * outputs + o] * v;
    }
}

static void note(struct dataset *d, int64_t i, const double *answer, int32_t outputs)
{
    int32_t best = 0;

    for (int32_t o = 0; o < outputs; o++) {
        if (d->train.values)
            d->train.values[i * outputs + o] = (float)answer[o];
        if (answer[o] > answer[best])
            best = o;
    }
    if (d->train.labels)
        d->train.labels[i] = best;
}

/* The weights are (inputs, outputs), with inputs channels last like the samples. */
static void teach(struct torch_rng *g, struct dataset *d, size_t outputs, float *sample)
{
    const struct data_layout *l = &d->layout;
    const size_t inputs = layout_input_len(l);
    float *x = d->train.x;
    cleanup_free float *moved = memory_must(calloc(inputs, sizeof(*moved)));
    cleanup_free double *weight = memory_must(calloc(inputs * outputs, sizeof(*weight)));
    double answer[OUTPUTS_MAX];

    for (int64_t i = 0; i < l->train_items; i++)
        draw(g, l, 0, sample, x + (size_t)i * inputs);
    for (size_t o = 0; o < outputs; o++) {
        draw(g, l, -1, sample, moved);
        for (size_t k = 0; k < inputs; k++)
            weight[k * outputs + o] = (double)moved[k];
    }
    for (int64_t i = 0; i < l->train_items; i++) {
        ask(weight, x + (size_t)i * inputs, inputs, outputs, answer);
        note(d, i, answer, (int32_t)outputs);
    }
}

static int load(const struct source *s, struct dataset *d, struct err *err)
{
    const struct data_spec *spec = s->o.spec;
    cleanup_free float *sample = memory_must(calloc(layout_input_len(&d->layout), sizeof(*sample)));
    struct torch_rng g;

    (void)err;
    torch_rng_seed(&g, s->o.seed);
    if (spec->option[TARGETS] == UNIFORM)
        uniform(&g, d, sample);
    else
        teach(&g, d, (size_t)spec->option[OUTPUTS], sample);
    source_count_classes(d);
    return 0;
}

static uint64_t draws(const struct data_spec *d, const struct data_layout *l)
{
    const uint64_t inputs = layout_input_len(l), items = (uint64_t)l->train_items;

    if (!d->option[GENERATOR])
        return 0;
    return items * inputs + (d->option[TARGETS] == UNIFORM ? items : inputs) * (uint64_t)d->option[OUTPUTS];
}

const struct data_format format_synthetic = {
    .name = "synthetic",
    .about =
        {{"{format: synthetic, items, outputs [, targets, generator]}",
          "Inputs from 0 to 1. targets: teacher (the classes or values that a seeded linear map gives) or "
          "uniform (values from 0 to 1). generator: own, or before_weights: drawn from the weights' "
          "generator, "
          "before them."}},
    .options = OPTIONS,
    .scaled = true,
    .accept = accept,
    .open = open,
    .load = load,
    .draws = draws,
};
