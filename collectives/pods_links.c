/* pods_links.c - TCP links between ranks of different pods: those for sums are connected at open, those for messages
 * with the first message.
 *
 * The connecting rank sends a hello first. A connection that sends none, or a wrong one, is closed and counted as
 * unauthenticated. Where the job has a key the hello proves it; over a link for sums the called rank then proves it, too, and the
 * caller waits for that when all links are connected.
 */
#include "collectives/pods.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/secret.h"
#include "rendezvous/net.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    SPEAK_MS = 5000,   /* how long a connection may take to send its hello */
    PATIENCE_MS = 250, /* how long when the table is full: then a new connection displaces the oldest */
};

enum link_kind { LINK_SUMS = 1, LINK_MESSAGE };

struct link_hello {
    uint64_t magic;
    uint8_t token[WATCH_TOKEN_BYTES];
    uint32_t kind, from, to, pad;
    uint8_t nonce[JOBKEY_NONCE_BYTES]; /* with a key, as the proof, which covers what stands before it */
    uint8_t proof[JOBKEY_PROOF_BYTES];
};

/* What the proofs of a link cover: the hello, and the token, which is of this round. */
static struct pass_talk talk_of(const struct pods *p, const struct link_hello *h)
{
    return (struct pass_talk){h, offsetof(struct link_hello, proof), p->watch.token, sizeof(p->watch.token)};
}

static struct link_hello make_hello(const struct pods *p, int rank, enum link_kind kind)
{
    struct link_hello h = {
        .magic = WATCH_MAGIC, .kind = kind, .from = (uint32_t)p->rank, .to = (uint32_t)rank};
    const struct pass_talk talk = talk_of(p, &h);

    memcpy(h.token, p->watch.token, sizeof(h.token));
    if (p->pass.key.has) {
        pass_nonce(h.nonce);
        pass_prove(&p->pass, PASS_CALLER, &talk, h.proof);
    }
    return h;
}

/* Connect to `rank` and send *hello; try again until it succeeds, a peer is lost or the deadline passes. */
static int connect_link(struct pods *p, int rank, const struct link_hello *hello, const char *what,
                        int64_t deadline_ms, struct err *err)
{
    const struct member *m = &p->watch.members[rank];

    for (;;) {
        cleanup_close int fd = net_connect(m->addr, (int)m->port);
        int rc = fd < 0 ? -1 : net_connected(fd);
        while (rc == 0) {
            struct pollfd pfds[2] = {{.fd = fd, .events = POLLOUT}};
            if (pods_wait(p, pfds, 1, what, deadline_ms, err) < 0)
                return -1;
            rc = net_connected(fd);
        }
        if (rc > 0) {
            net_tune(fd, false);
            if (send(fd, hello, sizeof(*hello), MSG_NOSIGNAL) == (ssize_t)sizeof(*hello))
                return TAKE_FD(fd);
        }
        /* Its accept queue may be full of unauthenticated connections; if the host is gone, the watch reports
         * it. */
        struct pollfd none[2] = {{.fd = -1}};
        if (pods_wait(p, none, 1, what, deadline_ms, err) < 0)
            return -1;
    }
}

int pods_connect_message(struct pods *p, int rank, int64_t deadline_ms, struct err *err)
{
    const struct link_hello hello = make_hello(p, rank, LINK_MESSAGE);

    p->to[rank] = connect_link(p, rank, &hello, "send", deadline_ms, err);
    return p->to[rank] < 0 ? -1 : 0;
}

/* Whether this rank has a link for sums to that pod. The higher pod connects. */
static bool wants_link(const struct pods *p, int pod)
{
    const bool neighbour = pod == p->pod - 1 || pod == p->pod + 1;

    return p->host->rank < p->layout.lanes && pod != p->pod && (neighbour || pods_direct_serves(p));
}

/* The entry for a link with this hello; NULL: it is not expected. */
static int *entry_for(struct pods *p, const struct link_hello *h)
{
    const struct pass_talk talk = talk_of(p, h);

    if (h->magic != WATCH_MAGIC || (p->pass.key.has && !pass_holds(&p->pass, PASS_CALLER, &talk, h->proof)) ||
        !secret_equal(h->token, p->watch.token, sizeof(h->token)) || h->to != (uint32_t)p->rank ||
        h->from >= (uint32_t)p->world)
        return NULL;
    const int pod = layout_pod_of(&p->layout, (int)h->from);
    if (h->kind == LINK_MESSAGE && p->from[h->from] < 0 && pod != p->pod)
        return &p->from[h->from];
    if (h->kind == LINK_SUMS && wants_link(p, pod) && pod > p->pod && p->links[pod] < 0 &&
        (int)h->from == p->layout.first[pod] + p->host->rank)
        return &p->links[pod];
    return NULL;
}

static void drop_pending(struct pods *p, int i)
{
    if (p->pending[i].fd >= 0) {
        close(p->pending[i].fd);
        p->unauthenticated++;
    }
    p->n_pending--;
    memmove(&p->pending[i], &p->pending[i + 1], (size_t)(p->n_pending - i) * sizeof(p->pending[0]));
}

