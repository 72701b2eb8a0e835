/* watches.c - four caches, all grouped by the UID of the job. */
#include "operator/watches.h"

#include "operator/request.h"

static int decode_job(const cJSON *object, struct cache_item *ret, struct err *err)
{
    struct jobtext *job = jobtext_new(object, err);

    if (!job)
        return -1;
    *ret = (struct cache_item){job->uid, job, job->ns, job->name, job->uid};
    return 0;
}

static int decode_pod(const cJSON *object, struct cache_item *ret, struct err *err)
{
    struct pod *pod = pod_decode(object, err);

    if (!pod)
        return -1;
    *ret = (struct cache_item){pod->owner_uid, pod, pod->ns, pod->name, pod->uid};
    return 0;
}

static int decode_child(const cJSON *object, struct cache_item *ret, struct err *err)
{
    struct child *child = child_decode(object, err);

    if (!child)
        return -1;
    *ret = (struct cache_item){child->owner_uid, child, child->ns, child->name, child->uid};
    return 0;
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

void watches_add(struct watches *w, struct reconciler *r, const char *ns, bool pages,
                 void (*job_gone)(void *ctx, const struct store_entry *job))
{
    const struct reconciler_source sources[WATCHES_KINDS] = {
        [CHILD_POD] = {.watch.resource = KUBE_PODS, .decode = decode_pod, .free_value = free_pod},
        [CHILD_SERVICE] = {.watch.resource = KUBE_SERVICES, .decode = decode_child, .free_value = free_child},
        [CHILD_DEPLOYMENT] = {.watch.resource = KUBE_DEPLOYMENTS,
                              .decode = decode_child,
                              .free_value = free_child},
        [CHILD_JOB] = {.watch.resource = TRAINJOBS,
                       .decode = decode_job,
                       .free_value = free_job,
                       .gone = job_gone},
    };

    for (int i = 0; i < WATCHES_KINDS; i++) {
        struct reconciler_source s = sources[i];
        s.watch.ns = ns;
        s.watch.pages = pages;
        s.watch.label_selector = i == CHILD_JOB ? NULL : LABEL_JOB;
        w->kinds[i] = reconciler_watch(r, &s);
    }
}

const struct jobtext *watches_job(const struct watches *w, const char *uid)
{
    const struct store_entry *e = store_group(cache_store(w->kinds[CHILD_JOB]), uid);

    return e ? e->value : NULL;
}

void watches_put_job(struct watches *w, const char *uid, const cJSON *object)
{
    cache_put(w->kinds[CHILD_JOB], uid, object);
}

void watches_forget_job(struct watches *w, const char *uid)
{
    const struct store_entry *e = store_group(cache_store(w->kinds[CHILD_JOB]), uid);

    if (e)
        cache_forget(w->kinds[CHILD_JOB], e->ns, e->name, e->uid);
}

const struct store *watches_children(const struct watches *w, enum child_kind kind)
{
    return cache_store(w->kinds[kind]);
}

struct watches_counts watches_counts(const struct watches *w)
{
    return (struct watches_counts){.jobs = store_count(cache_store(w->kinds[CHILD_JOB])),
                                   .pods = store_count(cache_store(w->kinds[CHILD_POD])),
                                   .pod_bytes = store_bytes(cache_store(w->kinds[CHILD_POD]), bytes_of_pod)};
}
