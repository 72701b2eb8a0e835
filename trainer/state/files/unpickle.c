/* unpickle.c - the opcodes of the unpickler: containers, memo, calls. */
#include "trainer/state/files/unpickle.h"

#include "trainer/state/files/pickle_ops.h"
#include "trainer/state/files/unpickle_machine.h"

#include <inttypes.h>

enum { OP_BUILD = 'b', OP_TUPLE2 = 0x86, OP_TUPLE3 = 0x87 };

static int op_put(struct unpickle_machine *m, size_t width)
{
    uint64_t n;
    struct pickle_obj *o = unpickle_top(m);

    if (!o || unpickle_le(m, width, &n))
        return -1;
    if (n > m->memo.len)
        return unpickle_bad(m, "a note under a number that is not the next");
    if (n == m->memo.len)
        unpickle_add(m->arena, &m->memo, o);
    else
        m->memo.obj[n] = o;
    return 0;
}

static int op_get(struct unpickle_machine *m, size_t width)
{
    uint64_t n;

    if (unpickle_le(m, width, &n))
        return -1;
    if (n >= m->memo.len)
        return unpickle_bad(m, "a reference to nothing");
    unpickle_add(m->arena, &m->stack, m->memo.obj[n]); /* the object itself: it may still grow */
    return 0;
}

static int op_tuple(struct unpickle_machine *m, int64_t from, bool marked)
{
    struct pickle_obj tuple = {.kind = PICKLE_CONTAINER, .value.type = PT_TUPLE};

    if (from < 0 || (size_t)from > m->stack.len)
        return from < 0 ? -1 : unpickle_bad(m, "a tuple of more than there is");
    for (size_t i = (size_t)from; i < m->stack.len; i++) {
        if (m->stack.obj[i]->kind == PICKLE_MARK)
            return unpickle_bad(m, "a mark inside a tuple");
        pickle_obj_append(m->arena, &tuple, m->stack.obj[i]);
    }
    m->stack.len = (size_t)from - marked;
    return unpickle_push(m, &tuple);
}

static int op_short_tuple(struct unpickle_machine *m, size_t n)
{
    return op_tuple(m, m->stack.len < n ? (int64_t)m->stack.len + 1 : (int64_t)(m->stack.len - n), false);
}

/* All since `from` into the container below; `marked`: a mark stands between. */
static int op_fill(struct unpickle_machine *m, int64_t from, bool marked, bool dict)
{
    if (from < 0)
        return -1;
    size_t first = (size_t)from;
    size_t below = first - marked;
    if (first > m->stack.len || !below)
        return unpickle_bad(m, "items without a container");
    struct pickle_obj *o = m->stack.obj[below - 1];
    bool is_dict = o->value.type == PT_DICT || o->value.type == PT_ORDERED_DICT;
    if (o->kind != PICKLE_CONTAINER || (dict ? !is_dict : o->value.type != PT_LIST))
        return unpickle_bad(m, "items for something that takes none");
    if (dict && (m->stack.len - first) % 2)
        return unpickle_bad(m, "a key without a value");
    for (size_t i = first; i < m->stack.len; i++)
        pickle_obj_append(m->arena, o, m->stack.obj[i]);
    m->stack.len = below;
    return 0;
}

static int op_few(struct unpickle_machine *m, size_t n, bool dict)
{
    if (m->stack.len < n)
        return unpickle_bad(m, "nothing on the stack");
    return op_fill(m, (int64_t)(m->stack.len - n), false, dict);
}

static int op_reduce(struct unpickle_machine *m)
{
    struct pickle_obj o;
    const struct pickle_obj *args = unpickle_pop(m);
    const struct pickle_obj *callable = args ? unpickle_pop(m) : NULL;

    if (!callable || pickle_obj_call(callable, args, &o, m->err))
        return -1;
    return unpickle_push(m, &o);
}

/* Attributes that torch.save keeps beside a state_dict (_metadata): nothing that training needs. */
static int op_build(struct unpickle_machine *m)
{
    const struct pickle_obj *state = unpickle_pop(m);
    const struct pickle_obj *o = state ? unpickle_top(m) : NULL;

    if (!o)
        return -1;
    if (o->kind != PICKLE_CONTAINER || o->value.type != PT_ORDERED_DICT || state->kind != PICKLE_CONTAINER)
        return unpickle_bad(m, "attributes for something that has none");
    return 0;
}

