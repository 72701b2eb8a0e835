/* save.h - `--save_path`: the trained weights as a .safetensors file, or as a .pt file that torch.load(weights_only=True) opens, by the
 * ending of its name.
 *
 * Errors: ERR_INVALID (the path cannot be a file, or a tensor), ERR_FATAL (cannot write; code = errno). On any error the file of that
 *         name is the one that was there before, and nothing is left beside it.
 */
#ifndef TK_TRAINER_STATE_SAVE_H
#define TK_TRAINER_STATE_SAVE_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/model/model.h"
#include "trainer/state/files/tensor.h"

/* Check before the training that the path can be written: its ending, its folder. */
int save_check(const char *path, struct err *err) MUST_CHECK;

/* Write the state_dict, keys without "module.": as .pt what the PyTorch module loads, as .safetensors what a checkpoint holds. */
int save_weights(const char *path, struct model *m, struct err *err) MUST_CHECK;

/* Write these tensors. Replaces `path` whole: temporary, fsync, rename, fsync of the folder (which must exist). */
int save_tensors(const char *path, const struct tensor_list *list, struct err *err) MUST_CHECK;

#endif
