/* stack.h - read where a Python process is from the stacks that its faulthandler wrote to stderr when it was aborted. Pure.
 *
 * Errors: none. The text is whatever came from the rank, any bytes; a text without such stacks says nothing.
 */
#ifndef TK_LAUNCHER_STACK_H
#define TK_LAUNCHER_STACK_H

#include "common/sv.h"

enum { STACK_AT_BYTES = 160 };

struct stack {
    bool known;
    bool waits; /* it is in a call of torch.distributed, in backward or in synchronize */
    char at
        [STACK_AT_BYTES]; /* the innermost line of the user's own code, "train.py:14 step()"; printable ASCII */
    int64_t place;        /* a hash of it, at most INT64_MAX / 2 */
};

/* The thread that got the signal, of the first process in the text. The kernel gives a signal to the main thread. */
struct stack stack_read(struct sv text);

#endif
