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

/* These rows (of a model): as PyTorch's module has them, for a .pt file, or as a .safetensors file has them: without second names, which
 * have no storage of their own there, and with GPT-2's matrices as Hugging Face keeps them. */
enum state_dict_form { STATE_DICT_PT, STATE_DICT_SAFETENSORS };
struct tensor_list state_dict_model(const struct state_row *row, int rows, enum state_dict_form form,
                                    struct arena *a);

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
