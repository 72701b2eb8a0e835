/* snapshot_copy.h - a copy of a run's state in memory of its own, from which a checkpoint is written while the training goes on.
 *
 * Units:     snapshot_copy_bytes: 4 bytes per parameter and the buffers, and the optimiser's moments (Adam: 8 bytes per parameter,
 *            SGD with momentum: 4) unless they stay (snapshot.h).
 * Ownership: snapshot_copy_make to snapshot_copy_release; the memory is taken once, for all checkpoints of a run. Names and shapes
 *            are the model's, which do not change: it must outlive the copy.
 * Threads:   what snapshot_copy_take returns may be read by another thread until the next take.
 * Errors:    a lack of memory, or of what the container's limit leaves (err_is_shortage); the copy is then zeroed.
 */
#ifndef TK_TRAINER_STATE_SNAPSHOT_COPY_H
#define TK_TRAINER_STATE_SNAPSHOT_COPY_H

#include "trainer/state/snapshot.h"

struct snapshot_copy {
    struct snapshot of; /* of the copy; what it points to are the next ones */
    struct optim optim;
    struct cursor cursor;
    unsigned char *memory; /* values, buffers, moments */
    size_t bytes;          /* 0: there is none */
};

size_t snapshot_copy_bytes(const struct snapshot *s);

/* Room for the state of this run. */
int snapshot_copy_make(struct snapshot_copy *c, const struct snapshot *s, struct err *err) MUST_CHECK;

/* Copy all of s, of the same model and optimiser as at first. The result is valid until the next call. */
const struct snapshot *snapshot_copy_take(struct snapshot_copy *c, const struct snapshot *s);

/* Accepts a zeroed one. */
void snapshot_copy_release(struct snapshot_copy *c);

#endif
