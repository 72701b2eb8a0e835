/* correlator.c - aggregate and rate-limit Events; three tables that evict the row that was unused for longest. */
#include "kube/correlator.h"

#include "common/hash.h"
#include "common/memory.h"
#include "kube/tokenbucket.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 512 };

#define NEVER INT64_MIN

/* Every row begins so. */
struct row {
    uint64_t key;
    int64_t used_ms;
};

struct event_row {
    struct row row;
    int count;
    int64_t first_wall_ms;
    char name[CORRELATOR_NAME_BYTES];
};

struct group_row {
    struct row row;
    uint64_t messages[CORRELATOR_SIMILAR];
    int n_messages; /* one more than fits: they are combined */
};

struct object_row {
    struct row row;
    struct tokenbucket events;
};

static uint64_t hash_more(uint64_t h, const char *s)
{
    return hash_seeded(h, s, strlen(s));
}

static struct row *row_at(const struct correlator_table *t, size_t size, size_t i)
{
    return (struct row *)(void *)((char *)t->rows + i * size);
}

/* The row with this key and when it was used last: NEVER when it is new, zeroed but for the key. */
static void *find(struct correlator_table *t, size_t size, uint64_t key, int64_t now_ms, int64_t *ret_last_ms)
{
    size_t oldest = 0;

    *ret_last_ms = NEVER;
    for (size_t i = 0; i < t->n; i++) {
        struct row *r = row_at(t, size, i);
        if (r->key == key) {
            *ret_last_ms = r->used_ms;
            r->used_ms = now_ms;
            return r;
        }
        if (r->used_ms < row_at(t, size, oldest)->used_ms)
            oldest = i;
    }
    size_t i = t->n < ROWS_MAX ? t->n++ : oldest;
    if (t->n > t->cap) {
        t->cap = t->cap ? t->cap * 2 : 8;
        t->rows = memory_must(reallocarray(t->rows, t->cap, size));
    }
    struct row *r = row_at(t, size, i);
    memset(r, 0, size);
    r->key = key;
    r->used_ms = now_ms;
    return r;
}

static bool allow(struct correlator *c, uint64_t object, int64_t now_ms)
{
    int64_t last_ms;
    struct object_row *o = find(&c->objects, sizeof(*o), object, now_ms, &last_ms);

    if (last_ms == NEVER)
        o->events = (struct tokenbucket){CORRELATOR_BURST, now_ms};
    return tokenbucket_take(&o->events, CORRELATOR_REFILL_MS, CORRELATOR_BURST, now_ms);
}

/* Whether so many different messages came that they are told as one. */
static bool combine(struct correlator *c, uint64_t group, uint64_t message, int64_t now_ms)
{
    int64_t last_ms;

    struct group_row *g = find(&c->groups, sizeof(*g), group, now_ms, &last_ms);
    if (last_ms != NEVER && now_ms - last_ms > CORRELATOR_WINDOW_MS)
        g->n_messages = 0;
    for (int i = 0; i < g->n_messages && i < CORRELATOR_SIMILAR; i++)
        if (g->messages[i] == message)
            return g->n_messages > CORRELATOR_SIMILAR;
    if (g->n_messages < CORRELATOR_SIMILAR)
        g->messages[g->n_messages] = message;
    if (g->n_messages <= CORRELATOR_SIMILAR)
        g->n_messages++;
    return g->n_messages > CORRELATOR_SIMILAR;
}

struct correlator_verdict correlator_see(struct correlator *c, const char *object, const char *reason,
                                         const char *message, int64_t now_ms, int64_t wall_ms)
{
    uint64_t object_key = hash_more(0, object);
    uint64_t group_key = hash_more(object_key, reason);
    uint64_t message_key = hash_more(0, message);
    struct correlator_verdict v = {0};
    int64_t last_ms;

    v.combined = combine(c, group_key, message_key, now_ms);
    if (!allow(c, object_key, now_ms)) {
        v.drop = true;
        return v;
    }
    uint64_t event_key = v.combined ? group_key : hash_more(group_key, message);
    struct event_row *e = find(&c->events, sizeof(*e), event_key, now_ms, &last_ms);
    if (last_ms == NEVER)
        e->first_wall_ms = wall_ms;
    v.repeated = last_ms != NEVER;
    v.count = ++e->count;
    v.first_wall_ms = e->first_wall_ms;
    v.name = e->name;
    return v;
}

void correlator_release(struct correlator *c)
{
    free(c->events.rows);
    free(c->groups.rows);
    free(c->objects.rows);
    *c = (struct correlator){0};
}
