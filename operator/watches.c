/* watches.c - four reflectors into four stores, all grouped by the UID of the job. */
#include "operator/watches.h"

#include "operator/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 4 };

struct watch {
    struct watches *all;
    enum child_kind kind;
    struct store *store;
    struct reflector *reflector;
};

struct watches {
    struct watches_sink sink;
    struct watch kinds[KINDS]; /* by child_kind */
};

static const char *const WHAT[KINDS] = {[CHILD_POD] = "pods",
                                        [CHILD_SERVICE] = "services",
                                        [CHILD_DEPLOYMENT] = "deployments",
                                        [CHILD_JOB] = "jobs"};

static void free_pod(void *value)
{
    pod_free(value);
}

static void free_child(void *value)
{
    child_free(value);
}

static void free_job(void *value)
{
    trainjob_free(value);
}

static void changed(struct watches *w, const char *uid)
{
    if (uid[0])
        w->sink.changed(w->sink.ctx, uid);
}

/* The job's tree stays for as long as the job does: what nobody reads is cut off first. */
static struct trainjob *decode_job(const cJSON *object, struct err *err)
{
    cJSON *tree = cJSON_Duplicate(object, true);
    cJSON *meta = cJSON_GetObjectItemCaseSensitive(tree, "metadata");

    cJSON_DeleteItemFromObjectCaseSensitive(meta, "managedFields");
    cJSON_DeleteItemFromObjectCaseSensitive(meta, "annotations");
    return trainjob_decode(tree, err);
}

static const struct store_entry *put(struct watch *k, const cJSON *object, struct err *err)
{
    if (k->kind == CHILD_JOB) {
        struct trainjob *job = decode_job(object, err);
        return job ? store_put(k->store, job->ns, job->name, job->uid, job->uid, job) : NULL;
    }
    if (k->kind == CHILD_POD) {
        struct pod *pod = pod_decode(object, err);
        return pod ? store_put(k->store, pod->ns, pod->name, pod->uid, pod->owner_uid, pod) : NULL;
    }
    struct child *child = child_decode(object, err);
    return child ? store_put(k->store, child->ns, child->name, child->uid, child->owner_uid, child) : NULL;
}

static void on_upsert(void *ctx, const cJSON *object)
{
    struct watch *k = ctx;
    const cJSON *meta = json_find(object, (const char *[]){"metadata", NULL});
    const char *ns = json_str(meta, "namespace");
    const char *name = json_str(meta, "name");
    char before[APPLY_UID_BYTES] = "";
    struct err err;

    const struct store_entry *old = ns && name ? store_get(k->store, ns, name) : NULL;
    if (old)
        snprintf(before, sizeof(before), "%s", old->group);
    const struct store_entry *e = put(k, object, &err);
    if (!e) {
        k->all->sink.problem(k->all->sink.ctx, WHAT[k->kind], &err);
        return;
    }
    if (before[0] && strcmp(before, e->group) != 0) {
        if (k->kind == CHILD_JOB)
            k->all->sink.job_gone(k->all->sink.ctx, before);
        changed(k->all, before);
    }
    changed(k->all, e->group);
}

static void tell_gone(void *ctx, const struct store_entry *e)
{
    struct watch *k = ctx;

    if (k->kind == CHILD_JOB)
        k->all->sink.job_gone(k->all->sink.ctx, e->uid);
    changed(k->all, e->group);
}

static void on_removed(void *ctx, const cJSON *object)
{
    struct watch *k = ctx;
    const cJSON *meta = json_find(object, (const char *[]){"metadata", NULL});
    const char *ns = json_str(meta, "namespace");
    const char *name = json_str(meta, "name");
    const char *uid = json_str(meta, "uid");

    const struct store_entry *e = ns && name && uid ? store_get(k->store, ns, name) : NULL;
    if (!e || strcmp(e->uid, uid) != 0)
        return;
    char group[APPLY_UID_BYTES];
    snprintf(group, sizeof(group), "%s", e->group);
    store_remove(k->store, ns, name, uid);
    if (k->kind == CHILD_JOB)
        k->all->sink.job_gone(k->all->sink.ctx, group);
    changed(k->all, group);
}

