/* fill.h - weights from a file into a model, by name.
 *
 * Names:  as the model has them, or as other programs call the same tensors of a GPT-2 (gpt2_names.h); their matrices may lie
 *         either way round, their numbers be f32, f64, bf16 or f16. A file may have more positions than the model: the first
 *         are taken. It must have all of the model's tensors. Masks, second names and tensors that are no floats may be
 *         beside them; other floats may not: they are weights of a larger model.
 * Errors: ERR_INVALID naming the tensor; the model is then what it was.
 */
#ifndef TK_TRAINER_STATE_WEIGHTS_FILL_H
#define TK_TRAINER_STATE_WEIGHTS_FILL_H

#include "trainer/model/model.h"
#include "trainer/state/weights/weights.h"

int fill_model(const struct weights *w, struct model *m, struct err *err) MUST_CHECK;

#endif
