/* stack.h - a program on several stacks, and the step from one to another.
 *
 * ucontext does it as well, but asks the kernel for the mask of signals at every step: three quarters of an emulated
 * training's time. On x86-64 what a call preserves is put on the stack and taken from the other one; the floating point's
 * modes stay as they are, no kernel changes them. Elsewhere it is ucontext.
 */
#ifndef TK_TESTS_FAKES_CUDA_STACK_H
#define TK_TESTS_FAKES_CUDA_STACK_H

#include <stddef.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

/* Where a stack that is not the running one continues. */
struct stack_place {
#ifdef __x86_64__
    void *top;
#else
    ucontext_t context;
#endif
};

/* Whoever goes to `place` first begins `begin`, which must never return, on this stack. The caller owns the memory. */
void stack_prepare(struct stack_place *place, char *stack, size_t bytes, void (*begin)(void));

/* Goes to `to`; returns when somebody goes to `from`. */
void stack_go(struct stack_place *from, struct stack_place *to);

#endif
