/* group_state.h - struct group and the functions that group.c and group_reduce.c share. Internal to group*.c.
 *
 * Ownership: struct group owns its lists, scratch and shared pieces, and borrows the parent.
 */
#ifndef TK_COLLECTIVES_GROUP_STATE_H
#define TK_COLLECTIVES_GROUP_STATE_H

#include "collectives/collectives.h"

enum {
    GROUP_SCRATCH_BYTES = 1 << 20
}; /* for the slices of all members in a sum; fits into the second-level cache */

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
    int *member;      /* [n] ranks of the parent, ascending */
    int n, me;        /* this process is member[me] */
    size_t slice;     /* elements that one exchange of a sum carries */
    char *scratch;    /* [n * slice] elements received from the peers */
    const void **src; /* [n] the vectors to sum */
    float *shared[COLLECTIVES_SHARED_MAX];
    int n_shared;
    struct err failed; /* the first failure, returned by every later call */
};

/* The first step of every collective: exchange its description with all members and OR the flags (may be NULL).
 * ERR_INVALID when descriptions differ. Sets *deadline_ms from timeout_ms. */
int group_begin(struct group *g, enum group_op op, uint64_t n, int root, uint32_t *flags, int64_t timeout_ms,
                int64_t *deadline_ms, struct err *err) MUST_CHECK;

/* Send out_len bytes to member `peer` and receive in_len bytes from it; the lower member sends first. A length
 * of 0 sends nothing. */
int group_swap(struct group *g, int peer, const void *out, size_t out_len, void *in, size_t in_len,
               int64_t deadline_ms, struct err *err) MUST_CHECK;

/* Keep *err for all later calls, unless one is kept already. Always -1. */
int group_fail(struct group *g, const struct err *err);

/* group_reduce.c: entries of the table. */
int group_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                     struct err *err) MUST_CHECK;
int group_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms,
                         struct err *err) MUST_CHECK;
int group_reduce_scatter(struct collectives *c, float *x, size_t n, int64_t timeout_ms,
                         struct err *err) MUST_CHECK;

#endif
