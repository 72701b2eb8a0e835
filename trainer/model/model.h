/* model.h - a network with its memory: parameters in one flat buffer, activations, and the two passes.
 * trainer/pipeline calls it.
 *
 * Shapes:    samples are (batch, rows, cols, channels) of the spec's input; the output is (batch, classes).
 * Ownership: model_make to model_free; the spec must outlive the model. The caller owns the buffer of
 *            gradients.
 * Order:     parameters are in the order of layers, weight before bias: PyTorch's named_parameters(). A
 *            backward pass uses the forward pass just before it (of the same twin).
 * Elements:  activations and their gradients have the spec's element type (spec.h). Only a device supports
 *            another type than f32; it then also has copies of the weights in that type. Weights, buffers and
 *            gradients of parameters are always f32.
 * Numerics:  a pass overwrites gradients; it does not add. */
#ifndef TK_TRAINER_MODEL_MODEL_H
#define TK_TRAINER_MODEL_MODEL_H

#include "common/cleanup.h"
#include "common/err.h"
#include "kernels/kctx.h"
#include "kernels/queued.h"
#include "trainer/model/layer.h"
#include "trainer/model/spec.h"

enum { PARAM_NAME_BYTES = LAYER_NAME_BYTES + 24 };

/* One parameter tensor: its position in every flat buffer (values, gradients, moments), and its name in
 * exports. */
struct param_row {
    char name[PARAM_NAME_BYTES]; /* "conv1.weight" */
    int32_t dims;
    int64_t dim[PARAM_DIMS_MAX];
    size_t offset, len; /* floats */
    bool tied;          /* shared with another layer */
};

/* One entry of state_dict(), in PyTorch's order: a layer's parameters, then its buffers. */
struct state_row {
    char name[PARAM_NAME_BYTES]; /* "bn1.running_mean" */
    enum state_type type;
    bool buffer;     /* not a parameter: no gradient, no moments */
    bool tied;       /* a second name of a parameter: its data are those of an earlier row */
    bool transposed; /* .safetensors files have this matrix's transpose */
    int32_t dims;    /* 0: one number */
    int64_t dim[PARAM_DIMS_MAX];
    void *data; /* in the model's values or buffers */
    size_t bytes;
};

/* Other folders may read it. Only files of this folder write it, except `values`. */
struct model {
    const struct model_spec *spec; /* that it was built from */
    int batch_max, batch;          /* batch: samples of the last forward pass */
    bool train;                    /* that pass was a training pass */
    bool twin;                     /* values, buffers and grad belong to another model */
    int layers;
    int rows, states;
    int first_grad; /* the layer where the backward pass ends: nothing before it has parameters */
    size_t len;     /* floats of all parameters */
    size_t workspace_bytes, thread_bytes;
    float *values; /* parameters; the caller may write them; 64-byte aligned */

    /* All buffers in one piece. Each rank's training passes write its own; as in DDP, rank 0's are
     * authoritative, so ranks take rank 0's before they evaluate or save. */
    uint8_t *buffers;
    size_t buffers_bytes; /* 0: there are none */
    struct kctx *device;  /* owner of the passes' memory; NULL: host memory */
    struct {
        float *values; /* that the passes read: on the host or the device */
        void *copies;  /* of the values in the element type, if it is not f32 */
        uint8_t *buffers;
    } here;
    struct model_numbers numbers;
    void *grad[2]; /* gradients of activations: a layer reads one and writes the other */
    void *scratch; /* for one layer at a time */
    struct layer layer[MODEL_LAYERS_MAX];
    int row_of[MODEL_LAYERS_MAX][LAYER_PARAMS_MAX];
    const void *in[MODEL_LAYERS_MAX]; /* of the last forward pass */
    void *out[MODEL_LAYERS_MAX];      /* NULL: alias */
    uint8_t *saved[MODEL_LAYERS_MAX];
    void *kept[MODEL_LAYERS_MAX];
    struct param_row row[MODEL_LAYERS_MAX * LAYER_PARAMS_MAX]; /* (rows) */
    void *buffer[MODEL_LAYERS_MAX][LAYER_BUFFERS_MAX];
    /* (states) the model's part of exports and checkpoints */
    struct state_row state[MODEL_LAYERS_MAX * (LAYER_PARAMS_MAX + LAYER_BUFFERS_MAX)];
};

