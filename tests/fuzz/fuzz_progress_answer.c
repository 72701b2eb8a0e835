/* fuzz_progress_answer.c - for any answer of a pod about its progress, the accepted values are within their bounds, and the
 * status reads back as it was written. */
#include "fuzz.h"

#include "operator/api/jobprogress.h"

#include <math.h>
#include <string.h>

static const char UID[] = "1f0c2a7e-9d1b-4c55-8d7a-0a4f5d3f2b11";

static void check(const struct jobprogress *p)
{
    const int64_t counts[] = {p->step, p->total_steps, p->epoch, p->total_epochs, p->eta_s};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        MUST(counts[i] >= -1 && counts[i] <= JOBPROGRESS_COUNT_MAX);
    MUST(p->percent >= -1 && p->percent <= 100);
    MUST(!isinf(p->loss) && !isinf(p->samples_per_second) && !(p->samples_per_second < 0));
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b;
}

/* Written, sent, read. */
static void round_trip(const struct jobprogress *p)
{
    cleanup_arena struct arena a = {0};
    struct jobprogress back;
    struct err err;

    cleanup_json cJSON *o = jobprogress_encode(p);
    MUST((o != NULL) == (p->time_ms != 0));
    if (!o)
        return;
    const char *text = json_print(o, &a);
    MUST(strlen(text) < 512);
    cleanup_json cJSON *read = json_parse(text, strlen(text), &err);
    MUST(read);
    jobprogress_decode(read, &back);
    MUST(back.time_ms == p->time_ms / 1000 * 1000);
    if (!back.time_ms)
        return;
    MUST(back.step == p->step && back.total_steps == p->total_steps && back.epoch == p->epoch &&
         back.total_epochs == p->total_epochs && back.percent == p->percent && back.eta_s == p->eta_s);
    MUST(same(back.loss, p->loss) && same(back.samples_per_second, p->samples_per_second));
    MUST(!jobprogress_moved(&back, p));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jobprogress_answer answer = {.slow_rank = -9};
    struct err err;
    struct jobprogress status;

    if (size > 2 * JOBPROGRESS_ANSWER_BYTES)
        return 0;
    if (jobprogress_answer((struct sv){(const char *)data, size}, UID, 2, &answer) == JOBPROGRESS_OK) {
        MUST(size <= JOBPROGRESS_ANSWER_BYTES);
        if (answer.progress.time_ms) {
            check(&answer.progress);
            round_trip(&answer.progress);
        }
        MUST(answer.slow_rank >= -1 && isfinite(answer.slow_ratio));
    } else
        MUST(answer.slow_rank == -9);
    cleanup_json cJSON *doc = json_parse((const char *)data, size, &err);
    jobprogress_decode(doc, &status);
    if (status.time_ms)
        check(&status);
    return 0;
}
