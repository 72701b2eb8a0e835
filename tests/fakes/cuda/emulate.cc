/* emulate.cc - fibres, and whose turn it is. */
#include "emulate.h"
#include "cudart.h"
#include "stack.h"

#include <deque>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>
#ifdef __has_feature /* clang's way to say it */
#if __has_feature(address_sanitizer)
#define EMULATE_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define EMULATE_ASAN 1
#endif
#ifndef EMULATE_ASAN
#define EMULATE_ASAN 0
#endif
#if EMULATE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

struct emulate_place emulate_at;

namespace
{

/* So much shared memory may a block ask the smallest of those GPUs for that kernels are compiled for (8.6, 8.9, 12.0: "Technical
 * Specifications per Compute Capability" of the CUDA C++ Programming Guide); 8.0 and 9.0 have more. */
enum {
    STACK_BYTES = 128 * 1024,
    THREADS_MAX = 1024,
    VALUE_MAX = 32,
    SHARED_MAX = 16,
    SHARED_BYTES_MAX = 99 * 1024
};

enum state { READY, WAITS_BLOCK, WAITS_WARP, DONE };

struct copy16 {
    void *to;
    const void *from; /* nullptr: zeros */
};

struct fiber {
    stack_place at;
    char *stack;
    state is;
    uint3 thread;
    char value[VALUE_MAX];
    void *fake; /* AddressSanitizer's */
    std::vector<copy16> asked;
    std::deque<std::vector<copy16>> groups;
};

struct shared {
    const void *place;
    void *p;
};

struct machine {
    std::vector<fiber> fibers;
    stack_place home;
    void *home_fake;
    const void *home_stack;
    size_t home_bytes;
    fiber *now;
    const std::function<void()> *kernel;
    shared piece[SHARED_MAX];
    int pieces;
    size_t shared_bytes; /* that the launch asked for */
    bool descending;
    unsigned long launches;
    unsigned grid_y; /* 0: as many as a GPU takes */

    ~machine()
    {
        for (fiber &f : fibers)
            free(f.stack);
    }
} m;

[[noreturn]] void broken(const char *what)
{
    emulate_broken(what);
}

void leaves(void **fake, const void *stack, size_t bytes)
{
#if EMULATE_ASAN
    __sanitizer_start_switch_fiber(fake, stack, bytes);
#else
    (void)fake, (void)stack, (void)bytes;
#endif
}

void arrives(void *fake, const void **stack, size_t *bytes)
{
#if EMULATE_ASAN
    __sanitizer_finish_switch_fiber(fake, stack, bytes);
#else
    (void)fake, (void)stack, (void)bytes;
#endif
}

void go_home(state is)
{
    fiber *f = m.now;
    f->is = is;
    leaves(is == DONE ? nullptr : &f->fake, m.home_stack, m.home_bytes);
    stack_go(&f->at, &m.home);
    arrives(f->fake, nullptr, nullptr);
}

/* A function of its own: begin never returns, and what AddressSanitizer guards of its frame would stay so on the next fibre's
 * stack. */
__attribute__((noinline)) void end_copies()
{
    emulate_copy_commit();
    for (const std::vector<copy16> &group : m.now->groups)
        if (!group.empty())
            broken("a thread ends before its copies are there");
    m.now->groups.clear();
}

void begin()
{
    arrives(nullptr, &m.home_stack, &m.home_bytes);
    (*m.kernel)();
    end_copies();
    go_home(DONE);
}

void resume(fiber *f)
{
    m.now = f;
    emulate_at.thread = f->thread;
    leaves(&m.home_fake, f->stack, STACK_BYTES);
    stack_go(&m.home, &f->at);
    arrives(m.home_fake, nullptr, nullptr);
}

/* Whoever ran on it has never returned, so what AddressSanitizer keeps about its frames is still there. */
void clean(char *stack)
{
#if EMULATE_ASAN
    __asan_unpoison_memory_region(stack, STACK_BYTES);
#else
    (void)stack;
#endif
}

void start(fiber *f, uint3 thread)
{
    if (!f->stack)
        f->stack = (char *)malloc(STACK_BYTES);
    clean(f->stack);
    stack_prepare(&f->at, f->stack, STACK_BYTES, begin);
    f->thread = thread;
    f->is = READY;
    f->fake = nullptr;
}

/* Of the fibres first..first+n-1, how many are so. */
size_t count(size_t first, size_t n, state is)
{
    size_t found = 0;
    for (size_t i = first; i < first + n; i++)
        found += m.fibers[i].is == is;
    return found;
}

void release(size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++)
        m.fibers[i].is = READY;
}

/* Whoever waits for the same goes on together. */
bool release_waiting(size_t threads)
{
    bool any = false;
    for (size_t w = 0; w < threads; w += 32) {
        size_t lanes = threads - w < 32 ? threads - w : 32;
        size_t waiting = count(w, lanes, WAITS_WARP);
        if (waiting == lanes)
            release(w, lanes), any = true;
        else if (waiting && count(w, lanes, READY) == 0)
            broken("some lanes of a warp do not take part in a shuffle");
    }
    if (!any && count(0, threads, WAITS_BLOCK) == threads)
        release(0, threads), any = true;
    return any;
}

