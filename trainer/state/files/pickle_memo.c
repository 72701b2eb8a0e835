/* pickle_memo.c - the memo table of the pickle writer: a hash table with chains. */
#include "trainer/state/files/pickle_memo.h"

#include "common/hash.h"

#include <string.h>

struct pickle_memo_entry {
    struct pickle_memo_entry *next;
    const char *key;
    enum pickle_memo_kind kind;
    int32_t number;
};

static size_t bucket_of(enum pickle_memo_kind kind, const char *key)
{
    return (size_t)(hash_fnv1a(HASH_FNV1A ^ (uint64_t)kind, key, strlen(key)) % PICKLE_MEMO_BUCKETS);
}

int32_t pickle_memo_find(const struct pickle_memo *m, enum pickle_memo_kind kind, const char *key)
{
    for (const struct pickle_memo_entry *e = m->bucket[bucket_of(kind, key)]; e; e = e->next) {
        if (e->kind == kind && strcmp(e->key, key) == 0)
            return e->number;
    }
    return PICKLE_MEMO_NONE;
}

int32_t pickle_memo_add(struct pickle_memo *m, enum pickle_memo_kind kind, const char *key)
{
    struct pickle_memo_entry **head = &m->bucket[bucket_of(kind, key)];
    struct pickle_memo_entry *e = arena_new(m->arena, struct pickle_memo_entry);

    *e = (struct pickle_memo_entry){.next = *head, .key = key, .kind = kind, .number = m->len++};
    *head = e;
    return e->number;
}
