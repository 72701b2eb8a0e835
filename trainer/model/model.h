/* model.h - a network with its memory: parameters in one flat buffer, activations, and the two passes.
 *
 * Shapes:    samples are (batch, rows, cols, channels) of the spec's input; the output is (batch, classes).
 * Ownership: model_make to model_free; the spec must outlive the model. Gradients go to the caller's buffer.
 * Order:     parameters stand in the order of layers, weight before bias: PyTorch's named_parameters(). The
 *            backward pass belongs to the forward pass just before it (of the same twin).
 * Elements:  activations and their gradients are of the spec's kind of element (spec.h), of which only a device has others
 *            than f32: then it has copies of the weights for the passes, too. Weights, buffers and gradients of parameters are
 *            f32 always.
 * Numerics:  gradients are written, not added to.
 */
#ifndef TK_TRAINER_MODEL_MODEL_H
#define TK_TRAINER_MODEL_MODEL_H

#include "common/cleanup.h"
#include "common/err.h"
#include "kernels/kctx.h"
#include "kernels/queued.h"
#include "trainer/model/layer.h"
#include "trainer/model/spec.h"

enum { PARAM_NAME_BYTES = LAYER_NAME_BYTES + 24 };

/* One parameter tensor: where it lies in every flat buffer (values, gradients, moments), and what exports
 * call it. */
struct param_row {
    char name[PARAM_NAME_BYTES]; /* "conv1.weight" */
    int32_t dims;
    int64_t dim[PARAM_DIMS_MAX];
    size_t offset, len; /* floats */
    bool tied;          /* another layer uses it too */
};

/* One entry of state_dict(), in PyTorch's order: a layer's parameters, then its buffers. */
struct state_row {
    char name[PARAM_NAME_BYTES]; /* "bn1.running_mean" */
    enum state_type type;
    bool buffer;  /* not a parameter: no gradient, no moments */
    bool tied;    /* a parameter under another name: its data are those of a row before */
    bool turned;  /* a matrix that .safetensors files have as its transpose */
    int32_t dims; /* 0: one number */
    int64_t dim[PARAM_DIMS_MAX];
    void *data; /* in the model's values or buffers */
    size_t bytes;
};

/* Others read it; the files of this folder alone write what is not said to be the caller's. */
struct model {
    const struct model_spec *spec; /* as it was made */
    int batch_max, batch;          /* batch: of the last forward pass */
    bool train;                    /* so was that pass */
    bool twin;                     /* values, buffers and grad are another's */
    int layers;
    int rows, states;
    int first_grad; /* the layer where the backward pass ends: nothing before it has parameters */
    size_t len;     /* floats of all parameters */
    size_t workspace_bytes, thread_bytes;
    float *values; /* the caller's, too; 64-byte aligned */

    /* All buffers as one piece, to broadcast or to copy: rank 0's are the truth, as they are in DDP. Only training passes
     * write them, each rank its own, so whoever evaluates or saves on another rank takes rank 0's first. */
    uint8_t *buffers;
    size_t buffers_bytes; /* 0: there are none */
    struct kctx *device;  /* where the passes' memory is; NULL: the process's own */
    struct {
        float *values; /* what the passes read: the process's, or the device's own, */
        void *copies;  /* and elements of them, where those are not f32 */
        uint8_t *buffers;
    } here;
    struct model_numbers numbers;
    void *grad[2]; /* gradients of activations: one is read while the other is written */
    void *scratch; /* of one layer at a time */
    struct layer layer[MODEL_LAYERS_MAX];
    int row_of[MODEL_LAYERS_MAX][LAYER_PARAMS_MAX];
    const void *in[MODEL_LAYERS_MAX]; /* of the last forward pass */
    void *out[MODEL_LAYERS_MAX];      /* NULL: alias */
    uint8_t *saved[MODEL_LAYERS_MAX];
    void *kept[MODEL_LAYERS_MAX];
    struct param_row row[MODEL_LAYERS_MAX * LAYER_PARAMS_MAX]; /* (rows) */
    void *buffer[MODEL_LAYERS_MAX][LAYER_BUFFERS_MAX];
    /* (states) all that exports and checkpoints keep of a model */
    struct state_row state[MODEL_LAYERS_MAX * (LAYER_PARAMS_MAX + LAYER_BUFFERS_MAX)];
};

/* Errors: ERR_INVALID names the layer ("layer 3 (conv2d conv2): ..."); ERR_FATAL no memory. */
struct model *model_make(const struct model_spec *spec, int batch_max, struct err *err) MUST_CHECK;
void model_free(struct model *m);

/* What training with batches of `batch` samples on a device takes (spec->numbers says how), before there is a model. */
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

/* The default weights of torch.nn, in the order in which the module would build its layers. */
void model_init(struct model *m, struct torch_rng *g);

struct shape model_output(const struct model *m);
size_t model_workspace_bytes(const struct model *m,
                             int threads); /* to reserve in the kctx, of so many threads, of every pass */

/* The output of `batch` samples; it and x are kept for the backward pass. `step` makes it a training pass and
 * is borrowed for the call; NULL: an evaluation (no dropout, running statistics, buffers left alone). */
const void *model_forward(struct model *m, struct kctx *ctx, const float *x, int batch,
                          const struct model_step *step);

/* A model may end in a head, which takes the loss itself (layer.h). model_forward and the backward pass then end and begin
 * before it. */
bool model_has_head(const struct model *m);
size_t model_forward_len(const struct model *m); /* elements per sample of what model_forward gives */

/* The head's loss of the forward pass just before; with grad also the gradients: of what that gave into dforward, of the
 * head's parameters into grad (len), where the backward pass goes on. ERR_INVALID: a label that is no class. */
int model_head_loss(struct model *m, struct kctx *ctx, const struct head_target *t, void *dforward,
                    float *grad, struct loss_result *ret, struct err *err) MUST_CHECK;

/* From the gradient of the output to those of all parameters: grad (len), and of the input: dinput, of x's shape; NULL: not
 * wanted. */
void model_backward(struct model *m, struct kctx *ctx, const void *doutput, float *grad, void *dinput);

/* The same a layer at a time, for who has something to do with gradients as they come: begin, then next until it says that it
 * was the last. *ret_from: gradients of parameters from there on are what they will be (0 behind the last). */
struct model_pass {
    const void *dout;
    float *grad;
    void *dinput;
    int layer, last, spare; /* the next one, and the one with which the pass ends */
};
struct model_pass model_backward_begin(const struct model *m, const void *doutput, float *grad, void *dinput);
bool model_backward_next(struct model *m, struct kctx *ctx, struct model_pass *pass, size_t *ret_from);

/* Move to the device of ctx, to be freed after m; on the CPU nothing changes. Passes then run there, and take and give its
 * memory; its values and buffers stay the process's, for files and other ranks. push takes them to the device, pull
 * brings them back. Before any twin is made. `steps`: how many the run has taken, for copies that are rounded by chance. */
int model_place(struct model *m, struct kctx *ctx, struct err *err) MUST_CHECK;
void model_push(struct model *m, int64_t steps);
void model_push_buffers(struct model *m); /* alone */
int model_pull(struct model *m, struct err *err) MUST_CHECK;

/* What a device's optimiser works on: the parameters there. */
struct queued_params model_trained(const struct model *m);

/* The same network for another batch that is under way at the same time: parameters, buffers and scratch are m's, the
 * activations its own. To be freed before m. One thread uses both. */
struct model *model_twin(const struct model *m, struct err *err) MUST_CHECK;

#endif
