/* tensor.h - named tensors, as the files of checkpoints and exports contain them, and the sink for a file's
 * bytes. Pure.
 *
 * Ownership: names and data are borrowed.
 * Shapes:    contiguous and row-major; 0 dimensions is a single value.
 */
#ifndef TK_TRAINER_STATE_FILES_TENSOR_H
#define TK_TRAINER_STATE_FILES_TENSOR_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values from PT_BOOL8 + 1 on: types of .safetensors files with only a name and a size, whose elements
 * nothing reads. */
enum pt_dtype { PT_F32, PT_F64, PT_F16, PT_BF16, PT_I64, PT_I32, PT_U8, PT_BOOL8, PT_DTYPES = 22 };
enum { PT_DIMS_MAX = 8 };

/* In a .pt file tensors of the same dtype with the same `data` share one storage (tied weights). */
struct pt_tensor {
    const void *data; /* little-endian; may be NULL when a dimension is 0 */
    enum pt_dtype dtype;
    int32_t dims;
    int64_t dim[PT_DIMS_MAX];
    bool transposed; /* `data` are f32 in the order (dim[1], dim[0]); only for writing .safetensors files */
};

struct tensor_row {
    const char *name; /* UTF-8 */
    struct pt_tensor tensor;
};

struct tensor_list {
    const struct tensor_row *row;
    size_t len;
};

/* Receives a file's bytes, first to last. */
struct pt_sink {
    int (*write)(void *ctx, const void *bytes, size_t len, struct err *err);
    void *ctx;
};

/* The type's name in .safetensors files: "F32". */
const char *pt_dtype_name(enum pt_dtype dtype);

/* Bytes of one element; 1 for types of 4 and 6 bits, which are packed. */
size_t pt_dtype_bytes(enum pt_dtype dtype);

/* Bytes of a whole tensor; -1: its shape is impossible, it ends inside a byte, or its number of bits exceeds
 * 63 bits. */
int64_t pt_tensor_bytes(const struct pt_tensor *t);

#endif
