/* stale.c - a fake API server that shows an old state of one kind. */
#include "tests/fakes/server.h"

#include <stdlib.h>
#include <string.h>

static const struct kind *kind_of(const struct world *w, const char *plural)
{
    for (size_t i = 0; i < w->n_kinds; i++)
        if (strcmp(w->kinds[i].plural, plural) == 0)
            return &w->kinds[i];
    abort(); /* a test that names no kind */
}

/* The version before the last `lag` changes of the kind. */
static uint64_t version_before(const struct world *w, const struct kind *k, int lag)
{
    uint64_t version = w->version;

    for (size_t i = w->n_changes; i > 0 && lag > 0; i--) {
        if (w->changes[i - 1].kind != k)
            continue;
        version = w->changes[i - 1].version - 1;
        lag--;
    }
    return version;
}

static void build_past(struct fake_apiserver *s, uint64_t version)
{
    world_init(&s->past);
    for (size_t i = 0; i < s->world.n_changes; i++) {
        const struct change *c = &s->world.changes[i];
        if (c->kind == s->frozen && c->version <= version)
            world_repeat(&s->past, c);
    }
    s->past.version = version;
}

void fake_freeze(struct fake_apiserver *s, const char *plural, int lag)
{
    pthread_mutex_lock(&s->lock);
    if (s->frozen)
        world_release(&s->past);
    s->frozen = plural ? kind_of(&s->world, plural) : NULL;
    if (s->frozen)
        build_past(s, version_before(&s->world, s->frozen, lag));
    server_unlock(s);
}

/* A list without a resourceVersion is a consistent read: only watches fall behind, and what is read of a lease. */
struct world *server_shown(struct fake_apiserver *s, const char *method, const struct route *r)
{
    bool lease = r->kind && strcmp(r->kind->plural, "leases") == 0;

    return s->frozen && s->frozen == r->kind && lease && strcmp(method, "GET") == 0 ? &s->past : &s->world;
}

bool server_holds(const struct fake_apiserver *s, const struct conn *c)
{
    return s->frozen && c->route.kind == s->frozen &&
           s->world.changes[c->next_change].version > s->past.version;
}
