#include "check.h"
#include "kernels/cpu/run.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BEFORE = 0xA5, NAN_BYTE = 0xff };

void *guards_bytes(struct guards *g, size_t bytes)
{
    assert_true(g->n < GUARDS_MAX);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = (bytes + page) / page * page; /* at least one byte before the buffer */
    unsigned char *map = mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + body, page, PROT_NONE), 0);
    unsigned char *begin = map + body - bytes;
    memset(map, BEFORE, (size_t)(begin - map));
    memset(begin, NAN_BYTE, bytes);
    g->v[g->n++] = (struct guard){.map = map, .begin = begin, .map_bytes = body + page, .bytes = bytes};
    return begin;
}

float *guards_floats(struct guards *g, size_t n)
{
    return guards_bytes(g, n * sizeof(float));
}

float *guards_random(struct guards *g, size_t n)
{
    float *p = guards_floats(g, n);
    for (size_t i = 0; i < n; i++) {
        g->seed = g->seed * 1664525U + 1013904223U;
        p[i] = (float)(g->seed >> 8) / 8388608.0F - 1;
    }
    return p;
}

void guards_release(struct guards *g)
{
    for (int i = 0; i < g->n; i++) {
        for (const unsigned char *p = g->v[i].map; p < g->v[i].begin; p++)
            assert_int_equal(*p, BEFORE);
        munmap(g->v[i].map, g->v[i].map_bytes);
    }
    g->n = 0;
}

struct kctx *make_ctx(enum kctx_isa isa, int threads, size_t scratch_bytes)
{
    struct err err = {0};
    struct kctx_options options = {.isa = isa, .threads = threads, .workspace_bytes = scratch_bytes};
    struct kctx *ctx = kctx_make(&options, &err);
    if (!ctx)
        fail_msg("%s", err.msg);
    poison_scratch(ctx);
    return ctx;
}

void poison_scratch(struct kctx *ctx)
{
    struct scratch s = scratch_open(ctx);
    if (s.base)
        memset(s.base, NAN_BYTE, s.cap_bytes);
}

enum kctx_isa isa_next(enum kctx_isa isa)
{
    for (int next = (int)isa + 1; next <= KCTX_ISA_AVX512; next++) {
        if (kctx_isa_supported((enum kctx_isa)next))
            return (enum kctx_isa)next;
    }
    return KCTX_ISA_AUTO;
}

enum kctx_isa isa_first(void)
{
    return KCTX_ISA_PLAIN;
}

void assert_close(const float *got, const double *want, size_t n)
{
    double wrong = 0;
    double all = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)got[i] - want[i];
        wrong += d * d;
        all += want[i] * want[i];
    }
    if (!(wrong <= 1e-11 * all))
        fail_msg("NMSE %g over %zu elements, expected at most 1e-11", wrong / all, n);
}

void assert_same_bits(const void *a, const void *b, size_t bytes)
{
    assert_memory_equal(a, b, bytes);
}

double *doubles(size_t n)
{
    double *p = calloc(n, sizeof *p);
    assert_non_null(p);
    return p;
}
