/* pickle.c - write a state_dict as a pickle: tensors as the calls that torch.load(weights_only=True) allows. */
#include "trainer/state/files/pickle.h"

#include "trainer/state/files/pickle_ops.h"

#include <inttypes.h>

enum { PROTOCOL = 2, BATCH = 1000 };

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

static int put_item(struct pickler *p, const struct tensor_row *row)
{
    if (!row->name || pickle_str(p, row->name) < 0)
        return row->name ? -1 : err_set(p->err, ERR_INVALID, "a tensor without a name");
    return put_tensor(p, &row->tensor) < 0 ? err_wrap(p->err, "%.60s", row->name) : 0;
}

/* As Python's pickler: in batches, and a single last item without a mark. */
static int put_items(struct pickler *p, const struct tensor_list *list)
{
    for (size_t i = 0; i < list->len; i += BATCH) {
        const size_t n = list->len - i < BATCH ? list->len - i : BATCH;
        if (n > 1 && pickle_op(p, OP_MARK) < 0)
            return -1;
        for (size_t j = i; j < i + n; j++)
            if (put_item(p, &list->row[j]) < 0)
                return -1;
        if (pickle_op(p, n == 1 ? OP_SETITEM : OP_SETITEMS) < 0)
            return -1;
    }
    return 0;
}

int pickle_encode(const struct tensor_list *list, struct arena *a, struct buf *out, struct storages *storages,
                  struct err *err)
{
    struct pickler *p = arena_new(a, struct pickler);

    *storages = (struct storages){.arena = a};
    *p = (struct pickler){.out = out, .memo = {.arena = a}, .storages = storages, .err = err};
    if (pickle_op_le(p, OP_PROTO, PROTOCOL, 1) < 0 || put_ordered_dict(p) < 0 || put_items(p, list) < 0)
        return -1;
    return pickle_op(p, OP_STOP);
}
