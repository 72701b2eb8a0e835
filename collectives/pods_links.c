/* pods_links.c - TCP links between ranks of different pods: those for sums are connected at open, those for messages
 * with the first message.
 *
 * The connecting rank sends a hello first. The accepting rank closes a connection that sends none or a wrong
 * one. If the job has a key, the hello contains the connecting rank's proof, and the accepting rank sends its
 * own proof before any data: a process that has taken over a rank's address gets no data. A rank accepts
 * links and sends proofs in every call in which it waits, so two ranks cannot deadlock.
 */
#include "collectives/pods.h"
#include "common/clock.h"
#include "common/random.h"
#include "common/secret.h"
#include "rendezvous/net.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum {
    SPEAK_MS = 5000,      /* how long a connection may take to send its hello */
    EVICT_AGE_MS = 250,   /* how long when the table is full: then a new connection displaces the oldest */
    PER_ADDRESS_MAX = 16, /* with a key: connections of one address before their hello */
};

enum link_kind { LINK_SUMS = 1, LINK_MESSAGE };

struct link_hello {
    uint64_t magic;
    uint8_t token[WATCH_TOKEN_BYTES];  /* the watch's token, or with a key a proof for this link, which covers
                                        * the token */
    uint8_t nonce[JOBKEY_NONCE_BYTES]; /* with a key: random */
    uint32_t kind, from, to, pad;
};

static void fill_token(const struct pods *p, struct link_hello *h)
{
    uint8_t proof[JOBKEY_PROOF_BYTES];

    memcpy(h->token, p->watch.token, sizeof(h->token));
    if (p->pass.key.has) {
        pass_prove(&p->pass, PASS_CALLER, h, sizeof(*h), NULL, proof);
        memcpy(h->token, proof, sizeof(h->token));
    }
}

/* Read the accepting rank's proof. 1: valid; 0: not arrived yet; -1: the connection has ended, or *err: it is
 * wrong. */
static int take_proof(const struct pods *p, int fd, const struct link_hello *h, struct err *err)
{
    uint8_t proof[JOBKEY_PROOF_BYTES];
    const ssize_t n = recv(fd, proof, sizeof(proof), MSG_DONTWAIT);

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    if (n == (ssize_t)sizeof(proof) && pass_holds(&p->pass, PASS_CALLED, h, sizeof(*h), NULL, proof))
        return 1;
    return err_set(err, ERR_CONFLICT,
                   "the process at the address of rank %u does not have the key of this job", h->to);
}

/* Continue a link's handshake. 1: ready; 0: wait for *events; -1: it failed: try again, or *err says why not
 * to. */
static int go_on(const struct pods *p, int fd, const struct link_hello *h, short *events, struct err *err)
{
    if (*events == POLLIN)
        return take_proof(p, fd, h, err);
    const int rc = net_connected(fd);
    if (rc <= 0)
        return rc;
    net_tune(fd, NET_LOST_MS, false);
    *events = POLLIN;
    return send(fd, h, sizeof(*h), MSG_NOSIGNAL) != (ssize_t)sizeof(*h) ? -1 : !p->pass.key.has;
}

/* Connect to `rank` and send the hello; try again until it succeeds, a peer is lost or the deadline passes. */
static int connect_link(struct pods *p, int rank, enum link_kind kind, const char *what, int64_t deadline_ms,
                        struct err *err)
{
    const struct rank_member *m = &p->watch.members[rank];
    struct link_hello hello = {
        .magic = WATCH_MAGIC, .kind = kind, .from = (uint32_t)p->rank, .to = (uint32_t)rank};
    struct err why = {0};

    if (p->pass.key.has)
        random_fill(hello.nonce, sizeof(hello.nonce));
    fill_token(p, &hello);
    for (;;) {
        cleanup_close int fd = net_connect(m->addr, (int)m->port);
        short events = POLLOUT;
        int rc;
        while ((rc = fd < 0 ? -1 : go_on(p, fd, &hello, &events, &why)) == 0) {
            struct pollfd pfds[2] = {{.fd = fd, .events = events}};
            if (pods_wait(p, pfds, 1, what, deadline_ms, err) < 0)
                return -1;
        }
        if (rc > 0)
            return TAKE_FD(fd);
        if (why.kind)
            return err_set(err, why.kind, "%s: %s", what, why.msg);
        /* Its accept queue may be full of unauthenticated connections; if the host is gone, the watch reports
         * it. */
        struct pollfd none[2] = {{.fd = -1}};
        if (pods_wait(p, none, 1, what, deadline_ms, err) < 0)
            return -1;
    }
}

