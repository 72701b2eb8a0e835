/* watches.c - the operator's caches, grouped by the UID of the job. */
#include "operator/watches.h"

#include "common/heapsize.h"
#include "operator/actions.h"
#include "operator/plan/desired.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { RELIST_SPACING_MS = 60000 };

/* The error of an entry that may be out of date: its job is frozen. */
#define UNSURE "its name, UID or owner cannot be read in the API server's answer"

/* Only objects controlled by a job are cached: anyone can set labels. */
static bool is_ours(const cJSON *object)
{
    return api_controller_uid(json_child(object, "metadata"))[0];
}

static int decode_job(const cJSON *object, const struct err *unreadable, struct kube_store_entry *ret,
                      struct err *err)
{
    struct jobtext *job = jobtext_new(object, unreadable, err);

    if (!job)
        return -1;
    *ret = (struct kube_store_entry){job->ns, job->name, job->uid, job->uid, job};
    return KUBE_CACHE_KEEP;
}

static int decode_pod(const cJSON *object, const struct err *unreadable, struct kube_store_entry *ret,
                      struct err *err)
{
    if (!is_ours(object))
        return KUBE_CACHE_DROP;
    struct pod *pod = pod_decode(object, unreadable, err);
    if (!pod)
        return -1;
    *ret = (struct kube_store_entry){pod->ns, pod->name, pod->uid, pod->owner_uid, pod};
    return KUBE_CACHE_KEEP;
}

static int decode_child(const cJSON *object, const struct err *unreadable, struct kube_store_entry *ret,
                        struct err *err)
{
    if (!is_ours(object))
        return KUBE_CACHE_DROP;
    struct child *child = child_decode(object, unreadable, err);
    if (!child)
        return -1;
    *ret = (struct kube_store_entry){child->ns, child->name, child->uid, child->owner_uid, child};
    return KUBE_CACHE_KEEP;
}

static int decode_workload(const cJSON *object, const struct err *unreadable, struct kube_store_entry *ret,
                           struct err *err)
{
    if (!is_ours(object))
        return KUBE_CACHE_DROP;
    struct workload *w = workload_decode(object, unreadable, err);
    if (!w)
        return -1;
    *ret = (struct kube_store_entry){w->ns, w->name, w->uid, w->owner_uid, w};
    return KUBE_CACHE_KEEP;
}

static int decode_setting(const cJSON *object, const struct err *unreadable, struct kube_store_entry *ret,
                          struct err *err)
{
    struct queue_setting *s = unreadable ? NULL : queue_setting_decode(object, err);

    if (!s)
        return -1;
    *ret = (struct kube_store_entry){"", s->name, s->uid, "", s};
    return KUBE_CACHE_KEEP;
}

/* Each cached object begins with why it cannot be read. */
_Static_assert(offsetof(struct pod, unreadable) == 0, "unsure() and watches_counts() use the first member");
_Static_assert(offsetof(struct child, unreadable) == 0, "as of a pod");
_Static_assert(offsetof(struct workload, unreadable) == 0, "as of a pod");
_Static_assert(offsetof(struct jobtext, unreadable) == 0, "as of a pod");

static void unsure(void *value)
{
    *(const char **)value = UNSURE;
}

void watches_add(struct watches *w, struct kube_reconciler *r, const char *ns,
                 void (*job_gone)(void *ctx, const struct kube_store_entry *job),
                 void (*deployments_listed)(void *ctx))
{
    const struct kube_reconciler_source sources[CHILD_KINDS] = {
        [CHILD_POD] = {.watch.resource = KUBE_PODS, .decode = decode_pod},
        [CHILD_SERVICE] = {.watch.resource = KUBE_SERVICES, .decode = decode_child},
        [CHILD_DEPLOYMENT] = {.watch.resource = KUBE_DEPLOYMENTS,
                              .spare = true,
                              .listed = deployments_listed,
                              .decode = decode_child},
        [CHILD_JOB] = {.watch.resource = TRAINJOBS, .decode = decode_job, .gone = job_gone},
    };

    for (int i = 0; i < CHILD_KINDS; i++) {
        struct kube_reconciler_source s = sources[i];
        if (i == CHILD_WORKLOAD || (i == CHILD_DEPLOYMENT && !deployments_listed))
            continue;
        s.unsure = unsure;
        s.free_value = free;
        s.watch.ns = ns;
        s.watch.label_selector = i == CHILD_JOB ? NULL : LABEL_JOB;
        w->kinds[i] = kube_reconciler_watch(r, &s);
    }
}

