/* rank_state.h - what a rank currently does, in a memory file that its launcher reads to detect hangs and
 * stragglers. CONTRACT_ENV_RANK_STATE names the file.
 *
 * The launcher creates the file before it starts its ranks, with one slot of 128 bytes for each local rank. A
 * rank writes only its own slot, with relaxed atomic stores: no system call, no lock. Every rank of the node
 * and its children can write the whole file, so the launcher does not trust it: it bounds texts, and only
 * compares numbers.
 *
 * Ownership: the launcher owns the descriptor and its mapping; a rank keeps its mapping until it ends.
 * Threads:   one thread of a rank writes a slot, except `signs`; any thread may read it.
 * Units:     _us are microseconds.
 * Errors:    none: without the file a rank gets private memory, which nobody reads.
 */
#ifndef TK_HOST_RANK_STATE_H
#define TK_HOST_RANK_STATE_H

#include "common/cleanup.h"
#include "host/memory_file.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The phase of a rank; these numbers are in the file. 0: it has not written yet. */
enum rank_phase {
    RANK_UNKNOWN,
    RANK_STARTING, /* loads data, model, checkpoint */
    RANK_TRAINING,
    RANK_VALIDATING,
    RANK_SAVING,
    RANK_PHASES
};

/* A call of the collectives; these numbers are in the file. */
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
    RANK_CALL_SHARED, /* memory for all of them */
    RANK_CALL_DEVICE, /* a wait for work queued on the GPU, collectives included */
    RANK_CALLS
};

/* begun and ended count only collectives of all ranks, so that all ranks count the same calls. Other calls
 * (send, recv, the wait for a device) count in `signs`. Collectives of a device begin and end when they are
 * queued. */
struct rank_slot {
    _Atomic uint32_t phase; /* enum rank_phase */
    _Atomic uint32_t call;  /* enum rank_call: the current call */
    _Atomic uint64_t begun; /* including the current one */
    _Atomic uint64_t ended; /* less than `begun` during a call */
    _Atomic uint64_t step;  /* steps of training done in this process */
    _Atomic uint64_t signs; /* grows with every other sign of life: a part of a file, a call of some ranks */
    _Atomic uint64_t step_us; /* time of these steps outside of calls: this rank's own work */
    _Atomic uint64_t wait_us; /* their time inside of calls: transfers, and waiting for other ranks */
    _Atomic uint64_t
        since_us;          /* private to the rank: the monotonic time up to which step_us and wait_us count */
    _Atomic uint32_t last; /* enum rank_call: the last call counted in `begun` */
    uint32_t unused[15];
};

_Static_assert(sizeof(struct rank_slot) == 128, "a slot has 128 bytes");

/* Launcher: create the file for n ranks, all zero, and map it at *slots. Returns the descriptor, which the
 * caller closes after rank_state_unmap, and sets `where` to the begin of the variable's value ("/SLOT"
 * follows). -1: memory files are forbidden; *slots is NULL. */
int rank_state_make(int n, struct rank_slot **slots, char where[static MEMORY_FILE_BYTES]) MUST_CHECK;
void rank_state_unmap(struct rank_slot *slots, int n);

/* Launcher, before it starts the ranks of a round: reset all slots to zero. */
void rank_state_clear(struct rank_slot *slots, int n);

/* Rank, before it starts threads: return its slot, which rank_state_alive also uses. `where` is the
 * variable's value, "PID/NUMBER/SLOT", or NULL. Without such a file of a living process, or such a slot, it
 * returns private memory; never NULL. */
struct rank_slot *rank_state_join(const char *where);

/* Record a sign of life in this process's slot, if it has one: a part of a long read or download is done. Any
 * thread. It uses a global, so that code that reads and writes files need not take the slot as an argument.
 */
void rank_state_alive(void);

/* The functions below are for ranks; with slot NULL they do nothing. Record a sign of life: */
void rank_state_sign(struct rank_slot *s);

/* Set the phase; returns the previous one. Times are counted only in RANK_TRAINING. */
enum rank_phase rank_state_phase(struct rank_slot *s, enum rank_phase phase);

/* A step of training is done. */
void rank_state_step(struct rank_slot *s);

/* A call begins, and ends before the next one. */
void rank_state_begin(struct rank_slot *s, enum rank_call call);
void rank_state_end(struct rank_slot *s);

/* "all_reduce"; "a collective" for an unknown number. */
const char *rank_call_name(uint32_t call);

#endif
