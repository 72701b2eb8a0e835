/* cut.h - split a model into pipeline stages and a batch into micro-batches. pipeline.c and session_batch.c
 * call it. Pure.
 *
 * Errors: ERR_INVALID naming the field.
 */
#ifndef TK_TRAINER_PIPELINE_CUT_H
#define TK_TRAINER_PIPELINE_CUT_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/model/spec.h"

enum { MICRO_BATCHES_MAX = 1024 };

/* Ranks are either the stages of one model or copies of the whole one. */
struct pipeline_position {
    int stages, stage;
    int replicas, replica; /* copies of the whole model, data parallel to each other */
};

/* A model that is not split has one stage, and so has any model with world 1. Otherwise world must equal the
 * number of stages. */
int pipeline_position_of(const struct model_spec *spec, int rank, int world, struct pipeline_position *ret,
                         struct err *err) MUST_CHECK;

/* The spec of one stage of `whole`, with input shape `input`. */
void pipeline_stage_spec(const struct model_spec *whole, int stage, int stages, const struct shape *input,
                         struct model_spec *ret);

/* Micro-batch `index` of a batch: samples first .. first + rows - 1. */
struct micro_batch {
    int index, first, rows;
};

/* The number of micro-batches of `rows` samples: `asked`, or fewer, so that none is empty. */
int micro_batches(int rows, int asked);

/* Sizes differ by one at most. */
struct micro_batch micro_batch_at(int rows, int asked, int index);

#endif
