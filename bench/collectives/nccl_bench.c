/* nccl_bench.c - nccl-bench: measure latency and bandwidth of all_reduce between the GPUs of this host, with one
 * forked rank per GPU.
 *
 * Numerics: as nccl-tests defines them: algbw = bytes / time; busbw = algbw times 2 (n - 1) / n. A time is that of
 *           a CUDA graph of ROW calls, as a training step is a graph, divided by ROW.
 */
#include "collectives/nccl/nccl.h"

#include "common/contract.h"
#include "common/sv.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { TIMEOUT_MS = 60000, RANKS_MAX = 64, SKIPPED = 77, ROW = 20 };

struct bench {
    struct collectives *host;
    struct device_comm *comm;
    float *x; /* registered */
    cudaStream_t stream;
    cudaEvent_t from, to;
};

static int cuda_failed(cudaError_t e, const char *what, struct err *err)
{
    return e ? err_set(err, ERR_FATAL, "%s: %s", what, cudaGetErrorString(e)) : 0;
}

static int one_call(struct bench *b, size_t n, struct err *err)
{
    return b->comm->all_reduce(b->comm, b->x, n, DEVICE_F32, b->stream, err);
}

/* Capture ROW calls into a CUDA graph. */
static int record(struct bench *b, size_t n, cudaGraphExec_t *ret, struct err *err)
{
    cudaGraph_t graph;

    if (cuda_failed(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal), "recording", err))
        return -1;
    for (int i = 0; i < ROW; i++)
        if (one_call(b, n, err))
            return -1;
    if (cuda_failed(cudaStreamEndCapture(b->stream, &graph), "recording", err))
        return -1;
    cudaError_t e = cudaGraphInstantiate(ret, graph, 0);
    (void)cudaGraphDestroy(graph);
    return cuda_failed(e, "recording", err);
}

static int launch(struct bench *b, cudaGraphExec_t row, int rounds, float *ms, struct err *err)
{
    if (b->host->barrier(b->host, TIMEOUT_MS, err) ||
        cuda_failed(cudaEventRecord(b->from, b->stream), "event", err))
        return -1;
    for (int i = 0; i < rounds; i++)
        if (cuda_failed(cudaGraphLaunch(row, b->stream), "launch", err))
            return -1;
    if (cuda_failed(cudaEventRecord(b->to, b->stream), "event", err) ||
        b->comm->wait(b->comm, b->to, "measuring", TIMEOUT_MS, err))
        return -1;
    return cuda_failed(cudaEventElapsedTime(ms, b->from, b->to), "event", err);
}

static int bench_size(struct bench *b, size_t n, struct err *err)
{
    const int world = b->comm->world, rounds = n > (size_t)1 << 22 ? 5 : 50;
    const double bytes = (double)(n * sizeof(float));
    cudaGraphExec_t row;
    float ms;

    /* Run once before the capture, so that NCCL sets up its connections for this size. */
    if (one_call(b, n, err) || b->comm->sync(b->comm, b->stream, "a first call", TIMEOUT_MS, err) ||
        record(b, n, &row, err))
        return -1;
    int rc = launch(b, row, 2, &ms, err) || launch(b, row, rounds, &ms, err) ? -1 : 0;
    if (!b->comm->lost)
        (void)cudaGraphExecDestroy(row);
    if (rc)
        return -1;
    double us = 1000.0 * (double)ms / rounds / ROW, algbw = bytes / us / 1e3;
    double share = 2.0 * (world - 1) / world;
    if (b->comm->rank == 0)
        printf("%14s %12.0f %10.1f %12.2f %12.2f\n", "all_reduce", bytes, us, algbw, algbw * share);
    fflush(stdout);
    return 0;
}

static int bench_all(struct bench *b, struct err *err)
{
    const size_t most = (size_t)64 << 20; /* floats: 256 MB */

    b->x = b->comm->buffer(b->comm, most * sizeof(float), TIMEOUT_MS, err);
    if (!b->x)
        return -1;
    for (size_t n = 64; n <= most; n *= 4)
        if (bench_size(b, n, err))
            return -1;
    return 0;
}

static int rank_main(int rank, int world, int devices)
{
    struct err err = {0};
    char run_id[64];
    struct bench b = {0};

    snprintf(run_id, sizeof(run_id), "nccl-bench-%d", (int)getppid());
    if (world > devices)
        setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
    const struct collectives_config cfg = {
        .rank = rank, .world = world, .local_rank = rank, .local_world = world, .run_id = run_id};
    b.host = collectives_open(&cfg, TIMEOUT_MS, &err);
    if (!b.host || cuda_failed(cudaSetDevice(rank % devices), "cudaSetDevice", &err) ||
        cuda_failed(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking), "stream", &err) ||
        cuda_failed(cudaEventCreate(&b.from), "event", &err) ||
        cuda_failed(cudaEventCreate(&b.to), "event", &err) ||
        !(b.comm = nccl_open(b.host, NULL, TIMEOUT_MS, &err)) || bench_all(&b, &err)) {
        fprintf(stderr, "nccl-bench: rank %d: %s\n", rank, err.msg);
        _exit(collectives_exit_code(&err));
    }
    if (rank == 0)
        printf("%d ranks on %d GPUs, %s\n", world, devices, b.comm->transport);
    device_comm_close(b.comm);
    collectives_close(b.host);
    return EXIT_CODE_OK;
}

/* In a child process, because CUDA cannot be used in a child forked after its initialization. */
static int count_devices(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        int n;
        _exit(cudaGetDeviceCount(&n) == cudaSuccess ? n : 0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

int main(int argc, char **argv)
{
    const int devices = count_devices();
    int64_t world = devices;
    int worst = 0;

    if (argc > 2 || (argc == 2 && !sv_i64(sv_from(argv[1]), 1, RANKS_MAX, &world))) {
        fprintf(stderr, "usage: nccl-bench [RANKS]   (1..%d; default: a rank per GPU)\n", RANKS_MAX);
        return EXIT_CODE_USAGE;
    }
    if (devices < 2 && (!devices || argc == 1)) {
        fprintf(stderr, "nccl-bench: skipped: %s\n",
                devices ? "one GPU, on which ranks take turns (nccl-bench 2 measures that)" : "no GPU");
        return SKIPPED;
    }
    printf("%14s %12s %10s %12s %12s\n", "call", "bytes", "us", "algbw GB/s", "busbw GB/s");
    fflush(stdout);
    for (int r = 0; r < (int)world; r++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(rank_main(r, (int)world, devices));
        if (pid < 0)
            return EXIT_CODE_ERROR;
    }
    for (int status; wait(&status) > 0;)
        if (status)
            worst = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CODE_SIGNAL_BASE + WTERMSIG(status);
    return worst;
}
