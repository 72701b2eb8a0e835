/* memo.h - what a pickle has already written, by content: numbers for later references. Pure.
 *
 * Ownership: lives in the arena; keys are borrowed.
 */
#ifndef TK_TRAINER_STATE_FILES_MEMO_H
#define TK_TRAINER_STATE_FILES_MEMO_H

#include "common/arena.h"

#include <stdint.h>

enum { MEMO_BUCKETS = 1024, MEMO_NONE = -1 };

/* Text and a global of the same spelling are different things. */
enum memo_kind { MEMO_TEXT, MEMO_GLOBAL };

struct memo {
    struct arena *arena;
    struct memo_entry *bucket[MEMO_BUCKETS];
    int32_t len; /* numbers given out, to unnamed things too */
};

/* The number under which `key` was noted, or MEMO_NONE. */
int32_t memo_find(const struct memo *m, enum memo_kind kind, const char *key);

/* Note `key` under the next number, which is returned. */
int32_t memo_add(struct memo *m, enum memo_kind kind, const char *key);

#endif
