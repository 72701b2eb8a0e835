/* whole.c - drawing the whole model's weights, and putting its parts together. Stages lie one behind the other in the
 * whole model's flat buffers, since their layers do. */
#include "trainer/pipeline/pipeline.h"

#include "collectives/noted.h"

#include <stdlib.h>
#include <string.h>

/* A model of stage s that takes one sample: for its weights. */
static struct model *small_stage(const struct pipeline *p, int s, const struct shape *input,
                                 struct model_spec *spec, struct err *err)
{
    pipeline_stage_spec(p->o.spec, s, p->at.stages, input, spec);
    return model_make(spec, 1, err);
}

int pipeline_init(struct pipeline *p, struct torch_rng *g, struct err *err)
{
    struct shape shape = p->o.spec->input;
    cleanup_free struct model_spec *spec = calloc(1, sizeof(*spec));

    if (!spec)
        return err_memory(err, "no memory for the stages of the model");
    for (int s = 0; s < p->at.stages; s++) {
        if (s == p->at.stage) {
            model_init(p->model, g);
            shape = model_output(p->model);
            continue;
        }
        cleanup_model struct model *other = small_stage(p, s, &shape, spec, err);
        if (!other)
            return -1;
        model_init(other, g);
        shape = model_output(other);
    }
    if (p->at.stages > 1)
        return 0;
    /* Equal by construction; ranks on unlike machines start from the same bits all the same. */
    return collectives_broadcast(p->o.comm, model_values(p->model), model_len(p->model) * sizeof(float), 0,
                                 p->o.timeout_ms, err);
}

/* Bytes of a part on rank r, and where they lie in the whole, told to rank 0 by r itself. */
struct extent {
    uint64_t offset, bytes;
};

/* Where this stage's `mine` bytes begin: the sum of the stages before. Passed on from stage to stage. */
static int find_extent(struct pipeline *p, size_t mine, struct extent *ret, struct err *err)
{
    struct collectives *c = p->o.comm;
    uint64_t offset = 0;

    if (!pipeline_is_first(p) &&
        collectives_recv(c, &offset, sizeof(offset), c->rank - 1, p->o.timeout_ms, err))
        return -1;
    *ret = (struct extent){.offset = offset, .bytes = mine};
    offset += mine;
    return pipeline_is_last(p)
               ? 0
               : collectives_send(c, &offset, sizeof(offset), c->rank + 1, p->o.timeout_ms, err);
}

/* From the stages to rank 0's `whole`, which holds `most` bytes. */
static int gather_bytes(struct pipeline *p, const void *part, size_t bytes, void *whole, size_t most,
                        struct err *err)
{
    struct collectives *c = p->o.comm;
    struct extent at;

    if (find_extent(p, bytes, &at, err))
        return -1;
    if (c->rank)
        return collectives_send(c, &at, sizeof(at), 0, p->o.timeout_ms, err) ||
                       (bytes && collectives_send(c, part, bytes, 0, p->o.timeout_ms, err))
                   ? -1
                   : 0;
    if (bytes > most)
        return err_set(err, ERR_INVALID, "ranks disagree: stage 0 holds %zu bytes of a whole of %zu", bytes,
                       most);
    memcpy(whole, part, bytes);
    for (int s = 1; s < p->at.stages; s++) {
        if (collectives_recv(c, &at, sizeof(at), s, p->o.timeout_ms, err))
            return -1;
        if (at.offset > most || at.bytes > most - at.offset)
            return err_set(err, ERR_INVALID, "ranks disagree: stage %d has bytes %llu+%llu of a whole of %zu",
                           s, (unsigned long long)at.offset, (unsigned long long)at.bytes, most);
        if (at.bytes && collectives_recv(c, (char *)whole + at.offset, at.bytes, s, p->o.timeout_ms, err))
            return -1;
    }
    return 0;
}

int pipeline_gather(struct pipeline *p, const float *part, float *whole, struct err *err)
{
    return gather_bytes(p, part, model_len(p->model) * sizeof(float), whole, p->whole_len * sizeof(float),
                        err);
}

/* Rank 0's part of the way back: each stage says what it wants. */
static int hand_out(struct pipeline *p, const void *whole, size_t most, struct err *err)
{
    struct collectives *c = p->o.comm;
    struct extent at;

    for (int s = 1; s < p->at.stages; s++) {
        if (collectives_recv(c, &at, sizeof(at), s, p->o.timeout_ms, err))
            return -1;
        if (at.offset > most || at.bytes > most - at.offset)
            return err_set(err, ERR_INVALID, "ranks disagree: stage %d asks for bytes %llu+%llu of %zu", s,
                           (unsigned long long)at.offset, (unsigned long long)at.bytes, most);
        if (at.bytes &&
            collectives_send(c, (const char *)whole + at.offset, at.bytes, s, p->o.timeout_ms, err))
            return -1;
    }
    return 0;
}

/* From rank 0's `whole` to the stages. */
static int scatter_bytes(struct pipeline *p, void *part, size_t bytes, const void *whole, size_t most,
                         struct err *err)
{
    struct collectives *c = p->o.comm;
    struct extent at;

    if (find_extent(p, bytes, &at, err))
        return -1;
    if (c->rank == 0) {
        memcpy(part, whole, bytes);
        return hand_out(p, whole, most, err);
    }
    return collectives_send(c, &at, sizeof(at), 0, p->o.timeout_ms, err) ||
                   (bytes && collectives_recv(c, part, bytes, 0, p->o.timeout_ms, err))
               ? -1
               : 0;
}

int pipeline_scatter(struct pipeline *p, float *part, const float *whole, struct err *err)
{
    return scatter_bytes(p, part, model_len(p->model) * sizeof(float), whole, p->whole_len * sizeof(float),
                         err);
}

int pipeline_whole(struct pipeline *p, struct model **ret, struct err *err)
{
    bool root = p->o.comm->rank == 0;

    *ret = NULL;
    if (p->at.stages == 1) {
        *ret = root ? p->model : NULL;
        return 0;
    }
    struct model *w = p->whole;
    if (pipeline_gather(p, model_values(p->model), w ? model_values(w) : NULL, err) ||
        gather_bytes(p, model_buffers(p->model), model_buffers_bytes(p->model), w ? model_buffers(w) : NULL,
                     w ? model_buffers_bytes(w) : 0, err) ||
        collectives_barrier(p->o.comm, p->o.timeout_ms, err))
        return -1;
    *ret = w;
    return 0;
}

int pipeline_spread(struct pipeline *p, struct err *err)
{
    struct model *w = p->whole;

    return pipeline_scatter(p, model_values(p->model), w ? model_values(w) : NULL, err) ||
                   scatter_bytes(p, model_buffers(p->model), model_buffers_bytes(p->model),
                                 w ? model_buffers(w) : NULL, w ? model_buffers_bytes(w) : 0, err)
               ? -1
               : 0;
}
