/* direct.c - calls as tasks of the loop. */
#include "tests/fakes/direct.h"

#include "common/json.h"
#include "tests/fakes/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_direct {
    struct fake_apiserver *server;
    struct loop *loop;
    struct fake_tamper *tamper;
    struct call *calls;
    unsigned long told, started;
    bool cut_off;
};

/* What transport.h calls struct http_call. */
struct call {
    struct fake_direct *d;
    struct call *next, **at;
    unsigned long id;
    struct http_handler handler;
    const struct transport_gate *gate;
    int64_t idle_ms;
    char method[8], target[4096];
    struct buf body;
    struct conn *conn; /* NULL: not carried out yet */
    struct loop_task task;
    struct loop_timer timeout;
    int64_t held_until_ms; /* the stream, by tampering; 0: not */
    bool merging;
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
    loop_task_cancel(c->d->loop, &c->task);
    loop_timer_cancel(c->d->loop, &c->timeout);
    if (c->conn)
        conn_close(c->conn);
    buf_release(&c->body);
    free(c);
}

static void finish(struct call *c, const char *problem, enum err_kind kind)
{
    struct http_handler handler = c->handler;
    struct http_response r = {.retry_after_ms = -1};
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
    r.body = (struct sv){buf_str(&body), body.len};
    handler.done(handler.ctx, problem ? NULL : &r, problem ? &err : NULL);
}

/* False: the handler cancelled the call. */
static bool give_chunk(struct call *c)
{
    struct fake_direct *d = c->d;
    cleanup_buf struct buf bytes = c->conn->out;
    const struct call *still;
    unsigned long id = c->id;

    c->conn->out = (struct buf)BUF_INIT(CONN_OUT_MAX_BYTES);
    d->told++;
    if (c->idle_ms)
        loop_timer_set(d->loop, &c->timeout, loop_now_ms(d->loop) + c->idle_ms);
    c->handler.chunk(c->handler.ctx, (struct sv){buf_str(&bytes), bytes.len});
    for (still = d->calls; still && still->id != id; still = still->next)
        ;
    return still != NULL;
}

static void answer(struct call *c)
{
    struct conn *conn = c->conn;
    bool stream = c->handler.chunk && conn->status >= 200 && conn->status < 300;
    bool over = !conn->watching;
    bool broken = conn->closing || conn->cut;

    if (c->d->cut_off || (stream && conn->out.len && !give_chunk(c)) || conn->hanging)
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
    *c->conn = (struct conn){.fd = CONN_BARE_FD, .bare = true, .out = BUF_INIT(CONN_OUT_MAX_BYTES)};
    server_handle(c->d->server, c->conn, &m);
    loop_task_add(c->d->loop, &c->task);
}

static void step(void *ctx)
{
    struct call *c = ctx;

    if (c->timed_out)
        finish(c, "no answer in time", ERR_TIMEOUT);
    else if (c->conn)
        answer(c);
    else if (c->gate && !c->gate->is_open(c->gate->ctx))
        finish(c, "not sent, since this process may not write any more", ERR_TRANSIENT);
    else if (!c->d->cut_off)
        carry_out(c);
}

static void on_timeout(void *ctx)
{
    struct call *c = ctx;

    c->timed_out = true;
    loop_task_add(c->d->loop, &c->task);
}

static struct http_call *start(void *ctx, const struct http_request *req, const struct http_handler *handler,
                               struct err *err)
{
    struct fake_direct *d = ctx;
    struct call *c = calloc(1, sizeof(*c));
    int64_t limit_ms = req->timeout_ms ? req->timeout_ms : req->idle_timeout_ms;

    if (!c || strlen(req->path) >= sizeof(c->target))
        abort();
    *c = (struct call){.d = d,
                       .next = d->calls,
                       .at = &d->calls,
                       .id = ++d->started,
                       .handler = *handler,
                       .gate = req->gate,
                       .idle_ms = req->idle_timeout_ms,
                       .body = BUF_INIT(CONN_IN_MAX_BYTES),
                       .task = {.run = step, .ctx = c},
                       .timeout = {.fire = on_timeout, .ctx = c}};
    snprintf(c->method, sizeof(c->method), "%s", req->method);
    snprintf(c->target, sizeof(c->target), "%s", req->path);
    if (req->body.len && buf_append(&c->body, req->body.p, req->body.len, err) < 0)
        abort();
    if (c->next)
        c->next->at = &c->next;
    d->calls = c;
    if (limit_ms)
        loop_timer_set(d->loop, &c->timeout, loop_now_ms(d->loop) + limit_ms);
    loop_task_add(d->loop, &c->task);
    return (struct http_call *)(void *)c;
}

