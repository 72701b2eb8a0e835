/* feed.c - one request after the other for a container's log. */
#include "cli/logs/feeds.h"

#include "kube/apistatus.h"

enum {
    FAILURES_MAX = 3,     /* of a log that is read once */
    REOPEN_MS = 250,      /* after a follow that ended in order, doubling while nothing comes */
    REOPEN_DOUBLINGS = 4, /* up to 4 s */
    AT_ONCE_MS = 100,     /* after the first failure in a row: mostly only the connection was lost */
    GONE_MS = 5000,       /* for the rest of a deleted pod's log */
    REPORTED_FAILURE =
        2, /* the first failure in a row that is reported: a lost connection mostly returns at once */
};

static void request(void *ctx);

static int64_t now_ms(const struct feed *f)
{
    return kube_loop_now_ms(f->all->session->loop);
}

static void request_in(struct feed *f, int64_t ms)
{
    f->again = (struct kube_loop_timer){.fire = request, .ctx = f, .node = f->again.node};
    kube_loop_timer_set(f->all->session->loop, &f->again, now_ms(f) + ms);
}

static void stop(struct feed *f)
{
    if (f->transfer)
        kube_transport_cancel(&f->all->session->api, TAKE(f->transfer));
    kube_loop_timer_cancel(f->all->session->loop, &f->again);
}

void feed_close(struct feed *f)
{
    if (!f->used || f->done)
        return;
    stop(f);
    f->done = true;
    merge_end(f->all->merge, f->stream, true, now_ms(f));
    merge_close(f->all->merge, f->stream);
}

static void finish(struct feed *f)
{
    feed_close(f);
    f->all->moved(f->all->ctx, f);
}

static void give_up_later(struct feed *f);

/* Add up how long the rest of a deleted pod's log takes. */
static void count_rest(struct feed *f)
{
    const int64_t now = now_ms(f) - f->all->blocked_ms;

    if (f->counting && !f->held)
        f->rest_ms += now - f->counted_ms;
    f->counting = f->gone;
    f->counted_ms = now;
}

/* The log goes on for too long after the pod was deleted. */
static bool is_endless(struct feed *f)
{
    struct err err;

    count_rest(f);
    if (f->rest_ms < FEEDS_GONE_MS)
        return false;
    f->failed = true;
    (void)err_set(&err, ERR_TIMEOUT, "its log goes on %d s after the pod was deleted: the rest is left out",
                  FEEDS_GONE_MS / 1000);
    f->all->trouble(f->all->ctx, f, &err);
    finish(f);
    return true;
}

static void on_chunk(void *ctx, struct sv bytes)
{
    struct feed *f = ctx;

    if (is_endless(f))
        return;
    if (f->gone)
        give_up_later(f);
    f->got_bytes = true;
    f->failures = f->quiet = 0;
    merge_feed(f->all->merge, f->stream, bytes, now_ms(f));
    f->held = merge_is_full(f->all->merge, f->stream);
    if (f->held)
        kube_transport_hold(&f->all->session->api, f->transfer, true);
    f->all->moved(f->all->ctx, f);
}

void feed_release(struct feed *f)
{
    if (!f->used || f->done || !f->held || merge_is_full(f->all->merge, f->stream))
        return;
    count_rest(f);
    f->held = false;
    if (f->transfer)
        kube_transport_hold(&f->all->session->api, f->transfer, false);
}

static void came_to_its_end(struct feed *f)
{
    const bool was_live = f->live;

    if (f->final) {
        finish(f);
        return;
    }
    f->has_read = true;
    f->quiet = f->got_bytes ? 0 : f->quiet + (f->quiet < REOPEN_DOUBLINGS);
    request_in(f, was_live ? REOPEN_MS << f->quiet : 0);
    f->all->moved(f->all->ctx, f);
}

