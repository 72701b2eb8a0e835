/* run.h - what the operations' sources take from a context: inner loops, scratch memory, threads. */
#ifndef TK_KERNELS_CPU_RUN_H
#define TK_KERNELS_CPU_RUN_H

#include "kernels/cpu/isa/isa.h"
#include "kernels/kctx.h"

/* `n` rounded up to whole panels of `panel` columns. */
static inline int panel_round(int n, int panel)
{
    return (n + panel - 1) / panel * panel;
}

const struct isa_ops *kctx_ops(const struct kctx *ctx);

/* Units begin..end-1 of a job, to be done in order. */
typedef void run_fn(void *arg, int begin, int end);

/* Do units 0..n-1, a run of neighbours per thread; returns when all are done. A unit must compute whole output
 * elements, so that who does it cannot matter. */
void kctx_run(struct kctx *ctx, int n, run_fn *fn, void *arg);

/* Consecutive pieces of the scratch memory, 64-byte aligned. A size is found by the same calls with `counting`
 * (they yield NULL), so a size and its use cannot disagree. */
struct scratch {
    char *base;
    size_t used_bytes;
    size_t cap_bytes;
    bool counting;
};

struct scratch scratch_open(struct kctx *ctx);
void *scratch_take(struct scratch *s, size_t n, size_t size);
#define scratch_floats(s, n) ((float *)scratch_take((s), (n), sizeof(float)))
#define scratch_offsets(s, n) ((int32_t *)scratch_take((s), (n), sizeof(int32_t)))

/* ERR_INVALID "<op>: <field> is <v>, expected <min>..<max>". */
int check_range(const char *op, const char *field, int64_t v, int64_t min, int64_t max,
                struct err *err) MUST_CHECK;

/* ERR_INVALID when the product of up to four sizes (each >= 1) exceeds 2^31 - 1. */
int check_elements(const char *op, const char *tensor, const int dims[static 4], struct err *err) MUST_CHECK;

#endif
