/* fake_nccl_calls.c - the calls between ranks.
 *
 * Call k of every rank puts its bytes into half k % 2 of its slot and sets a flag; when all have, each takes what it needs
 * and sets a second flag. A half is written again when all have taken its content.
 *
 * As strict as the real one may be: a send ends when its bytes were taken, and where ranks do not call the same with the
 * same size it never ends.
 */
#include "fake_nccl_state.h"

#include <stdio.h>
#include <stdlib.h>

static size_t size_of(ncclDataType_t type)
{
    return type == ncclFloat64 ? 8 : type == ncclFloat32 ? 4 : type == ncclBfloat16 ? 2 : 1;
}

/* A bf16 is the upper half of a float; tests add whole numbers that fit. */
static double take_number(ncclDataType_t type, const char *from)
{
    float f = 0;
    double d;

    if (type == ncclFloat64) {
        memcpy(&d, from, sizeof(d));
        return d;
    }
    memcpy((char *)&f + sizeof(f) - size_of(type), from, size_of(type));
    return (double)f;
}

static void put_number(ncclDataType_t type, char *to, double d)
{
    const float f = (float)d;

    if (type == ncclFloat64)
        memcpy(to, &d, sizeof(d));
    else
        memcpy(to, (const char *)&f + sizeof(f) - size_of(type), size_of(type));
}

/* out[i] = sum over ranks of theirs[i] */
static void take(const struct call *k)
{
    const struct ncclComm *c = k->comm;

    for (size_t at = 0; at < k->bytes; at += size_of(k->type)) {
        double total = 0;
        for (int r = 0; r < c->world; r++) {
            total += take_number(k->type, c->shared->half[r][k->number % 2] + at);
            if (k->type != ncclFloat64)
                total = (double)(float)total;
        }
        put_number(k->type, (char *)k->out + at, total);
    }
}

/* On GPUs they would wait for each other, or add what does not belong together. */
static void check_alike(const struct call *k)
{
    struct segment *s = k->comm->shared;

    for (int r = 0; r < k->comm->world; r++) {
        const size_t *asked = s->asked[r][k->number % 2];
        if (asked[0] == (size_t)k->op && asked[1] == k->bytes)
            continue;
        fprintf(stderr, "fake NCCL: call %u: rank %d asks for %zu of %zu bytes, rank %d for %d of %zu\n",
                k->number, r, asked[0], asked[1], k->comm->rank, (int)k->op, k->bytes);
        abort();
    }
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
        s->asked[c->rank][k->number % 2][0] = (size_t)k->op;
        s->asked[c->rank][k->number % 2][1] = k->bytes;
        atomic_store(&s->put[c->rank], k->number + 1);
        k->begun = true;
    }
    if (!all_at_least(c, s->put, k->number + 1))
        return false;
    check_alike(k);
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

    if (out && k->begun)
        return sent == taken;
    if (out ? sent != taken : sent == taken || m->len != k->bytes)
        return false;
    k->begun = true;
    if (out) {
        memcpy(m->bytes, k->in, k->bytes);
        m->len = k->bytes;
        atomic_fetch_add(&m->sent, 1);
        return false;
    }
    memcpy(k->out, m->bytes, k->bytes);
    atomic_fetch_add(&m->taken, 1);
    return true;
}

/* Its turn: numbers and faults go by the order in which calls begin. */
static void meet(struct call *k)
{
    struct ncclComm *c = k->comm;
    bool now = c->calls++ >= c->fault_call;

    k->met = true;
    if (k->op != OP_SEND && k->op != OP_RECV)
        k->number = c->collectives++;
    k->stuck = now && (faulty(c, "stall") || faulty(c, "hang") || faulty(c, "remote") || faulty(c, "system"));
    if (now && faulty(c, "remote"))
        c->state = ncclRemoteError;
    if (now && faulty(c, "system"))
        c->state = ncclSystemError;
}

/* An aborted kernel ends, its work undone. */
bool fake_nccl_step(void *arg)
{
    struct call *k = arg;
    bool done = k->comm->aborted;

    if (!done && !k->met)
        meet(k);
    if (!done && !k->stuck)
        done = k->op == OP_SEND || k->op == OP_RECV ? step_mail(k) : step_collective(k);
    if (done && k->recorded)
        k->met = k->begun = false; /* until the next launch */
    else if (done)
        free(k);
    return done;
}

static ncclResult_t queue(ncclComm_t c, struct call k, cudaStream_t stream)
{
    struct call *kept = malloc(sizeof(*kept));

    if (!kept || k.bytes > HALF)
        abort();
    *kept = k;
    kept->comm = c;
    kept->recorded = fake_stream_records(stream);
    if (faulty(c, "slow")) {
        c->looks_left = (int)c->fault_call;
        c->untaken = kept;
        c->untaken_on = stream;
        c->state = ncclInProgress;
        return ncclInProgress;
    }
    if (c->queued++ >= c->fault_call && faulty(c, "usage")) {
        free(kept);
        return ncclInvalidUsage;
    }
    fake_stream_push(stream, fake_nccl_step, kept);
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t n, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t c, cudaStream_t stream)
{
    struct call k = {.op = OP_SUM, .in = in, .out = out, .bytes = n * size_of(type), .type = type};

    return op == ncclSum ? queue(c, k, stream) : ncclInvalidArgument;
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
