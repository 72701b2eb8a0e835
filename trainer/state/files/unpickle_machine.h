/* unpickle_machine.h - the stack machine of unpickle.c: its state, and the opcodes that read a value. Pure.
 *
 * Ownership: all lives in the machine's arena.
 * Errors:    -1 or NULL with *m->err set: ERR_INVALID.
 */
#ifndef TK_TRAINER_STATE_FILES_UNPICKLE_MACHINE_H
#define TK_TRAINER_STATE_FILES_UNPICKLE_MACHINE_H

#include "common/cleanup.h"
#include "trainer/state/files/pickle_obj.h"
#include "trainer/state/files/unpickle.h"

/* A list of objects that grows in the arena. */
struct unpickle_objs {
    struct pickle_obj **obj;
    size_t len, cap;
};

struct unpickle_machine {
    const uint8_t *bytes;
    size_t at, len;
    const struct unpickle_source *source;
    struct arena *arena;
    struct unpickle_objs stack;
    struct unpickle_objs memo;
    struct err *err;
};

void unpickle_add(struct arena *a, struct unpickle_objs *o, struct pickle_obj *obj);
int unpickle_bad(struct unpickle_machine *m, const char *what);

int unpickle_push(struct unpickle_machine *m, const struct pickle_obj *o); /* a copy */
int unpickle_push_value(struct unpickle_machine *m, struct pt_value v);
int unpickle_push_container(struct unpickle_machine *m, enum pt_type type);
struct pickle_obj *unpickle_pop(struct unpickle_machine *m);
struct pickle_obj *unpickle_top(struct unpickle_machine *m);

/* Where the objects since the last mark begin; -1: there is no mark. The mark itself is taken off by the caller. */
int64_t unpickle_since_mark(struct unpickle_machine *m);

/* `n` little-endian bytes, 8 at most. */
int unpickle_le(struct unpickle_machine *m, size_t n, uint64_t *ret);

/* What is read goes onto the stack: an integer of n bytes; LONG1, a length and two's complement; the others. */
int unpickle_int(struct unpickle_machine *m, size_t n);
int unpickle_long(struct unpickle_machine *m);
int unpickle_float(struct unpickle_machine *m);
int unpickle_text(struct unpickle_machine *m);
int unpickle_global(struct unpickle_machine *m);

#endif
