/* state_dict.h - a model and an optimiser as PyTorch's state_dicts.
 *
 * Ownership: what is made lives in the arena and points into the model's and the optimiser's memory.
 * Errors:    ERR_INVALID naming the tensor that is missing or has another shape.
 */
#ifndef TK_TRAINER_STATE_STATE_DICT_H
#define TK_TRAINER_STATE_STATE_DICT_H

#include "trainer/model/model.h"
#include "trainer/model/optim.h"
#include "trainer/state/files/safetensors.h"

/* All of these rows (model_state); without `tied` those alone that are no second name of another. */
struct tensor_list state_dict_model(const struct state_row *row, int rows, bool tied, struct arena *a);

/* The same list as the ordered dict that a .pt file holds. */
struct pt_value state_dict_pt(const struct tensor_list *list, struct arena *a);

/* "state" and "param_groups", then `more` items. Parameters are numbered as torch numbers them: one group, or with
 * decay_matrices_only those that are decayed and then the others. */
struct pt_value state_dict_optim(const struct optim *o, const struct model *m, double lr,
                                 const struct pt_item *more, size_t more_len, struct arena *a);

/* Does `list` hold exactly this model (second names may be left out)? Then take[i] is the tensor of model_state's row i;
 * NULL: a second name. */
int state_dict_match(const struct tensor_list *list, const struct model *m, struct arena *a,
                     const struct pt_tensor ***take, struct err *err) MUST_CHECK;

/* Check the moments in `root` (see state_dict_optim); with `apply` copy them too, which then cannot fail. */
int state_dict_moments(const struct pt_value *root, struct optim *o, const struct model *m, bool apply,
                       struct err *err) MUST_CHECK;

#endif
