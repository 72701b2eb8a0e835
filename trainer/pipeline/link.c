/* link.c - send and receive activations and gradients between neighbouring pipeline stages. */
#include "trainer/pipeline/pipeline.h"

#include "collectives/device.h"
#include "collectives/noted.h"
#include "kernels/device.h"

#include <stdlib.h>

enum { ALIGN_BYTES = 64 };

static void *process_memory(size_t bytes, struct err *err)
{
    void *p = aligned_alloc(ALIGN_BYTES, (bytes + ALIGN_BYTES) / ALIGN_BYTES * ALIGN_BYTES);

    if (!p)
        err_memory(err, "no memory for %zu bytes between stages", bytes);
    return p;
}

void *pipeline_take(const struct pipeline *p, size_t n, size_t each, struct err *err)
{
    if (n > SIZE_MAX / each / 2) {
        err_memory(err, "no memory for %zu numbers between stages", n);
        return NULL;
    }
    return device_is_host(p->o.ctx) ? process_memory(n * each, err) : device_alloc(p->o.ctx, n * each, err);
}

void pipeline_give(const struct pipeline *p, void *memory)
{
    if (!memory)
        return;
    if (device_is_host(p->o.ctx))
        free(memory);
    else
        device_free(p->o.ctx, memory);
}

static size_t bytes_of(const struct pipeline *p, size_t n)
{
    return n * element_bytes(p->o.spec->numbers.element);
}

/* The device has it, or is known not to. */
static int arrived(struct pipeline *p, const char *what, struct err *err)
{
    struct device_comm *d = p->o.device_comm;

    return p->recording ? 0 : d->sync(d, device_stream(p->o.ctx), what, p->o.timeout_ms, err);
}

int pipeline_send(struct pipeline *p, const void *from, size_t n, int to, struct err *err)
{
    struct collectives *c = p->o.comm;
    struct device_comm *d = p->o.device_comm;
    const size_t bytes = bytes_of(p, n);

    if (d)
        return d->send(d, from, bytes, to, device_stream(p->o.ctx), err) ||
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
        return d->recv(d, to, bytes, from, device_stream(p->o.ctx), err) ||
                       arrived(p, "waiting for the stage before", err)
                   ? -1
                   : 0;
    if (collectives_recv(c, p->passing ? p->passing : to, bytes, from, p->o.timeout_ms, err))
        return -1;
    if (p->passing)
        device_put(p->o.ctx, to, p->passing, bytes);
    return 0;
}
