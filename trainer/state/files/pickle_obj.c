/* pickle_obj.c - turn the objects of an unpickler's stack into a pt_value: known globals, tensors over storages. */
#include "trainer/state/files/pickle_obj.h"

#include <inttypes.h>
#include <string.h>

enum { CALL_ARGS_MAX = 8 };

static const struct {
    const char *module, *name;
    enum pickle_global_name global;
    enum pt_dtype dtype;
} GLOBALS[] = {
    {"collections", "OrderedDict", PICKLE_ORDERED_DICT, PT_F32},
    {"torch._utils", "_rebuild_tensor_v2", PICKLE_REBUILD_TENSOR, PT_F32},
    {"torch._utils", "_rebuild_parameter", PICKLE_REBUILD_PARAMETER, PT_F32},
    {"torch", "FloatStorage", PICKLE_STORAGE_CLASS, PT_F32},
    {"torch", "DoubleStorage", PICKLE_STORAGE_CLASS, PT_F64},
    {"torch", "HalfStorage", PICKLE_STORAGE_CLASS, PT_F16},
    {"torch", "BFloat16Storage", PICKLE_STORAGE_CLASS, PT_BF16},
    {"torch", "LongStorage", PICKLE_STORAGE_CLASS, PT_I64},
    {"torch", "IntStorage", PICKLE_STORAGE_CLASS, PT_I32},
    {"torch", "ByteStorage", PICKLE_STORAGE_CLASS, PT_U8},
    {"torch", "BoolStorage", PICKLE_STORAGE_CLASS, PT_BOOL8},
};

void pickle_obj_append(struct arena *a, struct pickle_obj *container, const struct pickle_obj *item)
{
    struct pickle_cell *cell = arena_new(a, struct pickle_cell);

    cell->obj = item;
    if (container->last)
        container->last->next = cell;
    else
        container->first = cell;
    container->last = cell;
    container->len++;
}

int pickle_obj_global(const char *module, const char *name, struct pickle_obj *ret, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(GLOBALS); i++) {
        if (strcmp(GLOBALS[i].module, module) || strcmp(GLOBALS[i].name, name))
            continue;
        *ret = (struct pickle_obj){.kind = PICKLE_GLOBAL, .global = GLOBALS[i].global};
        ret->value.tensor.dtype = GLOBALS[i].dtype;
        return 0;
    }
    return err_set(err, ERR_INVALID, "\"%.60s.%.60s\" is not allowed in a file of weights", module, name);
}

static bool is_container(const struct pickle_obj *o, enum pt_type type)
{
    return o->kind == PICKLE_CONTAINER && o->value.type == type;
}

static bool is_int(const struct pickle_obj *o)
{
    return o->kind == PICKLE_VALUE && o->value.type == PT_INT;
}

/* A tuple of integers >= 0, PT_DIMS_MAX at most; how many, or -1. */
static int ints_of(const struct pickle_obj *o, int64_t *out)
{
    int n = 0;

    if (!is_container(o, PT_TUPLE) || o->len > PT_DIMS_MAX)
        return -1;
    for (const struct pickle_cell *c = o->first; c; c = c->next) {
        if (!is_int(c->obj) || c->obj->value.i < 0)
            return -1;
        out[n++] = c->obj->value.i;
    }
    return n;
}

/* Row-major without gaps; dimensions of one element, and empty tensors, may say what they like. */
static bool is_contiguous(const struct pt_tensor *t, const int64_t *stride)
{
    int64_t step = 1;

    for (int32_t i = 0; i < t->dims; i++)
        if (t->dim[i] == 0)
            return true;
    for (int32_t i = t->dims - 1; i >= 0; i--) {
        if (t->dim[i] != 1 && stride[i] != step)
            return false;
        step *= t->dim[i]; /* the product is known to fit */
    }
    return true;
}

static int rebuild_tensor(const struct pickle_obj *const *arg, size_t args, struct pickle_obj *ret,
                          struct err *err)
{
    int64_t stride[PT_DIMS_MAX];
    struct pt_tensor t = {0};

    if (args < 4 || arg[0]->kind != PICKLE_STORAGE || !is_int(arg[1]))
        return err_set(err, ERR_INVALID, "tensor: expected a storage, an offset, a size and a stride");
    const struct pt_tensor *s = &arg[0]->value.tensor;
    t.dtype = s->dtype;
    t.dims = ints_of(arg[2], t.dim);
    if (t.dims < 0 || ints_of(arg[3], stride) != t.dims)
        return err_set(err, ERR_INVALID, "tensor: expected a size and a stride of the same 0..%d dimensions",
                       PT_DIMS_MAX);
    int64_t width = (int64_t)pt_dtype_bytes(t.dtype);
    int64_t bytes = pt_tensor_bytes(&t);
    int64_t offset = arg[1]->value.i;
    if (bytes < 0 || offset < 0 || offset > s->dim[0] || bytes / width > s->dim[0] - offset)
        return err_set(err, ERR_INVALID, "tensor: reaches beyond its storage of %" PRId64 " elements",
                       s->dim[0]);
    if (!is_contiguous(&t, stride))
        return err_set(err, ERR_INVALID, "tensor: its stride is not contiguous; save a contiguous tensor");
    t.data = s->data ? (const uint8_t *)s->data + offset * width : NULL;
    *ret = (struct pickle_obj){.kind = PICKLE_VALUE, .value = pt_tensor(t)};
    return 0;
}

