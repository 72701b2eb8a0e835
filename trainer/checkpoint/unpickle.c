/* unpickle.c - the stack machine. */
#include "trainer/checkpoint/unpickle.h"

#include "trainer/checkpoint/pickle_obj.h"
#include "trainer/checkpoint/pickle_ops.h"

#include <inttypes.h>
#include <string.h>

enum { OP_BUILD = 'b', OP_TUPLE2 = 0x86, OP_TUPLE3 = 0x87, NAME_BYTES = 128, STACK_FIRST = 256 };

/* A list of objects that grows in the arena. */
struct objs {
    struct pickle_obj **obj;
    size_t len, cap;
};

struct machine {
    const uint8_t *bytes;
    size_t at, len;
    const struct unpickle_source *source;
    struct arena *arena;
    struct objs stack;
    struct objs memo;
    struct err *err;
};

static void grow(struct arena *a, struct objs *o)
{
    size_t cap = o->cap ? o->cap * 2 : STACK_FIRST;
    struct pickle_obj **obj = arena_array(a, cap, struct pickle_obj *);

    if (o->len)
        memcpy(obj, o->obj, o->len * sizeof(struct pickle_obj *));
    o->obj = obj;
    o->cap = cap;
}

static void add(struct arena *a, struct objs *o, struct pickle_obj *obj)
{
    if (o->len == o->cap)
        grow(a, o);
    o->obj[o->len++] = obj;
}

static int push(struct machine *m, const struct pickle_obj *o)
{
    struct pickle_obj *copy = arena_new(m->arena, struct pickle_obj);

    *copy = *o;
    add(m->arena, &m->stack, copy);
    return 0;
}

static int push_value(struct machine *m, struct pt_value v)
{
    return push(m, &(struct pickle_obj){.kind = PICKLE_VALUE, .value = v});
}

static int push_container(struct machine *m, enum pt_type type)
{
    return push(m, &(struct pickle_obj){.kind = PICKLE_CONTAINER, .value.type = type});
}

static int bad(struct machine *m, const char *what)
{
    return err_set(m->err, ERR_INVALID, "%s", what);
}

static struct pickle_obj *pop(struct machine *m)
{
    if (!m->stack.len || m->stack.obj[m->stack.len - 1]->kind == PICKLE_MARK) {
        bad(m, "nothing on the stack");
        return NULL;
    }
    return m->stack.obj[--m->stack.len];
}

static struct pickle_obj *top(struct machine *m)
{
    struct pickle_obj *o = pop(m);

    if (o)
        m->stack.len++;
    return o;
}

/* Where the objects since the last mark begin; -1: there is no mark. The mark itself is taken off by the caller. */
static int64_t since_mark(struct machine *m)
{
    for (size_t i = m->stack.len; i-- > 0;)
        if (m->stack.obj[i]->kind == PICKLE_MARK)
            return (int64_t)i + 1;
    return bad(m, "no mark on the stack");
}

static const uint8_t *take(struct machine *m, size_t n)
{
    if (n > m->len - m->at) {
        bad(m, "ends in the middle");
        return NULL;
    }
    const uint8_t *p = m->bytes + m->at;
    m->at += n;
    return p;
}

/* `n` little-endian bytes, 8 at most. */
static int take_le(struct machine *m, size_t n, uint64_t *ret)
{
    const uint8_t *p = take(m, n);

    *ret = 0;
    for (size_t i = 0; p && i < n; i++)
        *ret |= (uint64_t)p[i] << (8 * i);
    return p ? 0 : -1;
}

static int op_int(struct machine *m, size_t n)
{
    uint64_t v;

    if (take_le(m, n, &v))
        return -1;
    return push_value(m, pt_int(n == 4 ? (int32_t)(uint32_t)v : (int64_t)v));
}

/* LONG1: a length, then two's complement. */
static int op_long(struct machine *m)
{
    uint64_t n;
    uint64_t v;

    if (take_le(m, 1, &n))
        return -1;
    if (n > 8)
        return bad(m, "an integer of more than 64 bits");
    if (take_le(m, (size_t)n, &v))
        return -1;
    if (n && n < 8 && v >> (8 * n - 1))
        v |= UINT64_MAX << (8 * n);
    return push_value(m, pt_int((int64_t)v));
}

static int op_float(struct machine *m)
{
    const uint8_t *p = take(m, 8);
    uint64_t bits = 0;
    double v;

    for (size_t i = 0; p && i < 8; i++)
        bits = bits << 8 | p[i];
    memcpy(&v, &bits, sizeof(v));
    return p ? push_value(m, pt_float(v)) : -1;
}

