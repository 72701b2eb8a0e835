/* apiserver.c - the thread, its sockets, the log and the faults. */
#include "tests/fakes/server.h"

#include "common/json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The requests of method GET, by meaning. */
static const char *verb_of(const struct http_message *m, const struct route *r)
{
    if (strcmp(m->method, "GET") != 0 || r->name[0])
        return m->method;
    return r->watch ? "WATCH" : "LIST";
}

static const struct fake_fault_plan *fault_for(struct fake_apiserver *s, const char *verb, const char *path)
{
    if (!s->planned || !server_fits(verb, path, s->plan.method, s->plan.path_part) ||
        (s->plan.writes && !server_writes(verb, path)))
        return NULL;
    s->plan_seen++;
    if (s->plan.request && s->plan_seen != s->plan.request)
        return NULL;
    s->plan_done++;
    s->plan_last = s->n_log - 1;
    return &s->plan;
}

/* How much of the history there was at a version. */
static long changes_until(const struct world *w, unsigned long long version)
{
    size_t i = 0;

    while (i < w->n_changes && w->changes[i].version <= version)
        i++;
    return (long)i;
}

/* Where in the history a watch begins; -1: expired, which the version of what is shown now never is. */
static long watch_start(const struct world *w, const struct world *shown, const struct route *r)
{
    unsigned long long version = strtoull(r->version, NULL, 10);

    return version < w->oldest && version != shown->version ? -1 : changes_until(w, version);
}

/* What there is, as ADDED. */
static void send_initial(const struct world *w, struct conn *c)
{
    const struct route *r = &c->route;

    for (size_t i = 0; i < w->n_objects; i++) {
        const struct object *o = &w->objects[i];
        if (o->kind != r->kind || (r->ns[0] && strcmp(r->ns, o->ns) != 0) || !world_matches(r, o->json))
            continue;
        conn_event(c, "ADDED", o->json);
    }
}

static void start_watch(struct fake_apiserver *s, struct conn *c, const struct route *r,
                        const struct fake_fault_plan *f)
{
    bool from_now = !r->version[0] || strcmp(r->version, "0") == 0;
    bool stall = f && f->fault == FAKE_STALL_BODY;
    const struct world *shown = server_shown(s, "GET", r);
    long at = from_now ? changes_until(&s->world, shown->version) : watch_start(&s->world, shown, r);

    conn_start_watch(c, r);
    c->closing = f && !stall && f->fault != FAKE_DRIP_BODY && f->fault != FAKE_LATE_BODY;
    c->hanging = stall;
    if (at < 0) {
        struct outcome expired = world_error(410, "Expired", "too old resource version");
        conn_event(c, "ERROR", expired.body);
        cJSON_Delete(expired.body);
        conn_end_watch(c);
        return;
    }
    c->next_change = (size_t)at;
    if (from_now)
        send_initial(shown, c);
    c->watching = c->watching && !stall;
}

static void answer_json(struct conn *c, struct outcome o, int retry_after_s, enum fake_fault fault,
                        bool faulty)
{
    struct err err;
    cleanup_buf struct buf text = BUF_INIT(CONN_OUT_MAX_BYTES);

    if (json_write(o.body, &text, &err) < 0)
        abort();
    cJSON_Delete(o.body);
    if (faulty && fault == FAKE_GARBAGE_BODY)
        conn_answer(c, o.status, 0, text.data, text.len / 2, -1);
    else
        conn_answer(c, o.status, retry_after_s, text.data, text.len,
                    faulty && (fault == FAKE_RESET_BODY || fault == FAKE_STALL_BODY) ? (long)text.len / 2
                                                                                     : -1);
    c->hanging = faulty && fault == FAKE_STALL_BODY;
    c->closing = c->closing && !c->hanging;
}

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } REASONS[] = {
        {401, "Unauthorized"}, {403, "Forbidden"}, {404, "NotFound"},        {409, "Conflict"},
        {410, "Expired"},      {422, "Invalid"},   {429, "TooManyRequests"}, {503, "ServiceUnavailable"},
    };

    for (size_t i = 0; i < ARRAY_LEN(REASONS); i++)
        if (REASONS[i].status == status)
            return REASONS[i].reason;
    return "InternalError";
}

