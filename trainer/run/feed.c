/* feed.c - copy samples of a data set into a batch of floats: bytes through a table of 256, floats scaled or unchanged. */
#include "trainer/run/feed.h"

#include "trainer/data/tokens.h"

#include <string.h>

enum {
    AHEAD = 8, /* samples to prefetch: they are scattered in memory, and fetching one takes longer than
                * decoding it */
    AHEAD_BYTES = 4096, /* prefetched bytes per sample; the processor's own prefetcher handles the rest */
    LINE_BYTES = 64,
};

static float element(const struct feed *f, float v, int32_t stat)
{
    float scaled = v / f->scale;
    float centred = scaled - f->mean[stat];

    return centred / f->std[stat];
}

void feed_init(struct feed *f, const struct dataset *set, bool test, const uint32_t *subset,
               const struct data_spec *spec)
{
    *f = (struct feed){.part = test ? set->test : set->train,
                       .subset = subset,
                       .len = layout_input_len(&set->layout),
                       .floats = set->layout.floats,
                       .values = set->layout.values,
                       .labels = set->layout.steps ? set->layout.steps : 1,
                       .vocab = UINT16_MAX + 1,
                       .stats = spec->stats};
    f->scale = spec->scale > 0 ? (float)spec->scale : f->floats ? 1.0f : 255.0f;
    f->as_is = f->floats && f->scale == 1.0f;
    for (int32_t c = 0; c < spec->stats; c++) {
        f->mean[c] = (float)spec->mean[c];
        f->std[c] = (float)spec->std[c];
        f->as_is = f->as_is && f->mean[c] == 0.0f && f->std[c] == 1.0f;
    }
    for (int i = 0; i < 256; i++)
        f->byte[i] = element(f, (float)i, 0);
}

void feed_byte_table(const struct feed *f, float *table)
{
    for (int32_t s = 0; s < f->stats; s++)
        for (int i = 0; i < 256; i++)
            table[s * 256 + i] = element(f, (float)i, s);
}

static void look_up(float *restrict out, const float *restrict table, const uint8_t *restrict in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = table[in[i]];
}

static void decode_bytes(const struct feed *f, const uint8_t *in, float *out)
{
    size_t stats = (size_t)f->stats;

    if (stats == 1)
        look_up(out, f->byte, in, f->len);
    else
        for (size_t i = 0; i < f->len; i++)
            out[i] = element(f, (float)in[i], (int32_t)(i % stats));
}

static void decode_floats(const struct feed *f, const float *in, float *out)
{
    size_t stats = (size_t)f->stats;

    if (f->as_is)
        memcpy(out, in, f->len * sizeof(*out));
    else
        for (size_t i = 0; i < f->len; i++)
            out[i] = element(f, in[i], (int32_t)(i % stats));
}

/* Prefetch a sample's input. Inlined, because gcc 12 removes calls of a function that only prefetches. */
__attribute__((always_inline)) static inline void expect(const struct feed *f, uint32_t position)
{
    if (!f->part.x) /* tokens are in mapped files */
        return;
    size_t item = f->subset ? f->subset[position] : position;
    size_t bytes = f->len * (f->floats ? sizeof(float) : 1);
    const char *at = (const char *)f->part.x + item * bytes;

    for (size_t i = 0; i < bytes && i < AHEAD_BYTES; i += LINE_BYTES)
        __builtin_prefetch(at + i);
}

int feed_batch(const struct feed *f, const uint32_t *positions, int64_t n, float *x,
               const struct feed_targets *to, struct err *err)
{
    size_t values = (size_t)f->values;
    size_t labels = (size_t)f->labels;

    for (int64_t i = 0; i < n && i < AHEAD; i++)
        expect(f, positions[i]);
    for (int64_t i = 0; i < n; i++) {
        size_t item = f->subset ? f->subset[positions[i]] : positions[i];
        float *out = x + (size_t)i * f->len;
        if (f->part.tokens) {
            if (tokens_window(f->part.tokens, (int64_t)item, f->vocab, out, to->labels + (size_t)i * labels,
                              err))
                return -1;
            continue;
        }
        if (i + AHEAD < n)
            expect(f, positions[i + AHEAD]);
        if (f->floats)
            decode_floats(f, (const float *)f->part.x + item * f->len, out);
        else
            decode_bytes(f, (const uint8_t *)f->part.x + item * f->len, out);
        if (values)
            memcpy(to->values + (size_t)i * values, f->part.values + item * values, values * sizeof(float));
        else
            to->labels[i] = f->part.labels[item];
    }
    return 0;
}
