/* elector.c - leader election: the lease's requests, its deadlines, and the gate that refuses writes without
 * the lease. */
#include "kube/elector.h"

#include "common/memory.h"
#include "kube/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOLDER_BYTES = 128 };

struct elector {
    struct kube_loop *loop;
    struct kube_transport transport;
    struct kube_transport_gate gate;
    struct elector_sink sink;
    struct lease *lease;
    struct lease_options o;
    int64_t request_ms; /* timeout of a request */
    struct kube_request_run *run;
    int64_t sent_ms;
    struct kube_loop_timer timer;
    bool leads; /* as last reported by `changed` */
    char holder[HOLDER_BYTES];
    void (*done)(void *ctx);
    void *done_ctx;
};

static void advance(void *ctx);

/* Lease time continues while the machine is suspended, since other candidates continue. */
static int64_t boot_ms(const struct elector *e)
{
    struct clock clock = kube_loop_clock(e->loop);

    return clock.boot_ms(clock.ctx);
}

bool elector_is_held(const struct elector *e)
{
    return lease_is_held(e->lease, boot_ms(e));
}

static bool gate_is_open(void *ctx)
{
    return elector_is_held(ctx);
}

static struct kube_transfer *fenced_start(void *ctx, const struct kube_http_request *req,
                                          const struct kube_http_handler *handler, struct err *err)
{
    struct elector *e = ctx;
    struct kube_http_request fenced = *req;

    if (strcmp(req->method, "GET") == 0)
        return kube_transport_start(&e->transport, req, handler, err);
    if (!elector_is_held(e)) {
        err_set(err, ERR_TRANSIENT, "%s %.120s: not sent: this process does not hold the lease", req->method,
                req->path);
        return NULL;
    }
    fenced.gate = &e->gate;
    return kube_transport_start(&e->transport, &fenced, handler, err);
}

static void fenced_cancel(void *ctx, struct kube_transfer *transfer)
{
    struct elector *e = ctx;

    kube_transport_cancel(&e->transport, transfer);
}

static bool is_full(void *ctx, const char *ns)
{
    const struct elector *e = ctx;

    return kube_transport_is_full(&e->transport, ns);
}

struct kube_transport elector_transport(struct elector *e)
{
    return (struct kube_transport){
        .start = fenced_start, .cancel = fenced_cancel, .ctx = e, .is_full = is_full};
}

/* Requests for the lease bypass the queue, and time out before the next one is due. */
static struct kube_transfer *lease_start(void *ctx, const struct kube_http_request *req,
                                         const struct kube_http_handler *handler, struct err *err)
{
    struct elector *e = ctx;
    struct kube_http_request urgent = *req;

    urgent.urgent = true;
    urgent.timeout_ms = e->request_ms;
    return kube_transport_start(&e->transport, &urgent, handler, err);
}

struct elector *elector_new(struct kube_loop *l, const struct kube_transport *t,
                            const struct lease_options *options, const struct elector_sink *sink)
{
    struct elector *e = memory_must(calloc(1, sizeof(*e)));

    e->loop = l;
    e->transport = *t;
    e->gate = (struct kube_transport_gate){gate_is_open, e};
    e->sink = *sink;
    e->lease = lease_new(options);
    e->o = *options;
    e->request_ms = options->duration_ms / 3; /* half of the renew deadline */
    e->timer = (struct kube_loop_timer){.fire = advance, .ctx = e};
    return e;
}

static void report(struct elector *e, int64_t now_ms)
{
    bool leads = lease_is_leader(e->lease, now_ms);
    const char *holder = lease_holder(e->lease);

    if (leads != e->leads) {
        e->leads = leads;
        if (e->sink.changed)
            e->sink.changed(e->sink.ctx, leads);
    }
    if (leads) {
        e->holder[0] = '\0';
    } else if (holder[0] && !lease_is_ours(e->lease) && strncmp(holder, e->holder, HOLDER_BYTES - 1) != 0) {
        snprintf(e->holder, sizeof(e->holder), "%s", holder);
        if (e->sink.waiting)
            e->sink.waiting(e->sink.ctx, e->holder);
    }
}

