/* pods_message.c - send and recv between two ranks: inside a pod over their UNIX socket (host_meet.c), between pods over
 * a TCP link that the first message opens.
 *
 * A TCP link carries messages in one direction. The sender connects, which the receiver's kernel completes; the
 * receiver accepts the link when it first waits for a message from that rank.
 */
#include "collectives/pods.h"
#include "common/clock.h"

enum { LATE_MS = 500 }; /* how long a link may arrive after the report that its rank has left */

static int message_begin(struct pods *p, const char *what, int rank, int64_t timeout_ms, int64_t *deadline_ms,
                         struct err *err)
{
    if (host_begin(p->host, what, timeout_ms, deadline_ms, err) < 0)
        return -1;
    if (rank < 0 || rank >= p->world || rank == p->rank)
        return err_set(err, ERR_INVALID, "%s: rank %d: expected another rank of 0..%d", what, rank,
                       p->world - 1);
    watch_enter(&p->watch, true);
    return 0;
}

/* The socket to a rank of this pod; -1: it is in another one. */
static int link_in_pod(const struct pods *p, int rank)
{
    const int in_pod = rank - p->host->base;

    return in_pod >= 0 && in_pod < p->host->world ? p->host->links[in_pod] : -1;
}

static int transfer(struct pods *p, struct flow *f, size_t len, int64_t deadline_ms, struct err *err)
{
    const struct wire_head mine = pods_head(p, &(struct host_call){.op = HOST_MESSAGE, .n = len});

    f->head = f->out ? mine : (struct wire_head){0};
    f->ready = f->out;
    f->limit = f->len = len;
    return pods_flows(p, f, 1, &mine, NULL, NULL, deadline_ms, err);
}

/* The watch does not track messages, so this function names the rank that a message waits for, unless another
 * rank's deadline has passed. */
static int message_failed(struct pods *p, const char *what, int rank, int64_t deadline_ms, struct err *why,
                          struct err *err)
{
    if (why->kind == ERR_TIMEOUT && host_left_ms(deadline_ms) == 0)
        err_set(why, ERR_TIMEOUT, "%s: deadline passed while waiting for rank %d", what, rank);
    *err = *why;
    return host_fail(p->host, why);
}

int pods_send(struct collectives *c, const void *bytes, size_t len, int to, int64_t timeout_ms,
              struct err *err)
{
    struct pods *p = c->state;
    struct err why = {0};
    int64_t deadline_ms;
    int rc = 0;

    if (message_begin(p, "send", to, timeout_ms, &deadline_ms, err) < 0)
        return -1;
    struct flow f = {.fd = link_in_pod(p, to), .peer = to, .out = true, .buf = (char *)(uintptr_t)bytes};
    if (f.fd < 0 && p->to[to] < 0)
        rc = pods_connect_message(p, to, deadline_ms, &why);
    if (f.fd < 0)
        f.fd = p->to[to];
    if (rc == 0)
        rc = transfer(p, &f, len, deadline_ms, &why);
    return rc == 0 ? 0 : message_failed(p, "send", to, deadline_ms, &why, err);
}

/* Wait for a link from rank `from`. A rank that has left may have sent before; then its link may still arrive. */
static int await_link(struct pods *p, int from, int64_t deadline_ms, struct err *err)
{
    int64_t left_ms = 0;

    while (p->from[from] < 0) {
        if (pods_accept(p, "recv", deadline_ms, err) < 0)
            return -1;
        if (p->watch.left[from] && !left_ms)
            left_ms = clock_mono_ms();
        if (left_ms && clock_mono_ms() > left_ms + LATE_MS && p->from[from] < 0)
            return err_set(err, ERR_PEER, "recv: rank %d went away", from);
    }
    return 0;
}

int pods_recv(struct collectives *c, void *bytes, size_t len, int from, int64_t timeout_ms, struct err *err)
{
    struct pods *p = c->state;
    struct err why = {0};
    int64_t deadline_ms;
    int rc = 0;

    if (message_begin(p, "recv", from, timeout_ms, &deadline_ms, err) < 0)
        return -1;
    struct flow f = {.fd = link_in_pod(p, from), .peer = from, .buf = bytes};
    if (f.fd < 0 && p->from[from] < 0)
        rc = await_link(p, from, deadline_ms, &why);
    if (f.fd < 0)
        f.fd = p->from[from];
    if (rc == 0)
        rc = transfer(p, &f, len, deadline_ms, &why);
    return rc == 0 ? 0 : message_failed(p, "recv", from, deadline_ms, &why, err);
}
