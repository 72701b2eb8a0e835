/* direct.c - calls as tasks of the loop. */
#include "tests/fakes/direct.h"

#include "tests/fakes/server.h"
#include "tests/fakes/tamper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRIP_BYTES = 64, DRIP_MS = 1000, LATE_MS = 3000 };

struct fake_direct {
    struct fake_apiserver *server;
    struct kube_loop *loop;
    struct fake_tamper *tamper;
    struct call *calls;
    unsigned long told, started;
    bool cut_off, full;
    int client;
};

/* What transport.h calls struct http_call. */
struct call {
    struct fake_direct *d;
    struct call *next, **at;
    unsigned long id;
    struct kube_http_handler handler;
    const struct kube_transport_gate *gate;
    int64_t idle_ms;
    char method[8], target[4096];
    struct buf body;
    size_t answer_max; /* of a collected answer */
    struct conn *conn; /* NULL: not carried out yet */
    struct kube_loop_task task;
    struct kube_loop_timer timeout;
    struct tamper_hold hold;
    struct kube_loop_timer drip;
    size_t arrived; /* of a body that drips; of one that is late: not 0 once it came */
    bool timed_out;
};

static struct conn *free_conn(struct fake_apiserver *s)
{
    for (size_t i = 0; i < CONNS_MAX; i++)
        if (s->conns[i].fd < 0)
            return &s->conns[i];
    abort(); /* a client leaks calls */
}

static void call_free(struct call *c)
{
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    kube_loop_task_cancel(c->d->loop, &c->task);
    kube_loop_timer_cancel(c->d->loop, &c->timeout);
    kube_loop_timer_cancel(c->d->loop, &c->drip);
    if (c->conn)
        conn_close(c->conn);
    buf_release(&c->body);
    free(c);
}

static void finish(struct call *c, const char *problem, enum err_kind kind)
{
    struct kube_http_handler handler = c->handler;
    size_t answer_max = c->answer_max;
    struct kube_http_response r = {.retry_after_ms = -1};
    cleanup_buf struct buf body = {0};
    struct err err;

    if (problem)
        err_set(&err, kind, "%s %.100s: %s", c->method, c->target, problem);
    if (c->conn) {
        r.status = c->conn->status;
        r.retry_after_ms = c->conn->retry_after_s ? c->conn->retry_after_s * 1000 : -1;
        body = c->conn->out;
        c->conn->out = (struct buf){0};
    }
    c->d->told++;
    call_free(c);
    r.cut = !handler.chunk && body.len > answer_max;
    r.body = (struct sv){buf_str(&body), r.cut ? answer_max : body.len};
    handler.done(handler.ctx, problem ? NULL : &r, problem ? &err : NULL);
}

static bool is_alive(const struct fake_direct *d, unsigned long id)
{
    const struct call *still;

    for (still = d->calls; still && still->id != id; still = still->next)
        ;
    return still != NULL;
}

/* Give out what has come, in pieces where that was requested. False: the handler cancelled the call. */
static bool give_chunk(struct call *c, size_t n)
{
    struct fake_direct *d = c->d;
    cleanup_buf struct buf bytes = BUF_INIT(CONN_OUT_MAX_BYTES);
    unsigned long id = c->id;
    struct err err;

    if (buf_append(&bytes, c->conn->out.data, n, &err) < 0)
        abort();
    buf_consume(&c->conn->out, n);
    d->told++;
    if (c->idle_ms)
        kube_loop_timer_set(d->loop, &c->timeout, kube_loop_now_ms(d->loop) + c->idle_ms);
    size_t piece = d->tamper && d->tamper->piece_bytes ? d->tamper->piece_bytes : n;
    for (size_t at = 0; at < n && is_alive(d, id); at += piece)
        c->handler.chunk(c->handler.ctx, (struct sv){buf_str(&bytes) + at, n - at < piece ? n - at : piece});
    return is_alive(d, id);
}

static void on_drip(void *ctx)
{
    struct call *c = ctx;

    c->arrived += DRIP_BYTES;
    kube_loop_task_add(c->d->loop, &c->task);
}

/* How much of what was sent has come; the rest is on its way. */
static size_t arrived(struct call *c)
{
    size_t sent = c->conn->out.len;

    if (!c->conn->drips || c->arrived >= sent)
        return sent;
    kube_loop_timer_set(c->d->loop, &c->drip, kube_loop_now_ms(c->d->loop) + DRIP_MS);
    return c->arrived;
}

/* Meanwhile watches send what has changed since. */
static bool is_late(struct call *c)
{
    if (!c->conn->late || c->arrived)
        return false;
    kube_loop_timer_set(c->d->loop, &c->drip, kube_loop_now_ms(c->d->loop) + LATE_MS);
    return true;
}

static void answer(struct call *c)
{
    struct conn *conn = c->conn;
    bool stream = c->handler.chunk && conn->status >= 200 && conn->status < 300;
    bool over = !conn->watching;
    bool broken = conn->closing || conn->cut;

    if (c->d->cut_off || is_late(c))
        return;
    size_t n = arrived(c);
    bool whole = n == conn->out.len;
    if (stream && n) {
        c->arrived = 0;
        if (!give_chunk(c, n))
            return;
    }
    if (!whole || conn->hanging)
        return;
    if (broken)
        finish(c, "the connection was closed", ERR_TRANSIENT);
    else if (over)
        finish(c, NULL, ERR_NONE);
}

