/* logs.h - direct the ranks' stdout and stderr to the console, to files, or to both.
 *
 * A stream of a rank is
 *   - plain: the rank inherits the console, a file or /dev/null, and the launcher never sees its bytes;
 *   - teed: a pipe to the launcher, which writes the bytes to a file as they came, and to the console as whole
 *     lines with the rank's prefix (tee.h), in one write when they fit into PIPE_BUF bytes;
 *   - hidden: a pipe to the launcher, which writes the bytes to the file, if there is one, and nowhere else;
 *   - watched: a pipe to the launcher, which writes the bytes to the console as they came. It reads up to
 *     LOGS_LINE_BYTES of an unfinished line before it reads another rank's stream.
 * Of streams that come through the launcher the last LOGS_TAIL_BYTES are kept.
 *
 * Ownership: struct logs owns its files, pipes and paths.
 * Threads:   one thread.
 * Errors:    a console that does not accept output blocks the ranks that write or tee to it, not the launcher.
 */
#ifndef TK_LAUNCHER_LOGS_H
#define TK_LAUNCHER_LOGS_H

#include "common/buf.h"
#include "launcher/options.h"
#include "launcher/tee.h"

#include <poll.h>

enum {
    LOGS_LINE_BYTES = 64 * 1024,
    LOGS_TEED_LINE_BYTES = 4 * 1024 * 1024, /* a longer line becomes several */
    LOGS_BACKLOG_BYTES = 256 * 1024,        /* so much waits for the console before ranks wait, too */
    LOGS_SINK_BYTES = LOGS_BACKLOG_BYTES + LOGS_TEED_LINE_BYTES,
    LOGS_STREAMS = 2,
    LOGS_TAIL_BYTES = 1024,
    LOGS_NAP_US = 1000
};
#define LOGS_PROGRESS_FILE                                                                                   \
    "/progress.json" /* in the run's folder, unless the user names another (progress/tracker.h) */

/* One stream of one rank; index 0 is stdout, 1 is stderr. */
struct log_stream {
    int child; /* the rank's descriptor; -1: it inherits the launcher's */
    int pipe;  /* read end of the pipe when teed or watched, else -1 */
    int file;  /* the file of a teed stream, or -1 */
    bool teed;
    bool hidden;          /* of a teed stream: the console gets nothing */
    struct tee_line line; /* of a teed stream */
    struct buf tail;      /* the last bytes that came through the pipe, tail.max at most */
    int64_t heard_ms;     /* monotonic: when they came; 0: none in this attempt */
};

struct log_rank {
    struct log_stream streams[LOGS_STREAMS];
    const char *error_file; /* NULL: none */
    const char *prefix;
};

struct logs {
    const struct options *options;
    struct arena arena;
    const char *run_dir; /* the run's folder; NULL: none */
    int last_attempt;
    bool temporary; /* run_dir has no logs and is removed by logs_close */
    /* Set by the caller before logs_begin. watches: stderr streams that go to the console are watched, watches_out: so are
     * stdout streams. heard: gets the bytes of each teed or watched stream as they come; NULL: nobody. */
    bool watches, watches_out;
    bool watches_all; /* besides, streams that go to files only, or nowhere, come through the launcher */
    void (*heard)(void *ctx, int local, int stream, const char *bytes, size_t len);
    void *heard_ctx;
    struct log_rank *ranks;
    int filtered[LOGS_STREAMS];     /* the attempt's file of filtered lines; -1: none */
    struct buf sinks[LOGS_STREAMS]; /* bytes to be written to the console's stdout, stderr */
    size_t turn_bytes;              /* read in this turn */
    int64_t small_ms;               /* monotonic: the last turn that read a little; 0: none */
    bool stuck[LOGS_STREAMS]; /* accepted nothing for a whole timeout; not waited for until it does again */
};

/* Create the run's folder. ERR_INVALID when --log-dir cannot be written. Without --log-dir a failure to create
 * one is an error only if output has to go to files and not to the console. */
int logs_open(struct logs *l, const struct options *o, const char *run_id, struct err *err) MUST_CHECK;
void logs_close(struct logs *l);

/* Open files and pipes of all streams for attempt `attempt`. `first_rank` is the global rank of local rank 0. */
int logs_begin(struct logs *l, int attempt, int first_rank, struct err *err) MUST_CHECK;

/* Local rank `local` has been started: close the launcher's copies of its descriptors. */
void logs_started(struct logs *l, int local);

/* Fill pfds (at most logs_poll_max entries) with the descriptors to poll; returns how many. */
int logs_poll_max(const struct logs *l);
int logs_poll(const struct logs *l, struct pollfd *pfds);

/* After poll: read pipes that are readable, write to the console where it is writable. True: ranks make many small writes, so wait
 * for LOGS_NAP_US before the next poll, and read them together. */
bool logs_turn(struct logs *l, const struct pollfd *pfds, int n);

/* All ranks have exited: read the rest of the pipes, end unfinished lines, and write all to the console. Waits at
 * most timeout_ms for a console that does not accept output. */
void logs_end(struct logs *l, int timeout_ms);

/* Print a message of the launcher to stderr, after the ranks' output read so far. Waits at most timeout_ms for a
 * console that does not accept output; the rest is written by later calls, and bytes beyond LOGS_SINK_BYTES are
 * lost. */
void logs_say(struct logs *l, const char *text, int timeout_ms);

#endif
