/* safetensors.h - write and parse .safetensors files of named tensors. snapshot.c, save.c and weights.c call
 * it. Pure except for the sink.
 *
 * The format: u64 little-endian length of a JSON header, the header padded with spaces to 8 bytes, the tensors' bytes
 * without gaps (https://github.com/huggingface/safetensors, "Format").
 *
 * Ownership: names and data are borrowed; a parsed list is in the arena and points into the file's bytes.
 * Order:     files have wider elements first, so that all data are aligned. A parsed list has the header's
 *            order. `transposed` tensors are written as their transpose; parsed ones never have it set.
 * Errors:    ERR_INVALID names the tensor and the field, else the sink's own.
 */
#ifndef TK_TRAINER_STATE_FILES_SAFETENSORS_H
#define TK_TRAINER_STATE_FILES_SAFETENSORS_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/state/files/tensor.h"

/* The longest header; the reference implementation's limit is 100 MB. */
enum { SAFETENSORS_HEADER_BYTES = 16 << 20 };

int safetensors_write(const struct tensor_list *list, const struct pt_sink *sink, struct err *err) MUST_CHECK;

/* Shapes, sizes and offsets must agree with each other and with `len`. Data may be unaligned if another
 * program wrote the file. */
int safetensors_parse(const void *bytes, size_t len, struct arena *a, struct tensor_list *ret,
                      struct err *err) MUST_CHECK;

#endif
