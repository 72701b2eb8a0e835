/* optim.h - the optimiser's state beside the flat parameters, and the learning rate of an epoch.
 *
 * Ownership: optim_make to optim_release; parameters and gradients are the caller's.
 * Numerics:  torch.optim's formulas and order of operations (kernels/adam.h, kernels/sgd.h). Rates are f64
 *            and follow torch.optim.lr_scheduler.StepLR: multiplied again each time, not raised to a power.
 */
#ifndef TK_TRAINER_MODEL_OPTIM_H
#define TK_TRAINER_MODEL_OPTIM_H

#include "common/cleanup.h"
#include "common/err.h"
#include "kernels/kctx.h"
#include "trainer/model/spec.h"

#include <stddef.h>
#include <stdint.h>

struct optim {
    struct optimizer_spec spec;
    size_t len;
    int64_t step; /* taken so far */
    float *m, *v; /* moments; NULL when the optimiser has none */
};

int optim_make(struct optim *o, const struct optimizer_spec *spec, size_t len, struct err *err) MUST_CHECK;
void optim_release(struct optim *o);
#define cleanup_optim __attribute__((cleanup(optim_release)))

void optim_step(struct optim *o, struct kctx *ctx, double lr, float *values, const float *grad);

/* The rate of an epoch (from 1) for `world` ranks. Pure. */
double optim_rate(const struct optimizer_spec *o, const struct schedule_spec *s, int world, int64_t epoch);

#endif
