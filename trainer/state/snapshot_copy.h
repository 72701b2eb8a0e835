/* snapshot_copy.h - a copy of a run's state, which the writer thread reads while training continues. saver.c
 * calls it.
 *
 * Units:     snapshot_copy_bytes: 4 bytes per parameter, the buffers, and the optimizer's moments (Adam: 8
 *            bytes per parameter, SGD with momentum: 4) unless moments_gathered is set (snapshot.h).
 * Ownership: snapshot_copy_make to snapshot_copy_release; the memory is allocated once for all checkpoints of
 *            a run. Names and shapes are borrowed from the model, which must outlive the copy.
 * Threads:   another thread may read the result of snapshot_copy_take until the next one.
 * Errors:    a lack of memory, or the container's memory limit (err_is_shortage); the copy is then zeroed. */
#ifndef TK_TRAINER_STATE_SNAPSHOT_COPY_H
#define TK_TRAINER_STATE_SNAPSHOT_COPY_H

#include "trainer/state/snapshot.h"

struct snapshot_copy {
    struct snapshot of; /* points to the fields below */
    struct optim optim;
    struct cursor cursor;
    unsigned char *memory; /* values, buffers, moments */
    size_t bytes;          /* 0: none */
};

size_t snapshot_copy_bytes(const struct snapshot *s);

/* Allocate memory for the state of this run. */
int snapshot_copy_make(struct snapshot_copy *c, const struct snapshot *s, struct err *err) MUST_CHECK;

/* Copy s, which must have the model and optimizer of snapshot_copy_make. The result is valid until the next
 * call. */
const struct snapshot *snapshot_copy_take(struct snapshot_copy *c, const struct snapshot *s);

/* Accepts a zeroed one. */
void snapshot_copy_release(struct snapshot_copy *c);

#endif
