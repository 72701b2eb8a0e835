/* suspend.c - kubectl ptj suspend and resume: delete a job's pods, and create them again. */
#include "cli/session.h"

#include "common/json.h"

#include <stdio.h>
#include <string.h>

static int run(struct session *s, const struct args *a, struct err *err)
{
    const bool suspend = a->verb == &VERB_SUSPEND;
    const char *name = a->operands[0];
    cleanup_json cJSON *job = NULL;

    if (session_job(s, name, &job, err) < 0)
        return -1;
    const bool suspended = cJSON_IsTrue(json_find(job, (const char *[]){"spec", "suspend", NULL}));
    /* A job may be paused in either of two ways. */
    const bool paused =
        cJSON_IsTrue(json_find(job, (const char *[]){"spec", "runMode", "pause", "enabled", NULL}));
    const char *phase = json_str(json_child(job, "status"), "phase");
    if (phase && (!strcmp(phase, "Succeeded") || !strcmp(phase, "Failed")))
        return err_set(err, ERR_INVALID, "%.63s has ended (%s): it cannot be %s", name, phase,
                       suspend ? "suspended" : "resumed");
    if (suspend ? suspended : !suspended && !paused) {
        printf("%s is %s\n", name, suspend ? "suspended already" : "not suspended");
        return 0;
    }
    if (suspend)
        return session_patch_job(s, name, "{\"spec\":{\"suspend\":true}}",
                                 "suspended: its pods are being deleted", err);
    return session_patch_job(
        s, name,
        paused ? "{\"spec\":{\"suspend\":false,\"runMode\":{\"pause\":{\"enabled\":false}}}}"
               : "{\"spec\":{\"suspend\":false}}",
        "resumed", err);
}

static const struct option_example SUSPEND_EXAMPLES[] = {
    {"kubectl ptj suspend bert", "Free its GPUs, and keep the job."},
    {"kubectl ptj suspend bert -n team-a", "The same in another namespace."},
    {"kubectl ptj suspend bert && kubectl ptj watch", "See how its pods end."},
    {0},
};

const struct verb VERB_SUSPEND = {
    .name = "suspend",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .words = VERB_JOBS,
    .summary = "delete a job's pods, and keep the job",
    .about = "Sets spec.suspend. The operator deletes the pods; they get SIGTERM, at which trainer saves a "
             "checkpoint. When no pod is left, the phase is Paused, and the job uses no GPU. This does not "
             "count as a restart.",
    .examples = SUSPEND_EXAMPLES,
    .run = run,
};

static const struct option_example RESUME_EXAMPLES[] = {
    {"kubectl ptj resume bert", "Start its pods again."},
    {"kubectl ptj resume bert -n team-a", "The same in another namespace."},
    {"kubectl ptj resume bert && kubectl ptj watch bert --until running", "Wait until its pods run."},
    {0},
};

const struct verb VERB_RESUME = {
    .name = "resume",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .words = VERB_JOBS,
    .summary = "create the pods of a suspended job again",
    .about = "Unsets spec.suspend and spec.runMode.pause.enabled. The operator starts the pods as a "
             "new attempt; a script that saves checkpoints continues from the newest.",
    .examples = RESUME_EXAMPLES,
    .run = run,
};
