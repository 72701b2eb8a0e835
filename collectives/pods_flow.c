/* pods_flow.c - transfer data over several links at once, and end the wait on a lost peer, a failure or the
 * deadline. */
#include "collectives/pods.h"
#include "common/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum {
    FLOWS_MAX = PODS_DIRECT_FLOWS_MAX, /* the most that any call has */
};

static const uint32_t HEAD_MAGIC = 0x70436b54; /* "TkCp" */

struct wire_head pods_head(const struct pods *p, const struct host_call *call)
{
    return (struct wire_head){
        .magic = HEAD_MAGIC, .from = (uint32_t)p->rank, .seq = p->watch.seq, .call = *call};
}

static int check_head(const struct pods *p, const struct flow *f, const struct wire_head *mine,
                      struct err *err)
{
    const struct wire_head *got = &f->head;
    const bool message = mine->call.op == HOST_MESSAGE && got->call.op == HOST_MESSAGE;

    if (got->magic != HEAD_MAGIC || got->from != (uint32_t)f->peer)
        return err_set(err, ERR_INVALID, "rank %d sends a message that is not of this program's protocol",
                       f->peer);
    if (message && got->call.n != mine->call.n)
        return err_set(err, ERR_INVALID, "ranks disagree: rank %d sends %llu bytes, rank %d expects %llu",
                       f->peer, (unsigned long long)got->call.n, p->rank, (unsigned long long)mine->call.n);
    if (host_compare(f->peer, &got->call, p->rank, &mine->call, err) < 0)
        return -1;
    if (!message && got->seq != mine->seq)
        return err_set(err, ERR_INVALID, "ranks disagree: rank %d is in call %llu, rank %d in call %llu",
                       f->peer, (unsigned long long)got->seq, p->rank, (unsigned long long)mine->seq);
    return 0;
}

static int link_lost(struct pods *p, const char *what, int peer, struct err *err)
{
    err_set(err, ERR_PEER, "%s: rank %d went away", what, peer);
    watch_lost(&p->watch, what, err);
    return -1;
}

static size_t flow_open_bytes(const struct flow *f)
{
    const size_t to = f->limit < f->len ? f->limit : f->len;

    return to > f->at ? to - f->at : 0;
}

static bool flow_wants(const struct flow *f)
{
    if (f->out && !f->ready)
        return false;
    return !flow_has_head(f) || flow_open_bytes(f) > 0;
}

static bool flow_done(const struct flow *f)
{
    return flow_has_head(f) && f->at == f->len;
}

/* One sendmsg or recvmsg. 1: bytes were transferred; 0: it would block; -1: the link is broken. */
static int flow_move(struct flow *f)
{
    struct iovec parts[] = {{(char *)&f->head + f->head_at, sizeof(f->head) - f->head_at},
                            {f->buf ? f->buf + (f->at - f->skip) : NULL, flow_open_bytes(f)}};
    struct msghdr msg = {.msg_iov = parts, .msg_iovlen = parts[1].iov_len ? 2 : 1};
    ssize_t n =
        f->out ? sendmsg(f->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) : recvmsg(f->fd, &msg, MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0)
        return -1;
    const size_t head = (size_t)n < parts[0].iov_len ? (size_t)n : parts[0].iov_len;
    f->head_at += head;
    f->at += (size_t)n - head;
    return 1;
}

int pods_look(struct pods *p, const char *what, struct err *err)
{
    pods_take_links(p);
    return watch_look(&p->watch, what, err);
}

/* Check the watch, the peers in the pod and the deadline. A message needs no other rank than its two, and the socket
 * between them shows when one has ended. */
static int look_around(struct pods *p, const char *what, int64_t deadline_ms, struct err *err)
{
    if (pods_look(p, what, err) < 0 || (!p->watch.in_message && host_peers_check(p->host, what, err) < 0))
        return -1;
    return host_left_ms(deadline_ms) == 0 ? watch_timed_out(&p->watch, what, err) : 0;
}

int pods_wait(struct pods *p, struct pollfd *pfds, int n, const char *what, int64_t deadline_ms,
              struct err *err)
{
    const int left = host_left_ms(deadline_ms);

    pfds[n] = (struct pollfd){.fd = p->watch.fd, .events = POLLIN};
    int ready = poll(pfds, (nfds_t)n + 1, left < HOST_SLICE_MS ? left : HOST_SLICE_MS);
    if (ready < 0 && errno != EINTR)
        return err_errno(err, ERR_FATAL, errno, "%s: poll", what);
    if (ready <= 0)
        watch_report(&p->watch);
    return ready <= 0 || pfds[n].revents ? look_around(p, what, deadline_ms, err) : 0;
}

static int move_all(struct pods *p, struct flow *flows, int n, const struct wire_head *mine, const char *what,
                    bool *moved, struct err *err)
{
    *moved = false;
    for (int i = 0; i < n; i++) {
        struct flow *f = &flows[i];
        const bool had_head = flow_has_head(f);
        if (!flow_wants(f))
            continue;
        int rc = flow_move(f);
        if (rc < 0)
            return link_lost(p, what, f->peer, err);
        *moved = *moved || rc > 0;
        if (!f->out && !had_head && flow_has_head(f) && check_head(p, f, mine, err) < 0)
            return -1;
    }
    return 0;
}

int pods_flows(struct pods *p, struct flow *flows, int n, const struct wire_head *mine,
               void (*step)(void *ctx), void *ctx, int64_t deadline_ms, struct err *err)
{
    const char *what = mine->call.op != HOST_MESSAGE ? host_op_name(mine->call.op)
                       : flows[0].out                ? "send"
                                                     : "recv";
    struct pollfd pfds[FLOWS_MAX + 1];

    for (;;) {
        bool moved, done = true;
        int waits = 0;
        if (step)
            step(ctx);
        if (move_all(p, flows, n, mine, what, &moved, err) < 0)
            return -1;
        for (int i = 0; i < n; i++) {
            done = done && flow_done(&flows[i]);
            if (flow_wants(&flows[i]))
                pfds[waits++] = (struct pollfd){.fd = flows[i].fd, .events = flows[i].out ? POLLOUT : POLLIN};
        }
        if (done && step)
            step(ctx);
        if (done)
            return 0;
        if (!moved && pods_wait(p, pfds, waits, what, deadline_ms, err) < 0)
            return -1;
    }
}
