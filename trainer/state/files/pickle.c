/* pickle.c - write a pt_value as a pickle: tensors as the calls that torch.load(weights_only=True) allows. */
#include "trainer/state/files/pickle.h"

#include "trainer/state/files/pickle_ops.h"

#include <inttypes.h>

enum { PROTOCOL = 2, BATCH = 1000 };

static int put_value(struct pickler *p, const struct pt_value *v, int depth);

static int put_ints(struct pickler *p, const int64_t *v, int32_t len)
{
    if (len == 0)
        return pickle_op(p, OP_EMPTY_TUPLE);
    if (len > 3 && pickle_op(p, OP_MARK) < 0)
        return -1;
    for (int32_t i = 0; i < len; i++) {
        if (pickle_int(p, v[i]) < 0)
            return -1;
    }
    return pickle_tuple_end(p, (size_t)len);
}

/* Of the types of which we have tensors. */
static const char *const STORAGE_CLASS[PT_DTYPES] = {
    [PT_F32] = "torch\nFloatStorage\n", [PT_F64] = "torch\nDoubleStorage\n",
    [PT_F16] = "torch\nHalfStorage\n",  [PT_BF16] = "torch\nBFloat16Storage\n",
    [PT_I64] = "torch\nLongStorage\n",  [PT_I32] = "torch\nIntStorage\n",
    [PT_U8] = "torch\nByteStorage\n",   [PT_BOOL8] = "torch\nBoolStorage\n",
};

/* The persistent id that torch.load resolves: ('storage', class, number, 'cpu', elements). */
static int put_storage(struct pickler *p, const struct storage *s)
{
    const char *number = arena_printf(p->memo.arena, "%" PRId32, s->number);

    if (pickle_op(p, OP_MARK) < 0 || pickle_str(p, "storage") < 0 ||
        pickle_global(p, STORAGE_CLASS[s->dtype]) < 0 || pickle_str(p, number) < 0 ||
        pickle_str(p, "cpu") < 0 || pickle_int(p, s->elements) < 0 || pickle_tuple_end(p, 5) < 0)
        return -1;
    return pickle_op(p, OP_PERSID);
}

static int put_ordered_dict(struct pickler *p)
{
    if (pickle_global(p, "collections\nOrderedDict\n") < 0 || pickle_op(p, OP_EMPTY_TUPLE) < 0 ||
        pickle_op(p, OP_REDUCE) < 0)
        return -1;
    return pickle_memo(p);
}

/* _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks) */
static int put_tensor(struct pickler *p, const struct pt_tensor *t)
{
    int64_t stride[PT_DIMS_MAX];
    int64_t step = 1;
    const struct storage *s = storages_of(p->storages, t, p->err);

    if (!s)
        return -1;
    for (int32_t i = t->dims - 1; i >= 0; i--) {
        stride[i] = step;
        /* Empty dimensions count as one; a product that overflows then belongs to an empty tensor. */
        if (t->dim[i] > 1 && __builtin_mul_overflow(step, t->dim[i], &step))
            return err_set(p->err, ERR_INVALID, "tensor: strides beyond 63 bits");
    }
    if (pickle_global(p, "torch._utils\n_rebuild_tensor_v2\n") < 0 || pickle_op(p, OP_MARK) < 0 ||
        put_storage(p, s) < 0 || pickle_int(p, 0) < 0 || put_ints(p, t->dim, t->dims) < 0 ||
        put_ints(p, stride, t->dims) < 0 || pickle_op(p, OP_FALSE) < 0 || put_ordered_dict(p) < 0 ||
        pickle_tuple_end(p, 6) < 0 || pickle_op(p, OP_REDUCE) < 0)
        return -1;
    return pickle_memo(p);
}

static int put_items(struct pickler *p, const struct pt_value *v, size_t from, size_t to, int depth)
{
    for (size_t i = from; i < to; i++) {
        if (put_value(p, &v->seq.values[i], depth) < 0)
            return err_wrap(p->err, "%zu", i);
    }
    return 0;
}

static int put_tuple(struct pickler *p, const struct pt_value *v, int depth)
{
    if (v->seq.len == 0)
        return pickle_op(p, OP_EMPTY_TUPLE);
    if ((v->seq.len > 3 && pickle_op(p, OP_MARK) < 0) || put_items(p, v, 0, v->seq.len, depth) < 0)
        return -1;
    return pickle_tuple_end(p, v->seq.len);
}

