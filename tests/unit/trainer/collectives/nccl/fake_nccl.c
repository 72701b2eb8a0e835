/* fake_nccl.c - NCCL's functions among processes, in host memory: a segment that rank 0 makes and the others map.
 *
 * Call k of every rank puts its bytes into half k % 2 of its slot and says so; when all have, each takes what it needs
 * and says so too. A half is written again when all have taken what was in it.
 */
#include "fake_nccl.h"
#include "fake_cudart.h"

#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef FAKE_VERSION
#define FAKE_VERSION NCCL_VERSION_CODE
#endif

enum { RANKS = 8, HALF = 64 * 1024, MAIL = 4096 };
enum op { OP_SUM, OP_GATHER, OP_SCATTER, OP_SPREAD, OP_SEND, OP_RECV };

struct mail {
    _Atomic unsigned sent, taken;
    char bytes[MAIL];
};

struct segment {
    _Atomic int joined;
    _Atomic unsigned put[RANKS], taken[RANKS];
    struct mail mail[RANKS][RANKS];
    char half[RANKS][2][HALF];
};

struct ncclComm {
    struct segment *shared;
    int rank, world;
    unsigned calls, collectives;
    int looks_left;          /* until a slow call is taken */
    struct call *untaken;    /* that one */
    cudaStream_t untaken_on; /* and where it goes */
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
    size_t bytes;     /* that this rank puts */
    int peer;         /* or root */
    unsigned number;  /* among the collectives */
    bool bf16, stuck; /* stuck: never begins */
    bool begun;
};

static struct fake_nccl_counts counts;

const struct fake_nccl_counts *fake_nccl_counts(void)
{
    return &counts;
}

static bool faulty(const struct ncclComm *c, const char *kind)
{
    return strcmp(c->fault, kind) == 0 && c->rank == c->fault_rank;
}

