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

enum state : unsigned char { READY, WAITS_BLOCK, WAITS_WARP, DONE };

struct copy16 {
    void *to;
    const void *from; /* nullptr: zeros */
};

/* A stack, and the point where its code continues. It lives on from thread to thread, from launch to launch. */
struct fiber {
    stack_place at;
    char *stack;
    void *fake; /* AddressSanitizer's */
};

/* A thread of the block. It has a fibre from its first instruction to its last. */
struct lane {
    fiber *on;
    uint3 thread;
    /* What it shows its warp, one exchange here, the next one there: whoever writes again knows that all have read. */
    char value[2][VALUE_MAX];
    unsigned turn;
    std::vector<copy16> copies; /* that it requested: up to `copied` they are there */
    size_t copied;
    std::vector<size_t> groups; /* where each ends in copies: up to `waited` they are there */
    size_t waited;
};

/* Shared memory lives on too, poisoned until a block requests it. */
struct shared {
    const void *place;
    size_t bytes;
    void *p;
};

struct machine {
    std::vector<lane> lanes;
    std::vector<state> is; /* of each lane */
    size_t threads, turn, done;
    std::deque<fiber> fibers;
    std::vector<fiber *> idle; /* the one that ran last is the last: its stack is in the cache */
    fiber home;
    bool from_home;
    const void *home_stack;
    size_t home_bytes;
    lane *now;
    const std::function<void()> *kernel;
    std::vector<shared> ever;
    shared piece[SHARED_MAX]; /* of this block */
    int pieces;
    size_t shared_bytes; /* that the launch requested */
    bool descending;
    unsigned long launches;
    unsigned grid_y; /* 0: as many as a GPU takes */

    ~machine()
    {
        for (fiber &f : fibers)
            free(f.stack);
        for (shared &s : ever)
            free(s.p);
    }
} m;

[[noreturn]] void broken(const char *what)
{
    emulate_broken(what);
}

/* From one fibre to another. */
void go(fiber *from, fiber *to)
{
#if EMULATE_ASAN
    const bool home = to == &m.home;
    __sanitizer_start_switch_fiber(&from->fake, home ? m.home_stack : to->stack,
                                   home ? m.home_bytes : STACK_BYTES);
#endif
    m.from_home = from == &m.home;
    stack_go(&from->at, &to->at);
#if EMULATE_ASAN
    const void *stack;
    size_t bytes;
    __sanitizer_finish_switch_fiber(from->fake, &stack, &bytes);
    if (m.from_home)
        m.home_stack = stack, m.home_bytes = bytes;
#endif
}

/* The next one of this pass that can continue; nullptr: none. */
lane *next_ready()
{
    while (m.turn < m.threads) {
        size_t i = m.descending ? m.threads - 1 - m.turn : m.turn;
        m.turn++;
        if (m.is[i] == READY)
            return &m.lanes[i];
    }
    return nullptr;
}

void begin();

fiber *idle_fiber()
{
    if (m.idle.empty()) {
        m.fibers.emplace_back();
        fiber *f = &m.fibers.back();
        f->stack = (char *)malloc(STACK_BYTES);
        /* Not all at the same distance from a page's begin: their frames would take the same lines of the cache. */
        stack_prepare(&f->at, f->stack, STACK_BYTES - m.fibers.size() % 64 * 64, begin);
        return f;
    }
    fiber *f = m.idle.back();
    m.idle.pop_back();
    return f;
}

/* It is this one's turn; nullptr: the pass is over. */
void take_turn(fiber *from, lane *next)
{
    if (!next) {
        go(from, &m.home);
        return;
    }
    m.now = next;
    emulate_at.thread = next->thread;
    if (!next->on)
        next->on = idle_fiber();
    if (next->on != from)
        go(from, next->on);
}

void wait_for(state what)
{
    lane *l = m.now;
    m.is[(size_t)(l - m.lanes.data())] = what;
    take_turn(l->on, next_ready());
}

void end_copies()
{
    emulate_copy_commit();
    lane *l = m.now;
    if (l->copied < l->copies.size())
        broken("a thread ends before its copies are there");
    l->copies.clear();
    l->groups.clear();
    l->copied = l->waited = 0;
}

/* One thread after the other. One that has not waited leaves its fibre to the next. */
void begin()
{
#if EMULATE_ASAN
    const void *stack;
    size_t bytes;
    __sanitizer_finish_switch_fiber(nullptr, &stack, &bytes);
    if (m.from_home)
        m.home_stack = stack, m.home_bytes = bytes;
#endif
    for (;;) {
        (*m.kernel)();
        end_copies();
        lane *l = m.now;
        m.is[(size_t)(l - m.lanes.data())] = DONE;
        m.done++;
        m.idle.push_back(l->on);
        take_turn(l->on, next_ready());
    }
}

/* Lanes that wait for the same shuffle or barrier continue together, once all lanes of the warp or block wait. */
bool release_waiting()
{
    bool any = false;
    size_t at_barrier = 0;
    for (size_t w = 0; w < m.threads; w += 32) {
        size_t lanes = m.threads - w < 32 ? m.threads - w : 32, waiting = 0;
        for (size_t i = w; i < w + lanes; i++) {
            waiting += m.is[i] == WAITS_WARP;
            at_barrier += m.is[i] == WAITS_BLOCK;
        }
        if (waiting == lanes)
            memset(&m.is[w], READY, lanes), any = true;
        else if (waiting)
            broken("some lanes of a warp do not take part in a shuffle");
    }
    if (at_barrier == m.threads)
        memset(m.is.data(), READY, m.threads), any = true;
    return any;
}

