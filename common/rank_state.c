/* rank_state.c - make the file of the ranks' states in the launcher, and find a rank's slot in it. */
#include "common/rank_state.h"

#include "common/contract.h"
#include "common/memory.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

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
        _Atomic uint64_t *const counts[] = {&s->begun, &s->ended, &s->step, &s->signs, &s->step_us};
        atomic_store_explicit(&s->phase, RANK_UNKNOWN, memory_order_relaxed);
        atomic_store_explicit(&s->call, RANK_CALL_NONE, memory_order_relaxed);
        for (size_t k = 0; k < ARRAY_LEN(counts); k++)
            atomic_store_explicit(counts[k], 0, memory_order_relaxed);
    }
}

static struct rank_slot *find(const char *where)
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

struct rank_slot *rank_state_join(const char *where)
{
    struct rank_slot *s = find(where);

    return s ? s : memory_must(map(-1, sizeof(*s)));
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
    };

    return call < RANK_CALLS && NAMES[call] ? NAMES[call] : "a collective";
}
