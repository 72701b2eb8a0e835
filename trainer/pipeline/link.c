/* link.c - send and receive activations and gradients between neighbouring pipeline stages. */
#include "trainer/pipeline/pipeline.h"

#include "collectives/device.h"
#include "collectives/noted.h"
#include "kernels/ops.h"

static size_t bytes_of(const struct pipeline *p, size_t n)
{
    return n * element_bytes(p->o.spec->numbers.element);
}

/* Wait until a transfer is done or has failed. */
static int arrived(struct pipeline *p, const char *what, struct err *err)
{
    struct device_comm *d = p->o.device_comm;

    return p->recording ? 0 : d->sync(d, p->o.ctx->ops->stream(p->o.ctx), what, p->o.timeout_ms, err);
}

int pipeline_send(struct pipeline *p, const void *from, size_t n, int to, struct err *err)
{
    struct collectives *c = p->o.comm;
    struct device_comm *d = p->o.device_comm;
    const size_t bytes = bytes_of(p, n);

    if (d)
        return d->send(d, from, bytes, to, p->o.ctx->ops->stream(p->o.ctx), err) ||
                       arrived(p, "sending to the next stage", err)
                   ? -1
                   : 0;
    if (p->passing) {
        if (device_get(p->o.ctx, p->passing, from, bytes, err))
            return -1;
        from = p->passing;
    }
    return collectives_send(c, from, bytes, to, p->o.timeout_ms, err);
}

int pipeline_recv(struct pipeline *p, void *to, size_t n, int from, struct err *err)
{
    struct collectives *c = p->o.comm;
    struct device_comm *d = p->o.device_comm;
    const size_t bytes = bytes_of(p, n);

    if (d)
        return d->recv(d, to, bytes, from, p->o.ctx->ops->stream(p->o.ctx), err) ||
                       arrived(p, "waiting for the stage before", err)
                   ? -1
                   : 0;
    if (collectives_recv(c, p->passing ? p->passing : to, bytes, from, p->o.timeout_ms, err))
        return -1;
    if (p->passing)
        device_put(p->o.ctx, to, p->passing, bytes);
    return 0;
}
