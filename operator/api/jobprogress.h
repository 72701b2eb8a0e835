/* jobprogress.h - how far a job's training is: read it from a launcher's answer to GET /progress, and from and for the
 * job's status. Pure.
 *
 * The answer has the members of status.progress, and job, attempt, straggler; launcher/progress/answer.h describes it.
 * Whoever runs in the pod may have written it. No text of it gets into a status.
 *
 * Ownership: plain values, no pointers.
 * Units:     steps and epochs are counts; seconds; milliseconds since the Unix epoch.
 * Errors:    a member of a wrong type or out of bounds counts as not known.
 */
#ifndef TK_OPERATOR_API_JOBPROGRESS_H
#define TK_OPERATOR_API_JOBPROGRESS_H

#include "common/json.h"
#include "common/sv.h"

/* Counts and seconds above this are not believed; a double holds it exactly. */
#define JOBPROGRESS_COUNT_MAX INT64_C(1000000000000000)

enum { JOBPROGRESS_ANSWER_BYTES = 4096, JOBPROGRESS_SUMMARY_BYTES = 32 };

/* A zeroed one says nothing. */
struct jobprogress {
    int64_t time_ms; /* of the launcher's last observation; 0: nothing is known, and no other member counts */
    int64_t step, total_steps, epoch, total_epochs; /* -1: not known */
    int64_t percent;                                /* 0..100, rounded down; -1 */
    int64_t eta_s;                                  /* -1 */
    double loss, samples_per_second;                /* NAN */
};

/* status.progress. NULL, or one without a usable time: nothing is known. */
void jobprogress_decode(const cJSON *node, struct jobprogress *ret);

/* NULL: nothing is known. Free with cJSON_Delete. */
cJSON *jobprogress_encode(const struct jobprogress *p);

/* "47%", "step 1200", or "". */
const char *jobprogress_summary(const struct jobprogress *p, char buf[static JOBPROGRESS_SUMMARY_BYTES]);

/* Whether someone who looks at the summary sees that `b` is not `a`. Later steps of a training whose percent is not known do
 * not count: nearly each answer has one. */
bool jobprogress_moved(const struct jobprogress *a, const struct jobprogress *b);

/* What a launcher says. */
struct jobprogress_answer {
    struct jobprogress progress;
    int32_t slow_rank; /* -1: none */
    double slow_ratio; /* of its step time to the median */
};

enum jobprogress_verdict {
    JOBPROGRESS_OK,
    JOBPROGRESS_GARBAGE, /* it is no answer */
    JOBPROGRESS_OTHERS,  /* it is the answer of another job, or of another attempt */
};

/* *ret is set when it is OK only. */
enum jobprogress_verdict jobprogress_answer(struct sv text, const char *job_uid, int32_t attempt,
                                            struct jobprogress_answer *ret);

#endif
