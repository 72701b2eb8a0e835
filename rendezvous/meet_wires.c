/* meet_wires.c - the sockets of struct meet: accept, read and write frames, report how a connection ended. */
#include "common/memory.h"
#include "rendezvous/meet_state.h"
#include "rendezvous/net.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    READ_BYTES = 16 * 1024,
    READS_MAX = 4,
    LEAST_MS = 3000,
    FAREWELL_MS = 1000,
    OUT_BYTES = 2 * MESSAGE_STATE_BYTES,
    UNAUTHENTICATED_MAX = 256, /* connections before WELCOME */
    PER_ADDRESS_MAX = 16,      /* of these from one address */
    EVICT_AGE_MS = 250,        /* the age at which a new connection may displace an old one */
};

/* TCP timeouts are at least the silence. Else a shorter network outage would end the connection on one side,
 * and the other side would see a reset and take the node for dead. */
struct wire *meet_add_wire(struct meet *m, int fd)
{
    const int64_t silence_ms = m->config.node.keep_alive_ms * m->config.node.keep_alive_attempts;
    struct wire *w = memory_must(calloc(1, sizeof(*w)));

    *w = (struct wire){.fd = fd, .in = BUF_INIT(MESSAGE_STATE_BYTES), .out = BUF_INIT(OUT_BYTES)};
    net_tune(fd, silence_ms < LEAST_MS ? LEAST_MS : silence_ms, true);
    if (m->n_wires == m->room_wires) {
        m->room_wires = m->room_wires ? 2 * m->room_wires : 16;
        m->wires = memory_must(realloc(m->wires, (size_t)m->room_wires * sizeof(*m->wires)));
    }
    return m->wires[m->n_wires++] = w;
}

static void free_wire(struct wire *w)
{
    close_fd(&w->fd);
    buf_release(&w->in);
    buf_release(&w->out);
    free(w);
}

void meet_release_wires(struct meet *m)
{
    for (int i = 0; i < m->n_wires; i++)
        free_wire(m->wires[i]);
    free(m->wires);
    m->wires = NULL;
    m->n_wires = m->room_wires = 0;
}

struct wire *meet_wire_of_node(struct meet *m, uint32_t number)
{
    for (int i = 0; i < m->n_wires; i++)
        if (!m->wires[i]->leaders && m->wires[i]->number == number && m->wires[i]->fd >= 0)
            return m->wires[i];
    return NULL;
}

struct wire *meet_wire_of_leader(struct meet *m, int link)
{
    for (int i = 0; i < m->n_wires; i++)
        if (m->wires[i]->leaders && m->wires[i]->link == link && m->wires[i]->fd >= 0 &&
            !m->wires[i]->close_ms)
            return m->wires[i];
    return NULL;
}

static void tell_end(struct meet *m, struct wire *w, int code, int64_t now_ms)
{
    const bool silent = code == ETIMEDOUT || code == EHOSTUNREACH || code == ENETUNREACH || code == EHOSTDOWN;
    const enum link_end how = silent ? LINK_SILENT : LINK_CLOSED;

    if (w->fd < 0)
        return;
    close_fd(&w->fd);
    if (w->close_ms)
        return; /* already closed */
    if (w->leaders)
        leader_closed(&m->leader, w->link, how, now_ms);
    else
        node_closed(&m->node, w->number, how, code ? strerror(code) : "the leader closed the connection",
                    now_ms);
}

static void tell_blocked(struct meet *m, const struct wire *w)
{
    if (w->close_ms)
        return;
    if (w->leaders)
        leader_blocked(&m->leader, w->link, w->out.len != 0);
    else
        node_blocked(&m->node, w->number, w->out.len != 0);
}

static void flush(struct meet *m, struct wire *w, int64_t now_ms)
{
    while (w->out.len && w->fd >= 0 && !w->connects) {
        const ssize_t n = send(w->fd, w->out.data, w->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            buf_consume(&w->out, (size_t)n);
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR) {
            tell_end(m, w, errno, now_ms);
            return;
        }
    }
    tell_blocked(m, w);
    if (w->close_ms && (!w->out.len || now_ms >= w->close_ms))
        close_fd(&w->fd);
}

void meet_send(struct meet *m, struct wire *w, const struct message *message, int64_t now_ms)
{
    struct err ignored;

    if (w && w->fd >= 0 && message_put(message, &w->out, &ignored) == 0)
        flush(m, w, now_ms);
}

void meet_close_wire(struct meet *m, struct wire *w, int64_t now_ms)
{
    if (!w || w->fd < 0)
        return;
    w->close_ms = now_ms + FAREWELL_MS;
    flush(m, w, now_ms);
    if (w->connects)
        close_fd(&w->fd);
}

static bool get_unauthenticated(const void *arg, int at, struct service_conn *g)
{
    const struct meet *m = arg;
    const struct wire *w = m->wires[at];

    g->addr = w->addr;
    if (!w->leaders || w->fd < 0 || w->close_ms ||
        !leader_unauthenticated(&m->leader, w->link, &g->greeted, &g->came_ms))
        return false;
    g->came_ms += m->awake.stopped_ms;
    return true;
}