static float widen(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

static uint16_t narrow(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return (uint16_t)(bits >> 16); /* tests add whole numbers that fit */
}

/* out[i] = sum over ranks of theirs[first + i] */
static void sum(const struct call *k, size_t first, size_t bytes)
{
    const struct ncclComm *c = k->comm;

    for (size_t at = 0; at < bytes; at += k->bf16 ? 2 : 4) {
        float total = 0;
        for (int r = 0; r < c->world; r++) {
            const char *from = c->shared->half[r][k->number % 2] + first + at;
            uint16_t half_float;
            float f;
            memcpy(&half_float, from, sizeof(half_float));
            memcpy(&f, from, k->bf16 ? 0 : sizeof(f));
            total += k->bf16 ? widen(half_float) : f;
        }
        uint16_t half_float = narrow(total);
        memcpy((char *)k->out + at, k->bf16 ? (void *)&half_float : (void *)&total, k->bf16 ? 2 : 4);
    }
}

static void take(const struct call *k)
{
    struct ncclComm *c = k->comm;
    const unsigned half = k->number % 2;
    const size_t part = k->bytes / (size_t)c->world;

    if (k->op == OP_SUM)
        sum(k, 0, k->bytes);
    else if (k->op == OP_SCATTER)
        sum(k, part * (size_t)c->rank, part);
    else if (k->op == OP_SPREAD)
        memcpy(k->out, c->shared->half[k->peer][half], k->bytes);
    for (int r = 0; r < c->world && k->op == OP_GATHER; r++)
        memcpy((char *)k->out + (size_t)r * k->bytes, c->shared->half[r][half], k->bytes);
}

static bool all_at_least(const struct ncclComm *c, const _Atomic unsigned *count, unsigned least)
{
    for (int r = 0; r < c->world; r++)
        if (atomic_load(&count[r]) < least)
            return false;
    return true;
}

static bool step_collective(struct call *k)
{
    struct ncclComm *c = k->comm;
    struct segment *s = c->shared;

    if (!k->begun) {
        if (k->number >= 2 && !all_at_least(c, s->taken, k->number - 1))
            return false;
        memcpy(s->half[c->rank][k->number % 2], k->in, k->bytes);
        atomic_store(&s->put[c->rank], k->number + 1);
        k->begun = true;
    }
    if (!all_at_least(c, s->put, k->number + 1))
        return false;
    take(k);
    atomic_store(&s->taken[c->rank], k->number + 1);
    return true;
}

static bool step_mail(struct call *k)
{
    struct ncclComm *c = k->comm;
    bool out = k->op == OP_SEND;
    struct mail *m = out ? &c->shared->mail[c->rank][k->peer] : &c->shared->mail[k->peer][c->rank];
    unsigned sent = atomic_load(&m->sent), taken = atomic_load(&m->taken);

    if (out ? sent != taken : sent == taken)
        return false;
    if (out)
        memcpy(m->bytes, k->in, k->bytes);
    else
        memcpy(k->out, m->bytes, k->bytes);
    atomic_fetch_add(out ? &m->sent : &m->taken, 1);
    return true;
}

/* An aborted kernel ends, its work undone. */
static bool step(void *arg)
{
    struct call *k = arg;
    bool done = k->comm->aborted;

    if (!done && !k->stuck)
        done = k->op == OP_SEND || k->op == OP_RECV ? step_mail(k) : step_collective(k);
    if (done)
        free(k);
    return done;
}

static ncclResult_t queue(ncclComm_t c, struct call k, cudaStream_t stream)
{
    struct call *kept = malloc(sizeof(*kept));
    unsigned number = c->calls++;
    bool now = number >= c->fault_call;

    if (!kept || k.bytes > HALF)
        abort();
    *kept = k;
    kept->comm = c;
    if (k.op != OP_SEND && k.op != OP_RECV)
        kept->number = c->collectives++;
    kept->stuck =
        now && (faulty(c, "stall") || faulty(c, "hang") || faulty(c, "remote") || faulty(c, "system"));
    if (now && faulty(c, "remote"))
        c->state = ncclRemoteError;
    if (now && faulty(c, "system"))
        c->state = ncclSystemError;
    if (faulty(c, "slow")) {
        c->looks_left = (int)c->fault_call;
        c->untaken = kept;
        c->untaken_on = stream;
        c->state = ncclInProgress;
        return ncclInProgress;
    }
    if (now && faulty(c, "usage"))
        return ncclInvalidUsage;
    fake_stream_push(stream, step, kept);
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = FAKE_VERSION;
    return ncclSuccess;
}

static void read_fault(struct ncclComm *c)
{
    const char *text = getenv("FAKE_NCCL");

    c->fault_rank = -1;
    if (text)
        (void)sscanf(text, "%15[^:]:%d:%u", c->fault, &c->fault_rank, &c->fault_call);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    struct ncclComm for_fault = {0};
    int fd = memfd_create("fake-nccl", 0);

    read_fault(&for_fault);
    if (faulty(&for_fault, "no-id") || fd < 0 || ftruncate(fd, sizeof(struct segment)))
        return ncclSystemError;
    *id = (ncclUniqueId){{0}};
    snprintf(id->internal, sizeof(id->internal), "/proc/%d/fd/%d", (int)getpid(), fd);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret, int world, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    FILE *f = fopen(id.internal, "r+");
    struct ncclComm *c = calloc(1, sizeof(*c));

    if (!c || !f || world > RANKS || config->blocking != 0)
        return ncclInvalidArgument;
    *c = (struct ncclComm){.rank = rank, .world = world, .state = ncclInProgress};
    read_fault(c);
    if (faulty(c, "no-init")) {
        fclose(f);
        free(c);
        return ncclInvalidUsage;
    }
    c->shared = mmap(NULL, sizeof(*c->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    fclose(f);
    if (c->shared == MAP_FAILED)
        abort();
    if (!faulty(c, "late-init"))
        atomic_fetch_add(&c->shared->joined, 1);
    *ret = c;
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state)
{
    if (!c->met && atomic_load(&c->shared->joined) == c->world) {
        c->met = true;
        c->state = ncclSuccess;
    }
    if (c->untaken && c->looks_left-- <= 0) {
        fake_stream_push(c->untaken_on, step, c->untaken);
        c->untaken = NULL;
        c->state = ncclSuccess;
    }
    *state = c->state;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t r)
{
    return r == ncclRemoteError    ? "remote process exited or there was a network error"
           : r == ncclSystemError  ? "unhandled system error"
           : r == ncclInvalidUsage ? "invalid usage"
                                   : "another error";
}

const char *ncclGetLastError(ncclComm_t c)
{
    (void)c;
    return "the fake's own words";
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    counts.finalized++;
    c->state = faulty(c, "no-finalize") ? ncclInProgress : ncclSuccess;
    return c->state;
}

static void comm_free(ncclComm_t c)
{
    munmap(c->shared, sizeof(*c->shared));
    free(c);
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    counts.destroyed++;
    comm_free(c);
    return ncclSuccess;
}

/* As the real one may, in another thread; what is queued still asks for the communicator, which therefore stays. */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
    counts.aborted++;
    while (faulty(c, "hang"))
        pause();
    c->aborted = true;
    return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **ret, size_t bytes)
{
    counts.allocated++;
    *ret = aligned_alloc(NCCL_WIN_REQUIRED_ALIGNMENT, bytes);
    if (*ret)
        memset(*ret, 0x5a, bytes); /* not zero, as a GPU's memory need not be */
    return *ret ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclMemFree(void *p)
{
    counts.allocated--;
    free(p);
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t c, void *p, size_t bytes, void **handle)
{
    (void)c, (void)bytes;
    counts.registered++;
    counts.registered_made++;
    *handle = p;
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t c, void *handle)
{
    (void)c, (void)handle;
    counts.registered--;
    return ncclSuccess;
}

#if FAKE_VERSION >= 22700
ncclResult_t ncclCommWindowRegister(ncclComm_t c, void *p, size_t bytes, ncclWindow_t *win, int flags)
{
    if (faulty(c, "no-window") || bytes % NCCL_WIN_REQUIRED_ALIGNMENT || flags != NCCL_WIN_COLL_SYMMETRIC)
        return ncclInvalidUsage;
    counts.windows++;
    counts.windows_made++;
    *win = p;
    return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t c, ncclWindow_t win)
{
    (void)c, (void)win;
    counts.windows--;
    return ncclSuccess;
}
#endif

static size_t size_of(ncclDataType_t type)
{
    return type == ncclFloat32 ? 4 : type == ncclBfloat16 ? 2 : 1;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t n, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t c, cudaStream_t stream)
{
    struct call k = {
        .op = OP_SUM, .in = in, .out = out, .bytes = n * size_of(type), .bf16 = type == ncclBfloat16};

    return op == ncclSum ? queue(c, k, stream) : ncclInvalidArgument;
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t n, ncclDataType_t type, ncclComm_t c,
                           cudaStream_t stream)
{
    return queue(c, (struct call){.op = OP_GATHER, .in = in, .out = out, .bytes = n * size_of(type)}, stream);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t n, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t c, cudaStream_t stream)
{
    struct call k = {.op = OP_SCATTER,
                     .in = in,
                     .out = out,
                     .bytes = n * size_of(type) * (size_t)c->world,
                     .bf16 = type == ncclBfloat16};

    return op == ncclSum ? queue(c, k, stream) : ncclInvalidArgument;
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t n, ncclDataType_t type, int root, ncclComm_t c,
                           cudaStream_t stream)
{
    struct call k = {.op = OP_SPREAD, .in = in, .out = out, .bytes = n * size_of(type), .peer = root};

    return queue(c, k, stream);
}

ncclResult_t ncclSend(const void *in, size_t n, ncclDataType_t type, int peer, ncclComm_t c,
                      cudaStream_t stream)
{
    if (n * size_of(type) > MAIL)
        return ncclInvalidArgument;
    return queue(c, (struct call){.op = OP_SEND, .in = in, .bytes = n * size_of(type), .peer = peer}, stream);
}

#ifndef FAKE_WITHOUT_RECV
ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t stream)
{
    if (n * size_of(type) > MAIL)
        return ncclInvalidArgument;
    return queue(c, (struct call){.op = OP_RECV, .out = out, .bytes = n * size_of(type), .peer = peer},
                 stream);
}
#endif
