/* state_dict.h - a model and an optimizer as lists of tensors.
 *
 * Ownership: what is made lives in the arena and points into the model's and the optimizer's memory.
 * Errors:    ERR_INVALID naming the tensor that is missing or has another shape.
 */
#ifndef TK_TRAINER_STATE_STATE_DICT_H
#define TK_TRAINER_STATE_STATE_DICT_H

#include "common/arena.h"
#include "trainer/model/model.h"
#include "trainer/model/optim.h"
#include "trainer/state/files/tensor.h"

/* All of these rows (model_state), as PyTorch's module has them: for a .pt file. */
struct tensor_list state_dict_pt(const struct state_row *row, int rows, struct arena *a);

/* For a .safetensors file: without second names, which have no storage of their own there, and with GPT-2's matrices as Hugging Face
 * keeps them. */
struct tensor_list state_dict_safetensors(const struct state_row *row, int rows, struct arena *a);

/* The moments by the names that torch.optim gives them: exp_avg.NAME and exp_avg_sq.NAME, or momentum_buffer.NAME; then `more`. */
struct tensor_list state_dict_optim(const struct optim *o, const struct model *m,
                                    const struct tensor_list *more, struct arena *a);

const struct pt_tensor *state_dict_find(const struct tensor_list *list, const char *name);

/* Whether all of `want` are in the list, with the same types and shapes. */
int state_dict_check(const struct tensor_list *want, const struct tensor_list *list,
                     struct err *err) MUST_CHECK;

/* Copy what state_dict_check has found to where `want` points. */
void state_dict_copy(const struct tensor_list *want, const struct tensor_list *list);

#endif
