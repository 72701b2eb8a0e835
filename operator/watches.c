/* watches.c - the operator's four caches, grouped by the UID of the job. */
#include "operator/watches.h"

#include "kube/version.h"
#include "operator/request.h"

static int keep_job(struct jobtext *job, struct kube_cache_item *ret)
{
    if (!job)
        return -1;
    *ret = (struct kube_cache_item){job->uid, job, job->ns, job->name, job->uid};
    return KUBE_CACHE_KEEP;
}

static int keep_pod(struct pod *pod, struct kube_cache_item *ret)
{
    if (!pod)
        return -1;
    *ret = (struct kube_cache_item){pod->owner_uid, pod, pod->ns, pod->name, pod->uid};
    return KUBE_CACHE_KEEP;
}

static int keep_child(struct child *child, struct kube_cache_item *ret)
{
    if (!child)
        return -1;
    *ret = (struct kube_cache_item){child->owner_uid, child, child->ns, child->name, child->uid};
    return KUBE_CACHE_KEEP;
}

/* Others' objects are not kept, whatever label they carry: anyone may make them. */
static bool is_ours(const cJSON *object)
{
    return api_controller_uid(json_find(object, (const char *[]){"metadata", NULL}))[0];
}

static int decode_job(const cJSON *object, struct kube_cache_item *ret, struct err *err)
{
    return keep_job(jobtext_new(object, err), ret);
}

static int decode_pod(const cJSON *object, struct kube_cache_item *ret, struct err *err)
{
    return is_ours(object) ? keep_pod(pod_decode(object, err), ret) : KUBE_CACHE_DROP;
}

static int decode_child(const cJSON *object, struct kube_cache_item *ret, struct err *err)
{
    return is_ours(object) ? keep_child(child_decode(object, err), ret) : KUBE_CACHE_DROP;
}

static int unreadable_job(const cJSON *names, const struct err *why, struct kube_cache_item *ret)
{
    struct err ignored;

    return keep_job(jobtext_new_unreadable(names, why, &ignored), ret);
}

static int unreadable_pod(const cJSON *names, const struct err *why, struct kube_cache_item *ret)
{
    struct err ignored;

    return is_ours(names) ? keep_pod(pod_decode_unreadable(names, why, &ignored), ret) : KUBE_CACHE_DROP;
}

static int unreadable_child(const cJSON *names, const struct err *why, struct kube_cache_item *ret)
{
    struct err ignored;

    return is_ours(names) ? keep_child(child_decode_unreadable(names, why, &ignored), ret) : KUBE_CACHE_DROP;
}

static void free_job(void *value)
{
    jobtext_free(value);
}

static void free_pod(void *value)
{
    pod_free(value);
}

static void free_child(void *value)
{
    child_free(value);
}

static size_t bytes_of_pod(const void *value)
{
    return pod_bytes(value);
}

void watches_add(struct watches *w, struct kube_reconciler *r, const char *ns,
                 void (*job_gone)(void *ctx, const struct kube_store_entry *job))
{
    const struct kube_reconciler_source sources[WATCHES_KINDS] = {
        [CHILD_POD] = {.watch.resource = KUBE_PODS,
                       .decode = decode_pod,
                       .decode_unreadable = unreadable_pod,
                       .free_value = free_pod},
        [CHILD_SERVICE] = {.watch.resource = KUBE_SERVICES,
                           .decode = decode_child,
                           .decode_unreadable = unreadable_child,
                           .free_value = free_child},
        [CHILD_DEPLOYMENT] = {.watch.resource = KUBE_DEPLOYMENTS,
                              .decode = decode_child,
                              .decode_unreadable = unreadable_child,
                              .free_value = free_child},
        [CHILD_JOB] = {.watch.resource = TRAINJOBS,
                       .decode = decode_job,
                       .decode_unreadable = unreadable_job,
                       .free_value = free_job,
                       .gone = job_gone},
    };

    for (int i = 0; i < WATCHES_KINDS; i++) {
        struct kube_reconciler_source s = sources[i];
        s.watch.ns = ns;
        s.watch.label_selector = i == CHILD_JOB ? NULL : LABEL_JOB;
        w->kinds[i] = kube_reconciler_watch(r, &s);
    }
}

const struct jobtext *watches_job(const struct watches *w, const char *uid)
{
    const struct kube_store_entry *e = kube_store_group(kube_cache_store(w->kinds[CHILD_JOB]), uid);

    return e ? e->value : NULL;
}

void watches_put_job(struct watches *w, const char *uid, const cJSON *object, const struct err *unreadable)
{
    const struct jobtext *cached = watches_job(w, uid);
    const char *version = json_str(json_find(object, (const char *[]){"metadata", NULL}), "resourceVersion");

    if (cached && version && version_is_newer(cached->resource_version, version))
        return; /* the watch told of a change that was made after this answer */
    kube_cache_put(w->kinds[CHILD_JOB], uid, object, unreadable);
}

void watches_forget_job(struct watches *w, const char *uid)
{
    const struct kube_store_entry *e = kube_store_group(kube_cache_store(w->kinds[CHILD_JOB]), uid);

    if (e)
        kube_cache_forget(w->kinds[CHILD_JOB], e->ns, e->name, e->uid);
}

const struct kube_store *watches_children(const struct watches *w, enum child_kind kind)
{
    return kube_cache_store(w->kinds[kind]);
}

const char *watches_unreadable(enum child_kind kind, const struct kube_store_entry *e)
{
    switch (kind) {
    case CHILD_POD:
        return ((const struct pod *)e->value)->unreadable;
    case CHILD_SERVICE:
    case CHILD_DEPLOYMENT:
        return ((const struct child *)e->value)->unreadable;
    case CHILD_JOB:
        break;
    }
    return ((const struct jobtext *)e->value)->unreadable;
}

struct watches_counts watches_counts(const struct watches *w)
{
    struct watches_counts n = {.jobs = kube_store_count(kube_cache_store(w->kinds[CHILD_JOB])),
                               .pods = kube_store_count(kube_cache_store(w->kinds[CHILD_POD])),
                               .pod_bytes =
                                   kube_store_bytes(kube_cache_store(w->kinds[CHILD_POD]), bytes_of_pod)};

    for (int kind = 0; kind < WATCHES_KINDS; kind++) {
        const struct kube_store *s = kube_cache_store(w->kinds[kind]);
        for (const struct kube_store_entry *e = kube_store_first(s); e; e = kube_store_next(s, e))
            n.unreadable[kind] += watches_unreadable((enum child_kind)kind, e)[0] != '\0';
    }
    return n;
}
