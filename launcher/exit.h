/* exit.h - from how the ranks ended to one exit status and one report. Pure.
 *
 * The root cause is the first rank that failed by itself: one that we stopped has only obeyed, and one that says
 * "a peer was lost" (140) has only noticed. It is the root cause only when nobody else is.
 */
#ifndef TK_LAUNCHER_EXIT_H
#define TK_LAUNCHER_EXIT_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The longest message of a rank that the report repeats, so that its root cause fits into a pod's termination
 * message (2,048 bytes). */
enum { EXIT_MESSAGE_BYTES = 1000, EXIT_OTHERS_MAX = 8 };

/* How one rank ended. */
struct exit_worker {
    int rank, local_rank;
    pid_t pid;
    bool running;
    bool stopped_by_us;     /* ended after we had told it to */
    int status;             /* as waitpid gives it */
    int order;              /* 1 for the first that ended, ... */
    int64_t wall_ms;        /* when it was seen */
    const char *error_file; /* NULL: none */
    const char *message;    /* from the error file, or NULL */
    const char *host;       /* where it ran; NULL: here */
};

/* The status a shell would see: the code, or 128 + signal. */
int exit_status_code(int status);

/* What the launcher ends with when it cannot go on: 138 for what another try may not meet (a time that passed; memory, threads,
 * processes or descriptors that the machine did not have), 140 for a peer that went away, else 1. */
int exit_error_code(const struct err *err);

/* "SIGKILL"; "signal 99" when it has no name. */
const char *exit_signal_name(int signal, char buf[static 32]);

/* "exit code 3" or "SIGKILL". */
const char *exit_describe(int status, char buf[static 48]);

/* The first rank to blame, or -1 when none failed. `sure` is false while it is a 140 that a better one may still
 * replace. */
int exit_root_cause(const struct exit_worker *w, int n, bool *sure);

/* The block that torchrun prints, root cause last. */
int exit_report(const struct exit_worker *w, int n, int root, const char *program, const char *host,
                struct buf *out, struct err *err) MUST_CHECK;

#endif
