/* watch_server.c - the thread, its poll and what it answers. */
#include "trainer/collectives/watch_server.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/thread.h"
#include "trainer/collectives/net.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum {
    UNKNOWN_MAX = 64, /* connections that have not registered yet; one more displaces the oldest */
    SPEAK_MS = 5000,  /* how long they have for it */
    GRACE_MS = 100,   /* an answer waits for the reports of ranks whose deadline passes at the same moment */
    SHUT_MS = 50,     /* how long the listener rests when there is no descriptor to give */
    PARTING_MS = 500, /* how long the last words may take */
    OWED_MAX = 1 << 20, /* bytes to a rank that does not read */
    NAMED_MAX = 8,      /* ranks listed by number in an answer */
};

struct seat {
    int fd;
    int rank; /* -1: not registered yet */
    int64_t came_ms;
    int64_t answer_ms; /* when to answer its query; 0: no query */
    uint64_t query;
    bool left, deaf, broken;
    size_t said;
    struct buf out;
    _Alignas(8) char in[WATCH_SAID_BYTES];
};

struct watch_server {
    pthread_t thread;
    int listener, stop, port;
    int world, n_registered;
    bool gone; /* GO was said: the table is complete */
    uint8_t token[WATCH_TOKEN_BYTES];
    int64_t shut_until_ms;
    struct member *members; /* [world] */
    struct seat **by_rank;  /* [world] */
    uint64_t *reported;     /* [world] the latest call each was seen to wait in */
    struct seat **seats;
    int n_seats, max_seats;
    struct pollfd *pfds; /* [max_seats + 2] */
    bool lost_or_failed; /* said once: the first reason is the one */
    _Atomic uint32_t strangers;
};

static void say(struct seat *t, const struct watch_head *head, const void *body)
{
    struct err ignored;

    if (t->deaf)
        return;
    if (t->broken || buf_append(&t->out, head, sizeof(*head), &ignored) < 0 ||
        (head->len && buf_append(&t->out, body, head->len, &ignored) < 0))
        t->broken = true;
}

static void say_all(struct watch_server *s, const struct watch_head *head, const void *body, int but)
{
    for (int r = 0; r < s->world; r++)
        if (r != but && s->by_rank[r])
            say(s->by_rank[r], head, body);
}

static void refuse(struct seat *t, enum err_kind kind, const char *why)
{
    const struct watch_head head = {.type = WATCH_REFUSED, .kind = kind, .len = (uint32_t)strlen(why)};

    say(t, &head, why);
}

/* Does a registration belong here? NULL, or why not. */
static bool take_rank(struct watch_server *s, struct seat *t, const struct watch_head *head, const void *body)
{
    struct watch_register r;
    char why[WATCH_TEXT_BYTES];

    if (head->len != sizeof(r))
        return false;
    memcpy(&r, body, sizeof(r));
    unsigned differ = 0;
    for (int i = 0; i < WATCH_TOKEN_BYTES; i++)
        differ |= (unsigned)(r.token[i] ^ s->token[i]);
    if (differ || r.magic != WATCH_MAGIC || r.version != WATCH_VERSION)
        return false;
    if (r.world != (uint32_t)s->world || head->rank >= r.world) {
        snprintf(why, sizeof(why), "WORLD_SIZE=%u on rank %u, but %d on rank 0: expected the same everywhere",
                 r.world, head->rank, s->world);
        refuse(t, ERR_INVALID, why);
    } else if (s->gone) {
        refuse(t, ERR_TRANSIENT, "the run has begun without this process");
    } else if (s->by_rank[head->rank]) {
        snprintf(why, sizeof(why), "two processes are rank %u of this run", head->rank);
        refuse(t, ERR_INVALID, why);
    } else {
        t->rank = (int)head->rank;
        s->by_rank[t->rank] = t;
        s->n_registered++;
        s->members[t->rank] = r.member;
        if (!net_peer(t->fd, s->members[t->rank].addr))
            t->broken = true;
    }
    return true;
}

static void go_if_complete(struct watch_server *s)
{
    const struct watch_head head = {.type = WATCH_GO,
                                    .len = (uint32_t)((size_t)s->world * sizeof(*s->members))};

    if (s->gone || s->n_registered < s->world)
        return;
    s->gone = true;
    say_all(s, &head, s->members, -1);
}

/* "3, 5 and 2 more": the ranks that have not been seen in call `seq` (0: that have not come). */
static void answer(struct watch_server *s, struct seat *t)
{
    char text[WATCH_TEXT_BYTES] = "";
    size_t at = 0;
    int n = 0;

    for (int r = 0; r < s->world; r++) {
        if (r == t->rank || (s->by_rank[r] && s->reported[r] >= t->query))
            continue;
        if (++n <= NAMED_MAX)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d", n > 1 ? ", " : "", r);
    }
    if (n > NAMED_MAX)
        snprintf(text + at, sizeof(text) - at, " and %d more", n - NAMED_MAX);
    const struct watch_head head = {.type = WATCH_ANSWER, .seq = t->query, .len = (uint32_t)strlen(text)};
    say(t, &head, text);
    t->answer_ms = 0;
}

