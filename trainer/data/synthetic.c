/* synthetic.c - generate uniform inputs and the targets of a linear teacher. */
#include "trainer/data/synthetic.h"

#include <stdlib.h>

uint64_t synthetic_draws(const struct synthetic *s, const struct data_layout *l)
{
    uint64_t inputs = (uint64_t)l->train_items * layout_input_len(l);
    uint64_t rest = s->rule == SYNTHETIC_UNIFORM ? (uint64_t)l->train_items : layout_input_len(l);

    return inputs + rest * (uint64_t)s->outputs;
}

/* (channels, pixels) to (pixels, channels). */
static void channels_last(const float *from, float *to, size_t channels, size_t pixels)
{
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < pixels; p++)
            to[p * channels + c] = from[c * pixels + p];
}

static void draw_input(struct torch_rng *g, const struct data_layout *l, float *sample, float *x)
{
    size_t len = layout_input_len(l);

    torch_rng_uniform(g, 0, 1, sample, len);
    channels_last(sample, x, (size_t)l->channels, (size_t)l->rows * (size_t)l->cols);
}

static void uniform(struct torch_rng *g, struct dataset *d, float *sample)
{
    const struct data_layout *l = &d->layout;

    for (int64_t i = 0; i < l->train_items; i++) {
        draw_input(g, l, sample, (float *)d->train.x + (size_t)i * layout_input_len(l));
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

/* The weights as (inputs, outputs), inputs channels last like the samples. */
static void draw_teacher(struct torch_rng *g, const struct data_layout *l, size_t outputs, float *sample,
                         float *moved, double *weight)
{
    size_t inputs = layout_input_len(l);

    for (size_t o = 0; o < outputs; o++) {
        torch_rng_uniform(g, -1, 1, sample, inputs);
        channels_last(sample, moved, (size_t)l->channels, (size_t)l->rows * (size_t)l->cols);
        for (size_t k = 0; k < inputs; k++)
            weight[k * outputs + o] = (double)moved[k];
    }
}

static int teach(struct torch_rng *g, struct dataset *d, int32_t outputs, float *sample, struct err *err)
{
    const struct data_layout *l = &d->layout;
    size_t inputs = layout_input_len(l);
    cleanup_free float *moved = calloc(inputs, sizeof(*moved));
    cleanup_free double *weight = calloc(inputs * (size_t)outputs, sizeof(*weight));
    double answer[SYNTHETIC_OUTPUTS_MAX];

    if (!moved || !weight)
        return err_memory(err, "no memory for the teacher of synthetic data");
    for (int64_t i = 0; i < l->train_items; i++)
        draw_input(g, l, sample, (float *)d->train.x + (size_t)i * inputs);
    draw_teacher(g, l, (size_t)outputs, sample, moved, weight);
    for (int64_t i = 0; i < l->train_items; i++) {
        ask(weight, (const float *)d->train.x + (size_t)i * inputs, inputs, (size_t)outputs, answer);
        note(d, i, answer, outputs);
    }
    return 0;
}

int synthetic_make(const struct synthetic *s, struct torch_rng *g, struct dataset *d, struct err *err)
{
    cleanup_free float *sample = calloc(layout_input_len(&d->layout), sizeof(*sample));

    if (!sample)
        return err_memory(err, "no memory for a synthetic sample");
    if (s->outputs < 1 || s->outputs > SYNTHETIC_OUTPUTS_MAX)
        return err_set(err, ERR_INVALID, "data.outputs: %d, expected 1..%d", s->outputs,
                       SYNTHETIC_OUTPUTS_MAX);
    if (s->rule == SYNTHETIC_TEACHER)
        return teach(g, d, s->outputs, sample, err);
    if (!d->train.values)
        return err_set(err, ERR_INVALID, "data.targets: uniform, expected teacher where targets are labels");
    uniform(g, d, sample);
    return 0;
}
