/* optim.h - an optimizer's state beside the flat parameters, its step, and the table of kinds there are. A new kind is a file in
 * optimizers/ that defines a struct optimizer_ops, and a row of OPTIMIZERS; a rule of its own is one more of kernels/scalars.h.
 * Presets, checkpoints, the manual and both devices use the table.
 *
 * Ownership: optim_make to optim_release; parameters and gradients are the caller's.
 * Numerics:  torch.optim's formulas and order of operations (kernels/scalars.h). Rates are f64;
 *            those of step and multi_step are torch.optim.lr_scheduler's to the bit (but for more than 1024
 *            multiplications, which end in a power), the others to 1e-12: there torch goes from one rate to
 *            the next, and we compute each from its time. A cosine stays at its least rate behind its end.
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
    const struct spec_option *options; /* besides those of all (struct optimizer_spec) */
    double weight_decay;               /* unless the preset says otherwise */
    enum update_rule rule;

    /* What torch.optim calls the numbers that it keeps of each parameter: m, then v; NULL: it has no such. */
    const char *moment[2];
    int (*moments)(const struct optimizer_spec *o); /* how many of them with these options; NULL: all */

    /* NULL: any options do. ERR_INVALID: they do not go together; *ret_key is the one to be named. */
    int (*check)(const struct optimizer_spec *o, const char **ret_key, struct err *err);

    /* The scalars that the kernels get for a step (from 1), for parameters with that weight decay. */
    struct update_scalars (*scalars)(const struct optimizer_spec *o, double lr, double weight_decay,
                                     int64_t step);
};

/* The kinds there are, in the order of the manual: optimizer_NAME, which a file of optimizers/ defines. */
#define OPTIMIZERS(X)                                                                                        \
    X(sgd)                                                                                                   \
    X(adam)                                                                                                  \
    X(adamw)

#define OPTIMIZER_DECLARE(name) extern const struct optimizer_ops optimizer_##name;
OPTIMIZERS(OPTIMIZER_DECLARE)
#undef OPTIMIZER_DECLARE

/* The table and the types in it, both ended by NULL. */
extern const struct optimizer_ops *const optimizer_kinds[];
extern const char *const optimizer_types[];

/* One of that kind with every option at its default. */
struct optimizer_spec optimizer_spec_of(const struct optimizer_ops *ops, double lr);

/* Neighbouring parameters that are decayed alike. */
struct optim_span {
    size_t offset, len;
    bool decay;
};

struct optim {
    struct optimizer_spec spec;
    size_t len;   /* parameters */
    int64_t step; /* taken so far */
    float *m, *v; /* its moments; NULL when there is none */
    int spans;
    struct optim_span *span;
    double *square;   /* of blocks of gradients, where their norm is bounded; else NULL */
    double grad_norm; /* of the last step, before it was bounded; NaN: unknown */
};

/* For parameters that lie as these rows say (of a model), without gaps. */
int optim_make(struct optim *o, const struct optimizer_spec *spec, const struct param_row *row, int rows,
               struct err *err) MUST_CHECK;
void optim_release(struct optim *o);
#define cleanup_optim __attribute__((cleanup(optim_release)))

/* The sum of its gradients' squares (0 where their norm is not bounded), and the step, given that of all stages: gradients are
 * scaled down to `clip` first, as torch's clip_grad_norm_ does. */
double optim_squares(struct optim *o, struct kctx *ctx, const float *grad);
void optim_step(struct optim *o, struct kctx *ctx, double lr, float *values, float *grad, double squares);

/* The scalars that the kernels get for the step with that number (from 1). */
struct update_scalars optim_scalars(const struct optim *o, double lr, bool decay, int64_t step);

/* The schedule of a run of so many epochs of so many steps: its open end set. Pure, as the next. */
struct schedule_spec optim_schedule(const struct schedule_spec *s, int64_t epochs, int64_t steps);

/* The rate for `world` ranks in an epoch (from 1) and at a step of the run (from 0), or between two steps (cursor_time). */
double optim_rate(const struct optimizer_spec *o, const struct schedule_spec *s, int world, int64_t epoch,
                  double step);

#endif
