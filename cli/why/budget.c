/* budget.c - find PodDisruptionBudgets that read the number of a job's pods from /scale and get 0. */
#include "cli/why/budget.h"

static const cJSON *member(const cJSON *object, const char *first, const char *second)
{
    return json_find(object, (const char *[]){first, second, NULL});
}

/* Whether all labels are the pod's; a selector of none selects every pod. */
static bool selects(const cJSON *selector, const cJSON *pod)
{
    const cJSON *want;

    cJSON_ArrayForEach(want, member(selector, "matchLabels", NULL))
    {
        if (!same_text(cJSON_GetStringValue(want), json_str(member(pod, "metadata", "labels"), want->string)))
            return false;
    }
    /* What an expression selects is not judged here. */
    return selector && !cJSON_GetArraySize(member(selector, "matchExpressions", NULL));
}

/* A number in minAvailable is compared with the pods there are; all else is a part of those that should be. */
static bool asks_scale(const cJSON *budget)
{
    return member(budget, "spec", "maxUnavailable") || cJSON_IsString(member(budget, "spec", "minAvailable"));
}

const char *budget_of_none(const struct why_facts *f)
{
    const cJSON *budget, *pod;

    cJSON_ArrayForEach(budget, f->budgets)
    {
        const cJSON *status = member(budget, "status", NULL);
        cJSON_ArrayForEach(pod, f->pods)
        {
            if (json_i64(status, "expectedPods", -1) == 0 &&
                json_i64(status, "disruptionsAllowed", -1) == 0 && asks_scale(budget) &&
                selects(member(budget, "spec", "selector"), pod))
                return json_str(member(budget, "metadata", NULL), "name");
        }
    }
    return NULL;
}
