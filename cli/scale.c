/* scale.c - kubectl ptj scale: change how many pods an elastic job has. */
#include "cli/session.h"
#include "cli/usage.h"

#include "common/json.h"
#include "operator/api/trainjob.h"

#include <stdio.h>

static bool read_pods(const struct args *a, int64_t *ret)
{
    return sv_i64(sv_from(a->operands[1]), 1, TRAINJOB_PODS_MAX, ret);
}

static int check(const struct args *a, struct err *err)
{
    int64_t pods;

    if (!read_pods(a, &pods))
        return usage_wrong(err, "PODS: expected an integer 1..%d, got \"%.40s\"", TRAINJOB_PODS_MAX,
                           a->operands[1]);
    return 0;
}

static int run(struct session *s, const struct args *a, struct err *err)
{
    const char *name = a->operands[0];
    cleanup_json cJSON *job = NULL;
    int64_t pods = 0, min, max;
    char patch[80], what[80];

    (void)read_pods(a, &pods); /* which check has done */
    if (session_job(s, name, &job, err) < 0)
        return -1;
    const cJSON *elastic = json_find(job, (const char *[]){"spec", "elastic", NULL});
    if (!cJSON_IsTrue(json_child(elastic, "enabled")))
        return err_set(err, ERR_INVALID,
                       "%.63s is not elastic: the number of its pods is fixed while it runs (spec.elastic)",
                       name);
    min = json_i64(elastic, "minReplicas", 1);
    max = json_i64(elastic, "maxReplicas", TRAINJOB_PODS_MAX);
    if (pods < min || pods > max)
        return err_set(err, ERR_INVALID,
                       "PODS: expected %lld..%lld, spec.elastic's minReplicas..maxReplicas, got %lld",
                       (long long)min, (long long)max, (long long)pods);
    snprintf(patch, sizeof(patch), "{\"spec\":{\"elastic\":{\"expectedReplicas\":%lld}}}", (long long)pods);
    snprintf(what, sizeof(what), "scaled to %lld pods", (long long)pods);
    return session_patch_job(s, name, patch, what, err);
}

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj scale bert 8", "Train with eight pods."},
    {"kubectl ptj scale bert 2 -n team-a", "The same in another namespace, with two."},
    {"kubectl ptj scale bert 2 && kubectl ptj watch bert", "See how the others leave."},
    {0},
};

const struct verb VERB_SCALE = {
    .name = "scale",
    .operands = "NAME PODS",
    .operands_min = 2,
    .operands_max = 2,
    .words = VERB_JOBS,
    .summary = "change how many pods an elastic job has",
    .about = "Sets spec.elastic.expectedReplicas, within minReplicas and maxReplicas. Training continues "
             "with the new number of ranks; the pod of the highest index leaves first.",
    .examples = EXAMPLES,
    .check = check,
    .run = run,
};
