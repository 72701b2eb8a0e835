/* host_link.c - messages between two ranks of one host over their UNIX socket, each preceded by its length. */
#include "collectives/host.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

/* Wait until the socket is ready. A stopped peer makes this time out; a dead peer's socket becomes ready. */
static int wait_ready(struct host *h, short events, const char *what, int rank, int64_t deadline_ms,
                      struct err *err)
{
    for (;;) {
        struct pollfd pfd = {.fd = h->links[rank], .events = events};
        int left = host_left_ms(deadline_ms), n = poll(&pfd, 1, left < HOST_SLICE_MS ? left : HOST_SLICE_MS);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_errno(err, ERR_FATAL, errno, "%s: poll", what);
        if (h->others.look && h->others.look(h->others.arg, what, err) < 0)
            return -1;
        if (left == 0)
            return err_set(err, ERR_TIMEOUT, "%s: deadline passed while waiting for rank %d", what,
                           h->base + rank);
    }
}

/* Send the length and the message with as few calls as the socket's buffer allows. */
static int send_all(struct host *h, const void *bytes, size_t len, int to, int64_t deadline_ms,
                    struct err *err)
{
    const uint64_t size = len;
    struct iovec parts[] = {{(void *)(uintptr_t)&size, sizeof(size)}, {(void *)(uintptr_t)bytes, len}};

    for (size_t left = sizeof(size) + len; left > 0;) {
        const struct msghdr msg = {.msg_iov = parts, .msg_iovlen = ARRAY_LEN(parts)};
        ssize_t n = sendmsg(h->links[to], &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            if (wait_ready(h, POLLOUT, "send", to, deadline_ms, err) < 0)
                return -1;
        } else if (n < 0 && errno != EINTR)
            return err_set(err, ERR_PEER, "send: rank %d went away", h->base + to);
        for (size_t i = 0, sent = n > 0 ? (size_t)n : 0; i < ARRAY_LEN(parts); i++) {
            size_t part = sent < parts[i].iov_len ? sent : parts[i].iov_len;
            parts[i].iov_base = (char *)parts[i].iov_base + part;
            parts[i].iov_len -= part;
            sent -= part;
            left -= part;
        }
    }
    return 0;
}

static int recv_all(struct host *h, void *bytes, size_t len, int from, int64_t deadline_ms, struct err *err)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = recv(h->links[from], (char *)bytes + at, len - at, MSG_DONTWAIT);
        if (n > 0)
            at += (size_t)n;
        else if (n < 0 && errno == EAGAIN) {
            if (wait_ready(h, POLLIN, "recv", from, deadline_ms, err) < 0)
                return -1;
        } else if (!(n < 0 && errno == EINTR))
            return err_set(err, ERR_PEER, "recv: rank %d went away", h->base + from);
    }
    return 0;
}

/* A broken socket: the watch may know why the peer went away. */
static int link_failed(struct host *h, const char *what, struct err *why, struct err *err)
{
    if (why->kind == ERR_PEER && h->others.watch)
        watch_lost(h->others.watch, what, why);
    *err = *why;
    return host_fail(h, why);
}

int host_link_send(struct host *h, const void *bytes, size_t len, int to, int64_t deadline_ms,
                   struct err *err)
{
    struct err why = {0};

    if (send_all(h, bytes, len, to, deadline_ms, &why) < 0)
        return link_failed(h, "send", &why, err);
    return 0;
}

int host_link_recv(struct host *h, void *bytes, size_t len, int from, int64_t deadline_ms, struct err *err)
{
    uint64_t size;
    struct err why = {0};

    int rc = recv_all(h, &size, sizeof(size), from, deadline_ms, &why);
    if (rc == 0 && size != len)
        rc = err_set(&why, ERR_INVALID, "ranks disagree: rank %d sends %llu bytes, rank %d expects %zu",
                     h->base + from, (unsigned long long)size, h->base + h->rank, len);
    if (rc == 0)
        rc = recv_all(h, bytes, len, from, deadline_ms, &why);
    return rc == 0 ? 0 : link_failed(h, "recv", &why, err);
}
