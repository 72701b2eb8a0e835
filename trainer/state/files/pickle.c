/* pickle.c - write a state_dict as a pickle: tensors as the calls that torch.load(weights_only=True) allows. */
#include "trainer/state/files/pickle.h"

#include "common/endian.h"

#include <inttypes.h>
#include <string.h>

enum { PROTOCOL = 2, BATCH = 1000, TEXTS_OF_A_TENSOR = 2, OTHER_TEXTS = 16 };

/* Opcodes of pickle protocol 2. */
enum {
    OP_PROTO = 0x80,
    OP_STOP = '.',
    OP_MARK = '(',
    OP_FALSE = 0x89,
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_LONG1 = 0x8a,
    OP_BINUNICODE = 'X',
    OP_GLOBAL = 'c',
    OP_REDUCE = 'R',
    OP_PERSID = 'Q',
    OP_SETITEM = 's',
    OP_SETITEMS = 'u',
    OP_EMPTY_TUPLE = ')',
    OP_TUPLE = 't',
    OP_TUPLE1 = 0x85,
    OP_PUT = 'q',
    OP_LONG_PUT = 'r',
    OP_GET = 'h',
    OP_LONG_GET = 'j',
};

/* A text or a global that is written once; later references use its number. A global contains newlines, a
 * text does not. */
struct known {
    const char *text;
    int32_t number;
};

struct pickler {
    struct buf *out; /* records an overflow */
    struct arena *arena;
    struct storages *storages;
    struct known *known;
    size_t n_known;
    int32_t numbers; /* memo numbers used so far, also by objects without text */
};

static void put_op(struct pickler *p, int op)
{
    const uint8_t byte = (uint8_t)op;

    buf_append(p->out, &byte, 1, NULL);
}

/* `op` and the low `len` (at most 8) bytes of `v`, little-endian. */
static void put_le(struct pickler *p, int op, uint64_t v, size_t len)
{
    uint8_t bytes[9] = {(uint8_t)op};

    le_put(bytes + 1, v, len);
    buf_append(p->out, bytes, 1 + len, NULL);
}

static void put_reference(struct pickler *p, int op, int long_op, int32_t number)
{
    if (number < 256)
        put_le(p, op, (uint64_t)number, 1);
    else
        put_le(p, long_op, (uint64_t)number, 4);
}

/* Put the last object into the memo, as Python does with every object that it may refer to again. */
static void put_memo(struct pickler *p)
{
    put_reference(p, OP_PUT, OP_LONG_PUT, p->numbers++);
}

/* OP_BINUNICODE with a text, or OP_GLOBAL with "module\nattribute\n". */
static void put_text(struct pickler *p, int op, const char *text)
{
    for (size_t i = 0; i < p->n_known; i++)
        if (strcmp(p->known[i].text, text) == 0) {
            put_reference(p, OP_GET, OP_LONG_GET, p->known[i].number);
            return;
        }
    if (op == OP_GLOBAL)
        put_op(p, op);
    else
        put_le(p, op, strlen(text), 4);
    buf_puts(p->out, text, NULL);
    p->known[p->n_known++] = (struct known){text, p->numbers};
    put_memo(p);
}

/* In Python's shortest form. */
static void put_int(struct pickler *p, int64_t v)
{
    size_t len = 5;

    if (v <= UINT8_MAX)
        put_le(p, OP_BININT1, (uint64_t)v, 1);
    else if (v <= UINT16_MAX)
        put_le(p, OP_BININT2, (uint64_t)v, 2);
    else if (v <= INT32_MAX)
        put_le(p, OP_BININT, (uint64_t)v, 4);
    else {
        while (len < 8 && v >> (8 * len - 1) != 0)
            len++;
        put_le(p, OP_LONG1, len, 1);
        uint8_t bytes[8];
        le_put(bytes, (uint64_t)v, len);
        buf_append(p->out, bytes, len, NULL);
    }
}

/* End a tuple of `len` >= 1 items, which began with a mark if len > 3. */
static void end_tuple(struct pickler *p, int len)
{
    put_op(p, len <= 3 ? OP_TUPLE1 + len - 1 : OP_TUPLE);
    put_memo(p);
}

static void put_ints(struct pickler *p, const int64_t *v, int32_t len)
{
    if (len == 0) {
        put_op(p, OP_EMPTY_TUPLE);
        return;
    }
    if (len > 3)
        put_op(p, OP_MARK);
    for (int32_t i = 0; i < len; i++)
        put_int(p, v[i]);
    end_tuple(p, len);
}

/* The number of the tensor's storage: that of an earlier tensor with the same data, type and size, or a new
 * one. */
