/* init.h - draw the initial weights of torch.nn layers, bit for bit as PyTorch.
 *
 * Order:     nn.Linear and nn.Conv2d draw their weight, then their bias, when they are built: call once per layer in
 *            the order in which the module's __init__ builds them.
 * Ownership: the caller owns the buffers; `bias` NULL is bias=False (nothing is drawn for it).
 * Shapes:    PyTorch's own: weight (out, in) or (out, in / groups, kh, kw), row-major; bias (out).
 */
#ifndef TK_TRAINER_RNG_INIT_H
#define TK_TRAINER_RNG_INIT_H

#include "trainer/rng/torch_rng.h"

/* Both layers' default: weight by kaiming_uniform_(a = sqrt(5)), bias by uniform_(-1/sqrt(fan_in), ...).
 * fan_in is the product of weight's dimensions but the first; 0 leaves the bias alone, as PyTorch does. */
void init_default(struct torch_rng *g, float *weight, size_t weight_len, float *bias, size_t bias_len,
                  size_t fan_in);

#endif
