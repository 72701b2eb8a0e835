/* jobprogress.c - read and write a training's progress: a launcher's answer, and status.progress. */
#include "operator/api/jobprogress.h"

#include "common/clock.h"
#include "common/contract.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Upper bound of the slowest rank's ratio to the median; a larger one counts as invalid. */
static const double RATIO_MAX = 1e6;

static const struct {
    const char *key;
    size_t at;
} COUNTS[] = {
    {"step", offsetof(struct jobprogress, step)},
    {"totalSteps", offsetof(struct jobprogress, total_steps)},
    {"epoch", offsetof(struct jobprogress, epoch)},
    {"totalEpochs", offsetof(struct jobprogress, total_epochs)},
    {"percent", offsetof(struct jobprogress, percent)},
    {"etaSeconds", offsetof(struct jobprogress, eta_s)},
};

static int64_t *count_at(struct jobprogress *p, size_t i)
{
    return (int64_t *)(void *)((char *)p + COUNTS[i].at);
}

/* NAN: no number, or one outside the range of a double, such as 1e400. */
static double number(const cJSON *node, const char *key)
{
    const cJSON *m = json_child(node, key);

    return cJSON_IsNumber(m) && isfinite(m->valuedouble) ? m->valuedouble : NAN;
}

/* Rounded down; -1: no number, or not in 0..max. */
static int64_t count(const cJSON *node, const char *key, double max)
{
    double v = number(node, key);

    return v >= 0 && v <= max ? (int64_t)v : -1;
}

void jobprogress_decode(const cJSON *node, struct jobprogress *ret)
{
    const char *time = json_str(node, "time");
    struct jobprogress p = {0};

    *ret = p;
    if (!time || !clock_parse_rfc3339(time, &p.time_ms) || p.time_ms <= 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(COUNTS); i++)
        *count_at(&p, i) = count(node, COUNTS[i].key, (double)JOBPROGRESS_COUNT_MAX);
    p.percent = count(node, "percent", 100);
    p.loss = number(node, "loss");
    p.samples_per_second = number(node, "samplesPerSecond");
    if (p.samples_per_second < 0)
        p.samples_per_second = NAN;
    *ret = p;
}

static void put_number(cJSON *o, const char *key, double v)
{
    if (isfinite(v))
        cJSON_AddNumberToObject(o, key, v);
}

cJSON *jobprogress_encode(const struct jobprogress *p)
{
    struct jobprogress copy = *p;
    char summary[JOBPROGRESS_SUMMARY_BYTES];

    if (!p->time_ms)
        return NULL;
    cJSON *o = cJSON_CreateObject();
    for (size_t i = 0; i < ARRAY_LEN(COUNTS); i++)
        if (*count_at(&copy, i) >= 0)
            cJSON_AddNumberToObject(o, COUNTS[i].key, (double)*count_at(&copy, i));
    put_number(o, "loss", p->loss);
    put_number(o, "samplesPerSecond", p->samples_per_second);
    json_add_time(o, "time", p->time_ms);
    if (jobprogress_summary(p, summary)[0])
        cJSON_AddStringToObject(o, "summary", summary);
    return o;
}

const char *jobprogress_summary(const struct jobprogress *p, char buf[static JOBPROGRESS_SUMMARY_BYTES])
{
    buf[0] = '\0';
    if (p->time_ms && p->percent >= 0)
        snprintf(buf, JOBPROGRESS_SUMMARY_BYTES, "%lld%%", (long long)p->percent);
    else if (p->time_ms && p->step >= 0)
        snprintf(buf, JOBPROGRESS_SUMMARY_BYTES, "step %lld", (long long)p->step);
    return buf;
}

bool jobprogress_moved(const struct jobprogress *a, const struct jobprogress *b)
{
    char text_a[JOBPROGRESS_SUMMARY_BYTES];
    char text_b[JOBPROGRESS_SUMMARY_BYTES];
    bool both_steps = a->time_ms && b->time_ms && a->percent < 0 && b->percent < 0;

    if (both_steps && a->step >= 0 && b->step >= a->step)
        return false;
    return strcmp(jobprogress_summary(a, text_a), jobprogress_summary(b, text_b)) != 0;
}

static void read_straggler(const cJSON *node, struct jobprogress_answer *ret)
{
    int64_t rank = json_i64(node, "rank", -1);
    double ratio = number(node, "ratio");

    ret->slow_rank = -1;
    ret->slow_ratio = 0;
    if (rank < 0 || rank > INT32_MAX || !(ratio > 1 && ratio <= RATIO_MAX))
        return;
    ret->slow_rank = (int32_t)rank;
    ret->slow_ratio = ratio;
}

enum jobprogress_verdict jobprogress_answer(struct sv text, const char *job_uid, int32_t attempt,
                                            struct jobprogress_answer *ret)
{
    struct err ignored;
    cleanup_json cJSON *doc =
        text.len <= JOBPROGRESS_ANSWER_BYTES ? json_parse(text.p, text.len, &ignored) : NULL;
    const char *job = json_str(doc, "job");
    int64_t of = json_i64(doc, "attempt", -1);

    if (!job || of < 0)
        return JOBPROGRESS_GARBAGE;
    if (strcmp(job, contract_job_mark(job_uid)) != 0 || of != attempt)
        return JOBPROGRESS_OTHERS;
    jobprogress_decode(doc, &ret->progress);
    read_straggler(json_child(doc, "straggler"), ret);
    return JOBPROGRESS_OK;
}
