/* existing.c - compare an existing object with the one to create: controller, deletion, attempt, restart. */
#include "operator/existing.h"

#include <string.h>

static const char *const SPEC[] = {"spec", NULL};

/* Attempt and restart as one number; -1: the labels are missing or invalid. */
static int64_t life_of(const cJSON *object)
{
    const cJSON *labels = json_child(json_child(object, "metadata"), "labels");
    int64_t attempt =
        json_str(labels, LABEL_JOB) ? api_label_number(labels, LABEL_ATTEMPT, COUNT_MAX, -1) : -1;

    return attempt < 0
               ? -1
               : attempt * ((int64_t)INT32_MAX + 1) + api_label_number(labels, LABEL_RESTART, COUNT_MAX, 0);
}

bool existing_is_labelled(const cJSON *there)
{
    return cJSON_IsString(json_find(there, (const char *[]){"metadata", "labels", LABEL_JOB, NULL}));
}

/* Whether its controller has this job's name but another UID: that job is deleted, since names are unique. */
static bool is_of_namesake(const cJSON *meta, const char *job)
{
    const char *name = json_str(api_controller(meta), "name");

    return name && strcmp(name, job) == 0;
}

/* Whether all members of `wanted` are there. The API server may have added defaults. */
static bool covers(const cJSON *there, const cJSON *wanted)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, wanted)
    {
        const cJSON *have = json_child(there, m->string);
        if (cJSON_IsObject(m) ? !covers(have, m) : !cJSON_Compare(have, m, true))
            return false;
    }
    return true;
}

enum existing existing_judge(const struct action *act, const cJSON *there, const char *job,
                             const char *job_uid)
{
    const cJSON *meta = json_child(there, "metadata");
    struct err err;

    if (json_str(meta, "deletionTimestamp"))
        return EXISTING_LEAVING;
    if (strcmp(api_controller_uid(meta), job_uid) != 0)
        return is_of_namesake(meta, job) ? EXISTING_LEAVING : EXISTING_FOREIGN;
    if (act->child == CHILD_WORKLOAD) /* watched without a label */
        return EXISTING_WANTED;
    if (act->child != CHILD_POD && act->child != CHILD_GROUP)
        /* without the label it would never enter the cache */
        return existing_is_labelled(there) ? EXISTING_WANTED : EXISTING_OLDER;
    cleanup_json cJSON *wanted = json_parse(act->body, strlen(act->body), &err);
    if (act->child == CHILD_GROUP)
        return covers(json_find(there, SPEC), json_find(wanted, SPEC)) ? EXISTING_WANTED : EXISTING_OLDER;
    int64_t want = life_of(wanted);
    int64_t have = life_of(there);
    return have == want ? EXISTING_WANTED : have < want ? EXISTING_OLDER : EXISTING_NEWER;
}
