/* rootcause.h - find the cause of a failure in the termination message of a container. Pure.
 *
 * Torchkeeper's launcher writes a report there, 1 KiB at most. A report that is cut (the kubelet cuts
 * messages in pods with more than 12 containers) is ignored:
 *     {"rank":3,"exitCode":137,"signal":9,"host":"j-node-3","message":"...","noProgress":true}
 * PyTorch's torchrun exits with 1 for any failure of its workers. Their exit codes are in the last lines of its log, in the
 * report of ChildFailedError, in the format of torch/distributed/elastic/multiprocessing/errors. Its root
 * cause is accepted unless that is itself a consequence (terminated by torchrun, or an exception about a lost
 * peer) and the report has another worker that failed by itself.
 */
#ifndef TK_OPERATOR_PLAN_ROOTCAUSE_H
#define TK_OPERATOR_PLAN_ROOTCAUSE_H

#include "common/arena.h"
#include "common/sv.h"

struct rootcause {
    int32_t exit_code; /* 128 + n for signal n */
    int32_t signal;    /* 0: none */
    int32_t rank;      /* -1: not known */
    /* An exception about a broken connection to another rank, or torchrun failed to read a worker's error
     * file. */
    bool peer_lost;
    bool no_progress; /* by our launcher's report: the run hung */
    /* The line of the message with the worker's error, from PyTorch's report; empty: none. */
    struct sv line;
};

/* False: the message has no cause. */
bool rootcause_parse(const char *message, struct rootcause *ret);

/* The message to show: that of the launcher's report, otherwise all of it. */
const char *rootcause_text(const char *message, struct arena *a);

enum { ROOTCAUSE_LINE_BYTES = 256 };

/* The line with the error: ROOTCAUSE_LINE_BYTES at most, without control characters; "": none. `log` is the result of
 * rootcause_log if the log was read, else "": the messages of PyTorch's launcher mostly have only its own
 * text. */
const char *rootcause_line(const char *message, const char *log, struct arena *a);

/* "exit code 137 (signal 9)"; signal 0: none. */
const char *rootcause_end(int32_t exit_code, int32_t signal, struct arena *a);

/* As rootcause_text, but PyTorch's report becomes one line of ROOTCAUSE_LINE_BYTES at most: "rank 1: Signal 9
 * (SIGKILL) received by PID 42", "rank 2: exit code 7: the last line above the report". */
const char *rootcause_brief(const char *message, struct arena *a);

/* The message, but a report without an exception becomes that line, below what the programs wrote. */
const char *rootcause_excerpt(const char *message, struct arena *a);

/* Whether the line is the message of a hang that names this rank. */
bool rootcause_names(const char *line, int64_t rank);

/* The programs' part of a container's log: without the failure report at its end, without lines of PyTorch's
 * torchrun, and without lines that torch marked with a rank other than this one (-1: keep all ranks). */
char *rootcause_log(const char *log, int32_t rank, struct arena *a);

#endif
