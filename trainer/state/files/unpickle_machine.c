/* unpickle_machine.c - the unpickler's stack, and reading an opcode's operand. */
#include "trainer/state/files/unpickle_machine.h"
#include "common/endian.h"

#include <string.h>

enum { NAME_BYTES = 128, STACK_FIRST = 256 };

static void grow(struct arena *a, struct unpickle_objs *o)
{
    size_t cap = o->cap ? o->cap * 2 : STACK_FIRST;
    struct pickle_obj **obj = arena_array(a, cap, struct pickle_obj *);

    if (o->len)
        memcpy(obj, o->obj, o->len * sizeof(struct pickle_obj *));
    o->obj = obj;
    o->cap = cap;
}

void unpickle_add(struct arena *a, struct unpickle_objs *o, struct pickle_obj *obj)
{
    if (o->len == o->cap)
        grow(a, o);
    o->obj[o->len++] = obj;
}

int unpickle_bad(struct unpickle_machine *m, const char *what)
{
    return err_set(m->err, ERR_INVALID, "%s", what);
}

int unpickle_push(struct unpickle_machine *m, const struct pickle_obj *o)
{
    struct pickle_obj *copy = arena_new(m->arena, struct pickle_obj);

    *copy = *o;
    unpickle_add(m->arena, &m->stack, copy);
    return 0;
}

int unpickle_push_value(struct unpickle_machine *m, struct pt_value v)
{
    return unpickle_push(m, &(struct pickle_obj){.kind = PICKLE_VALUE, .value = v});
}

int unpickle_push_container(struct unpickle_machine *m, enum pt_type type)
{
    return unpickle_push(m, &(struct pickle_obj){.kind = PICKLE_CONTAINER, .value.type = type});
}

struct pickle_obj *unpickle_pop(struct unpickle_machine *m)
{
    if (!m->stack.len || m->stack.obj[m->stack.len - 1]->kind == PICKLE_MARK) {
        unpickle_bad(m, "nothing on the stack");
        return NULL;
    }
    return m->stack.obj[--m->stack.len];
}

struct pickle_obj *unpickle_top(struct unpickle_machine *m)
{
    struct pickle_obj *o = unpickle_pop(m);

    if (o)
        m->stack.len++;
    return o;
}

int64_t unpickle_since_mark(struct unpickle_machine *m)
{
    for (size_t i = m->stack.len; i-- > 0;)
        if (m->stack.obj[i]->kind == PICKLE_MARK)
            return (int64_t)i + 1;
    return unpickle_bad(m, "no mark on the stack");
}

static const uint8_t *take(struct unpickle_machine *m, size_t n)
{
    if (n > m->len - m->at) {
        unpickle_bad(m, "ends in the middle");
        return NULL;
    }
    const uint8_t *p = m->bytes + m->at;
    m->at += n;
    return p;
}

int unpickle_le(struct unpickle_machine *m, size_t n, uint64_t *ret)
{
    const uint8_t *p = take(m, n);

    *ret = p ? le_get(p, n) : 0;
    return p ? 0 : -1;
}

int unpickle_int(struct unpickle_machine *m, size_t n)
{
    uint64_t v;

    if (unpickle_le(m, n, &v))
        return -1;
    return unpickle_push_value(m, pt_int(n == 4 ? (int32_t)(uint32_t)v : (int64_t)v));
}

int unpickle_long(struct unpickle_machine *m)
{
    uint64_t n;
    uint64_t v;

    if (unpickle_le(m, 1, &n))
        return -1;
    if (n > 8)
        return unpickle_bad(m, "an integer of more than 64 bits");
    if (unpickle_le(m, (size_t)n, &v))
        return -1;
    if (n && n < 8 && v >> (8 * n - 1))
        v |= UINT64_MAX << (8 * n);
    return unpickle_push_value(m, pt_int((int64_t)v));
}

int unpickle_float(struct unpickle_machine *m)
{
    const uint8_t *p = take(m, 8);
    uint64_t bits = 0;
    double v;

    for (size_t i = 0; p && i < 8; i++)
        bits = bits << 8 | p[i];
    memcpy(&v, &bits, sizeof(v));
    return p ? unpickle_push_value(m, pt_float(v)) : -1;
}

int unpickle_text(struct unpickle_machine *m)
{
    uint64_t n;

    if (unpickle_le(m, 4, &n))
        return -1;
    const uint8_t *p = take(m, (size_t)n);
    if (!p)
        return -1;
    if (memchr(p, 0, (size_t)n))
        return unpickle_bad(m, "text with a zero byte");
    return unpickle_push_value(m, pt_str(arena_strndup(m->arena, (const char *)p, (size_t)n)));
}

static int take_line(struct unpickle_machine *m, char out[static NAME_BYTES])
{
    const uint8_t *p = m->bytes + m->at;
    const uint8_t *end = memchr(p, '\n', m->len - m->at);
    size_t n = end ? (size_t)(end - p) : 0;

    if (!end || n >= NAME_BYTES)
        return unpickle_bad(m, "a global without an end to its name");
    memcpy(out, p, n);
    out[n] = '\0';
    m->at += n + 1;
    return 0;
}

int unpickle_global(struct unpickle_machine *m)
{
    char module[NAME_BYTES];
    char name[NAME_BYTES];
    struct pickle_obj o;

    if (take_line(m, module) || take_line(m, name) || pickle_obj_global(module, name, &o, m->err))
        return -1;
    return unpickle_push(m, &o);
}
