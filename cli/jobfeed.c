/* jobfeed.c - reflectors for jobs, their events and pods, begun anew when the server is lost. */
#include "cli/jobfeed.h"

#include "cli/shown.h"
#include "common/json.h"
#include "common/memory.h"
#include "operator/api/pod.h"
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
    int64_t failed_ms; /* when the first failure since the last list happened; 0: none did */
    bool lost;         /* as was told */
    bool synced;       /* a list was complete, ever */
    int64_t synced_ms; /* the last time; monotonic */
};

struct jobfeed {
    struct jobfeed_options o;
    struct stream jobs, events, pods;
    char fields[320], event_fields[400], pod_labels[320];
    struct kube_loop_timer late;
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
static void on_lost(void *ctx, const struct err *err)
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
    if (!s->failed_ms)
        s->failed_ms = now_wall(f);
    if (now_mono(f) - s->synced_ms >= JOBFEED_GOOD_MS)
        s->failures = 0;
    s->synced_ms = INT64_MAX / 2;
    begin_later(s, delay_of(++s->failures));
    /* Connections that are cut and made again at once are nobody's trouble. */
    if (s->failures < 2)
        return;
    s->lost = true;
    if (!f->trouble.since_ms)
        f->trouble.since_ms = s->failed_ms;
    shown_text(f->trouble.why, sizeof(f->trouble.why), shown.msg);
    f->o.state(f->o.ctx);
}

/* The other streams tell of a server that is lost; here only a missing right is news. */
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

/* A list is complete. */
static void found(struct stream *s)
{
    struct jobfeed *f = s->feed;
    const bool told = f->trouble.since_ms;

    s->synced_ms = now_mono(f);
    s->failed_ms = 0;
    s->lost = false;
    s->synced = true;
    if (f->jobs.lost || f->pods.lost || !f->jobs.synced)
        return;
    f->trouble.since_ms = 0;
    f->trouble.why[0] = '\0';
    if (told)
        f->o.state(f->o.ctx);
}

static void on_jobs_begin(void *ctx)
{
    const struct stream *s = ctx;

    s->feed->o.list_begin(s->feed->o.ctx);
}

static void on_jobs_end(void *ctx)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->feed;
    const bool is_first = !s->synced;

    kube_loop_timer_cancel(f->o.session->loop, &f->late);
    f->o.list_end(f->o.ctx);
    if (f->o.events && (is_first || f->events.failures))
        begin_later(&f->events, 0);
    found(s);
}

static void on_job(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;

    s->feed->o.job(s->feed->o.ctx, object);
}

static void on_job_removed(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;
    const cJSON *meta = json_find(object, (const char *[]){"metadata", NULL});

    s->feed->o.removed(s->feed->o.ctx, json_str(meta, "namespace"), json_str(meta, "name"));
}

/* Its names are all that can be shown. */
static void on_job_unreadable(void *ctx, const cJSON *names, const struct err *why)
{
    (void)why;
    on_job(ctx, names);
}

static void on_events_end(void *ctx)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->feed;
    const bool told = f->trouble.events[0];

    s->failures = 0;
    f->trouble.events[0] = '\0';
    if (told)
        f->o.state(f->o.ctx);
}

static void on_event(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;

    s->feed->o.event(s->feed->o.ctx, object);
}

static void on_pods_begin(void *ctx)
{
    const struct stream *s = ctx;

    s->feed->o.pods->list_begin(s->feed->o.ctx);
}

static void on_pods_end(void *ctx)
{
    struct stream *s = ctx;

    s->feed->o.pods->list_end(s->feed->o.ctx);
    found(s);
}

static void on_pod(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;

    s->feed->o.pods->pod(s->feed->o.ctx, object);
}

static void on_pod_removed(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;

    s->feed->o.pods->removed(s->feed->o.ctx, object);
}

static void pass_over(void *ctx)
{
    (void)ctx;
}

static void pass_over_object(void *ctx, const cJSON *object)
{
    (void)ctx, (void)object;
}