static void tell_once(struct watch_server *s, struct watch_head head, const void *body, int rank)
{
    if (s->lost_or_failed || !s->gone)
        return;
    s->lost_or_failed = true;
    head.rank = (uint32_t)rank;
    say_all(s, &head, body, rank);
}

/* False: it is no rank of ours. */
static bool hear(struct watch_server *s, struct seat *t, const struct watch_head *head, const void *body)
{
    if (t->rank < 0)
        return head->type == WATCH_REGISTER && take_rank(s, t, head, body);
    struct watch_head out = *head;
    switch ((enum watch_type)head->type) {
    case WATCH_REPORT:
        s->reported[t->rank] = head->seq;
        return true;
    case WATCH_QUERY:
        t->query = head->seq;
        t->answer_ms = clock_mono_ms() + GRACE_MS;
        return true;
    case WATCH_LEAVE:
        t->left = true;
        out.rank = (uint32_t)t->rank;
        out.len = 0;
        say_all(s, &out, NULL, t->rank);
        return true;
    case WATCH_FAIL:
        out.len = out.len < WATCH_TEXT_BYTES ? out.len : WATCH_TEXT_BYTES - 1;
        tell_once(s, out, body, t->rank);
        return true;
    case WATCH_REGISTER:
    case WATCH_REFUSED:
    case WATCH_GO:
    case WATCH_ANSWER:
    case WATCH_LOST:
        break;
    }
    return false;
}

static void hear_all(struct watch_server *s, struct seat *t)
{
    size_t at = 0;
    struct watch_head head;

    while (!t->broken && t->said - at >= sizeof(head)) {
        memcpy(&head, t->in + at, sizeof(head));
        if (head.len > WATCH_SAID_BYTES - sizeof(head)) {
            t->broken = true;
        } else if (t->said - at < sizeof(head) + head.len) {
            break;
        } else {
            t->broken = !hear(s, t, &head, t->in + at + sizeof(head)) || t->broken;
            at += sizeof(head) + head.len;
        }
    }
    memmove(t->in, t->in + at, t->said - at);
    t->said -= at;
}