/* Spare: only jobs with a queue wait for them. Workloads are watched without a label, since one that lost it would keep
 * its quota. */
void watches_add_queues(struct watches *w, struct kube_reconciler *r, const char *ns,
                        void (*listed)(void *ctx),
                        void (*setting_changed)(void *ctx, const struct kube_store_entry *e))
{
    static const struct kube_resource SETTINGS[QUEUE_SETTINGS] = {
        [QUEUE_FLAVOR] = {WORKLOAD_GROUP, WORKLOAD_VERSION, "resourceflavors", "ResourceFlavor", true},
        [QUEUE_PRIORITY] = {WORKLOAD_GROUP, WORKLOAD_VERSION, "workloadpriorityclasses",
                            "WorkloadPriorityClass", true},
        [QUEUE_POD_PRIORITY] = {"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", true},
    };

    w->kinds[CHILD_WORKLOAD] =
        kube_reconciler_watch(r, &(struct kube_reconciler_source){.watch = {.resource = WORKLOADS, .ns = ns},
                                                                  .spare = true,
                                                                  .listed = listed,
                                                                  .decode = decode_workload,
                                                                  .unsure = unsure,
                                                                  .free_value = free});
    for (int i = 0; i < QUEUE_SETTINGS; i++)
        w->settings[i] =
            kube_reconciler_watch(r, &(struct kube_reconciler_source){.watch.resource = SETTINGS[i],
                                                                      .spare = true,
                                                                      .listed = listed,
                                                                      .map = setting_changed,
                                                                      .decode = decode_setting,
                                                                      .free_value = free});
}

bool watches_settings_listed(const struct watches *w)
{
    for (int i = 0; i < QUEUE_SETTINGS; i++)
        if (!w->settings[i] || !kube_cache_stats(w->settings[i]).synced)
            return false;
    return true;
}

static void take_settings(const struct watches *w, struct arena *a, struct plan_queue *q)
{
    for (int i = 0; i < QUEUE_SETTINGS; i++) {
        const struct kube_store *s = kube_cache_store(w->settings[i]);
        const struct queue_setting **list = arena_array(a, kube_store_count(s), const struct queue_setting *);
        for (const struct kube_store_entry *e = kube_store_first(s); e; e = kube_store_next(s, e))
            list[q->n_settings[i]++] = e->value;
        q->settings[i] = list;
    }
}

void watches_gather_queue(const struct watches *w, const char *ns, const char *uid, bool settings,
                          struct arena *a, struct plan_input *in)
{
    const struct kube_store *s = w->kinds[CHILD_WORKLOAD] ? watches_children(w, CHILD_WORKLOAD) : NULL;
    struct plan_queue *q = &in->queue;
    int n = 0;

    for (const struct kube_store_entry *e = s ? kube_store_group(s, uid) : NULL; e;
         e = kube_store_group_next(e))
        n++;
    if (n) {
        const struct workload **list = arena_array(a, (size_t)n, const struct workload *);
        for (const struct kube_store_entry *e = kube_store_group(s, uid); e; e = kube_store_group_next(e))
            if (strcmp(e->ns, ns) == 0)
                list[q->n_workloads++] = e->value;
        q->workloads = list;
    }
    if (settings && s)
        take_settings(w, a, q);
}

const struct jobtext *watches_job(const struct watches *w, const char *uid)
{
    const struct kube_store_entry *e = kube_store_group(kube_cache_store(w->kinds[CHILD_JOB]), uid);

    return e ? e->value : NULL;
}

static const struct child *child_named(const struct kube_store *s, const struct trainjob *job,
                                       const char *name)
{
    for (const struct kube_store_entry *e = kube_store_group(s, job->uid); e; e = kube_store_group_next(e))
        if (strcmp(e->ns, job->ns) == 0 && strcmp(e->name, name) == 0)
            return e->value;
    return NULL;
}

void watches_gather_pods(const struct watches *w, const char *ns, const char *uid, struct arena *a,
                         struct plan_input *in)
{
    const struct kube_store *pods = watches_children(w, CHILD_POD);
    size_t n = 0;

