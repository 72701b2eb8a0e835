/* store.c - index objects by namespace and name, and by group. */
#include "kube/store.h"

#include "common/hash.h"
#include "common/heapsize.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

/* One allocation per object; `text` holds namespace, name, uid and group, each with its NUL, unless the value has them. */
struct node {
    struct kube_store_entry e; /* first: an entry's address is its node's */
    struct node *next;         /* in its bucket */
    struct node *group_next;   /* in its group bucket, other groups among them */
    uint32_t hash, group_hash;
    bool marked;
    char text[];
};

struct kube_store {
    void (*free_value)(void *value);
    struct node **buckets;
    struct node **groups;
    size_t n_buckets; /* of both; a power of two, 0 at first */
    size_t count;
};

/* Of 64 bits a node keeps 32: they choose its bucket and spare most comparisons. */
static uint32_t fold(uint64_t h)
{
    return (uint32_t)(h ^ h >> 32);
}

/* The NUL counts, so that "ab", "c" is not "a", "bc". */
static uint32_t hash_key(const char *ns, const char *name)
{
    return fold(hash_fnv1a(hash_fnv1a(HASH_FNV1A, ns, strlen(ns) + 1), name, strlen(name)));
}

static uint32_t hash_group(const char *group)
{
    return fold(hash_fnv1a(HASH_FNV1A, group, strlen(group)));
}

struct kube_store *kube_store_new(void (*free_value)(void *value))
{
    struct kube_store *s = memory_must(calloc(1, sizeof(*s)));

    s->free_value = free_value;
    return s;
}

static struct node *node_of(const struct kube_store_entry *e)
{
    return (struct node *)(uintptr_t)e;
}

static void link_node(struct kube_store *s, struct node *n)
{
    struct node **b = &s->buckets[n->hash & (s->n_buckets - 1)];
    struct node **g = &s->groups[n->group_hash & (s->n_buckets - 1)];

    n->next = *b;
    *b = n;
    if (!n->e.group[0])
        return;
    n->group_next = *g;
    *g = n;
}

static void resize(struct kube_store *s, size_t n_buckets)
{
    struct node **old = s->buckets;
    size_t n_old = s->n_buckets;

    free(s->groups);
    s->n_buckets = n_buckets;
    s->buckets = memory_must(calloc(n_buckets, sizeof(*s->buckets)));
    s->groups = memory_must(calloc(n_buckets, sizeof(*s->groups)));
    for (size_t i = 0; i < n_old; i++) {
        for (struct node *n = old[i]; n;) {
            struct node *next = n->next;
            n->group_next = NULL;
            link_node(s, n);
            n = next;
        }
    }
    free(old);
}

/* The link that points at the object, or at the end of its bucket. */
static struct node **find(const struct kube_store *s, uint32_t hash, const char *ns, const char *name)
{
    struct node **at = &s->buckets[hash & (s->n_buckets - 1)];

    while (*at && ((*at)->hash != hash || strcmp((*at)->e.name, name) != 0 || strcmp((*at)->e.ns, ns) != 0))
        at = &(*at)->next;
    return at;
}

static void drop(struct kube_store *s, struct node **at)
{
    struct node *n = *at;

    *at = n->next;
    if (n->e.group[0]) {
        struct node **g = &s->groups[n->group_hash & (s->n_buckets - 1)];
        while (*g != n)
            g = &(*g)->group_next;
        *g = n->group_next;
    }
    s->count--;
    if (s->free_value)
        s->free_value(n->e.value);
    free(n);
}

static const char *add_text(char **to, const char *s)
{
    size_t len = strlen(s) + 1;
    char *at = memcpy(*to, s, len);

    *to += len;
    return at;
}

static struct node *node_new(const struct kube_store_entry *e, size_t text)
{
    struct node *n = memory_must(calloc(1, sizeof(*n) + text));

    n->e = *e;
    n->hash = hash_key(e->ns, e->name);
    n->group_hash = hash_group(e->group);
    return n;
}

static const struct kube_store_entry *put(struct kube_store *s, struct node *n)
{
    if (s->n_buckets) {
        struct node **old = find(s, n->hash, n->e.ns, n->e.name);
        if (*old)
            drop(s, old);
    }
    if (s->count >= s->n_buckets)
        resize(s, s->n_buckets ? s->n_buckets * 2 : 16);
    link_node(s, n);
    s->count++;
    return &n->e;
}

