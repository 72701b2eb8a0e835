/* next.h - describe what the operator does after a failure: which restart, when; or nothing more. Pure.
 *
 * Ownership: the result lives in the arena or is static.
 */
#ifndef TK_CLI_WHY_NEXT_H
#define TK_CLI_WHY_NEXT_H

#include "cli/why/cause.h"

const char *next_of(const struct why_facts *f, const struct finding *g, const struct cause *c,
                    struct arena *a);

/* "3m", "2h5m", "45s", "4d1h". */
const char *next_span(int64_t ms, struct arena *a);

#endif
