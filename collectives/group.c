/* group.c - collectives over a subset of ranks, as a sequence of exchanges between two members (group.h). */
#include "collectives/group.h"
#include "collectives/group_state.h"
#include "common/memory.h"

#include "common/clock.h"

#include <stdlib.h>
#include <string.h>

int group_swap(struct group *g, int peer, const void *out, size_t out_len, void *in, size_t in_len,
               int64_t deadline_ms, struct err *err)
{
    struct collectives *c = g->parent;
    const int other = g->member[peer];

    for (int turn = 0; turn < 2; turn++) {
        int64_t now = clock_mono_ms();
        int64_t left = deadline_ms > now ? deadline_ms - now : 0;
        int rc = 0;
        if ((turn == 0) == (g->me < peer))
            rc = out_len ? c->send(c, out, out_len, other, left, err) : 0;
        else
            rc = in_len ? c->recv(c, in, in_len, other, left, err) : 0;
        if (rc)
            return -1;
    }
    return 0;
}

/* The description of a call, which members compare. */
struct notice {
    uint32_t op, root;
    uint64_t n;
    uint32_t flags, has_flags;
};

static const char *const OPS[] = {
    [GROUP_ALL_REDUCE] = "all_reduce",
    [GROUP_ALL_REDUCE_F64] = "all_reduce_f64",
    [GROUP_BROADCAST] = "broadcast",
    [GROUP_ALL_GATHER] = "all_gather",
    [GROUP_REDUCE_SCATTER] = "reduce_scatter",
    [GROUP_BARRIER] = "barrier",
    [GROUP_SHARED] = "shared",
};

static int disagree(const struct group *g, const struct notice *mine, const struct notice *theirs, int peer,
                    struct err *err)
{
    const char *op = theirs->op < ARRAY_LEN(OPS) && OPS[theirs->op] ? OPS[theirs->op] : "something unknown";

    return err_set(err, ERR_INVALID,
                   "ranks disagree: rank %d is in %s of %llu (root %u), rank %d in %s of %llu (root %u)",
                   g->member[g->me], OPS[mine->op], (unsigned long long)mine->n, mine->root, g->member[peer],
                   op, (unsigned long long)theirs->n, theirs->root);
}

int group_begin(struct group *g, enum group_op op, uint64_t n, int root, uint32_t *flags, int64_t timeout_ms,
                int64_t *deadline_ms, struct err *err)
{
    const struct notice mine = {
        .op = op, .n = n, .root = (uint32_t)root, .flags = flags ? *flags : 0, .has_flags = flags != NULL};
    struct err why = {0};

    if (timeout_ms < 0)
        return err_set(err, ERR_INVALID, "%s: negative timeout", OPS[op]);
    if (root < 0 || root >= g->n)
        return err_set(err, ERR_INVALID, "%s: root %d: expected 0..%d", OPS[op], root, g->n - 1);
    if (g->failed.kind) {
        *err = g->failed;
        return -1;
    }
    *deadline_ms = clock_mono_ms() + timeout_ms;
    for (int p = 0; p < g->n; p++) {
        struct notice theirs;
        if (p == g->me)
            continue;
        if (group_swap(g, p, &mine, sizeof(mine), &theirs, sizeof(theirs), *deadline_ms, err))
            return group_fail(g, err);
        if (flags && theirs.has_flags)
            *flags |= theirs.flags;
        if (!why.kind && (theirs.op != mine.op || theirs.n != mine.n || theirs.root != mine.root ||
                          theirs.has_flags != mine.has_flags))
            disagree(g, &mine, &theirs, p, &why);
    }
    if (!why.kind)
        return 0;
    *err = why;
    return group_fail(g, err);
}

int group_fail(struct group *g, const struct err *err)
{
    if (!g->failed.kind)
        g->failed = *err;
    return -1;
}

static int group_broadcast(struct collectives *c, void *bytes, size_t len, int root, int64_t timeout_ms,
                           struct err *err)
{
    struct group *g = c->state;
    int64_t deadline_ms;

    if (group_begin(g, GROUP_BROADCAST, len, root, NULL, timeout_ms, &deadline_ms, err))
        return -1;
    for (int p = 0; p < g->n; p++) {
        if (p == g->me || (g->me != root && p != root))
            continue;
        bool sends = g->me == root;
        if (group_swap(g, p, bytes, sends ? len : 0, bytes, sends ? 0 : len, deadline_ms, err))
            return group_fail(g, err);
    }
    return 0;
}

static int group_all_gather(struct collectives *c, const void *mine, size_t len, void *all,
                            int64_t timeout_ms, struct err *err)
{
    struct group *g = c->state;
    char *to = all;
    int64_t deadline_ms;

    if (group_begin(g, GROUP_ALL_GATHER, len, 0, NULL, timeout_ms, &deadline_ms, err))
        return -1;
    if (len)
        memmove(to + (size_t)g->me * len, mine, len);
    for (int p = 0; p < g->n; p++)
        if (p != g->me &&
            group_swap(g, p, to + (size_t)g->me * len, len, to + (size_t)p * len, len, deadline_ms, err))
            return group_fail(g, err);
    return 0;
}

