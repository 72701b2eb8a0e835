/* snapshot_copy.c - copy a run's state into memory that is kept from one checkpoint to the next. */
#include "trainer/state/snapshot_copy.h"

#include "host/memory_room.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t moment_bytes(const struct snapshot *s, const float *moment)
{
    return moment && !s->moments_stay ? aligned(s->optim->len * sizeof(float)) : 0;
}

size_t snapshot_copy_bytes(const struct snapshot *s)
{
    int rows;
    const struct state_row *row = model_state(s->model, &rows);
    size_t bytes = moment_bytes(s, s->optim->m) + moment_bytes(s, s->optim->v);

    for (int i = 0; i < rows; i++)
        bytes += row[i].tied ? 0 : aligned(row[i].bytes);
    return bytes;
}

/* Where the copies of the rows lie; a second name of a tensor is one of its copy, too. */
static void place_rows(struct snapshot_copy *c, const struct state_row *row, int rows)
{
    unsigned char *at = c->memory;

    memcpy(c->state, row, (size_t)rows * sizeof(*row));
    for (int i = 0; i < rows; i++) {
        if (row[i].tied) {
            for (int k = 0; k < i; k++)
                if (row[k].data == row[i].data)
                    c->state[i].data = c->state[k].data;
            continue;
        }
        c->state[i].data = at;
        at += aligned(row[i].bytes);
    }
}

int snapshot_copy_make(struct snapshot_copy *c, const struct snapshot *s, struct err *err)
{
    int rows;
    const struct state_row *row = model_state(s->model, &rows);
    const size_t bytes = snapshot_copy_bytes(s);

    const uint64_t room = memory_room();

    *c = (struct snapshot_copy){0};
    if (bytes > room)
        return err_memory(
            err, "no memory for a copy of the training's state, %zu MB: the container's limit leaves %zu MB",
            bytes >> 20, (size_t)(room >> 20));
    *c = (struct snapshot_copy){.state = calloc((size_t)rows, sizeof(*row))};
    /* Used from the start on: what does not fit shows now, and not at the first checkpoint. */
    void *memory = c->state ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)
                            : MAP_FAILED;
    if (memory == MAP_FAILED) {
        snapshot_copy_release(c);
        return err_memory(err, "no memory for a copy of the training's state, %zu MB", bytes >> 20);
    }
    c->memory = memory;
    c->bytes = bytes;
    place_rows(c, row, rows);
    return 0;
}

/* The copy of a moment, at the end of what has been copied so far. */
static float *take_moment(const struct snapshot *s, float *moment, unsigned char **at)
{
    if (!moment_bytes(s, moment))
        return moment;
    float *copy = memcpy(*at, moment, s->optim->len * sizeof(float));
    *at += moment_bytes(s, moment);
    return copy;
}

const struct snapshot *snapshot_copy_take(struct snapshot_copy *c, const struct snapshot *s)
{
    int rows;
    const struct state_row *row = model_state(s->model, &rows);
    unsigned char *at = c->memory;

    for (int i = 0; i < rows; i++) {
        if (row[i].tied)
            continue;
        memcpy(c->state[i].data, row[i].data, row[i].bytes);
        at += aligned(row[i].bytes);
    }
    c->optim = (struct optim){.spec = s->optim->spec, .len = s->optim->len, .step = s->optim->step};
    c->optim.m = take_moment(s, s->optim->m, &at);
    c->optim.v = take_moment(s, s->optim->v, &at);
    c->cursor = *s->cursor;
    c->of = *s;
    c->of.state = c->state;
    c->of.optim = &c->optim;
    c->of.cursor = &c->cursor;
    return &c->of;
}

void snapshot_copy_release(struct snapshot_copy *c)
{
    if (c->memory)
        (void)munmap(c->memory, c->bytes);
    free(c->state);
    *c = (struct snapshot_copy){0};
}
