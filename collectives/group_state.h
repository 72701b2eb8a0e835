/* group_state.h - what the files of a group share (group.h).
 *
 * Ownership: struct group owns its lists, scratch and shared pieces, and borrows the parent.
 */
#ifndef TK_COLLECTIVES_GROUP_STATE_H
#define TK_COLLECTIVES_GROUP_STATE_H

#include "collectives/collectives.h"

enum {
    GROUP_SCRATCH_BYTES = 1 << 20
}; /* what all peers' slices of a sum take; stays in the second-level cache */

enum group_op {
    GROUP_ALL_REDUCE = 1,
    GROUP_ALL_REDUCE_F64,
    GROUP_BROADCAST,
    GROUP_ALL_GATHER,
    GROUP_REDUCE_SCATTER,
    GROUP_BARRIER,
    GROUP_SHARED,
};

struct group {
    struct collectives *parent;
    int *member; /* [n] ranks of the parent, ascending */
    int n, me;
    size_t slice; /* elements of a sum that one exchange carries */
    char *scratch;
    const void **src;
    float *shared[COLLECTIVES_SHARED_MAX];
    int n_shared;
    struct err failed; /* the first failure: the answer to every later call */
};

/* Every call's first step: all members say what they do, flags are OR-ed, differences are ERR_INVALID. */
int group_begin(struct group *g, enum group_op op, uint64_t n, int root, uint32_t *flags, int64_t timeout_ms,
                int64_t *deadline_ms, struct err *err) MUST_CHECK;

/* Exchange with member `peer`; a length of 0 is not sent. */
int group_swap(struct group *g, int peer, const void *out, size_t out_len, void *in, size_t in_len,
               int64_t deadline_ms, struct err *err) MUST_CHECK;

/* Keep a failure. Always -1. */
int group_fail(struct group *g, const struct err *err);

/* group_reduce.c: the table's entries of the same names. */
int group_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                     struct err *err) MUST_CHECK;
int group_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms,
                         struct err *err) MUST_CHECK;
int group_reduce_scatter(struct collectives *c, float *x, size_t n, int64_t timeout_ms,
                         struct err *err) MUST_CHECK;

#endif
