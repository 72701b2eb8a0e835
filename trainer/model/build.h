/* build.h - the steps of model_make, which only plan.c, memory.c and model.c use. */
#ifndef TK_TRAINER_MODEL_BUILD_H
#define TK_TRAINER_MODEL_BUILD_H

#include "trainer/model/model.h"

/* Fill the layers and rows of a model that has only batch_max and numbers set. ERR_INVALID names the
 * layer. */
int model_plan(struct model *m, const struct model_spec *spec, struct err *err) MUST_CHECK;

/* Allocate a planned model's parameters and buffers, and its activations. ERR_FATAL: no memory. */
int model_make_state(struct model *m, struct err *err) MUST_CHECK;
int model_make_activations(struct model *m, struct err *err) MUST_CHECK;

/* The name of a layer's parameter or buffer in exports. */
void model_name(const struct layer *l, const char *suffix, char name[static PARAM_NAME_BYTES]);

#endif