void begin_block()
{
    m.done = 0;
    for (size_t i = 0; i < m.threads; i++) {
        lane *l = &m.lanes[i];
        l->on = nullptr;
        l->thread = uint3{(unsigned)i % blockDim.x, (unsigned)i / blockDim.x % blockDim.y,
                          (unsigned)i / blockDim.x / blockDim.y};
        l->turn = 0;
        m.is[i] = READY;
    }
}

void poison(const shared *s)
{
#if EMULATE_ASAN
    __asan_poison_memory_region(s->p, s->bytes);
#else
    (void)s;
#endif
}

void run_block()
{
    begin_block();
    while (m.done < m.threads) {
        m.turn = 0;
        take_turn(&m.home, next_ready());
        if (m.done < m.threads && !release_waiting())
            broken("some threads wait at a barrier that others have left behind");
    }
    for (int i = 0; i < m.pieces; i++)
        poison(&m.piece[i]);
    m.pieces = 0;
}

shared find_shared(const void *place, size_t bytes)
{
    for (const shared &s : m.ever)
        if (s.place == place && s.bytes == bytes)
            return s;
    m.ever.push_back(shared{place, bytes, aligned_alloc(16, bytes)});
    return m.ever.back();
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
    if (m.lanes.size() < n) {
        m.lanes.resize(n);
        m.is.resize(n);
    }
    m.threads = n;
    m.kernel = &kernel;
    m.shared_bytes = shared_bytes;
    m.launches++;
    for (size_t i = 0; i < blocks; i++) {
        size_t b = m.descending ? blocks - 1 - i : i;
        emulate_at.block =
            uint3{(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        run_block();
    }
}

void *emulate_shared(const void *place, size_t bytes)
{
    for (int i = 0; i < m.pieces; i++)
        if (m.piece[i].place == place)
            return m.piece[i].p;
    if (m.pieces == SHARED_MAX)
        broken("too many pieces of shared memory");
    const shared s = find_shared(place, (bytes + 15) / 16 * 16);
#if EMULATE_ASAN
    __asan_unpoison_memory_region(s.p, s.bytes);
#endif
    memset(s.p, 0xff, s.bytes);
    m.piece[m.pieces++] = s;
    return s.p;
}

void *emulate_shared_by_launch(const void *place)
{
    if (m.shared_bytes == 0)
        broken("shared memory that the launch did not ask for");
    return emulate_shared(place, m.shared_bytes);
}

void emulate_wait_block(void)
{
    wait_for(WAITS_BLOCK);
}

void emulate_broken(const char *what)
{
    fprintf(stderr, "emulated kernel, block %u,%u,%u: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, what);
    abort();
}

/* Shows it the warp, and waits until all have shown theirs: where they lie. */
static unsigned show(const void *mine, size_t bytes)
{
    const unsigned turn = m.now->turn;
    memcpy(m.now->value[turn], mine, bytes);
    m.now->turn = !turn;
    wait_for(WAITS_WARP);
    return turn;
}

void emulate_share(const void *mine, size_t bytes, void *all)
{
    size_t self = threadIdx.x + blockDim.x * (threadIdx.y + (size_t)blockDim.y * threadIdx.z);
    size_t first = self / 32 * 32;
    if (bytes > VALUE_MAX || first + 32 > (size_t)blockDim.x * blockDim.y * blockDim.z)
        broken("a warp that is not whole");
    const unsigned turn = show(mine, bytes);
    for (size_t i = 0; i < 32; i++)
        memcpy((char *)all + i * bytes, m.lanes[first + i].value[turn], bytes);
}

void emulate_exchange(const void *mine, void *theirs, size_t bytes, unsigned from)
{
    size_t self = threadIdx.x + blockDim.x * (threadIdx.y + (size_t)blockDim.y * threadIdx.z);
    size_t other = self / 32 * 32 + from;
    if (bytes > VALUE_MAX || other >= (size_t)blockDim.x * blockDim.y * blockDim.z)
        broken("a shuffle from a lane that is not there");
    const unsigned turn = show(mine, bytes);
    memcpy(theirs, m.lanes[other].value[turn], bytes);
}

void emulate_copy16(void *to, const void *from, bool wanted)
{
    if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0)
        broken("a copy at an address that is no multiple of 16");
    m.now->copies.push_back(copy16{to, wanted ? from : nullptr});
}

void emulate_copy_commit(void)
{
    m.now->groups.push_back(m.now->copies.size());
}

void emulate_copy_wait(unsigned left)
{
    lane *l = m.now;
    for (; l->groups.size() - l->waited > left; l->waited++)
        for (; l->copied < l->groups[l->waited]; l->copied++) {
            const copy16 *c = &l->copies[l->copied];
            c->from ? (void)memcpy(c->to, c->from, 16) : (void)memset(c->to, 0, 16);
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