const struct kube_store_entry *kube_store_put(struct kube_store *s, const char *ns, const char *name,
                                              const char *uid, const char *group, void *value)
{
    struct kube_store_entry e = {ns ? ns : "", name, uid ? uid : "", group ? group : "", value};
    /* The new node first: the caller may pass strings of the old one. */
    struct node *n = node_new(&e, strlen(e.ns) + strlen(e.name) + strlen(e.uid) + strlen(e.group) + 4);
    char *to = n->text;

    n->e.ns = add_text(&to, e.ns);
    n->e.name = add_text(&to, e.name);
    n->e.uid = add_text(&to, e.uid);
    n->e.group = add_text(&to, e.group);
    return put(s, n);
}

const struct kube_store_entry *kube_store_put_view(struct kube_store *s, const struct kube_store_entry *e)
{
    return put(s, node_new(e, 0));
}

const struct kube_store_entry *kube_store_get(const struct kube_store *s, const char *ns, const char *name)
{
    struct node *n = s->n_buckets ? *find(s, hash_key(ns ? ns : "", name), ns ? ns : "", name) : NULL;

    return n ? &n->e : NULL;
}

bool kube_store_remove(struct kube_store *s, const char *ns, const char *name, const char *uid)
{
    if (!s->n_buckets)
        return false;
    struct node **at = find(s, hash_key(ns ? ns : "", name), ns ? ns : "", name);
    if (!*at || (uid && strcmp((*at)->e.uid, uid) != 0))
        return false;
    drop(s, at);
    return true;
}

size_t kube_store_count(const struct kube_store *s)
{
    return s->count;
}

static const struct kube_store_entry *same_group(const struct node *n, uint32_t hash, const char *group)
{
    while (n && (n->group_hash != hash || strcmp(n->e.group, group) != 0))
        n = n->group_next;
    return n ? &n->e : NULL;
}

const struct kube_store_entry *kube_store_group(const struct kube_store *s, const char *group)
{
    if (!s->n_buckets || !group || !group[0])
        return NULL;
    uint32_t hash = hash_group(group);
    return same_group(s->groups[hash & (s->n_buckets - 1)], hash, group);
}

const struct kube_store_entry *kube_store_group_next(const struct kube_store_entry *e)
{
    const struct node *n = node_of(e);

    return same_group(n->group_next, n->group_hash, e->group);
}

static const struct kube_store_entry *first_from(const struct kube_store *s, size_t bucket)
{
    for (; bucket < s->n_buckets; bucket++)
        if (s->buckets[bucket])
            return &s->buckets[bucket]->e;
    return NULL;
}

const struct kube_store_entry *kube_store_first(const struct kube_store *s)
{
    return first_from(s, 0);
}

const struct kube_store_entry *kube_store_next(const struct kube_store *s, const struct kube_store_entry *e)
{
    const struct node *n = node_of(e);

    return n->next ? &n->next->e : first_from(s, (n->hash & (s->n_buckets - 1)) + 1);
}

void kube_store_mark_one(const struct kube_store_entry *e)
{
    node_of(e)->marked = true;
}

void kube_store_unmark_one(const struct kube_store_entry *e)
{
    node_of(e)->marked = false;
}

bool kube_store_is_marked(const struct kube_store_entry *e)
{
    return node_of(e)->marked;
}

void kube_store_mark(struct kube_store *s)
{
    for (const struct kube_store_entry *e = kube_store_first(s); e; e = kube_store_next(s, e))
        kube_store_mark_one(e);
}

size_t kube_store_sweep(struct kube_store *s, void (*gone)(void *ctx, const struct kube_store_entry *e),
                        void *ctx)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_buckets; i++) {
        struct node **at = &s->buckets[i];
        while (*at) {
            if (!(*at)->marked) {
                at = &(*at)->next;
                continue;
            }
            if (gone)
                gone(ctx, &(*at)->e);
            drop(s, at);
            n++;
        }
    }
    return n;
}

size_t kube_store_bytes(const struct kube_store *s, size_t (*value_bytes)(const void *value))
{
    size_t bytes = heapsize(s) + heapsize(s->buckets) + heapsize(s->groups);

    for (const struct kube_store_entry *e = kube_store_first(s); e; e = kube_store_next(s, e))
        bytes += heapsize(node_of(e)) + (value_bytes && e->value ? value_bytes(e->value) : 0);
    return bytes;
}

void kube_store_free(struct kube_store *s)
{
    if (!s)
        return;
    kube_store_mark(s);
    kube_store_sweep(s, NULL, NULL);
    free(s->buckets);
    free(s->groups);
    free(s);
}
