/* calls.h - the same checks of every collective, for each transport and layout. */
#ifndef TK_TESTS_CALLS_H
#define TK_TESTS_CALLS_H

#include "ranks.h"

/* A test program's main over the given layouts. */
int calls_main(const struct ranks_layout *layouts, size_t n);

#endif
