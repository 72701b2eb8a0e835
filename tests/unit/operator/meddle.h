/* meddle.h - tables of actions of others on the job "j" of two pods, or on its pods, once it runs, with the result ten minutes
 * later: its status, all pods that ever existed, and what the operator deleted. The rules of every run
 * (tests/fakes/rules.h) hold as well, and it requests less than a request a second.
 */
#ifndef TK_TESTS_OPERATOR_MEDDLE_H
#define TK_TESTS_OPERATOR_MEDDLE_H

#include "lab.h"

#define MEDDLE_DELETE "DELETE" /* as a user's */
#define MEDDLE_REMOVE "REMOVE" /* at once, with force */

enum { MEDDLE_EDITS_MAX = 3 };

struct meddle_row {
    const char *name;
    struct {
        const char *path, *what; /* JSON to merge or to create from, or one of the words above */
    } edits[MEDDLE_EDITS_MAX];
    const char *want;                      /* reason and summary */
    const char *pods;                      /* that there were ever, of any owner (lab_pod_history) */
    int deletes;                           /* requests, by the operator */
    unsigned leave_out;                    /* of the rules */
    int (*script)(int attempt, int index); /* NULL: that of all rows */
};

/* A cmocka main of one test for each row, which are the cases of a fault class. */
int meddle_main(const char *class, const struct meddle_row *rows, size_t n,
                int (*script)(int attempt, int index));

#endif
