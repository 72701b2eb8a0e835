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
#ifndef TK_HOST_RANK_STATE_H
#define TK_HOST_RANK_STATE_H

#include "common/cleanup.h"
#include "host/memory_file.h"

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
    RANK_CALL_DEVICE, /* a wait for what was queued on the GPU, collectives among it */
    RANK_CALLS
};

/* begun and ended count collectives of all ranks, so all ranks count the same calls; others (send, recv, the wait for a device)
 * count as signs. Those of a device are begun and ended when they are queued. */
struct rank_slot {
    _Atomic uint32_t phase; /* enum rank_phase */
    _Atomic uint32_t call;  /* enum rank_call: the call that it is in */
    _Atomic uint64_t begun; /* the present one included */
    _Atomic uint64_t ended; /* below `begun` while it is in one */
    _Atomic uint64_t step;  /* steps of training done in this process */
    _Atomic uint64_t
        signs; /* grows with anything else that shows life: a part of a file, a call of some ranks */
    _Atomic uint64_t step_us; /* time of all those steps outside of calls: what this rank took by itself */
    _Atomic uint64_t wait_us; /* their time inside of calls: data on their way, and waiting for other ranks */
    _Atomic uint64_t since_us; /* of the rank's own: the monotonic clock up to which those two are counted */
    _Atomic uint32_t last;     /* enum rank_call: the call that `begun` counted last */
    uint32_t unused[15];
};

_Static_assert(sizeof(struct rank_slot) == 128, "a slot has 128 bytes");

/* The launcher: make the file for n ranks and map it at *slots, all zero. Returns the descriptor, which the caller closes
 * after rank_state_unmap, and the start of the variable's value in `where`: "/SLOT" follows. -1: memory files are forbidden
 * here, *slots is NULL. */
int rank_state_make(int n, struct rank_slot **slots, char where[static MEMORY_FILE_BYTES]) MUST_CHECK;
void rank_state_unmap(struct rank_slot *slots, int n);

/* The launcher, before it starts a round's ranks: as if nobody had written. */
void rank_state_clear(struct rank_slot *slots, int n);

/* A rank, before it has threads: its slot, which is then the one of the whole process (rank_state_alive). `where` is the variable's value, "PID/NUMBER/SLOT", or NULL. Where there is no such file of a living
 * process, or it has no such slot, memory of this process's own; never NULL. */
struct rank_slot *rank_state_join(const char *where);

/* A part of something long is done (of a file, of a download): a sign of life in the slot of this process, if it has one. Any
 * thread. What reads and writes files lies deep, and a process has one slot: so this one is not handed down to it. */
void rank_state_alive(void);

/* The rest is a rank's; a NULL slot is none, and nothing is noted. One more thing that shows life: */
void rank_state_sign(struct rank_slot *s);

/* What it is in from now on; returns what it was in. Only RANK_TRAINING counts times. */
enum rank_phase rank_state_phase(struct rank_slot *s, enum rank_phase phase);

/* A step of training is done. */
void rank_state_step(struct rank_slot *s);

/* A call begins, and ends before the next one. */
void rank_state_begin(struct rank_slot *s, enum rank_call call);
void rank_state_end(struct rank_slot *s);

/* "all_reduce"; "a collective" for an unknown number. */
const char *rank_call_name(uint32_t call);

#endif
