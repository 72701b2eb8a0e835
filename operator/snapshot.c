/* snapshot.c - a job's children by its UID. */
#include "operator/snapshot.h"

#include <string.h>

static const struct child *child_named(const struct store *s, const char *uid, const char *suffix)
{
    size_t n = strlen(suffix);

    for (const struct store_entry *e = store_group(s, uid); e; e = store_group_next(e))
        if (strlen(e->name) > n && strcmp(e->name + strlen(e->name) - n, suffix) == 0)
            return e->value;
    return NULL;
}

static void take_pods(struct plan_input *in, struct arena *a, const struct store *pods, const char *uid)
{
    size_t n = 0;

    for (const struct store_entry *e = store_group(pods, uid); e; e = store_group_next(e))
        n++;
    const struct pod **list = arena_array(a, n, const struct pod *);
    for (const struct store_entry *e = store_group(pods, uid); e; e = store_group_next(e))
        list[in->n_pods++] = e->value;
    in->pods = list;
}

void snapshot_take(struct plan_input *in, struct arena *a, const struct watches *w,
                   const struct trainjob *job, const struct keystate *k)
{
    const struct store *services = watches_children(w, CHILD_SERVICE);
    const char **gone = arena_array(a, (size_t)k->n_gone_uids, const char *);

    *in = (struct plan_input){.job = job, .gone_uids = gone, .n_gone_uids = k->n_gone_uids};
    for (int i = 0; i < k->n_gone_uids; i++)
        gone[i] = k->gone_uids[i];
    take_pods(in, a, watches_children(w, CHILD_POD), job->uid);
    in->job_is_live = strcmp(k->live_version, job->resource_version) == 0;
    in->service = child_named(services, job->uid, "-rdzv");
    in->tb_service = child_named(services, job->uid, "-tensorboard");
    in->tb_deployment = child_named(watches_children(w, CHILD_DEPLOYMENT), job->uid, "-tensorboard");
    in->problem = keystate_problem(k, job);
    in->status_written_ms = k->status_written_ms;
}
