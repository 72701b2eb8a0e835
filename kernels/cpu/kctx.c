/* kctx.c - make a CPU context: choose the instruction set, allocate scratch memory, start the threads. */
#include "kernels/kctx.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/run.h"
#include "kernels/cpu/team.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SCRATCH_ALIGN_BYTES = 64 };

struct cpu {
    struct kctx ctx;
    enum kctx_isa isa;
    const struct isa_ops *ops;
    int threads;
    struct team *team; /* NULL with one thread */
    char *scratch;
    size_t scratch_bytes;
};

/* By enum kctx_isa. */
static const struct {
    const char *name;
    const struct isa_ops *ops;
} sets[] = {
    {"auto", NULL},
    {"plain", &isa_ops_plain},
#if defined(__x86_64__)
    {"avx2", &isa_ops_avx2},
    {"avx512", &isa_ops_avx512},
#else
    {"avx2", NULL},
    {"avx512", NULL},
#endif
};

const char *kctx_isa_name(enum kctx_isa isa)
{
    return sets[isa].name;
}

bool kctx_isa_parse(const char *name, enum kctx_isa *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        if (strcmp(name, sets[i].name) == 0) {
            *ret = (enum kctx_isa)i;
            return true;
        }
    }
    return false;
}

bool kctx_isa_supported(enum kctx_isa isa)
{
#if defined(__x86_64__)
    if (isa == KCTX_ISA_AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == KCTX_ISA_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("fma");
#endif
    return isa == KCTX_ISA_AUTO || isa == KCTX_ISA_PLAIN;
}

static enum kctx_isa best_isa(void)
{
    if (kctx_isa_supported(KCTX_ISA_AVX512))
        return KCTX_ISA_AVX512;
    return kctx_isa_supported(KCTX_ISA_AVX2) ? KCTX_ISA_AVX2 : KCTX_ISA_PLAIN;
}

static int choose_isa(enum kctx_isa wanted, enum kctx_isa *ret, struct err *err)
{
    const char *env = getenv("TK_ISA");
    if (wanted == KCTX_ISA_AUTO && env && *env && !kctx_isa_parse(env, &wanted))
        return err_set(err, ERR_INVALID, "TK_ISA is \"%s\", expected auto, plain, avx2 or avx512", env);
    if (!kctx_isa_supported(wanted))
        return err_set(err, ERR_INVALID, "this processor does not have the instruction set %s",
                       kctx_isa_name(wanted));
    *ret = wanted == KCTX_ISA_AUTO ? best_isa() : wanted;
    return 0;
}

static const struct cpu *cpu_of(const struct kctx *ctx)
{
    return (const struct cpu *)ctx;
}

static const char *cpu_name(const struct kctx *ctx)
{
    return kctx_isa_name(cpu_of(ctx)->isa);
}

static void cpu_free(struct kctx *ctx)
{
    struct cpu *c = (struct cpu *)ctx;
    team_free(c->team);
    free(c->scratch);
    free(c);
}

static int cpu_reserve(struct kctx *ctx, size_t bytes, struct err *err)
{
    struct cpu *c = (struct cpu *)ctx;
    if (bytes <= c->scratch_bytes)
        return 0;
    if (bytes > SIZE_MAX - SCRATCH_ALIGN_BYTES)
        return err_memory(err, "out of memory: %zu bytes of scratch", bytes);
    size_t rounded = (bytes + SCRATCH_ALIGN_BYTES - 1) / SCRATCH_ALIGN_BYTES * SCRATCH_ALIGN_BYTES;
    char *grown = aligned_alloc(SCRATCH_ALIGN_BYTES, rounded);
    if (!grown)
        return err_memory(err, "out of memory: %zu bytes of scratch", bytes);
    free(c->scratch);
    c->scratch = grown;
    c->scratch_bytes = rounded;
    return 0;
}

static const struct kernel_ops cpu_ops = {.host = true,
                                          .name = cpu_name,
                                          .free = cpu_free,
                                          .reserve = cpu_reserve,
                                          .alloc = cpu_alloc,
                                          .release = cpu_release,
                                          .put = cpu_copy,
                                          .get = cpu_get,
                                          .copy = cpu_copy,
                                          .zero = cpu_zero,
                                          .sync = cpu_sync,
#define KERNEL_CPU_ROW(op) .op = cpu_##op,
                                          KERNEL_OPS(KERNEL_CPU_ROW) KERNEL_HOST_OPS(KERNEL_CPU_ROW)
#undef KERNEL_CPU_ROW
};

struct kctx *kctx_make(const struct kctx_options *options, struct err *err)
{
    enum kctx_isa isa;
    if (choose_isa(options->isa, &isa, err) < 0)
        return NULL;
    const int threads = options->threads == 0 ? 1 : options->threads;
    struct cpu *c = calloc(1, sizeof *c);
    if (!c) {
        err_memory(err, "out of memory");
        return NULL;
    }
    *c = (struct cpu){.ctx = {.ops = &cpu_ops}, .isa = isa, .ops = sets[isa].ops, .threads = threads};
    struct kctx *ctx cleanup_kctx = &c->ctx;
    if (threads > 1 && !(c->team = team_make(threads, err)))
        return NULL;
    if (kctx_reserve(ctx, options->workspace_bytes, err) < 0)
        return NULL;
    return TAKE(ctx);
}

enum kctx_isa kctx_isa(const struct kctx *ctx)
{
    return cpu_of(ctx)->isa;
}

int kctx_threads(const struct kctx *ctx)
{
    return cpu_of(ctx)->threads;
}

const struct isa_ops *kctx_ops(const struct kctx *ctx)
{
    return cpu_of(ctx)->ops;
}

void kctx_run(struct kctx *ctx, int n, run_fn *fn, void *arg)
{
    struct team *team = cpu_of(ctx)->team;
    if (!team || n <= 1)
        fn(arg, 0, n);
    else
        team_run(team, n, fn, arg);
}

struct scratch scratch_open(struct kctx *ctx)
{
    return (struct scratch){.base = cpu_of(ctx)->scratch, .cap_bytes = cpu_of(ctx)->scratch_bytes};
}
