/* cut.c - compute a rank's layers and rows of a batch in a pipeline. */
#include "trainer/pipeline/cut.h"

#include <string.h>

int pipeline_position_of(const struct model_spec *spec, int rank, int world, struct pipeline_position *ret,
                         struct err *err)
{
    int stages = spec->stages && world > 1 ? spec->stages : 1;

    if (stages > 1 && world != stages)
        return err_set(err, ERR_INVALID, "model.stages: %d stages for %d ranks, expected 1 or %d ranks",
                       stages, world, stages);
    *ret = stages > 1 ? (struct pipeline_position){.stages = stages, .stage = rank, .replicas = 1}
                      : (struct pipeline_position){.stages = 1, .replicas = world, .replica = rank};
    return 0;
}

void pipeline_stage_spec(const struct model_spec *whole, int stage, int stages, const struct shape *input,
                         struct model_spec *ret)
{
    int first = stages > 1 ? whole->stage_first[stage] : 0;
    int end = stage + 1 < stages ? whole->stage_first[stage + 1] : whole->layers;

    *ret = (struct model_spec){.gpt2 = whole->gpt2, /* which has one stage */
                               .input = *input,
                               .layers = end - first,
                               .first = whole->first + first,
                               .inner = stage + 1 < stages,
                               .numbers = whole->numbers};
    memcpy(ret->layer, whole->layer + first, (size_t)ret->layers * sizeof(*ret->layer));
}

int micro_batches(int rows, int asked)
{
    return rows < asked ? rows : asked;
}

struct micro_batch micro_batch_at(int rows, int asked, int index)
{
    int n = micro_batches(rows, asked);
    int each = rows / n;
    int more = rows % n; /* the first `more` have one more sample */

    return (struct micro_batch){
        .index = index, .first = index * each + (index < more ? index : more), .rows = each + (index < more)};
}
