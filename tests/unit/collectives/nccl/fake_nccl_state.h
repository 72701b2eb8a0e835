/* fake_nccl_state.h - what the files of the fake NCCL share. */
#ifndef TK_TESTS_UNIT_COLLECTIVES_NCCL_FAKE_NCCL_STATE_H
#define TK_TESTS_UNIT_COLLECTIVES_NCCL_FAKE_NCCL_STATE_H

#include "fake_cudart.h"

#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum { RANKS = 8, HALF = 64 * 1024, MAIL = 64 * 1024 };
enum op { OP_SUM, OP_SEND, OP_RECV };

struct mail {
    _Atomic unsigned sent, taken;
    size_t len;
    char bytes[MAIL];
};

struct segment {
    _Atomic int joined;
    _Atomic unsigned put[RANKS], taken[RANKS];
    struct mail mail[RANKS][RANKS];
    size_t asked[RANKS][2][2]; /* operation and bytes of what is in a half */
    char half[RANKS][2][HALF];
};

struct ncclComm {
    struct segment *shared;
    int rank, world;
    unsigned queued, calls, collectives; /* calls: that have begun, each launch of a recorded one */
    int looks_left;                      /* until a slow call is taken */
    struct call *untaken;                /* that one */
    cudaStream_t untaken_on;             /* and where it goes */
    void *window;                        /* being made */
    ncclWindow_t *window_to;
    ncclResult_t state;
    bool met, aborted;
    char fault[16];
    int fault_rank;
    unsigned fault_call;
};

struct call {
    struct ncclComm *comm;
    enum op op;
    const void *in;
    void *out;
    size_t bytes; /* that this rank puts */
    int peer;
    unsigned number; /* among the collectives */
    ncclDataType_t type;
    bool recorded;
    bool met;   /* its turn has come: it has a number */
    bool stuck; /* it never begins */
    bool begun;
};

static inline bool faulty(const struct ncclComm *c, const char *kind)
{
    return strcmp(c->fault, kind) == 0 && c->rank == c->fault_rank;
}

/* fake_nccl_calls.c: a stream's step for a queued call. */
bool fake_nccl_step(void *call);

#endif
