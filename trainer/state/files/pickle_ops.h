/* pickle_ops.h - the single steps of a protocol-2 pickle: opcodes, numbers, text, references. Pure.
 *
 * Errors: -1 with p->err filled; the pickle is then of no use.
 */
#ifndef TK_TRAINER_STATE_FILES_PICKLE_OPS_H
#define TK_TRAINER_STATE_FILES_PICKLE_OPS_H

#include "common/buf.h"
#include "trainer/state/files/pickle_memo.h"
#include "trainer/state/files/storages.h"

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

struct pickler {
    struct buf *out;
    struct pickle_memo memo;
    struct storages *storages;
    struct err *err;
};

int pickle_op(struct pickler *p, int op);

/* `op` and the low `len` (at most 8) bytes of `v`, little-endian. */
int pickle_op_le(struct pickler *p, int op, uint64_t v, size_t len);

/* Number what was just written: Python does so with every object it may meet again, used or not. */
int pickle_memo(struct pickler *p);

/* `name` is "module\nattribute\n". Globals and text that were written before become references. */
int pickle_global(struct pickler *p, const char *name);
int pickle_str(struct pickler *p, const char *s);
int pickle_int(struct pickler *p, int64_t v);

/* The end of a tuple of `len` >= 1 items, written since a mark (three or fewer need none). */
int pickle_tuple_end(struct pickler *p, size_t len);

#endif