static int group_barrier(struct collectives *c, int64_t timeout_ms, struct err *err)
{
    int64_t deadline_ms;

    return group_begin(c->state, GROUP_BARRIER, 0, 0, NULL, timeout_ms, &deadline_ms, err);
}

/* The parent's rank of group rank `rank`; -1 with *err when it is not another member. */
static int other_of(const struct group *g, const char *what, int rank, struct err *err)
{
    if (rank >= 0 && rank < g->n && rank != g->me)
        return g->member[rank];
    return err_set(err, ERR_INVALID, "%s: rank %d: expected another rank of 0..%d", what, rank, g->n - 1);
}

static int group_send(struct collectives *c, const void *bytes, size_t len, int to, int64_t timeout_ms,
                      struct err *err)
{
    struct group *g = c->state;
    int other = other_of(g, "send", to, err);

    return other < 0 ? -1 : g->parent->send(g->parent, bytes, len, other, timeout_ms, err);
}

static int group_recv(struct collectives *c, void *bytes, size_t len, int from, int64_t timeout_ms,
                      struct err *err)
{
    struct group *g = c->state;
    int other = other_of(g, "recv", from, err);

    return other < 0 ? -1 : g->parent->recv(g->parent, bytes, len, other, timeout_ms, err);
}

static int group_look(struct collectives *c, const char *what, struct err *err)
{
    const struct group *g = c->state;

    return collectives_look(g->parent, what, err);
}

static float *group_shared(struct collectives *c, size_t n, int64_t timeout_ms, struct err *err)
{
    struct group *g = c->state;
    int64_t deadline_ms;

    if (g->n_shared == COLLECTIVES_SHARED_MAX || n > SIZE_MAX / sizeof(float) - 64) {
        err_set(err, ERR_INVALID, "shared: more than %d pieces, or too large (%zu floats)",
                COLLECTIVES_SHARED_MAX, n);
        return NULL;
    }
    if (group_begin(g, GROUP_SHARED, n, 0, NULL, timeout_ms, &deadline_ms, err))
        return NULL;
    size_t bytes = (n * sizeof(float) + 64) & ~(size_t)63;
    float *p = memory_must(aligned_alloc(64, bytes));
    g->shared[g->n_shared++] = memset(p, 0, bytes);
    return p;
}

static void group_close(struct collectives *c)
{
    struct group *g = c->state;

    for (int i = 0; i < g->n_shared; i++)
        free(g->shared[i]);
    free(g->scratch);
    free(g->src);
    free(g->member);
    free(g);
}

static struct group *group_new(struct collectives *parent, const int *member, int n)
{
    struct group *g = calloc(1, sizeof(*g));
    const size_t line = 64 / sizeof(float);
    size_t world = (size_t)n;

    if (!g || !(g->member = calloc(world, sizeof(*g->member))) || !(g->src = calloc(world, sizeof(*g->src))))
        memory_exhausted();
    memcpy(g->member, member, world * sizeof(*member));
    g->parent = parent;
    g->n = n;
    g->slice = GROUP_SCRATCH_BYTES / sizeof(double) / world / line * line;
    if (g->slice < line)
        g->slice = line;
    if (n > 1 && !(g->scratch = aligned_alloc(64, world * g->slice * sizeof(double))))
        memory_exhausted();
    return g;
}

struct collectives *collectives_group(struct collectives *parent, const int *member, int n, struct err *err)
{
    int me = -1;

    for (int i = 0; i < n; i++) {
        if (member[i] < 0 || member[i] >= parent->world || (i && member[i] <= member[i - 1])) {
            err_set(err, ERR_INVALID, "group: member %d is rank %d: expected ascending ranks of 0..%d", i,
                    member[i], parent->world - 1);
            return NULL;
        }
        if (member[i] == parent->rank)
            me = i;
    }
    if (me < 0) {
        err_set(err, ERR_INVALID, "group: rank %d is not among its own %d members", parent->rank, n);
        return NULL;
    }
    struct collectives *c = memory_must(calloc(1, sizeof(*c)));
    struct group *g = group_new(parent, member, n);
    g->me = me;
    *c = (struct collectives){
        .rank = me,
        .world = n,
        .transport = parent->transport,
        .state = g,
        .slot = parent->slot,
        .all_reduce = group_all_reduce,
        .all_reduce_f64 = group_all_reduce_f64,
        .broadcast = group_broadcast,
        .all_gather = group_all_gather,
        .reduce_scatter = group_reduce_scatter,
        .barrier = group_barrier,
        .send = group_send,
        .recv = group_recv,
        .look = group_look,
        .shared = group_shared,
        .close = group_close,
    };
    return c;
}
