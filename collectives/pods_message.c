/* pods_message.c - send and recv between two ranks: inside a pod over their UNIX socket (host_meet.c), between pods over
 * a TCP link that the first message opens.
 *
 * A TCP link carries messages in one direction. The sender connects, which the receiver's kernel completes; the
 * receiver accepts the link when it first waits for a message from that rank.
 */
#include "collectives/pods.h"
#include "common/clock.h"

enum { LATE_MS = 500 }; /* how long a link may arrive after the report that its rank has left */

static int transfer(struct pods *p, struct flow *f, size_t len, int64_t deadline_ms, struct err *err)
{
    const struct wire_head mine = pods_head(p, &(struct host_call){.op = HOST_MESSAGE, .n = len});

    f->head = f->out ? mine : (struct wire_head){0};
    f->ready = f->out;
    f->limit = f->len = len;
    return pods_flows(p, f, 1, &mine, NULL, NULL, deadline_ms, err);
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

/* Fill in the socket of a message. */
static int find_link(struct pods *p, struct flow *f, int64_t deadline_ms, struct err *err)
{
    const int in_pod = f->peer - p->host->base;
    const bool near = in_pod >= 0 && in_pod < p->host->world;
    const int *link = near ? &p->host->links[in_pod] : f->out ? &p->to[f->peer] : &p->from[f->peer];

    if (*link < 0 && (f->out ? pods_connect_message(p, f->peer, deadline_ms, err)
                             : await_link(p, f->peer, deadline_ms, err)))
        return -1;
    f->fd = *link;
    return 0;
}

static int message(struct pods *p, struct flow *f, size_t len, int64_t timeout_ms, struct err *err)
{
    const char *what = f->out ? "send" : "recv";
    int64_t deadline_ms;

    if (host_begin(p->host, timeout_ms, &deadline_ms, err) < 0)
        return -1;
    watch_enter(&p->watch, true);
    if (find_link(p, f, deadline_ms, err) == 0 && transfer(p, f, len, deadline_ms, err) == 0)
        return 0;
    /* The watch does not track messages, so name the rank that this one waits for, unless another rank's
     * deadline has passed. */
    if (err->kind == ERR_TIMEOUT && host_left_ms(deadline_ms) == 0)
        err_set(err, ERR_TIMEOUT, "%s: deadline passed while waiting for rank %d", what, f->peer);
    return host_fail(p->host, err);
}

int pods_send(struct collectives *c, const void *bytes, size_t len, int to, int64_t timeout_ms,
              struct err *err)
{
    struct flow f = {.peer = to, .out = true, .buf = (char *)(uintptr_t)bytes};

    return message(c->state, &f, len, timeout_ms, err);
}

int pods_recv(struct collectives *c, void *bytes, size_t len, int from, int64_t timeout_ms, struct err *err)
{
    struct flow f = {.peer = from, .buf = bytes};

    return message(c->state, &f, len, timeout_ms, err);
}
