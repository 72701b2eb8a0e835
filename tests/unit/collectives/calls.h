/* calls.h - the same checks of every collective, for each transport and layout. */
#ifndef TK_TESTS_UNIT_COLLECTIVES_CALLS_H
#define TK_TESTS_UNIT_COLLECTIVES_CALLS_H

#include "ranks.h"

/* A test program's main over the given layouts. */
/* In a rank that is there already: every call, then two whose arguments do not agree, which ends the table. */
int calls_body(struct collectives *c);

int calls_main(const struct ranks_layout *layouts, size_t n);

#endif
