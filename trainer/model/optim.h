/* optim.h - an optimizer's state, its step, and the table of its kinds. To add a kind, define a struct
 * optimizer_ops in a file of optimizers/ and add a row to OPTIMIZERS; a new update rule goes into
 * kernels/scalars.h. Presets, checkpoints, the manual and both devices use the table.
 *
 * Ownership: optim_make to optim_release; the caller owns parameters and gradients.
 * Numerics:  torch.optim's formulas and order of operations (kernels/scalars.h). Rates are f64;
 *            step and multi_step match torch.optim.lr_scheduler bit for bit (up to 1024 multiplications, then
 *            a power), the others to 1e-12: torch computes a rate from the previous one, we compute it from
 *            the time. After its end a cosine stays at min_lr.
 */
#ifndef TK_TRAINER_MODEL_OPTIM_H
#define TK_TRAINER_MODEL_OPTIM_H

#include "common/cleanup.h"
#include "common/err.h"
#include "kernels/kctx.h"
#include "kernels/scalars.h"
#include "trainer/model/model.h"
#include "trainer/model/spec.h"

#include <stddef.h>
#include <stdint.h>

struct optimizer_ops {
    const char *type;
    const struct spec_option *options; /* in addition to those of struct optimizer_spec */
    double weight_decay;               /* default */
    enum update_rule rule;

    /* torch.optim's names of the moments m and v; NULL: it has none. */
    const char *moment[2];
    int (*moments)(const struct optimizer_spec *o); /* the number of moments with these options; NULL: all */

    /* Check that the options are compatible; NULL: they always are. ERR_INVALID: *ret_key is the option to
     * name in the message. */
    int (*check)(const struct optimizer_spec *o, const char **ret_key, struct err *err);

    /* The scalars of step `step` (from 1) for the kernels, for parameters with that weight decay. */
    struct update_scalars (*scalars)(const struct optimizer_spec *o, double lr, double weight_decay,
                                     int64_t step);
};

/* All kinds, in the order of the manual: optimizer_NAME, which a file of optimizers/ defines. */
#define OPTIMIZERS(X)                                                                                        \
    X(sgd)                                                                                                   \
    X(adam)                                                                                                  \
    X(adamw)

#define OPTIMIZER_DECLARE(name) extern const struct optimizer_ops optimizer_##name;
OPTIMIZERS(OPTIMIZER_DECLARE)
#undef OPTIMIZER_DECLARE

/* The table and its types, both ended by NULL. */
extern const struct optimizer_ops *const optimizer_kinds[];
extern const char *const optimizer_types[];

/* An optimizer of that kind with all options at their defaults. */
struct optimizer_spec optimizer_spec_of(const struct optimizer_ops *ops, double lr);

/* Adjacent parameters with the same weight decay. */
struct optim_span {
    size_t offset, len;
    bool decay;
};

struct optim {
    struct optimizer_spec spec;
    size_t len;   /* parameters */
    int64_t step; /* taken so far */
    float *m, *v; /* moments; NULL: none */
    int spans;
    struct optim_span *span;
    double *square;   /* sums of squares per block of gradients, with clipping; else NULL */
    double grad_norm; /* of the last step, before clipping; NaN: not known */
};

/* For the parameters of these rows (of a model), which have no gaps. */
int optim_make(struct optim *o, const struct optimizer_spec *spec, const struct param_row *row, int rows,
               struct err *err) MUST_CHECK;
void optim_release(struct optim *o);
#define cleanup_optim __attribute__((cleanup(optim_release)))

/* optim_squares: the sum of the gradients' squares; 0 without clipping. optim_step: take a step; `squares` is
 * the sum over all stages, by which it first clips the gradients, as torch's clip_grad_norm_ does. */
double optim_squares(struct optim *o, struct kctx *ctx, const float *grad);
void optim_step(struct optim *o, struct kctx *ctx, double lr, float *values, float *grad, double squares);

/* The scalars of step `step` (from 1) for the kernels. */
struct update_scalars optim_scalars(const struct optim *o, double lr, bool decay, int64_t step);

/* The schedule with `total` set for a run of `epochs` epochs of `steps` steps. Pure, like the next
 * function. */
struct schedule_spec optim_schedule(const struct schedule_spec *s, int64_t epochs, int64_t steps);

/* The learning rate for `world` ranks in epoch `epoch` (from 1), at step `step` of the run (from 0; may be a
 * fraction, see cursor_time). */
double optim_rate(const struct optimizer_spec *o, const struct schedule_spec *s, int world, int64_t epoch,
                  double step);

#endif
