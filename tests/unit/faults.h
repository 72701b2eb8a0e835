/* faults.h - how a test program reports the cases of a fault class to scripts/faults.sh.
 *
 * A program that belongs to a class has the ctest label "faults" and prints a line for each class that it has cases of,
 * however its tests end. A case is counted where it is run, never typed in.
 */
#ifndef TK_TESTS_UNIT_FAULTS_H
#define TK_TESTS_UNIT_FAULTS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* class: as in tests/faults.goals. */
static inline void faults_report(const char *class, int cases, int passed)
{
    printf("faults %s %d %d\n", class, cases, passed);
    fflush(stdout);
}

/* Whether the long form was requested (make faults), not the short one that is part of make test. */
static inline bool faults_in_full(void)
{
    const char *form = getenv("FAULTS");

    return form && strcmp(form, "full") == 0;
}

#endif
