/* correlator.c - count repeated Events and limit the rate of each object, in two tables that evict the least
 * recently used row. */
#include "kube/correlator.h"

#include "common/hash.h"

#include <stdbool.h>
#include <string.h>

static uint64_t hash_more(uint64_t h, const char *s)
{
    return hash_seeded(h, s, strlen(s));
}

/* The row with this key. A new row is zeroed except for key and used_ms. */
static struct correlator_row *find_row(struct correlator_table *t, uint64_t key, int64_t now_ms)
{
    struct correlator_row *oldest = &t->rows[0];

    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].key == key)
            return &t->rows[i];
        if (t->rows[i].used_ms < oldest->used_ms)
            oldest = &t->rows[i];
    }
    if (t->n < CORRELATOR_ROWS)
        oldest = &t->rows[t->n++];
    *oldest = (struct correlator_row){.key = key, .used_ms = now_ms};
    return oldest;
}

static bool may_send(struct correlator *c, uint64_t object, int64_t now_ms)
{
    struct correlator_row *o = find_row(&c->objects, object, now_ms);

    o->spent -= (double)(now_ms - o->used_ms) / CORRELATOR_REFILL_MS;
    o->spent = o->spent > 0 ? o->spent : 0;
    o->used_ms = now_ms;
    if (o->spent > CORRELATOR_BURST - 1)
        return false;
    o->spent++;
    return true;
}

const struct correlator_event *correlator_see(struct correlator *c, const char *object, const char *reason,
                                              const char *message, int64_t now_ms, int64_t wall_ms)
{
    uint64_t object_key = hash_more(0, object);

    if (!may_send(c, object_key, now_ms))
        return NULL;
    struct correlator_row *e =
        find_row(&c->events, hash_more(hash_more(object_key, reason), message), now_ms);
    e->used_ms = now_ms;
    if (e->event.count++ == 0) {
        e->event.first_wall_ms = wall_ms;
        e->event.id = (uint64_t)wall_ms << 16 | c->sequence++;
    }
    return &e->event;
}
