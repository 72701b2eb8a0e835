/* clients.c - the store server's connections: read requests, answer them, wake clients that wait for a key. */
#include "rendezvous/clients.h"
#include "common/clock.h"
#include "common/memory.h"
#include "rendezvous/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The limit of connections that are not admitted yet. Beyond it a new one displaces the oldest, once that is
 * PATIENCE_MS old. */
enum { UNKNOWN_MAX = 256, PATIENCE_MS = 250 };
enum { IN_BYTES = PROTOCOL_BODY_BYTES + 4, OUT_BYTES = STORE_VALUE_BYTES + 64, READ_BYTES = 16 * 1024 };

void clients_init(struct clients *s, const char *run_id, int max, int64_t speak_ms)
{
    *s = (struct clients){.max = max, .speak_ms = speak_ms};
    s->list = memory_must(calloc((size_t)max, sizeof(struct client *)));
    protocol_hello(run_id, s->hello);
}

static void client_free(struct clients *s, struct client *c)
{
    if (!c->admitted) {
        s->n_unknown--;
        atomic_fetch_add(&s->unauthenticated, 1);
    }
    close(c->fd);
    buf_release(&c->in);
    buf_release(&c->out);
    free(c);
}

void clients_release(struct clients *s)
{
    for (int i = 0; i < s->n; i++)
        client_free(s, s->list[i]);
    free(s->list);
    table_release(&s->table);
}

/* The list is in the order of arrival. */
static int oldest_unknown(const struct clients *s)
{
    int i = 0;

    while (s->list[i]->admitted)
        i++;
    return i;
}

int64_t clients_crowded_ms(const struct clients *s)
{
    if (s->n_unknown < UNKNOWN_MAX)
        return 0;
    const int64_t left = s->list[oldest_unknown(s)]->came_ms + PATIENCE_MS - clock_mono_ms();
    return left < 0 ? 0 : left;
}

static void displace_oldest(struct clients *s)
{
    const int i = oldest_unknown(s);

    client_free(s, s->list[i]);
    s->n--;
    memmove(&s->list[i], &s->list[i + 1], (size_t)(s->n - i) * sizeof(struct client *));
}

bool clients_add(struct clients *s, int fd)
{
    if (s->n_unknown >= UNKNOWN_MAX)
        displace_oldest(s);
    if (s->n == s->max)
        return false;
    struct client *c = memory_must(calloc(1, sizeof(*c)));
    *c = (struct client){.fd = fd, .in = BUF_INIT(IN_BYTES), .out = BUF_INIT(OUT_BYTES)};
    c->came_ms = clock_mono_ms();
    c->deadline_ms = c->came_ms + s->speak_ms;
    s->list[s->n++] = c;
    s->n_unknown++;
    return true;
}

