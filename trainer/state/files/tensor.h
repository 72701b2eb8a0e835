/* tensor.h - tensors by name, as the files of checkpoints and exports hold them, and where their bytes go. Pure.
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

/* Behind these come those of .safetensors files that have a name and a size alone: nothing reads their elements. */
enum pt_dtype { PT_F32, PT_F64, PT_F16, PT_BF16, PT_I64, PT_I32, PT_U8, PT_BOOL8, PT_DTYPES = 22 };
enum { PT_DIMS_MAX = 8 };

/* In a .pt file tensors of the same dtype with the same `data` share one storage (tied weights). */
struct pt_tensor {
    const void *data; /* little-endian; may be NULL when a dimension is 0 */
    enum pt_dtype dtype;
    int32_t dims;
    int64_t dim[PT_DIMS_MAX];
    bool
        transposed; /* `data` are f32 and lie as (dim[1], dim[0]); only .safetensors files are written from such */
};

struct tensor_row {
    const char *name; /* UTF-8 */
    struct pt_tensor tensor;
};

struct tensor_list {
    const struct tensor_row *row;
    size_t len;
};

/* Where a file's bytes go, first to last. */
struct pt_sink {
    int (*write)(void *ctx, const void *bytes, size_t len, struct err *err);
    void *ctx;
};

/* As .safetensors files call it: "F32". */
const char *pt_dtype_name(enum pt_dtype dtype);

/* Bytes of one element: 1 for those of 4 and 6 bits, which lie packed. */
size_t pt_dtype_bytes(enum pt_dtype dtype);

/* Bytes of a whole tensor; -1 when its shape cannot be, it ends inside a byte, or 63 bits do not count its bits. */
int64_t pt_tensor_bytes(const struct pt_tensor *t);

#endif