/* ('storage', class, key, location, elements) */
static int op_persistent(struct unpickle_machine *m)
{
    const struct pickle_obj *id = unpickle_pop(m);
    const struct pickle_obj *part[5];
    size_t n = 0;
    size_t bytes = 0;
    struct pickle_obj o = {.kind = PICKLE_STORAGE};

    if (!id)
        return -1;
    if (id->kind != PICKLE_CONTAINER || id->value.type != PT_TUPLE || id->len != 5)
        return unpickle_bad(m, "a storage that is no tuple of 5");
    for (const struct pickle_cell *c = id->first; c; c = c->next)
        part[n++] = c->obj;
    if (part[1]->kind != PICKLE_GLOBAL || part[1]->global != PICKLE_STORAGE_CLASS ||
        part[2]->kind != PICKLE_VALUE || part[2]->value.type != PT_STR || part[4]->kind != PICKLE_VALUE ||
        part[4]->value.type != PT_INT)
        return unpickle_bad(m, "a storage: expected its class, its key and its length");
    struct pt_tensor *t = &o.value.tensor;
    *t = (struct pt_tensor){.dtype = part[1]->value.tensor.dtype, .dims = 1, .dim = {part[4]->value.i}};
    int64_t want = pt_tensor_bytes(t);
    if (m->source->storage(m->source->ctx, part[2]->value.s, &t->data, &bytes, m->err))
        return -1;
    if (want < 0 || (uint64_t)want != bytes)
        return err_set(m->err, ERR_INVALID, "storage %.40s: %zu bytes, but the pickle says %" PRId64,
                       part[2]->value.s, bytes, want);
    return unpickle_push(m, &o);
}

static int op_proto(struct unpickle_machine *m)
{
    uint64_t v;

    if (unpickle_le(m, 1, &v))
        return -1;
    return v == 2 ? 0 : err_set(m->err, ERR_INVALID, "protocol %" PRIu64 ", expected 2", v);
}

static int run_op(struct unpickle_machine *m, int op)
{
    switch (op) {
    case OP_PROTO:
        return op_proto(m);
    case OP_MARK:
        return unpickle_push(m, &(struct pickle_obj){.kind = PICKLE_MARK});
    case OP_NONE:
        return unpickle_push_value(m, (struct pt_value){.type = PT_NONE});
    case OP_TRUE:
    case OP_FALSE:
        return unpickle_push_value(m, (struct pt_value){.type = PT_BOOL, .b = op == OP_TRUE});
    case OP_BININT:
        return unpickle_int(m, 4);
    case OP_BININT1:
        return unpickle_int(m, 1);
    case OP_BININT2:
        return unpickle_int(m, 2);
    case OP_LONG1:
        return unpickle_long(m);
    case OP_BINFLOAT:
        return unpickle_float(m);
    case OP_BINUNICODE:
        return unpickle_text(m);
    case OP_GLOBAL:
        return unpickle_global(m);
    case OP_REDUCE:
        return op_reduce(m);
    case OP_BUILD:
        return op_build(m);
    case OP_PERSID:
        return op_persistent(m);
    case OP_EMPTY_DICT:
        return unpickle_push_container(m, PT_DICT);
    case OP_EMPTY_LIST:
        return unpickle_push_container(m, PT_LIST);
    case OP_EMPTY_TUPLE:
        return unpickle_push_container(m, PT_TUPLE);
    case OP_SETITEM:
        return op_few(m, 2, true);
    case OP_SETITEMS:
        return op_fill(m, unpickle_since_mark(m), true, true);
    case OP_APPEND:
        return op_few(m, 1, false);
    case OP_APPENDS:
        return op_fill(m, unpickle_since_mark(m), true, false);
    case OP_TUPLE:
        return op_tuple(m, unpickle_since_mark(m), true);
    case OP_TUPLE1:
        return op_short_tuple(m, 1);
    case OP_TUPLE2:
        return op_short_tuple(m, 2);
    case OP_TUPLE3:
        return op_short_tuple(m, 3);
    case OP_PUT:
        return op_put(m, 1);
    case OP_LONG_PUT:
        return op_put(m, 4);
    case OP_GET:
        return op_get(m, 1);
    case OP_LONG_GET:
        return op_get(m, 4);
    default:
        return err_set(m->err, ERR_INVALID, "opcode 0x%02x is not allowed in a file of weights",
                       (unsigned)op);
    }
}

int unpickle(const void *bytes, size_t len, const struct unpickle_source *source, struct arena *a,
             struct pt_value *ret, struct err *err)
{
    struct unpickle_machine m = {.bytes = bytes, .len = len, .source = source, .arena = a, .err = err};
    size_t budget = len * UNPICKLE_VALUES_PER_BYTE;

    if (len > UNPICKLE_BYTES)
        return err_set(err, ERR_INVALID, "%zu bytes, expected at most %d", len, UNPICKLE_BYTES);
    while (m.at < m.len) {
        size_t at = m.at;
        int op = m.bytes[m.at++];
        if (op == OP_STOP) {
            const struct pickle_obj *root = unpickle_pop(&m);
            return root ? pickle_obj_value(root, a, 0, &budget, ret, err) : -1;
        }
        if (run_op(&m, op))
            return err_wrap(err, "byte %zu", at);
    }
    return err_set(err, ERR_INVALID, "ends without its last opcode");
}