/* Errors: ERR_INVALID names the layer ("layer 3 (conv2d conv2): ..."); ERR_FATAL no memory. */
struct model *model_make(const struct model_spec *spec, int batch_max, struct err *err) MUST_CHECK;
void model_free(struct model *m);

/* The memory that training with `batch` samples on a device needs (spec->numbers), without building the
 * model. */
struct model_needs {
    size_t len;         /* floats of all parameters */
    size_t forward_len; /* model_forward_len */
    size_t bytes;       /* activations, their gradients, buffers and scratch memory */
};
int model_needs(const struct model_spec *spec, int batch, struct model_needs *ret,
                struct err *err) MUST_CHECK;

static inline void model_freep(struct model **m)
{
    model_free(*m);
}
#define cleanup_model __attribute__((cleanup(model_freep)))

/* Draw torch.nn's default weights, in the order in which the module would build its layers. */
void model_init(struct model *m, struct torch_rng *g);

struct shape model_output(const struct model *m);
size_t model_workspace_bytes(const struct model *m,
                             int threads); /* to reserve in each kctx, which has `threads` threads */

/* Compute the output of `batch` samples; the backward pass uses it and x. With `step`, borrowed for the call,
 * it is a training pass; NULL: an evaluation (no dropout, running statistics, buffers unchanged). */
const void *model_forward(struct model *m, struct kctx *ctx, const float *x, int batch,
                          const struct model_step *step);

/* Whether the model ends in a head, which computes the loss itself (layer.h). model_forward then ends before
 * the head, and the backward pass begins there. */
bool model_has_head(const struct model *m);
size_t model_forward_len(const struct model *m); /* elements per sample of model_forward's result */

/* Compute the head's loss after a forward pass. With grad also the gradients: dforward, of the forward pass's
 * result, and those of the head's parameters in grad (len), which the backward pass completes. ERR_INVALID: a
 * label is not a class. */
int model_head_loss(struct model *m, struct kctx *ctx, const struct head_target *t, void *dforward,
                    float *grad, struct loss_result *ret, struct err *err) MUST_CHECK;

/* Compute the gradients of all parameters, grad (len), and of the input, dinput (x's shape; NULL: not
 * needed), from that of the output. */
void model_backward(struct model *m, struct kctx *ctx, const void *doutput, float *grad, void *dinput);

/* The same, one layer per call, for a caller that uses gradients as they become final: begin, then next until
 * it returns false. *ret_from: gradients of parameters from this offset on are final (0 after the last
 * layer). */
struct model_pass {
    const void *dout;
    float *grad;
    void *dinput;
    int layer, last, spare; /* the next layer, and the layer that ends the pass */
};
struct model_pass model_backward_begin(const struct model *m, const void *doutput, float *grad, void *dinput);
bool model_backward_next(struct model *m, struct kctx *ctx, struct model_pass *pass, size_t *ret_from);

/* Move the model to the device of ctx, which must outlive m; on the CPU nothing changes. Passes then run
 * there, on device memory. The host's values and buffers remain, for files and other ranks: push copies them
 * to the device, pull copies them back. Call it before model_twin. */
int model_to_device(struct model *m, struct kctx *ctx, struct err *err) MUST_CHECK;
void model_push(struct model *m);
void model_push_buffers(struct model *m); /* only the buffers */
int model_pull(struct model *m, struct err *err) MUST_CHECK;

/* The parameters on the device, for the device's optimizer. */
struct queued_params model_trained(const struct model *m);

/* The same network for a second batch at the same time: it shares m's parameters, buffers and scratch, and
 * has its own activations. Free it before m. One thread uses both. */
struct model *model_twin(const struct model *m, struct err *err) MUST_CHECK;

#endif
