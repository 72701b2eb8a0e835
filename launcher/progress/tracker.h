/* tracker.h - follow the progress of the ranks that this launcher starts, and serve it: read rank 0's lines
 * (recognise.h) and its progress file (progress_file.h), and pass the result to the HTTP server (serve.h).
 * agent*.c call it.
 *
 * Order:     tracker_open after logs_open, tracker_begin before each round, tracker_look once a second,
 *            tracker_close before logs_close. Without a server (CONTRACT_ENV_PROGRESS_PORT is not set, or
 *            tracker_open failed) it only checks whether the progress file changes, for hang detection
 *            (file_ms).
 * Ownership: *t owns its server; `path` is valid as long as *l.
 * Units:     milliseconds of the monotonic clock.
 */
#ifndef TK_LAUNCHER_PROGRESS_TRACKER_H
#define TK_LAUNCHER_PROGRESS_TRACKER_H

#include "launcher/logs.h"
#include "launcher/progress/progress_file.h"
#include "launcher/progress/recognise.h"
#include "launcher/progress/serve.h"

/* How much output per second is parsed; the rest is skipped. */
enum { TRACKER_BYTES_PER_S = 256 * 1024 };

struct tracker {
    struct serve *serve;                     /* NULL: no server */
    bool has_rank0;                          /* rank 0 runs on this node */
    struct recogniser streams[LOGS_STREAMS]; /* of rank 0 */
    int64_t flood_ms;                        /* when the current second began */
    size_t flood_bytes;                      /* bytes in the current second */
    const char *path;                        /* of the progress file; NULL: there is none */
    struct progress_file file;
    int64_t file_ms; /* when the file last changed; 0: not in this round */
    struct answer answer;
};

/* Read the environment variables (contract.h), start the server, and let *l pass on rank 0's output.
 * ERR_INVALID: a bad variable; else as serve_start. The message can be printed as it is. */
int tracker_open(struct tracker *t, struct logs *l, struct err *err) MUST_CHECK;
void tracker_close(struct tracker *t);

/* Begin a round of ranks: no progress is known yet. */
void tracker_begin(struct tracker *t, bool has_rank0, int restarts);

/* Read the progress file if it has changed. */
void tracker_look(struct tracker *t, int64_t now_ms);

/* After a round: read the progress file once more, and write the JSON of GET /progress to *out. Writes
 * nothing if there is no server, rank 0 ran on another node, or there is no progress. */
void tracker_last(struct tracker *t, struct buf *out);

/* Set the slow rank, and its step time / the median step time; rank -1: none. */
void tracker_straggler(struct tracker *t, int64_t rank, double ratio);

#endif
