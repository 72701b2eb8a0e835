/* test_nccl_gpu.c - the table over the real NCCL, on whatever GPUs there are: two ranks, on one GPU if need be.
 *
 * Without a device, or without NCCL, it prints that and is skipped (77); with TK_GPU_REQUIRED it fails.
 */
#include "collectives/nccl/nccl.h"

#include "collectives/nccl/api.h"
#include "common/clock.h"
#include "ranks.h"
#include "test.h"

#include <cuda_runtime_api.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    SKIPPED = 77,
    WORLD = 2,
    N = 669706 + DEVICE_FLAGS + 1 /* the MLP's gradient, and what rides on it */
};

/* In a process of its own: CUDA does not survive a fork. */
static int count_devices(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        int n;
        _exit(cudaGetDeviceCount(&n) == cudaSuccess ? n : 0);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

static int devices;

struct part {
    int (*body)(struct collectives *c, struct device_comm *d, cudaStream_t stream);
    int64_t timeout_ms;
};

#define CUDA_OK(call)                                                                                        \
    do {                                                                                                     \
        cudaError_t e_ = (call);                                                                             \
        if (e_) {                                                                                            \
            fprintf(stderr, "%s:%d: rank %d: %s: %s\n", __FILE__, __LINE__, c->rank, #call,                  \
                    cudaGetErrorString(e_));                                                                 \
            _exit(RANK_FAILED);                                                                              \
        }                                                                                                    \
    } while (0)

static int part_main(struct collectives *c, void *arg)
{
    const struct part *p = arg;
    struct err err = {0};
    cudaStream_t stream;

    if (c->world > devices)
        setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    CUDA_OK(cudaSetDevice(c->rank % devices));
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct device_comm *d = nccl_open(c, NULL, RANKS_TIMEOUT_MS, &err);
    if (!d) {
        fprintf(stderr, "rank %d: %s\n", c->rank, err.msg);
        return RANK_FAILED;
    }
    int rc = p->body(c, d, stream);
    if (d->lost)
        _exit(rc); /* as device.h says */
    device_comm_close(d);
    return rc;
}

static float expected(int i, int round)
{
    return (float)(WORLD * (WORLD + 1) / 2) * (float)(i % 1000 + round);
}

static void fill(float *x, int rank, int round)
{
    for (int i = 0; i < N; i++)
        x[i] = (float)(rank + 1) * (float)(i % 1000 + round);
}

static float host[N];

static int sums_body(struct collectives *c, struct device_comm *d, cudaStream_t stream)
{
    struct err err = {0};
    float *x = d->buffer(d, sizeof(host), RANKS_TIMEOUT_MS, &err);

    RANK_CHECK(x);
    for (int round = 0; round < 5; round++) {
        fill(host, c->rank, round);
        CUDA_OK(cudaMemcpyAsync(x, host, sizeof(host), cudaMemcpyHostToDevice, stream));
        RANK_OK(d->all_reduce(d, x, N, DEVICE_F32, stream, &err));
        CUDA_OK(cudaMemcpyAsync(host, x, sizeof(host), cudaMemcpyDeviceToHost, stream));
        RANK_OK(d->sync(d, stream, "step", RANKS_TIMEOUT_MS, &err));
        for (int i = 0; i < N; i++)
            RANK_CHECK(host[i] == expected(i, round));
    }
    return 0;
}

/* Recorded once, in thread-local mode, and run again and again; every run doubles what is there. */
static int graph_body(struct collectives *c, struct device_comm *d, cudaStream_t stream)
{
    struct err err = {0};
    float *x = d->buffer(d, sizeof(host), RANKS_TIMEOUT_MS, &err);
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    RANK_CHECK(x);
    for (int i = 0; i < N; i++)
        host[i] = 1;
    CUDA_OK(cudaMemcpyAsync(x, host, sizeof(host), cudaMemcpyHostToDevice, stream));
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    RANK_OK(d->all_reduce(d, x, N, DEVICE_F32, stream, &err));
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < 10; round++)
        CUDA_OK(cudaGraphLaunch(exec, stream));
    CUDA_OK(cudaMemcpyAsync(host, x, sizeof(host), cudaMemcpyDeviceToHost, stream));
    RANK_OK(d->sync(d, stream, "steps", RANKS_TIMEOUT_MS, &err));
    for (int i = 0; i < N; i++)
        RANK_CHECK(host[i] == 1024.0f);
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    return 0;
}

