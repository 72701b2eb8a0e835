/* device.c - pass calls about memory and the context to the context's device. */
#include "kernels/ops.h"

bool device_is_host(const struct kctx *ctx)
{
    return ctx->ops->host;
}

enum element device_element(const struct kctx *ctx)
{
    return ctx->element;
}

const char *device_name(const struct kctx *ctx)
{
    return ctx->ops->name(ctx);
}

void *device_alloc(struct kctx *ctx, size_t bytes, struct err *err)
{
    return ctx->ops->alloc(ctx, bytes, err);
}

void device_free(struct kctx *ctx, void *p)
{
    if (p)
        ctx->ops->release(ctx, p);
}

void device_put(struct kctx *ctx, void *to, const void *host, size_t bytes)
{
    ctx->ops->put(ctx, to, host, bytes);
}

int device_get(struct kctx *ctx, void *host, const void *from, size_t bytes, struct err *err)
{
    return ctx->ops->get(ctx, host, from, bytes, err);
}

void device_copy(struct kctx *ctx, void *to, const void *from, size_t bytes)
{
    ctx->ops->copy(ctx, to, from, bytes);
}

void device_zero(struct kctx *ctx, void *p, size_t bytes)
{
    ctx->ops->zero(ctx, p, bytes);
}

int device_sync(struct kctx *ctx, struct err *err)
{
    return ctx->ops->sync(ctx, err);
}

void *device_shared(struct kctx *ctx, size_t bytes, struct err *err)
{
    return ctx->ops->shared(ctx, bytes, err);
}

void device_shared_free(struct kctx *ctx, void *p)
{
    if (p)
        ctx->ops->shared_free(ctx, p);
}

void kctx_free(struct kctx *ctx)
{
    if (ctx)
        ctx->ops->free(ctx);
}

int kctx_reserve(struct kctx *ctx, size_t bytes, struct err *err)
{
    return ctx->ops->reserve(ctx, bytes, err);
}
