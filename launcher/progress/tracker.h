/* tracker.h - follow the progress of the ranks that this launcher starts, and serve it: from the lines of rank 0 (recognise.h)
 * and from its progress file (progress_file.h) to whoever asks (serve.h).
 *
 * Order:     tracker_open after logs_open, tracker_begin before each round, tracker_look once a second,
 *            tracker_close before logs_close. Where nobody can ask (CONTRACT_ENV_PROGRESS_PORT is not set, or
 *            tracker_open failed) only a file is looked at, as a sign of life (file_ms).
 * Ownership: *t owns its server; its file's path lives as long as *l.
 * Units:     milliseconds of the monotonic clock.
 */
#ifndef TK_LAUNCHER_PROGRESS_TRACKER_H
#define TK_LAUNCHER_PROGRESS_TRACKER_H

#include "launcher/logs.h"
#include "launcher/progress/progress_file.h"
#include "launcher/progress/recognise.h"
#include "launcher/progress/serve.h"

/* How much of the output is read; of a faster one the rest is passed over. */
enum { TRACKER_BYTES_PER_S = 256 * 1024 };

struct tracker {
    struct serve *serve;                     /* NULL: nobody can ask */
    bool has_rank0;                          /* rank 0 is one of this node's */
    struct recogniser streams[LOGS_STREAMS]; /* of rank 0 */
    int64_t flood_ms;                        /* when this second began */
    size_t flood_bytes;                      /* of it */
    const char *path;                        /* of the progress file; NULL: there is none */
    struct progress_file file;
    int64_t file_ms; /* when it was last found changed; 0: not in this round */
    struct answer answer;
};

/* Read the variables (contract.h) and start to serve; *l then hands rank 0's output over. ERR_INVALID:
 * a bad variable; else as serve_start. The message is for the user as it is. */
int tracker_open(struct tracker *t, struct logs *l, struct err *err) MUST_CHECK;
void tracker_close(struct tracker *t);

/* A round of ranks begins, which knows of no progress yet. */
void tracker_begin(struct tracker *t, bool has_rank0, int restarts);

/* Look at the progress file. */
void tracker_look(struct tracker *t, int64_t now_ms);

/* The round has ended: look at the progress file once more, and write what GET /progress would answer to *out; nothing where nobody
 * can ask, rank 0 was another node's, or nothing is known. */
void tracker_last(struct tracker *t, struct buf *out);

/* Which rank is slow, and its step time to the median's; rank -1: none. */
void tracker_straggler(struct tracker *t, int64_t rank, double ratio);

#endif
