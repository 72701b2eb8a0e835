/* fairqueue.c - round-robin queue over shares (namespaces), with limits on the items in flight. */
#include "kube/fairqueue.h"

#include "common/hash.h"
#include "common/hashtable.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

enum { NOW, LATER, KINDS };

/* A share exists while it has items. */
struct fairqueue_share {
    struct hashtable_node by_name;     /* the first member: node and share have one address */
    struct fairqueue_link ring[KINDS]; /* in the queue's rings, while the share's line is not empty */
    struct fairqueue_link lines[KINDS];
    size_t n_items;
    int out, slow;
    char name[];
};

struct fairqueue {
    struct fairqueue_limits limits;
    struct hashtable shares; /* by name */
    struct fairqueue_link rings[KINDS];
    struct fairqueue_link later, young; /* by age, the oldest first */
    int out;
    int excused; /* slow items, at most slow_share_max of each share */
};

static struct fairqueue_item *item_of_line(struct fairqueue_link *link)
{
    return (void *)((char *)link - offsetof(struct fairqueue_item, line));
}

static struct fairqueue_item *item_of_age(struct fairqueue_link *link)
{
    return (void *)((char *)link - offsetof(struct fairqueue_item, age));
}

static struct fairqueue_share *share_of_ring(struct fairqueue_link *link, int kind)
{
    return (void *)((char *)(link - kind) - offsetof(struct fairqueue_share, ring));
}

static void link_init(struct fairqueue_link *head)
{
    head->prev = head->next = head;
}

static bool link_is_empty(const struct fairqueue_link *head)
{
    return head->next == head;
}

