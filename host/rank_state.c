/* rank_state.c - create the file of the ranks' states in the launcher, and find a rank's slot in it. */
#include "host/rank_state.h"

#include "common/memory.h"
#include "host/rank_contract.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

static struct rank_slot *map(int fd, size_t bytes)
{
    void *p =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

    return p == MAP_FAILED ? NULL : p;
}

int rank_state_make(int n, struct rank_slot **slots, char where[static MEMORY_FILE_BYTES])
{
    const size_t bytes = (size_t)n * sizeof(**slots);
    cleanup_close int fd = memory_file_make(CONTRACT_RANK_STATE_NAME, bytes, where);

    *slots = fd < 0 ? NULL : map(fd, bytes);
    if (!*slots)
        where[0] = '\0';
    return *slots ? TAKE_FD(fd) : -1;
}

void rank_state_unmap(struct rank_slot *slots, int n)
{
    if (slots)
        munmap(slots, (size_t)n * sizeof(*slots));
}

void rank_state_clear(struct rank_slot *slots, int n)
{
    for (int i = 0; slots && i < n; i++) {
        struct rank_slot *s = &slots[i];
        _Atomic uint64_t *const counts[] = {&s->begun,   &s->ended,   &s->step,    &s->signs,
                                            &s->step_us, &s->wait_us, &s->since_us};
        atomic_store_explicit(&s->phase, RANK_UNKNOWN, memory_order_relaxed);
        atomic_store_explicit(&s->call, RANK_CALL_NONE, memory_order_relaxed);
        atomic_store_explicit(&s->last, RANK_CALL_NONE, memory_order_relaxed);
        for (size_t k = 0; k < ARRAY_LEN(counts); k++)
            atomic_store_explicit(counts[k], 0, memory_order_relaxed);
    }
}

static struct rank_slot *open_slot(const char *where)
{
    const char *cut = where ? strrchr(where, '/') : NULL;
    struct stat st;
    int64_t slot;

    if (!cut || !sv_i64(sv_from(cut + 1), 0, INT_MAX, &slot))
        return NULL;
    cleanup_close int fd =
        memory_file_open(CONTRACT_RANK_STATE_NAME, (struct sv){where, (size_t)(cut - where)});
    const size_t bytes = ((size_t)slot + 1) * sizeof(struct rank_slot);
    if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)bytes)
        return NULL;
    struct rank_slot *all = map(fd, bytes);
    return all ? all + slot : NULL;
}

static struct rank_slot *of_process;

struct rank_slot *rank_state_join(const char *where)
{
    struct rank_slot *s = open_slot(where);

    of_process = s ? s : memory_must(map(-1, sizeof(*s)));
    return of_process;
}

void rank_state_alive(void)
{
    rank_state_sign(of_process);
}

void rank_state_sign(struct rank_slot *s)
{
    if (s)
        atomic_fetch_add_explicit(&s->signs, 1, memory_order_relaxed);
}

/* Add to a number that only one thread writes: no locked instruction is needed. */
static void add(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Add the time since the last call of this function to *to, unless that is NULL. */
static void count_time(struct rank_slot *s, _Atomic uint64_t *to)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    const uint64_t now = (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
    if (to && atomic_load_explicit(&s->phase, memory_order_relaxed) == RANK_TRAINING)
        add(to, now - atomic_load_explicit(&s->since_us, memory_order_relaxed));
    atomic_store_explicit(&s->since_us, now, memory_order_relaxed);
}

enum rank_phase rank_state_phase(struct rank_slot *s, enum rank_phase phase)
{
    if (!s)
        return RANK_UNKNOWN;
    const uint32_t was = atomic_load_explicit(&s->phase, memory_order_relaxed);
    count_time(s, NULL);
    atomic_store_explicit(&s->phase, phase, memory_order_relaxed);
    return was < RANK_PHASES ? (enum rank_phase)was : RANK_UNKNOWN;
}

void rank_state_step(struct rank_slot *s)
{
    if (!s)
        return;
    count_time(s, &s->step_us);
    add(&s->step, 1);
}

static bool is_of_all_ranks(uint32_t call)
{
    return call != RANK_CALL_SEND && call != RANK_CALL_RECV && call != RANK_CALL_DEVICE;
}

void rank_state_begin(struct rank_slot *s, enum rank_call call)
{
    if (!s)
        return;
    count_time(s, &s->step_us);
    atomic_store_explicit(&s->call, call, memory_order_relaxed);
    if (!is_of_all_ranks(call))
        return;
    atomic_store_explicit(&s->last, call, memory_order_relaxed);
    add(&s->begun, 1);
}

void rank_state_end(struct rank_slot *s)
{
    if (!s)
        return;
    const uint32_t call = atomic_load_explicit(&s->call, memory_order_relaxed);
    count_time(s, &s->wait_us);
    atomic_store_explicit(&s->call, RANK_CALL_NONE, memory_order_relaxed);
    if (is_of_all_ranks(call))
        add(&s->ended, 1);
    else
        rank_state_sign(s);
}

const char *rank_call_name(uint32_t call)
{
    static const char *const NAMES[RANK_CALLS] = {
        [RANK_CALL_OPEN] = "the first exchange",
        [RANK_CALL_ALL_REDUCE] = "all_reduce",
        [RANK_CALL_BROADCAST] = "broadcast",
        [RANK_CALL_ALL_GATHER] = "all_gather",
        [RANK_CALL_REDUCE_SCATTER] = "reduce_scatter",
        [RANK_CALL_BARRIER] = "barrier",
        [RANK_CALL_SEND] = "send",
        [RANK_CALL_RECV] = "recv",
        [RANK_CALL_SHARED] = "shared memory",
        [RANK_CALL_DEVICE] = "the GPU's work",
    };

    return call < RANK_CALLS && NAMES[call] ? NAMES[call] : "a collective";
}
