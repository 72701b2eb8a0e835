/* rootcause.h - what the termination message of a container that failed says about why. Pure.
 *
 * Our launcher leaves a report there (report.h). PyTorch's torchrun ends with 1 whatever happened to its workers; the code
 * that matters stands in the last lines of its log: the report of ChildFailedError, in the form that
 * torch/distributed/elastic/multiprocessing/errors gives it. What it calls the root cause is believed unless
 * it is itself a consequence (killed by torchrun, or an exception about a lost peer) and the report names a
 * worker that failed of its own.
 */
#ifndef TK_OPERATOR_PLAN_ROOTCAUSE_H
#define TK_OPERATOR_PLAN_ROOTCAUSE_H

#include "common/arena.h"
#include "common/sv.h"

struct rootcause {
    int32_t exit_code; /* 128 + n for signal n */
    int32_t signal;    /* 0: none */
    int32_t rank;      /* -1: not said */
    bool
        peer_lost; /* an exception about a connection to another rank that broke, or torchrun lost its report */
    struct sv line; /* of the message: what the worker said last in PyTorch's report; empty: nothing */
};

/* False when the message names no cause. */
bool rootcause_parse(const char *message, struct rootcause *ret);

/* The message as people should read it: what our launcher reported, else all of it. */
const char *rootcause_text(const char *message, struct arena *a);

/* The one line of it that says most: 256 bytes at most, without control characters; "" when there is none. */
const char *rootcause_line(const char *message, struct arena *a);

#endif
