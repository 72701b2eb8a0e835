/* layer.h - one layer of a network, and the table of kinds there are. A new kind is a file in layers/ that defines a struct
 * layer_ops, and a row of LAYERS. Presets, shapes, memory, the passes, the optimizer, the exports and the manual use the table.
 * New arithmetic goes into kernels/ (ops.h). trainer/DESIGN.md shows a whole change; tests/unit/trainer/model/test_layers.c
 * compares every kind with PyTorch.
 *
 * Shapes:    activations are (batch, rows, cols, channels), of a sequence (batch, time, 1, channels); parameters keep
 *            PyTorch's own layout.
 * Elements:  a `void` buffer holds elements of the layer's element type (kernels/kctx.h): always f32 for a kind without
 *            `elements`. The input of a model is always f32.
 * Ownership: a pass borrows every buffer. `plan` fills a layer that model.c owns.
 * Errors:    `plan` alone can fail: ERR_INVALID naming the field. The passes cannot.
 */
#ifndef TK_TRAINER_MODEL_LAYER_H
#define TK_TRAINER_MODEL_LAYER_H

#include "common/err.h"
#include "kernels/kctx.h"
#include "trainer/model/spec.h"
#include "trainer/rng/torch_rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAYER_PARAMS_MAX = 12, LAYER_BUFFERS_MAX = 3, PARAM_DIMS_MAX = 4 };

struct layer_param {
    const char *suffix; /* "weight", "bias" */
    int32_t dims;
    int64_t dim[PARAM_DIMS_MAX];
};

/* State of a layer that is not trained: torch.nn's buffers. */
enum state_type { STATE_F32, STATE_I64 };

struct layer_buffer {
    const char *suffix; /* "running_mean" */
    enum state_type type;
    int32_t dims; /* 0: one number */
    int64_t dim[PARAM_DIMS_MAX];
    double start; /* every element's first value */
};

/* Input of a training pass for random numbers (dropout): a sample's numbers do not depend on rank and thread. */
struct model_step {
    uint64_t seed;
    int64_t step;            /* of the run, from 0 */
    const int64_t *step_at;  /* on a device: where it is read when the work is done; NULL: `step` counts */
    const uint32_t *samples; /* (batch) their places in the data set */
};

struct layer {
    const struct layer_spec *spec;
    struct shape in, out;
    enum element element;
    struct layer_param param[LAYER_PARAMS_MAX];
    int params;
    const char *tied[LAYER_PARAMS_MAX]; /* it is another layer's: the first before it whose name ends so */
    bool f32[LAYER_PARAMS_MAX];         /* passes read it in f32, whatever the elements */
    bool turned
        [LAYER_PARAMS_MAX]; /* .safetensors files have the transpose, as Hugging Face's Conv1D keeps it */
    struct layer_buffer buffer[LAYER_BUFFERS_MAX];
    int buffers;
    size_t workspace_bytes; /* of kctx, for the largest batch */
    size_t thread_bytes;    /* of kctx too, for each of its threads */
    size_t scratch_bytes;   /* per sample, while one of its passes runs */
    size_t saved_bytes;     /* per sample, from the forward pass for the backward pass */
    size_t kept_bytes;      /* alike, but once per batch */
    bool alias;             /* the output is the input in another shape: no pass is run */

    /* A ReLU behind this layer that it takes over. Its gradient is taken here, unless the layer behind it
     * does so in passing (out_masked there). */
    bool relu;
    bool relu_grad;
    bool out_masked;
};

/* The buffers of one pass of one layer over one batch. */
struct layer_pass {
    int batch;
    bool train;                    /* also in the backward pass: what the forward pass was */
    const struct model_step *step; /* forward, when `train` */
    const void *in;
    void *out;
    uint8_t *saved;
    void *kept;
    void *scratch; /* all layers' */
    const void *param[LAYER_PARAMS_MAX];
    void *buffer[LAYER_BUFFERS_MAX]; /* written by the forward pass when `train` */