static void pass_over_unreadable(void *ctx, const cJSON *names, const struct err *why)
{
    (void)ctx, (void)names, (void)why;
}

static const struct watcher_sink JOBS = {.replace_begin = on_jobs_begin,
                                         .replace_end = on_jobs_end,
                                         .upsert = on_job,
                                         .removed = on_job_removed,
                                         .unreadable = on_job_unreadable,
                                         .problem = on_lost},
                                 EVENTS = {.replace_begin = pass_over,
                                           .replace_end = on_events_end,
                                           .upsert = on_event,
                                           .removed = pass_over_object,
                                           .unreadable = pass_over_unreadable,
                                           .problem = on_events_problem},
                                 PODS = {.replace_begin = on_pods_begin,
                                         .replace_end = on_pods_end,
                                         .upsert = on_pod,
                                         .removed = on_pod_removed,
                                         .unreadable = pass_over_unreadable,
                                         .problem = on_lost};

static void on_late(void *ctx)
{
    struct jobfeed *f = ctx;

    f->trouble.since_ms = now_wall(f) - JOBFEED_LATE_MS;
    f->o.state(f->o.ctx);
}

static void prepare(struct stream *s, struct jobfeed *f, const struct kube_resource *resource,
                    const char *fields, const char *labels, const struct watcher_sink *sink)
{
    *s = (struct stream){
        .feed = f,
        .what = {.verb = KUBE_WATCH, .resource = resource, .ns = f->o.ns},
        .options = {.resource = *resource,
                    .ns = f->o.ns,
                    .label_selector = labels,
                    .field_selector = fields && fields[0] ? fields : NULL,
                    .seed = (uint64_t)now_wall(f)},
        .sink = *sink,
        .drop = {.run = drop, .ctx = s},
        .again = {.fire = begin, .ctx = s},
    };
    s->sink.ctx = s;
}

struct jobfeed *jobfeed_new(const struct jobfeed_options *options)
{
    struct jobfeed *f = memory_must(calloc(1, sizeof(*f)));

    f->o = *options;
    if (f->o.name)
        snprintf(f->fields, sizeof(f->fields), "metadata.name=%.253s", f->o.name);
    snprintf(f->event_fields, sizeof(f->event_fields), "involvedObject.kind=" TRAINJOB_KIND "%s%.253s",
             f->o.name ? ",involvedObject.name=" : "", f->o.name ? f->o.name : "");
    if (f->o.pods)
        snprintf(f->pod_labels, sizeof(f->pod_labels), LABEL_JOB "=%.253s", f->o.name);
    prepare(&f->jobs, f, &SESSION_JOBS, f->fields, f->o.label_selector, &JOBS);
    prepare(&f->events, f, &KUBE_EVENTS, f->event_fields, NULL, &EVENTS);
    prepare(&f->pods, f, &KUBE_PODS, NULL, f->pod_labels, &PODS);
    f->late = (struct kube_loop_timer){.fire = on_late, .ctx = f};
    kube_loop_timer_set(f->o.session->loop, &f->late, now_mono(f) + JOBFEED_LATE_MS);
    begin(&f->jobs);
    if (f->o.pods)
        begin(&f->pods);
    return f;
}

static void end(struct stream *s)
{
    kube_loop_task_cancel(s->feed->o.session->loop, &s->drop);
    kube_loop_timer_cancel(s->feed->o.session->loop, &s->again);
    reflector_free(TAKE(s->reflector));
}

void jobfeed_list_pods(struct jobfeed *f)
{
    end(&f->pods);
    begin(&f->pods);
}

void jobfeed_free(struct jobfeed *f)
{
    if (!f)
        return;
    kube_loop_timer_cancel(f->o.session->loop, &f->late);
    end(&f->jobs);
    end(&f->events);
    end(&f->pods);
    free(f);
}

const struct jobfeed_trouble *jobfeed_trouble(const struct jobfeed *f)
{
    return &f->trouble;
}