void meet_accept(struct meet *m, int64_t now_ms)
{
    const struct service_limits strangers = {.n = m->n_wires,
                                             .get = get_unauthenticated,
                                             .arg = m,
                                             .max = UNAUTHENTICATED_MAX,
                                             .per_address = PER_ADDRESS_MAX,
                                             .evict_age_ms = EVICT_AGE_MS};
    uint8_t addr[16];
    int evicted;
    const int fd = service_accept(&m->service, &strangers, addr, &evicted);

    if (fd < 0)
        return;
    if (evicted >= 0)
        leader_displace(&m->leader, m->wires[evicted]->link);
    struct wire *w = meet_add_wire(m, fd);
    w->leaders = true;
    memcpy(w->addr, addr, sizeof(w->addr));
    w->link = leader_opened(&m->leader, false, now_ms);
}

/* The local address of a connection, as text; "" when it is not known. */
static void local_address(int fd, char out[static MEETING_NAME_BYTES])
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof(addr);

    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0 ||
        getnameinfo((struct sockaddr *)&addr, len, out, MEETING_NAME_BYTES, NULL, 0, NI_NUMERICHOST) != 0)
        out[0] = '\0';
}

static void connected(struct meet *m, struct wire *w, int64_t now_ms)
{
    char addr[MEETING_NAME_BYTES];
    socklen_t len = sizeof(int);
    int code = 0;

    if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
        code = errno;
    if (code) {
        tell_end(m, w, code, now_ms);
        return;
    }
    w->connects = false;
    if (!w->number) {
        meet_greet_probed(m, w, now_ms);
        return;
    }
    local_address(w->fd, addr);
    node_connected(&m->node, w->number, addr, now_ms);
}

static bool take(struct meet *m, struct wire *w, const char *frame, size_t len, int64_t now_ms)
{
    struct err ignored;

    if (message_get(frame, len, &m->message, &m->incoming, &ignored) < 0)
        return false;
    if (w->leaders)
        return leader_heard(&m->leader, w->link, &m->message, now_ms);
    if (!w->number) {
        meet_probed(m);
        return false;
    }
    if (m->message.type == MESSAGE_CHALLENGE || m->message.type == MESSAGE_REFUSED)
        meet_met_launcher(m, now_ms);
    if (m->message.type == MESSAGE_WELCOME)
        meet_keep_address(m, w->fd);
    return node_heard(&m->node, w->number, &m->message, now_ms);
}

/* Act on all complete frames received. The first malformed one ends the connection. */
static void read_frames(struct meet *m, struct wire *w, int64_t now_ms)
{
    size_t used = 0, at = 0;
    int rc = 0;

    while (w->fd >= 0 && !w->close_ms) {
        const size_t max = w->leaders ? leader_frame_max(&m->leader, w->link) : MESSAGE_STATE_BYTES;
        rc = message_frame(w->in.data + at, w->in.len - at, max, &used);
        if (rc <= 0)
            break;
        if (!take(m, w, w->in.data + at, used, now_ms)) {
            rc = -1;
            break;
        }
        at += used;
    }
    buf_consume(&w->in, at);
    if (rc < 0)
        tell_end(m, w, 0, now_ms);
}

static void receive(struct meet *m, struct wire *w, int64_t now_ms)
{
    char bytes[READ_BYTES];
    struct err ignored;

    for (int i = 0; w->fd >= 0 && i < READS_MAX; i++) {
        const size_t room = w->in.max - w->in.len;
        const ssize_t n = recv(w->fd, bytes, room < sizeof(bytes) ? room : sizeof(bytes), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            tell_end(m, w, n ? errno : 0, now_ms);
            return;
        }
        if (w->close_ms)
            continue;
        if (!w->leaders)
            node_received(&m->node, w->number, now_ms);
        if (buf_append(&w->in, bytes, (size_t)n, &ignored) == 0)
            read_frames(m, w, now_ms);
        if ((size_t)n < sizeof(bytes))
            return;
    }
}

int meet_poll_wires(const struct meet *m, struct pollfd *pfds)
{
    for (int i = 0; i < m->n_wires; i++) {
        const struct wire *w = m->wires[i];
        const bool writes = w->connects || w->out.len;
        pfds[i] = (struct pollfd){.fd = w->fd, .events = (short)(POLLIN | (writes ? POLLOUT : 0))};
    }
    return m->n_wires;
}

void meet_turn_wires(struct meet *m, const struct pollfd *pfds, int n, int64_t now_ms)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        struct wire *w = m->wires[i];
        if (w->fd >= 0 && w->connects && pfds[i].revents)
            connected(m, w, now_ms);
        else if (w->fd >= 0 && pfds[i].revents & (POLLIN | POLLHUP | POLLERR))
            receive(m, w, now_ms);
        if (w->late_ms && now_ms >= w->late_ms)
            close_fd(&w->fd);
        if (w->fd >= 0 && (w->out.len || w->close_ms))
            flush(m, w, now_ms);
    }
    for (int i = 0; i < m->n_wires; i++) {
        if (m->wires[i]->fd >= 0)
            m->wires[kept++] = m->wires[i];
        else
            free_wire(m->wires[i]);
    }
    m->n_wires = kept;
}
