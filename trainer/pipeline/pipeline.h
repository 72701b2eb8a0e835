/* pipeline.h - one rank's stage of a pipeline-parallel model: its weights, its neighbours, forward and
 * backward pass. trainer/run calls it.
 *
 * A model that is not split is a pipeline of one stage, which sends nothing.
 *
 * On a device the stage's memory is there; NCCL transfers activations between stages, or the host does
 * (link.c).
 *
 * Shapes:    a micro-batch is `rows` samples. A stage sends its activations to the next stage, and their
 *            gradients back.
 * Ownership: pipeline_open to pipeline_release; options, table and spec are borrowed meanwhile.
 * Order:     every rank runs the same micro-batches, all forward passes before all backward passes (GPipe). A
 *            stage sends gradients only after it has received all activations, so two neighbours never both
 *            wait in a send. All calls have one order, and each waits only for earlier ones, so there is no
 *            deadlock, on a device's stream either. Memory holds the activations of a whole batch;
 *            one-forward-one-backward would need less.
 * Errors:    those of the collectives; ERR_INVALID from pipeline_open (ranks that do not fit the stages; the model;
 *            stages with a head).
 * Numerics:  gradients of micro-batches are added in their order, 0 + 1 + 2 + ..., for every number of
 *            stages. So S stages on S ranks give the same weights and losses, bit for bit, as one process
 *            with as many micro-batches. The norm over all gradients is added stage by stage, so its last
 *            bits may differ. Another number of micro-batches groups the same sum differently, and differs by
 *            rounding.
 */
#ifndef TK_TRAINER_PIPELINE_PIPELINE_H
#define TK_TRAINER_PIPELINE_PIPELINE_H

#include "collectives/collectives.h"
#include "trainer/model/model.h"
#include "trainer/pipeline/cut.h"

struct pipeline_options {
    const struct model_spec *spec; /* of the whole model */
    struct collectives *comm;
    struct device_comm *device_comm; /* communicator on ctx's device; NULL: use comm */
    struct kctx *ctx;
    int batch;         /* most samples of a training batch, per replica */
    int micro_batches; /* 0: 1 */
    int evaluate;      /* most samples per evaluation chunk; 0: none */
    int64_t timeout_ms;
};

struct pipeline {
    struct pipeline_options o;
    struct pipeline_position at;
    struct model *model; /* this stage; it also runs micro-batch 0 */
    struct model *whole; /* on rank 0 of several stages: the model of pipeline_whole; else NULL */
    struct shape output; /* of the whole model */
    size_t forward_len;  /* elements per sample of pipeline_forward's result */
    size_t whole_len;    /* parameters of the whole model */
    /* Offsets of each stage's parameters and buffers in the whole model's, in bytes; the last entry is the
     * size. */
    size_t values_at[MODEL_STAGES_MAX + 1], buffers_at[MODEL_STAGES_MAX + 1];

    struct model_spec *stage; /* of this stage */
    struct model *twin[MICRO_BATCHES_MAX];
    size_t in_len, out_len; /* elements per sample, of this stage */
    void *in;               /* activations from the previous stage, of all micro-batches */
    void *din, *dout;       /* gradients to send and received, of one micro-batch */
    float *more;            /* gradients of one micro-batch after the first */
    void *passing;          /* host buffer for transfers of a device without NCCL */

    /* resident/graph.c records the transfers, so the host must not wait for them. Otherwise it waits under
     * the deadline: a kernel that runs for the first time after a transfer may wait for the device without a
     * deadline. */
    bool recording;
};

/* Allocate memory and reserve the kctx's workspace; weights are zero. */
int pipeline_open(struct pipeline *p, const struct pipeline_options *o, struct err *err) MUST_CHECK;

void pipeline_release(struct pipeline *p);
#define cleanup_pipeline __attribute__((cleanup(pipeline_release)))

static inline bool pipeline_is_first(const struct pipeline *p)
{
    return p->at.stage == 0;
}

static inline bool pipeline_is_last(const struct pipeline *p)
{
    return p->at.stage == p->at.stages - 1;
}

/* Forward pass of one micro-batch. x: the first stage reads it, also in the backward pass. *ret: the outputs
 * on the last stage, NULL on the others. */
int pipeline_forward(struct pipeline *p, const struct micro_batch *at, const float *x,
                     const struct model_step *step, const void **ret, struct err *err) MUST_CHECK;

/* The loss of a model that ends in a head, after its forward pass (model.h). Such a model is not split, so
 * each micro-batch's backward pass comes before the next forward pass. grad as below; dout and grad NULL: an
 * evaluation. */
int pipeline_head_loss(struct pipeline *p, const struct micro_batch *at, const struct head_target *t,
                       void *dout, float *grad, struct loss_result *ret, struct err *err) MUST_CHECK;

/* Backward pass of one micro-batch. dout: the last stage reads it. Micro-batch 0 writes grad (this stage's
 * parameters), the others add to it. */
int pipeline_backward(struct pipeline *p, const struct micro_batch *at, const void *dout, float *grad,
                      struct err *err) MUST_CHECK;

/* Sum a number over the stages, in their order (the squares of gradients, for the norm). A collective call;
 * does nothing with one stage. */
int pipeline_sum(struct pipeline *p, double *x, struct err *err) MUST_CHECK;

/* link.c: transfer n elements between two stages. */
int pipeline_send(struct pipeline *p, const void *from, size_t n, int to, struct err *err) MUST_CHECK;
int pipeline_recv(struct pipeline *p, void *to, size_t n, int from, struct err *err) MUST_CHECK;

/* whole.c: functions on the whole model. */

/* Every rank draws the whole model's weights, so all generators have the same state afterwards, and keeps its
 * own stage's. If the model is not split, all ranks then take rank 0's. A collective call. */
int pipeline_init(struct pipeline *p, struct torch_rng *g, struct err *err) MUST_CHECK;

/* Rank 0 gets all stages' parameters and buffers as one model, borrowed until the next call; the others get
 * NULL. With one stage it is the rank's own model. A collective call that all ranks leave together: it may be
 * the run's last call, and a rank that exited earlier would fail the others. */
int pipeline_whole(struct pipeline *p, struct model **ret, struct err *err) MUST_CHECK;

/* The reverse: distribute rank 0's p->whole to the stages, or its own model to the other replicas. */
int pipeline_spread(struct pipeline *p, struct err *err) MUST_CHECK;

/* Gather arrays in the layout of the parameters (moments) from the stages to rank 0, and scatter them back;
 * with one stage, scatter copies rank 0's `part` to the other replicas. part: this stage's numbers; whole:
 * all numbers, on rank 0 of several stages; else NULL. Collective calls. */
int pipeline_gather(struct pipeline *p, float *part, float *whole, struct err *err) MUST_CHECK;
int pipeline_scatter(struct pipeline *p, float *part, float *whole, struct err *err) MUST_CHECK;

#endif