/* Prove to the caller of a link for sums that this rank has the key. */
static bool answer(const struct pods *p, int fd, const struct link_hello *h)
{
    const struct pass_talk talk = talk_of(p, h);
    uint8_t proof[JOBKEY_PROOF_BYTES];

    if (!p->pass.key.has || h->kind != LINK_SUMS)
        return true;
    pass_prove(&p->pass, PASS_CALLED, &talk, proof);
    return send(fd, proof, sizeof(proof), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(proof);
}

/* A rank sends its hello with one small write, so a partial one comes from another program. */
static void hear_pending(struct pods *p, int i)
{
    struct link_hello hello;
    struct pending *c = &p->pending[i];
    ssize_t n = recv(c->fd, &hello, sizeof(hello), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR) && clock_mono_ms() < c->came_ms + SPEAK_MS)
        return;
    int *entry = n == (ssize_t)sizeof(hello) ? entry_for(p, &hello) : NULL;
    if (entry && answer(p, c->fd, &hello))
        *entry = TAKE_FD(c->fd);
    drop_pending(p, i);
}

static bool look_at_pending(const void *arg, int at, struct service_guest *g)
{
    const struct pods *p = arg;

    *g = (struct service_guest){.came_ms = p->pending[at].came_ms, .addr = p->pending[at].addr};
    return true;
}

/* Links come from the ranks' addresses. A link that is turned away is not dialed again: the call would fail. */
static bool is_of_a_rank(const void *arg, const uint8_t addr[static 16])
{
    const struct pods *p = arg;

    for (int r = 0; r < p->world; r++)
        if (memcmp(p->watch.members[r].addr, addr, 16) == 0)
            return true;
    return net_is_loopback(addr);
}

static bool welcome(struct pods *p)
{
    const struct service_crowd crowd = {.places = p->n_pending,
                                        .look = look_at_pending,
                                        .arg = p,
                                        .max = PODS_PENDING_MAX,
                                        .each = PODS_PENDING_EACH,
                                        .known = is_of_a_rank,
                                        .patience_ms = PATIENCE_MS};
    struct pending new;
    int gives_way;

    new.fd = service_admit(&p->door, &crowd, new.addr, &gives_way);
    if (new.fd < 0)
        return false;
    if (gives_way >= 0)
        drop_pending(p, gives_way);
    net_tune(new.fd, false);
    new.came_ms = clock_mono_ms();
    p->pending[p->n_pending++] = new;
    hear_pending(p, p->n_pending - 1);
    return true;
}

int pods_accept(struct pods *p, const char *what, int64_t deadline_ms, struct err *err)
{
    struct pollfd pfds[PODS_PENDING_MAX + 2] = {{.fd = service_listener(&p->door), .events = POLLIN}};

    for (int i = 0; i < p->n_pending; i++)
        pfds[i + 1] = (struct pollfd){.fd = p->pending[i].fd, .events = POLLIN};
    if (pods_wait(p, pfds, p->n_pending + 1, what, deadline_ms, err) < 0)
        return -1;
    for (int i = p->n_pending - 1; i >= 0; i--)
        hear_pending(p, i);
    for (int turns = 0; pfds[0].revents && turns < PODS_PENDING_MAX && welcome(p); turns++)
        ;
    return 0;
}

static int connect_sums(struct pods *p, int pod, struct link_hello *hello, int64_t deadline_ms,
                        struct err *err)
{
    const int rank = p->layout.first[pod] + p->host->rank;

    *hello = make_hello(p, rank, LINK_SUMS);
    p->links[pod] = connect_link(p, rank, hello, "open", deadline_ms, err);
    return p->links[pod] < 0 ? -1 : 0;
}

/* Until the called rank has proved that it has the key; who has not is left, and the rank called again. */
static int await_answer(struct pods *p, int pod, struct link_hello *hello, int64_t deadline_ms,
                        struct err *err)
{
    uint8_t proof[JOBKEY_PROOF_BYTES];

    for (;;) {
        const struct pass_talk talk = talk_of(p, hello);
        struct pollfd pfds[2] = {{.fd = p->links[pod], .events = POLLIN}};
        if (pods_wait(p, pfds, 1, "open", deadline_ms, err) < 0)
            return -1;
        const ssize_t n = recv(p->links[pod], proof, sizeof(proof), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n == (ssize_t)sizeof(proof) && pass_holds(&p->pass, PASS_CALLED, &talk, proof))
            return 0;
        close(p->links[pod]);
        p->links[pod] = -1;
        p->unauthenticated++;
        struct pollfd none[2] = {{.fd = -1}};
        if (pods_wait(p, none, 1, "open", deadline_ms, err) < 0 ||
            connect_sums(p, pod, hello, deadline_ms, err) < 0)
            return -1;
    }
}

/* All connect before any waits, so each rank's turn to answer comes whatever the others do. */
int pods_join(struct pods *p, int64_t deadline_ms, struct err *err)
{
    cleanup_free struct link_hello *hellos = memory_must(calloc((size_t)p->pod + 1, sizeof(*hellos)));

    for (int pod = 0; pod < p->pod; pod++)
        if (wants_link(p, pod) && connect_sums(p, pod, &hellos[pod], deadline_ms, err) < 0)
            return -1;
    for (int pod = p->pod + 1; pod < p->layout.n_pods; pod++)
        while (wants_link(p, pod) && p->links[pod] < 0)
            if (pods_accept(p, "open", deadline_ms, err) < 0)
                return -1;
    for (int pod = 0; pod < p->pod && p->pass.key.has; pod++)
        if (wants_link(p, pod) && await_answer(p, pod, &hellos[pod], deadline_ms, err) < 0)
            return -1;
    return 0;
}