static int op_text(struct machine *m)
{
    uint64_t n;

    if (take_le(m, 4, &n))
        return -1;
    const uint8_t *p = take(m, (size_t)n);
    if (!p)
        return -1;
    if (memchr(p, 0, (size_t)n))
        return bad(m, "text with a zero byte");
    return push_value(m, pt_str(arena_strndup(m->arena, (const char *)p, (size_t)n)));
}

static int take_line(struct machine *m, char out[static NAME_BYTES])
{
    const uint8_t *p = m->bytes + m->at;
    const uint8_t *end = memchr(p, '\n', m->len - m->at);
    size_t n = end ? (size_t)(end - p) : 0;

    if (!end || n >= NAME_BYTES)
        return bad(m, "a global without an end to its name");
    memcpy(out, p, n);
    out[n] = '\0';
    m->at += n + 1;
    return 0;
}

static int op_global(struct machine *m)
{
    char module[NAME_BYTES];
    char name[NAME_BYTES];
    struct pickle_obj o;

    if (take_line(m, module) || take_line(m, name) || pickle_obj_global(module, name, &o, m->err))
        return -1;
    return push(m, &o);
}

static int op_put(struct machine *m, size_t width)
{
    uint64_t n;
    struct pickle_obj *o = top(m);

    if (!o || take_le(m, width, &n))
        return -1;
    if (n > m->memo.len)
        return bad(m, "a note under a number that is not the next");
    if (n == m->memo.len)
        add(m->arena, &m->memo, o);
    else
        m->memo.obj[n] = o;
    return 0;
}

static int op_get(struct machine *m, size_t width)
{
    uint64_t n;

    if (take_le(m, width, &n))
        return -1;
    if (n >= m->memo.len)
        return bad(m, "a reference to nothing");
    add(m->arena, &m->stack, m->memo.obj[n]); /* the object itself: it may still grow */
    return 0;
}

static int op_tuple(struct machine *m, int64_t from, bool marked)
{
    struct pickle_obj tuple = {.kind = PICKLE_CONTAINER, .value.type = PT_TUPLE};

    if (from < 0 || (size_t)from > m->stack.len)
        return from < 0 ? -1 : bad(m, "a tuple of more than there is");
    for (size_t i = (size_t)from; i < m->stack.len; i++) {
        if (m->stack.obj[i]->kind == PICKLE_MARK)
            return bad(m, "a mark inside a tuple");
        pickle_obj_append(m->arena, &tuple, m->stack.obj[i]);
    }
    m->stack.len = (size_t)from - marked;
    return push(m, &tuple);
}

static int op_short_tuple(struct machine *m, size_t n)
{
    return op_tuple(m, m->stack.len < n ? (int64_t)m->stack.len + 1 : (int64_t)(m->stack.len - n), false);
}

/* All since `from` into the container below; `marked`: a mark stands between. */
static int op_fill(struct machine *m, int64_t from, bool marked, bool dict)
{
    if (from < 0)
        return -1;
    size_t first = (size_t)from;
    size_t below = first - marked;
    if (first > m->stack.len || !below)
        return bad(m, "items without a container");
    struct pickle_obj *o = m->stack.obj[below - 1];
    bool is_dict = o->value.type == PT_DICT || o->value.type == PT_ORDERED_DICT;
    if (o->kind != PICKLE_CONTAINER || (dict ? !is_dict : o->value.type != PT_LIST))
        return bad(m, "items for something that takes none");
    if (dict && (m->stack.len - first) % 2)
        return bad(m, "a key without a value");
    for (size_t i = first; i < m->stack.len; i++)
        pickle_obj_append(m->arena, o, m->stack.obj[i]);
    m->stack.len = below;
    return 0;
}

static int op_few(struct machine *m, size_t n, bool dict)
{
    if (m->stack.len < n)
        return bad(m, "nothing on the stack");
    return op_fill(m, (int64_t)(m->stack.len - n), false, dict);
}

static int op_reduce(struct machine *m)
{
    struct pickle_obj o;
    const struct pickle_obj *args = pop(m);
    const struct pickle_obj *callable = args ? pop(m) : NULL;

    if (!callable || pickle_obj_call(callable, args, &o, m->err))
        return -1;
    return push(m, &o);
}

/* Attributes that torch.save keeps beside a state_dict (_metadata): nothing that training needs. */
static int op_build(struct machine *m)
{
    const struct pickle_obj *state = pop(m);
    const struct pickle_obj *o = state ? top(m) : NULL;

    if (!o)
        return -1;
    if (o->kind != PICKLE_CONTAINER || o->value.type != PT_ORDERED_DICT || state->kind != PICKLE_CONTAINER)
        return bad(m, "attributes for something that has none");
    return 0;
}

