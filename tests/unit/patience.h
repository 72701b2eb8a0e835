/* patience.h - a deadline that passes in a test, because that is what it tests: short on a quiet machine, and longer until the
 * machine does meanwhile what comes before it.
 *
 *   patience_until(it_ends_as_it_should, 1000);
 */
#ifndef TK_TESTS_UNIT_PATIENCE_H
#define TK_TESTS_UNIT_PATIENCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PATIENCE_GROWS = 4, PATIENCE_MOST_MS = 200000 };

/* The next deadline; fails the test when the one that passed was long enough for any machine. */
static inline int64_t patience_grow(int64_t ms)
{
    if (ms * PATIENCE_GROWS > PATIENCE_MOST_MS)
        fail_msg("not even with %d ms", (int)ms);
    print_message("not within %d ms: once more, with %d\n", (int)ms, (int)ms * PATIENCE_GROWS);
    return ms * PATIENCE_GROWS;
}

/* Tries with longer and longer deadlines until one was long enough. */
static inline void patience_until(bool (*was_long_enough)(int64_t ms), int64_t ms)
{
    while (!was_long_enough(ms))
        ms = patience_grow(ms);
}

#endif
