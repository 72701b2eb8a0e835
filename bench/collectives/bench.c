/* bench.c - collectives-bench: measure latency and bandwidth of all_reduce between forked ranks on this host, in
 * one pod or in several that communicate over TCP.
 *
 * Numerics: bandwidths as nccl-tests defines them: algbw = bytes / time, busbw = algbw * 2 (n - 1) / n for n
 *           ranks.
 */
#include "collectives/collectives.h"
#include "common/contract.h"
#include "common/memory.h"
#include "common/sv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { TIMEOUT_MS = 60000, ROUNDS_MAX = 1000 };

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

/* Measure one size; rank 0 prints the median and the 99th percentile. */
static int bench_size(struct collectives *c, const char *layout, float *x, size_t n, const char *memory,
                      struct err *err)
{
    static double us[ROUNDS_MAX];
    const size_t bytes = n * sizeof(float);
    const int rounds = bytes > ((size_t)1 << 24)   ? 7
                       : bytes > ((size_t)1 << 22) ? 30
                       : bytes > ((size_t)1 << 18) ? 200
                                                   : 1000;
    uint32_t flags = 0;

    for (int i = -2 - rounds / 50; i < rounds; i++) {
        double t = now_us();
        if (c->all_reduce(c, x, n, &flags, TIMEOUT_MS, err) < 0)
            return -1;
        if (i >= 0)
            us[i] = now_us() - t;
    }
    qsort(us, (size_t)rounds, sizeof(*us), by_value);
    double median = us[rounds / 2], algbw = (double)bytes / median / 1e3;
    if (c->rank == 0)
        printf("%6s %8s %12zu %12.1f %12.1f %10.2f %10.2f\n", layout, memory, bytes, median,
               us[rounds * 99 / 100], algbw, algbw * 2 * (c->world - 1) / c->world);
    fflush(stdout);
    return c->barrier(c, TIMEOUT_MS, err);
}

static int bench_all(struct collectives *c, const char *layout, struct err *err)
{
    /* 93,322 and 669,706: the gradient sizes of the CNN and MLP presets. */
    static const size_t sizes[] = {64,     256,    1024,    4096,    16384,    65536,   93322,
                                   262144, 669706, 1048576, 4194304, 16777216, 67108864};
    const size_t most = sizes[ARRAY_LEN(sizes) - 1];
    cleanup_free float *own = memory_must(calloc(most, sizeof(*own)));

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (bench_size(c, layout, own, sizes[i], "private", err) < 0)
            return -1;
    float *shared = c->shared(c, most, TIMEOUT_MS, err);
    if (!shared)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (bench_size(c, layout, shared, sizes[i], "shared", err) < 0)
            return -1;
    return 0;
}

struct layout {
    int world, per_pod;
    int port;
};

static int rank_main(int rank, const struct layout *l)
{
    char run_id[64], name[32];
    struct err err = {0};
    const int pod = rank / l->per_pod, first = pod * l->per_pod;

    snprintf(run_id, sizeof(run_id), "bench-%d", (int)getppid());
    snprintf(name, sizeof(name), "%dx%d", (l->world + l->per_pod - 1) / l->per_pod, l->per_pod);
    const struct collectives_config cfg = {.rank = rank,
                                           .world = l->world,
                                           .local_rank = rank - first,
                                           .local_world =
                                               l->world - first < l->per_pod ? l->world - first : l->per_pod,
                                           .group_rank = pod,
                                           .run_id = run_id,
                                           .master_addr = "127.0.0.1",
                                           .master_port = l->port};
    cleanup_collectives struct collectives *c = collectives_open(&cfg, TIMEOUT_MS, &err);
    if (c && bench_all(c, name, &err) == 0)
        return EXIT_CODE_OK;
    fprintf(stderr, "collectives-bench: rank %d: %s\n", rank, err.msg);
    return collectives_exit_code(&err);
}

static int run_layout(const struct layout *l)
{
    int worst = 0;

    fflush(stdout);
    for (int r = 0; r < l->world; r++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(rank_main(r, l));
        if (pid < 0)
            return EXIT_CODE_ERROR;
    }
    for (int r = 0; r < l->world; r++) {
        int status;
        if (wait(&status) > 0 && status != 0)
            worst = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CODE_SIGNAL_BASE + WTERMSIG(status);
    }
    return worst;
}

static bool read_arg(int argc, char **argv, int i, int least, int64_t most, int *ret)
{
    int64_t value;

    if (argc <= i)
        return true;
    if (!sv_i64(sv_from(argv[i]), least, most, &value))
        return false;
    *ret = (int)value;
    return true;
}

int main(int argc, char **argv)
{
    static const struct layout usual[] = {{2, 2, 0}, {2, 1, 0}, {4, 4, 0}, {4, 2, 0}};
    struct layout only = {0};
    int rc = 0, port = CONTRACT_MASTER_PORT + 1;

    if (argc > 4 || !read_arg(argc, argv, 1, 1, COLLECTIVES_HOST_RANKS_MAX, &only.world) ||
        !read_arg(argc, argv, 2, 1, only.world, &only.per_pod) || !read_arg(argc, argv, 3, 1, 65535, &port)) {
        fprintf(
            stderr,
            "usage: collectives-bench [RANKS [RANKS_PER_POD [PORT]]]   (1..%d ranks; without them 2 and 4 "
            "in one pod, and 2 pods with 1 and 2 each)\n",
            COLLECTIVES_HOST_RANKS_MAX);
        return EXIT_CODE_USAGE;
    }
    printf("%6s %8s %12s %12s %12s %10s %10s\n", "pods", "memory", "bytes", "median us", "p99 us",
           "algbw GB/s", "busbw GB/s");
    only.per_pod = only.per_pod ? only.per_pod : only.world;
    for (size_t i = 0; i < ARRAY_LEN(usual) && rc == 0; i++) {
        struct layout l = only.world ? only : usual[i];
        l.port = port;
        rc = run_layout(&l);
        if (only.world)
            break;
    }
    return rc;
}
