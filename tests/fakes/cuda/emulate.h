/* emulate.h - CUDA's kernels on the CPU: blocks one after the other, a block's threads as fibres that take turns.
 *
 * A fibre runs until it waits (__syncthreads, a shuffle) or ends. Where threads of a block end while others wait, or
 * lanes of a warp miss a shuffle, the program aborts: on a GPU that is undefined. Shared memory comes from the heap,
 * one piece per SHARED, filled with NaN, so AddressSanitizer sees its bounds. emulate_order turns the order of blocks and
 * threads round: a result that changes with it is a race.
 *
 * What memory does is cudart.cc's business, what streams and graphs do streams.cc's.
 */
#ifndef TK_TESTS_FAKES_CUDA_EMULATE_H
#define TK_TESTS_FAKES_CUDA_EMULATE_H

#include <cuda_runtime_api.h>
#include <functional>
#include <math.h>
#include <tuple>

struct emulate_place {
    uint3 block, thread;
    dim3 grid, threads;
};
extern struct emulate_place emulate_at;

#define threadIdx (emulate_at.thread)
#define blockIdx (emulate_at.block)
#define blockDim (emulate_at.threads)
#define gridDim (emulate_at.grid)

#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif

#define SHARED(type, name, n)                                                                                \
    static const char name##_place = 0;                                                                      \
    type *name = (type *)emulate_shared(&name##_place, (n) * sizeof(type))

/* The piece whose size the launch says. */
#define SHARED_BY_LAUNCH(name)                                                                               \
    static const char name##_place = 0;                                                                      \
    char *name = (char *)emulate_shared_by_launch(&name##_place)

void *emulate_shared(const void *place, size_t bytes);
void *emulate_shared_by_launch(const void *place);
void emulate_wait_block(void);
/* Writes the value of this lane, and reads that of lane `from` of the same warp. */
void emulate_exchange(const void *mine, void *theirs, size_t bytes, unsigned from);
/* The same of all 32, one behind the other. */
void emulate_share(const void *mine, size_t bytes, void *all);
/* cp.async: copied when this thread waits for all groups but the newest `left`. */
void emulate_copy16(void *to, const void *from, bool wanted);
void emulate_copy_commit(void);
void emulate_copy_wait(unsigned left);
/* What a GPU would not do: reports it and ends the program. */
[[noreturn]] void emulate_broken(const char *what);

/* Run now, or record it when the stream is being captured. */
void emulate_queue(cudaStream_t stream, std::function<void()> work);
void emulate_run(dim3 grid, dim3 threads, size_t shared_bytes, const std::function<void()> &kernel);

/* The most blocks along y that are taken from now on; 0: as many as a GPU takes, the default. */
extern "C" void emulate_grid_y(unsigned most);

/* false: blocks and threads in ascending order, the default. */
extern "C" void emulate_order(bool descending);

template <class... P, class... A>
void emulate_launch(cudaStream_t stream, dim3 grid, dim3 threads, size_t shared_bytes, void (*kernel)(P...),
                    A... args)
{
    std::tuple<P...> kept(args...);
    emulate_queue(stream,
                  [=] { emulate_run(grid, threads, shared_bytes, [=] { std::apply(kernel, kept); }); });
}

static inline void __syncthreads(void)
{
    emulate_wait_block();
}

template <class T> inline T __shfl_xor_sync(unsigned, T v, int mask)
{
    T got;
    emulate_exchange(&v, &got, sizeof(v), (threadIdx.x % 32) ^ (unsigned)mask);
    return got;
}

static inline void __syncwarp(void)
{
    int mine = 0, got;
    emulate_exchange(&mine, &got, sizeof(mine), threadIdx.x % 32);
}

/* Blocks run one after the other. */
static inline void __threadfence(void)
{
}

static inline unsigned atomicInc(unsigned *at, unsigned most)
{
    const unsigned before = *at;
    *at = before >= most ? 0 : before + 1;
    return before;
}

static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

static inline float __fmul_rn(float a, float b)
{
    return a * b;
}

static inline float __fadd_rn(float a, float b)
{
    return a + b;
}

#endif
