/* rootcause.h - find the cause of a failure in the termination message of a container. Pure.
 *
 * torchkeeper's launcher writes a report there, of 1 KiB at most; one that is cut, as the kubelet cuts where a pod has more
 * than 12 containers, is none:
 * {"rank":3,"exitCode":137,"signal":9,"host":"j-node-3","message":"...","noProgress":true}
 * PyTorch's torchrun exits with 1 for any failure of its workers; their exit codes are in the last lines of its log, in the
 * report of ChildFailedError, in the format of torch/distributed/elastic/multiprocessing/errors. The root cause that it names
 * is accepted unless that is itself a consequence (terminated by torchrun, or an exception about a lost peer) and the report
 * has another worker that failed by itself.
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
    /* Of the message: what names the worker's error in PyTorch's report; empty: nothing does. */
    struct sv line;
};

/* False when the message names no cause. */
bool rootcause_parse(const char *message, struct rootcause *ret);

/* The message for people: that of the launcher's report, otherwise all of it. */
const char *rootcause_text(const char *message, struct arena *a);

/* The line that names the error: 256 bytes at most, without control characters; "" when there is none. `log` is what
 * rootcause_log gives, where it was read, else "": a message that PyTorch's launcher left mostly holds its own words only. */
const char *rootcause_line(const char *message, const char *log, struct arena *a);

/* What the programs wrote into a container's log: without the failure block at its end, what PyTorch's torchrun wrote, and lines
 * that torch marked as those of a rank other than this one (-1: of all). */
char *rootcause_log(const char *log, int32_t rank, struct arena *a);

#endif