static void carry_out(struct call *c)
{
    struct http_message m = {.body = buf_str(&c->body), .body_len = c->body.len};

    snprintf(m.method, sizeof(m.method), "%s", c->method);
    snprintf(m.target, sizeof(m.target), "%s", c->target);
    c->gate = NULL; /* it is on its way: nobody calls it back */
    c->conn = free_conn(c->d->server);
    *c->conn = (struct conn){
        .fd = CONN_BARE_FD, .bare = true, .client = c->d->client, .out = BUF_INIT(CONN_OUT_MAX_BYTES)};
    server_handle(c->d->server, c->conn, &m);
    kube_loop_task_add(c->d->loop, &c->task);
}

static void step(void *ctx)
{
    struct call *c = ctx;

    if (c->timed_out)
        finish(c, "no answer in time", ERR_TIMEOUT);
    else if (c->conn)
        answer(c);
    else if (c->gate && !c->gate->is_open(c->gate->ctx))
        finish(c, "not sent: this process does not hold the lease", ERR_TRANSIENT);
    else if (!c->d->cut_off)
        carry_out(c);
}

static void on_timeout(void *ctx)
{
    struct call *c = ctx;

    c->timed_out = true;
    kube_loop_task_add(c->d->loop, &c->task);
}

static struct kube_transfer *start(void *ctx, const struct kube_http_request *req,
                                   const struct kube_http_handler *handler, struct err *err)
{
    struct fake_direct *d = ctx;
    struct call *c = calloc(1, sizeof(*c));
    int64_t limit_ms = req->timeout_ms ? req->timeout_ms : req->idle_timeout_ms;

    if (!c || strlen(req->path) >= sizeof(c->target))
        abort();
    *c =
        (struct call){.d = d,
                      .next = d->calls,
                      .at = &d->calls,
                      .id = ++d->started,
                      .handler = *handler,
                      .gate = req->gate,
                      .idle_ms = req->idle_timeout_ms,
                      .body = BUF_INIT(CONN_IN_MAX_BYTES),
                      .answer_max = req->body_max_bytes ? req->body_max_bytes : KUBE_TRANSPORT_BODY_MAX_BYTES,
                      .task = {.run = step, .ctx = c},
                      .timeout = {.fire = on_timeout, .ctx = c},
                      .drip = {.fire = on_drip, .ctx = c}};
    snprintf(c->method, sizeof(c->method), "%s", req->method);
    snprintf(c->target, sizeof(c->target), "%s", req->path);
    if (req->body.len && buf_append(&c->body, req->body.p, req->body.len, err) < 0)
        abort();
    if (c->next)
        c->next->at = &c->next;
    d->calls = c;
    if (limit_ms)
        kube_loop_timer_set(d->loop, &c->timeout, kube_loop_now_ms(d->loop) + limit_ms);
    kube_loop_task_add(d->loop, &c->task);
    return (struct kube_transfer *)(void *)c;
}

static void cancel(void *ctx, struct kube_transfer *call)
{
    (void)ctx;
    call_free((struct call *)(void *)call);
}

struct fake_direct *fake_direct_new(struct fake_apiserver *s, struct kube_loop *l, struct fake_tamper *tamper)
{
    struct fake_direct *d = calloc(1, sizeof(*d));

    if (!d)
        abort();
    *d = (struct fake_direct){.server = s, .loop = l, .tamper = tamper, .client = ++s->clients};
    return d;
}

void fake_direct_free(struct fake_direct *d)
{
    if (!d)
        return;
    while (d->calls)
        call_free(d->calls);
    free(d);
}

static bool is_full(void *ctx, const char *ns)
{
    const struct fake_direct *d = ctx;

    (void)ns;
    return d->full;
}

void fake_direct_fill(struct fake_direct *d, bool full)
{
    d->full = full;
}

struct kube_transport fake_direct_transport(struct fake_direct *d)
{
    return (struct kube_transport){.start = start, .cancel = cancel, .ctx = d, .is_full = is_full};
}

unsigned long fake_direct_told(const struct fake_direct *d)
{
    return d->told;
}

void fake_direct_cut_off(struct fake_direct *d, bool cut_off)
{
    d->cut_off = cut_off;
    for (struct call *c = d->calls; c && !cut_off; c = c->next) {
        if (c->conn && c->conn->hanging && d->server->plan.fault == FAKE_HANG_BEFORE) {
            conn_close(c->conn);
            c->conn = NULL;
        }
        kube_loop_task_add(d->loop, &c->task);
    }
}

static void pump(struct call *c)
{
    struct fake_direct *d = c->d;

    tamper_pump(d->server, c->conn, d->tamper, &c->hold, kube_loop_now_ms(d->loop));
    if (c->conn->out.len || c->conn->closing || !c->conn->watching)
        kube_loop_task_add(d->loop, &c->task);
}

void fake_direct_turn(struct fake_direct *d)
{
    for (struct call *c = d->calls; c && !d->cut_off; c = c->next)
        if (c->conn && c->conn->route.watch && !c->conn->hanging)
            pump(c);
}
