/* logs.h - direct the ranks' stdout and stderr to the console, to files, or to both. agent*.c call it.
 *
 * A stream of a rank is
 *   - plain: the rank inherits the console, a file or /dev/null, and the launcher never sees its bytes;
 *   - teed: a pipe to the launcher, which writes the bytes to a file unchanged, and to the console as whole
 *     lines with the rank's prefix (tee.h), in one write if they fit into PIPE_BUF bytes;
 *   - hidden: a pipe to the launcher, which writes the bytes to the file, if there is one, and nowhere else;
 *   - watched: a pipe to the launcher, which writes the bytes to the console unchanged. It reads up to
 *     LOGS_LINE_BYTES of an unfinished line before it reads another rank's stream. The launcher keeps the
 *     last LOGS_TAIL_BYTES of each stream that it reads.
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
    LOGS_TEED_LINE_BYTES = 4 * 1024 * 1024, /* a longer line is split */
    LOGS_BACKLOG_BYTES = 256 * 1024,        /* when this much waits for the console, ranks wait too */
    LOGS_SINK_BYTES = LOGS_BACKLOG_BYTES + LOGS_TEED_LINE_BYTES,
    LOGS_STREAMS = 2,
    LOGS_TAIL_BYTES = 1024,
    LOGS_NAP_US = 1000
};
#define LOGS_PROGRESS_FILE                                                                                   \
    "/progress.json" /* in the run's folder, unless the user sets another (progress/tracker.h) */

/* One stream of one rank; index 0 is stdout, 1 is stderr. */
struct log_stream {
    int child; /* the rank's descriptor; -1: it inherits the launcher's */
    int pipe;  /* read end of the pipe when teed or watched, else -1 */
    int file;  /* the file of a teed stream, or -1 */
    bool teed;
    bool hidden;          /* with `teed`: the console gets nothing */
    struct tee_line line; /* with `teed` */
    struct buf tail;      /* the last bytes read from the pipe, at most tail.max */
    int64_t heard_ms;     /* monotonic: when they were read; 0: none in this attempt */
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
    bool temporary; /* run_dir has no logs, and logs_close removes it */
    /* The caller sets these before logs_begin. watches: watch stderr streams that go to the console;
     * watches_out: also stdout streams. heard: called with all bytes read from a teed or watched stream;
     * NULL: none. */
    bool watches, watches_out;
    bool watches_all; /* also read streams that go to files only, or to /dev/null */
    void (*heard)(void *ctx, int local, int stream, const char *bytes, size_t len);
    void *heard_ctx;
    struct log_rank *ranks;
    int filtered[LOGS_STREAMS];     /* file of the attempt's filtered lines; -1: none */
    struct buf sinks[LOGS_STREAMS]; /* bytes to be written to the console's stdout, stderr */
    size_t turn_bytes;              /* read in this turn */
    int64_t small_ms;               /* monotonic: the last turn that read little; 0: none */
    bool stuck
        [LOGS_STREAMS]; /* it accepted nothing for a whole timeout: do not wait for it until it does again */
};

/* Create the run's folder. ERR_INVALID when --log-dir cannot be written. Without --log-dir, a failure to
 * create it, or later the folder of an attempt, is an error only if some output goes to files alone. */
int logs_open(struct logs *l, const struct options *o, const char *run_id, struct err *err) MUST_CHECK;
void logs_close(struct logs *l);

/* Open files and pipes of all streams for attempt `attempt`. `first_rank` is the global rank of local rank 0. */
int logs_begin(struct logs *l, int attempt, int first_rank, struct err *err) MUST_CHECK;

/* Call it when local rank `local` has started: closes the launcher's copies of its descriptors. */
void logs_started(struct logs *l, int local);

/* Fill pfds (at most logs_poll_max entries) with the descriptors to poll; returns how many. */
int logs_poll_max(const struct logs *l);
int logs_poll(const struct logs *l, struct pollfd *pfds);

/* After poll: read pipes that are readable, write to the console where it is writable. True: ranks make many
 * small writes, so sleep LOGS_NAP_US before the next poll, to read several at once. */
bool logs_turn(struct logs *l, const struct pollfd *pfds, int n);

/* Call it when all ranks have exited: reads the rest of the pipes, ends unfinished lines, and writes all to
 * the console. Waits at most timeout_ms for a console that does not accept output. */
void logs_end(struct logs *l, int timeout_ms);

/* Print a message of the launcher to stderr, after the ranks' output read so far. Waits at most timeout_ms for a
 * console that does not accept output; later calls write the rest, and bytes beyond LOGS_SINK_BYTES are
 * lost. */
void logs_say(struct logs *l, const char *text, int timeout_ms);

#endif
