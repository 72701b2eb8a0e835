/* fuzz_trainjob.c - a job that is decoded is within its bounds, and its status means the same when read again. */
#include "fuzz.h"

#include "operator/api/trainjob.h"

#include <string.h>

static void check_spec(const struct trainjob_spec *spec)
{
    int64_t pods = 0;

    MUST(spec->n_replica_specs >= 1 && spec->n_replica_specs <= TRAINJOB_TYPES_MAX);
    for (int i = 0; i < spec->n_replica_specs; i++) {
        const struct replica_spec *r = &spec->replica_specs[i];
        MUST(r->type[0] && strlen(r->type) <= TRAINJOB_TYPE_MAX && r->replicas >= 1);
        MUST(cJSON_IsObject(r->template));
        pods += r->replicas;
    }
    MUST(pods == spec->pods && pods <= TRAINJOB_PODS_MAX && spec->gpus >= 0);
    MUST(spec->run_policy.backoff_limit >= 0 && strlen(spec->hash) == sizeof(spec->hash) - 1);
    MUST(spec->run_policy.n_retryable_exit_codes <= TRAINJOB_EXIT_CODES_MAX);
    if (spec->elastic.enabled)
        MUST(spec->elastic.min <= spec->elastic.expected && spec->elastic.expected <= spec->elastic.max);
}

static void check_status(const struct jobstatus *status)
{
    cleanup_arena struct arena a = {0};
    struct jobstatus again;
    cleanup_json cJSON *tree = jobstatus_encode(status);

    jobstatus_decode(tree, &a, &again);
    cleanup_json cJSON *second = jobstatus_encode(&again);
    MUST(strcmp(json_print(tree, &a), json_print(second, &a)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    cJSON *tree = size < 100000 ? json_parse((const char *)data, size, &err) : NULL;

    if (!tree)
        return 0;
    cleanup_trainjob struct trainjob *job = trainjob_decode(tree, &err);
    MUST(job || (err.kind == ERR_INVALID && err.msg[0]));
    if (!job)
        return 0;
    MUST(job->ns[0] && job->name[0] && job->uid[0]);
    MUST(!job->spec_error || job->spec_error[0]);
    if (!job->spec_error)
        check_spec(&job->spec);
    check_status(&job->status);
    return 0;
}
