/* cache.c - keep a store up to date by a reflector. */
#include "kube/cache.h"

#include "common/json.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

struct kube_cache {
    struct kube_cache_options o;
    struct kube_store *store;
    struct reflector *reflector;
};

static const cJSON *metadata(const cJSON *object)
{
    return json_find(object, (const char *[]){"metadata", NULL});
}

static void tell_gone(void *ctx, const struct kube_store_entry *e)
{
    struct kube_cache *c = ctx;

    if (c->o.gone)
        c->o.gone(c->o.ctx, e);
    c->o.changed(c->o.ctx, e);
}

/* The entry that the object is about to replace: whoever loses by that is told while it is there. */
static void tell_replaced(struct kube_cache *c, const struct kube_store_entry *old, const char *uid,
                          const char *group)
{
    if (strcmp(old->uid, uid ? uid : "") != 0)
        tell_gone(c, old);
    else if (strcmp(old->group, group ? group : "") != 0)
        c->o.changed(c->o.ctx, old);
}

static const struct kube_store_entry *keep(struct kube_cache *c, const char *ns, const char *name,
                                           const char *uid, const struct kube_cache_item *item)
{
    if (!item->name)
        return kube_store_put(c->store, ns, name, uid, item->group, item->value);
    return kube_store_put_view(
        c->store, &(struct kube_store_entry){item->ns, item->name, item->uid, item->group, item->value});
}

void kube_cache_forget(struct kube_cache *c, const char *ns, const char *name, const char *uid)
{
    const struct kube_store_entry *old = kube_store_get(c->store, ns, name);

    if (!old || strcmp(old->uid, uid) != 0)
        return;
    tell_gone(c, old);
    kube_store_remove(c->store, old->ns, old->name, NULL);
}

/* It is there and says nothing: what was kept of this very object stays, also after the list under way. */
static void leave_as_it_was(struct kube_cache *c, const struct kube_store_entry *old, const char *uid,
                            bool marked, const struct err *why)
{
    bool same = old && strcmp(old->uid, uid ? uid : "") == 0;

    if (same && !marked)
        kube_store_unmark_one(old);
    else if (old && !same)
        kube_cache_forget(c, old->ns, old->name, old->uid);
    c->o.problem(c->o.ctx, why);
}

/* KUBE_CACHE_KEEP, KUBE_CACHE_DROP, or -1 with *why set: nothing is to be made of it. */
static int decode(struct kube_cache *c, const cJSON *object, const struct err *unreadable,
                  struct kube_cache_item *item, struct err *why)
{
    if (unreadable)
        *why = *unreadable;
    else if (!c->o.decode)
        return KUBE_CACHE_KEEP;
    int rc = unreadable ? -1 : c->o.decode(object, item, why);
    return rc < 0 && c->o.decode_unreadable ? c->o.decode_unreadable(object, why, item) : rc;
}

static void put(struct kube_cache *c, const cJSON *object, const struct err *unreadable, bool marked)
{
    const cJSON *meta = metadata(object);
    const char *ns = json_str(meta, "namespace");
    const char *name = json_str(meta, "name");
    const char *uid = json_str(meta, "uid");
    struct kube_cache_item item = {.group = ns};
    struct err why;
    int rc = decode(c, object, unreadable, &item, &why);
    const struct kube_store_entry *old = kube_store_get(c->store, ns, name);

    if (rc < 0) {
        leave_as_it_was(c, old, uid, marked, &why);
        return;
    }
    if (rc == KUBE_CACHE_DROP) {
        if (old)
            kube_cache_forget(c, old->ns, old->name, old->uid);
        return;
    }
    if (old)
        tell_replaced(c, old, uid, item.group);
    const struct kube_store_entry *fresh = keep(c, ns, name, uid, &item);
    if (marked)
        kube_store_mark_one(fresh);
    c->o.changed(c->o.ctx, fresh);
}

/* While a list comes, being in it is what counts. */
void kube_cache_put(struct kube_cache *c, const char *uid, const cJSON *object, const struct err *unreadable)
{
    const cJSON *meta = metadata(object);
    const struct kube_store_entry *old =
        kube_store_get(c->store, json_str(meta, "namespace"), json_str(meta, "name"));

    if (old && strcmp(old->uid, uid) == 0)
        put(c, object, unreadable, kube_store_is_marked(old));
}

static void on_upsert(void *ctx, const cJSON *object)
{
    put(ctx, object, NULL, false);
}

static void on_unreadable(void *ctx, const cJSON *names, const struct err *why)
{
    put(ctx, names, why, false);
}

/* By its UID: the name may have passed to an object that was read live since. */
static void on_removed(void *ctx, const cJSON *object)
{
    struct kube_cache *c = ctx;
    const cJSON *meta = metadata(object);
    const char *uid = json_str(meta, "uid");

    if (uid)
        kube_cache_forget(c, json_str(meta, "namespace"), json_str(meta, "name"), uid);
}

static void on_replace_begin(void *ctx)
{
    kube_store_mark(((struct kube_cache *)ctx)->store);
}

static void on_replace_end(void *ctx)
{
    struct kube_cache *c = ctx;

    kube_store_sweep(c->store, tell_gone, c);
    c->o.synced(c->o.ctx);
}

static void on_problem(void *ctx, const struct err *err)
{
    struct kube_cache *c = ctx;

    c->o.problem(c->o.ctx, err);
}

struct kube_cache *kube_cache_new(struct kube_loop *l, const struct kube_transport *t,
                                  const struct kube_cache_options *options)
{
    struct kube_cache *c = memory_must(calloc(1, sizeof(*c)));

    c->o = *options;
    c->store = kube_store_new(options->free_value);
    c->reflector = reflector_new(l, t, &options->watch,
                                 &(struct watcher_sink){c, on_replace_begin, on_replace_end, on_upsert,
                                                        on_removed, on_unreadable, on_problem});
    reflector_start(c->reflector);
    return c;
}

void kube_cache_free(struct kube_cache *c)
{
    if (!c)
        return;
    reflector_free(c->reflector);
    kube_store_free(c->store);
    free(c);
}

const struct kube_store *kube_cache_store(const struct kube_cache *c)
{
    return c->store;
}

struct kube_watcher_stats kube_cache_stats(const struct kube_cache *c)
{
    return reflector_stats(c->reflector);
}
