/* resident_state.h - struct resident, which only the files of resident/ use: device memory, graphs, streams.
 *
 * memory.c allocates and frees; ring.c exchanges orders, records and marks with the device; windows.c
 * prepares tokens; graph.c records and launches graphs; step.c queues a step; buckets.c reduces gradients in
 * buckets; stages.c queues a step of a model in stages; evaluate.c queues an evaluation.
 */
#ifndef TK_TRAINER_RUN_RESIDENT_RESIDENT_STATE_H
#define TK_TRAINER_RUN_RESIDENT_RESIDENT_STATE_H

#include "collectives/device.h"
#include "kernels/ops.h"
#include "trainer/run/resident/resident.h"
#include "trainer/run/resident/resident_data.h"

/* The graphs for one batch size: the whole step, or its two halves around the exchange. If a step has several
 * micro-batches, the graph is one micro-batch, and the few other kernels are queued without recording. */
struct recorded {
    int rows, total; /* samples of the micro-batch, of the step */
    bool last;       /* the step's last micro-batch: its backward pass reduces buckets */
    int64_t used;    /* how often it ran */
    struct device_graph *half[2];
};

struct resident {
    struct train_parts p;
    struct kctx *ctx;
    struct model *model;
    size_t len; /* parameters; the loss follows their gradients in memory */
    bool whole; /* a step is one graph */
    bool
        stages; /* the model has several stages: all micro-batches are in flight at once, each with its own activations */
    bool
        separate_loss; /* stages with NCCL: ranks reduce loss and flags in a separate all-reduce, without a gradient */
    float *loss_sum; /* follows the gradient; with `separate_loss`, a separate allocation */
    float *flags;    /* follow the loss, with NCCL; else NULL */
    bool labels;     /* targets are labels; else values */
    int outputs;     /* per sample: one, or one per token */
    int classes;
    int micro;     /* micro-batches per step that are launched one at a time; 1 with `stages` */
    bool sequence; /* samples are windows of tokens */
    bool fresh;    /* the work being queued has not run before */

    struct resident_data train, test;
    struct gather_batch batch;
    uint32_t *order; /* this rank's positions, in order; (sampler_len of a whole epoch) */
    int64_t order_len, order_max;
    struct queued_windows windows; /* shared with the device */
    struct sampler sampler;        /* chooses the windows */
    const uint32_t *epoch;
    float *dlogits, *grad, *m, *v;
    float *more;                    /* one micro-batch's gradient, if there are several */
    struct queued_norm *norm;       /* with clipping */
    struct queued_loss *loss, *sum; /* loss: of a step; sum: of an evaluation */
    int64_t *first;                 /* the next position of an evaluation */
    struct step_state *state;
    struct queued_span *span;
    struct step_order *orders; /* (RESIDENT_RING), shared with the device; records too */
    struct step_record *records;

    uint32_t *train_items;  /* the split's sample numbers; NULL: all */
    const uint32_t *subset; /* for evaluations; subset_items is its copy on the device */
    uint32_t *subset_items;
    const struct resident_data *evaluated;
    int64_t launched, seen;  /* steps launched; records read */
    struct step_record last; /* the last record read */
    struct recorded graph[RESIDENT_GRAPHS];
};

/* ring.c. resident_settle: wait for all launched work. */
int resident_settle(struct resident *r, struct err *err) MUST_CHECK;
bool resident_is_ours(struct resident *r);
/* Call it after an exchange on `stream`. If the exchange runs for the first time, wait for it under the
 * deadline: kernels after it may have to be loaded, and loading may wait for the device without a
 * deadline. */
int resident_arrived(struct resident *r, void *stream, struct err *err) MUST_CHECK;
struct step_order resident_order_of(const struct resident *r, int64_t step, double lr);
int resident_read(struct resident *r, int64_t end, uint32_t *flags, struct err *err) MUST_CHECK;
int resident_check_steps(const struct resident *r, struct err *err) MUST_CHECK;

/* windows.c: allocate and free memory for windows of tokens, and prepare those of a step for the next
 * launch. */
int resident_windows_take(struct resident *r, struct err *err) MUST_CHECK;
void resident_windows_give(struct resident *r);
int resident_windows_put(struct resident *r, int64_t step, struct err *err) MUST_CHECK;

/* graph.c. resident_graph: find or create the graphs for such a batch; NULL: failure. resident_run_half:
 * queue, record or launch one half. resident_forget: free the graphs. */
struct recorded *resident_graph(struct resident *r, int rows, int total, bool last,
                                struct err *err) MUST_CHECK;
int resident_run_half(struct resident *r, struct recorded *g, int half, struct err *err) MUST_CHECK;
void resident_forget(struct resident *r, struct recorded *g);

/* buckets.c. resident_has_buckets: whether gradients are reduced in several pieces. resident_queue_buckets:
 * queue the backward pass of a step's last micro-batch with these reductions; `grad` is that micro-batch's
 * gradient, or the step's. */
bool resident_has_buckets(const struct resident *r);
int resident_queue_buckets(struct resident *r, float *grad, struct err *err) MUST_CHECK;

/* step.c: queue one half of a step; its samples; the loss of a forward pass (target and share as in layer.h;
 * gradient NULL: an evaluation). */
int resident_queue_half(struct resident *r, int half, const struct recorded *g, struct err *err) MUST_CHECK;
void resident_queue_samples(struct resident *r, int rows);
int resident_queue_loss(struct resident *r, const struct micro_batch *at, const void *out, float share,
                        struct queued_loss *loss, float *gradient, struct err *err) MUST_CHECK;

/* stages.c. resident_stages_queue: queue both passes of `total` samples through all stages.
 * resident_stages_sum: queue a step's sums, with the squares of gradients, over NCCL.
 * resident_stages_squares: sum the squares on the host. resident_stages_recordable: whether the first half of
 * a step can be recorded. */
int resident_stages_queue(struct resident *r, int total, struct err *err) MUST_CHECK;
int resident_stages_sum(struct resident *r, struct err *err) MUST_CHECK;
int resident_stages_squares(struct resident *r, struct err *err) MUST_CHECK;
bool resident_stages_recordable(const struct resident *r);

/* The gradient of a micro-batch's outputs; NULL on all stages but the last. */
static inline void *resident_dlogits(const struct resident *r, const struct micro_batch *at)
{
    const size_t each = r->p.pipeline->forward_len * element_bytes(device_element(r->ctx));

    return r->dlogits ? (char *)r->dlogits + (size_t)at->first * each : NULL;
}

#endif
