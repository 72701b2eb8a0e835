/* meet_reach.c - decide whether this node hosts the leader; else resolve and dial the leader's address, and
 * identify a foreign server there. */
#include "common/random.h"
#include "rendezvous/meet_state.h"
#include "rendezvous/net.h"

#include <errno.h>
#include <ifaddrs.h>
#include <string.h>
#include <sys/socket.h>

enum {
    FOREIGN_ANSWER_MS = 500,
    FOREIGN_AGAIN_MS = 10000,
    PROBE_MS = 3000,
    PROBE_AGAIN_MS = 1000,
    PROBES_MAX = 10
};

#define PROBE_NUMBER UINT32_MAX /* of meet_probe's only connection */

/* Whether all addresses of `host` belong to this machine's interfaces. One is not enough: the name of a
 * headless Service has the addresses of all pods. bind() is no test: with ip_nonlocal_bind it accepts any
 * address. */
static bool is_here(const struct meet *m)
{
    struct ifaddrs *all = NULL;
    bool here = m->found != NULL;
    uint8_t one[16], own[16];

    if (!here || getifaddrs(&all) < 0)
        return false;
    for (const struct addrinfo *at = m->found; at && here; at = at->ai_next) {
        here = net_address(at->ai_addr, one) && net_is_loopback(one);
        for (const struct ifaddrs *i = all; i && !here; i = i->ifa_next)
            here = i->ifa_addr && net_address(i->ifa_addr, own) && memcmp(one, own, sizeof(own)) == 0;
    }
    if (all)
        freeifaddrs(all);
    return here;
}

/* Start the leader if this node may host it and can listen. -1: it has to host and cannot. */
static int host(struct meet *m, int64_t now_ms, struct err *err)
{
    const struct meet_config *c = &m->config;
    struct leader_config l = {.quorum = c->quorum, .run_id = c->node.run_id, .key = c->node.key};

    if (m->leads || m->node.stage != NODE_REACHES || c->hosts == MEET_HOSTS_NOT ||
        (c->hosts == MEET_HOSTS_AUTO && !is_here(m)))
        return 0;
    if (service_open(&m->service, c->port, err) < 0) {
        service_close(&m->service);
        return c->hosts == MEET_HOSTS ? -1 : 0;
    }
    random_fill(l.id, sizeof(l.id));
    random_fill(l.seed, sizeof(l.seed));
    leader_init(&m->leader, &l, now_ms);
    m->leads = true;
    m->probe_ms = c->hosts == MEET_HOSTS ? now_ms : 0;
    return 0;
}

static void dial_here(struct meet *m, uint32_t number, int64_t now_ms)
{
    m->local_link = leader_opened(&m->leader, true, now_ms);
    m->local_number = number;
    node_connected(&m->node, number, m->config.host, now_ms);
}

static void forget_addresses(struct meet *m)
{
    freeaddrinfo(m->found);
    m->found = NULL;
}

/* Start to connect; -1 with errno. */
static int open_to(const struct sockaddr *addr, socklen_t len)
{
    cleanup_close int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || (connect(fd, addr, len) < 0 && errno != EINPROGRESS))
        return -1;
    return TAKE_FD(fd);
}

/* Whether the leader's address is known from an earlier WELCOME. The leader does not move, so a reconnect
 * does not resolve the name again. */
static bool knows_leader(const struct meet *m)
{
    return m->node.line.welcomed && m->leader_len;
}

/* Find the address to dial. 1: known; 0: the resolver is at work; -1: the name does not resolve. */
static int find(struct meet *m, int64_t now_ms)
{
    if (m->found || knows_leader(m))
        return 1;
    const int rc = resolver_wait(m->at, now_ms, &m->found);
    m->next = m->found;
    return rc;
}

