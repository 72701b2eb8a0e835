/* memo.c - the memo table of the pickle writer: a hash table with chains. */
#include "trainer/state/files/memo.h"

#include "common/hash.h"

#include <string.h>

struct memo_entry {
    struct memo_entry *next;
    const char *key;
    enum memo_kind kind;
    int32_t number;
};

static size_t bucket_of(enum memo_kind kind, const char *key)
{
    return (size_t)(hash_fnv1a(HASH_FNV1A ^ (uint64_t)kind, key, strlen(key)) % MEMO_BUCKETS);
}

int32_t memo_find(const struct memo *m, enum memo_kind kind, const char *key)
{
    for (const struct memo_entry *e = m->bucket[bucket_of(kind, key)]; e; e = e->next) {
        if (e->kind == kind && strcmp(e->key, key) == 0)
            return e->number;
    }
    return MEMO_NONE;
}

int32_t memo_add(struct memo *m, enum memo_kind kind, const char *key)
{
    struct memo_entry **head = &m->bucket[bucket_of(kind, key)];
    struct memo_entry *e = arena_new(m->arena, struct memo_entry);

    *e = (struct memo_entry){.next = *head, .key = key, .kind = kind, .number = m->len++};
    *head = e;
    return e->number;
}
