/* feeds.c - a feed for each pod, by the number of its stream: one request after the other for its container's log. */
#include "cli/logs/feeds.h"

#include "cli/say.h"
#include "kube/apistatus.h"

#include <stdio.h>
#include <string.h>

/* ---- one feed */

enum {
    FAILURES_MAX = 3,     /* of a log that is read once */
    REOPEN_MS = 250,      /* after a follow that ended in order, doubling while nothing comes */
    REOPEN_DOUBLINGS = 4, /* up to 4 s */
    AT_ONCE_MS = 100,     /* after the first failure in a row: mostly only the connection was lost */
    GONE_MS = 5000,       /* for the rest of a deleted pod's log */
    REPORTED_FAILURE = 2, /* in a row, the first that is reported: a lost connection mostly returns at once */
};

static void request(void *ctx);
static void give_up(void *ctx);

static int64_t now_ms(const struct feed *f)
{
    return kube_loop_now_ms(f->all->session->loop);
}

static void fire_in(struct feed *f, int64_t ms, void (*fire)(void *ctx))
{
    f->again = (struct kube_loop_timer){.fire = fire, .ctx = f, .node = f->again.node};
    kube_loop_timer_set(f->all->session->loop, &f->again, now_ms(f) + ms);
}

static void cancel(struct feed *f)
{
    if (f->transfer)
        kube_transport_cancel(&f->all->session->api, TAKE(f->transfer));
}

static bool is_read(const struct feed *f)
{
    return f->used && !f->done;
}

static void feed_close(struct feed *f)
{
    if (!is_read(f))
        return;
    cancel(f);
    kube_loop_timer_cancel(f->all->session->loop, &f->again);
    f->done = true;
    merge_end(f->all->merge, f->stream, true, now_ms(f));
    merge_close(f->all->merge, f->stream);
}

static void finish(struct feed *f)
{
    feed_close(f);
    f->all->moved(f->all->ctx, f);
}

static void say_trouble(const struct feed *f, const struct err *err)
{
    say("kubectl ptj logs", "pod %s: %s%s", f->pod, err->msg, f->failed ? "" : "; trying again");
}

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
    count_rest(f);
    if (f->rest_ms < FEEDS_GONE_MS)
        return false;
    f->failed = true;
    say("kubectl ptj logs", "pod %s: its log goes on %d s after the pod was deleted: the rest is left out",
        f->pod, FEEDS_GONE_MS / 1000);
    finish(f);
    return true;
}

static void on_chunk(void *ctx, struct sv bytes)
{
    struct feed *f = ctx;

    if (is_endless(f))
        return;
    if (f->gone)
        fire_in(f, GONE_MS, give_up);
    f->got_bytes = true;
    f->failures = f->quiet = 0;
    merge_feed(f->all->merge, f->stream, bytes, now_ms(f));
    f->held = merge_is_full(f->all->merge, f->stream);
    if (f->held)
        kube_transport_hold(&f->all->session->api, f->transfer, true);
    f->all->moved(f->all->ctx, f);
}

static void feed_release(struct feed *f)
{
    if (!is_read(f) || !f->held || merge_is_full(f->all->merge, f->stream))
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
    fire_in(f, was_live ? REOPEN_MS << f->quiet : 0, request);
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
            say_trouble(f, err);
        finish(f);
        return;
    }
    /* 400: the container is about to start. */
    if (f->failures == REPORTED_FAILURE && err->code != 400)
        say_trouble(f, err);
    fire_in(f, f->failures == 1 ? AT_ONCE_MS : backoff_failed(&f->backoff, now_ms(f), 0), request);
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

/* No kubelet answers for a deleted pod: what has not come in time does not come. What waits for the reader of our output has come. */
static void give_up(void *ctx)
{
    struct feed *f = ctx;

    if (f->held)
        fire_in(f, GONE_MS, give_up);
    else
        finish(f);
}

/* After a change of ended, gone or once. */
static void feed_update(struct feed *f)
{
    if (!is_read(f))
        return;
    count_rest(f);
    if (f->gone && f->transfer)
        fire_in(f, GONE_MS, give_up);
    else if (!f->transfer && (f->gone || ((f->ended || f->once) && f->failures == 0)))
        fire_in(f, 0, request);
}

static void feed_read_out(struct feed *f)
{
    if (!is_read(f))
        return;
    f->once = true;
    /* These end without help: the pod is deleted, a request to the end of the log is under way, or the next try is one. */
    if (f->gone || (f->transfer && !f->live) || (!f->transfer && f->failures))
        return;
    if (f->transfer) {
        cancel(f);
        merge_end(f->all->merge, f->stream, false, now_ms(f));
    }
    fire_in(f, 0, request);
}

/* ---- all of them */

static struct feed *feed_of(struct feeds *f, const char *uid)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if (f->of[i].used && !strcmp(f->of[i].uid, uid))
            return &f->of[i];
    return NULL;
}

/* A free number. A pod that exists keeps its own: else its log would be read again. */
static int free_stream(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if ((!f->of[i].used || (f->of[i].done && f->of[i].gone)) &&
            merge_open(f->merge, i, kube_loop_now_ms(f->session->loop)))
            return i;
    return -1;
}

static bool has_ended(const struct pod *pod)
{
    return pod->training.state == CONTAINER_TERMINATED;
}

void feeds_begin(struct feeds *f, const struct pod *pod, const char *job, bool once)
{
    const size_t job_len = strlen(job);
    const bool has_prefix = !strncmp(pod->name, job, job_len) && pod->name[job_len] == '-';
    const int i = free_stream(f);

    if (i < 0) {
        say("kubectl ptj logs", "pod %s is not shown: logs reads %d logs at once", pod->name, MERGE_STREAMS);
        return;
    }
    struct feed *feed = &f->of[i];
    *feed = (struct feed){.all = f,
                          .stream = i,
                          .used = true,
                          .once = once,
                          .ended = has_ended(pod),
                          .listed = true,
                          .has_read = f->tail == 0, /* no line that exists is wanted */
                          .backoff = {.random = (uint64_t)i + 1}};
    snprintf(feed->pod, sizeof(feed->pod), "%s", pod->name);
    snprintf(feed->uid, sizeof(feed->uid), "%s", pod->uid);
    snprintf(feed->container, sizeof(feed->container), "%s", pod->training.name);
    snprintf(feed->label, sizeof(feed->label), "%s", pod->name + (has_prefix ? job_len + 1 : 0));
    request(feed);
}

bool feeds_update(struct feeds *f, const struct pod *pod)
{
    struct feed *feed = feed_of(f, pod->uid);

    if (!feed)
        return false;
    feed->listed = true;
    feed->ended |= has_ended(pod);
    feed_update(feed);
    return true;
}

static void is_gone(struct feed *feed)
{
    feed->gone = feed->ended = true;
    feed_update(feed);
}

void feeds_gone(struct feeds *f, const char *uid)
{
    struct feed *feed = feed_of(f, uid);

    if (feed)
        is_gone(feed);
}

void feeds_list_begin(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        f->of[i].listed = false;
}

void feeds_list_end(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if (f->of[i].used && !f->of[i].gone && !f->of[i].listed)
            is_gone(&f->of[i]);
}

bool feeds_done(const struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if (is_read(&f->of[i]))
            return false;
    return true;
}

void feeds_release(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        feed_release(&f->of[i]);
}

void feeds_read_out(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        feed_read_out(&f->of[i]);
}

void feeds_close(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        feed_close(&f->of[i]);
}
