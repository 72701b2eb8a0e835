/* report.h - parse the report that torchkeeper's launcher writes into the termination message of a failed
 * container. Pure.
 *
 * {"rank":3,"exitCode":137,"signal":9,"host":"j-node-3","message":"..."}: numbers first and the message last,
 * so that a report that was cut anywhere can still be used in part. ,"noProgress":true stands behind it when the run hung. It is at the beginning of the text; text
 * behind it is ignored. The user's program can write there, too, so only this form is accepted.
 *
 * Ownership: a report borrows from the message.
 */
#ifndef TK_OPERATOR_PLAN_REPORT_H
#define TK_OPERATOR_PLAN_REPORT_H

#include "common/arena.h"
#include "common/sv.h"

struct report {
    int32_t rank;      /* global rank in the job */
    int32_t exit_code; /* 1..255; 128 + n for signal n */
    int32_t signal;    /* 0: none */
    struct sv message; /* with its escapes; empty if it was cut off */
    bool no_progress;  /* the run hung */
};

/* False when the message has no report, or not even rank and exit code of one. */
bool report_parse(const char *message, struct report *ret);

/* The message with escapes resolved. Control characters but line feeds become spaces; escaped characters that
 * are not ASCII become '?'. */
char *report_message(const struct report *r, struct arena *a);

#endif
