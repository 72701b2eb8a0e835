/* graph.c - the recorded CUDA graphs of a step, one for each size of batch. */
#include "host/rank_state.h"
#include "trainer/run/resident/resident_state.h"

void resident_forget(struct resident *r, struct recorded *g)
{
    for (int i = 0; i < 2; i++)
        if (g->half[i])
            r->ctx->ops->graph_free(r->ctx, g->half[i]);
    *g = (struct recorded){0};
}

/* Work that is queued for the first time may wait for the device (modules are loaded), so first wait for
 * earlier steps under the deadline. */
struct recorded *resident_graph(struct resident *r, int rows, int total, bool last, struct err *err)
{
    struct recorded *least = &r->graph[0];

    for (int i = 0; i < RESIDENT_GRAPHS; i++) {
        if (r->graph[i].rows == rows && r->graph[i].total == total && r->graph[i].last == last)
            return &r->graph[i];
        if (r->graph[i].used < least->used)
            least = &r->graph[i];
    }
    if (resident_settle(r, err))
        return NULL;
    resident_forget(r, least);
    least->rows = rows;
    least->total = total;
    least->last = last;
    return least;
}

int resident_run_half(struct resident *r, struct recorded *g, int half, struct err *err)
{
    if (g->used == 0 || (half == 0 && !resident_stages_recordable(r))) {
        r->fresh = g->used == 0;
        int rc = resident_queue_half(r, half, g, err);
        r->fresh = false;
        return rc;
    }
    if (!g->half[half]) {
        struct err ignored;
        if (r->ctx->ops->graph_begin(r->ctx, err))
            return -1;
        r->p.pipeline->recording = true;
        int failed = resident_queue_half(r, half, g, err);
        r->p.pipeline->recording = false;
        g->half[half] = r->ctx->ops->graph_end(r->ctx, failed ? &ignored : err);
        if (failed || !g->half[half])
            return -1;
    }
    if (r->ctx->ops->graph_launch(r->ctx, g->half[half], err))
        return -1;
    if (r->p.pipeline->o.device_comm) { /* NCCL holds its calls: the same on all ranks */
        rank_state_begin(r->p.pipeline->o.comm->slot, RANK_CALL_ALL_REDUCE);
        rank_state_end(r->p.pipeline->o.comm->slot);
    }
    return 0;
}
