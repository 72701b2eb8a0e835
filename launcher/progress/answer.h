/* answer.h - the launcher's HTTP responses to the operator, Prometheus or a user: the JSON of GET /progress, the
 * Prometheus text of GET /metrics, and the HTTP replies that carry them. Pure.
 *
 * GET /progress is one object of at most ANSWER_BYTES. job, attempt, restarts and time are always there; every other
 * member is absent while it is not known:
 *
 *   {"job": "5c0d9f8e7b6a", "attempt": 2, "restarts": 0, "time": "2026-11-24T10:00:00Z",
 *    "step": 1200, "totalSteps": 5000, "epoch": 1, "totalEpochs": 3, "percent": 24.0, "etaSeconds": 532,
 *    "loss": 0.531, "samplesPerSecond": 812.5,
 *    "straggler": {"rank": 3, "ratio": 1.42}}
 *
 * `time` is that of the last observation; "" before the first. `epoch` counts from 1. `job` is contract_job_mark of the job's
 * UID, "" outside of a job.
 *
 * Served are GET and HEAD of the two; a query behind the path is ignored, a body is not looked at. Each reply says
 * Connection: close.
 *
 * Errors: none: *out has room for ANSWER_BYTES or REPLY_BYTES, and each text is bounded by its fields.
 */
#ifndef TK_LAUNCHER_PROGRESS_ANSWER_H
#define TK_LAUNCHER_PROGRESS_ANSWER_H

#include "common/buf.h"
#include "common/sv.h"
#include "launcher/progress/progress.h"

enum {
    ANSWER_BYTES = 4096,
    ANSWER_UID_BYTES = 64,
    REPLY_REQUEST_BYTES = 4096,
    REPLY_BYTES = ANSWER_BYTES + 512
};

struct answer {
    char job_uid[ANSWER_UID_BYTES]; /* [A-Za-z0-9-]; "" outside of a job */
    int64_t attempt, restarts;
    struct progress progress;
    int64_t straggler_rank; /* -1: none */
    double straggler_ratio; /* of its step time to the median */
};

void answer_progress(const struct answer *a, struct buf *out);
void answer_metrics(const struct answer *a, struct buf *out);

/* Append the reply to the bytes received so far, at most REPLY_REQUEST_BYTES, to *out. False: the request is not complete
 * yet, and *out is as it was. */
bool answer_reply(const struct answer *a, struct sv request, struct buf *out);

#endif
