/* host_meet.c - connect the ranks of a host by UNIX sockets, and pass the shared segment from rank 0 to the
 * others.
 *
 * Order: rank r listens under an abstract socket name computed from the run's configuration and r, connects to
 *        every lower rank, then accepts every higher one. The kernel completes connections in the listen queue,
 *        so no order of starting can deadlock. Rank 0 then sends the shared segment's descriptor to each rank.
 *        Abstract names are local to the network namespace and disappear with the socket. A connection from
 *        another user, or with another run's token, is dropped.
 */
#include "collectives/host.h"

#include "common/hash.h"
#include "rendezvous/net.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PENDING_MAX = 32, NAME_BYTES = 64, RETRY_MS_MAX = 20 };

struct hello {
    uint32_t magic;
    uint32_t rank;
    uint32_t world;
    uint32_t version;
    uint64_t token[2];
};

static const uint32_t HELLO_MAGIC = 0x6c436b54; /* "TkCl" */

enum { HELLO_VERSION = 3 }; /* of hello, and of the segment */

/* Names must differ between runs, but need not be secret: access is checked by the peer's user id. */
static void make_hello(const struct host *h, const struct collectives_config *cfg, struct hello *out)
{
    const char *run_id = cfg->run_id ? cfg->run_id : "";
    const uint32_t rest[] = {(uint32_t)cfg->group_rank, (uint32_t)cfg->restart_count,
                             (uint32_t)cfg->master_port, (uint32_t)cfg->world, (uint32_t)geteuid()};

    *out = (struct hello){.magic = HELLO_MAGIC, .version = HELLO_VERSION, .rank = (uint32_t)h->rank};
    out->world = (uint32_t)h->world;
    for (uint64_t i = 0; i < 2; i++) {
        const uint64_t of_run = hash_fnv1a(HASH_FNV1A ^ i, run_id, strlen(run_id));
        out->token[i] = hash_fnv1a(HASH_FNV1A ^ of_run, rest, sizeof(rest));
    }
}

static socklen_t make_name(const struct hello *hello, int rank, struct sockaddr_un *addr)
{
    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(addr->sun_path + 1, NAME_BYTES, "collectives-%016llx%016llx-%d",
                     (unsigned long long)hello->token[0], (unsigned long long)hello->token[1], rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool same_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

static int listen_at(const struct hello *hello, int rank, int world, struct err *err)
{
    struct sockaddr_un addr;
    socklen_t len = make_name(hello, rank, &addr);
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_errno(err, ERR_FATAL, errno, "collectives: cannot create a socket");
    if (bind(fd, (struct sockaddr *)&addr, len) < 0)
        return errno == EADDRINUSE
                   ? err_set(err, ERR_CONFLICT,
                             "collectives: another process is rank %d of this run already (RANK and "
                             "TORCHELASTIC_RUN_ID or MASTER_PORT must differ between processes and runs)",
                             rank)
                   : err_errno(err, ERR_FATAL, errno, "collectives: cannot bind a socket");
    if (listen(fd, world + PENDING_MAX) < 0)
        return err_errno(err, ERR_FATAL, errno, "collectives: cannot listen");
    return TAKE_FD(fd);
}

/* ERR_PEER if a connected rank, or one on another host, goes away while this rank waits for others. */
static int still_there(const struct host *h, struct err *err)
{
    for (int r = 0; r < h->world; r++) {
        struct pollfd pfd = {.fd = h->links[r], .events = POLLRDHUP};
        if (h->links[r] >= 0 && poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLRDHUP | POLLHUP | POLLERR))
            return err_set(err, ERR_PEER, "open: rank %d went away", h->base + r);
    }
    return h->others.look ? h->others.look(h->others.arg, "open", err) : 0;
}

/* While the rank does not listen yet, or its queue is full, try again with growing pauses. */
static int connect_to(struct host *h, const struct hello *hello, int rank, int64_t deadline_ms,
                      struct err *err)
{
    struct sockaddr_un addr;
    socklen_t len = make_name(hello, rank, &addr);
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_errno(err, ERR_FATAL, errno, "collectives: cannot create a socket");
    for (int wait_ms = 1; connect(fd, (struct sockaddr *)&addr, len) < 0;) {
        if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
            return err_errno(err, ERR_FATAL, errno, "collectives: cannot connect to rank %d", h->base + rank);
        if (still_there(h, err) < 0)
            return -1;
        if (host_left_ms(deadline_ms) == 0)
            return err_set(err, ERR_TIMEOUT, "open: deadline passed while waiting for rank %d to start",
                           h->base + rank);
        net_wait(-1, 0, wait_ms);
        wait_ms = wait_ms * 2 > RETRY_MS_MAX ? RETRY_MS_MAX : wait_ms * 2;
    }
    if (!same_user(fd))
        return err_set(err, ERR_INVALID, "collectives: rank %d belongs to another user", h->base + rank);
    if (send(fd, hello, sizeof(*hello), MSG_NOSIGNAL) != (ssize_t)sizeof(*hello))
        return err_set(err, ERR_PEER, "open: rank %d went away", h->base + rank);
    h->links[rank] = TAKE_FD(fd);
    return 0;
}

/* A rank sends its hello with one small write, so a partial one comes from another program. */
static int take_hello(struct host *h, const struct hello *mine, int fd, struct err *err)
{
    struct hello got;

    if (recv(fd, &got, sizeof(got), 0) != (ssize_t)sizeof(got) || got.magic != mine->magic ||
        got.version != mine->version || memcmp(got.token, mine->token, sizeof(got.token)) != 0 ||
        got.world != mine->world || got.rank <= mine->rank || got.rank >= mine->world) {
        close(fd);
        return 0;
    }
    if (h->links[got.rank] >= 0) {
        close(fd);
        return err_set(err, ERR_CONFLICT, "collectives: two processes are rank %u of this run",
                       (uint32_t)h->base + got.rank);
    }
    h->links[got.rank] = fd;
    return 1;
}

static void take_client(int listener, int *pending, int *n_pending)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (!same_user(fd) || *n_pending == PENDING_MAX)
        close(fd);
    else
        pending[(*n_pending)++] = fd;
}

