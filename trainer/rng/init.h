/* init.h - draw the initial weights of torch.nn layers, bit for bit as PyTorch. model/layers/ call it.
 *
 * Order:     nn.Linear and nn.Conv2d draw their weight, then their bias, in their constructor: call it once
 *            per layer, in the order of the module's __init__.
 * Ownership: the caller owns the buffers; `bias` NULL is bias=False, which draws nothing.
 * Shapes:    PyTorch's own: weight (out, in) or (out, in / groups, kh, kw), row-major; bias (out).
 */
#ifndef TK_TRAINER_RNG_INIT_H
#define TK_TRAINER_RNG_INIT_H

#include "trainer/rng/torch_rng.h"

/* Both layers' default: weight by kaiming_uniform_(a = sqrt(5)), bias by uniform_(-1/sqrt(fan_in), ...).
 * fan_in is the product of the weight's dimensions except the first; with 0 the bias is unchanged, as in
 * PyTorch. */
void init_default(struct torch_rng *g, float *weight, size_t weight_len, float *bias, size_t bias_len,
                  size_t fan_in);

#endif
