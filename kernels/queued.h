/* queued.h - what only a device with graphs has: operations whose inputs and results stay in its memory, so that a step can
 * be recorded once and run again and again without the process looking.
 *
 * Ownership: all pointers are to device memory (device.h) unless said otherwise.
 * Numerics:  sums are taken in a fixed order, never by atomics: the same bits in every run on the same kind of GPU.
 */
#ifndef TK_KERNELS_QUEUED_H
#define TK_KERNELS_QUEUED_H

#include "kernels/kctx.h"
#include "kernels/linear.h"
#include "kernels/scalars.h"

#include <stdint.h>

/* A loss in device memory. */
struct queued_loss {
    double sum; /* over rows: see cross_entropy.h and mse.h */
    int32_t correct;
    int32_t bad_row; /* the first row whose label is no class, else -1; the sum is not a number then */
};

/* The gradient is that of the mean over rows, times `share` (rounded after the division, as on the CPU); so is *mean, the
 * mean loss of the rows (NULL: not wanted). With `add` the sums go on from what *result holds. */
typedef void queue_cross_entropy_op(struct kctx *ctx, struct queued_loss *result, float *mean,
                                    float *dlogits, /* or NULL */
                                    const float *logits, const int32_t *labels, int rows, int classes,
                                    double smoothing, float share, bool add);
typedef void queue_mse_op(struct kctx *ctx, struct queued_loss *result, float *mean,
                          float *dout, /* or NULL */
                          const float *out, const float *target, int rows, int cols, float share, bool add);

/* A classifier (classifier.h), its weight and inputs of the context's elements: the loss's sum over the rows, *mean that
 * sum times `share`, and the gradients of that; din and dweight NULL: an evaluation. Logits exist for as many rows at a time
 * as the reserved scratch memory holds: queued_classifier_bytes are enough for speed, a row's are needed. */
typedef void queue_classifier_op(struct kctx *ctx, const struct linear_shape *s, struct queued_loss *result,
                                 float *mean, void *din, /* (R,I) written, or NULL */
                                 float *dweight,         /* (O,I) written, or NULL */
                                 const void *in,         /* (R,I) */
                                 const void *weight,     /* (O,I) */
                                 const int32_t *labels,  /* (R) */
                                 float share, bool add);

/* Rows of logits begin at multiples of so many elements: 16 bytes, and whole lines, whatever the number of classes. */
enum { QUEUED_LOGITS_ALIGN = 64, QUEUED_LOGITS_MAX = 1 << 28 };

static inline size_t queued_classifier_bytes(const struct linear_shape *s)
{
    size_t row = ((size_t)s->out + QUEUED_LOGITS_ALIGN - 1) / QUEUED_LOGITS_ALIGN * QUEUED_LOGITS_ALIGN;
    size_t fit = QUEUED_LOGITS_MAX / row;
    size_t rows = fit > (size_t)s->rows ? (size_t)s->rows : fit;

    return (rows ? rows : 1) * row * sizeof(float);
}

/* A data set in device memory. A sample's input becomes floats as trainer/run/feed.h decodes it. */
struct gather {
    const uint8_t *bytes;  /* inputs: one of the two, */
    const float *floats;   /* decoded already */
    size_t len;            /* of an input */
    const float *table;    /* (stats, 256): what a byte becomes */
    int stats;             /* element i of an input goes by row i % stats */
    const int32_t *labels; /* targets: one of the two */
    const float *values;
    int value_len;
};

/* Where a batch goes. Of labels and values, one. */
struct gather_batch {
    float *x;          /* (rows, len) */
    int32_t *labels;   /* (rows) */
    float *values;     /* (rows, value_len) */
    uint32_t *samples; /* (rows) their places in the order, as dropout wants them */
};

/* What the process says about a step when it launches it. The scalars: without weight decay, and with. */
struct step_order {
    int64_t first;  /* place of the batch in the order */
    int64_t step;   /* of the run, for dropout */
    uint32_t flags; /* that this rank raises */
    struct update_scalars update[2];
};

/* What a step leaves behind. */
struct step_record {
    float loss;     /* mean over all ranks */
    float own;      /* this rank's */
    float norm;     /* of the gradient, before it was bounded; NaN where nobody bounds it */
    int32_t halted; /* the loss of this step, or of one before, is not finite: parameters stay as they were */
    uint32_t flags; /* that any rank has raised; 0 where none ride */
};

