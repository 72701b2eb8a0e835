/* trainjob_scheduling.c - decode spec.runPolicy.schedulingPolicy and spec.scheduler. */
#include "operator/api/trainjob.h"

#include <string.h>

enum { PRIORITY_MAX = 100 };

static int decode_policy(const struct json_at *at, struct scheduling *ret, struct err *err)
{
    static const char *const KNOWN[] = {"minAvailable", "queue", "priorityClass", "scheduleTimeoutSeconds",
                                        NULL};

    return decode_members(at, KNOWN, NULL, err) < 0 ||
                   json_get_i32(at, "minAvailable", 1, TRAINJOB_PODS_MAX, &ret->min_available, err) < 0 ||
                   decode_text(at, "queue", DECODE_NAME_BYTES, &ret->queue, err) < 0 ||
                   decode_text(at, "priorityClass", DECODE_NAME_BYTES, &ret->priority_class, err) < 0 ||
                   decode_opt_i64(at, "scheduleTimeoutSeconds", 1, INT32_MAX, &ret->timeout_s, err) < 0
               ? -1
               : 0;
}

static int decode_t9k(const struct json_at *at, struct scheduling *ret, struct err *err)
{
    static const char *const KNOWN[] = {"queue", "priority", NULL};
    struct opt_i64 priority = {0};
    const char *queue = NULL;

    if (decode_members(at, KNOWN, NULL, err) < 0 ||
        decode_text(at, "queue", DECODE_NAME_BYTES, &queue, err) < 0 ||
        decode_opt_i64(at, "priority", 0, PRIORITY_MAX, &priority, err) < 0)
        return -1;
    ret->has_priority = priority.set;
    if (queue && ret->queue && strcmp(queue, ret->queue) != 0)
        return json_err(DECODE_AT(at, "queue"), err,
                        "expected the same as in runPolicy.schedulingPolicy.queue, \"%.80s\"", ret->queue);
    ret->t9k_queue = queue && !ret->queue;
    ret->queue = queue ? queue : ret->queue;
    return 0;
}

/* More would wait forever. An elastic job may have as few as minReplicas. */
static int check_min(const struct json_at *policy, const struct trainjob_spec *s, struct err *err)
{
    int32_t most = s->elastic.enabled ? s->elastic.min : s->pods;

    if (s->scheduling.min_available > most)
        return json_err(DECODE_AT(policy, "minAvailable"), err, "expected at most %s (%d), got %d",
                        s->elastic.enabled ? "minReplicas" : "the number of pods", most,
                        s->scheduling.min_available);
    return 0;
}

int trainjob_decode_scheduling(const struct json_at *spec, struct trainjob_spec *ret, struct err *err)
{
    static const char *const KNOWN[] = {"t9kScheduler", NULL};
    struct json_at run_policy = json_member(spec, "runPolicy");
    struct json_at policy = json_member(&run_policy, "schedulingPolicy");
    struct json_at scheduler = json_member(spec, "scheduler");
    struct json_at t9k = json_member(&scheduler, "t9kScheduler");

    if (decode_members(&scheduler, KNOWN, NULL, err) < 0 ||
        decode_policy(&policy, &ret->scheduling, err) < 0 || decode_t9k(&t9k, &ret->scheduling, err) < 0)
        return -1;
    return check_min(&policy, ret, err);
}
