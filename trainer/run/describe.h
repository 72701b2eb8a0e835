/* describe.h - write a run's options, layer graph and weight histograms as TensorBoard events.
 *
 * Ownership: everything is borrowed for the call; events may be NULL, and then nothing is done.
 * Errors:    those of events.h.
 */
#ifndef TK_TRAINER_RUN_DESCRIBE_H
#define TK_TRAINER_RUN_DESCRIBE_H

#include "trainer/cli/config.h"
#include "trainer/events/events.h"
#include "trainer/model/model.h"

/* The preset's text, the hyperparameters (`group` joins the attempts of one run) and the graph of layers. */
int describe_run(struct events *e, const struct config *cfg, const char *group, int world,
                 struct err *err) MUST_CHECK;

/* A histogram of every parameter. */
int describe_weights(struct events *e, struct model *m, int64_t step, struct err *err) MUST_CHECK;

/* The filters of the first layer with weights, side by side: of a convolution its kernels, of a linear layer over an
 * image of rows x cols its rows as such images; the first channel of each. Nothing is written if the weights have no
 * such shape. */
int describe_filters(struct events *e, struct model *m, const struct shape *input, int64_t step,
                     struct err *err) MUST_CHECK;

#endif
