/* healthy.c - running: how far; pending: what is being waited for; paused; succeeded. */
#include "cli/why/healthy.h"

#include "cli/why/next.h"

#include <math.h>
#include <string.h>

static const char *progress(const struct why_facts *f, struct arena *a)
{
    const struct jobprogress *p = &f->job->status.progress;
    const char *text = "";

    if (!p->time_ms)
        return "";
    if (p->percent >= 0)
        text = arena_printf(a, "%lld%%, ", (long long)p->percent);
    if (p->step >= 0)
        text = arena_printf(a, p->total_steps >= 0 ? "%sstep %lld of %lld, " : "%sstep %lld, ", text,
                            (long long)p->step, (long long)p->total_steps);
    if (p->epoch >= 0)
        text = arena_printf(a, p->total_epochs >= 0 ? "%sepoch %lld of %lld, " : "%sepoch %lld, ", text,
                            (long long)p->epoch, (long long)p->total_epochs);
    if (!isnan(p->loss))
        text = arena_printf(a, "%sloss %.4g, ", text, p->loss);
    if (p->eta_s >= 0)
        text = arena_printf(a, "%s%s to go, ", text, next_span(p->eta_s * 1000, a));
    return arena_printf(a, "%sreported %s ago", text, next_span(f->now_ms - p->time_ms, a));
}

static struct healthy running(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const int64_t since = st->conditions[COND_RUNNING].transition_ms;

    return (struct healthy){
        .state = arena_printf(a, "Running for %s: all is well, %s pods run", next_span(f->now_ms - since, a),
                              st->ready ? st->ready : "all"),
        .detail = progress(f, a),
        .todo = arena_printf(a, "Nothing. kubectl ptj logs %s -n %s%s shows what it prints.", f->job->name,
                             f->job->ns, f->options),
    };
}

static struct healthy pending(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const char *pod = "";
    const cJSON *object;

    cJSON_ArrayForEach(object, f->pods)
    {
        struct err ignored;
        struct pod *p = pod_decode(object, &ignored);
        if (p && !pod[0] && !strcmp(p->owner_uid, f->job->uid) && !pod_is_running(p) && !pod_ended(p))
            pod = arena_printf(a, "pod %s%s%s: %s", p->name, p->node[0] ? " on node " : "", p->node,
                               p->training.reason[0] ? p->training.reason
                               : p->node[0]          ? "its containers are being started"
                                                     : "waits for a node");
        pod_free(p);
    }
    return (struct healthy){
        .state = arena_printf(a, "%s for %s: the pods are being started, %s run so far",
                              st->phase == JOB_NONE ? "New" : job_phase_name(st->phase),
                              next_span(f->now_ms - f->job->created_ms, a), st->ready ? st->ready : "none"),
        .detail = pod,
        .todo = "Wait, and run why again if the job does not start.",
    };
}

static struct healthy paused(const struct why_facts *f, struct arena *a)
{
    const bool by_mode = f->job->spec.resume.enabled;

    return (struct healthy){
        .state =
            arena_printf(a, "%s: the job is suspended, by spec.%s",
                         f->job->status.phase == JOB_PAUSED ? "Paused" : "Pausing: pods are being deleted",
                         by_mode ? "runMode.pause.enabled" : "suspend"),
        .detail = "",
        .todo = arena_printf(a, "kubectl ptj resume %s -n %s%s", f->job->name, f->job->ns, f->options),
    };
}

static struct healthy succeeded(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;

    return (struct healthy){
        .state = arena_printf(a, "Succeeded %s ago, after %s", next_span(f->now_ms - st->completion_ms, a),
                              next_span(st->completion_ms - st->start_ms, a)),
        .detail = "",
        .todo = "Nothing.",
    };
}

struct healthy healthy_of(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;

    if (st->phase == JOB_SUCCEEDED)
        return succeeded(f, a);
    if (st->phase == JOB_PAUSED || jobstatus_pause_begun(st))
        return paused(f, a);
    return st->phase == JOB_RUNNING ? running(f, a) : pending(f, a);
}