static void on_replace_begin(void *ctx)
{
    struct watch *k = ctx;

    store_mark(k->store);
}

static void on_replace_end(void *ctx)
{
    struct watch *k = ctx;

    store_sweep(k->store, tell_gone, k);
    if (!watches_synced(k->all))
        return;
    /* The list that completes the picture: whatever was waiting for it may go on. */
    const struct store *jobs = k->all->kinds[CHILD_JOB].store;
    for (const struct store_entry *e = store_first(jobs); e; e = store_next(jobs, e))
        changed(k->all, e->uid);
}

static void on_problem(void *ctx, const struct err *err)
{
    struct watch *k = ctx;

    k->all->sink.problem(k->all->sink.ctx, WHAT[k->kind], err);
}

struct watches *watches_new(struct loop *l, const struct transport *t, const char *ns, uint64_t seed,
                            const struct watches_sink *sink)
{
    static void (*const FREE[KINDS])(void *) = {free_pod, free_child, free_child, free_job};
    const struct kube_resource *const resources[KINDS] = {&KUBE_PODS, &KUBE_SERVICES, &KUBE_DEPLOYMENTS,
                                                          &TRAINJOBS};
    struct watches *w = calloc(1, sizeof(*w));

    if (!w)
        abort();
    w->sink = *sink;
    for (int i = 0; i < KINDS; i++) {
        struct watch *k = &w->kinds[i];
        struct watcher_options options = {.resource = *resources[i], .ns = ns, .seed = seed + (uint64_t)i};
        struct watcher_sink s = {k, on_replace_begin, on_replace_end, on_upsert, on_removed, on_problem};
        options.label_selector = i == CHILD_JOB ? NULL : LABEL_JOB;
        *k = (struct watch){.all = w, .kind = (enum child_kind)i, .store = store_new(FREE[i])};
        k->reflector = reflector_new(l, t, &options, &s);
    }
    return w;
}

void watches_start(struct watches *w)
{
    for (int i = 0; i < KINDS; i++)
        reflector_start(w->kinds[i].reflector);
}

void watches_free(struct watches *w)
{
    if (!w)
        return;
    for (int i = 0; i < KINDS; i++) {
        reflector_free(w->kinds[i].reflector);
        store_free(w->kinds[i].store);
    }
    free(w);
}

bool watches_synced(const struct watches *w)
{
    for (int i = 0; i < KINDS; i++)
        if (!w->kinds[i].reflector || !reflector_synced(w->kinds[i].reflector))
            return false;
    return true;
}

int64_t watches_progress_ms(const struct watches *w)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < KINDS; i++) {
        int64_t at = reflector_stats(w->kinds[i].reflector).progress_ms;
        least = at < least ? at : least;
    }
    return least;
}

const struct trainjob *watches_job(const struct watches *w, const char *uid)
{
    const struct store_entry *e = store_group(w->kinds[CHILD_JOB].store, uid);

    return e ? e->value : NULL;
}

void watches_put_job(struct watches *w, const cJSON *object)
{
    on_upsert(&w->kinds[CHILD_JOB], object);
}

const struct store *watches_children(const struct watches *w, enum child_kind kind)
{
    return w->kinds[kind].store;
}

struct watches_counts watches_counts(const struct watches *w)
{
    struct watches_counts c = {
        .jobs = store_count(w->kinds[CHILD_JOB].store),
        .pods = store_count(w->kinds[CHILD_POD].store),
        .services = store_count(w->kinds[CHILD_SERVICE].store),
        .deployments = store_count(w->kinds[CHILD_DEPLOYMENT].store),
    };

    for (int i = 0; i < KINDS; i++)
        c.reflectors[i] = reflector_stats(w->kinds[i].reflector);
    return c;
}
