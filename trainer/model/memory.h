/* memory.h - the steps in which a model is made, for plan.c, memory.c and model.c alone. */
#ifndef TK_TRAINER_MODEL_MEMORY_H
#define TK_TRAINER_MODEL_MEMORY_H

#include "trainer/model/model.h"

/* Fill the layers and rows of a model that has nothing but its batch_max and numbers. ERR_INVALID names the layer. */
int model_plan(struct model *m, const struct model_spec *spec, struct err *err) MUST_CHECK;

/* Of a planned model. Errors: ERR_FATAL no memory. */
int model_make_state(struct model *m, struct err *err) MUST_CHECK;
int model_make_activations(struct model *m, struct err *err) MUST_CHECK;

/* What exports call a parameter or a buffer of a layer. */
void model_name(const struct layer *l, const char *suffix, char name[static PARAM_NAME_BYTES]);

#endif