static int put_list(struct pickler *p, const struct pt_value *v, int depth)
{
    size_t len = v->seq.len;

    if (pickle_op(p, OP_EMPTY_LIST) < 0 || pickle_memo(p) < 0)
        return -1;
    if (len == 1)
        return put_items(p, v, 0, 1, depth) < 0 ? -1 : pickle_op(p, OP_APPEND);
    for (size_t i = 0; i < len; i += BATCH) {
        size_t end = len - i < BATCH ? len : i + BATCH;
        if (pickle_op(p, OP_MARK) < 0 || put_items(p, v, i, end, depth) < 0 || pickle_op(p, OP_APPENDS) < 0)
            return -1;
    }
    return 0;
}

static int put_pair(struct pickler *p, const struct pt_item *item, int depth)
{
    if (item->key.type != PT_STR && item->key.type != PT_INT)
        return err_set(p->err, ERR_INVALID, "dict key: expected a string or an integer");
    if (put_value(p, &item->key, depth) == 0 && put_value(p, &item->value, depth) == 0)
        return 0;
    if (item->key.type == PT_STR)
        return err_wrap(p->err, "%.60s", item->key.s ? item->key.s : "(null)");
    return err_wrap(p->err, "%" PRId64, item->key.i);
}

/* Python's pickler ends an exact multiple of the batch differently for its two dicts: the plain one with an empty
 * batch, and either with a single last pair as SETITEM where only one is left. */
static int put_dict(struct pickler *p, const struct pt_value *v, int depth)
{
    size_t len = v->dict.len;
    bool plain = v->type == PT_DICT;

    if (plain ? pickle_op(p, OP_EMPTY_DICT) < 0 || pickle_memo(p) < 0 : put_ordered_dict(p) < 0)
        return -1;
    for (size_t i = 0; i < len || (plain && i == len && i && i % BATCH == 0); i += BATCH) {
        size_t n = len - i < BATCH ? len - i : BATCH;
        bool single = n == 1 && (!plain || len == 1);
        if (!single && pickle_op(p, OP_MARK) < 0)
            return -1;
        for (size_t j = i; j < i + n; j++) {
            if (put_pair(p, &v->dict.items[j], depth) < 0)
                return -1;
        }
        if (pickle_op(p, single ? OP_SETITEM : OP_SETITEMS) < 0)
            return -1;
    }
    return 0;
}

static int put_value(struct pickler *p, const struct pt_value *v, int depth)
{
    if (depth > PT_DEPTH_MAX)
        return err_set(p->err, ERR_INVALID, "nested deeper than %d", PT_DEPTH_MAX);
    switch (v->type) {
    case PT_NONE:
        return pickle_op(p, OP_NONE);
    case PT_BOOL:
        return pickle_op(p, v->b ? OP_TRUE : OP_FALSE);
    case PT_INT:
        return pickle_int(p, v->i);
    case PT_FLOAT:
        return pickle_float(p, v->f);
    case PT_STR:
        return v->s ? pickle_str(p, v->s) : err_set(p->err, ERR_INVALID, "string: none given");
    case PT_TENSOR:
        return put_tensor(p, &v->tensor);
    case PT_LIST:
        return put_list(p, v, depth + 1);
    case PT_TUPLE:
        return put_tuple(p, v, depth + 1);
    case PT_DICT:
    case PT_ORDERED_DICT:
        return put_dict(p, v, depth + 1);
    }
    return err_set(p->err, ERR_INVALID, "value: unknown type %d", (int)v->type);
}

int pickle_encode(const struct pt_value *root, struct arena *a, struct buf *out, struct storages *storages,
                  struct err *err)
{
    struct pickler *p = arena_new(a, struct pickler);

    *storages = (struct storages){.arena = a};
    *p = (struct pickler){.out = out, .memo = {.arena = a}, .storages = storages, .err = err};
    if (pickle_op_le(p, OP_PROTO, PROTOCOL, 1) < 0 || put_value(p, root, 0) < 0)
        return -1;
    return pickle_op(p, OP_STOP);
}