/* ('storage', class, key, location, elements) */
static int op_persistent(struct machine *m)
{
    const struct pickle_obj *id = pop(m);
    const struct pickle_obj *part[5];
    size_t n = 0;
    size_t bytes = 0;
    struct pickle_obj o = {.kind = PICKLE_STORAGE};

    if (!id)
        return -1;
    if (id->kind != PICKLE_CONTAINER || id->value.type != PT_TUPLE || id->len != 5)
        return bad(m, "a storage that is no tuple of 5");
    for (const struct pickle_cell *c = id->first; c; c = c->next)
        part[n++] = c->obj;
    if (part[1]->kind != PICKLE_GLOBAL || part[1]->global != PICKLE_STORAGE_CLASS ||
        part[2]->kind != PICKLE_VALUE || part[2]->value.type != PT_STR || part[4]->kind != PICKLE_VALUE ||
        part[4]->value.type != PT_INT)
        return bad(m, "a storage: expected its class, its key and its length");
    struct pt_tensor *t = &o.value.tensor;
    *t = (struct pt_tensor){.dtype = part[1]->value.tensor.dtype, .dims = 1, .dim = {part[4]->value.i}};
    int64_t want = pt_tensor_bytes(t);
    if (m->source->storage(m->source->ctx, part[2]->value.s, &t->data, &bytes, m->err))
        return -1;
    if (want < 0 || (uint64_t)want != bytes)
        return err_set(m->err, ERR_INVALID, "storage %.40s: %zu bytes, but the pickle says %" PRId64,
                       part[2]->value.s, bytes, want);
    return push(m, &o);
}

static int op_proto(struct machine *m)
{
    uint64_t v;

    if (take_le(m, 1, &v))
        return -1;
    return v == 2 ? 0 : err_set(m->err, ERR_INVALID, "protocol %" PRIu64 ", expected 2", v);
}

static int run_op(struct machine *m, int op)
{
    switch (op) {
    case OP_PROTO:
        return op_proto(m);
    case OP_MARK:
        return push(m, &(struct pickle_obj){.kind = PICKLE_MARK});
    case OP_NONE:
        return push_value(m, (struct pt_value){.type = PT_NONE});
    case OP_TRUE:
    case OP_FALSE:
        return push_value(m, (struct pt_value){.type = PT_BOOL, .b = op == OP_TRUE});
    case OP_BININT:
        return op_int(m, 4);
    case OP_BININT1:
        return op_int(m, 1);
    case OP_BININT2:
        return op_int(m, 2);
    case OP_LONG1:
        return op_long(m);
    case OP_BINFLOAT:
        return op_float(m);
    case OP_BINUNICODE:
        return op_text(m);
    case OP_GLOBAL:
        return op_global(m);
    case OP_REDUCE:
        return op_reduce(m);
    case OP_BUILD:
        return op_build(m);
    case OP_PERSID:
        return op_persistent(m);
    case OP_EMPTY_DICT:
        return push_container(m, PT_DICT);
    case OP_EMPTY_LIST:
        return push_container(m, PT_LIST);
    case OP_EMPTY_TUPLE:
        return push_container(m, PT_TUPLE);
    case OP_SETITEM:
        return op_few(m, 2, true);
    case OP_SETITEMS:
        return op_fill(m, since_mark(m), true, true);
    case OP_APPEND:
        return op_few(m, 1, false);
    case OP_APPENDS:
        return op_fill(m, since_mark(m), true, false);
    case OP_TUPLE:
        return op_tuple(m, since_mark(m), true);
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
        return err_set(m->err, ERR_INVALID, "opcode 0x%02x has no place in a file of weights", (unsigned)op);
    }
}

int unpickle(const void *bytes, size_t len, const struct unpickle_source *source, struct arena *a,
             struct pt_value *ret, struct err *err)
{
    struct machine m = {.bytes = bytes, .len = len, .source = source, .arena = a, .err = err};
    size_t budget = len * UNPICKLE_VALUES_PER_BYTE;

    if (len > UNPICKLE_BYTES)
        return err_set(err, ERR_INVALID, "%zu bytes, expected at most %d", len, UNPICKLE_BYTES);
    while (m.at < m.len) {
        size_t at = m.at;
        int op = m.bytes[m.at++];
        if (op == OP_STOP) {
            const struct pickle_obj *root = pop(&m);
            return root ? pickle_obj_value(root, a, 0, &budget, ret, err) : -1;
        }
        if (run_op(&m, op))
            return err_wrap(err, "byte %zu", at);
    }
    return err_set(err, ERR_INVALID, "ends without its last opcode");
}