int pods_connect_message(struct pods *p, int rank, int64_t deadline_ms, struct err *err)
{
    p->to[rank] = connect_link(p, rank, LINK_MESSAGE, "send", deadline_ms, err);
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
    struct link_hello want = *h;

    fill_token(p, &want);
    if (h->magic != WATCH_MAGIC || !secret_equal(h->token, want.token, sizeof(h->token)) ||
        h->to != (uint32_t)p->rank || h->from >= (uint32_t)p->world)
        return NULL;
    const int pod = pod_layout_of(&p->layout, (int)h->from);
    if (h->kind == LINK_MESSAGE && p->from[h->from] < 0 && pod != p->pod)
        return &p->from[h->from];
    if (h->kind == LINK_SUMS && wants_link(p, pod) && pod > p->pod && p->links[pod] < 0 &&
        (int)h->from == p->layout.first[pod] + p->host->rank)
        return &p->links[pod];
    return NULL;
}

static void drop_pending(struct pods *p, int i)
{
    if (p->pending[i].fd >= 0)
        close(p->pending[i].fd);
    p->n_pending--;
    memmove(&p->pending[i], &p->pending[i + 1], (size_t)(p->n_pending - i) * sizeof(p->pending[0]));
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
    if (entry && p->pass.key.has) {
        uint8_t proof[JOBKEY_PROOF_BYTES];
        pass_prove(&p->pass, PASS_CALLED, &hello, sizeof(hello), NULL, proof);
        (void)!send(c->fd, proof, sizeof(proof), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (entry)
        *entry = TAKE_FD(c->fd);
    drop_pending(p, i);
}

static bool look_at_pending(const void *arg, int at, struct service_conn *g)
{
    const struct pending *c = &((const struct pods *)arg)->pending[at];

    *g = (struct service_conn){.came_ms = c->came_ms, .addr = c->addr};
    return true;
}

/* Accept a connection. Without a key there is no limit per address: the peer would not dial a reset link
 * again, and the call would fail. */
static bool welcome(struct pods *p)
{
    const struct service_limits crowd = {.n = p->n_pending,
                                         .get = look_at_pending,
                                         .arg = p,
                                         .max = PODS_PENDING_MAX,
                                         .per_address = p->pass.key.has ? PER_ADDRESS_MAX : 0,
                                         .evict_age_ms = EVICT_AGE_MS};
    uint8_t addr[16];
    int evicted;
    const int fd = service_accept(&p->door, &crowd, addr, &evicted);

    if (fd < 0)
        return false;
    if (evicted >= 0)
        drop_pending(p, evicted);
    net_tune(fd, NET_LOST_MS, false);
    p->pending[p->n_pending] = (struct pending){.fd = fd, .came_ms = clock_mono_ms()};
    memcpy(p->pending[p->n_pending++].addr, addr, sizeof(addr));
    hear_pending(p, p->n_pending - 1);
    return true;
}

void pods_take_links(struct pods *p)
{
    for (int i = p->n_pending - 1; i >= 0; i--)
        hear_pending(p, i);
    for (int turns = 0; service_listener(&p->door) >= 0 && turns < PODS_PENDING_MAX && welcome(p); turns++)
        ;
}

int pods_accept(struct pods *p, const char *what, int64_t deadline_ms, struct err *err)
{
    struct pollfd pfds[PODS_PENDING_MAX + 2] = {{.fd = service_listener(&p->door), .events = POLLIN}};

    for (int i = 0; i < p->n_pending; i++)
        pfds[i + 1] = (struct pollfd){.fd = p->pending[i].fd, .events = POLLIN};
    if (pods_wait(p, pfds, p->n_pending + 1, what, deadline_ms, err) < 0)
        return -1;
    pods_take_links(p);
    return 0;
}

int pods_join(struct pods *p, int64_t deadline_ms, struct err *err)
{
    for (int pod = 0; pod < p->pod; pod++)
        if (wants_link(p, pod)) {
            p->links[pod] =
                connect_link(p, p->layout.first[pod] + p->host->rank, LINK_SUMS, "open", deadline_ms, err);
            if (p->links[pod] < 0)
                return -1;
        }
    for (int pod = p->pod + 1; pod < p->layout.n_pods; pod++)
        while (wants_link(p, pod) && p->links[pod] < 0)
            if (pods_accept(p, "open", deadline_ms, err) < 0)
                return -1;
    return 0;
}
