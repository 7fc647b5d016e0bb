/* Switching between fibers: the registers that a call preserves, and the stack pointer. */
#include "impl.h"

#if defined __x86_64__

void simt_switch(void **save, void *to);

__asm__(".text\n"
        ".globl simt_switch\n"
        ".type simt_switch, @function\n"
        "simt_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size simt_switch, . - simt_switch\n");

/* The frame that simt_switch pops: six registers, then where to go. The stack is at a multiple of 16 below a return address. */
void fiber_make(struct fiber *f, char *stack, size_t bytes, void (*entry)(void))
{
    void **top = (void **)(void *)(stack + bytes) - 8;
    for (int i = 0; i < 8; i++) top[i] = NULL;
    top[6] = (void *)entry;
    f->sp = top;
}

void fiber_switch(struct fiber *from, struct fiber *to) { simt_switch(&from->sp, to->sp); }

#else

void fiber_make(struct fiber *f, char *stack, size_t bytes, void (*entry)(void))
{
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = bytes;
    f->context.uc_link = NULL;
    makecontext(&f->context, entry, 0);
}

void fiber_switch(struct fiber *from, struct fiber *to) { swapcontext(&from->context, &to->context); }

#endif
