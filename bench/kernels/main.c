/* main.c - kernels-bench [batch]: the presets' layers by our kernels and, with TK_BENCH_PEERS, by oneDNN and OpenBLAS, one
 * thread each. TK_ISA chooses the instruction set of ours.
 *
 * Rounds of all peers in turn; what is shown is the median over the rounds of the processor time of a call. Every
 * peer's numbers are compared with ours first: a fast wrong answer ends the benchmark with 1.
 */
#include "peers.h"

#include "common/cleanup.h"
#include "common/sv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 41, PASSES = 2, BATCH_MAX = 4096 };
static const double ROUND_S = 1e-3; /* a peer's turn */
static const double ERROR_MAX = 1e-4;

static const struct bench_peer *const peers[] = {
    &bench_ours,
#ifdef TK_BENCH_PEERS
    &bench_onednn,
    &bench_openblas,
#endif
};
enum { PEERS = ARRAY_LEN(peers) };

#define LINEAR(preset, name, in, out, relu, first)                                                           \
    {                                                                                                        \
        preset, name, {0, 1, 1, in, out, 1, 1, 1, 0, 1}, true, relu, first                                   \
    }
#define CONV(preset, name, side, in, out, k, first)                                                          \
    {                                                                                                        \
        preset, name, {0, side, side, in, out, k, k, 1, 0, 1}, false, true, first                            \
    }

/* trainer/presets: what has weights. */
static const struct bench_layer layers[] = {
    LINEAR("fashion-mlp", "784-512", 784, 512, true, true),
    LINEAR("fashion-mlp", "512-512", 512, 512, true, false),
    LINEAR("fashion-mlp", "512-10", 512, 10, false, false),
    CONV("mnist-cnn", "conv 28x28 1-32 k3", 28, 1, 32, 3, true),
    CONV("mnist-cnn", "conv 13x13 32-64 k3", 13, 32, 64, 3, false),
    CONV("mnist-cnn", "conv 5x5 64-64 k3", 5, 64, 64, 3, false),
    LINEAR("mnist-cnn", "576-64", 576, 64, true, false),
    LINEAR("mnist-cnn", "64-10", 64, 10, false, false),
    CONV("convnet", "conv 28x28 3-32 k5", 28, 3, 32, 5, true),
    LINEAR("convnet", "4608-64", 4608, 64, true, false),
    LINEAR("convnet", "64-10", 64, 10, false, false),
    LINEAR("pipeline", "1024-512", 1024, 512, false, true),
    LINEAR("pipeline", "512-256", 512, 256, false, false),
    LINEAR("pipeline", "256-100", 256, 100, false, false),
};

float *bench_floats(size_t n)
{
    float *p = aligned_alloc(64, (n * sizeof(*p) + 64) / 64 * 64);

    if (!p)
        abort();
    return memset(p, 0, n * sizeof(*p));
}

static float *random_floats(size_t n, uint32_t *seed)
{
    float *p = bench_floats(n);

    for (size_t i = 0; i < n; i++) {
        *seed = *seed * 1664525U + 1013904223U;
        p[i] = (float)(*seed >> 8) / 8388608.0F - 1;
    }
    return p;
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* |a - b| over |a|. */
static double distance(const float *a, const float *b, size_t n)
{
    double off = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        off += pow((double)a[i] - (double)b[i], 2);
        all += pow((double)a[i], 2);
    }
    return all > 0 ? sqrt(off / all) : off;
}

struct race {
    const struct bench_layer *l;
    struct bench_data data;
    void *peer[PEERS];
    double us[PEERS][PASSES];
};

static int check(const struct race *r, struct err *err)
{
    const struct conv2d_shape *s = &r->l->s;
    cleanup_free float *out = bench_floats(bench_out(s));
    cleanup_free float *dweight = bench_floats(bench_weight(s));
    cleanup_free float *din = bench_floats(bench_in(s));
    cleanup_free float *out0 = bench_floats(bench_out(s));
    cleanup_free float *dweight0 = bench_floats(bench_weight(s));
    cleanup_free float *din0 = bench_floats(bench_in(s));

    peers[0]->result(r->peer[0], &(struct bench_result){out0, dweight0, din0});
    for (int p = 1; p < PEERS; p++) {
        memcpy(din, din0, bench_in(s) * sizeof(float));
        peers[p]->result(r->peer[p], &(struct bench_result){out, dweight, din});
        double d[] = {distance(out0, out, bench_out(s)), distance(dweight0, dweight, bench_weight(s)),
                      distance(din0, din, bench_in(s))};
        for (size_t k = 0; k < ARRAY_LEN(d); k++)
            if (!(d[k] <= ERROR_MAX))
                return err_set(err, ERR_FATAL,
                               "%s %s: %s by %s is %.2g away from ours, expected at most %.0g", r->l->preset,
                               r->l->name,
                               k == 0   ? "the output"
                               : k == 1 ? "the weights' gradient"
                                        : "the input's gradient",
                               peers[p]->name, d[k], ERROR_MAX);
    }
    return 0;
}

