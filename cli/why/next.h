/* next.h - describe what the operator does next about a finding: which restart and when, that it waits or tries again, or
 * nothing. Pure.
 *
 * Ownership: the result lives in the arena or is static.
 */
#ifndef TK_CLI_WHY_NEXT_H
#define TK_CLI_WHY_NEXT_H

#include "cli/why/cause.h"

/* The end of a sentence about the operator; never NULL. answer.c fills placeholders in it, such as {pod}. */
const char *next_of(const struct why_facts *f, const struct finding *g, const struct cause *c,
                    struct arena *a);

/* A duration, rounded down, of at most two units: "3m", "2h5m", "45s", "4d1h"; below a second "0s". */
const char *next_span(int64_t ms, struct arena *a);

#endif
