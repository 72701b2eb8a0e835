/* stack.h - find the code line of a Python process in the stacks that its faulthandler wrote to stderr on
 * SIGABRT. agent_hang.c calls it. Pure.
 *
 * Errors: none. The text is a rank's output and may contain any bytes; without a stack, known is false. */
#ifndef TK_LAUNCHER_STACK_H
#define TK_LAUNCHER_STACK_H

#include "common/sv.h"

enum { STACK_AT_BYTES = 160 };

struct stack {
    bool known;
    bool waits; /* the process is in a call of torch.distributed, in backward or in synchronize */
    char at
        [STACK_AT_BYTES]; /* the innermost line of the user's own code, "train.py:14 step()"; printable ASCII */
    int64_t place;        /* a hash of `at`, at most INT64_MAX / 2 */
};

/* Parse the stack of the thread that received the signal (the main thread), of the first process in the
 * text. */
struct stack stack_read(struct sv text);

#endif
