/* torch_unzip.h - a .pt file that lies in memory, as a value: ours, and those of torch.save. Pure.
 *
 * Only stored records are read (torch.save makes no others). The CRC of every record that is used is checked.
 *
 * Ownership: *ret lives in the arena, its tensors point into `bytes` and may be unaligned in foreign files.
 * Errors:    ERR_INVALID names the record and what is wrong. No size or place in the file is believed.
 */
#ifndef TK_TRAINER_STATE_FILES_TORCH_UNZIP_H
#define TK_TRAINER_STATE_FILES_TORCH_UNZIP_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/state/files/pt_value.h"

int torch_zip_read(const void *bytes, size_t len, struct arena *a, struct pt_value *ret,
                   struct err *err) MUST_CHECK;

#endif