static void failed(struct feed *f, const struct err *err)
{
    const struct podlog log = {.pod = f->pod};
    const struct kube_request permission = podlog_right(f->all->session, &log);
    struct err explained = *err;

    if (err->code == 403) {
        (void)session_explain(f->all->session, &permission, &explained);
        f->all->fatal(f->all->ctx, &explained);
        return;
    }
    f->failures++;
    if ((err->code == 404 && (f->gone || f->final)) || (f->once && f->failures >= FAILURES_MAX)) {
        f->failed = err->code != 404;
        if (f->failed)
            f->all->trouble(f->all->ctx, f, err);
        finish(f);
        return;
    }
    /* 400: the container is about to start. */
    if (f->failures == REPORTED_FAILURE && err->code != 400)
        f->all->trouble(f->all->ctx, f, err);
    request_in(f, f->failures == 1 ? AT_ONCE_MS : backoff_failed(&f->backoff, now_ms(f), 0));
}

static void on_done(void *ctx, const struct kube_http_response *r, const struct err *err)
{
    struct feed *f = ctx;
    struct kube_status status;
    struct err why;

    f->transfer = NULL;
    if (err)
        why = *err;
    const bool whole = !err && kube_status_check(r, &status, &why) == 0;
    merge_end(f->all->merge, f->stream, whole, now_ms(f));
    if (whole)
        came_to_its_end(f);
    else
        failed(f, &why);
}

/* The lines that exist are read without following: that has an end, and so an order. */
static void request(void *ctx)
{
    struct feed *f = ctx;
    const struct kube_http_handler handler = {.ctx = f, .chunk = on_chunk, .done = on_done};
    char since[MERGE_SINCE_BYTES];
    cleanup_arena struct arena a = {0};
    struct kube_http_request r;
    struct err err;

    if (f->gone) { /* its successor would answer, by the same name */
        finish(f);
        return;
    }
    f->final = f->once || f->ended;
    f->live = f->has_read && !f->final;
    f->got_bytes = f->held = false;
    const struct podlog log = {.pod = f->pod,
                               .container = f->container,
                               .since = merge_since(f->all->merge, f->stream, since) ? since : NULL,
                               .since_s = f->all->since_s,
                               .tail = f->all->tail,
                               .times = true,
                               .follow = f->live};
    merge_begin(f->all->merge, f->stream, f->live, now_ms(f));
    if (podlog_request(f->all->session, &log, &a, &r, &err) < 0 ||
        !(f->transfer = kube_transport_start(&f->all->session->api, &r, &handler, &err)))
        f->all->fatal(f->all->ctx, &err);
}

void feed_begin(struct feed *f)
{
    f->used = true;
    f->backoff.random = (uint64_t)f->stream + 1;
    request(f);
}

/* No kubelet answers for a deleted pod: what has not come in time does not come. What waits for the reader of our output has come. */
static void give_up(void *ctx)
{
    struct feed *f = ctx;

    if (f->held)
        give_up_later(f);
    else
        finish(f);
}

static void give_up_later(struct feed *f)
{
    f->again = (struct kube_loop_timer){.fire = give_up, .ctx = f, .node = f->again.node};
    kube_loop_timer_set(f->all->session->loop, &f->again, now_ms(f) + GONE_MS);
}

void feed_update(struct feed *f)
{
    if (!f->used || f->done)
        return;
    count_rest(f);
    if (f->gone && f->transfer) {
        give_up_later(f);
    } else if (!f->transfer && (f->gone || ((f->ended || f->once) && f->failures == 0))) {
        request_in(f, 0);
    }
}

void feed_read_out(struct feed *f)
{
    if (!f->used || f->done)
        return;
    f->once = true;
    /* These end without help: the pod is deleted, a request to the end of the log is under way, or the next try is one. */
    if (f->gone || (f->transfer && !f->live) || (!f->transfer && f->failures))
        return;
    if (f->transfer) {
        kube_transport_cancel(&f->all->session->api, TAKE(f->transfer));
        merge_end(f->all->merge, f->stream, false, now_ms(f));
    }
    request_in(f, 0);
}
