/* scalars.h - the rules by which optimizers update parameters, and the scalars of a step of each (learning rate, bias
 * corrections), computed in f64 and rounded to f32 once by the host for every device. A new rule is a row of enum update_rule, its
 * scalars here, and its arithmetic in cpu/isa/optim.c and cuda/optim.cu.
 */
#ifndef TK_KERNELS_SCALARS_H
#define TK_KERNELS_SCALARS_H

#include <stdbool.h>
#include <stdint.h>

enum update_rule { UPDATE_ADAM, UPDATE_SGD };

/* Adam and AdamW, in torch.optim's order of operations:
 *
 *     m = lerp(m, g, 1 - beta1)         v = v beta2 + (1 - beta2) g g
 *     p = p - (lr / (1 - beta1^t)) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 */
struct adam_options {
    double lr, beta1, beta2, eps;
    double weight_decay;
    bool decoupled; /* AdamW: p shrinks by lr * weight_decay; otherwise weight_decay * p is added to g */
};

struct adam_scalars {
    float one_minus_beta1, beta2, one_minus_beta2, bc2_sqrt, eps, minus_step_size;
    float decay; /* p *= decay first; 1 leaves it */
    float l2;    /* g += l2 * p first; 0 leaves it */
};

/* SGD, likewise; its m is torch's momentum_buffer:
 *
 *     g' = g + weight_decay p      m = momentum m + (1 - dampening) g'      p = p - lr m
 *
 * Without momentum there is no m, and p changes by g'; with nesterov by g' + momentum m. torch starts with m = g': pass dampening
 * 0 in the first step.
 */
struct sgd_options {
    double lr, momentum, dampening, weight_decay;
    bool nesterov;
};

struct sgd_scalars {
    float minus_lr, momentum, one_minus_dampening, l2;
    bool nesterov;
};

struct update_scalars {
    enum update_rule rule;
    union {
        struct adam_scalars adam;
        struct sgd_scalars sgd;
    };
};

/* step: 1 for the first. */
struct update_scalars adam_scalars_of(const struct adam_options *options, int64_t step);
struct update_scalars sgd_scalars_of(const struct sgd_options *options);

#endif
