/* existing.c - by controller, deletionTimestamp and attempt. */
#include "operator/existing.h"

#include "common/sv.h"

#include <string.h>

static int64_t attempt_of(const cJSON *object)
{
    static const char *const PATH[] = {"metadata", "labels", LABEL_ATTEMPT, NULL};
    const cJSON *label = json_find(object, PATH);
    int64_t n = -1;

    if (cJSON_IsString(label) && existing_is_labelled(object))
        (void)sv_i64(sv_from(label->valuestring), 0, ATTEMPT_MAX, &n);
    return n;
}

bool existing_is_labelled(const cJSON *there)
{
    return cJSON_IsString(json_find(there, (const char *[]){"metadata", "labels", LABEL_JOB, NULL}));
}

enum existing existing_judge(const struct action *act, const cJSON *there, const char *job_uid)
{
    const cJSON *meta = json_find(there, (const char *[]){"metadata", NULL});
    struct err err;

    if (strcmp(api_controller_uid(meta), job_uid) != 0)
        return EXISTING_FOREIGN;
    if (json_str(meta, "deletionTimestamp"))
        return EXISTING_LEAVING;
    if (act->child != CHILD_POD)
        return EXISTING_WANTED;
    cleanup_json cJSON *wanted = json_parse(act->body, strlen(act->body), &err);
    int64_t want = attempt_of(wanted);
    int64_t have = attempt_of(there);
    return have == want ? EXISTING_WANTED : have < want ? EXISTING_OLDER : EXISTING_NEWER;
}
