/* snapshot.c - collect a job's children from the caches, by its UID and in its namespace only. */
#include "operator/snapshot.h"

#include "operator/plan/naming.h"

#include <string.h>

static const struct child *child_named(const struct kube_store *s, const struct trainjob *job,
                                       const char *name)
{
    for (const struct kube_store_entry *e = kube_store_group(s, job->uid); e; e = kube_store_group_next(e))
        if (strcmp(e->ns, job->ns) == 0 && strcmp(e->name, name) == 0)
            return e->value;
    return NULL;
}

static void take_pods(struct plan_input *in, struct arena *a, const struct kube_store *pods,
                      const struct trainjob *job)
{
    size_t n = 0;

    for (const struct kube_store_entry *e = kube_store_group(pods, job->uid); e; e = kube_store_group_next(e))
        n++;
    const struct pod **list = arena_array(a, n, const struct pod *);
    for (const struct kube_store_entry *e = kube_store_group(pods, job->uid); e; e = kube_store_group_next(e))
        if (strcmp(e->ns, job->ns) == 0)
            list[in->n_pods++] = e->value;
    in->pods = list;
}

static const char *unreadable_child(struct arena *a, const char *kind, const char *name, const char *why)
{
    return why[0] ? arena_printf(a, "the %s %s cannot be read: %s", kind, name, why) : NULL;
}

/* The first of them, the job before its children. */
static const char *find_unreadable(const struct plan_input *in, struct arena *a)
{
    const struct child *const children[] = {in->service, in->tb_service, in->tb_deployment};
    const char *found = NULL;

    if (in->job->unreadable)
        return arena_printf(a, "the job cannot be read: %s", in->job->unreadable);
    for (int i = 0; i < in->n_pods && !found; i++)
        found = unreadable_child(a, "pod", in->pods[i]->name, in->pods[i]->unreadable);
    for (size_t i = 0; i < ARRAY_LEN(children) && !found; i++)
        if (children[i])
            found = unreadable_child(a, i == 2 ? "Deployment" : "Service", children[i]->name,
                                     children[i]->unreadable);
    return found;
}

void snapshot_take(struct plan_input *in, struct arena *a, const struct watches *w,
                   const struct trainjob *job, const struct keystate *k)
{
    const struct kube_store *services = watches_children(w, CHILD_SERVICE);
    const char *tensorboard = naming_tensorboard(a, job->name);
    const char **gone = arena_array(a, (size_t)k->n_gone_uids, const char *);

    *in = (struct plan_input){.job = job, .gone_uids = gone, .n_gone_uids = k->n_gone_uids};
    for (int i = 0; i < k->n_gone_uids; i++)
        gone[i] = k->gone_uids[i];
    take_pods(in, a, watches_children(w, CHILD_POD), job);
    in->job_is_live = strcmp(k->live_version, job->resource_version) == 0;
    in->service = child_named(services, job, naming_service(a, job->name));
    in->tb_service = child_named(services, job, tensorboard);
    in->tb_deployment = child_named(watches_children(w, CHILD_DEPLOYMENT), job, tensorboard);
    in->unreadable = find_unreadable(in, a);
    in->unreadable_told = k->unreadable_told && strcmp(k->status_version, job->resource_version) == 0;
    in->problem = keystate_problem(k, job->generation);
    in->status_written_ms = k->status_written_ms;
    in->seen = k->seen;
    in->progress = &k->progress;
}
