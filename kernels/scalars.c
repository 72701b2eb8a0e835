/* scalars.c - compute an optimiser step's scalars in f64 and round them to f32 once. */
#include "kernels/scalars.h"

#include <math.h>

struct update_scalars adam_scalars_of(const struct adam_options *o, int64_t step)
{
    double correction1 = 1 - pow(o->beta1, (double)step);
    double correction2 = 1 - pow(o->beta2, (double)step);
    const struct adam_scalars s = {
        .one_minus_beta1 = (float)(1 - o->beta1),
        .beta2 = (float)o->beta2,
        .one_minus_beta2 = (float)(1 - o->beta2),
        .bc2_sqrt = (float)sqrt(correction2),
        .eps = (float)o->eps,
        .minus_step_size = (float)-(o->lr / correction1),
        .decay = o->decoupled ? (float)(1 - o->lr * o->weight_decay) : 1,
        .l2 = o->decoupled ? 0 : (float)o->weight_decay,
    };
    return (struct update_scalars){.rule = UPDATE_ADAM, .adam = s};
}

struct update_scalars sgd_scalars_of(const struct sgd_options *o)
{
    const struct sgd_scalars s = {.minus_lr = (float)-o->lr,
                                  .momentum = (float)o->momentum,
                                  .one_minus_dampening = (float)(1 - o->dampening),
                                  .l2 = (float)o->weight_decay,
                                  .nesterov = o->nesterov};
    return (struct update_scalars){.rule = UPDATE_SGD, .sgd = s};
}
