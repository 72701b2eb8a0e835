/* resident_state.h - the struct that the files of resident/ share: device memory, graphs, streams. No other file includes it.
 *
 * memory.c takes and gives back; ring.c speaks with the device (orders, records, marks); windows.c lays out tokens for it;
 * graph.c records and launches; step.c says what a step is; buckets.c how ranks share it,
 * stages.c what it is of a model in stages; evaluate.c what an evaluation is.
 */
#ifndef TK_TRAINER_RUN_RESIDENT_RESIDENT_STATE_H
#define TK_TRAINER_RUN_RESIDENT_RESIDENT_STATE_H

#include "collectives/device.h"
#include "kernels/device.h"
#include "trainer/run/resident/resident.h"
#include "trainer/run/resident/resident_data.h"

/* Of a batch of one size: the whole step, or its two halves around the exchange. Where a step has several micro-batches one
 * of them is recorded, and what stands around them is queued as it is: a few kernels. */
struct recorded {
    int rows, total; /* of the micro-batch, of the step */
    bool last;       /* behind it the gradient is whole: buckets of it are summed */
    int64_t used;    /* how often */
    struct device_graph *half[2];
};

struct resident {
    struct train_parts p;
    struct kctx *ctx;
    struct model *model;
    size_t len; /* parameters; the loss is behind their gradients */
    bool whole; /* a step is one graph */
    bool
        stages; /* the model is cut into several: all micro-batches are under way at once, each with its own activations */
    bool
        separate_loss; /* stages with NCCL: ranks sum the loss and the flags in an exchange of their own, without a gradient */
    float *loss_sum; /* behind the gradient; where `apart`, by itself */
    float *flags;    /* behind the loss, with NCCL; else NULL */
    bool labels;     /* targets are labels; else values */
    int outputs;     /* of a sample: one, or one for each token */
    int classes;
    int micro;     /* micro-batches of a step that are launched one by one; 1 where `stages` */
    bool sequence; /* samples are windows of tokens */
    bool fresh;    /* what is being queued has not run before */

    struct resident_data train, test;
    struct gather_batch batch;
    uint32_t *order; /* this rank's places, in turn; (sampler_len of a whole epoch) */
    int64_t order_len, order_max;
    struct queued_windows windows; /* shared with the device */
    struct sampler sampler;        /* windows: where they are taken from */
    const uint32_t *epoch;
    float *dlogits, *grad, *m, *v;
    float *more;                    /* a micro-batch's gradient, where there are several */
    struct queued_norm *norm;       /* where it is bounded */
    struct queued_loss *loss, *sum; /* of a step; of an evaluation */
    int64_t *first;                 /* an evaluation's next place */
    struct step_state *state;
    struct queued_span *span;
    struct step_order *orders; /* (RESIDENT_RING), shared with the device, as the next */
    struct step_record *records;

    uint32_t *train_items;  /* the split's sample numbers; NULL: all */
    const uint32_t *subset; /* of which subset_items is the copy, for evaluations */
    uint32_t *subset_items;
    const struct resident_data *evaluated;
    int64_t launched, seen;  /* steps; of how many the record was read */
    struct step_record last; /* that was read */
    struct recorded graph[RESIDENT_GRAPHS];
};

/* ring.c: wait for a mark, with NCCL under a deadline; for all that was launched. */
int resident_wait(struct resident *r, int mark, struct err *err) MUST_CHECK;
int resident_settle(struct resident *r, struct err *err) MUST_CHECK;
bool resident_is_ours(struct resident *r);
/* Behind an exchange on `stream` that runs for the first time: so do kernels behind it, and to load those may wait for the
 * device, which has no deadline. Nothing to do for what has run before. */
int resident_arrived(struct resident *r, void *stream, struct err *err) MUST_CHECK;
struct step_order resident_order_of(const struct resident *r, int64_t step, double lr);
int resident_read(struct resident *r, int64_t end, uint32_t *flags, struct err *err) MUST_CHECK;
int resident_check_steps(const struct resident *r, struct err *err) MUST_CHECK;

/* windows.c: memory for them, and those of a step laid out for the next launch. */
int resident_windows_take(struct resident *r, struct err *err) MUST_CHECK;
void resident_windows_give(struct resident *r);
int resident_windows_put(struct resident *r, int64_t step, struct err *err) MUST_CHECK;

/* graph.c: the recording for such a batch, NULL: a failure; queue, record or launch one of its halves; give it up. */
struct recorded *resident_graph(struct resident *r, int rows, int total, bool last,
                                struct err *err) MUST_CHECK;
int resident_run_half(struct resident *r, struct recorded *g, int half, struct err *err) MUST_CHECK;
void resident_forget(struct resident *r, struct recorded *g);

/* buckets.c: gradients are summed in several pieces; the backward pass of a step's last micro-batch, and those sums. `grad` is
 * the micro-batch's own gradient, or the step's. */
bool resident_has_buckets(const struct resident *r);
int resident_queue_buckets(struct resident *r, float *grad, struct err *err) MUST_CHECK;

/* step.c: what is recorded; its samples; and the loss of a forward pass: target and share as in layer.h, gradient NULL in an
 * evaluation. */
int resident_queue_half(struct resident *r, int half, const struct recorded *g, struct err *err) MUST_CHECK;
void resident_queue_samples(struct resident *r, int rows);
int resident_queue_loss(struct resident *r, const struct micro_batch *at, const void *out, float share,
                        struct queued_loss *loss, float *gradient, struct err *err) MUST_CHECK;

/* stages.c: the way of `total` samples through all stages and back; a step's sums, squares of gradients included, over NCCL; and
 * those squares by way of the process; can the first half of a step be recorded? */
int resident_stages_queue(struct resident *r, int total, struct err *err) MUST_CHECK;
int resident_stages_sum(struct resident *r, struct err *err) MUST_CHECK;
int resident_stages_squares(struct resident *r, struct err *err) MUST_CHECK;
bool resident_stages_recordable(const struct resident *r);

/* Where the gradient of a micro-batch's outputs lies; NULL: on another stage than the last. */
static inline void *resident_dlogits(const struct resident *r, const struct micro_batch *at)
{
    const size_t each = r->p.pipeline->forward_len * element_bytes(device_element(r->ctx));

    return r->dlogits ? (char *)r->dlogits + (size_t)at->first * each : NULL;
}

#endif
