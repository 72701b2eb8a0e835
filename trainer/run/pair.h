/* pair.h - the end of a step of two ranks of one host: each sums one half of the gradients and updates its weights with the
 * sums in the same pass; the other half it updates with the sums that the other has left in its gradients.
 *
 *     all arrive | my half: sum -> my weights, and into the other's gradients | all arrive | other half: my weights
 *
 * A sum and an update one after the other write and read those sums once more. What the ranks hand each other are whole
 * halves, one after the other: a processor fetches ahead, and would take lines away from the one who writes them.
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

/* Of fewer gradients, half of which all_reduce sums in one exchange (HOST_SMALL_BYTES), there is nothing to gain. */
enum { PAIR_FLOATS_MIN = 4096 };

/* Two ranks that share memory, both on CPUs (the other one may have found a GPU), and SGD without a bound for the norm: that is
 * known only when all is summed. A collective call. */
int pair_agree(const struct train_parts *p, bool *ret, struct err *err) MUST_CHECK;

/* grad: this rank's, of all parameters, and its loss behind them, in a shared piece. Gradients are used up; the loss becomes
 * the sum of both. With one that is not finite, or told so by COLLECTIVES_NONFINITE, nothing is updated. */
int pair_step(const struct train_parts *p, double lr, float *grad, uint32_t *flags,
              struct err *err) MUST_CHECK;

#endif
