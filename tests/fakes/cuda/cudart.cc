/* cudart.cc - the part of CUDA's runtime that we call, on an emulated GPU: devices, memory, errors. Streams and graphs are
 * streams.cc's.
 *
 * As far away as it may: device memory can be touched by queued work alone, anyone else who does so is killed, and behind
 * every piece of it lies a page that nobody may touch.
 */
#include "cudart.h"
#include "emulate.h"
#include "runtime.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace
{

/* A huge page of x86-64 and of arm64 with pages of 4 KiB. Larger pieces lie on such pages where the kernel has them: changing
 * the protection of a piece costs one entry of the page table per page, and it changes twice in each wait for a stream. */
const size_t HUGE_PAGE = (size_t)2 << 20;

struct piece {
    char *map,
        *p; /* map: map_bytes of memory behind which a page is out of bounds; p: what the caller got, in it */
    size_t map_bytes, bytes;
};

struct runtime {
    std::vector<piece> pieces;
    int open; /* how many run queued work right now */
    char fails[64];
    int left; /* calls until it does */
    cudaError_t last;
    size_t memory = (size_t)1 << 40;
} r;

void allow(int protection)
{
    for (const piece &a : r.pieces)
        if (mprotect(a.map, a.map_bytes, protection) != 0)
            abort();
}

/* New memory holds NaN. */
void spoil(char *map, size_t bytes)
{
    if (mprotect(map, bytes, PROT_READ | PROT_WRITE) != 0)
        abort();
    memset(map, 0xff, bytes);
    if (!r.open && mprotect(map, bytes, PROT_NONE) != 0)
        abort();
}

/* body bytes, page bytes behind them, nothing accessible. Null: no memory. */
char *map_piece(size_t body, size_t page)
{
    size_t align = body >= HUGE_PAGE ? HUGE_PAGE : page;
    size_t all = body + page + align - page;
    char *map = (char *)mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return nullptr;
    char *from = (char *)(((uintptr_t)map + align - 1) / align * align);
    char *to = from + body + page;
    if (from > map)
        munmap(map, (size_t)(from - map));
    if (to < map + all)
        munmap(to, (size_t)(map + all - to));
    if (align == HUGE_PAGE)
        (void)madvise(from, body, MADV_HUGEPAGE);
    return from;
}

} // namespace

bool fake_fails(const char *function)
{
    if (strcmp(r.fails, function) != 0 || r.left-- > 0)
        return false;
    r.fails[0] = '\0';
    return true;
}

cudaError_t fake_told(cudaError_t e)
{
    if (e != cudaSuccess)
        r.last = e;
    return e;
}

void fake_memory_open(void)
{
    if (!r.open++)
        allow(PROT_READ | PROT_WRITE);
}

void fake_memory_close(void)
{
    if (!--r.open)
        allow(PROT_NONE);
}

void fake_cudart_fail(const char *function, int calls)
{
    snprintf(r.fails, sizeof(r.fails), "%s", function);
    r.left = calls;
}

int fake_cudart_pieces(void)
{
    return (int)r.pieces.size();
}

size_t fake_cudart_bytes(void)
{
    size_t all = 0;

    for (const piece &a : r.pieces)
        all += a.bytes;
    return all;
}

void fake_cudart_memory(size_t bytes)
{
    r.memory = bytes;
}

extern "C" {

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    const size_t used = fake_cudart_bytes();

    *all = r.memory;
    *left = used < r.memory ? r.memory - used : 0;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **ret, size_t bytes)
{
    if (fake_fails("cudaMalloc") || fake_cudart_bytes() + bytes > r.memory)
        return fake_told(cudaErrorMemoryAllocation);
    if (bytes == 0) {
        *ret = nullptr;
        return cudaSuccess;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = (bytes + page - 1) / page * page;
    char *map = map_piece(body, page);
    if (!map)
        return cudaErrorMemoryAllocation;
    /* As near to the page behind as CUDA's alignment lets us. */
    r.pieces.push_back(piece{map, map + (body - bytes) / 256 * 256, body, bytes});
    *ret = r.pieces.back().p;
    spoil(map, body);
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    for (size_t i = 0; p && i < r.pieces.size(); i++) {
        if (r.pieces[i].p != p)
            continue;
        munmap(r.pieces[i].map, r.pieces[i].map_bytes + (size_t)sysconf(_SC_PAGESIZE));
        r.pieces.erase(r.pieces.begin() + (long)i);
        return cudaSuccess;
    }
    return p ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaMallocHost(void **ret, size_t bytes)
{
    if (fake_fails("cudaMallocHost") || !(*ret = calloc(1, bytes)))
        return fake_told(cudaErrorMemoryAllocation);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind,
                            cudaStream_t stream)
{
    if (fake_fails("cudaMemcpyAsync"))
        return cudaErrorInvalidValue;
    emulate_queue(stream, [=] { memcpy(to, from, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int byte, size_t bytes, cudaStream_t stream)
{
    emulate_queue(stream, [=] { memset(p, byte, bytes); });
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device >= 0 && device < FAKE_CUDART_DEVICES ? cudaSuccess : fake_told(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int)
{
    memset(ret, 0, sizeof(*ret));
    snprintf(ret->name, sizeof(ret->name), "emulated");
    ret->major = 9;
    ret->multiProcessorCount = 4;
    return cudaSuccess;
}

cudaError_t cudaPeekAtLastError(void)
{
    return r.last;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t last = r.last;
    r.last = cudaSuccess;
    return last;
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaErrorMemoryAllocation ? "out of memory"
           : e == cudaErrorInvalidDevice  ? "invalid device ordinal"
           : e == cudaErrorNotReady       ? "device not ready"
                                          : "an error of the fake runtime";
}
}
