/* scalars.h - the scalars of one optimiser step (learning rate, bias corrections), rounded to f32 once by the host for
 * every device.
 */
#ifndef TK_KERNELS_SCALARS_H
#define TK_KERNELS_SCALARS_H

#include <stdbool.h>

struct adam_scalars {
    float one_minus_beta1, beta2, one_minus_beta2, bc2_sqrt, eps, minus_step_size;
    float decay; /* p *= decay first; 1 leaves it */
    float l2;    /* g += l2 * p first; 0 leaves it */
};

struct sgd_scalars {
    float minus_lr, momentum, one_minus_dampening, l2;
    bool nesterov;
};

#endif
