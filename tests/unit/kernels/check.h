/* check.h - buffers that notice the slightest overrun, random values, and comparison with f64 references.
 *
 * A guarded buffer ends where an inaccessible page begins, so reading or writing behind it crashes; what lies
 * before it is checked by guards_release. Buffers begin at any multiple of 4 bytes.
 */
#ifndef TK_TESTS_KERNELS_CHECK_H
#define TK_TESTS_KERNELS_CHECK_H

#include "kernels/kctx.h"
#include "test.h"

#include <stdint.h>

enum { GUARDS_MAX = 48 };

struct guards {
    struct guard {
        unsigned char *map, *begin;
        size_t map_bytes, bytes;
    } v[GUARDS_MAX];
    int n;
    uint32_t seed;
};

/* Filled with NaN (0xff), so that an element left unwritten shows. */
void *guards_bytes(struct guards *g, size_t bytes);
float *guards_floats(struct guards *g, size_t n);

/* Filled with values in [-1, 1). */
float *guards_random(struct guards *g, size_t n);

/* Check the bytes before each buffer, then unmap all. */
void guards_release(struct guards *g);

/* A context with exactly `scratch_bytes`, which poison_scratch fills with NaN. */
struct kctx *make_ctx(enum kctx_isa isa, int threads, size_t scratch_bytes);
void poison_scratch(struct kctx *ctx);

/* The next supported set after `isa`, or AUTO at the end: for (isa = isa_first(); isa; isa = isa_next(isa)) */
enum kctx_isa isa_next(enum kctx_isa isa);
enum kctx_isa isa_first(void);

/* sum((got-want)^2) / sum(want^2) <= 1e-11: f32 sums of a few thousand terms stay below, one wrong element in
 * 100,000 does not. */
void assert_close(const float *got, const double *want, size_t n);
void assert_same_bits(const void *a, const void *b, size_t bytes);

double *doubles(size_t n); /* zeros; free() */

#endif
