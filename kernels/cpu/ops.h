/* ops.h - the CPU's implementation of each operation, by name. */
#ifndef TK_KERNELS_CPU_OPS_H
#define TK_KERNELS_CPU_OPS_H

#include "kernels/ops.h"

#define KERNEL_CPU_DECLARE(op) op##_op cpu_##op;
KERNEL_OPS(KERNEL_CPU_DECLARE)
KERNEL_HOST_OPS(KERNEL_CPU_DECLARE)
#undef KERNEL_CPU_DECLARE

/* memory.c - device memory that is the process's own. */
void *cpu_alloc(struct kctx *ctx, size_t bytes, struct err *err);
void cpu_release(struct kctx *ctx, void *p);
int cpu_get(struct kctx *ctx, void *host, const void *from, size_t bytes, struct err *err);
void cpu_copy(struct kctx *ctx, void *to, const void *from, size_t bytes);
void cpu_zero(struct kctx *ctx, void *p, size_t bytes);
int cpu_sync(struct kctx *ctx, struct err *err);

#endif
