/* failing.h - test helper: what a process comes to whose n-th allocation fails. Whoever allocates is meant, libraries too.
 *
 * The program's own malloc does that, on glibc's; sanitizers have theirs, and then there is nothing to be seen.
 * Order: each try is a child process, forked by failing_try; in it `run` calls failing_begin where counting starts.
 */
#ifndef TK_TESTS_UNIT_FAILING_H
#define TK_TESTS_UNIT_FAILING_H

#include <stdbool.h>
#include <stdint.h>

/* 0, or what main ends with: the tests of this program are to be skipped. */
int failing_skip(void);

struct failing_end {
    bool struck;    /* there was an n-th allocation */
    bool exhausted; /* it ended as common/memory.h promises; then nothing of the rest is known */
    int64_t value;  /* that `run` came to */
    int64_t
        kept; /* blocks allocated since failing_begin and not freed when it ended, less those freed since */
};

/* In a child: the n-th allocation after failing_begin fails; 0: none does. A child that ends otherwise than by its own
 * return or EXIT_CODE_RETRYABLE, or is not done within ten minutes, fails the test. Its stderr goes nowhere. */
void failing_try(long n, int64_t (*run)(void *ctx), void *ctx, struct failing_end *ret);
void failing_begin(void);

#endif