    for (const struct kube_store_entry *e = kube_store_group(pods, uid); e; e = kube_store_group_next(e))
        n++;
    const struct pod **list = arena_array(a, n, const struct pod *);
    for (const struct kube_store_entry *e = kube_store_group(pods, uid); e; e = kube_store_group_next(e))
        if (strcmp(e->ns, ns) == 0)
            list[in->n_pods++] = e->value;
    in->pods = list;
}

static const char *say_unreadable(struct arena *a, const char *kind, const char *name, const char *why)
{
    return why[0] ? arena_printf(a, "the %s %s cannot be read: %s", kind, name, why) : NULL;
}

/* The first unreadable object, the job before its children. */
static const char *find_unreadable(const struct plan_input *in, struct arena *a)
{
    const struct child *const children[] = {in->service, in->tb_service, in->tb_deployment};
    const char *found = NULL;

    if (in->job->unreadable)
        return arena_printf(a, "the job cannot be read: %s", in->job->unreadable);
    for (int i = 0; i < in->n_pods && !found; i++)
        found = say_unreadable(a, "pod", in->pods[i]->name, in->pods[i]->unreadable);
    for (int i = 0; i < in->queue.n_workloads && !found && in->queue.mode != QUEUE_OFF; i++) {
        const struct workload *w = in->queue.workloads[i];
        if (!w->deleting) /* else only its finalizer matters */
            found = say_unreadable(a, "Workload", w->name, w->unreadable);
    }
    for (size_t i = 0; i < ARRAY_LEN(children) && !found; i++)
        if (children[i])
            found = say_unreadable(a, i == 2 ? "Deployment" : "Service", children[i]->name,
                                   children[i]->unreadable);
    return found;
}

void watches_gather(const struct watches *w, const struct trainjob *job, struct arena *a,
                    struct plan_input *in)
{
    const struct kube_store *services = watches_children(w, CHILD_SERVICE);
    const char *tensorboard = desired_tensorboard_name(a, job->name);

    in->job = job;
    watches_gather_pods(w, job->ns, job->uid, a, in);
    in->service = child_named(services, job, desired_service_name(a, job->name));
    in->tb_service = child_named(services, job, tensorboard);
    if (w->kinds[CHILD_DEPLOYMENT])
        in->tb_deployment = child_named(watches_children(w, CHILD_DEPLOYMENT), job, tensorboard);
    in->unreadable = find_unreadable(in, a);
}

bool watches_show(const struct watches *w, enum child_kind kind, const char *version, uint64_t lists)
{
    return kube_cache_shows(w->kinds[kind], version, lists);
}

bool watches_listed(const struct watches *w, enum child_kind kind, uint64_t lists)
{
    return w->kinds[kind] && kube_cache_is_listed(w->kinds[kind], lists);
}

uint64_t watches_lists(const struct watches *w, enum child_kind kind)
{
    return w->kinds[kind] ? kube_cache_lists(w->kinds[kind]) : 0;
}

void watches_relist(struct watches *w, enum child_kind kind, int64_t now_ms)
{
    struct kube_cache *c = w->kinds[kind];

    if (!kube_cache_is_listed(c, w->lists[kind]) ||
        (w->lists[kind] && now_ms < kube_cache_stats(c).listed_ms + RELIST_SPACING_MS))
        return;
    w->lists[kind] = kube_cache_lists(c);
    kube_cache_relist(c, false);
}

const struct kube_store *watches_children(const struct watches *w, enum child_kind kind)
{
    return kube_cache_store(w->kinds[kind]);
}

struct watches_counts watches_counts(const struct watches *w)
{
    struct watches_counts n = {.jobs = kube_store_count(kube_cache_store(w->kinds[CHILD_JOB])),
                               .pods = kube_store_count(kube_cache_store(w->kinds[CHILD_POD])),
                               .pod_bytes =
                                   kube_store_bytes(kube_cache_store(w->kinds[CHILD_POD]), heapsize)};

    for (int kind = 0; kind < CHILD_KINDS; kind++) {
        if (!w->kinds[kind])
            continue;
        const struct kube_store *s = kube_cache_store(w->kinds[kind]);
        for (const struct kube_store_entry *e = kube_store_first(s); e; e = kube_store_next(s, e))
            n.unreadable[kind] += (*(const char *const *)e->value)[0] != '\0';
    }
    return n;
}