/* True when the fault took the place of the answer. */
static bool fault_before(struct conn *c, const struct fake_fault_plan *f, int *ret_status)
{
    if (f->fault == FAKE_STATUS && f->text) {
        *ret_status = f->status;
        conn_answer(c, f->status, 0, f->message, strlen(f->message), -1);
        return true;
    }
    if (f->fault == FAKE_STATUS) {
        *ret_status = f->status;
        c->location = f->location;
        answer_json(
            c,
            world_error(f->status, reason_of(f->status), f->message ? f->message : "a fault was asked for"),
            f->retry_after_s, f->fault, false);
        return true;
    }
    c->drips = f->fault == FAKE_DRIP_BODY;
    c->late = f->fault == FAKE_LATE_BODY;
    c->closing = f->fault == FAKE_DROP_BEFORE;
    c->hanging = f->fault == FAKE_HANG_BEFORE;
    return c->closing || c->hanging;
}

void server_handle(struct fake_apiserver *s, struct conn *c, const struct http_message *m)
{
    struct route r;
    struct err err;
    bool known = world_route(&s->world, m->target, &r);
    const char *verb = verb_of(m, &r);
    int entry = server_remember(s, m, verb);
    const struct fake_fault_plan *f = fault_for(s, verb, m->target);
    cleanup_json cJSON *body = m->body_len ? json_parse(m->body, m->body_len, &err) : NULL;

    s->log[entry].client = c->client;
    s->log[entry].retry_after_s = f && f->fault == FAKE_STATUS ? f->retry_after_s : 0;
    if (f && fault_before(c, f, &s->log[entry].status))
        return;
    if (known && r.watch) {
        s->log[entry].status = 200;
        start_watch(s, c, &r, f);
        return;
    }
    struct outcome o = {0};
    if (known && strcmp(r.sub, "log") == 0 && strcmp(m->method, "GET") == 0) {
        s->log[entry].status = podlog_answer(s, c, &r, m->target, f, &o);
        if (o.status)
            answer_json(c, o, 0, FAKE_STATUS, false);
        return;
    }
    uint64_t version = s->world.version;
    if (!known && world_resources(&s->world, m->target, &o)) {
        s->log[entry].status = o.status;
        answer_json(c, o, 0, f ? f->fault : FAKE_STATUS, f != NULL);
        return;
    }
    o = !known ? world_error(404, "NotFound", "the server could not find the requested resource")
               : world_do(server_shown(s, m->method, &r), m->method, &r, body);
    s->log[entry].changed = s->world.version != version;
    if (f && (f->fault == FAKE_DROP_AFTER || f->fault == FAKE_HANG_AFTER)) {
        c->closing = f->fault == FAKE_DROP_AFTER;
        c->hanging = f->fault == FAKE_HANG_AFTER;
        cJSON_Delete(o.body);
        return;
    }
    s->log[entry].status = o.status;
    answer_json(c, o, 0, f ? f->fault : FAKE_STATUS, f != NULL);
}

static void read_conn(struct fake_apiserver *s, struct conn *c)
{
    char bytes[65536];
    struct err err;
    struct http_message m;
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0 || buf_append(&c->in, bytes, (size_t)n, &err) < 0) {
        conn_close(c);
        return;
    }
    int rc = 0;
    while (c->fd >= 0 && !c->closing && !c->hanging && !c->watching && !c->podlog &&
           (rc = conn_parse(c, &m)) > 0) {
        server_handle(s, c, &m);
        buf_consume(&c->in, m.total);
    }
    if (rc < 0)
        conn_close(c);
}

