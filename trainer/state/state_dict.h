/* state_dict.h - lists of tensors of a model and an optimizer. snapshot.c and save.c call it.
 *
 * Ownership: lists are in the arena and point into the memory of model and optimizer.
 * Errors:    ERR_INVALID names the tensor that is missing or has another shape. */
#ifndef TK_TRAINER_STATE_STATE_DICT_H
#define TK_TRAINER_STATE_STATE_DICT_H

#include "common/arena.h"
#include "trainer/model/model.h"
#include "trainer/model/optim.h"
#include "trainer/state/files/tensor.h"

/* The tensors of these rows (of a model). STATE_DICT_PT: as in PyTorch's module. STATE_DICT_SAFETENSORS:
 * without second names of tied parameters, which would be stored twice, and with GPT-2's matrices in Hugging
 * Face's layout. */
enum state_dict_form { STATE_DICT_PT, STATE_DICT_SAFETENSORS };
struct tensor_list state_dict_model(const struct state_row *row, int rows, enum state_dict_form form,
                                    struct arena *a);

/* The moments with torch.optim's names: exp_avg.NAME and exp_avg_sq.NAME, or momentum_buffer.NAME; then
 * `more`. */
struct tensor_list state_dict_optim(const struct optim *o, const struct model *m,
                                    const struct tensor_list *more, struct arena *a);

const struct pt_tensor *state_dict_find(const struct tensor_list *list, const char *name);

/* Check that all tensors of `want` are in the list, with the same types and shapes. */
int state_dict_check(const struct tensor_list *want, const struct tensor_list *list,
                     struct err *err) MUST_CHECK;

/* After state_dict_check: copy the data to the memory that `want` points to. */
void state_dict_copy(const struct tensor_list *want, const struct tensor_list *list);

#endif
