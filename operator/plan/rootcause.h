/* rootcause.h - what a container that ended with 1 says about why. Pure.
 *
 * torchrun itself ends with 1 whatever happened to its workers; the code that matters stands in the last
 * lines of its log, which the termination message holds: the report of ChildFailedError, in the form that
 * torch/distributed/elastic/multiprocessing/errors gives it. What it calls the root cause is believed unless
 * it is itself a consequence (killed by torchrun, or an exception about a lost peer) and the report names a
 * worker that failed of its own.
 */
#ifndef TK_OPERATOR_PLAN_ROOTCAUSE_H
#define TK_OPERATOR_PLAN_ROOTCAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct rootcause {
    int32_t exit_code; /* 128 + n for signal n */
    int32_t signal;    /* 0: none */
    int32_t rank;      /* -1: not said */
    bool
        peer_lost; /* an exception about a connection to another rank that broke, or torchrun lost its report */
};

/* False when the message names no cause. */
bool rootcause_parse(const char *message, struct rootcause *ret);

#endif