static void write_conn(struct conn *c)
{
    while (c->out.len) {
        ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            conn_close(c);
            return;
        }
        buf_consume(&c->out, (size_t)n);
    }
    if (c->closing)
        conn_close(c);
}

static void accept_conn(struct fake_apiserver *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

    for (size_t i = 0; fd >= 0 && i < CONNS_MAX; i++) {
        if (s->conns[i].fd >= 0)
            continue;
        s->conns[i] =
            (struct conn){.fd = fd, .in = BUF_INIT(CONN_IN_MAX_BYTES), .out = BUF_INIT(CONN_OUT_MAX_BYTES)};
        s->connections++;
        return;
    }
    if (fd >= 0)
        close(fd);
}

static void turn(struct fake_apiserver *s, const struct pollfd *fds, const size_t *owners, size_t n)
{
    uint64_t ignored;

    if (fds[0].revents)
        accept_conn(s);
    if (fds[1].revents && read(s->wake, &ignored, sizeof(ignored)) < 0)
        abort();
    for (size_t i = 2; i < n; i++)
        if (fds[i].revents & (POLLIN | POLLHUP | POLLERR) && s->conns[owners[i]].fd == fds[i].fd)
            read_conn(s, &s->conns[owners[i]]);
    for (size_t i = 0; i < CONNS_MAX; i++) {
        struct conn *c = &s->conns[i];
        if (c->fd < 0)
            continue;
        if (!conn_due(c, &s->world) || !server_holds(s, c))
            conn_pump(c, &s->world);
        podlog_pump(c);
        write_conn(c);
    }
}

static void *serve(void *ctx)
{
    struct fake_apiserver *s = ctx;
    struct pollfd fds[CONNS_MAX + 2];
    size_t owners[CONNS_MAX + 2];

    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        size_t n = 2;
        int timeout_ms = s->asked == s->answered ? -1 : 0;
        fds[0] = (struct pollfd){.fd = s->listener, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = s->wake, .events = POLLIN};
        for (size_t i = 0; i < CONNS_MAX; i++) {
            if (s->conns[i].fd < 0)
                continue;
            fds[n] = (struct pollfd){.fd = s->conns[i].fd, .events = POLLIN};
            if (s->conns[i].out.len || s->conns[i].closing)
                fds[n].events |= POLLOUT;
            owners[n++] = i;
        }
        pthread_mutex_unlock(&s->lock);
        int ready = poll(fds, n, timeout_ms);
        pthread_mutex_lock(&s->lock);
        turn(s, fds, owners, n);
        if (ready == 0) { /* nothing to read, nothing left to write */
            s->answered = s->asked;
            pthread_cond_broadcast(&s->idle);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

struct fake_apiserver *fake_apiserver_alone(void)
{
    struct fake_apiserver *s = calloc(1, sizeof(*s));

    if (!s)
        abort();
    world_init(&s->world);
    s->plan_last = -1;
    for (size_t i = 0; i < CONNS_MAX; i++)
        s->conns[i].fd = -1;
    s->listener = s->wake = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->idle, NULL);
    return s;
}

static struct fake_apiserver *start(const struct sockaddr *at, socklen_t len)
{
    struct fake_apiserver *s = fake_apiserver_alone();

    s->listener = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    s->wake = eventfd(0, EFD_CLOEXEC);
    if (s->listener < 0 || s->wake < 0 || bind(s->listener, at, len) < 0 || listen(s->listener, 64) < 0 ||
        pthread_create(&s->thread, NULL, serve, s) != 0)
        abort();
    return s;
}

struct fake_apiserver *fake_apiserver_start(void)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    struct fake_apiserver *s = start((struct sockaddr *)&sa, len);

    if (getsockname(s->listener, (struct sockaddr *)&sa, &len) < 0)
        abort();
    snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", ntohs(sa.sin_port));
    return s;
}

struct fake_apiserver *fake_apiserver_start_at(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};

    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    return start((struct sockaddr *)&sa, sizeof(sa));
}