static void dial_there(struct meet *m, uint32_t number, int64_t now_ms)
{
    const struct addrinfo *at = knows_leader(m) ? NULL : m->next;
    const int fd = at ? open_to(at->ai_addr, at->ai_addrlen)
                      : open_to((struct sockaddr *)&m->leader_addr, m->leader_len);
    const int code = errno;

    if (at && !(m->next = at->ai_next)) /* resolve the name again before the next attempt */
        forget_addresses(m);
    if (fd < 0) {
        node_closed(&m->node, number, LINK_CLOSED, strerror(code), now_ms);
        return;
    }
    struct wire *w = meet_add_wire(m, fd);
    w->connects = true;
    w->number = number;
}

void meet_go_on(struct meet *m, int64_t now_ms)
{
    const uint32_t number = m->pending;
    struct err err = {0};
    bool unresolved;

    if (!number)
        return;
    const int named = find(m, now_ms);
    m->unresolved = named ? named < 0 : m->unresolved; /* while the resolver is at work, keep the last
                                                        * result */
    if (host(m, now_ms, &err) < 0) {
        m->broken = err;
        return;
    }
    if (!m->leads && named == 0)
        return;
    m->pending = 0;
    if (m->leads)
        dial_here(m, number, now_ms);
    else if (named < 0)
        node_closed(&m->node, number, LINK_CLOSED, resolver_why(m->at, &unresolved), now_ms);
    else
        dial_there(m, number, now_ms);
}

void meet_dial(struct meet *m, uint32_t number, int64_t now_ms)
{
    m->pending = number;
    meet_go_on(m, now_ms);
}

void meet_keep_address(struct meet *m, int fd)
{
    socklen_t len = sizeof(m->leader_addr);

    if (!m->node.line.welcomed)
        m->leader_len = getpeername(fd, (struct sockaddr *)&m->leader_addr, &len) == 0 ? len : 0;
}

void meet_probe(struct meet *m, int64_t now_ms)
{
    if (!m->probe_ms || now_ms < m->probe_ms)
        return;
    const int named = find(m, now_ms);
    if (named == 0)
        return;
    m->probe_ms = named < 0 && ++m->probes < PROBES_MAX ? now_ms + PROBE_AGAIN_MS : 0;
    const int fd = named > 0 ? open_to(m->found->ai_addr, m->found->ai_addrlen) : -1;
    if (fd < 0)
        return;
    struct wire *w = meet_add_wire(m, fd);
    w->connects = true;
    w->late_ms = now_ms + PROBE_MS;
}

void meet_greet_probed(struct meet *m, struct wire *w, int64_t now_ms)
{
    struct message hello = {.type = MESSAGE_HELLO};

    node_hello(&m->config.node, PROBE_NUMBER, &hello.hello);
    meet_send(m, w, &hello, now_ms);
}

void meet_probed(struct meet *m)
{
    uint8_t answer[MESSAGE_ANSWER_BYTES];

    if (m->message.type != MESSAGE_CHALLENGE ||
        memcmp(m->message.challenge.leader, m->leader.config.id, MESSAGE_ID_BYTES) == 0 ||
        !node_answer(&m->config.node, PROBE_NUMBER, &m->message.challenge, answer))
        return;
    err_set(&m->broken, ERR_CONFLICT,
            "another launcher does so there: are two configured to (is_host=true, node rank 0)?");
    m->broken.code = EAGAIN; /* the other may run in a pod that terminates */
}

void meet_met_launcher(struct meet *m, int64_t now_ms)
{
    m->foreign = FOREIGN_NOBODY;
    m->foreign_text[0] = '\0';
    m->foreign_ms = now_ms + FOREIGN_AGAIN_MS;
}

void meet_identify_foreign(struct meet *m)
{
    char text[FOREIGN_BYTES] = "";

    const enum foreign who = foreign_identify(m->at, FOREIGN_ANSWER_MS, text);
    pthread_mutex_lock(&m->lock);
    m->awake.due_ms = 0; /* the thread waited for the answer; it was not stopped */
    m->foreign = who;
    memcpy(m->foreign_text, text, sizeof(text));
    m->foreign_ms = meet_now(m) + (who == FOREIGN_NOBODY ? 0 : FOREIGN_AGAIN_MS);
    pthread_mutex_unlock(&m->lock);
}
