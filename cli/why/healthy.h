/* healthy.h - the short answer of `kubectl ptj why` about a job that nothing keeps from going on. Pure. */
#ifndef TK_CLI_WHY_HEALTHY_H
#define TK_CLI_WHY_HEALTHY_H

#include "cli/why/finding.h"

struct healthy {
    const char *state, *detail, *todo; /* detail: "" for none */
};

struct healthy healthy_of(const struct why_facts *f, struct arena *a);

#endif