static void failed(struct elector *e, const struct err *err, const struct kube_status *status)
{
    bool usual = status->code == 404 || status->code == 409;

    lease_answer(e->lease, NULL, status, boot_ms(e));
    if (!usual && e->sink.problem)
        e->sink.problem(e->sink.ctx, err);
}

static void on_reply(void *ctx, struct kube_reply *reply)
{
    struct elector *e = ctx;

    e->run = NULL;
    if (reply->err || reply->unreadable)
        failed(e, reply->err ? reply->err : reply->unreadable, &reply->status);
    else
        lease_answer(e->lease, reply->object, &reply->status, boot_ms(e));
    advance(e);
}

static void send_step(struct elector *e, enum lease_step step)
{
    static const enum kube_verb VERBS[] = {[LEASE_WAIT] = KUBE_GET,
                                           [LEASE_READ] = KUBE_GET,
                                           [LEASE_CREATE] = KUBE_CREATE,
                                           [LEASE_WRITE] = KUBE_UPDATE};
    cleanup_arena struct arena a = {0};
    struct kube_transport own = {.start = lease_start, .cancel = fenced_cancel, .ctx = e};
    struct kube_request r = {.verb = VERBS[step], .resource = &KUBE_LEASES, .ns = e->o.ns};
    struct err err;

    if (step != LEASE_CREATE)
        r.name = e->o.name;
    if (step != LEASE_READ)
        r.body = sv_from(lease_body(e->lease, kube_loop_wall_ms(e->loop), &a));
    e->sent_ms = boot_ms(e);
    lease_sent(e->lease, e->sent_ms);
    e->run = kube_request_start(&own, &r, on_reply, e, &err);
    if (!e->run)
        failed(e, &err, &(struct kube_status){.retry_after_ms = -1});
}

/* The earliest of: the next step, the timeout of a request, the end of the lease that we hold. */
static void set_timer(struct elector *e)
{
    const struct clock clock = kube_loop_clock(e->loop);
    int64_t at_ms = e->run ? e->sent_ms + e->request_ms : lease_due_ms(e->lease);

    if (e->leads && lease_held_until_ms(e->lease) < at_ms)
        at_ms = lease_held_until_ms(e->lease);
    if (at_ms == INT64_MAX)
        kube_loop_timer_cancel(e->loop, &e->timer);
    else
        kube_loop_timer_set(e->loop, &e->timer, at_ms - boot_ms(e) + clock.mono_ms(clock.ctx));
}

static void give_up_overdue(struct elector *e)
{
    struct err err;

    if (!e->run || boot_ms(e) < e->sent_ms + e->request_ms)
        return;
    kube_request_cancel(e->run);
    e->run = NULL;
    err_set(&err, ERR_TIMEOUT, "lease %s/%s: no answer in %lld ms", e->o.ns, e->o.name,
            (long long)e->request_ms);
    failed(e, &err, &(struct kube_status){.retry_after_ms = -1});
}

static void advance(void *ctx)
{
    struct elector *e = ctx;

    give_up_overdue(e);
    enum lease_step step = lease_next(e->lease, boot_ms(e));
    if (step != LEASE_WAIT)
        send_step(e, step);
    report(e, boot_ms(e));
    set_timer(e);
    if (lease_is_over(e->lease) && e->done) {
        void (*done)(void *) = e->done;
        e->done = NULL;
        done(e->done_ctx);
    }
}

void elector_start(struct elector *e)
{
    advance(e);
}

void elector_release(struct elector *e, void (*done)(void *ctx), void *ctx)
{
    e->done = done;
    e->done_ctx = ctx;
    lease_release(e->lease, boot_ms(e));
    advance(e);
}

void elector_free(struct elector *e)
{
    if (!e)
        return;
    kube_request_cancel(e->run);
    kube_loop_timer_cancel(e->loop, &e->timer);
    lease_free(e->lease);
    free(e);
}
