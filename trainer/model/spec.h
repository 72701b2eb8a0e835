/* spec.h - a network as a preset's YAML describes it, without memory. trainer/cli fills it in.
 *
 * Ownership: plain structs; `ops` points into the tables of layer.h and optim.h. */
#ifndef TK_TRAINER_MODEL_SPEC_H
#define TK_TRAINER_MODEL_SPEC_H

#include "common/spec_option.h"
#include "kernels/kctx.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAYER_NAME_BYTES = 64, MODEL_LAYERS_MAX = 128, MODEL_STAGES_MAX = 64 };

struct layer_ops;

struct layer_spec {
    const struct layer_ops *ops;
    char name[LAYER_NAME_BYTES];      /* "" for kinds without parameters; prefix of the parameters' names */
    int32_t place;                    /* index in the whole model, from 0; a stage keeps it */
    int64_t option[SPEC_OPTIONS_MAX]; /* of ops->options */
    double number[SPEC_OPTIONS_MAX];
};

/* The shape of one sample: an image (rows, cols, channels); a vector (rows = cols = 1, flat); or a sequence
 * of `rows` vectors of `channels` elements (cols = 1). */
struct shape {
    int32_t rows, cols, channels;
    bool flat, sequence;
};

/* Where the numbers are, and their type; a property of the run, not of the model. All 0: f32 on the CPU. */
struct model_numbers {
    bool on_device;       /* passes run on a device: model_to_device allocates there what they need */
    enum element element; /* of activations and of the copies of weights that passes read */
};

/* The size of a GPT-2. OpenAI's four sizes (GPT-2's paper, table 2) are named by their number of layers. */
struct gpt2_spec {
    int64_t vocab; /* 0: the model is not a GPT-2 */
    int64_t block_size;
    int64_t n_layer, n_head, n_embd;
    bool recompute;
};

struct model_spec {
    struct gpt2_spec gpt2; /* what the layers were made of (gpt2.h); vocab 0: of a list */
    struct shape input;
    int32_t layers;
    struct layer_spec layer[MODEL_LAYERS_MAX];

    /* Pipeline stages: the first layer of each; stage_first[0] is 0. stages 0: not split. */
    int32_t stages;
    int32_t stage_first[MODEL_STAGES_MAX];

    /* If the spec is itself a stage (pipeline/cut.h). first: index of its first layer in the whole model.
     * inner: more stages follow, so the output may be an image. */
    int32_t first;
    bool inner;

    struct model_numbers numbers;
};

enum loss_type { LOSS_CROSS_ENTROPY, LOSS_MSE };

struct loss_spec {
    enum loss_type type;
    double label_smoothing; /* cross_entropy */
};

/* The targets are values, not labels. */
static inline bool loss_wants_values(const struct loss_spec *s)
{
    return s->type == LOSS_MSE;
}

struct optimizer_ops;

struct optimizer_spec {
    const struct optimizer_ops *ops;
    double lr;
    bool lr_times_world; /* multiply the rate by the number of ranks */
    double weight_decay;
    bool decay_matrices_only;         /* no weight decay for parameters of one dimension (biases, norms) */
    double clip;                      /* clip the norm of all gradients to this; 0: no clipping */
    int64_t option[SPEC_OPTIONS_MAX]; /* of ops->options */
    double number[SPEC_OPTIONS_MAX];
};

enum schedule_type { SCHEDULE_CONSTANT, SCHEDULE_STEP, SCHEDULE_MULTI_STEP, SCHEDULE_COSINE };
enum { SCHEDULE_MILESTONES_MAX = 32 };

/* The learning rate as a function of time, in epochs or steps. During `warmup` it rises from lr * warmup_from
 * to lr; then the rest of the schedule begins. By torch's LinearLR, time 0 has lr * warmup_from, and the
 * first time after the warm-up has lr. By GPT-2's rule (warmup_last_full), the last time of the warm-up has
 * lr: with warmup_from 0, lr * (t + 1) / warmup. */
struct schedule_spec {
    enum schedule_type type;
    bool per_step;
    int64_t every; /* step: multiply by gamma after each `every` */
    double gamma;
    int32_t milestones; /* multi_step: multiply by gamma at each; ascending */
    int64_t milestone[SCHEDULE_MILESTONES_MAX];
    int64_t total; /* cosine: time until min_lr; 0: until the end of the run */
    double min_lr;
    int64_t warmup;
    double warmup_from;
    bool warmup_last_full; /* GPT-2's rule */
};

#endif
