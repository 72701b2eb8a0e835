/* device.c - pass calls about memory, queued work and the context to the context's device. */
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

size_t device_room(struct kctx *ctx)
{
    return ctx->ops->room ? ctx->ops->room(ctx) : SIZE_MAX;
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

int device_graph_begin(struct kctx *ctx, struct err *err)
{
    return ctx->ops->graph_begin(ctx, err);
}

struct device_graph *device_graph_end(struct kctx *ctx, struct err *err)
{
    return ctx->ops->graph_end(ctx, err);
}

int device_graph_launch(struct kctx *ctx, struct device_graph *graph, struct err *err)
{
    return ctx->ops->graph_launch(ctx, graph, err);
}

void device_graph_free(struct kctx *ctx, struct device_graph *graph)
{
    if (graph)
        ctx->ops->graph_free(ctx, graph);
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

void device_mark(struct kctx *ctx, int i)
{
    ctx->ops->mark(ctx, i);
}

void *device_mark_event(struct kctx *ctx, int i)
{
    return ctx->ops->event(ctx, i);
}

void *device_stream(struct kctx *ctx)
{
    return ctx->ops->stream(ctx);
}

void device_fork(struct kctx *ctx)
{
    ctx->ops->fork(ctx);
}

void device_join(struct kctx *ctx)
{
    ctx->ops->join(ctx);
}

void *device_side_stream(struct kctx *ctx)
{
    return ctx->ops->side(ctx);
}

int device_wait(struct kctx *ctx, int i, struct err *err)
{
    return ctx->ops->wait(ctx, i, err);
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