static int32_t storage_of(struct storages *s, const struct pt_tensor *t, int64_t bytes)
{
    const int64_t elements = bytes / (int64_t)pt_dtype_bytes(t->dtype);

    for (int32_t i = 0; elements > 0 && i < s->len; i++)
        if (s->of[i].data == t->data && s->of[i].dtype == t->dtype && s->of[i].elements == elements)
            return i;
    s->of[s->len] = (struct storage){t->data, t->dtype, elements, (uint64_t)bytes};
    return s->len++;
}

/* Names for the types of our tensors. */
static const char *const STORAGE_CLASS[PT_DTYPES] = {
    [PT_F32] = "torch\nFloatStorage\n", [PT_F64] = "torch\nDoubleStorage\n",
    [PT_F16] = "torch\nHalfStorage\n",  [PT_BF16] = "torch\nBFloat16Storage\n",
    [PT_I64] = "torch\nLongStorage\n",  [PT_I32] = "torch\nIntStorage\n",
    [PT_U8] = "torch\nByteStorage\n",   [PT_BOOL8] = "torch\nBoolStorage\n",
};

/* The persistent id that torch.load resolves: ('storage', class, number, 'cpu', elements). */
static void put_storage(struct pickler *p, int32_t number)
{
    const struct storage *s = &p->storages->of[number];

    put_op(p, OP_MARK);
    put_text(p, OP_BINUNICODE, "storage");
    put_text(p, OP_GLOBAL, STORAGE_CLASS[s->dtype]);
    put_text(p, OP_BINUNICODE, arena_printf(p->arena, "%" PRId32, number));
    put_text(p, OP_BINUNICODE, "cpu");
    put_int(p, s->elements);
    end_tuple(p, 5);
    put_op(p, OP_PERSID);
}

static void put_ordered_dict(struct pickler *p)
{
    put_text(p, OP_GLOBAL, "collections\nOrderedDict\n");
    put_op(p, OP_EMPTY_TUPLE);
    put_op(p, OP_REDUCE);
    put_memo(p);
}

/* _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks) */
static int put_tensor(struct pickler *p, const struct tensor_row *row, struct err *err)
{
    const struct pt_tensor *t = &row->tensor;
    const int64_t bytes = pt_tensor_bytes(t);
    int64_t stride[PT_DIMS_MAX];
    uint64_t step = 1;

    if (bytes < 0)
        return err_set(err, ERR_INVALID, "%.60s: its shape is impossible", row->name);
    for (int32_t i = t->dims - 1; i >= 0; i--) {
        stride[i] = (int64_t)step;
        step *= t->dim[i] > 1 ? (uint64_t)t->dim[i] : 1; /* a dimension of 0 counts as 1 */
    }
    put_text(p, OP_GLOBAL, "torch._utils\n_rebuild_tensor_v2\n");
    put_op(p, OP_MARK);
    put_storage(p, storage_of(p->storages, t, bytes));
    put_int(p, 0);
    put_ints(p, t->dim, t->dims);
    put_ints(p, stride, t->dims);
    put_op(p, OP_FALSE);
    put_ordered_dict(p);
    end_tuple(p, 6);
    put_op(p, OP_REDUCE);
    put_memo(p);
    return 0;
}

/* As Python's pickler: in batches; a single last item has no mark. */
static int put_items(struct pickler *p, const struct tensor_list *list, struct err *err)
{
    for (size_t i = 0; i < list->len; i += BATCH) {
        const size_t n = list->len - i < BATCH ? list->len - i : BATCH;
        if (n > 1)
            put_op(p, OP_MARK);
        for (size_t j = i; j < i + n; j++) {
            put_text(p, OP_BINUNICODE, list->row[j].name);
            if (put_tensor(p, &list->row[j], err))
                return -1;
        }
        put_op(p, n == 1 ? OP_SETITEM : OP_SETITEMS);
    }
    return 0;
}

int pickle_encode(const struct tensor_list *list, struct arena *a, struct buf *out, struct storages *ret,
                  struct err *err)
{
    struct pickler p = {
        .out = out,
        .arena = a,
        .storages = ret,
        .known = arena_array(a, TEXTS_OF_A_TENSOR * list->len + OTHER_TEXTS, struct known),
    };

    *ret = (struct storages){.of = arena_array(a, list->len + 1, struct storage)};
    put_le(&p, OP_PROTO, PROTOCOL, 1);
    put_ordered_dict(&p);
    if (put_items(&p, list, err))
        return -1;
    put_op(&p, OP_STOP);
    return buf_check(out, err);
}
