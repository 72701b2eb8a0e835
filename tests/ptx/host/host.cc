/* host.cc - the host's half of kernels/cuda as a library for device.py: a context whose launches go to a hook. */
#include "emulate.h"
#include "kernels/cuda/cuda.h"

#include <stdio.h>

extern "C" {

/* Of Python. */
typedef void ptx_hook(const ptx_launch *launch);
static ptx_hook *hook;

/* sms: multiprocessors, by which operations cut their work. */
struct kctx *ptx_open(int bf16, int sms, ptx_hook *launches)
{
    struct err err = {};

    hook = launches;
    struct kctx *ctx = cuda_make(0, PRECISION_F32, bf16 ? ELEMENT_BF16 : ELEMENT_F32, &err);
    if (ctx)
        cuda_of(ctx)->sms = sms;
    else
        fprintf(stderr, "ptx_open: %s\n", err.msg);
    return ctx;
}

void ptx_close(struct kctx *ctx)
{
    ctx->ops->free(ctx);
}

/* The context's own memory: pointers and bytes, three of each. */
void ptx_memory(struct kctx *ctx, void **p, size_t *bytes)
{
    const struct cuda *c = cuda_of(ctx);
    p[0] = c->parts, bytes[0] = CUDA_PARTS_ALL;
    p[1] = c->second_parts, bytes[1] = CUDA_PARTS_ALL;
    p[2] = c->scratch, bytes[2] = c->scratch_bytes;
}

int ptx_reserve(struct kctx *ctx, size_t bytes)
{
    struct err err = {};
    return ctx->ops->reserve(ctx, bytes, &err);
}

/* What was queued is done; 0, or a failure that has been printed. */
int ptx_sync(struct kctx *ctx)
{
    struct err err = {};
    int failed = ctx->ops->sync(ctx, &err);
    if (failed)
        fprintf(stderr, "ptx_sync: %s\n", err.msg);
    return failed;
}
}

void ptx_run(const ptx_launch &launch)
{
    hook(&launch);
}
