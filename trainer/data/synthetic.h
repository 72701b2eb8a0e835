/* synthetic.h - generate a synthetic regression data set from a seed, bit for bit as PyTorch does. Pure.
 *
 * Uniform:  each row is torch.rand(inputs), then torch.rand(outputs): nothing to learn but their means. Made for
 *           programs that draw their data so.
 * Teacher:  x = torch.rand(items, channels, rows, cols); w = torch.rand(outputs, channels * rows * cols) * 2 - 1; the
 *           answers are w (x - 1/2), added in f64. The label is the place of the
 *           largest one; values are the answers themselves, rounded to f32.
 *
 * Order:    draws from `g` in that order; synthetic_draws of its 32-bit words.
 * Shapes:   x is drawn channels first, as PyTorch has it, and written channels last.
 */
#ifndef TK_TRAINER_DATA_SYNTHETIC_H
#define TK_TRAINER_DATA_SYNTHETIC_H

#include "common/cleanup.h"
#include "trainer/data/layout.h"
#include "trainer/rng/torch_rng.h"

enum synthetic_rule { SYNTHETIC_TEACHER, SYNTHETIC_UNIFORM };

enum { SYNTHETIC_OUTPUTS_MAX = 4096 };

/* `outputs` of the teacher, or numbers of a target. */
struct synthetic {
    enum synthetic_rule rule;
    int32_t outputs;
};

/* Fill the training part of *d, a view of enough memory. Uniform data have values as targets. ERR_FATAL: no memory. */
int synthetic_make(const struct synthetic *s, struct torch_rng *g, struct dataset *d,
                   struct err *err) MUST_CHECK;

uint64_t synthetic_draws(const struct synthetic *s, const struct data_layout *l);

#endif
