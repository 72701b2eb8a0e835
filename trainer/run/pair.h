/* pair.h - sum and update in one pass for two ranks of one host: each rank sums one half of the gradients and updates its
 * weights with the sums in the same pass; it updates the other half with the sums that the other rank wrote to its
 * gradients.
 *
 *     all arrive | my half: sum -> my weights, and into the other's gradients | all arrive | other half: my weights
 *
 * A separate sum and update would write and read the sums once more. The ranks exchange contiguous halves, not
 * interleaved
 * blocks: hardware prefetching would take cache lines away from the rank that writes them.
 *
 * Ownership: everything is borrowed for the call.
 * Order:     a collective call.
 * Units:     timeout_ms bounds a step's two meetings together.
 * Errors:    those of the collectives. Behind a failed step weights are unspecified.
 * Numerics:  all_reduce's and optim_step's, bit for bit.
 */
#ifndef TK_TRAINER_RUN_PAIR_H
#define TK_TRAINER_RUN_PAIR_H

#include "trainer/run/train.h"

/* With fewer gradients all_reduce sums them in one exchange (HOST_SMALL_BYTES), and pairing gains nothing. */
enum { PAIR_FLOATS_MIN = 4096 };

/* Whether pairing applies: two ranks that share memory, both on CPUs, SGD, and no bound on the gradients' norm, which is
 * known only after the whole sum. A collective call. */
int pair_agree(const struct train_parts *p, bool *ret, struct err *err) MUST_CHECK;

/* grad: this rank's, of all parameters, and its loss behind them, in a shared piece. Gradients are used up; the loss
 * becomes
 * the sum of both. With one that is not finite, or told so by COLLECTIVES_NONFINITE, nothing is updated. */
int pair_step(const struct train_parts *p, double lr, float *grad, uint32_t *flags,
              struct err *err) MUST_CHECK;

#endif
