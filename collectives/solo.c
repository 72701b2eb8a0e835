/* solo.c - the transport for a run of one process: every collective leaves its data as they are. */
#include "collectives/transports.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

struct solo {
    float *shared[COLLECTIVES_SHARED_MAX];
    int n_shared;
};

static int solo_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                           struct err *err)
{
    (void)c, (void)x, (void)n, (void)flags, (void)timeout_ms, (void)err;
    return 0;
}

static int solo_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms,
                               struct err *err)
{
    (void)c, (void)x, (void)n, (void)timeout_ms, (void)err;
    return 0;
}

static int solo_broadcast(struct collectives *c, void *bytes, size_t len, int root, int64_t timeout_ms,
                          struct err *err)
{
    (void)c, (void)bytes, (void)len, (void)timeout_ms;
    return root == 0 ? 0 : err_set(err, ERR_INVALID, "broadcast: root %d: expected 0..0", root);
}

static int solo_all_gather(struct collectives *c, const void *mine, size_t len, void *all, int64_t timeout_ms,
                           struct err *err)
{
    (void)c, (void)timeout_ms, (void)err;
    if (len && mine != all)
        memmove(all, mine, len);
    return 0;
}

static int solo_barrier(struct collectives *c, int64_t timeout_ms, struct err *err)
{
    (void)c, (void)timeout_ms, (void)err;
    return 0;
}

static int solo_send(struct collectives *c, const void *bytes, size_t len, int to, int64_t timeout_ms,
                     struct err *err)
{
    (void)c, (void)bytes, (void)len, (void)timeout_ms;
    return err_set(err, ERR_INVALID, "send to rank %d: this process is alone", to);
}

static int solo_recv(struct collectives *c, void *bytes, size_t len, int from, int64_t timeout_ms,
                     struct err *err)
{
    (void)c, (void)bytes, (void)len, (void)timeout_ms;
    return err_set(err, ERR_INVALID, "recv from rank %d: this process is alone", from);
}

static float *solo_shared(struct collectives *c, size_t n, int64_t timeout_ms, struct err *err)
{
    struct solo *s = c->state;

    (void)timeout_ms;
    if (s->n_shared == COLLECTIVES_SHARED_MAX || n > SIZE_MAX / sizeof(float) - 64) {
        err_set(err, ERR_INVALID, "shared: more than %d pieces, or too large (%zu floats)",
                COLLECTIVES_SHARED_MAX, n);
        return NULL;
    }
    size_t bytes = (n * sizeof(float) + 63) & ~(size_t)63;
    float *p = memory_must(aligned_alloc(64, bytes ? bytes : 64));
    memset(p, 0, bytes);
    s->shared[s->n_shared++] = p;
    return p;
}

static void solo_close(struct collectives *c)
{
    struct solo *s = c->state;

    for (int i = 0; i < s->n_shared; i++)
        free(s->shared[i]);
    free(s);
}

int solo_open(struct collectives *c, struct err *err)
{
    (void)err;
    c->state = memory_must(calloc(1, sizeof(struct solo)));
    c->transport = "solo";
    c->all_reduce = solo_all_reduce;
    c->all_reduce_f64 = solo_all_reduce_f64;
    c->broadcast = solo_broadcast;
    c->all_gather = solo_all_gather;
    c->barrier = solo_barrier;
    c->send = solo_send;
    c->recv = solo_recv;
    c->shared = solo_shared;
    c->close = solo_close;
    return 0;
}