static void cancel(void *ctx, struct http_call *call)
{
    (void)ctx;
    call_free((struct call *)(void *)call);
}

struct fake_direct *fake_direct_new(struct fake_apiserver *s, struct loop *l, struct fake_tamper *tamper)
{
    struct fake_direct *d = calloc(1, sizeof(*d));

    if (!d)
        abort();
    *d = (struct fake_direct){.server = s, .loop = l, .tamper = tamper};
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

struct transport fake_direct_transport(struct fake_direct *d)
{
    return (struct transport){start, cancel, d};
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
        loop_task_add(d->loop, &c->task);
    }
}

/* ---- what watches tell */

static bool strikes(struct fake_tamper *t)
{
    int repeats = t->repeats ? t->repeats : 1;

    return ++t->seen >= t->event && t->event && t->seen < t->event + repeats;
}

static void compact(struct world *w)
{
    w->oldest = ++w->version;
}

static void tell_gone(struct call *c)
{
    struct outcome gone = world_error(410, "Expired", "too old resource version");

    conn_event(c->conn, "ERROR", gone.body);
    cJSON_Delete(gone.body);
    compact(&c->d->server->world);
    conn_end_watch(c->conn);
}

static void refuse_next_watch(struct call *c)
{
    struct fake_apiserver *s = c->d->server;

    c->conn->closing = true;
    compact(&s->world);
    s->plan = (struct fake_fault_plan){.request = 1, .method = "WATCH", .fault = FAKE_STATUS, .status = 410};
    s->plan.path_part = c->conn->route.kind->plural;
    s->plan_seen = s->plan_done = 0;
    s->planned = true;
}

static void tamper_with(struct call *c)
{
    const struct world *w = &c->d->server->world;
    struct conn *conn = c->conn;
    struct fake_tamper *t = c->d->tamper;

    t->done++;
    snprintf(t->told, sizeof(t->told), "%.40s/%s", conn->route.kind->plural, conn_due_type(conn, w));
    switch (t->how) {
    case FAKE_TELL:
        conn_tell(conn, w);
        break;
    case FAKE_CUT_BEFORE:
        conn->closing = true;
        break;
    case FAKE_CUT_AFTER:
        conn_tell(conn, w);
        conn->closing = true;
        break;
    case FAKE_REPEAT:
        conn_tell(conn, w);
        conn->next_change--;
        conn_tell(conn, w);
        break;
    case FAKE_MERGE:
    case FAKE_LATE:
        c->held_until_ms = loop_now_ms(c->d->loop) + t->late_ms;
        c->merging = t->how == FAKE_MERGE;
        break;
    case FAKE_GONE_STREAM:
        tell_gone(c);
        break;
    case FAKE_GONE_REQUEST:
        refuse_next_watch(c);
        break;
    }
}

static bool same_object(const struct change *a, const struct change *b)
{
    const char *const name[] = {"metadata", "name", NULL};
    const char *const ns[] = {"metadata", "namespace", NULL};
    const cJSON *x = a->after ? a->after : a->before;
    const cJSON *y = b->after ? b->after : b->before;

    return a->kind == b->kind && cJSON_Compare(json_find(x, name), json_find(y, name), true) &&
           cJSON_Compare(json_find(x, ns), json_find(y, ns), true);
}

static bool changed_again(const struct world *w, size_t at)
{
    for (size_t i = at + 1; i < w->n_changes; i++)
        if (same_object(&w->changes[at], &w->changes[i]))
            return true;
    return false;
}

/* False: the stream is held. */
static bool released(struct call *c)
{
    const struct world *w = &c->d->server->world;

    if (!c->held_until_ms)
        return true;
    if (c->merging && changed_again(w, c->conn->next_change)) {
        c->conn->next_change++; /* the next one says it all */
        c->held_until_ms = 0;
        return true;
    }
    if (loop_now_ms(c->d->loop) < c->held_until_ms)
        return false;
    c->held_until_ms = 0;
    conn_tell(c->conn, w);
    return true;
}

static void pump(struct call *c)
{
    struct fake_direct *d = c->d;

    while (!c->conn->closing && conn_due(c->conn, &d->server->world) && released(c)) {
        if (!conn_due(c->conn, &d->server->world))
            break;
        if (d->tamper && strikes(d->tamper))
            tamper_with(c);
        else
            conn_tell(c->conn, &d->server->world);
    }
    if (c->conn->out.len || c->conn->closing || !c->conn->watching)
        loop_task_add(d->loop, &c->task);
}

void fake_direct_turn(struct fake_direct *d)
{
    for (struct call *c = d->calls; c && !d->cut_off; c = c->next)
        if (c->conn && c->conn->watching && !c->conn->hanging)
            pump(c);
}
