/* cut.h - how pipeline parallelism cuts a model into stages and a batch into microbatches. Pure.
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
struct pipeline_place {
    int stages, stage;
    int replicas, replica; /* copies of the whole model, data parallel to each other */
};

/* A model that is not cut has one stage, and so has any model in a world of 1. Otherwise there must be as many ranks as
 * stages. */
int pipeline_place_of(const struct model_spec *spec, int rank, int world, struct pipeline_place *ret,
                      struct err *err) MUST_CHECK;

/* The layers of `whole` that make up one stage, with `input` as their input. */
void pipeline_stage_spec(const struct model_spec *whole, int stage, int stages, const struct shape *input,
                         struct model_spec *ret);

/* Samples first..first+rows-1 of a batch: the index-th of its micro-batches. */
struct micro_batch {
    int index, first, rows;
};

/* The number of micro-batches of `rows` samples: `asked`, or fewer so that none is empty. */
int micro_batches(int rows, int asked);

/* Sizes differ by one at most. */
struct micro_batch micro_batch_at(int rows, int asked, int index);

#endif
