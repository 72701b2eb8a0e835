/* torch_rng_state.c - the generator's state as torch.get_rng_state() lays it out.
 *
 * Little-endian: u64 seed, i32 left, i32 seeded, u64 next, u64 words[624], f64 x, f64 y, f64 rho, i32 held and
 * 4 bytes of padding, f32 sample, u8 held and 3 bytes of padding. The held normal is y alone, rho is unused.
 */
#include "common/endian.h"
#include "trainer/rng/torch_rng.h"

#include <inttypes.h>
#include <string.h>

enum {
    AT_SEED = 0,
    AT_LEFT = 8,
    AT_SEEDED = 12,
    AT_NEXT = 16,
    AT_WORDS = 24,
    AT_NORMAL_X = AT_WORDS + 8 * TORCH_RNG_WORDS,
    AT_NORMAL_Y = AT_NORMAL_X + 8,
    AT_NORMAL_HELD = AT_NORMAL_X + 24,
};

void torch_rng_save(const struct torch_rng *g, uint8_t out[static TORCH_RNG_STATE_BYTES])
{
    uint64_t normal;

    memset(out, 0, TORCH_RNG_STATE_BYTES);
    le_put(out + AT_SEED, g->seed, 8);
    le_put(out + AT_LEFT, (uint32_t)g->left, 4);
    le_put(out + AT_SEEDED, 1, 4);
    le_put(out + AT_NEXT, (uint64_t)g->next, 8);
    for (int i = 0; i < TORCH_RNG_WORDS; i++)
        le_put(out + AT_WORDS + 8 * i, g->words[i], 8);
    memcpy(&normal, &g->normal, sizeof(normal));
    if (g->normal_held) {
        le_put(out + AT_NORMAL_Y, normal, 8);
        le_put(out + AT_NORMAL_HELD, 1, 4);
    }
}

int torch_rng_load(struct torch_rng *g, const uint8_t *bytes, size_t len, struct err *err)
{
    struct torch_rng read = {0};

    if (len != TORCH_RNG_STATE_BYTES)
        return err_set(err, ERR_INVALID, "generator state: %zu bytes, expected %d", len,
                       TORCH_RNG_STATE_BYTES);
    uint32_t left = le_get32(bytes + AT_LEFT);
    uint64_t next = le_get(bytes + AT_NEXT, 8);
    /* Both count the words of one twist; a fresh seed has made none yet. */
    bool fresh = left == 1 && next == 0;
    bool used = next >= 1 && next <= TORCH_RNG_WORDS && left + next == TORCH_RNG_WORDS + 1;
    if (!fresh && !used)
        return err_set(err, ERR_INVALID,
                       "generator state: left %" PRIu32 ", next %" PRIu64 ", expected a sum of %d", left,
                       next, TORCH_RNG_WORDS + 1);
    read.seed = le_get(bytes + AT_SEED, 8);
    read.left = (int32_t)left;
    read.next = (int32_t)next;
    for (int i = 0; i < TORCH_RNG_WORDS; i++) {
        uint64_t word = le_get(bytes + AT_WORDS + 8 * i, 8);
        if (word > UINT32_MAX)
            return err_set(err, ERR_INVALID, "generator state: word %d: %" PRIu64 ", expected 32 bits", i,
                           word);
        read.words[i] = (uint32_t)word;
    }
    uint32_t held = le_get32(bytes + AT_NORMAL_HELD);
    if (held > 1)
        return err_set(err, ERR_INVALID, "generator state: held normal: %" PRIu32 ", expected 0 or 1", held);
    if (held) {
        uint64_t normal = le_get(bytes + AT_NORMAL_Y, 8);
        memcpy(&read.normal, &normal, sizeof(read.normal));
        read.normal_held = true;
    }
    *g = read;
    return 0;
}
