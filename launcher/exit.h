/* exit.h - find the root cause among the ranks' exits, and format the exit status and the failure report.
 * agent*.c call it. No system calls, but it reads the time zone.
 *
 * The root cause is the first rank that failed on its own. Other ranks' failures rank lower if another rank
 * may have caused them: lowest are ranks that lost a peer (exit code 140, or an exception that says so), then
 * ranks that exited with 1 or 134 without an exception. A rank that the launcher stopped is never the root
 * cause, unless it had raised an exception before (exit_mark_raised).
 */
#ifndef TK_LAUNCHER_EXIT_H
#define TK_LAUNCHER_EXIT_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* EXIT_MESSAGE_BYTES: the longest message in the report of a rank without traceback, indentation included, so
 * that the root cause fits into a pod's termination message (2,048 bytes). EXIT_TRACEBACK_BYTES: the longest
 * traceback; the report shows the end of a longer one. EXIT_OTHERS_MAX: how many other failures the report
 * lists. EXIT_REPORT_BYTES: the longest report. */
enum {
    EXIT_MESSAGE_BYTES = 1000,
    EXIT_TRACEBACK_BYTES = 16 * 1024,
    EXIT_OTHERS_MAX = 8,
    EXIT_REPORT_BYTES = 224 * 1024
};

/* The exception that a rank left when it ended: none, one that reports a lost connection to a peer, or
 * another one. */
enum exit_words { EXIT_WORDS_NONE, EXIT_WORDS_LOST, EXIT_WORDS_OWN };

/* How one rank ended. */
struct exit_worker {
    int rank, local_rank;
    pid_t pid;
    bool running;
    bool stopped_by_us; /* the launcher signalled it before it exited */
    bool lingers;       /* it has exited after that, but children in its process group have not */
    bool
        raised; /* it had raised an exception (EXIT_WORDS_OWN) when the first rank failed: treat it as failed */
    enum exit_words words;
    int own_code; /* with EXIT_WORDS_OWN: with what it will exit, from the error file; 0: not known, so 1 */
    int status;   /* as waitpid returns it; with `raised`, own_code until it ends on its own */
    int order;    /* 1 for the first that exited, 2 for the next, ...; 0: it has raised */
    int64_t wall_ms; /* Unix time of the failure: from the error file, else when the launcher reaped it */
    const char *error_file; /* NULL: none */
    const char *message;    /* from the error file, or NULL */
    const char *traceback;  /* from the error file, or NULL; the report prints it instead of the message */
    const char *host;       /* the host it ran on; NULL: this host */
    bool hung;              /* it is the suspect of a hang, which the message describes */
};

/* The exit status as a shell reports it: the code, or 128 + signal. */
int exit_status_code(int status);

/* The launcher's exit status when the launcher itself fails: 138 if a retry may succeed (a timeout; lack of
 * memory, threads, processes or descriptors), 140 for a peer that went away, else 1. */
int exit_error_code(const struct err *err);

/* "SIGKILL"; "signal 99" when it has no name. Returns buf. */
const char *exit_signal_name(int signal, char buf[static 32]);

/* "exit code 3" or "SIGKILL". Returns buf. */
const char *exit_describe(int status, char buf[static 48]);

/* The index of the root cause among n workers, or -1 when none failed. *unsure: 0: no later failure replaces
 * it; 1: it aborted without an exception; 2: it lost a peer, or the result is -1. */
int exit_root_cause(const struct exit_worker *w, int n, int *unsure);

/* Call it when the first rank has failed, on this node or (`asked`) on another, and another rank may have
 * caused that. Sets `raised` for the running ranks that have left an exception of their own; returns whether
 * there are any. */
bool exit_mark_raised(struct exit_worker *w, int n, bool asked, int64_t now_wall_ms);

/* Find an exception in the end of a rank's stderr: the lines that Python prints of an uncaught one, or torch
 * with "[rank3]: " before each line. */
enum exit_words exit_words_on_stderr(const char *tail);

/* The exit status as PyTorch's torchrun prints it: the code, or -n for signal n. */
int exit_signed_code(int status);

/* Append the failure block in torchrun's format: the other failures (ranks that the launcher stopped come
 * last), then the root cause. `out` has room for EXIT_REPORT_BYTES. */
void exit_report(const struct exit_worker *w, int n, int root, const char *program, const char *host,
                 struct buf *out);

#endif
