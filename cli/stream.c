/* stream.c - a reflector that is freed when it fails, and started again. */
#include "cli/stream.h"

static int64_t now_mono(const struct stream *s)
{
    return kube_loop_now_ms(s->session->loop);
}

static void begin(void *ctx)
{
    stream_begin(ctx);
}

static void drop(void *ctx)
{
    struct stream *s = ctx;

    reflector_free(TAKE(s->reflector));
}

void stream_init(struct stream *s, struct session *session, void *owner, const struct kube_request *what,
                 const struct watcher_sink *sink)
{
    *s = (struct stream){.session = session,
                         .owner = owner,
                         .what = *what,
                         .options = {.resource = *what->resource,
                                     .ns = what->ns,
                                     .label_selector = what->label_selector,
                                     .field_selector = what->field_selector},
                         .sink = *sink,
                         .drop = {.run = drop, .ctx = s},
                         .again = {.fire = begin, .ctx = s}};
    s->options.seed = (uint64_t)kube_loop_wall_ms(s->session->loop);
    s->sink.ctx = s;
}

void stream_begin(struct stream *s)
{
    reflector_free(s->reflector);
    s->reflector = reflector_new(s->session->loop, &s->session->api, &s->options, &s->sink);
    reflector_start(s->reflector);
}

void stream_begin_later(struct stream *s, int64_t delay_ms)
{
    kube_loop_timer_set(s->session->loop, &s->again, now_mono(s) + delay_ms);
}

void stream_end(struct stream *s)
{
    kube_loop_task_cancel(s->session->loop, &s->drop);
    kube_loop_timer_cancel(s->session->loop, &s->again);
    drop(s);
}

void stream_found(struct stream *s)
{
    s->synced_ms = now_mono(s);
    s->failed_ms = 0;
    s->lost = false;
    s->synced = true;
}

/* How long to wait after the n-th failure in a row. */
static int64_t delay_of(int n)
{
    int64_t delay = STREAM_RETRY_MS;

    for (int i = 1; i < n && delay < STREAM_RETRY_MAX_MS; i++)
        delay *= 2;
    return delay < STREAM_RETRY_MAX_MS ? delay : STREAM_RETRY_MAX_MS;
}

void stream_failed(struct stream *s)
{
    kube_loop_task_add(s->session->loop, &s->drop);
    if (!s->synced)
        return;
    if (!s->failed_ms)
        s->failed_ms = kube_loop_wall_ms(s->session->loop);
    if (now_mono(s) - s->synced_ms >= STREAM_GOOD_MS)
        s->failures = 0;
    s->synced_ms = INT64_MAX / 2;
    stream_begin_later(s, delay_of(++s->failures));
    s->lost = s->failures > 1;
}
