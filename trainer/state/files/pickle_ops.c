/* pickle_ops.c - encode pickle opcodes and numbers in Python's shortest forms. */
#include "trainer/state/files/pickle_ops.h"
#include "common/endian.h"

#include "common/cleanup.h"

#include <string.h>

int pickle_op(struct pickler *p, int op)
{
    uint8_t byte = (uint8_t)op;

    return buf_append(p->out, &byte, 1, p->err);
}

int pickle_op_le(struct pickler *p, int op, uint64_t v, size_t len)
{
    uint8_t bytes[9] = {(uint8_t)op};

    le_put(bytes + 1, v, len);
    return buf_append(p->out, bytes, 1 + len, p->err);
}

static int put_reference(struct pickler *p, int op, int long_op, int32_t number)
{
    return number < 256 ? pickle_op_le(p, op, (uint64_t)number, 1)
                        : pickle_op_le(p, long_op, (uint64_t)number, 4);
}

int pickle_memo(struct pickler *p)
{
    return put_reference(p, OP_PUT, OP_LONG_PUT, p->memo.len++);
}

int pickle_global(struct pickler *p, const char *name)
{
    int32_t known = pickle_memo_find(&p->memo, PICKLE_MEMO_GLOBAL, name);

    if (known != PICKLE_MEMO_NONE)
        return put_reference(p, OP_GET, OP_LONG_GET, known);
    if (pickle_op(p, OP_GLOBAL) < 0 || buf_puts(p->out, name, p->err) < 0)
        return -1;
    return put_reference(p, OP_PUT, OP_LONG_PUT, pickle_memo_add(&p->memo, PICKLE_MEMO_GLOBAL, name));
}

/* The bytes of one character, 0 when it is none: readers refuse text that is not UTF-8. */
static size_t utf8_len(const uint8_t *s)
{
    static const struct {
        uint8_t mask, lead;
        uint32_t min;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

    for (size_t more = 0; more < ARRAY_LEN(forms); more++) {
        if ((s[0] & forms[more].mask) != forms[more].lead)
            continue;
        uint32_t v = s[0] & (uint8_t)~forms[more].mask;
        for (size_t i = 1; i <= more; i++) {
            if ((s[i] & 0xc0) != 0x80)
                return 0;
            v = v << 6 | (s[i] & 0x3fU);
        }
        bool surrogate = v >= 0xd800 && v <= 0xdfff;
        return v < forms[more].min || v > 0x10ffff || surrogate ? 0 : more + 1;
    }
    return 0;
}

static int check_text(const char *s, size_t len, struct err *err)
{
    if (len > INT32_MAX)
        return err_set(err, ERR_INVALID, "string: %zu bytes, expected at most %d", len, INT32_MAX);
    for (const char *p = s; *p;) {
        size_t n = utf8_len((const uint8_t *)p);
        if (!n)
            return err_set(err, ERR_INVALID, "string: byte %td is not UTF-8", p - s);
        p += n;
    }
    return 0;
}

int pickle_str(struct pickler *p, const char *s)
{
    size_t len = strlen(s);
    int32_t known = pickle_memo_find(&p->memo, PICKLE_MEMO_TEXT, s);

    if (known != PICKLE_MEMO_NONE)
        return put_reference(p, OP_GET, OP_LONG_GET, known);
    if (check_text(s, len, p->err) < 0 || pickle_op_le(p, OP_BINUNICODE, len, 4) < 0 ||
        buf_append(p->out, s, len, p->err) < 0)
        return -1;
    return put_reference(p, OP_PUT, OP_LONG_PUT, pickle_memo_add(&p->memo, PICKLE_MEMO_TEXT, s));
}

int pickle_int(struct pickler *p, int64_t v)
{
    uint8_t bytes[8], len = 5;

    if (v >= 0 && v <= UINT8_MAX)
        return pickle_op_le(p, OP_BININT1, (uint64_t)v, 1);
    if (v >= 0 && v <= UINT16_MAX)
        return pickle_op_le(p, OP_BININT2, (uint64_t)v, 2);
    if (v >= INT32_MIN && v <= INT32_MAX)
        return pickle_op_le(p, OP_BININT, (uint64_t)v, 4);
    /* LONG1: the shortest two's complement. */
    while (len < 8 && v >> (8 * len - 1) != 0 && v >> (8 * len - 1) != -1)
        len++;
    if (pickle_op_le(p, OP_LONG1, len, 1) < 0)
        return -1;
    le_put(bytes, (uint64_t)v, len);
    return buf_append(p->out, bytes, len, p->err);
}

int pickle_tuple_end(struct pickler *p, size_t len)
{
    if (pickle_op(p, len <= 3 ? OP_TUPLE1 + (int)len - 1 : OP_TUPLE) < 0)
        return -1;
    return pickle_memo(p);
}
