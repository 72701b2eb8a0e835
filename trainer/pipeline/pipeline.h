/* pipeline.h - one rank's stage of a pipeline-parallel model: its weights, its neighbours, forward and backward pass.
 *
 * A model that is not cut is a pipeline of one stage: nothing is sent, and a step is what it would be without this.
 *
 * On a device a stage is placed there, and passes take and give its memory; what goes between stages is queued over
 * NCCL, or goes by way of the process (link.c).
 *
 * Shapes:    a micro-batch is `rows` samples; between stages go the activations of one, and back their gradients.
 * Ownership: pipeline_open to pipeline_release; options, table and spec are borrowed meanwhile.
 * Order:     every rank runs the same micro-batches, all forwards before all backwards (GPipe): a stage sends backwards
 *            only when it has received everything that was sent forwards, so two neighbours never both wait in a send,
 *            however little a link holds; there is one order of all calls, and each call waits only for earlier ones, so
 *            that no deadlock is possible, on a device's stream either. It keeps the activations of a whole batch, as
 *            a model that is not cut does; one-forward-one-backward would keep fewer.
 * Errors:    those of the collectives; ERR_INVALID from pipeline_open (ranks that do not fit the stages; the model;
 *            stages with a head).
 * Numerics:  gradients of micro-batches are added in their order, 0 + 1 + 2 + ..., at every number of stages: the same
 *            weights and losses, bit for bit, from S stages on S ranks as from one process with as many micro-batches.
 *            A norm over all gradients is added stage by stage: there the last bits may differ.
 *            Another number of micro-batches groups the same sum otherwise, and differs by rounding.
 */
#ifndef TK_TRAINER_PIPELINE_PIPELINE_H
#define TK_TRAINER_PIPELINE_PIPELINE_H

#include "collectives/collectives.h"
#include "trainer/model/model.h"
#include "trainer/pipeline/cut.h"

struct pipeline_options {
    const struct model_spec *spec; /* of the whole model */
    struct collectives *comm;
    struct device_comm *device_comm; /* exchanges on ctx's device; NULL: by comm */
    struct kctx *ctx;
    int batch;         /* most samples of a training batch: per rank, or of all stages */
    int micro_batches; /* 0: 1 */
    int evaluate;      /* most samples that an evaluation takes at a time; 0: none */
    int64_t timeout_ms;
};

struct pipeline {
    struct pipeline_options o;
    struct pipeline_place at;
    struct model *model; /* this stage; it also runs micro-batch 0 */
    struct model *whole; /* rank 0 of several stages: memory for pipeline_whole; else NULL */
    struct shape output; /* of the whole model */
    size_t forward_len;  /* floats per sample that pipeline_forward gives: fewer before a head */
    size_t whole_len;    /* its parameters */
    /* Where each stage's parameters and buffers lie in the whole model's, in bytes; and their ends. */
    size_t values_at[MODEL_STAGES_MAX + 1], buffers_at[MODEL_STAGES_MAX + 1];

    struct model_spec *stage; /* of this stage */
    struct model *twin[MICRO_BATCHES_MAX];
    size_t in_len, out_len; /* elements per sample, of this stage */
    void *in;               /* what came from the stage before, for every micro-batch */
    void *din, *dout;       /* gradients on their way, of one micro-batch */
    float *more;            /* gradients of a further micro-batch */
    void *passing; /* the process's memory for what comes from a device without NCCL, or goes there */

    /* What is sent and received is being recorded (resident/graph.c), so nobody may wait for it. Otherwise it is waited
     * for, under the deadline: what is queued behind it for the first time may wait for the device without one. */
    bool recording;
};

/* Take memory and reserve the kctx's workspace; weights are zero. */
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

/* One micro-batch through all stages. x: read by the first stage, and kept for the backward pass. *ret: the outputs on
 * the last stage, NULL on the others. */
int pipeline_forward(struct pipeline *p, const struct micro_batch *at, const float *x,
                     const struct model_step *step, const void **ret, struct err *err) MUST_CHECK;

/* The loss of a model that ends in a head, of the forward pass just before (model.h): one that is not cut, pipeline_open
 * takes no other, so each micro-batch goes back before the next comes. grad as below; dout and grad NULL: an
 * evaluation. */
int pipeline_head_loss(struct pipeline *p, const struct micro_batch *at, const struct head_target *t,
                       void *dout, float *grad, struct loss_result *ret, struct err *err) MUST_CHECK;

/* The backward pass of one micro-batch. dout: read by the last stage. grad (of this stage's parameters) is written by
 * micro-batch 0 and added to by the others. */
int pipeline_backward(struct pipeline *p, const struct micro_batch *at, const void *dout, float *grad,
                      struct err *err) MUST_CHECK;

/* Sum a number over the stages, in their order (the squares of gradients, for the norm). A collective call; with one stage
 * nothing to do. */
int pipeline_sum(struct pipeline *p, double *x, struct err *err) MUST_CHECK;

/* link.c - what goes from one stage to the next. n: elements. */
int pipeline_send(struct pipeline *p, const void *from, size_t n, int to, struct err *err) MUST_CHECK;
int pipeline_recv(struct pipeline *p, void *to, size_t n, int from, struct err *err) MUST_CHECK;

/* whole.c - what concerns the whole model, whichever rank holds its parts. */

/* Every rank draws the whole model's weights and keeps its own stage's, and the generator ends where the whole model leaves it.
 * Of a model that is not cut all ranks then take rank 0's. A collective call. */
int pipeline_init(struct pipeline *p, struct torch_rng *g, struct err *err) MUST_CHECK;

/* Rank 0 gets all stages' parameters and buffers as one model, borrowed until the next call; the others get NULL. With
 * one stage that is the rank's own model. A collective call of all ranks, who leave it together: it may be a run's last,
 * and one that went before the others were done would take them along. */
int pipeline_whole(struct pipeline *p, struct model **ret, struct err *err) MUST_CHECK;

/* The way back: what rank 0's p->whole holds to the stages, or its own model to the other copies. */
int pipeline_spread(struct pipeline *p, struct err *err) MUST_CHECK;

/* Numbers that lie as the parameters do (moments): from several stages into the whole model's order on rank 0, and back, or from
 * rank 0's `part` to the other copies. part (this stage's parameters), whole (all; rank 0 of stages, NULL elsewhere).
 * Collective calls. */
int pipeline_gather(struct pipeline *p, float *part, float *whole, struct err *err) MUST_CHECK;
int pipeline_scatter(struct pipeline *p, float *part, float *whole, struct err *err) MUST_CHECK;

#endif