static int missing_error(const struct host *h, struct err *err)
{
    for (int r = h->rank + 1; r < h->world; r++)
        if (h->links[r] < 0)
            return err_set(err, ERR_TIMEOUT, "open: deadline passed while waiting for rank %d to start",
                           h->base + r);
    return err_set(err, ERR_TIMEOUT, "open: deadline passed");
}

/* Wait until connections or hellos arrive and process them; returns how many ranks connected, -1 on failure. */
static int accept_turn(struct host *h, const struct hello *mine, int listener, int *pending, int *n_pending,
                       int64_t deadline_ms, struct err *err)
{
    struct pollfd pfds[PENDING_MAX + 1] = {{.fd = listener, .events = POLLIN}};
    int left = host_left_ms(deadline_ms), n = *n_pending, kept = 0, welcome = 0;

    for (int i = 0; i < n; i++)
        pfds[i + 1] = (struct pollfd){.fd = pending[i], .events = POLLIN};
    if (poll(pfds, (nfds_t)n + 1, left < HOST_SLICE_MS ? left : HOST_SLICE_MS) < 0 && errno != EINTR)
        return err_errno(err, ERR_FATAL, errno, "collectives: poll");
    for (int i = 0; i < n && welcome >= 0; i++) {
        int rc = 0;
        if (!pfds[i + 1].revents)
            pending[kept++] = pending[i];
        else
            rc = take_hello(h, mine, pending[i], err);
        welcome = rc < 0 ? -1 : welcome + rc;
        if (rc < 0)
            for (int rest = i + 1; rest < n; rest++)
                pending[kept++] = pending[rest];
    }
    *n_pending = kept;
    if (welcome >= 0 && pfds[0].revents)
        take_client(listener, pending, n_pending);
    if (welcome == 0 && host_left_ms(deadline_ms) == 0)
        return missing_error(h, err);
    return welcome;
}

static int accept_higher(struct host *h, const struct hello *mine, int listener, int64_t deadline_ms,
                         struct err *err)
{
    int pending[PENDING_MAX], n_pending = 0, rc = 0;

    for (int missing = h->world - 1 - h->rank; missing > 0 && rc >= 0; missing -= rc) {
        rc = accept_turn(h, mine, listener, pending, &n_pending, deadline_ms, err);
        if (rc == 0)
            rc = still_there(h, err);
    }
    for (int i = 0; i < n_pending; i++)
        close(pending[i]);
    return rc < 0 ? -1 : 0;
}

/* A message of one byte with a descriptor. */
struct passed {
    char byte;
    struct iovec iov;
    struct msghdr msg;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
};

static void make_passed(struct passed *p)
{
    *p = (struct passed){.iov = {&p->byte, 1}, .msg = {.msg_iov = &p->iov, .msg_iovlen = 1}};
    p->msg.msg_control = p->control.bytes;
    p->msg.msg_controllen = sizeof(p->control.bytes);
}

static int give_segment(struct host *h, struct err *err)
{
    struct passed p;

    for (int r = 1; r < h->world; r++) {
        make_passed(&p);
        struct cmsghdr *c = CMSG_FIRSTHDR(&p.msg);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &h->segment, sizeof(int));
        if (sendmsg(h->links[r], &p.msg, MSG_NOSIGNAL) != 1)
            return err_set(err, ERR_PEER, "open: rank %d went away", h->base + r);
    }
    return 0;
}

static int take_segment(struct host *h, int64_t deadline_ms, struct err *err)
{
    struct pollfd pfd = {.fd = h->links[0], .events = POLLIN};
    struct passed p;

    make_passed(&p);
    for (int left; (left = host_left_ms(deadline_ms),
                   poll(&pfd, 1, left < HOST_SLICE_MS ? left : HOST_SLICE_MS)) <= 0;) {
        if (still_there(h, err) < 0)
            return -1;
        if (left == 0)
            return err_set(err, ERR_TIMEOUT,
                           "open: deadline passed while waiting for rank %d and the ranks it "
                           "waits for",
                           h->base);
    }
    if (recvmsg(h->links[0], &p.msg, MSG_CMSG_CLOEXEC) != 1)
        return err_set(err, ERR_PEER, "open: rank %d went away", h->base);
    const struct cmsghdr *c = CMSG_FIRSTHDR(&p.msg);
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len != CMSG_LEN(sizeof(int)))
        return err_set(err, ERR_FATAL, "collectives: rank 0 sent no shared segment");
    memcpy(&h->segment, CMSG_DATA(c), sizeof(int));
    return host_segment_map(h, err);
}

int host_meet(struct host *h, const struct collectives_config *cfg, int64_t deadline_ms, struct err *err)
{
    struct hello hello;

    if (h->world == 1)
        return host_segment_alone(h, err);
    make_hello(h, cfg, &hello);
    cleanup_close int listener = listen_at(&hello, h->rank, h->world, err);
    if (listener < 0)
        return -1;
    for (int r = 0; r < h->rank; r++)
        if (connect_to(h, &hello, r, deadline_ms, err) < 0)
            return -1;
    if (accept_higher(h, &hello, listener, deadline_ms, err) < 0)
        return -1;
    if (h->rank != 0 ? take_segment(h, deadline_ms, err)
                     : host_segment_create(h, err) || give_segment(h, err))
        return -1;
    host_alarm_start(h);
    return 0;
}
