/* layer.h - one layer of a network, and the table of its kinds. To add a kind, define a struct layer_ops in a
 * file of layers/ and add a row to LAYERS. Presets, shapes, memory, the passes, the optimizer, the exports
 * and the manual use the table. New arithmetic goes into kernels/ (ops.h). trainer/DESIGN.md shows a complete
 * change; tests/unit/trainer/model/test_layers.c compares every kind with PyTorch.
 *
 * Shapes:    activations are (batch, rows, cols, channels), of a sequence (batch, time, 1, channels); parameters keep
 *            PyTorch's own layout.
 * Elements:  a `void` buffer has the layer's element type (kernels/kctx.h): always f32 for a kind without
 *            `elements`. A model's input is always f32.
 * Ownership: a pass borrows every buffer. `plan` fills a layer that model.c owns.
 * Errors:    only `plan` can fail: ERR_INVALID naming the field. */
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

/* State of a layer that training steps do not optimize: torch.nn's buffers. */
enum state_type { STATE_F32, STATE_I64 };

struct layer_buffer {
    const char *suffix; /* "running_mean" */
    enum state_type type;
    int32_t dims; /* 0: one number */
    int64_t dim[PARAM_DIMS_MAX];
    double start; /* every element's first value */
};

/* Identifies a training pass for random numbers (dropout), so that a sample's numbers do not depend on rank
 * or thread. */
struct model_step {
    uint64_t seed;
    int64_t step;            /* of the run, from 0 */
    const int64_t *step_at;  /* on a device: address from which the kernel reads the step; NULL: use `step` */
    const uint32_t *samples; /* (batch) item numbers in the data set */
};

struct layer {
    const struct layer_spec *spec;
    struct shape in, out;
    enum element element;
    struct layer_param param[LAYER_PARAMS_MAX];
    int params;
    const char *tied
        [LAYER_PARAMS_MAX]; /* the parameter is shared with the first earlier one whose name has this end */
    bool f32[LAYER_PARAMS_MAX]; /* passes read the parameter in f32, whatever `element` is */
    bool
        transposed[LAYER_PARAMS_MAX]; /* .safetensors files have the transpose, as in Hugging Face's Conv1D */
    struct layer_buffer buffer[LAYER_BUFFERS_MAX];
    int buffers;
    size_t workspace_bytes; /* workspace of kctx, for the largest batch */
    size_t thread_bytes;    /* the same, per thread of kctx */
    size_t scratch_bytes;   /* per sample, during one of its passes */
    size_t saved_bytes;     /* per sample, written by the forward pass for the backward pass */
    size_t kept_bytes;      /* the same, once per batch */
    bool alias;             /* the output is the input in another shape: no pass runs */

    /* relu: this layer applies the ReLU that follows it. relu_grad: it also computes that ReLU's gradient,
     * unless the next layer's backward pass does (out_masked). */
    bool relu;
    bool relu_grad;
    bool out_masked;
};

/* The buffers of one pass of one layer over one batch. */
struct layer_pass {
    int batch;
    bool train;                    /* a training pass; the backward pass has the forward pass's value */
    const struct model_step *step; /* forward pass with `train` */
    const void *in;
    void *out;
    uint8_t *saved;
    void *kept;
    void *scratch; /* shared by all layers */
    const void *param[LAYER_PARAMS_MAX];
    void *buffer[LAYER_BUFFERS_MAX]; /* written by the forward pass when `train` */

    /* backward only */
    const void *dout;
    void *din; /* NULL: not needed, since no layer before has parameters */
    float *grad[LAYER_PARAMS_MAX];
    bool add[LAYER_PARAMS_MAX]; /* add to `grad`, which a layer with the same tied parameter has written */
};

struct queued_loss;

/* Targets of a head: the class of each output. */
struct head_target {
    const int32_t *labels; /* (batch, outputs of a sample) */
    float share;           /* the gradient is that of share * (sum of losses) */

    /* Not NULL: on a device, asynchronously add the loss here and set *mean (unless NULL) to the sum times
     * share; the call's own result is then undefined. NULL: the call waits for the device. */
    struct queued_loss *queued;
    float *mean;
};

struct loss_result;

struct layer_ops {
    const char *type;
    const char *about; /* for the manual: one line */
    const struct spec_option *options;
    bool named;      /* has parameters, and with them a name */
    bool elements;   /* its passes support all element types */
    bool takes_relu; /* can apply a ReLU to its own output */
    bool masks_relu; /* its backward pass can compute the gradient of a ReLU before it */

    /* With `in`, `spec`, `element` and `out` (equal to `in`) set: fill out, param, params, buffer, buffers,
     * the *_bytes, alias.
     * NULL: nothing to fill. */
    int (*plan)(struct layer *l, int batch_max, struct err *err);
    void (*init)(const struct layer *l, struct torch_rng *g, float *const *param); /* NULL: no parameters */
    void (*forward)(const struct layer *l, struct kctx *ctx, const struct layer_pass *p);
    void (*backward)(const struct layer *l, struct kctx *ctx, const struct layer_pass *p);

    /* Only for a head: a last layer that computes the loss itself, because its outputs would take too much
     * memory. Compute the loss of p's input and, with p->grad[0], the gradients. ERR_INVALID: a label is not
     * a class. A head has neither forward nor backward. */
    int (*loss)(const struct layer *l, struct kctx *ctx, const struct layer_pass *p,
                const struct head_target *t, struct loss_result *ret, struct err *err);

    /* The number of random words that torch's constructor draws before init; NULL: none. */
    uint64_t (*draws)(const struct layer *l);
};

/* All kinds, in the order of the manual: layer_NAME, which a file of layers/ defines. */
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

/* The table and its types, both ended by NULL. */
extern const struct layer_ops *const layer_kinds[];
extern const char *const layer_types[];

/* A layer of that kind with all options at their defaults (0 for a required one). */
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
