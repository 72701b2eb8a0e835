/* torch_zip.h - write a .pt file: an uncompressed zip of the pickle and its storages, in torch.save's layout.
 * save.c calls it. Pure except for the sink.
 *
 * Ownership: everything is borrowed for the call.
 * Order:     the sink gets the bytes first to last and never has to seek; payloads start at multiples of 64 bytes.
 *            From 4 GiB on, records carry Zip64 fields.
 * Errors:    ERR_INVALID (a tensor), and those of the sink. */
#ifndef TK_TRAINER_STATE_FILES_TORCH_ZIP_H
#define TK_TRAINER_STATE_FILES_TORCH_ZIP_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/state/files/tensor.h"

enum { TORCH_ZIP_ALIGN = 64, TORCH_ZIP_NAME_BYTES = 200, TORCH_ZIP_PICKLE_BYTES = 1 << 26 };

/* `name` is the folder inside the archive (torch.save: the file's name without its extension): TORCH_ZIP_NAME_BYTES at most, without
 * '/'. */
int torch_zip_write(const struct tensor_list *list, const char *name, const struct pt_sink *sink,
                    struct err *err) MUST_CHECK;

#endif
