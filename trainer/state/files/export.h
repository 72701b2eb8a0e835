/* export.h - `--save_path`: a state_dict as a .pt file that torch.load(weights_only=True) opens, or as a .safetensors file.
 *
 * Errors: ERR_FATAL (cannot write; code = errno), ERR_INVALID (a tensor). On any error the file of that name is
 *         the one that was there before, and nothing is left beside it.
 */
#ifndef TK_TRAINER_STATE_FILES_EXPORT_H
#define TK_TRAINER_STATE_FILES_EXPORT_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/state/files/safetensors.h"

/* Replaces `path` whole: temporary, fsync, rename, fsync of the folder (which must exist). */
int export_pt(const char *path, const struct tensor_list *list, struct err *err) MUST_CHECK;
int export_safetensors(const char *path, const struct tensor_list *list, struct err *err) MUST_CHECK;

#endif
