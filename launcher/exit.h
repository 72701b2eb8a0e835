/* exit.h - find the root cause among the ranks' exits, and format the exit status and the failure report. No
 * system calls, but the time zone is read.
 *
 * The root cause is the first rank that failed by itself. One whose end may follow from another rank's yields to one whose end
 * does not: first those that lost a peer (140, or their words say so), then those that ended with 1 or 134 and left no words.
 * A rank that the launcher stopped is never the root cause, unless it had raised (exit_accuse).
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

/* What a rank says of its end: nothing, that a connection to a peer broke, or another exception. */
enum exit_words { EXIT_WORDS_NONE, EXIT_WORDS_LOST, EXIT_WORDS_OWN };

/* How one rank ended. */
struct exit_worker {
    int rank, local_rank;
    pid_t pid;
    bool running;
    bool stopped_by_us; /* the launcher signalled it before it exited */
    bool raised; /* it had left an exception of its own when the first rank failed: it counts as failed */
    enum exit_words words;
    int status;      /* as waitpid returns it; exit code 1 of one that has raised, until it ends by itself */
    int order;       /* 1 for the first that exited, 2 for the next, ...; 0: it has raised */
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

/* The index of the root cause among n workers, or -1 when none failed. *unsure: 0: no later failure replaces it; 1: it
 * aborted and left no words; 2: it lost a peer, or is -1. */
int exit_root_cause(const struct exit_worker *w, int n, int *unsure);

/* The first rank has failed, of this node or, if `asked`, of another, and its end may follow from another rank's: set
 * `raised` for the running ranks that have left an exception of their own. Returns whether there are any. */
bool exit_accuse(struct exit_worker *w, int n, bool asked, int64_t now_wall_ms);

/* What the end of a rank's stderr says: an exception is what Python, or torch with "[rank3]: " before each line, prints of
 * one that ends it. */
enum exit_words exit_words_on_stderr(const char *tail);

/* The exit status as PyTorch's torchrun tells it: the code, or -n for signal n. */
int exit_signed_code(int status);

/* Append the failure block in torchrun's format: other failures, those that the launcher stopped last, then the
 * root cause. `out` has room for EXIT_REPORT_BYTES. */
void exit_report(const struct exit_worker *w, int n, int root, const char *program, const char *host,
                 struct buf *out);

#endif