    /* backward only */
    const void *dout;
    void *din; /* NULL: not wanted, of a layer with parameters alone (nothing before it has any) */
    float *grad[LAYER_PARAMS_MAX];
    bool add[LAYER_PARAMS_MAX]; /* this gradient is added to what a layer tied to the parameter has written */
};

struct queued_loss;

/* Targets of a head: each output's class. */
struct head_target {
    const int32_t *labels; /* (batch, outputs of a sample) */
    float share;           /* of the loss's sum, whose gradient is wanted */

    /* On a device, asynchronously: the loss is added here, *mean becomes its sum times share (NULL: not wanted), and the
     * call's own result is undefined. NULL: the call waits for the device. */
    struct queued_loss *queued;
    float *mean;
};

struct loss_result;

struct layer_ops {
    const char *type;
    const char *about; /* for the manual: one line */
    const struct spec_option *options;
    bool named;      /* has parameters, and with them a name */
    bool elements;   /* its passes take any kind of element */
    bool takes_relu; /* can apply a ReLU to its own output */
    bool masks_relu; /* its backward pass can take the gradient of a ReLU in front of it */

    /* `in`, `spec`, `element` and `out` (as `in`) are set: fill out, param, params, buffer, buffers, the bytes, alias. NULL: there
     * is nothing to fill. */
    int (*plan)(struct layer *l, int batch_max, struct err *err);
    void (*init)(const struct layer *l, struct torch_rng *g, float *const *param); /* NULL: no parameters */
    void (*forward)(const struct layer *l, struct kctx *ctx, const struct layer_pass *p);
    void (*backward)(const struct layer *l, struct kctx *ctx, const struct layer_pass *p);

    /* Only of a head, a last layer that computes the loss itself because its outputs are too many to be kept: compute the
     * loss of p's input and, with p->grad[0], the gradients. ERR_INVALID: a label is not a class. A head has neither
     * forward nor backward. */
    int (*loss)(const struct layer *l, struct kctx *ctx, const struct layer_pass *p,
                const struct head_target *t, struct loss_result *ret, struct err *err);

    /* How many random words torch's constructor draws before init does; NULL: none. */
    uint64_t (*draws)(const struct layer *l);
};

/* The kinds there are, in the order of the manual: layer_NAME, which a file of layers/ defines. */
#define LAYERS(X)                                                                                            \
    X(conv2d)                                                                                                \
    X(flatten)                                                                                               \
    X(linear)                                                                                                \
    X(maxpool2d)                                                                                             \
    X(relu)                                                                                                  \
    X(softmax)                                                                                               \
    X(avgpool2d)                                                                                             \
    X(batchnorm1d)                                                                                           \
    X(batchnorm2d)                                                                                           \
    X(dropout)                                                                                               \
    X(gelu)                                                                                                  \
    X(layernorm)                                                                                             \
    X(embedding)                                                                                             \
    X(gpt2_block)                                                                                            \
    X(lm_head)

#define LAYER_DECLARE(name) extern const struct layer_ops layer_##name;
LAYERS(LAYER_DECLARE)
#undef LAYER_DECLARE

/* The table and the types in it, both ended by NULL. */
extern const struct layer_ops *const layer_kinds[];
extern const char *const layer_types[];

/* A layer of that kind with every option at its default (0 where it is required). */
struct layer_spec layer_spec_of(const struct layer_ops *ops, const char *name);

/* p advanced by `elements` elements. */
static inline void *layer_at(const struct layer *l, void *p, size_t elements)
{
    return (char *)p + elements * element_bytes(l->element);
}

static inline size_t shape_len(const struct shape *s)
{
    return (size_t)s->rows * (size_t)s->cols * (size_t)s->channels;
}

static inline size_t layer_buffer_bytes(const struct layer_buffer *b)
{
    size_t n = b->type == STATE_I64 ? sizeof(int64_t) : sizeof(float);

    for (int i = 0; i < b->dims; i++)
        n *= (size_t)b->dim[i];
    return n;
}

static inline size_t layer_param_len(const struct layer_param *p)
{
    size_t n = 1;

    for (int i = 0; i < p->dims; i++)
        n *= (size_t)p->dim[i];
    return n;
}

#endif
