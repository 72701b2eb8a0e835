/* answer.h - format the launcher's HTTP replies to the operator, Prometheus or a user: the JSON of GET
 * /progress and the text of GET /metrics. serve.c calls it; agent_report.c takes the JSON as termination
 * message. Pure.
 *
 * GET /progress is one object of at most ANSWER_BYTES. job, attempt, restarts and time are always present;
 * every other member is absent while its value is not known:
 *
 *   {"job": "5c0d9f8e7b6a", "attempt": 2, "restarts": 0, "time": "2026-11-24T10:00:00Z",
 *    "step": 1200, "totalSteps": 5000, "epoch": 1, "totalEpochs": 3, "percent": 24.0, "etaSeconds": 532,
 *    "loss": 0.531, "samplesPerSecond": 812.5,
 *    "straggler": {"rank": 3, "ratio": 1.42}}
 *
 * `time` is the time of the last observation; "" before the first one. `epoch` counts from 1. `job` is
 * contract_job_mark of the job's UID; "" outside of a job.
 *
 * The server accepts GET and HEAD of both paths. It ignores a query after the path, and a body. Each reply
 * has
 * Connection: close.
 *
 * Errors: none: *out has room for ANSWER_BYTES or REPLY_BYTES, which every text fits into. */
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
    double straggler_ratio; /* its step time / the median step time */
};

void answer_progress(const struct answer *a, struct buf *out);
void answer_metrics(const struct answer *a, struct buf *out);

/* Append the reply to the bytes received so far, at most REPLY_REQUEST_BYTES, to *out. False: the request is
 * incomplete, and *out is unchanged. */
bool answer_reply(const struct answer *a, struct sv request, struct buf *out);

#endif
