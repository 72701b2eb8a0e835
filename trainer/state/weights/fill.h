/* fill.h - weights from a file into a model, by name.
 *
 * Names:  the model's; before them may stand what wrappers add: "module." (DDP), "_orig_mod." (torch.compile) and
 *         "transformer.", which a GPT2Model's lack. The numbers may be f32, f64, bf16 or f16; matrices of GPT-2's blocks may lie as
 *         (in, out), which is Hugging Face's way, or as (out, in). There may be more positions than the model has: the first are taken.
 *         All of the model's tensors have to be there, second names of a matrix need not. What else is there is not looked at.
 * Errors: ERR_INVALID naming the tensor; the model is then what it was.
 */
#ifndef TK_TRAINER_STATE_WEIGHTS_FILL_H
#define TK_TRAINER_STATE_WEIGHTS_FILL_H

#include "trainer/model/model.h"
#include "trainer/state/files/tensor.h"

#include "common/arena.h"

/* Where a row of the model's state comes from. */
struct fill_source {
    const struct pt_tensor *from; /* NULL: a second name that the file does not have */
    bool transposed;              /* it lies as (in, out) */
};

/* Find and check every tensor: one source for each row, in the arena. */
int fill_find(const struct tensor_list *list, const struct model *m, struct arena *a,
              struct fill_source **ret, struct err *err) MUST_CHECK;

/* Copy what fill_find has found. */
void fill_copy(const struct fill_source *from, struct model *m);

#endif
