/* cache.c - keep a store up to date with a reflector. */
#include "kube/cache.h"

#include "common/json.h"
#include "common/memory.h"
#include "kube/skim.h"
#include "kube/version.h"

#include <stdlib.h>
#include <string.h>

struct kube_cache {
    struct kube_cache_options o;
    struct kube_store *store;
    struct reflector *reflector;
};

static void report_gone(void *ctx, const struct kube_store_entry *e)
{
    struct kube_cache *c = ctx;

    if (c->o.gone)
        c->o.gone(c->o.ctx, e);
    c->o.changed(c->o.ctx, e);
}

/* `changed` is called for the group or the UID that loses the entry, before the entry is freed. */
static void report_replaced(struct kube_cache *c, const struct kube_store_entry *old, const char *uid,
                            const char *group)
{
    if (strcmp(old->uid, uid ? uid : "") != 0)
        report_gone(c, old);
    else if (strcmp(old->group, group ? group : "") != 0)
        c->o.changed(c->o.ctx, old);
}

static const struct kube_store_entry *store_entry(struct kube_cache *c, const char *ns, const char *name,
                                                  const char *uid, const struct kube_store_entry *item)
{
    if (!item->name)
        return kube_store_put(c->store, ns, name, uid, item->group, item->value);
    return kube_store_put_view(c->store, item);
}

static void remove_entry(struct kube_cache *c, const struct kube_store_entry *old)
{
    report_gone(c, old);
    kube_store_remove(c->store, old->ns, old->name);
}

/* Keep the last good entry, also when the current list ends without it. */
static void keep_old(struct kube_cache *c, const struct kube_store_entry *e)
{
    kube_store_unmark_one(e);
    if (!c->o.unsure)
        return;
    c->o.unsure(e->value);
    c->o.changed(c->o.ctx, e);
}

/* KUBE_CACHE_KEEP, KUBE_CACHE_DROP, or -1 with *why set: the object cannot be stored. */
static int decode(struct kube_cache *c, const cJSON *object, const struct err *unreadable,
                  struct kube_store_entry *item, struct err *why)
{
    struct err ignored;

    if (!c->o.decode && !unreadable)
        return KUBE_CACHE_KEEP;
    if (unreadable)
        *why = *unreadable;
    int rc = unreadable ? -1 : c->o.decode(object, NULL, item, why);
    return rc < 0 && c->o.decode ? c->o.decode(object, why, item, &ignored) : rc;
}

static void put(struct kube_cache *c, const cJSON *object, const struct err *unreadable)
{
    const cJSON *meta = json_child(object, "metadata");
    const char *ns = json_str(meta, "namespace");
    const char *name = json_str(meta, "name");
    const char *uid = json_str(meta, "uid");
    struct kube_store_entry item = {.group = ns};
    struct err why = {0};
    int rc = decode(c, object, unreadable, &item, &why);
    const struct kube_store_entry *old = kube_store_get(c->store, ns, name);
    bool same = old && strcmp(old->uid, uid ? uid : "") == 0;

    if (rc == KUBE_CACHE_KEEP) {
        if (old)
            report_replaced(c, old, uid, item.group);
        c->o.changed(c->o.ctx, store_entry(c, ns, name, uid, &item));
        return;
    }
    if (rc < 0)
        c->o.problem(c->o.ctx, &why);
    if (same && why.msg[0]) /* the object exists, and its owner cannot be read */
        keep_old(c, old);
    else if (old)
        remove_entry(c, old);
}

static void on_upsert(void *ctx, const cJSON *object)
{
    put(ctx, object, NULL);
}

static void on_unreadable(void *ctx, const cJSON *names, const struct err *why)
{
    struct kube_cache *c = ctx;
    const cJSON *meta = json_child(names, "metadata");
    const char *ns = json_str(meta, "namespace");
    const char *name = json_str(meta, "name");
    const bool placed = name && (ns || !cJSON_GetObjectItemCaseSensitive(meta, "namespace"));
    const struct kube_store_entry *old = placed ? kube_store_get(c->store, ns, name) : NULL;

    if (placed && skim_has_names(names)) {
        put(c, names, why);
        return;
    }
    c->o.problem(c->o.ctx, why);
    if (!placed) /* it may be any object of that namespace that the list does not name */
        kube_store_doubt(c->store, ns);
    else if (old)
        keep_old(c, old);
}

static void on_removed(void *ctx, const cJSON *object)
{
    struct kube_cache *c = ctx;
    const cJSON *meta = json_child(object, "metadata");
    const char *uid = json_str(meta, "uid");
    const struct kube_store_entry *old =
        kube_store_get(c->store, json_str(meta, "namespace"), json_str(meta, "name"));

    if (old && uid && strcmp(old->uid, uid) == 0)
        remove_entry(c, old);
}

static void on_replace_begin(void *ctx)
{
    kube_store_mark(((struct kube_cache *)ctx)->store);
}

static void on_replace_end(void *ctx)
{
    struct kube_cache *c = ctx;

    for (const struct kube_store_entry *e = kube_store_first(c->store); e; e = kube_store_next(c->store, e))
        if (kube_store_is_doubted(e))
            keep_old(c, e);
    kube_store_sweep(c->store, report_gone, c);
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

void kube_cache_relist(struct kube_cache *c, bool at_once)
{
    reflector_relist(c->reflector, at_once);
}

uint64_t kube_cache_lists(const struct kube_cache *c)
{
    return reflector_stats(c->reflector).lists;
}

bool kube_cache_is_listed(const struct kube_cache *c, uint64_t lists)
{
    return reflector_stats(c->reflector).listed > lists;
}

bool kube_cache_shows(const struct kube_cache *c, const char *version, uint64_t lists)
{
    return kube_cache_is_listed(c, lists) || version_is_reached(reflector_version(c->reflector), version);
}

struct kube_watcher_stats kube_cache_stats(const struct kube_cache *c)
{
    return reflector_stats(c->reflector);
}