void clients_turn_away(int fd)
{
    cleanup_buf struct buf out = BUF_INIT(64);
    struct err ignored;

    if (protocol_put_answer(&out, STATUS_CROWDED, (struct view){NULL, 0}, &ignored) == 0 &&
        send(fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* the client sees the end of the connection instead */
}

int clients_poll(const struct clients *s, struct pollfd *pfds)
{
    for (int i = 0; i < s->n; i++) {
        const struct client *c = s->list[i];
        /* A waiting client sends nothing; POLLRDHUP reports that it leaves. */
        short events = c->out.len ? POLLOUT : c->waiting ? POLLRDHUP : POLLIN;
        pfds[i] = (struct pollfd){.fd = c->fd, .events = events};
    }
    return s->n;
}

int64_t clients_due_ms(const struct clients *s)
{
    int64_t first = INT64_MAX;

    for (int i = 0; i < s->n; i++)
        if (s->list[i]->deadline_ms && s->list[i]->deadline_ms < first)
            first = s->list[i]->deadline_ms;
    return first;
}

static void answer(const struct clients *s, struct client *c, enum protocol_status status,
                   struct view payload)
{
    struct err ignored;

    c->waiting = false;
    c->deadline_ms = clock_mono_ms() + s->speak_ms; /* for reading it */
    /* A value fits the answer's buffer, which is empty here: see Order. */
    if (protocol_put_answer(&c->out, status, payload, &ignored) < 0)
        abort();
}

/* Whether the key that r waits for exists, or its counter is high enough; *found: the value. */
static bool satisfied(const struct table *t, const struct protocol_request *r, struct view *found)
{
    int64_t value;

    if (!table_get(t, r->key, found))
        return r->op == OP_WAIT_COUNT && r->number <= 0;
    return r->op == OP_GET || (protocol_number(*found, &value) && value >= r->number);
}

static void wait_for(struct clients *s, struct client *c, const struct protocol_request *r)
{
    struct view found = {NULL, 0};

    if (satisfied(&s->table, r, &found))
        answer(s, c, STATUS_OK, found);
    else if (!c->waiting) {
        c->waiting = true;
        c->deadline_ms = clock_mono_ms() + r->wait_ms;
    } else if (clock_mono_ms() >= c->deadline_ms)
        answer(s, c, STATUS_TIMEOUT, (struct view){NULL, 0});
}

static void execute(struct clients *s, struct client *c, const struct protocol_request *r)
{
    struct view payload = {NULL, 0};
    char sum[8];

    if (r->op == OP_GET || r->op == OP_WAIT_COUNT)
        wait_for(s, c, r);
    else {
        enum protocol_status status = request_apply(&s->table, r, sum, &payload);
        answer(s, c, status, payload);
    }
}

/* Check the hello, as far as it has arrived; false: it is not one of this protocol. */
static bool admit(struct clients *s, struct client *c)
{
    if (c->in.len < PROTOCOL_HELLO_BYTES)
        return memcmp(c->in.data ? c->in.data : s->hello, s->hello, c->in.len < 8 ? c->in.len : 8) == 0;
    c->admitted = protocol_hello_equal(c->in.data, s->hello);
    s->n_unknown -= c->admitted;
    buf_consume(&c->in, PROTOCOL_HELLO_BYTES);
    answer(s, c, c->admitted ? STATUS_OK : STATUS_REFUSED, (struct view){NULL, 0});
    return true;
}

/* Act on the received bytes; false: drop the client. */
static bool advance(struct clients *s, struct client *c)
{
    struct protocol_request r;
    struct view body;
    size_t used;

    if (!c->admitted)
        return c->out.len || admit(s, c);
    if (c->out.len)
        return true;
    int rc = protocol_frame((struct view){c->in.data, c->in.len}, &body, &used);
    if (rc == 0) {
        if (!c->in.len)
            c->deadline_ms = 0;
        else if (!c->deadline_ms)
            c->deadline_ms = clock_mono_ms() + s->speak_ms;
        return true;
    }
    if (rc < 0)
        return false;
    if (!c->waiting)
        c->deadline_ms = 0;
    if (protocol_parse_request(body, &r))
        execute(s, c, &r);
    else
        answer(s, c, STATUS_BAD, (struct view){NULL, 0});
    if (!c->waiting)
        buf_consume(&c->in, used);
    return true;
}

static bool receive(struct client *c)
{
    char bytes[READ_BYTES];
    struct err ignored;
    size_t room = c->in.max - c->in.len;
    ssize_t n = recv(c->fd, bytes, room < sizeof(bytes) ? room : sizeof(bytes), MSG_DONTWAIT);

    if (n > 0)
        return buf_append(&c->in, bytes, (size_t)n, &ignored) == 0;
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Send the answer. False when the client is to be dropped: writing failed, or its refusal has been sent. */
static bool flush(struct client *c)
{
    ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n > 0)
        buf_consume(&c->out, (size_t)n);
    else if (errno != EAGAIN && errno != EINTR)
        return false;
    if (!c->out.len)
        c->deadline_ms = 0;
    return c->admitted || c->out.len;
}

static bool serve(struct clients *s, struct client *c, short revents)
{
    if (revents & (POLLERR | POLLNVAL) || (c->waiting && revents & (POLLHUP | POLLRDHUP)))
        return false;
    if (revents & (POLLIN | POLLHUP) && !c->out.len && !c->waiting && !receive(c))
        return false;
    if (revents & POLLOUT && c->out.len && !flush(c))
        return false;
    do {
        if (!advance(s, c))
            return false;
        if (!c->out.len)
            break;
        if (!flush(c))
            return false;
    } while (!c->out.len);
    return c->waiting || !c->deadline_ms || clock_mono_ms() < c->deadline_ms;
}

/* Serve waiting clients once more after all others, so that a value set in this turn wakes them in this turn. */
void clients_turn(struct clients *s, const struct pollfd *pfds, int n)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++) {
            struct client *c = s->list[i];
            if (!c || (pass == 1 && !c->waiting))
                continue;
            if (serve(s, c, pfds[i].revents))
                continue;
            client_free(s, c);
            s->list[i] = NULL;
        }
    int kept = 0;
    for (int i = 0; i < s->n; i++)
        if (s->list[i])
            s->list[kept++] = s->list[i];
    s->n = kept;
}
