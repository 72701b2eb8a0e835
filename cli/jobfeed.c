/* jobfeed.c - reflectors for jobs and their events, begun anew when the server is lost. */
#include "cli/jobfeed.h"

#include "cli/shown.h"
#include "common/json.h"
#include "common/memory.h"
#include "operator/api/trainjob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One collection. */
struct stream {
    struct jobfeed *feed;
    struct kube_request what; /* for messages */
    struct kube_watcher_options options;
    struct watcher_sink sink;
    struct reflector *reflector;
    struct kube_loop_task drop; /* a reflector is not freed inside its own callback */
    struct kube_loop_timer again;
    int failures;      /* in a row */
    bool synced;       /* a list was complete, ever */
    int64_t synced_ms; /* the last time; monotonic */
};

struct jobfeed {
    struct jobfeed_options o;
    struct stream jobs, events;
    char fields[320], event_fields[400];
    struct kube_loop_timer late;
    int64_t failed_ms; /* when the first failure since the last list happened; 0: none did */
    struct jobfeed_trouble trouble;
    bool over;
};

static int64_t now_mono(const struct jobfeed *f)
{
    return kube_loop_now_ms(f->o.session->loop);
}

static int64_t now_wall(const struct jobfeed *f)
{
    struct clock c = kube_loop_clock(f->o.session->loop);

    return c.wall_ms(c.ctx);
}

static void begin(void *ctx)
{
    struct stream *s = ctx;

    reflector_free(s->reflector);
    s->reflector = reflector_new(s->feed->o.session->loop, &s->feed->o.session->api, &s->options, &s->sink);
    reflector_start(s->reflector);
}

static void begin_later(struct stream *s, int64_t delay_ms)
{
    kube_loop_timer_set(s->feed->o.session->loop, &s->again, now_mono(s->feed) + delay_ms);
}

/* How long to wait after the n-th failure in a row. */
static int64_t delay_of(int n)
{
    int64_t delay = JOBFEED_RETRY_MS;

    for (int i = 1; i < n && delay < JOBFEED_RETRY_MAX_MS; i++)
        delay *= 2;
    return delay < JOBFEED_RETRY_MAX_MS ? delay : JOBFEED_RETRY_MAX_MS;
}

static void drop(void *ctx)
{
    struct stream *s = ctx;

    reflector_free(s->reflector);
    s->reflector = NULL;
}

/* A reflector waits up to a minute between tries, and after a short loss it resumes a watch on which nothing need come for as
 * long: nobody would know that the server is back. A new list tells at once. */
static void on_jobs_problem(void *ctx, const struct err *err)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->feed;
    struct err shown = *err;

    if (f->over)
        return;
    kube_loop_task_add(f->o.session->loop, &s->drop);
    (void)session_explain(f->o.session, &s->what, &shown);
    if (!s->synced) {
        f->over = true;
        kube_loop_timer_cancel(f->o.session->loop, &f->late);
        f->o.failed(f->o.ctx, &shown);
        return;
    }
    if (!f->failed_ms)
        f->failed_ms = now_wall(f);
    if (now_mono(f) - s->synced_ms >= JOBFEED_GOOD_MS)
        s->failures = 0;
    s->synced_ms = INT64_MAX / 2;
    begin_later(s, delay_of(++s->failures));
    /* Connections that are cut and made again at once are nobody's trouble. */
    if (s->failures < 2)
        return;
    f->trouble.since_ms = f->failed_ms;
    shown_text(f->trouble.why, sizeof(f->trouble.why), shown.msg);
    f->o.state(f->o.ctx);
}

/* The jobs' stream tells of a server that is lost; here only a missing right is news. */
static void on_events_problem(void *ctx, const struct err *err)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->feed;
    struct err shown = *err;

    s->failures++;
    if (err->code != 403)
        return;
    (void)session_explain(f->o.session, &s->what, &shown);
    shown_text(f->trouble.events, sizeof(f->trouble.events), shown.msg);
    f->o.state(f->o.ctx);
}

static void on_begin(void *ctx)
{
    struct stream *s = ctx;

    if (s == &s->feed->jobs)
        s->feed->o.list_begin(s->feed->o.ctx);
}

