/* noted.h - wrappers that call a collectives table (collectives.h) and record each call in the rank's slot
 * (host/rank_state.h): the call that the rank is in, the number of calls, and the time in them. The trainer
 * calls these instead of the table's own functions. Arguments and errors are the same.
 */
#ifndef TK_COLLECTIVES_NOTED_H
#define TK_COLLECTIVES_NOTED_H

#include "collectives/collectives.h"
#include "host/rank_state.h"

static inline int collectives_noted(const struct collectives *c, int rc)
{
    rank_state_end(c->slot);
    return rc;
}

/* Record the begin of a call, make it, record its end. */
#define COLLECTIVES_NOTED(c, call, made) (rank_state_begin((c)->slot, (call)), collectives_noted((c), (made)))

static inline MUST_CHECK int collectives_all_reduce(struct collectives *c, float *x, size_t n,
                                                    uint32_t *flags, int64_t timeout_ms, struct err *err)
{
    return COLLECTIVES_NOTED(c, RANK_CALL_ALL_REDUCE, c->all_reduce(c, x, n, flags, timeout_ms, err));
}

static inline MUST_CHECK int collectives_all_reduce_f64(struct collectives *c, double *x, size_t n,
                                                        int64_t timeout_ms, struct err *err)
{
    return COLLECTIVES_NOTED(c, RANK_CALL_ALL_REDUCE, c->all_reduce_f64(c, x, n, timeout_ms, err));
}

static inline MUST_CHECK int collectives_broadcast(struct collectives *c, void *bytes, size_t len, int root,
                                                   int64_t timeout_ms, struct err *err)
{
    return COLLECTIVES_NOTED(c, RANK_CALL_BROADCAST, c->broadcast(c, bytes, len, root, timeout_ms, err));
}

static inline MUST_CHECK int collectives_all_gather(struct collectives *c, const void *mine, size_t len,
                                                    void *all, int64_t timeout_ms, struct err *err)
{
    return COLLECTIVES_NOTED(c, RANK_CALL_ALL_GATHER, c->all_gather(c, mine, len, all, timeout_ms, err));
}

static inline MUST_CHECK int collectives_barrier(struct collectives *c, int64_t timeout_ms, struct err *err)
{
    return COLLECTIVES_NOTED(c, RANK_CALL_BARRIER, c->barrier(c, timeout_ms, err));
}

static inline MUST_CHECK int collectives_send(struct collectives *c, const void *bytes, size_t len, int to,
                                              int64_t timeout_ms, struct err *err)
{
    return COLLECTIVES_NOTED(c, RANK_CALL_SEND, c->send(c, bytes, len, to, timeout_ms, err));
}

static inline MUST_CHECK int collectives_recv(struct collectives *c, void *bytes, size_t len, int from,
                                              int64_t timeout_ms, struct err *err)
{
    return COLLECTIVES_NOTED(c, RANK_CALL_RECV, c->recv(c, bytes, len, from, timeout_ms, err));
}

/* NULL on failure. */
static inline float *collectives_shared(struct collectives *c, size_t n, int64_t timeout_ms, struct err *err)
{
    rank_state_begin(c->slot, RANK_CALL_SHARED);
    float *p = c->shared(c, n, timeout_ms, err);
    rank_state_end(c->slot);
    return p;
}

#endif
