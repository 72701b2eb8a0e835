/* snapshot.h - what the cache and the memory of a job say, as the input of one plan.
 *
 * Ownership: arrays live in the arena; what they point to stays in the stores until the next turn of the
 *            loop.
 */
#ifndef TK_OPERATOR_SNAPSHOT_H
#define TK_OPERATOR_SNAPSHOT_H

#include "operator/keystate.h"

/* All of *in but now_ms and tensorboard_image, which are left 0. */
void snapshot_take(struct plan_input *in, struct arena *a, const struct watches *w,
                   const struct trainjob *job, const struct keystate *k);

#endif