static void on_end(void *ctx)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->feed;
    const bool told = f->trouble.since_ms || (s == &f->events && f->trouble.events[0]);

    s->synced_ms = now_mono(f);
    if (s == &f->events) {
        s->failures = 0;
        f->trouble.events[0] = '\0';
    } else {
        kube_loop_timer_cancel(f->o.session->loop, &f->late);
        f->failed_ms = f->trouble.since_ms = 0;
        f->trouble.why[0] = '\0';
        f->o.list_end(f->o.ctx);
        if (f->o.events && (!s->synced || f->events.failures))
            begin_later(&f->events, 0);
    }
    s->synced = true;
    if (told)
        f->o.state(f->o.ctx);
}

static void on_object(void *ctx, const cJSON *object)
{
    struct stream *s = ctx;

    if (s == &s->feed->jobs)
        s->feed->o.job(s->feed->o.ctx, object);
    else
        s->feed->o.event(s->feed->o.ctx, object);
}

static void on_removed(void *ctx, const cJSON *object)
{
    struct stream *s = ctx;
    const cJSON *meta = json_find(object, (const char *[]){"metadata", NULL});

    if (s == &s->feed->jobs)
        s->feed->o.removed(s->feed->o.ctx, json_str(meta, "namespace"), json_str(meta, "name"));
}

/* Its names are all that can be shown. */
static void on_unreadable(void *ctx, const cJSON *names, const struct err *why)
{
    (void)why;
    on_object(ctx, names);
}

static void on_late(void *ctx)
{
    struct jobfeed *f = ctx;

    f->trouble.since_ms = now_wall(f) - JOBFEED_LATE_MS;
    f->o.state(f->o.ctx);
}

static void prepare(struct stream *s, struct jobfeed *f, const struct kube_resource *resource,
                    const char *fields, const char *labels, void (*problem)(void *ctx, const struct err *err))
{
    *s = (struct stream){
        .feed = f,
        .what = {.verb = KUBE_WATCH, .resource = resource, .ns = f->o.ns},
        .options = {.resource = *resource,
                    .ns = f->o.ns,
                    .label_selector = labels,
                    .field_selector = fields[0] ? fields : NULL,
                    .seed = (uint64_t)now_wall(f)},
        .sink = {.ctx = s,
                 .replace_begin = on_begin,
                 .replace_end = on_end,
                 .upsert = on_object,
                 .removed = on_removed,
                 .unreadable = on_unreadable,
                 .problem = problem},
        .drop = {.run = drop, .ctx = s},
        .again = {.fire = begin, .ctx = s},
    };
}

struct jobfeed *jobfeed_new(const struct jobfeed_options *options)
{
    struct jobfeed *f = memory_must(calloc(1, sizeof(*f)));

    f->o = *options;
    if (f->o.name)
        snprintf(f->fields, sizeof(f->fields), "metadata.name=%.253s", f->o.name);
    snprintf(f->event_fields, sizeof(f->event_fields), "involvedObject.kind=" TRAINJOB_KIND "%s%.253s",
             f->o.name ? ",involvedObject.name=" : "", f->o.name ? f->o.name : "");
    prepare(&f->jobs, f, &SESSION_JOBS, f->fields, f->o.label_selector, on_jobs_problem);
    prepare(&f->events, f, &KUBE_EVENTS, f->event_fields, NULL, on_events_problem);
    f->late = (struct kube_loop_timer){.fire = on_late, .ctx = f};
    kube_loop_timer_set(f->o.session->loop, &f->late, now_mono(f) + JOBFEED_LATE_MS);
    begin(&f->jobs);
    return f;
}

void jobfeed_free(struct jobfeed *f)
{
    if (!f)
        return;
    kube_loop_timer_cancel(f->o.session->loop, &f->late);
    kube_loop_task_cancel(f->o.session->loop, &f->jobs.drop);
    kube_loop_timer_cancel(f->o.session->loop, &f->jobs.again);
    kube_loop_timer_cancel(f->o.session->loop, &f->events.again);
    reflector_free(f->jobs.reflector);
    reflector_free(f->events.reflector);
    free(f);
}

const struct jobfeed_trouble *jobfeed_trouble(const struct jobfeed *f)
{
    return &f->trouble;
}
