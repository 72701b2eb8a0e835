/* spec.h - a network as data: what a preset says about it, before any memory is laid out.
 *
 * Ownership: plain structs; `ops` points into the table of layer kinds (model/layer.h).
 */
#ifndef TK_TRAINER_MODEL_SPEC_H
#define TK_TRAINER_MODEL_SPEC_H

#include <stdbool.h>
#include <stdint.h>

enum { LAYER_NAME_BYTES = 64, LAYER_OPTIONS_MAX = 6, MODEL_LAYERS_MAX = 128 };

struct layer_ops;

/* An integer that a kind of layer takes. A kind lists its options once: the reader of presets, the errors and
 * the layer's own code follow that list, and option[i] of a layer_spec is the i-th of it. */
struct layer_option {
    const char *key; /* NULL ends a list */
    int64_t min, max;
    bool required;
    int64_t fallback; /* when not required */
};

struct layer_spec {
    const struct layer_ops *ops;
    char name[LAYER_NAME_BYTES]; /* "" for kinds without parameters; prefix of the parameters' names */
    int64_t option[LAYER_OPTIONS_MAX];
};

/* One sample: an image (rows, cols, channels), or a vector: rows = cols = 1 and flat. */
struct shape {
    int32_t rows, cols, channels;
    bool flat;
};

struct model_spec {
    struct shape input;
    int32_t layers;
    struct layer_spec layer[MODEL_LAYERS_MAX];
};

enum optimizer_type { OPTIMIZER_ADAM, OPTIMIZER_SGD };

struct optimizer_spec {
    enum optimizer_type type;
    double lr;
    bool lr_times_world; /* the rate of one rank is multiplied by the number of ranks */
    double beta1, beta2, eps;
};

enum schedule_type { SCHEDULE_CONSTANT, SCHEDULE_STEP };

struct schedule_spec {
    enum schedule_type type;
    int64_t every_epochs; /* step: the rate is multiplied by gamma after every so many epochs */
    double gamma;
};

#endif
