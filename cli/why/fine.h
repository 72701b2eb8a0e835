/* fine.h - the short answer of `kubectl ptj why` about a job that nothing keeps from going on. Pure. */
#ifndef TK_CLI_WHY_FINE_H
#define TK_CLI_WHY_FINE_H

#include "cli/why/finding.h"

struct fine {
    const char *state, *detail, *todo; /* detail: "" for none */
};

struct fine fine_of(const struct why_facts *f, struct arena *a);

#endif
