/* snapshot_copy.c - copy a run's state into memory that all checkpoints of the run use. */
#include "trainer/state/snapshot_copy.h"

#include "host/memory_room.h"

#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t moment_bytes(const struct snapshot *s, const float *moment)
{
    return moment && !s->moments_gathered ? s->optim->len * sizeof(float) : 0;
}

size_t snapshot_copy_bytes(const struct snapshot *s)
{
    return aligned(s->model->len * sizeof(float)) + aligned(s->model->buffers_bytes) +
           aligned(moment_bytes(s, s->optim->m)) + aligned(moment_bytes(s, s->optim->v));
}

int snapshot_copy_make(struct snapshot_copy *c, const struct snapshot *s, struct err *err)
{
    const size_t bytes = snapshot_copy_bytes(s);
    const uint64_t room = memory_room();

    *c = (struct snapshot_copy){0};
    if (bytes > room)
        return err_memory(
            err, "no memory for a copy of the training's state, %zu MB: the container's limit leaves %zu MB",
            bytes >> 20, (size_t)(room >> 20));
    /* Touch the pages now, so that a lack of memory shows here and not at the first checkpoint. */
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return err_memory(err, "no memory for a copy of the training's state, %zu MB", bytes >> 20);
    c->memory = memory;
    c->bytes = bytes;
    return 0;
}

/* Copy a part to *at, and advance *at. */
static void *take_part(unsigned char **at, const void *from, size_t bytes)
{
    unsigned char *copy = *at;

    if (bytes)
        memcpy(copy, from, bytes);
    *at += aligned(bytes);
    return copy;
}

static float *take_moment(unsigned char **at, const struct snapshot *s, float *moment)
{
    const size_t bytes = moment_bytes(s, moment);

    return bytes ? take_part(at, moment, bytes) : moment;
}

const struct snapshot *snapshot_copy_take(struct snapshot_copy *c, const struct snapshot *s)
{
    unsigned char *at = c->memory;

    c->of = *s;
    c->of.values = take_part(&at, s->model->values, s->model->len * sizeof(float));
    c->of.buffers = take_part(&at, s->model->buffers, s->model->buffers_bytes);
    c->optim = (struct optim){.spec = s->optim->spec, .len = s->optim->len, .step = s->optim->step};
    c->optim.m = take_moment(&at, s, s->optim->m);
    c->optim.v = take_moment(&at, s, s->optim->v);
    c->cursor = *s->cursor;
    c->of.optim = &c->optim;
    c->of.cursor = &c->cursor;
    return &c->of;
}

void snapshot_copy_release(struct snapshot_copy *c)
{
    if (c->memory)
        (void)munmap(c->memory, c->bytes);
    *c = (struct snapshot_copy){0};
}
