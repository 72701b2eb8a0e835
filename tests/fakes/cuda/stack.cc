/* stack.cc - the step from one stack to another (System V ABI for AMD64: rbx, rbp and r12 to r15 are the callee's to keep). */
#include "stack.h"

#include <stdint.h>

#ifdef __x86_64__

namespace
{

enum { KEPT = 6 };

__attribute__((naked, noinline)) void step(void **, void *)
{
    __asm__("pushq %rbp\n\t"
            "pushq %rbx\n\t"
            "pushq %r12\n\t"
            "pushq %r13\n\t"
            "pushq %r14\n\t"
            "pushq %r15\n\t"
            "movq %rsp, (%rdi)\n\t"
            "movq %rsi, %rsp\n\t"
            "popq %r15\n\t"
            "popq %r14\n\t"
            "popq %r13\n\t"
            "popq %r12\n\t"
            "popq %rbx\n\t"
            "popq %rbp\n\t"
            "ret");
}

} // namespace

void stack_prepare(struct stack_place *place, char *stack, size_t bytes, void (*begin)(void))
{
    /* As if somebody had called `begin`, and it had gone away before its first instruction: its own return address, 8 below
     * a multiple of 16, ends every backtrace. */
    uintptr_t *word = (uintptr_t *)((uintptr_t)(stack + bytes) / 16 * 16);
    *--word = 0;
    *--word = (uintptr_t)begin;
    for (int i = 0; i < KEPT; i++)
        *--word = 0;
    place->top = word;
}

void stack_go(struct stack_place *from, struct stack_place *to)
{
    step(&from->top, to->top);
}

#else

void stack_prepare(struct stack_place *place, char *stack, size_t bytes, void (*begin)(void))
{
    getcontext(&place->context);
    place->context.uc_stack.ss_sp = stack;
    place->context.uc_stack.ss_size = bytes;
    place->context.uc_link = nullptr;
    makecontext(&place->context, begin, 0);
}

void stack_go(struct stack_place *from, struct stack_place *to)
{
    swapcontext(&from->context, &to->context);
}

#endif
