/* kctx.h - what every operation needs: a device. kctx_make makes the CPU's context: an instruction set, scratch memory,
 * threads. A GPU's comes from elsewhere, and all but the functions about instruction sets and threads works on it alike.
 *
 * Ownership: kctx_make to kctx_free. The scratch memory belongs to one operation at a time: nothing in it
 *            survives a call, so one context serves a whole network, but only one caller at a time.
 * Set-up:    operations never allocate. Ask <op>_workspace_bytes() for every shape that will come (the largest
 *            batch is enough: it grows with the batch), take the maximum, and reserve it once.
 * Alignment: buffers given to operations need a float's alignment only; 64 bytes is faster.
 * Errors:    shapes are checked once, at set-up, by <op>_check (ERR_INVALID naming the field). The operations
 *            themselves cannot fail; one called with too little scratch memory aborts.
 * Elements:  a parameter of type float is f32 on every device. One of type void is of the context's own kind of element:
 *            activations, their gradients, and the weights that products read. On CPUs that is f32 too.
 * Numerics:  every output element is summed in an order that depends on the shape and the instruction set
 *            only, never on the number of threads. Products are fused (FMA) where the set has it.
 */
#ifndef TK_KERNELS_KCTX_H
#define TK_KERNELS_KCTX_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>

struct kctx;

/* What activations are made of: for the life of a context, chosen when it is made (device.h). */
enum element { ELEMENT_F32, ELEMENT_BF16 };

static inline size_t element_bytes(enum element e)
{
    return e == ELEMENT_BF16 ? 2 : sizeof(float);
}

enum kctx_isa {
    KCTX_ISA_AUTO = 0, /* the value of TK_ISA (plain, avx2, avx512, auto) when set, else the best there is */
    KCTX_ISA_PLAIN,
    KCTX_ISA_AVX2,
    KCTX_ISA_AVX512,
};

enum { KCTX_THREADS_MAX = 256 };

struct kctx_options {
    enum kctx_isa isa;
    int threads; /* 1..KCTX_THREADS_MAX, the caller's own included; 0 means 1 */
    size_t workspace_bytes;
};

/* Errors: ERR_INVALID (a set this machine lacks, TK_ISA unknown), ERR_FATAL (no memory or no thread). */
struct kctx *kctx_make(const struct kctx_options *options, struct err *err) MUST_CHECK;
void kctx_free(struct kctx *ctx);

/* Make the scratch memory at least `bytes`; for set-up, never inside a step. */
int kctx_reserve(struct kctx *ctx, size_t bytes, struct err *err) MUST_CHECK;

/* Of a CPU's context. The chosen set, never AUTO. */
enum kctx_isa kctx_isa(const struct kctx *ctx);
int kctx_threads(const struct kctx *ctx);

bool kctx_isa_supported(enum kctx_isa isa);
const char *kctx_isa_name(enum kctx_isa isa);
bool kctx_isa_parse(const char *name, enum kctx_isa *ret);

static inline void kctx_freep(struct kctx **ctx)
{
    kctx_free(*ctx);
}
#define cleanup_kctx __attribute__((cleanup(kctx_freep)))

#endif
