/* memory.c - device memory of the CPU: plain process memory, so that copies to and from it cost nothing or a memcpy. */
#include "kernels/cpu/ops.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN_BYTES = 64 };

void *host_zeroed(size_t bytes, struct err *err)
{
    void *p = bytes <= SIZE_MAX / 2
                  ? aligned_alloc(ALIGN_BYTES, bytes / ALIGN_BYTES * ALIGN_BYTES + ALIGN_BYTES)
                  : NULL;
    if (!p) {
        err_memory(err, "no memory for %zu bytes", bytes);
        return NULL;
    }
    return memset(p, 0, bytes);
}

void *cpu_alloc(struct kctx *ctx, size_t bytes, struct err *err)
{
    (void)ctx;
    return host_zeroed(bytes, err);
}

void cpu_release(struct kctx *ctx, void *p)
{
    (void)ctx;
    free(p);
}

int cpu_get(struct kctx *ctx, void *host, const void *from, size_t bytes, struct err *err)
{
    (void)err;
    cpu_copy(ctx, host, from, bytes);
    return 0;
}

void cpu_copy(struct kctx *ctx, void *to, const void *from, size_t bytes)
{
    (void)ctx;
    if (to != from && bytes)
        memcpy(to, from, bytes);
}

void cpu_zero(struct kctx *ctx, void *p, size_t bytes)
{
    (void)ctx;
    if (bytes)
        memset(p, 0, bytes);
}

int cpu_sync(struct kctx *ctx, struct err *err)
{
    (void)ctx;
    (void)err;
    return 0;
}
