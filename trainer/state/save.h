/* save.h - the trained weights as a file that PyTorch opens: .pt or .safetensors, as the name says.
 *
 * Errors: ERR_INVALID (the path cannot be a file), ERR_FATAL (cannot write; code = errno): the file of that
 *         name is then what it was before.
 */
#ifndef TK_TRAINER_STATE_SAVE_H
#define TK_TRAINER_STATE_SAVE_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/model/model.h"

/* Before hours of training: the name is one we can write, and its folder is there. */
int save_check(const char *path, struct err *err) MUST_CHECK;

/* The state_dict, keys without "module.". */
int save_weights(const char *path, struct model *m, struct err *err) MUST_CHECK;

#endif
