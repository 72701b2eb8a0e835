/* session_batch.c - choose the batch of each rank, and with --total_batch_tokens the micro-batch: as many
 * sequences as fit into the device's memory.
 */
#include "collectives/noted.h"
#include "common/memory.h"
#include "kernels/device.h"
#include "trainer/run/resident/resident.h"
#include "trainer/run/session.h"

#include <stdlib.h>

/* TOKENS_MAX: more tokens at a time do not make matrix products faster on a GPU. ROOM_PERCENT: a tenth of its
 * free memory remains for NCCL, for code that CUDA loads later, and for the samples' order. */
enum { TOKENS_MAX = 65536, ROOM_PERCENT = 90, HOST_SEQUENCES = 4 };

/* Set *ret to whether training with micro-batches of `rows` sequences fits into `room` bytes. */
static int fits(const struct session *s, int64_t rows, size_t room, bool *ret, struct err *err)
{
    size_t bytes;

    if (resident_needs(&s->effective.model, (int)rows, &bytes, err))
        return -1;
    *ret = bytes <= room;
    return 0;
}

/* The largest divisor of `sequences` that fits into this rank's device at a time; 1 if none fits: the
 * allocation will then fail. */
static int most_at_a_time(const struct session *s, int64_t sequences, int64_t *ret, struct err *err)
{
    const bool host = device_is_host(s->ctx);
    const int64_t limit = host ? HOST_SEQUENCES : TOKENS_MAX / s->effective.model.input.rows;
    const size_t room = host ? 0 : s->ctx->ops->room(s->ctx) / 100 * ROOM_PERCENT / (size_t)s->gpu.sharers;
    bool enough = false;

    *ret = 1;
    for (int64_t rows = limit > sequences ? sequences : limit; rows >= 1 && !enough; rows--) {
        if (sequences % rows || sequences / rows > MICRO_BATCHES_MAX)
            continue;
        *ret = rows;
        enough = host;
        if (!host && fits(s, rows, room, &enough, err))
            return -1;
    }
    return 0;
}

/* Reduce *rows to the least over all ranks. */
static int least_of_ranks(const struct session *s, int64_t *rows, struct err *err)
{
    struct collectives *c = s->comm;
    cleanup_free int64_t *all = memory_must(calloc((size_t)c->world, sizeof(*all)));

    if (collectives_all_gather(c, rows, sizeof(*rows), all, s->timeout_ms, err))
        return -1;
    for (int r = 0; r < c->world; r++)
        *rows = all[r] < *rows ? all[r] : *rows;
    return 0;
}

/* If the tokens are not divisible by ranks and sequences, config_batch returns the error. */
static int choose(struct session *s, int replicas, struct err *err)
{
    const int64_t tokens = s->effective.model.input.sequence ? s->effective.model.input.rows : 1;
    const int64_t sequences = s->effective.total_batch_tokens / (tokens * replicas);

    s->effective.batch_size = 1;
    if (s->effective.model.input.sequence && most_at_a_time(s, sequences, &s->effective.batch_size, err))
        return -1;
    return least_of_ranks(s, &s->effective.batch_size, err);
}

int session_share_batch(struct session *s, struct err *err)
{
    struct pipeline_position at;

    if (pipeline_position_of(&s->effective.model, s->comm->rank, s->comm->world, &at, err) ||
        (!s->effective.batch_size && choose(s, at.replicas, err)))
        return -1;
    return config_batch(&s->effective, at.replicas, err);
}
