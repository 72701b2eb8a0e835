/* record.c - copy what scripts read of a job's metadata and status into one object. */
#include "cli/watch/record.h"

static const char *const METADATA[] = {"namespace", "name", "uid", "creationTimestamp", NULL};
static const char *const STATUS[] = {"phase",    "reason",    "ready",          "attempt",
                                     "restarts", "startTime", "completionTime", NULL};
/* Strings and numbers only: other types do not have the meaning of these names. */
static void copy(cJSON *to, const cJSON *from, const char *const *names)
{
    for (; *names; names++) {
        const cJSON *value = json_child(from, *names);
        if (cJSON_IsString(value) || cJSON_IsNumber(value))
            cJSON_AddItemToObject(to, *names, cJSON_Duplicate(value, false));
    }
}

cJSON *record_failure(const cJSON *failure)
{
    static const char *const FAILURE[] = {"pod",    "node",    "rank", "exitCode", "signal",
                                          "reason", "message", "time", "attempt",  NULL};
    cJSON *o = cJSON_CreateObject();

    copy(o, failure, FAILURE);
    return o;
}

static cJSON *with_time(cJSON *o, int64_t now_ms)
{
    json_add_time(o, "time", now_ms);
    return o;
}

static cJSON *content(const struct board_job *j, const cJSON *object)
{
    const cJSON *status = json_child(object, "status");
    const cJSON *failure = json_child(status, "lastFailure");
    cJSON *o = cJSON_CreateObject(), *progress = jobprogress_encode(&j->progress);

    copy(o, json_child(object, "metadata"), METADATA);
    copy(o, status, STATUS);
    if (progress)
        cJSON_AddItemToObject(o, "progress", progress);
    if (cJSON_IsObject(failure))
        cJSON_AddItemToObject(o, "lastFailure", record_failure(failure));
    return o;
}

cJSON *record_of(struct board_job *j, const cJSON *object, int64_t now_ms)
{
    cJSON *o = content(j, object);
    const uint64_t hash = json_hash(o);

    if (j->printed.begun && j->printed.hash == hash) {
        cJSON_Delete(o);
        return NULL;
    }
    j->printed.begun = true;
    j->printed.hash = hash;
    return with_time(o, now_ms);
}

cJSON *record_deleted(const struct board_job *j, int64_t now_ms)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "namespace", j->ns);
    cJSON_AddStringToObject(o, "name", j->name);
    cJSON_AddStringToObject(o, "uid", j->uid);
    cJSON_AddBoolToObject(o, "deleted", true);
    return with_time(o, now_ms);
}