enum { QUEUED_FLAGS = 16 };

/* By what gradients of such a norm are multiplied: 1, or less where it is above a bound (torch's clip_grad_norm_, but for one
 * norm over all). */
struct queued_norm {
    double squares;
    float norm, scale;
};

/* sum += more, of gradients: f32 whatever the elements. */
typedef void queue_accumulate_op(struct kctx *ctx, float *sum, const float *more, size_t n);

/* Of n gradients: the sum of their squares, in f64; and the rest of *norm from that. */
typedef void queue_squares_op(struct kctx *ctx, struct queued_norm *norm, const float *grad, size_t n);
typedef void queue_bound_op(struct kctx *ctx, struct queued_norm *norm, double bound);

/* Where the steps stand. */
struct step_state {
    struct step_order now;
    int64_t steps; /* done */
    int32_t halted;
    double own_sum, mean_sum; /* of losses */
};

/* What begins a step: orders[steps % ring] becomes state->now, *own a loss of no rows, each flag 0 or 1. */
struct queued_begin {
    struct step_state *state;
    const struct step_order *orders;
    int ring;
    struct queued_loss *own;
    float *flags; /* or NULL */
};

/* Samples items[order[*first + i]], i in 0..rows-1 (without items the places themselves,
 * without an order *first + i for its entries). With `begin` (first is then NULL) this begins a step as queue_step_begin does, and
 * takes the samples from its order's place on. What the arguments point to, but for first and order, is read at once. */
typedef void queue_gather_op(struct kctx *ctx, const struct gather *g, const struct gather_batch *to,
                             const uint32_t *items, const uint32_t *order, const int64_t *first,
                             const struct queued_begin *begin, int rows);

/* Windows of tokens that the process has laid out, a slot for each step of a ring, in memory that both share. */
struct queued_windows {
    float *x;          /* (ring, rows, time) tokens, as an embedding reads them */
    int32_t *labels;   /* (ring, rows, time) what follows each */
    uint32_t *samples; /* (ring, rows) */
    int64_t rows;      /* of a slot */
    int time, ring;
};

/* The slot of state's step, `rows` of its rows from state->now.first on, into a batch. */
typedef void queue_windows_op(struct kctx *ctx, const struct queued_windows *from,
                              const struct gather_batch *to, const struct step_state *state, int rows);

/* Flags (NULL: none ride): a float for each of the QUEUED_FLAGS lowest bits, 0 or 1 at the beginning, and at the end the sum
 * over ranks: a rank has raised it when that is above 0.
 *
 * Begin: what orders[steps % ring] says, becomes state->now, and *own a loss of no rows. Advance: a part of the step's batch
 * is done, of so many places. End: record[steps % ring], sums, steps + 1. Orders and records are device_shared memory: the
 * process writes an order before the launch, and reads a record behind its mark. */
typedef void queue_step_begin_op(struct kctx *ctx, const struct queued_begin *begin);
typedef void queue_step_advance_op(struct kctx *ctx, struct step_state *state, int places);
typedef void queue_step_end_op(struct kctx *ctx, struct step_state *state, const struct queued_loss *own,
                               int rows, const float *loss, const struct queued_norm *norm, /* or NULL */
                               const float *flags, struct step_record *records, int ring);

/* Neighbouring parameters that are decayed alike. The last span ends with the parameters. */
struct queued_span {
    int64_t end;
    int32_t decay; /* which scalars */
};

/* What is trained, in f32, and the copies that passes read instead where elements are bf16. */
struct queued_params {
    float *p;   /* (n) */
    void *copy; /* (n) bf16, to the nearest, ties to even; NULL: passes read p */
    size_t n;
};

/* Writes the copies. */
typedef void queue_round_op(struct kctx *ctx, const struct queued_params *w);

/* One step of an optimizer with the gradients times *scale (NULL: as they are), by state->now's scalars, which are of that rule,
 * copies in the same pass; none when the run is halted, or *loss is not finite. m, v (update.h) and g have as many elements
 * as p. */
typedef void queue_update_op(struct kctx *ctx, enum update_rule rule, const struct step_state *state,
                             const float *loss, const float *scale, const struct queued_span *span, int spans,
                             const struct queued_params *w, float *m, float *v, const float *g);

/* x[0] += 1 */
typedef void queue_count_op(struct kctx *ctx, int64_t *x);

#endif
