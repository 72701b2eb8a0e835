/* save.h - write the trained weights (--save_path): a .safetensors file, or a .pt file for
 * torch.load(weights_only=True), by the file name's extension. run/run.c calls it.
 *
 * Errors: ERR_INVALID (the path cannot be a file, or a tensor), ERR_FATAL (cannot write; code = errno). On
 *         any error an existing file is unchanged, and no temporary file remains. */
#ifndef TK_TRAINER_STATE_SAVE_H
#define TK_TRAINER_STATE_SAVE_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/model/model.h"
#include "trainer/state/files/tensor.h"

/* Check before the training that the path can be written: extension and folder. */
int save_check(const char *path, struct err *err) MUST_CHECK;

/* Write the state_dict, with keys without "module.": as .pt in the form of the PyTorch module, as
 * .safetensors in that of a checkpoint. */
int save_weights(const char *path, struct model *m, struct err *err) MUST_CHECK;

/* Write these tensors: temporary file, fsync, rename to `path`, fsync of the folder (which must exist). */
int save_tensors(const char *path, const struct tensor_list *list, struct err *err) MUST_CHECK;

#endif
