/* report.h - what our launcher leaves in the termination message of a container that failed. Pure.
 *
 * {"rank":3,"exitCode":137,"signal":9,"host":"j-node-3","message":"..."}: the numbers first and the message last, so that a
 * report that was cut anywhere still says what is left of it. It stands at the beginning; text behind it is not looked at.
 * A user's program can write anything there, so nothing but the shape is relied on.
 *
 * Ownership: a report borrows from the message.
 */
#ifndef TK_OPERATOR_PLAN_REPORT_H
#define TK_OPERATOR_PLAN_REPORT_H

#include "common/arena.h"
#include "common/sv.h"

struct report {
    int32_t rank;      /* of the whole job */
    int32_t exit_code; /* 1..255; 128 + n for signal n */
    int32_t signal;    /* 0: none */
    struct sv message; /* as it was written, with its escapes; empty when it was cut off */
};

/* False when the message holds no report, or less of one than rank and exit code. */
bool report_parse(const char *message, struct report *ret);

/* The message without escapes; control characters but the end of a line become spaces, what is not ASCII and was escaped
 * becomes '?'. */
char *report_message(const struct report *r, struct arena *a);

#endif