void run_block(size_t threads)
{
    for (size_t i = 0; i < threads; i++)
        start(&m.fibers[i], uint3{(unsigned)i % blockDim.x, (unsigned)i / blockDim.x % blockDim.y,
                                  (unsigned)i / blockDim.x / blockDim.y});
    while (count(0, threads, DONE) < threads) {
        for (size_t i = 0; i < threads; i++) {
            fiber *f = &m.fibers[m.descending ? threads - 1 - i : i];
            if (f->is == READY)
                resume(f);
        }
        if (count(0, threads, DONE) < threads && !release_waiting(threads))
            broken("some threads wait at a barrier that others have left behind");
    }
    for (int i = 0; i < m.pieces; i++)
        free(m.piece[i].p);
    m.pieces = 0;
}

} // namespace

void emulate_run(dim3 grid, dim3 threads, size_t shared_bytes, const std::function<void()> &kernel)
{
    size_t n = (size_t)threads.x * threads.y * threads.z;
    size_t blocks = (size_t)grid.x * grid.y * grid.z;
    emulate_at.grid = grid;
    emulate_at.threads = threads;
    if (n == 0 || n > THREADS_MAX || blocks == 0 || grid.y > (m.grid_y ? m.grid_y : 65535) ||
        grid.z > 65535 || shared_bytes > SHARED_BYTES_MAX)
        broken("a grid that a GPU refuses");
    if (m.fibers.size() < n)
        m.fibers.resize(n);
    m.kernel = &kernel;
    m.shared_bytes = shared_bytes;
    m.launches++;
    for (size_t i = 0; i < blocks; i++) {
        size_t b = m.descending ? blocks - 1 - i : i;
        emulate_at.block =
            uint3{(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        run_block(n);
    }
}

void *emulate_shared(const void *place, size_t bytes)
{
    for (int i = 0; i < m.pieces; i++)
        if (m.piece[i].place == place)
            return m.piece[i].p;
    if (m.pieces == SHARED_MAX)
        broken("too many pieces of shared memory");
    void *p = aligned_alloc(16, (bytes + 15) / 16 * 16);
    memset(p, 0xff, bytes);
    m.piece[m.pieces++] = shared{place, p};
    return p;
}

void *emulate_shared_by_launch(const void *place)
{
    if (m.shared_bytes == 0)
        broken("shared memory that the launch did not ask for");
    return emulate_shared(place, m.shared_bytes);
}

void emulate_wait_block(void)
{
    go_home(WAITS_BLOCK);
}

void emulate_broken(const char *what)
{
    fprintf(stderr, "emulated kernel, block %u,%u,%u: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, what);
    abort();
}

void emulate_share(const void *mine, size_t bytes, void *all)
{
    size_t self = threadIdx.x + blockDim.x * (threadIdx.y + (size_t)blockDim.y * threadIdx.z);
    size_t first = self / 32 * 32;
    if (bytes > VALUE_MAX || first + 32 > (size_t)blockDim.x * blockDim.y * blockDim.z)
        broken("a warp that is not whole");
    memcpy(m.now->value, mine, bytes);
    go_home(WAITS_WARP);
    for (size_t i = 0; i < 32; i++)
        memcpy((char *)all + i * bytes, m.fibers[first + i].value, bytes);
    go_home(WAITS_WARP);
}

void emulate_exchange(const void *mine, void *theirs, size_t bytes, unsigned from)
{
    size_t self = threadIdx.x + blockDim.x * (threadIdx.y + (size_t)blockDim.y * threadIdx.z);
    size_t other = self / 32 * 32 + from;
    if (bytes > VALUE_MAX || other >= (size_t)blockDim.x * blockDim.y * blockDim.z)
        broken("a shuffle from a lane that is not there");
    memcpy(m.now->value, mine, bytes);
    go_home(WAITS_WARP);
    memcpy(theirs, m.fibers[other].value, bytes);
    go_home(WAITS_WARP);
}

void emulate_copy16(void *to, const void *from, bool wanted)
{
    if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0)
        broken("a copy at an address that is no multiple of 16");
    m.now->asked.push_back(copy16{to, wanted ? from : nullptr});
}

void emulate_copy_commit(void)
{
    m.now->groups.push_back(m.now->asked);
    m.now->asked.clear();
}

void emulate_copy_wait(unsigned left)
{
    while (m.now->groups.size() > left) {
        for (const copy16 &c : m.now->groups.front())
            c.from ? (void)memcpy(c.to, c.from, 16) : (void)memset(c.to, 0, 16);
        m.now->groups.pop_front();
    }
}

void emulate_grid_y(unsigned most)
{
    m.grid_y = most;
}

void emulate_order(bool descending)
{
    m.descending = descending;
}

unsigned long emulate_launches(void)
{
    return m.launches;
}
