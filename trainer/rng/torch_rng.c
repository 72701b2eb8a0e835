/* torch_rng.c - PyTorch's CPU generator: mt19937 and the distributions that PyTorch draws from it. */
#include "trainer/rng/torch_rng.h"

#include "trainer/rng/normal_f32.h"

#include <math.h>

enum { SHIFT_WORDS = 397 };

void torch_rng_seed(struct torch_rng *g, uint64_t seed)
{
    *g = (struct torch_rng){.left = 1};
    g->words[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < TORCH_RNG_WORDS; i++) {
        uint32_t prev = g->words[i - 1];
        g->words[i] = 1812433253U * (prev ^ (prev >> 30)) + i;
    }
}

static uint32_t twist_word(uint32_t u, uint32_t v)
{
    uint32_t mixed = (u & 0x80000000U) | (v & 0x7fffffffU);

    return (mixed >> 1) ^ ((v & 1U) ? 0x9908b0dfU : 0U);
}

static void twist(struct torch_rng *g)
{
    uint32_t *w = g->words;

    for (int i = 0; i < TORCH_RNG_WORDS; i++) {
        int after = i + 1 < TORCH_RNG_WORDS ? i + 1 : 0;
        int far = i + SHIFT_WORDS < TORCH_RNG_WORDS ? i + SHIFT_WORDS : i + SHIFT_WORDS - TORCH_RNG_WORDS;
        w[i] = w[far] ^ twist_word(w[i], w[after]);
    }
    g->left = TORCH_RNG_WORDS;
    g->next = 0;
}

uint32_t torch_rng_u32(struct torch_rng *g)
{
    if (--g->left == 0)
        twist(g);
    uint32_t y = g->words[g->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    return y ^ (y >> 18);
}

uint64_t torch_rng_u64(struct torch_rng *g)
{
    uint64_t high = torch_rng_u32(g);

    return (high << 32) | torch_rng_u32(g);
}

/* 24 bits of one word scaled to [0, 1): exact in float32. */
static float unit_f32(struct torch_rng *g)
{
    return (float)(torch_rng_u32(g) & 0xffffffU) * 0x1p-24F;
}

/* 53 bits of two words scaled to [0, 1): exact in double. */
static double unit_f64(struct torch_rng *g)
{
    return (double)(torch_rng_u64(g) & 0x1fffffffffffffULL) * 0x1p-53;
}

void torch_rng_uniform(struct torch_rng *g, double from, double to, float *out, size_t n)
{
    float low = (float)from;
    float span = (float)to - low;

    /* PyTorch's kernel is compiled with contraction: without fmaf half of the values differ. */
    for (size_t i = 0; i < n; i++)
        out[i] = fmaf(unit_f32(g), span, low);
}

static double normal_f64(struct torch_rng *g)
{
    if (g->normal_held) {
        g->normal_held = false;
        return g->normal;
    }
    double angle = unit_f64(g);
    double length = unit_f64(g);
    double radius = sqrt(-2.0 * log1p(-length));
    double theta = 2.0 * M_PI * angle;
    g->normal = radius * sin(theta);
    g->normal_held = true;
    return radius * cos(theta);
}

void torch_rng_normal(struct torch_rng *g, double mean, double std, float *out, size_t n)
{
    if (n < NORMAL_F32_BLOCK) {
        for (size_t i = 0; i < n; i++)
            out[i] = (float)fma(normal_f64(g), std, mean);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = unit_f32(g);
    normal_f32_blocks(out, n - n % NORMAL_F32_BLOCK, (float)mean, (float)std);
    if (n % NORMAL_F32_BLOCK) {
        /* Draw the last 16 again, which overlap the last full block. */
        float *last = out + n - NORMAL_F32_BLOCK;
        for (int j = 0; j < NORMAL_F32_BLOCK; j++)
            last[j] = unit_f32(g);
        normal_f32_blocks(last, NORMAL_F32_BLOCK, (float)mean, (float)std);
    }
}

/* From this n on PyTorch draws 64-bit words, to reduce the modulo's bias, and shuffles inside out. */
static const size_t randperm_u64_from = UINT32_MAX / 20;

static void randperm_inside_out(struct torch_rng *g, uint32_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)(torch_rng_u64(g) % (i + 1));
        out[i] = out[at];
        out[at] = (uint32_t)i;
    }
}

void torch_rng_randperm(struct torch_rng *g, uint32_t *out, size_t n)
{
    if (n >= randperm_u64_from) {
        randperm_inside_out(g, out, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (uint32_t)i;
    for (size_t i = 0; i + 1 < n; i++) {
        size_t at = i + torch_rng_u32(g) % (n - i);
        uint32_t held = out[i];
        out[i] = out[at];
        out[at] = held;
    }
}
