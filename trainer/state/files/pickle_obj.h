/* pickle_obj.h - what stands on an unpickler's stack, and the value it becomes at the end. Pure.
 *
 * Containers grow while references to them exist, so they are lists of cells here and arrays only at the end.
 * Ownership: objects live in the arena.
 */
#ifndef TK_TRAINER_STATE_FILES_PICKLE_OBJ_H
#define TK_TRAINER_STATE_FILES_PICKLE_OBJ_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/state/files/pt_value.h"

enum pickle_kind {
    PICKLE_VALUE,     /* `value`: none, bool, int, float, str or tensor */
    PICKLE_CONTAINER, /* `value.type` says which; items in the cells (a dict's: key, value, key, ...) */
    PICKLE_GLOBAL,    /* `number`: enum pickle_global_name */
    PICKLE_STORAGE,   /* `value.tensor`: data, dtype and dim[0] elements */
    PICKLE_MARK,
};

enum pickle_global_name {
    PICKLE_ORDERED_DICT,
    PICKLE_REBUILD_TENSOR,
    PICKLE_REBUILD_PARAMETER,
    PICKLE_STORAGE_CLASS, /* `value.tensor.dtype` */
};

struct pickle_cell {
    struct pickle_cell *next;
    const struct pickle_obj *obj;
};

struct pickle_obj {
    enum pickle_kind kind;
    enum pickle_global_name global;
    struct pt_value value;
    struct pickle_cell *first, *last;
    size_t len; /* cells */
};

void pickle_obj_append(struct arena *a, struct pickle_obj *container, const struct pickle_obj *item);

/* The global `module` `name`; ERR_INVALID when it is none of those above. */
int pickle_obj_global(const char *module, const char *name, struct pickle_obj *ret,
                      struct err *err) MUST_CHECK;

/* What calling `callable` with a tuple of arguments would give. */
int pickle_obj_call(const struct pickle_obj *callable, const struct pickle_obj *args, struct pickle_obj *ret,
                    struct err *err) MUST_CHECK;

/* The tree, `budget` values at most and PT_DEPTH_MAX deep. */
int pickle_obj_value(const struct pickle_obj *o, struct arena *a, int depth, size_t *budget,
                     struct pt_value *ret, struct err *err) MUST_CHECK;

#endif
