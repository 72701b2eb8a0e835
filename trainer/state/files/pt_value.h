/* pt_value.h - the values a .pt file may hold: what torch.load(weights_only=True) reads back.
 *
 * Ownership: everything is borrowed until the encoder returns. Values are plain data: build them on the stack or in
 *            an arena.
 * Shapes:    tensors are contiguous and row-major; 0 dimensions is a single value.
 * Order:     dicts and lists keep their order.
 */
#ifndef TK_TRAINER_STATE_FILES_PT_VALUE_H
#define TK_TRAINER_STATE_FILES_PT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Behind these come those of .safetensors files that have a name and a size alone: nothing reads their elements. */
enum pt_dtype { PT_F32, PT_F64, PT_F16, PT_BF16, PT_I64, PT_I32, PT_U8, PT_BOOL8, PT_DTYPES = 22 };
enum { PT_DIMS_MAX = 8, PT_DEPTH_MAX = 32 };

/* Tensors of the same dtype with the same `data` share one storage in the file (tied weights). */
struct pt_tensor {
    const void *data; /* little-endian; may be NULL when a dimension is 0 */
    enum pt_dtype dtype;
    int32_t dims;
    int64_t dim[PT_DIMS_MAX];
};

enum pt_type {
    PT_NONE,
    PT_BOOL,
    PT_INT,
    PT_FLOAT,
    PT_STR,
    PT_TENSOR,
    PT_LIST,
    PT_TUPLE,
    PT_DICT,
    PT_ORDERED_DICT
};

struct pt_item;

struct pt_value {
    enum pt_type type;
    union {
        bool b;
        int64_t i;
        double f;
        const char *s; /* UTF-8 */
        struct pt_tensor tensor;
        struct {
            const struct pt_value *values;
            size_t len;
        } seq; /* list, tuple */
        struct {
            const struct pt_item *items;
            size_t len;
        } dict; /* dict, ordered dict */
    };
};

struct pt_item {
    struct pt_value key; /* PT_STR or PT_INT */
    struct pt_value value;
};

static inline struct pt_value pt_str(const char *s)
{
    return (struct pt_value){.type = PT_STR, .s = s};
}

static inline struct pt_value pt_int(int64_t i)
{
    return (struct pt_value){.type = PT_INT, .i = i};
}

static inline struct pt_value pt_float(double f)
{
    return (struct pt_value){.type = PT_FLOAT, .f = f};
}

static inline struct pt_value pt_tensor(struct pt_tensor t)
{
    return (struct pt_value){.type = PT_TENSOR, .tensor = t};
}

/* `type` is PT_DICT or PT_ORDERED_DICT. A state_dict is an ordered dict from name to tensor. */
static inline struct pt_value pt_dict(enum pt_type type, const struct pt_item *items, size_t len)
{
    return (struct pt_value){.type = type, .dict = {items, len}};
}

/* `type` is PT_LIST or PT_TUPLE. */
static inline struct pt_value pt_seq(enum pt_type type, const struct pt_value *values, size_t len)
{
    return (struct pt_value){.type = type, .seq = {values, len}};
}

/* As .safetensors files call it: "F32". */
const char *pt_dtype_name(enum pt_dtype dtype);

/* Bytes of one element: 1 for those of 4 and 6 bits, which lie packed. */
size_t pt_dtype_bytes(enum pt_dtype dtype);

/* Bytes of a whole tensor; -1 when its shape cannot be, it ends inside a byte, or 63 bits do not count its bits. */
int64_t pt_tensor_bytes(const struct pt_tensor *t);

/* The value of a dict's key, the last of several; NULL when `v` is no dict or has none. */
const struct pt_value *pt_find(const struct pt_value *v, const char *key);
const struct pt_value *pt_find_int(const struct pt_value *v, int64_t key);

#endif
