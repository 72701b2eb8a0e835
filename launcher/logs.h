/* logs.h - where the ranks' output goes: the console, files, or both.
 *
 * Order:     a teed stream reaches the console by whole lines, each with its rank's prefix and in one write when it
 *            fits a pipe's atomic size; the file gets the bytes as they came.
 *            A watched stream reaches it byte by byte as it came, what is there of a line before another rank's, up to
 *            LOGS_LINE_BYTES; of both the last KiB is kept.
 * Ownership: struct logs owns its files, pipes and paths.
 * Errors:    a console that does not take what we write stalls the ranks that write or tee to it, not the launcher.
 */
#ifndef TK_LAUNCHER_LOGS_H
#define TK_LAUNCHER_LOGS_H

#include "common/buf.h"
#include "launcher/options.h"

#include <poll.h>

enum { LOGS_LINE_BYTES = 64 * 1024, LOGS_SINK_BYTES = 256 * 1024, LOGS_STREAMS = 2, LOGS_TAIL_BYTES = 1024 };

/* One stream of one rank; index 0 is stdout, 1 is stderr. */
struct log_stream {
    int child; /* what the rank gets; -1: our own */
    int pipe;  /* our end when it is teed or watched, else -1 */
    int file;  /* where teed bytes go, or -1 */
    bool teed; /* else its bytes reach the console as they are */
    struct buf line;
    struct buf tail; /* the last bytes that came through the pipe */
};

struct log_rank {
    struct log_stream streams[LOGS_STREAMS];
    const char *error_file; /* NULL: none */
    const char *prefix;
};

struct logs {
    const struct options *options;
    struct arena arena;
    const char *run_dir; /* NULL when no file can be or need be written */
    int last_attempt;
    bool temporary; /* holds error files only: goes at the end */
    bool watches;   /* set before logs_begin: what ranks write to the console as stderr comes through us */
    struct log_rank *ranks;
    int filtered[LOGS_STREAMS];     /* the attempt's file of filtered lines; -1: none */
    struct buf sinks[LOGS_STREAMS]; /* waiting for stdout, stderr */
    bool stuck[LOGS_STREAMS]; /* took nothing for a whole timeout: gets no other until it takes something */
};

/* Make the run's folder. ERR_INVALID when --log-dir cannot be written; without it, no folder is no failure unless
 * output was to be redirected. */
int logs_open(struct logs *l, const struct options *o, const char *run_id, struct err *err) MUST_CHECK;
void logs_close(struct logs *l);

/* Files and pipes for attempt `attempt`; `first_rank` is the global rank of local rank 0. */
int logs_begin(struct logs *l, int attempt, int first_rank, struct err *err) MUST_CHECK;

/* Local rank `local` has been started: drop its ends. */
void logs_started(struct logs *l, int local);

/* Fill pfds (at most logs_poll_max entries) with what logs wait for; returns how many. */
int logs_poll_max(const struct logs *l);
int logs_poll(const struct logs *l, struct pollfd *pfds);

/* Move bytes after a poll. */
void logs_turn(struct logs *l, const struct pollfd *pfds, int n);

/* All ranks have ended: read what is left in the pipes, end open lines, write it out. Waits at most timeout_ms for a
 * console that does not read. */
void logs_end(struct logs *l, int timeout_ms);

/* The launcher's own words, to stderr after what the ranks' pipes gave. Waits at most timeout_ms for a console that
 * does not read: what is left by then goes out in later turns, what finds no room is lost. */
void logs_say(struct logs *l, const char *text, int timeout_ms);

#endif
