/* existing.c - compare an existing object with the one to create: controller, deletion, attempt, restart. */
#include "operator/existing.h"

#include "common/sv.h"

#include <string.h>

static const char *const SPEC[] = {"spec", NULL};

static int64_t number_label(const cJSON *object, const char *key, int64_t fallback)
{
    const char *const path[] = {"metadata", "labels", key, NULL};
    const cJSON *label = json_find(object, path);
    int64_t n = fallback;

    if (cJSON_IsString(label) && existing_is_labelled(object))
        (void)sv_i64(sv_from(label->valuestring), 0, COUNT_MAX, &n);
    return n;
}

/* Attempt and restart as one number; -1: the labels are missing or invalid. */
static int64_t life_of(const cJSON *object)
{
    int64_t attempt = number_label(object, LABEL_ATTEMPT, -1);

    return attempt < 0 ? -1 : attempt * ((int64_t)INT32_MAX + 1) + number_label(object, LABEL_RESTART, 0);
}

bool existing_is_labelled(const cJSON *there)
{
    return cJSON_IsString(json_find(there, (const char *[]){"metadata", "labels", LABEL_JOB, NULL}));
}

static bool is(const cJSON *object, const char *key, const char *want)
{
    const char *s = json_str(object, key);

    return s && strcmp(s, want) == 0;
}

/* Whether its controller has this job's name but another UID: that job is deleted, since names are unique. */
static bool is_of_namesake(const cJSON *meta, const char *job)
{
    const cJSON *ref;

    cJSON_ArrayForEach(ref, json_child(meta, "ownerReferences"))
    {
        const char *version = json_str(ref, "apiVersion");
        if (cJSON_IsTrue(json_child(ref, "controller")))
            return is(ref, "kind", TRAINJOB_KIND) && is(ref, "name", job) && version &&
                   strncmp(version, TRAINJOB_GROUP "/", strlen(TRAINJOB_GROUP "/")) == 0;
    }
    return false;
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
