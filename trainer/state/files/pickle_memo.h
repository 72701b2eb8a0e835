/* pickle_memo.h - what a pickle has already written, by content: numbers for later references. Pure.
 *
 * Ownership: lives in the arena; keys are borrowed.
 */
#ifndef TK_TRAINER_STATE_FILES_PICKLE_MEMO_H
#define TK_TRAINER_STATE_FILES_PICKLE_MEMO_H

#include "common/arena.h"

#include <stdint.h>

enum { PICKLE_MEMO_BUCKETS = 1024, PICKLE_MEMO_NONE = -1 };

/* Text and a global of the same spelling are different things. */
enum pickle_memo_kind { PICKLE_MEMO_TEXT, PICKLE_MEMO_GLOBAL };

struct pickle_memo {
    struct arena *arena;
    struct pickle_memo_entry *bucket[PICKLE_MEMO_BUCKETS];
    int32_t len; /* numbers given out, to unnamed things too */
};

/* The number under which `key` was noted, or PICKLE_MEMO_NONE. */
int32_t pickle_memo_find(const struct pickle_memo *m, enum pickle_memo_kind kind, const char *key);

/* Note `key` under the next number, which is returned. */
int32_t pickle_memo_add(struct pickle_memo *m, enum pickle_memo_kind kind, const char *key);

#endif