int pickle_obj_call(const struct pickle_obj *callable, const struct pickle_obj *args, struct pickle_obj *ret,
                    struct err *err)
{
    const struct pickle_obj *arg[CALL_ARGS_MAX] = {NULL};
    size_t n = 0;

    if (callable->kind != PICKLE_GLOBAL || !is_container(args, PT_TUPLE) || args->len > CALL_ARGS_MAX)
        return err_set(err, ERR_INVALID, "call: expected a known global and at most %d arguments",
                       CALL_ARGS_MAX);
    for (const struct pickle_cell *c = args->first; c; c = c->next)
        arg[n++] = c->obj;
    switch (callable->global) {
    case PICKLE_ORDERED_DICT:
        *ret = (struct pickle_obj){.kind = PICKLE_CONTAINER, .value.type = PT_ORDERED_DICT};
        return n ? err_set(err, ERR_INVALID, "OrderedDict: expected no arguments, got %zu", n) : 0;
    case PICKLE_REBUILD_TENSOR:
        return rebuild_tensor(arg, n, ret, err);
    case PICKLE_REBUILD_PARAMETER:
        if (n < 1 || arg[0]->kind != PICKLE_VALUE || arg[0]->value.type != PT_TENSOR)
            return err_set(err, ERR_INVALID, "parameter: expected a tensor");
        *ret = *arg[0];
        return 0;
    case PICKLE_STORAGE_CLASS:
        return err_set(err, ERR_INVALID, "call: a storage class cannot be called");
    }
    return -1;
}

static int take_budget(size_t *budget, struct err *err)
{
    if (!*budget)
        return err_set(err, ERR_INVALID, "more values than a pickle of this size should hold");
    --*budget;
    return 0;
}

static int value_of_dict(const struct pickle_obj *o, struct arena *a, int depth, size_t *budget,
                         struct pt_value *ret, struct err *err)
{
    struct pt_item *items = arena_array(a, o->len / 2 + 1, struct pt_item);
    size_t n = 0;

    for (const struct pickle_cell *c = o->first; c && c->next; c = c->next->next, n++) {
        if (pickle_obj_value(c->obj, a, depth + 1, budget, &items[n].key, err) ||
            pickle_obj_value(c->next->obj, a, depth + 1, budget, &items[n].value, err))
            return -1;
        if (items[n].key.type != PT_STR && items[n].key.type != PT_INT)
            return err_set(err, ERR_INVALID, "dict key: expected a string or an integer");
    }
    *ret = pt_dict(o->value.type, items, n);
    return 0;
}

static int value_of_container(const struct pickle_obj *o, struct arena *a, int depth, size_t *budget,
                              struct pt_value *ret, struct err *err)
{
    size_t n = 0;

    if (depth > PT_DEPTH_MAX)
        return err_set(err, ERR_INVALID, "nested deeper than %d", PT_DEPTH_MAX);
    /* Before the array is taken: shared containers must not cost more than they count. */
    if (o->len > *budget)
        return err_set(err, ERR_INVALID, "more values than a pickle of this size should hold");
    if (o->value.type == PT_DICT || o->value.type == PT_ORDERED_DICT)
        return value_of_dict(o, a, depth, budget, ret, err);
    struct pt_value *values = arena_array(a, o->len + 1, struct pt_value);
    for (const struct pickle_cell *c = o->first; c; c = c->next)
        if (pickle_obj_value(c->obj, a, depth + 1, budget, &values[n++], err))
            return -1;
    *ret = pt_seq(o->value.type, values, n);
    return 0;
}

int pickle_obj_value(const struct pickle_obj *o, struct arena *a, int depth, size_t *budget,
                     struct pt_value *ret, struct err *err)
{
    if (take_budget(budget, err))
        return -1;
    switch (o->kind) {
    case PICKLE_VALUE:
        *ret = o->value;
        return 0;
    case PICKLE_CONTAINER:
        return value_of_container(o, a, depth, budget, ret, err);
    case PICKLE_GLOBAL:
    case PICKLE_STORAGE:
    case PICKLE_MARK:
        break;
    }
    return err_set(err, ERR_INVALID, "a class, a storage or a mark where a value is expected");
}
