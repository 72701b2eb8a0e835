/* spec.h - a network as data, as a preset's YAML describes it, before memory is allocated.
 *
 * Ownership: plain structs; `ops` points into the tables of kinds (model/layer.h, model/optim.h).
 */
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
    int32_t place;                    /* in the whole model's list, from 0; a part of a model keeps it */
    int64_t option[SPEC_OPTIONS_MAX]; /* of ops->options */
    double number[SPEC_OPTIONS_MAX];
};

/* One sample: an image (rows, cols, channels), a vector: rows = cols = 1 and flat, or a sequence of `rows` vectors of as
 * many channels: cols = 1. */
struct shape {
    int32_t rows, cols, channels;
    bool flat, sequence;
};

/* Where and how its numbers are kept: no part of the model, but of the run. All 0: on the CPU, f32. */
struct model_numbers {
    bool elsewhere;       /* passes run on a device: model_place allocates there what they need */
    enum element element; /* of activations and of the copies of weights that passes read */
    bool
        by_chance; /* stochastic rounding of those copies, with random numbers from `seed` (kernels/queued.h) */
    uint64_t seed;
};

struct model_spec {
    struct shape input;
    int32_t layers;
    struct layer_spec layer[MODEL_LAYERS_MAX];

    /* Where it is cut for pipeline parallelism: the layer with which each stage begins, 0 first. 0 stages: it is not. */
    int32_t stages;
    int32_t stage_first[MODEL_STAGES_MAX];

    /* Of a spec that is itself a stage (pipeline/cut.h): the place of its first layer in the whole model, and whether
     * more stages follow, so that its output may still be an image. */
    int32_t first;
    bool inner;

    struct model_numbers numbers;
};

enum loss_type { LOSS_CROSS_ENTROPY, LOSS_MSE };

struct loss_spec {
    enum loss_type type;
    double label_smoothing; /* cross_entropy */
};

struct optimizer_ops;

struct optimizer_spec {
    const struct optimizer_ops *ops;
    double lr;
    bool lr_times_world; /* the rate of one rank is multiplied by the number of ranks */
    double weight_decay;
    bool decay_matrices_only; /* parameters of one dimension (biases, norms) are not decayed */
    double clip;              /* the most that the norm of all gradients together may be; 0: no bound */
    int64_t option[SPEC_OPTIONS_MAX]; /* of ops->options */
    double number[SPEC_OPTIONS_MAX];
};

enum schedule_type { SCHEDULE_CONSTANT, SCHEDULE_STEP, SCHEDULE_MULTI_STEP, SCHEDULE_COSINE };
enum { SCHEDULE_MILESTONES_MAX = 32 };

/* How the rate changes with time, counted in epochs or in steps. It rises during `warmup` from its share
 * `warmup_from`; the rest of the schedule begins when it has. By torch's LinearLR the first time has that share and
 * the one behind the warm-up is the first with the whole rate; by GPT-2's rule the first is a step above the share, and
 * the last of the warm-up has the whole rate: (t + 1) / warmup from a share of 0. */
struct schedule_spec {
    enum schedule_type type;
    bool per_step;
    int64_t every; /* step: times gamma after every so many */
    double gamma;
    int32_t milestones; /* multi_step: times gamma at each, ascending */
    int64_t milestone[SCHEDULE_MILESTONES_MAX];
    int64_t total; /* cosine: how long down to min_lr; 0: what the run has left behind the warm-up */
    double min_lr;
    int64_t warmup;
    double warmup_from;
    bool warmup_last_full; /* GPT-2's rule */
};

#endif
