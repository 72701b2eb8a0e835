/* main.c - kernels-bench [cnn|mlp] [batch] [threads]: time per operation and per step.
 *
 * The figure of a round is the time of a whole step; printed are the median over rounds and the best, and each
 * operation's median. TK_ISA chooses the instruction set.
 */
#include "net.h"

#include "common/sv.h"
#include "kernels/cpu/run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 301, PEAK_ROUNDS = 2000000, OPS_MAX = 32 };

/* With one thread its own processor time, so that a busy machine does not count. */
static double now_s(int threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x)
{
    qsort(x, ROUNDS, sizeof *x, compare);
    return x[ROUNDS / 2];
}

static double measure_peak(const struct isa_ops *ops)
{
    double best = 0;
    float sink = 1e-4F;
    for (int i = 0; i < 5; i++) {
        double t = now_s(1);
        double flop = ops->peak(PEAK_ROUNDS, &sink);
        double rate = flop / (now_s(1) - t);
        best = rate > best ? rate : best;
    }
    return sink > 0 ? best : 0;
}

static void report(const char *name, double s, double flop, double peak)
{
    if (flop > 0)
        printf("%-22s %9.1f us %8.1f GFLOP/s %5.1f %%\n", name, s * 1e6, flop / s / 1e9,
               100 * flop / s / peak);
    else
        printf("%-22s %9.1f us\n", name, s * 1e6);
}

static void run(struct net *net, struct kctx *ctx)
{
    const int threads = kctx_threads(ctx);
    static double op_s[OPS_MAX][ROUNDS], step_s[ROUNDS];
    for (int r = -20; r < ROUNDS; r++) {
        double start = now_s(threads);
        double t = start;
        for (int i = 0; i < net_ops(net); i++) {
            net_op_run(net, ctx, i);
            double end = now_s(threads);
            op_s[i][r < 0 ? 0 : r] = end - t;
            t = end;
        }
        step_s[r < 0 ? 0 : r] = t - start;
    }
    double peak = measure_peak(kctx_ops(ctx));
    double flop = 0;
    for (int i = 0; i < net_ops(net); i++) {
        report(net_op_name(net, i), median(op_s[i]), net_op_flop(net, i), peak);
        flop += net_op_flop(net, i);
    }
    report("step, median", median(step_s), flop, peak);
    report("step, best", step_s[0], flop, peak);
    printf("one core at best: %.1f GFLOP/s (%s), threads: %d\n", peak / 1e9, kctx_isa_name(kctx_isa(ctx)),
           threads);
}

/* A whole number of the command line; `fallback` when it was not given. */
static int argument(int argc, char **argv, int i, const char *what, int max, int fallback)
{
    int64_t v = fallback;
    if (argc > i && !sv_i64(sv_from(argv[i]), 1, max, &v)) {
        fprintf(stderr, "kernels-bench: %s is \"%s\", expected 1..%d\n", what, argv[i], max);
        return -1;
    }
    return (int)v;
}

int main(int argc, char **argv)
{
    int batch = argument(argc, argv, 2, "batch", 4096, 32);
    int threads = argument(argc, argv, 3, "threads", KCTX_THREADS_MAX, 1);
    struct err err = {0};
    struct kctx *ctx = NULL;
    if (batch < 0 || threads < 0)
        return 2;
    struct net *net = net_make(argc > 1 ? argv[1] : "cnn", batch, &err);
    if (net) {
        struct kctx_options options = {.threads = threads, .workspace_bytes = net_workspace_bytes(net)};
        ctx = kctx_make(&options, &err);
    }
    if (ctx)
        run(net, ctx);
    else
        fprintf(stderr, "kernels-bench: %s\n", err.msg);
    kctx_free(ctx);
    net_free(net);
    return ctx ? 0 : 1;
}