static void read_seat(struct watch_server *s, struct seat *t)
{
    for (int turns = 0; turns < 8 && !t->broken; turns++) {
        ssize_t n = recv(t->fd, t->in + t->said, sizeof(t->in) - t->said, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            t->broken = true;
        if (n <= 0)
            return;
        t->said += (size_t)n;
        hear_all(s, t);
    }
}

static void write_seat(struct seat *t)
{
    while (t->out.len) {
        ssize_t n = send(t->fd, t->out.data, t->out.len, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            t->deaf = true; /* what it said before is still to be read */
            buf_clear(&t->out);
            return;
        }
        buf_consume(&t->out, (size_t)n);
    }
}

/* A rank that goes before all have come makes room for its successor; later it is everyone's loss. */
static void drop_seat(struct watch_server *s, int i)
{
    struct seat *t = s->seats[i];

    if (t->rank < 0)
        atomic_fetch_add(&s->strangers, 1);
    else {
        s->by_rank[t->rank] = NULL;
        if (!s->gone) {
            s->n_registered--;
            s->reported[t->rank] = 0;
        } else if (!t->left)
            tell_once(s, (struct watch_head){.type = WATCH_LOST}, NULL, t->rank);
    }
    close(t->fd);
    buf_release(&t->out);
    free(t);
    s->seats[i] = s->seats[--s->n_seats];
}

static void welcome(struct watch_server *s)
{
    int fd = net_accept(s->listener), unknown = 0, oldest = -1;

    if (fd < 0) {
        if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
            s->shut_until_ms = clock_mono_ms() + SHUT_MS;
        return;
    }
    for (int i = 0; i < s->n_seats; i++)
        if (s->seats[i]->rank < 0) {
            unknown++;
            oldest = oldest < 0 || s->seats[i]->came_ms < s->seats[oldest]->came_ms ? i : oldest;
        }
    if (unknown >= UNKNOWN_MAX)
        drop_seat(s, oldest);
    struct seat *t = calloc(1, sizeof(*t));
    if (!t)
        abort();
    *t = (struct seat){
        .fd = fd, .rank = -1, .came_ms = clock_mono_ms(), .out = (struct buf)BUF_INIT(OWED_MAX)};
    net_tune(fd, true);
    s->seats[s->n_seats++] = t;
}

static int turn(struct watch_server *s, int64_t until_ms)
{
    int64_t now = clock_mono_ms();
    const int n = s->n_seats;

    if (s->shut_until_ms && now < s->shut_until_ms)
        until_ms = until_ms < s->shut_until_ms ? until_ms : s->shut_until_ms;
    else
        s->shut_until_ms = 0;
    for (int i = 0; i < n; i++) {
        const struct seat *t = s->seats[i];
        s->pfds[i + 2] = (struct pollfd){.fd = t->fd, .events = t->out.len ? POLLIN | POLLOUT : POLLIN};
        int64_t due = t->answer_ms ? t->answer_ms : t->rank < 0 ? t->came_ms + SPEAK_MS : until_ms;
        until_ms = due < until_ms ? due : until_ms;
    }
    s->pfds[0] = (struct pollfd){.fd = s->stop, .events = POLLIN};
    s->pfds[1] = (struct pollfd){.fd = s->shut_until_ms ? -1 : s->listener, .events = POLLIN};
    if (poll(s->pfds, (nfds_t)n + 2, until_ms <= now ? 0 : (int)(until_ms - now)) < 0)
        return errno == EINTR ? 0 : -1;
    now = clock_mono_ms();
    for (int i = 0; i < n; i++) {
        struct seat *t = s->seats[i];
        if (s->pfds[i + 2].revents & ~POLLOUT)
            read_seat(s, t);
        if (t->answer_ms && now >= t->answer_ms)
            answer(s, t);
        if (t->rank < 0 && now >= t->came_ms + SPEAK_MS)
            t->broken = true;
    }
    go_if_complete(s);
    for (int i = s->n_seats - 1; i >= 0; i--) {
        write_seat(s->seats[i]);
        if (s->seats[i]->broken)
            drop_seat(s, i);
    }
    if (s->pfds[1].revents)
        welcome(s);
    return s->pfds[0].revents ? 1 : 0;
}

static bool owes(const struct watch_server *s)
{
    for (int i = 0; i < s->n_seats; i++)
        if (s->seats[i]->out.len && s->seats[i]->rank >= 0)
            return true;
    return false;
}

/* What the host rank said last is still to be heard, up to the end of its connection, and to be passed on. */
static void part(struct watch_server *s)
{
    const int64_t end_ms = clock_mono_ms() + PARTING_MS;

    while ((s->by_rank[0] || owes(s)) && clock_mono_ms() < end_ms) {
        (void)turn(s, 0);
        poll(NULL, 0, 1);
    }
}

static void *serve(void *arg)
{
    struct watch_server *s = arg;
    int rc = 0;

    while (rc == 0)
        rc = turn(s, clock_mono_ms() + 60000);
    part(s);
    return NULL;
}

static void release(struct watch_server *s)
{
    while (s->n_seats)
        drop_seat(s, s->n_seats - 1);
    if (s->listener >= 0)
        close(s->listener);
    if (s->stop >= 0)
        close(s->stop);
    free(s->members);
    free(s->by_rank);
    free(s->reported);
    free(s->seats);
    free(s->pfds);
    free(s);
}

/* Signals are for the rank's own thread. */
static int start_thread(struct watch_server *s, struct err *err)
{
    int code = thread_start(&s->thread, serve, s);

    return code ? err_errno(err, ERR_FATAL, code, "collectives: cannot start the watch's thread") : 0;
}

struct watch_server *watch_server_start(int world, const uint8_t token[WATCH_TOKEN_BYTES], struct err *err)
{
    struct watch_server *s = calloc(1, sizeof(*s));
    const size_t n = (size_t)world;

    if (!s || !(s->members = calloc(n, sizeof(*s->members))) ||
        !(s->by_rank = calloc(n, sizeof(*s->by_rank))) || !(s->reported = calloc(n, sizeof(*s->reported))))
        abort();
    s->world = world;
    s->max_seats = world + UNKNOWN_MAX + 1;
    s->seats = calloc((size_t)s->max_seats, sizeof(*s->seats));
    s->pfds = calloc((size_t)s->max_seats + 2, sizeof(*s->pfds));
    if (!s->seats || !s->pfds)
        abort();
    memcpy(s->token, token, WATCH_TOKEN_BYTES);
    s->stop = -1;
    s->listener = net_listen(&s->port, err);
    if (s->listener >= 0 && (s->stop = eventfd(0, EFD_CLOEXEC)) < 0)
        err_errno(err, ERR_FATAL, errno, "collectives: eventfd");
    if (s->stop >= 0 && start_thread(s, err) == 0)
        return s;
    release(s);
    return NULL;
}

int watch_server_port(const struct watch_server *s)
{
    return s->port;
}

uint32_t watch_server_strangers(const struct watch_server *s)
{
    return atomic_load(&s->strangers);
}

void watch_server_stop(struct watch_server *s)
{
    const uint64_t one = 1;

    if (!s)
        return;
    if (write(s->stop, &one, sizeof(one)) != (ssize_t)sizeof(one))
        abort(); /* an eventfd that holds 0 takes 1 */
    pthread_join(s->thread, NULL);
    release(s);
}
