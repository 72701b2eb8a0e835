/* rootcause.h - what torchrun says about the worker that failed first. Pure.
 *
 * torchrun itself ends with 1 whatever happened to its workers; the code that matters stands in the last
 * lines of its log, which the termination message holds.
 */
#ifndef TK_OPERATOR_PLAN_ROOTCAUSE_H
#define TK_OPERATOR_PLAN_ROOTCAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct rootcause {
    int32_t exit_code; /* 128 + n for signal n */
    int32_t signal;    /* 0: none */
    int32_t rank;      /* -1: not said */
};

/* False when the message names no root cause. */
bool rootcause_parse(const char *message, struct rootcause *ret);

#endif
