/* save.h - write the trained weights as a file that PyTorch opens: .pt or .safetensors, by the path's ending.
 *
 * Errors: ERR_INVALID (the path cannot be a file), ERR_FATAL (cannot write; code = errno): the file of that
 *         name is then what it was before.
 */
#ifndef TK_TRAINER_STATE_SAVE_H
#define TK_TRAINER_STATE_SAVE_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/model/model.h"

/* Check before the training that the path can be written: its ending, its folder. */
int save_check(const char *path, struct err *err) MUST_CHECK;

/* Write the state_dict, keys without "module.": as .pt what the PyTorch module loads, as .safetensors what a checkpoint holds. */
int save_weights(const char *path, struct model *m, struct err *err) MUST_CHECK;

#endif