static void link_append(struct fairqueue_link *head, struct fairqueue_link *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

static void link_remove(struct fairqueue_link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
}

struct fairqueue *fairqueue_new(const struct fairqueue_limits *limits)
{
    struct fairqueue *f = memory_must(calloc(1, sizeof(*f)));

    f->limits = *limits;
    link_init(&f->rings[NOW]);
    link_init(&f->rings[LATER]);
    link_init(&f->later);
    link_init(&f->young);
    return f;
}

void fairqueue_free(struct fairqueue *f)
{
    if (!f)
        return;
    for (struct hashtable_node *n = hashtable_first(&f->shares); n;) {
        struct hashtable_node *next = hashtable_next(&f->shares, n);
        free(n);
        n = next;
    }
    hashtable_release(&f->shares);
    free(f);
}

static uint32_t hash_of(const char *name)
{
    return hashtable_fold(hash_seeded(0, name, strlen(name)));
}

static struct fairqueue_share *find_share(const struct fairqueue *f, const char *name)
{
    struct hashtable_node *n = hashtable_first_of(&f->shares, hash_of(name));

    while (n && strcmp(((struct fairqueue_share *)n)->name, name) != 0)
        n = hashtable_next_of(n);
    return (struct fairqueue_share *)n;
}

void fairqueue_join(struct fairqueue *f, struct fairqueue_item *it, const char *share)
{
    struct fairqueue_share *s = find_share(f, share);

    if (!s) {
        size_t len = strlen(share) + 1;
        s = memory_must(calloc(1, sizeof(*s) + len));
        memcpy(s->name, share, len);
        link_init(&s->lines[NOW]);
        link_init(&s->lines[LATER]);
        hashtable_add(&f->shares, &s->by_name, hash_of(share));
    }
    s->n_items++;
    *it = (struct fairqueue_item){.share = s};
}

void fairqueue_leave(struct fairqueue *f, struct fairqueue_item *it)
{
    struct fairqueue_share *s = it->share;

    fairqueue_end(f, it);
    it->share = NULL;
    if (--s->n_items)
        return;
    hashtable_remove(&f->shares, &s->by_name);
    free(s);
}

const char *fairqueue_share(const struct fairqueue_item *it)
{
    return it->share->name;
}

/* ---- lines */

static void line_up(struct fairqueue *f, struct fairqueue_item *it, int kind)
{
    if (link_is_empty(&it->share->lines[kind]))
        link_append(&f->rings[kind], &it->share->ring[kind]);
    link_append(&it->share->lines[kind], &it->line);
}

static void leave_line(struct fairqueue_item *it, int kind)
{
    link_remove(&it->line);
    if (link_is_empty(&it->share->lines[kind]))
        link_remove(&it->share->ring[kind]);
}

void fairqueue_wait(struct fairqueue *f, struct fairqueue_item *it, bool later, int64_t since_ms)
{
    it->since_ms = since_ms;
    it->state = later ? FAIRQUEUE_LATER : FAIRQUEUE_WAITING;
    line_up(f, it, later ? LATER : NOW);
    if (later)
        link_append(&f->later, &it->age);
}

/* ---- time */

static bool is_past(int64_t since_ms, int64_t limit_ms, int64_t now_ms)
{
    return now_ms - since_ms >= limit_ms;
}

static void become_slow(struct fairqueue *f, struct fairqueue_item *it)
{
    link_remove(&it->age);
    it->state = FAIRQUEUE_SLOW;
    f->excused += ++it->share->slow <= f->limits.slow_share_max;
}

static void stop_being_slow(struct fairqueue *f, struct fairqueue_item *it)
{
    f->excused -= it->share->slow-- <= f->limits.slow_share_max;
}

static void become_ordinary(struct fairqueue *f, struct fairqueue_item *it)
{
    link_remove(&it->age);
    leave_line(it, LATER);
    it->state = FAIRQUEUE_WAITING;
    line_up(f, it, NOW);
}

static void grow_old(struct fairqueue *f, int64_t now_ms)
{
    const struct fairqueue_limits *l = &f->limits;

    while (!link_is_empty(&f->young) && is_past(item_of_age(f->young.next)->since_ms, l->slow_ms, now_ms))
        become_slow(f, item_of_age(f->young.next));
    while (!link_is_empty(&f->later) && is_past(item_of_age(f->later.next)->since_ms, l->later_ms, now_ms))
        become_ordinary(f, item_of_age(f->later.next));
}

int64_t fairqueue_due_ms(const struct fairqueue *f)
{
    const struct fairqueue_limits *l = &f->limits;
    int64_t slow = INT64_MAX;
    int64_t old = INT64_MAX;
    bool waits = !link_is_empty(&f->rings[NOW]) || !link_is_empty(&f->rings[LATER]);

    if (waits && !link_is_empty(&f->young) && l->slow_ms != INT64_MAX)
        slow = item_of_age(f->young.next)->since_ms + l->slow_ms;
    if (!link_is_empty(&f->later))
        old = item_of_age(f->later.next)->since_ms + l->later_ms;
    return slow < old ? slow : old;
}

/* ---- slots */

static int taken(const struct fairqueue *f)
{
    return f->out - (f->excused < f->limits.slow_max ? f->excused : f->limits.slow_max);
}

/* Whether a slot is free for a share that has nothing out. */
static bool may_go(const struct fairqueue *f, const struct fairqueue_share *s)
{
    const struct fairqueue_limits *l = &f->limits;

    if (s->out == 0)
        return true;
    if (s->slow && s->out >= l->slow_share_max)
        return s->out < l->share_max && taken(f) < l->slots / 2;
    return s->out < l->share_max && taken(f) < l->slots;
}

bool fairqueue_is_full(struct fairqueue *f, const char *share)
{
    const struct fairqueue_share *s = find_share(f, share);

    if (!s || s->out == 0)
        return taken(f) >= f->limits.slots + f->limits.reserved;
    return !may_go(f, s);
}

struct fairqueue_item *fairqueue_next(struct fairqueue *f, int64_t now_ms)
{
    grow_old(f, now_ms);
    for (int kind = NOW; kind < KINDS; kind++) {
        if (taken(f) >= f->limits.slots + (kind == NOW ? f->limits.reserved : 0))
            break;
        for (struct fairqueue_link *at = f->rings[kind].next; at != &f->rings[kind]; at = at->next) {
            struct fairqueue_share *s = share_of_ring(at, kind);
            if (may_go(f, s))
                return item_of_line(s->lines[kind].next);
        }
    }
    return NULL;
}

/* The item's share moves to the end of the ring. */
void fairqueue_go(struct fairqueue *f, struct fairqueue_item *it, int64_t now_ms)
{
    struct fairqueue_share *s = it->share;
    int kind = it->state == FAIRQUEUE_LATER ? LATER : NOW;

    fairqueue_end(f, it);
    if (!link_is_empty(&s->lines[kind])) {
        link_remove(&s->ring[kind]);
        link_append(&f->rings[kind], &s->ring[kind]);
    }
    it->since_ms = now_ms;
    it->state = FAIRQUEUE_OUT;
    if (it->keeps_slot)
        link_init(&it->age);
    else
        link_append(&f->young, &it->age);
    s->out++;
    f->out++;
}

void fairqueue_end(struct fairqueue *f, struct fairqueue_item *it)
{
    switch (it->state) {
    case FAIRQUEUE_IDLE:
        return;
    case FAIRQUEUE_LATER:
        link_remove(&it->age);
        leave_line(it, LATER);
        break;
    case FAIRQUEUE_WAITING:
        leave_line(it, NOW);
        break;
    case FAIRQUEUE_OUT:
        link_remove(&it->age);
        it->share->out--;
        f->out--;
        break;
    case FAIRQUEUE_SLOW:
        stop_being_slow(f, it);
        it->share->out--;
        f->out--;
        break;
    }
    it->state = FAIRQUEUE_IDLE;
}
