/* jobprogress.h - the progress of a training: decode it from a launcher's answer to GET /progress and from
 * the job's status, and encode it for the status. Pure.
 *
 * The answer has the members of status.progress, and job, attempt, straggler; launcher/progress/answer.h
 * describes it. Any process in the pod may have written it, so no text of it is copied into a status.
 *
 * Ownership: plain values, no pointers.
 * Units:     steps and epochs are counts; seconds; milliseconds since the Unix epoch.
 * Errors:    a member of a wrong type or out of bounds counts as unknown.
 */
#ifndef TK_OPERATOR_API_JOBPROGRESS_H
#define TK_OPERATOR_API_JOBPROGRESS_H

#include "common/json.h"
#include "common/sv.h"

/* Larger counts and seconds count as unknown; a double holds this one exactly. */
#define JOBPROGRESS_COUNT_MAX INT64_C(1000000000000000)

enum { JOBPROGRESS_ANSWER_BYTES = 4096, JOBPROGRESS_SUMMARY_BYTES = 32 };

/* A zeroed struct is an unknown progress. */
struct jobprogress {
    int64_t time_ms; /* of the launcher's last observation; 0: unknown; ignore the other members */
    int64_t step, total_steps, epoch, total_epochs; /* -1: unknown */
    int64_t percent;                                /* 0..100, rounded down; -1 */
    int64_t eta_s;                                  /* -1 */
    double loss, samples_per_second;                /* NAN */
};

/* Decode status.progress. NULL, or a node without a usable time: unknown. */
void jobprogress_decode(const cJSON *node, struct jobprogress *ret);

/* NULL if unknown. Free with cJSON_Delete. */
cJSON *jobprogress_encode(const struct jobprogress *p);

/* "47%", "step 1200", or "". */
const char *jobprogress_summary(const struct jobprogress *p, char buf[static JOBPROGRESS_SUMMARY_BYTES]);

/* Whether the summaries of `a` and `b` differ. A later step alone does not count while the percent is
 * unknown: nearly every answer has one. */
bool jobprogress_moved(const struct jobprogress *a, const struct jobprogress *b);

/* A launcher's answer. */
struct jobprogress_answer {
    struct jobprogress progress;
    int32_t slow_rank; /* -1: none */
    double slow_ratio; /* of its step time to the median */
};

enum jobprogress_verdict {
    JOBPROGRESS_OK,
    JOBPROGRESS_GARBAGE, /* not an answer */
    JOBPROGRESS_OTHERS,  /* the answer of another job or another attempt */
};

/* Sets *ret only if it returns JOBPROGRESS_OK. */
enum jobprogress_verdict jobprogress_answer(struct sv text, const char *job_uid, int32_t attempt,
                                            struct jobprogress_answer *ret);

#endif
