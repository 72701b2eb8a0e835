/* loss.h - compute the loss of a batch and its gradient, by the kernel of the spec's loss. run/train_parts.c
 * calls it.
 *
 * Ownership: everything is borrowed for the call.
 * Errors:    ERR_INVALID (a label is not a class).
 */
#ifndef TK_TRAINER_MODEL_LOSS_H
#define TK_TRAINER_MODEL_LOSS_H

#include "common/cleanup.h"
#include "common/err.h"
#include "kernels/kctx.h"
#include "trainer/model/spec.h"

#include <stdint.h>

/* A batch's targets: values if loss_wants_values, else labels. */
struct loss_target {
    const int32_t *labels; /* (rows) */
    const float *values;   /* (rows, width) */
};

struct loss_result {
    double sum;  /* over the rows: divide by their number, after adding batches and ranks */
    int correct; /* rows whose largest output is at the label; 0 for values */
};

bool loss_wants_values(const struct loss_spec *s);

/* dout (rows, width): written, the gradient of the mean; NULL: an evaluation. */
int loss_of(const struct loss_spec *s, struct kctx *ctx, struct loss_result *ret, float *dout,
            const float *out, const struct loss_target *target, int rows, int width,
            struct err *err) MUST_CHECK;

#endif
