/* ignored.c - the table of fields that are accepted and have no effect. */
#include "operator/plan/ignored.h"

#include <string.h>

/* The fields ignored for one reason: the path of the first, and their number. */
struct found {
    const char *first;
    int n;
};

static void note(struct found *f, const char *path)
{
    if (f->n++ == 0)
        f->first = path;
}

static void report(struct planner *p, const struct found *f, const char *why)
{
    if (f->n == 1)
        planner_event(p, true, "Ignored", "spec.%s: %s", f->first, why);
    else if (f->n > 1)
        planner_event(p, true, "Ignored", "spec.%s and %d more: %s", f->first, f->n - 1, why);
}

static void find_command(struct planner *p, int type, const cJSON *pod_spec, struct found *ret)
{
    const cJSON *training = trainjob_training_container(pod_spec);
    const cJSON *c;
    int i = 0;

    cJSON_ArrayForEach(c, json_find(pod_spec, (const char *[]){"containers", NULL}))
    {
        if (c == training && cJSON_GetArraySize(json_find(c, (const char *[]){"command", NULL})) > 0)
            note(ret, arena_printf(p->a, "replicaSpecs[%d].template.spec.containers[%d].command", type, i));
        i++;
    }
}

void ignored_report_change(struct planner *p, int attempt)
{
    int64_t reported = p->job->status.observed_generation;

    /* The job has ended and its pods are gone: whether its template changed is unknown. */
    bool unknown = p->in->n_pods == 0 && jobstatus_finished(&p->st);
    if (reported == 0 || reported >= p->job->generation || p->st.attempt != attempt ||
        !(unknown || planner_has_other_template(p)))
        return;
    if (jobstatus_finished(&p->st))
        planner_event(p, true, "Ignored",
                      "the job has ended: a change of its pods' template has no effect; create another job, "
                      "or delete this one and "
                      "apply it again");
    else if (!p->spec->paused && (p->st.ran_attempt == attempt || planner_gang_runs(p)))
        planner_event(p, false, "TemplateWaits",
                      "attempt %d continues; the changed template takes effect with the next attempt",
                      attempt);
}

/* Fields for gang schedulers that this operator's does not have. */
static void report_scheduling(struct planner *p)
{
    enum gang_scheduler is = p->in->gangs.scheduler;
    const struct scheduling *s = &p->spec->scheduling;
    struct found fields = {0};

    if (s->min_available && is == GANG_NONE)
        note(&fields, "runPolicy.schedulingPolicy.minAvailable");
    if (s->queue && is != GANG_VOLCANO)
        note(&fields, s->t9k_queue ? "scheduler.t9kScheduler.queue" : "runPolicy.schedulingPolicy.queue");
    if (s->timeout_s.set && is != GANG_COSCHEDULING)
        note(&fields, "runPolicy.schedulingPolicy.scheduleTimeoutSeconds");
    if (s->has_priority)
        note(&fields, "scheduler.t9kScheduler.priority");
    report(p, &fields,
           arena_printf(p->a, "no effect with the operator's --gang-scheduler=%s", gang_schedulers[is]));
}

void ignored_report(struct planner *p)
{
    const struct trainjob_spec *spec = p->spec;
    bool torchrun = spec->torchrun.enabled && !spec->debug.enabled;
    struct found commands = {0};
    struct found policies = {0};
    struct found names = {0};

    if (p->job->status.observed_generation >= p->job->generation)
        return;
    for (int i = 0; i < spec->n_replica_specs; i++) {
        const cJSON *pod_spec = json_find(spec->replica_specs[i].template, (const char *[]){"spec", NULL});
        const char *policy = json_str(pod_spec, "restartPolicy");
        if (torchrun)
            find_command(p, i, pod_spec, &commands);
        if (json_str(pod_spec, "hostname"))
            note(&names, arena_printf(p->a, "replicaSpecs[%d].template.spec.hostname", i));
        if (json_str(pod_spec, "subdomain"))
            note(&names, arena_printf(p->a, "replicaSpecs[%d].template.spec.subdomain", i));
        if (policy && strcmp(policy, "Never") != 0)
            note(&policies, arena_printf(p->a, "replicaSpecs[%d].template.spec.restartPolicy", i));
    }
    for (int i = 0; i < spec->resume.n && torchrun; i++)
        if (spec->resume.items[i].n_command > 0)
            note(&commands, arena_printf(p->a, "runMode.pause.resumeSpecs[%d].command", i));
    report(p, &commands,
           "torchrun is enabled and runs instead: put the training program and its arguments into args");
    report(p, &policies, "pods are created with Never: set replicaSpecs[].restartPolicy instead");
    report_scheduling(p);
    if (p->job->queue.bad_max_time)
        planner_event(p, true, "Ignored",
                      LABEL_QUEUE_MAX_TIME ": expected seconds from 1 to %d, got \"%.63s\"", INT32_MAX,
                      p->job->queue.bad_max_time);
    report(p, &names, "the pods find each other by their own names and the job's Service");
    if (spec->unknown)
        planner_event(p, true, "Ignored", "%s; the job ran without it, and continues without it",
                      spec->unknown);
}