/* Seconds of one call, over as many as fit a turn. */
static double turn(void (*call)(void *), void *peer)
{
    double start = cpu_s();
    double spent = 0;
    int n = 0;

    for (; spent < ROUND_S; spent = cpu_s() - start, n++)
        call(peer);
    return spent / n;
}

static void measure(struct race *r)
{
    static double s[PEERS][PASSES][ROUNDS];

    for (int k = 0; k < ROUNDS; k++)
        for (int p = 0; p < PEERS; p++) {
            s[p][0][k] = turn(peers[p]->forward, r->peer[p]);
            s[p][1][k] = turn(peers[p]->backward, r->peer[p]);
        }
    for (int p = 0; p < PEERS; p++)
        for (int pass = 0; pass < PASSES; pass++) {
            qsort(s[p][pass], ROUNDS, sizeof(double), compare);
            r->us[p][pass] = s[p][pass][ROUNDS / 2] * 1e6;
        }
}

static int run(struct race *r, struct err *err)
{
    int rc = 0;
    uint32_t seed = 1;

    r->data = (struct bench_data){
        random_floats(bench_in(&r->l->s), &seed), random_floats(bench_weight(&r->l->s), &seed),
        random_floats((size_t)r->l->s.out_c, &seed), random_floats(bench_out(&r->l->s), &seed)};
    for (int p = 0; p < PEERS && rc == 0; p++) {
        r->peer[p] = peers[p]->make(r->l, &r->data, err);
        if (!r->peer[p]) {
            rc = -1;
            break;
        }
        peers[p]->forward(r->peer[p]);
        peers[p]->backward(r->peer[p]);
    }
    if (rc == 0 && (rc = check(r, err)) == 0)
        measure(r);
    for (int p = 0; p < PEERS; p++)
        if (r->peer[p])
            peers[p]->free(r->peer[p]);
    free(r->data.in);
    free(r->data.weight);
    free(r->data.bias);
    free(r->data.dout);
    return rc;
}

static void show(const char *preset, const char *name, const char *pass, const double us[PEERS])
{
    printf("| %s | %s | %s | %.1f |", preset, name, pass, us[0]);
    for (int p = 1; p < PEERS; p++)
        printf(" %.1f (%.2f) |", us[p], us[0] / us[p]);
    putchar('\n');
}

static int run_all(int batch, struct err *err)
{
    double sum[PEERS] = {0};

    printf("Microseconds of a call, one thread, batch %d; in brackets ours over theirs\n\n", batch);
    printf("| Preset | Layer | Pass |");
    for (int p = 0; p < PEERS; p++)
        printf(" %s |", peers[p]->name);
    printf("\n|---|---|---|");
    for (int p = 0; p < PEERS; p++)
        printf("---|");
    putchar('\n');
    for (size_t i = 0; i < ARRAY_LEN(layers); i++) {
        struct bench_layer l = layers[i];
        struct race r = {.l = &l};
        l.s.batch = batch;
        if (run(&r, err))
            return -1;
        for (int pass = 0; pass < PASSES; pass++) {
            double us[PEERS];
            for (int p = 0; p < PEERS; p++) {
                us[p] = r.us[p][pass];
                sum[p] += us[p];
            }
            show(l.preset, l.name, pass ? "backward" : "forward", us);
        }
        if (i + 1 < ARRAY_LEN(layers) && strcmp(l.preset, layers[i + 1].preset) == 0)
            continue;
        show(l.preset, "all", "both", sum);
        memset(sum, 0, sizeof(sum));
    }
#ifdef TK_BENCH_PEERS
    printf("\nOpenBLAS's kernels: %s (OPENBLAS_CORETYPE chooses others)\n", bench_openblas_core());
#endif
    return 0;
}

int main(int argc, char **argv)
{
    int64_t batch = 32;
    struct err err = {0};
    const char *threads = getenv("OMP_NUM_THREADS");

    if (argc > 1 && !sv_i64(sv_from(argv[1]), 1, BATCH_MAX, &batch)) {
        fprintf(stderr, "kernels-bench: batch is \"%s\", expected 1..%d\n", argv[1], BATCH_MAX);
        return 2;
    }
    if (PEERS > 1 && (!threads || strcmp(threads, "1") != 0)) {
        fprintf(stderr, "kernels-bench: OMP_NUM_THREADS is \"%s\", expected 1: oneDNN would use all CPUs\n",
                threads ? threads : "");
        return 2;
    }
    if (run_all((int)batch, &err) == 0)
        return 0;
    fprintf(stderr, "kernels-bench: %s\n", err.msg);
    return 1;
}
