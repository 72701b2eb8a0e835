/* safetensors.h - named tensors as a .safetensors file, and back. Pure but for the sink.
 *
 * The format: u64 little-endian length of a JSON header, the header padded with spaces to 8 bytes, the tensors' bytes
 * without gaps (https://github.com/huggingface/safetensors, "Format").
 *
 * Ownership: names and data are borrowed; a parsed list lives in the arena and points into the file's bytes.
 * Order:     written with the wider elements first, so that everything is aligned; a list comes back in the header's. What
 *            is `turned` is written as its transpose; nothing comes back so.
 * Errors:    ERR_INVALID names the tensor and the field, else the sink's own.
 */
#ifndef TK_TRAINER_STATE_FILES_SAFETENSORS_H
#define TK_TRAINER_STATE_FILES_SAFETENSORS_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/state/files/tensor.h"

/* The header at most: the reference implementation's own limit is 100 MB. */
enum { SAFETENSORS_HEADER_BYTES = 16 << 20 };

int safetensors_write(const struct tensor_list *list, const struct pt_sink *sink, struct err *err) MUST_CHECK;

/* Nothing in `bytes` is believed: shapes, sizes and places must agree with each other and with `len`. Data may be
 * unaligned when a foreign program wrote it. */
int safetensors_parse(const void *bytes, size_t len, struct arena *a, struct tensor_list *ret,
                      struct err *err) MUST_CHECK;

#endif
