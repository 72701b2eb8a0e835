/* snapshot.h - collect the input of one plan from the caches and the keystate of a job.
 *
 * Ownership: arrays live in the arena; what they point to stays valid in the stores until the next turn of
 *            the loop.
 */
#ifndef TK_OPERATOR_SNAPSHOT_H
#define TK_OPERATOR_SNAPSHOT_H

#include "operator/keystate.h"

/* Fills all of *in but job_is_new, now_ms, create_bytes, tensorboard_image and launcher_image, which are left 0. */
void snapshot_take(struct plan_input *in, struct arena *a, const struct watches *w,
                   const struct trainjob *job, const struct keystate *k);

#endif
