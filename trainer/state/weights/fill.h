/* fill.h - copy weights from a file into a model, by name. snapshot.c and init_from.c call it.
 *
 * Names:  the model's, optionally with the prefixes of wrappers: "module." (DDP), "_orig_mod."
 *         (torch.compile), and with or without "transformer." (a GPT2Model has none).
 * Data:   f32, f64, bf16 or f16. Matrices of GPT-2's blocks may be (in, out), Hugging Face's layout, or (out,
 *         in). If the file has more positions than the model, the first ones are used. All of the model's
 *         tensors must be there, except second names of a matrix. Other tensors are ignored.
 * Errors: ERR_INVALID names the tensor; the model is then unchanged. */
#ifndef TK_TRAINER_STATE_WEIGHTS_FILL_H
#define TK_TRAINER_STATE_WEIGHTS_FILL_H

#include "trainer/model/model.h"
#include "trainer/state/files/tensor.h"

#include "common/arena.h"

/* The source of a row of the model's state. */
struct fill_source {
    const struct pt_tensor *from; /* NULL: a second name that is not in the file */
    bool transposed;              /* the file has it as (in, out) */
};

/* Find and check every tensor: one source for each row, in the arena. */
int fill_find(const struct tensor_list *list, const struct model *m, struct arena *a,
              struct fill_source **ret, struct err *err) MUST_CHECK;

/* Copy the tensors that fill_find has found. */
void fill_copy(const struct fill_source *from, struct model *m);

#endif