static int others_body(struct collectives *c, struct device_comm *d, cudaStream_t stream)
{
    enum { EACH = 1000 };
    struct err err = {0};
    const int other = 1 - c->rank;
    float *x;

    CUDA_OK(cudaMalloc((void **)&x, EACH * sizeof(float)));
    for (int i = 0; i < EACH; i++)
        host[i] = (float)(1000 * c->rank + i);
    CUDA_OK(cudaMemcpyAsync(x, host, EACH * sizeof(float), cudaMemcpyHostToDevice, stream));
    /* One direction: both at once would need them to be one group. */
    RANK_OK(c->rank == 0 ? d->send(d, x, EACH * sizeof(float), other, stream, &err)
                         : d->recv(d, x, EACH * sizeof(float), other, stream, &err));
    CUDA_OK(cudaMemcpyAsync(host, x, EACH * sizeof(float), cudaMemcpyDeviceToHost, stream));
    RANK_OK(d->sync(d, stream, "send", RANKS_TIMEOUT_MS, &err));
    for (int i = 0; i < EACH; i++)
        RANK_CHECK(host[i] == (float)i); /* rank 0's */
    return 0;
}

static int lost_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, int signal,
                     int64_t timeout_ms)
{
    struct err err = {0};
    float *x = d->buffer(d, sizeof(host), RANKS_TIMEOUT_MS, &err);

    RANK_CHECK(x);
    RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err));
    if (c->rank == 1)
        raise(signal);
    int64_t began_ms = clock_mono_ms();
    RANK_OK(d->all_reduce(d, x, N, DEVICE_F32, stream, &err));
    RANK_CHECK(d->sync(d, stream, "step", timeout_ms, &err) < 0);
    fprintf(stderr, "after %lld ms: %s\n", (long long)(clock_mono_ms() - began_ms), err.msg);
    RANK_CHECK(d->lost);
    return collectives_exit_code(&err);
}

static int killed_body(struct collectives *c, struct device_comm *d, cudaStream_t stream)
{
    return lost_body(c, d, stream, SIGKILL, 40000);
}

static int stopped_body(struct collectives *c, struct device_comm *d, cudaStream_t stream)
{
    return lost_body(c, d, stream, SIGSTOP, 1000);
}

static void run_two(int (*body)(struct collectives *c, struct device_comm *d, cudaStream_t stream))
{
    struct part p = {.body = body};

    ranks_run(WORLD, part_main, &p);
}

static void run_losing(int (*body)(struct collectives *c, struct device_comm *d, cudaStream_t stream),
                       int exit_code)
{
    struct part p = {.body = body};
    struct ranks r;

    ranks_start(&r, WORLD, part_main, &p);
    assert_int_equal(waitpid(r.pids[0], &r.status[0], 0), r.pids[0]);
    kill(r.pids[1], SIGKILL);
    assert_int_equal(waitpid(r.pids[1], &r.status[1], 0), r.pids[1]);
    assert_true(WIFEXITED(r.status[0]));
    assert_int_equal(WEXITSTATUS(r.status[0]), exit_code);
}

static void test_sums(void **state)
{
    (void)state;
    run_two(sums_body);
}

static void test_recorded_sums(void **state)
{
    (void)state;
    run_two(graph_body);
}

static void test_other_calls(void **state)
{
    (void)state;
    run_two(others_body);
}

static void test_killed_rank(void **state)
{
    (void)state;
    run_losing(killed_body, 140);
}

static void test_stopped_rank(void **state)
{
    (void)state;
    run_losing(stopped_body, 138);
}

static int cannot(const char *why)
{
    const bool required = getenv("TK_GPU_REQUIRED");

    fprintf(stderr, "%s: %s\n", required ? "TK_GPU_REQUIRED is set" : "skipped", why);
    return required ? 1 : SKIPPED;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),         cmocka_unit_test(test_recorded_sums),
        cmocka_unit_test(test_other_calls),  cmocka_unit_test(test_killed_rank),
        cmocka_unit_test(test_stopped_rank),
    };
    struct nccl_api api;
    struct err err;

    devices = count_devices();
    if (!devices)
        return cannot("no GPU");
    if (nccl_api_load(&api, NULL, &err))
        return cannot(err.msg);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
