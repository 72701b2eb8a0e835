/* rank_state.h - what a rank does at the moment, in a memory file that its launcher reads: for the detection of hangs and
 * stragglers. CONTRACT_ENV_RANK_STATE names the file.
 *
 * The launcher makes the file before it starts its ranks, with one slot of 128 bytes for each local rank. A rank writes
 * its own slot only, with relaxed atomic stores: no system call, no lock. Every rank of the node, and whatever it starts,
 * can write the whole file, so the launcher believes nothing of it: a text is bounded, a number is only compared.
 *
 * Ownership: the launcher owns the descriptor and its mapping; a rank keeps its mapping until it ends.
 * Threads:   one thread of a rank writes a slot, but for `signs`; any thread may read it.
 * Units:     _us are microseconds.
 * Errors:    none: without the file a rank gets memory of its own, which nobody reads.
 */
#ifndef TK_COMMON_RANK_STATE_H
#define TK_COMMON_RANK_STATE_H

#include "common/cleanup.h"
#include "common/memory_file.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What a rank is in; these numbers are in the file. 0: it never wrote. */
enum rank_phase {
    RANK_UNKNOWN,
    RANK_STARTING, /* loads data, model, checkpoint */
    RANK_TRAINING,
    RANK_VALIDATING,
    RANK_SAVING,
    RANK_PHASES
};

/* A collective call; these numbers are in the file. 0: none yet. */
enum rank_call {
    RANK_CALL_NONE,
    RANK_CALL_OPEN, /* the first exchange: the ranks meet */
    RANK_CALL_ALL_REDUCE,
    RANK_CALL_BROADCAST,
    RANK_CALL_ALL_GATHER,
    RANK_CALL_REDUCE_SCATTER,
    RANK_CALL_BARRIER,
    RANK_CALL_SEND,
    RANK_CALL_RECV,
    RANK_CALLS
};

struct rank_slot {
    _Atomic uint32_t phase; /* enum rank_phase */
    _Atomic uint32_t call;  /* enum rank_call: the last collective that it began */
    _Atomic uint64_t begun; /* collectives begun, the present one included; all ranks count the same calls */
    _Atomic uint64_t ended; /* collectives ended: below `begun` while it is in one */
    _Atomic uint64_t step;  /* steps of training done in this process */
    _Atomic uint64_t
        signs; /* grows with anything else that shows life: a batch of validation, a part of a checkpoint */
    _Atomic uint64_t
        step_us; /* time of all those steps outside of collectives: what this rank took by itself */
    uint64_t unused[10];
};

_Static_assert(sizeof(struct rank_slot) == 128, "a slot has 128 bytes");

/* The launcher: make the file for n ranks and map it at *slots, all zero. Returns the descriptor, which the caller closes
 * after rank_state_unmap, and the start of the variable's value in `where`: "/SLOT" follows. -1: memory files are forbidden
 * here, *slots is NULL. */
int rank_state_make(int n, struct rank_slot **slots, char where[static MEMORY_FILE_BYTES]) MUST_CHECK;
void rank_state_unmap(struct rank_slot *slots, int n);

/* The launcher, before it starts a round's ranks: as if nobody had written. */
void rank_state_clear(struct rank_slot *slots, int n);

/* A rank: its slot. `where` is the variable's value, "PID/NUMBER/SLOT", or NULL. Where there is no such file of a living
 * process, or it has no such slot, memory of this process's own; never NULL. */
struct rank_slot *rank_state_join(const char *where);

/* A rank: one more thing that shows life. Any thread. */
static inline void rank_state_sign(struct rank_slot *s)
{
    atomic_fetch_add_explicit(&s->signs, 1, memory_order_relaxed);
}

/* A rank: what it is in from now on. */
static inline void rank_state_phase(struct rank_slot *s, enum rank_phase phase)
{
    atomic_store_explicit(&s->phase, phase, memory_order_relaxed);
}

/* "all_reduce"; "a collective" for an unknown number. */
const char *rank_call_name(uint32_t call);

#endif
