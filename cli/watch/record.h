/* record.h - a job as one JSON object, for `kubectl ptj watch -o json`. Pure.
 *
 * Members have the names and meanings of the job's metadata and status (docs/api.md); one that the job lacks is absent. `time` is
 * when the line was made.
 * Ownership: objects are freed with cJSON_Delete.
 */
#ifndef TK_CLI_WATCH_RECORD_H
#define TK_CLI_WATCH_RECORD_H

#include "cli/watch/board.h"

/* The job as it is now. NULL: nothing of it has changed since the last call for this job. */
cJSON *record_of(struct board_job *j, const cJSON *object, int64_t now_ms);

/* A failure of the status. */
cJSON *record_failure(const cJSON *failure);

/* {"time", "namespace", "name", "uid", "deleted": true} */
cJSON *record_deleted(const struct board_job *j, int64_t now_ms);

#endif
