/* bench.c - collectives-bench: latency and bandwidth of all_reduce between forked ranks of this host.
 *
 * Numerics: bandwidths as nccl-tests defines them: algbw = bytes / time, busbw = algbw * 2 (n - 1) / n.
 */
#include "common/contract.h"
#include "common/sv.h"
#include "trainer/collectives/collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { TIMEOUT_MS = 60000, ROUNDS_MAX = 20000 };

static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* One size: rank 0 prints the median and the 99th percentile of the rounds. */
static int bench_size(struct collectives *c, float *x, size_t n, const char *memory, struct err *err)
{
    static double us[ROUNDS_MAX];
    const size_t bytes = n * sizeof(float);
    const int rounds = bytes > ((size_t)1 << 22) ? 50 : bytes > ((size_t)1 << 18) ? 500 : 5000;
    uint32_t flags = 0;

    for (int i = -10; i < rounds; i++) {
        double t = now_us();
        if (c->all_reduce(c, x, n, &flags, TIMEOUT_MS, err) < 0)
            return -1;
        if (i >= 0)
            us[i] = now_us() - t;
    }
    qsort(us, (size_t)rounds, sizeof(*us), by_value);
    double median = us[rounds / 2], algbw = (double)bytes / median / 1e3;
    if (c->rank == 0)
        printf("%6d %8s %12zu %12.1f %12.1f %10.2f %10.2f\n", c->world, memory, bytes, median,
               us[rounds * 99 / 100], algbw, algbw * 2 * (c->world - 1) / c->world);
    fflush(stdout);
    return c->barrier(c, TIMEOUT_MS, err);
}

static int bench_all(struct collectives *c, struct err *err)
{
    /* 93,322 and 669,706: the gradients of the CNN and of the MLP among the presets. */
    static const size_t sizes[] = {64, 1024, 16384, 93322, 262144, 669706, 4194304, 16777216};
    const size_t most = sizes[ARRAY_LEN(sizes) - 1];
    cleanup_free float *own = calloc(most, sizeof(*own));

    if (!own)
        abort();
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (bench_size(c, own, sizes[i], "private", err) < 0)
            return -1;
    float *shared = c->shared(c, most, TIMEOUT_MS, err);
    if (!shared)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (bench_size(c, shared, sizes[i], "shared", err) < 0)
            return -1;
    return 0;
}

static int rank_main(int rank, int world)
{
    char run_id[64];
    struct err err = {0};

    snprintf(run_id, sizeof(run_id), "bench-%d", (int)getpgrp());
    const struct collectives_config cfg = {
        .rank = rank, .world = world, .local_rank = rank, .local_world = world, .run_id = run_id};
    cleanup_collectives struct collectives *c = collectives_open(&cfg, TIMEOUT_MS, &err);
    if (c && bench_all(c, &err) == 0)
        return EXIT_CODE_OK;
    fprintf(stderr, "collectives-bench: rank %d: %s\n", rank, err.msg);
    return collectives_exit_code(&err);
}

static int run_world(int world)
{
    int worst = 0;

    fflush(stdout);
    for (int r = 0; r < world; r++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(rank_main(r, world));
        if (pid < 0)
            return EXIT_CODE_ERROR;
    }
    for (int r = 0; r < world; r++) {
        int status;
        if (wait(&status) > 0 && status != 0)
            worst = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CODE_SIGNAL_BASE + WTERMSIG(status);
    }
    return worst;
}

int main(int argc, char **argv)
{
    int64_t only = 0;

    if (argc > 2 || (argc == 2 && !sv_i64(sv_from(argv[1]), 1, COLLECTIVES_HOST_RANKS_MAX, &only))) {
        fprintf(stderr, "usage: collectives-bench [RANKS]   (1..%d; without it 2 and 4)\n",
                COLLECTIVES_HOST_RANKS_MAX);
        return EXIT_CODE_USAGE;
    }
    printf("%6s %8s %12s %12s %12s %10s %10s\n", "ranks", "memory", "bytes", "median us", "p99 us",
           "algbw GB/s", "busbw GB/s");
    if (only)
        return run_world((int)only);
    int rc = run_world(2);
    return rc ? rc : run_world(4);
}
