/* store.c - index objects by namespace and name, and by group. */
#include "kube/store.h"

#include "common/hash.h"
#include "common/hashtable.h"
#include "common/heapsize.h"
#include "common/memory.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* One allocation per object. `text` holds namespace, name, uid and group, each with its NUL, unless the value has them. */
struct node {
    struct kube_store_entry e; /* the first member: entry and node have one address */
    struct hashtable_node by_name;
    struct hashtable_node by_group; /* only if it has a group */
    enum { UNMARKED, MARKED, DOUBTED } mark;
    char text[];
};

struct kube_store {
    void (*free_value)(void *value);
    struct hashtable names;
    struct hashtable groups;
};

static uint32_t hash_key(const char *ns, const char *name)
{
    return hashtable_fold(hash_seeded(hash_seeded(0, ns, strlen(ns)), name, strlen(name)));
}

static uint32_t hash_group(const char *group)
{
    return hashtable_fold(hash_seeded(0, group, strlen(group)));
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

static struct node *by_name(struct hashtable_node *n)
{
    return n ? (void *)((char *)n - offsetof(struct node, by_name)) : NULL;
}

static struct node *by_group(struct hashtable_node *n)
{
    return n ? (void *)((char *)n - offsetof(struct node, by_group)) : NULL;
}

static struct node *find_node(const struct kube_store *s, const char *ns, const char *name)
{
    struct hashtable_node *n = hashtable_first_of(&s->names, hash_key(ns, name));

    while (n && (strcmp(by_name(n)->e.name, name) != 0 || strcmp(by_name(n)->e.ns, ns) != 0))
        n = hashtable_next_of(n);
    return by_name(n);
}

static void drop(struct kube_store *s, struct node *n)
{
    hashtable_remove(&s->names, &n->by_name);
    if (n->e.group[0])
        hashtable_remove(&s->groups, &n->by_group);
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
    return n;
}

static const struct kube_store_entry *put(struct kube_store *s, struct node *n)
{
    struct node *old = find_node(s, n->e.ns, n->e.name);

    if (old)
        drop(s, old);
    hashtable_add(&s->names, &n->by_name, hash_key(n->e.ns, n->e.name));
    if (n->e.group[0])
        hashtable_add(&s->groups, &n->by_group, hash_group(n->e.group));
    return &n->e;
}

const struct kube_store_entry *kube_store_put(struct kube_store *s, const char *ns, const char *name,
                                              const char *uid, const char *group, void *value)
{
    struct kube_store_entry e = {ns ? ns : "", name, uid ? uid : "", group ? group : "", value};
    /* Create the new node before freeing the old one: the caller may pass the old one's strings. */
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
    struct node *n = find_node(s, ns ? ns : "", name);

    return n ? &n->e : NULL;
}

bool kube_store_remove(struct kube_store *s, const char *ns, const char *name)
{
    struct node *n = find_node(s, ns ? ns : "", name);

    if (n)
        drop(s, n);
    return n != NULL;
}

size_t kube_store_count(const struct kube_store *s)
{
    return s->names.count;
}

static const struct kube_store_entry *same_group(struct hashtable_node *n, const char *group)
{
    while (n && strcmp(by_group(n)->e.group, group) != 0)
        n = hashtable_next_of(n);
    return n ? &by_group(n)->e : NULL;
}

const struct kube_store_entry *kube_store_group(const struct kube_store *s, const char *group)
{
    if (!group || !group[0])
        return NULL;
    return same_group(hashtable_first_of(&s->groups, hash_group(group)), group);
}

const struct kube_store_entry *kube_store_group_next(const struct kube_store_entry *e)
{
    return same_group(hashtable_next_of(&node_of(e)->by_group), e->group);
}

static const struct kube_store_entry *entry_of(struct hashtable_node *n)
{
    return n ? &by_name(n)->e : NULL;
}

const struct kube_store_entry *kube_store_first(const struct kube_store *s)
{
    return entry_of(hashtable_first(&s->names));
}

const struct kube_store_entry *kube_store_next(const struct kube_store *s, const struct kube_store_entry *e)
{
    return entry_of(hashtable_next(&s->names, &node_of(e)->by_name));
}

void kube_store_unmark_one(const struct kube_store_entry *e)
{
    node_of(e)->mark = UNMARKED;
}

void kube_store_doubt(struct kube_store *s, const char *ns)
{
    for (const struct kube_store_entry *e = kube_store_first(s); e; e = kube_store_next(s, e))
        if (node_of(e)->mark == MARKED && (!ns || strcmp(e->ns, ns) == 0))
            node_of(e)->mark = DOUBTED;
}

bool kube_store_is_doubted(const struct kube_store_entry *e)
{
    return node_of(e)->mark == DOUBTED;
}

void kube_store_mark(struct kube_store *s)
{
    for (const struct kube_store_entry *e = kube_store_first(s); e; e = kube_store_next(s, e))
        node_of(e)->mark = MARKED;
}

size_t kube_store_sweep(struct kube_store *s, void (*gone)(void *ctx, const struct kube_store_entry *e),
                        void *ctx)
{
    size_t n = 0;

    for (const struct kube_store_entry *e = kube_store_first(s); e;) {
        const struct kube_store_entry *next = kube_store_next(s, e);
        if (node_of(e)->mark == MARKED) {
            if (gone)
                gone(ctx, e);
            drop(s, node_of(e));
            n++;
        }
        e = next;
    }
    return n;
}

size_t kube_store_bytes(const struct kube_store *s, size_t (*value_bytes)(const void *value))
{
    size_t bytes = heapsize(s) + heapsize(s->names.buckets) + heapsize(s->groups.buckets);

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
    hashtable_release(&s->names);
    hashtable_release(&s->groups);
    free(s);
}
