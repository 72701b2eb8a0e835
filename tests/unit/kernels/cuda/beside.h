/* beside.h - run the same operation on the CPU and on a device, with the same numbers, and compare the results.
 *
 * A device's result is within `nmse` of the CPU's, and the same to the bit when it is computed again, with blocks and threads
 * in another order if the device can do that (device_disturb). Buffers begin anywhere at a multiple of 4 bytes, as
 * parameters in a flat buffer do, unless `aligned` says otherwise; results hold NaN before.
 *
 * Elements (kctx.h) are f32 here and on the CPU whatever the device's are: those of bf16 begin as numbers that bf16 has, and
 * what the device makes of them is rounded once, or as rounds_inside says.
 */
#ifndef TK_TESTS_KERNELS_CUDA_BESIDE_H
#define TK_TESTS_KERNELS_CUDA_BESIDE_H

#include "kernels/ops.h"
#include "test.h"

#include <stdint.h>

enum { BESIDE_MAX = 12 };

enum beside_kind { BESIDE_IN, BESIDE_OUT, BESIDE_INOUT };
enum beside_type { BESIDE_F32, BESIDE_ELEMENTS, BESIDE_BITS }; /* compared by NMSE, or to the bit */

struct beside_buffer {
    enum beside_kind kind;
    enum beside_type type;
    size_t bytes;
    void *start, *host;   /* what it holds before; the CPU's */
    void *block, *device; /* the device's, in its block, */
    size_t device_bytes;  /* and how much that is */
};

struct beside {
    struct kctx *cpu, *device;
    double nmse;
    bool aligned;       /* every buffer, to 256 bytes */
    bool rounds_inside; /* bf16 is rounded on the way, too: compared by NMSE alone */
    uint32_t seed;
    int n;
    struct beside_buffer b[BESIDE_MAX];
};

/* device.c of the program that tests: a context, or NULL and why there is none. */
struct kctx *device_open(enum precision precision, enum element element, struct err *err);
void device_disturb(bool on);
/* Where the device can be told to: no grid has more blocks along y. */
void device_grid_y(unsigned most);

/* The exit status of a test that finds no device to run on, which is reported: 77, or 1 with TK_GPU_REQUIRED. 0: there is
 * one. */
int beside_none(void);

void beside_open(struct beside *s, enum precision precision, enum element element);
void beside_close(struct beside *s);

/* Scratch memory of either side, before operations that need it. */
void beside_reserve(struct beside *s, size_t cpu_bytes, size_t device_bytes);

/* Add a buffer; its number is returned. floats: in [-1, 1). */
int beside_floats(struct beside *s, enum beside_kind kind, size_t n);
int beside_elements(struct beside *s, enum beside_kind kind, size_t n);
int beside_copy(struct beside *s, enum beside_kind kind, enum beside_type type, const void *from,
                size_t bytes);
int beside_out(struct beside *s, enum beside_type type, size_t bytes);

/* What the operation is given: buffer i, of whichever device runs it. */
struct beside_run {
    struct kctx *ctx;
    void *p[BESIDE_MAX];
    const void *shape;
};
typedef void beside_fn(const struct beside_run *r);

/* What the queued loss at `at` came to; frees it. */
struct queued_loss beside_loss(struct kctx *device, struct queued_loss *at);

/* Run it everywhere, compare, and forget the buffers. `what` is reported when they differ. */
void beside_check(struct beside *s, beside_fn *fn, const void *shape, const char *what);

#endif
