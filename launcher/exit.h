/* exit.h - find the root cause among the ranks' exits, and format the exit status and the failure report. No
 * system calls, but the time zone is read.
 *
 * The root cause is the first rank that failed by itself. A rank that the launcher stopped is never the root
 * cause. A rank with exit code 140 (a peer was lost) is it only when no other rank failed.
 */
#ifndef TK_LAUNCHER_EXIT_H
#define TK_LAUNCHER_EXIT_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* EXIT_MESSAGE_BYTES: the longest message of a rank without traceback in the report, indented, so that its root cause fits
 * into a pod's termination message (2,048 bytes). EXIT_TRACEBACK_BYTES: the longest traceback; of a longer one the
 * end stands. EXIT_OTHERS_MAX: how many other failures the report lists. EXIT_REPORT_BYTES: room for all. */
enum {
    EXIT_MESSAGE_BYTES = 1000,
    EXIT_TRACEBACK_BYTES = 16 * 1024,
    EXIT_OTHERS_MAX = 8,
    EXIT_REPORT_BYTES = 224 * 1024
};

/* How one rank ended. */
struct exit_worker {
    int rank, local_rank;
    pid_t pid;
    bool running;
    bool stopped_by_us; /* the launcher signalled it before it exited */
    int status;         /* as waitpid returns it */
    int order;          /* 1 for the first that exited, 2 for the next, ... */
    int64_t wall_ms; /* Unix time at which the rank failed by its error file, else was seen to have ended */
    const char *error_file; /* NULL: none */
    const char *message;    /* from the error file, or NULL */
    const char *traceback;  /* from there, or NULL; stands in the report instead of the message */
    const char *host;       /* where it ran; NULL: this host */
    bool hung;              /* it is blamed for a hang, which the message describes */
};

/* The exit status as a shell reports it: the code, or 128 + signal. */
int exit_status_code(int status);

/* The launcher's exit status when it fails itself: 138 for errors that a retry may not meet (a timeout; the
 * machine lacks memory, threads, processes or descriptors), 140 for a peer that went away, else 1. */
int exit_error_code(const struct err *err);

/* "SIGKILL"; "signal 99" when it has no name. Returns buf. */
const char *exit_signal_name(int signal, char buf[static 32]);

/* "exit code 3" or "SIGKILL". Returns buf. */
const char *exit_describe(int status, char buf[static 48]);

/* The index of the root cause among n workers, or -1 when none failed. *sure is false for -1, and for an exit
 * code 140, which a later failure may replace. */
int exit_root_cause(const struct exit_worker *w, int n, bool *sure);

/* The exit status as PyTorch's torchrun tells it: the code, or -n for signal n. */
int exit_signed_code(int status);

/* Append the failure block in torchrun's format: other failures, those that the launcher stopped last, then the
 * root cause. `out` has room for EXIT_REPORT_BYTES. */
int exit_report(const struct exit_worker *w, int n, int root, const char *program, const char *host,
                struct buf *out, struct err *err) MUST_CHECK;

#endif
